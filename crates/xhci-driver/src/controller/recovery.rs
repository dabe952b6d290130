//! Recovery of an endpoint whose TDs are cancelled or fail (xHCI 1.2 clauses 4.6.8 to 4.6.10).
//!
//! Stop or Reset Endpoint, then Set TR Dequeue Pointer ring by ring, then the doorbells; after a
//! reported halt, the doorbells wait until it is cleared. A Stop Endpoint that is too late fails
//! with Context State Error; the endpoint context then gives the state. Always true: an endpoint
//! has at most one command in flight; an endpoint that cannot be recovered costs the device its
//! slot, since only then has the controller certainly released the buffers.

use super::command::Purpose;
use super::live::Live;
use crate::device::endpoint::{Endpoint, EndpointHold, Move, State};
use crate::hardware::Hardware;
use crate::limit::{STOP_ATTEMPTS_MAX, STOP_SETTLES};
use crate::retire::Recovery;
use units::Instant;
use wire::xhci::{CommandTrb, CompletionCode, EndpointContext, EndpointId, EndpointState};

/// A slot and an endpoint of the device there.
pub(super) type EndpointRef = (u8, EndpointId);

impl Live {
    /// Starts the recovery that an event calls for. If a command is in flight, its answer decides.
    pub(super) fn recover(
        &mut self,
        hw: &mut impl Hardware,
        now: Instant,
        which: EndpointRef,
        recovery: Recovery,
    ) {
        self.counters.soft_retries += u32::from(recovery == Recovery::SoftRetry);
        let is_free = self.endpoint_at(which).is_some_and(|endpoint| endpoint.is_free());
        if !is_free {
            return;
        }
        match recovery {
            Recovery::Nothing => {}
            Recovery::Reset => self.reset(hw, now, which, false),
            Recovery::SoftRetry => self.reset(hw, now, which, true),
            Recovery::MoveDequeue => self.settle(hw, now, which),
            Recovery::Stop => self.stop(hw, now, which),
        }
    }

    /// Something is wanted back of an endpoint that no command is in progress for. One that is held
    /// has stopped already.
    pub(super) fn cancel_tds(&mut self, hw: &mut impl Hardware, now: Instant, which: EndpointRef) {
        let found = self.endpoint_at(which);
        match found.map(|endpoint| endpoint.is_held()) {
            Some(true) => self.settle(hw, now, which),
            Some(false) => self.stop(hw, now, which),
            None => {}
        }
    }

    fn stop(&mut self, hw: &mut impl Hardware, now: Instant, (slot, endpoint): EndpointRef) {
        let Some(found) = self.endpoint_at((slot, endpoint)) else { return };
        found.state = State::Stopping;
        found.stops += 1;
        let command = CommandTrb::StopEndpoint { slot, endpoint, suspend: false };
        self.command(hw, now, command, Purpose::Stop(slot, endpoint));
    }

    fn reset(
        &mut self,
        hw: &mut impl Hardware,
        now: Instant,
        (slot, endpoint): EndpointRef,
        preserve_state: bool,
    ) {
        let Some(found) = self.endpoint_at((slot, endpoint)) else { return };
        found.state = State::Resetting { preserve_state };
        let command = CommandTrb::ResetEndpoint { slot, endpoint, preserve_state };
        self.command(hw, now, command, Purpose::ResetEndpoint(slot, endpoint));
    }

    /// Stop Endpoint was answered.
    pub(super) fn stopped(
        &mut self,
        hw: &mut impl Hardware,
        now: Instant,
        which: EndpointRef,
        code: CompletionCode,
    ) {
        if self.state_of(which) != Some(State::Stopping) {
            return;
        }
        let is_success = code == CompletionCode::Success;
        if is_success && self.config.quirks.stop_answered_early {
            self.set_state(which, State::Settling(now + STOP_SETTLES));
            self.settling.push((now + STOP_SETTLES, which.0, which.1));
            return;
        }
        self.counters.stop_races += u32::from(!is_success);
        match code {
            CompletionCode::CommandAborted => self.give_up(hw, now, which),
            _ => self.look(hw, now, which),
        }
    }

    /// Late events of a stopped endpoint have had their time.
    pub(super) fn settled(&mut self, hw: &mut impl Hardware, now: Instant, which: EndpointRef) {
        if matches!(self.state_of(which), Some(State::Settling(_))) {
            self.look(hw, now, which);
        }
    }

    /// Reset Endpoint was answered.
    pub(super) fn was_reset(
        &mut self,
        hw: &mut impl Hardware,
        now: Instant,
        which: EndpointRef,
        code: CompletionCode,
    ) {
        let Some(found) = self.endpoint_at(which) else { return };
        let State::Resetting { preserve_state } = found.state else { return };
        match code {
            CompletionCode::Success => {
                if found.hold == EndpointHold::Unknown && !preserve_state {
                    found.hold = EndpointHold::SequenceReset;
                }
                self.settle(hw, now, which);
            }
            CompletionCode::ContextStateError if self.context_of(hw, which) != EndpointState::Halted => {
                self.look(hw, now, which);
            }
            _ => self.give_up(hw, now, which),
        }
    }

    /// Set TR Dequeue Pointer was answered.
    pub(super) fn was_moved(
        &mut self,
        hw: &mut impl Hardware,
        now: Instant,
        which: EndpointRef,
        code: CompletionCode,
    ) {
        match (self.state_of(which), code) {
            (Some(State::Moving), CompletionCode::Success) => self.move_on(hw, now, which),
            (Some(State::Moving), _) => self.give_up(hw, now, which),
            _ => {}
        }
    }

    /// Goes on by what the endpoint's context says.
    fn look(&mut self, hw: &mut impl Hardware, now: Instant, which: EndpointRef) {
        let found = self.endpoint_at(which);
        let Some((stops, must_move)) = found.map(|endpoint| (endpoint.stops, endpoint.must_move())) else {
            return;
        };
        match self.context_of(hw, which) {
            EndpointState::Stopped | EndpointState::Error => self.settle(hw, now, which),
            EndpointState::Halted => self.reset(hw, now, which, !must_move),
            EndpointState::Running if stops < STOP_ATTEMPTS_MAX => {
                self.counters.stop_races += 1;
                self.stop(hw, now, which);
            }
            _ => self.give_up(hw, now, which),
        }
    }

    /// The endpoint is stopped: what is wanted back leaves its rings.
    pub(super) fn settle(&mut self, hw: &mut impl Hardware, now: Instant, (slot, endpoint): EndpointRef) {
        let forgets = self.config.quirks.forgets_cycles;
        let Some(device) = self.in_slot(slot) else { return };
        let (id, output) = (device.id, device.output_of(endpoint));
        let Some(found) = device.endpoint(endpoint) else { return };
        let completions = found.settle(hw, output);
        if forgets {
            found.remind();
        }
        self.emit(id, completions);
        self.move_on(hw, now, (slot, endpoint));
    }

    /// The next ring is moved; after the last the endpoint runs again.
    fn move_on(&mut self, hw: &mut impl Hardware, now: Instant, (slot, endpoint): EndpointRef) {
        let Some(device) = self.in_slot(slot) else { return };
        let id = device.id;
        let Some(found) = device.endpoint(endpoint) else { return };
        if let Some(Move { dequeue, cycle, stream }) = found.next_move() {
            found.state = State::Moving;
            let command = CommandTrb::SetTrDequeuePointer { slot, endpoint, dequeue, cycle, stream };
            self.command(hw, now, command, Purpose::Move(slot, endpoint));
            return;
        }
        let completions = found.moved();
        let (again, is_cleared) = (found.has_cancelled(), found.is_cleared);
        if !again {
            (found.state, found.stops) = (State::Running, 0);
        }
        self.emit(id, completions);
        match (again, is_cleared) {
            (true, _) => self.settle(hw, now, (slot, endpoint)),
            (false, true) => self.go_on_cleared(hw, now, (slot, endpoint)),
            (false, false) => self.go_on(hw, (slot, endpoint)),
        }
    }

    /// Rings for whatever is on the rings, if that may be.
    pub(super) fn go_on(&mut self, hw: &mut impl Hardware, (slot, endpoint): EndpointRef) {
        let Some(found) = self.endpoint_at((slot, endpoint)) else { return };
        if !found.is_running() {
            return;
        }
        let streams: alloc::vec::Vec<u16> = found.with_work().collect();
        for stream in streams {
            self.ring(hw, slot, endpoint, stream);
        }
    }

    pub(super) fn give_up(&mut self, hw: &mut impl Hardware, now: Instant, (slot, _): EndpointRef) {
        self.counters.failed_endpoints += 1;
        self.leave(hw, now, slot);
    }

    /// The endpoint, if it is there.
    pub(super) fn endpoint_at(&mut self, (slot, endpoint): EndpointRef) -> Option<&mut Endpoint> {
        self.in_slot(slot)?.endpoint(endpoint)
    }

    fn state_of(&mut self, which: EndpointRef) -> Option<State> {
        self.endpoint_at(which).map(|endpoint| endpoint.state)
    }

    fn set_state(&mut self, which: EndpointRef, state: State) {
        if let Some(endpoint) = self.endpoint_at(which) {
            endpoint.state = state;
        }
    }

    fn context_of(&mut self, hw: &mut impl Hardware, (slot, endpoint): EndpointRef) -> EndpointState {
        let Some(device) = self.in_slot(slot) else { return EndpointState::Disabled };
        let mut bytes = [0; EndpointContext::LEN];
        hw.read_bytes(device.output_of(endpoint), &mut bytes);
        EndpointContext::decode(&bytes).map_or(EndpointState::Disabled, |context| context.state)
    }
}
