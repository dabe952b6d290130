//! Transfers: doorbells, TDs, progress and events (xHCI 1.2 clauses 4.7, 4.10, 4.12).
//!
//! A doorbell is followed by reads: the stream context if any, the TRB, then OUT data. They add up
//! to one delay, after which TDs are fetched and queued on the link ([`super::fetch`]). DMA makes
//! no events: it is a time until which memory is busy ([`super::dma`]), and the link waits when the
//! controller's buffer is full ([`Controller::buffer_wait`]).
//!
//! Invariants: a TD makes the events that its TRBs request, and one if it fails; a halted endpoint
//! keeps its ring position.

use super::controller_fault::{Halt, PlannedFaults};
use super::counters::Counters;
use super::dma::Dma;
use super::events::Events;
use super::fetch_single::SingleProgress;
use super::fetches::Fetches;
use super::memory::{Fault, GuestMemory};
use super::model::Model;
use super::output::{DevicePath, LinkAct, Output};
use super::payload::scatter;
use super::ring::{EventFields, Ring};
use super::slot::{Endpoint, EndpointName, RingName, Slots};
use alloc::collections::VecDeque;
use bus::link::{End, Progress};
use units::Instant;
use wire::usb::EndpointAddress;
use wire::xhci::{CompletionCode as Code, EndpointId, EndpointState, EventTrb};

/// Slots and their rings, memory accesses, the event ring, and requests to the link: all that transfers need.
#[derive(Clone, Debug)]
pub(super) struct Transfers {
    pub(super) model: Model,
    pub(super) slots: Slots,
    pub(super) events: Events,
    pub(super) fetches: Fetches,
    pub(super) dma: Dma,
    pub(super) outputs: VecDeque<Output>,
    /// Completion codes with which the next fetched TDs of bulk endpoints fail, for tests.
    pub(super) failing: VecDeque<Code>,
    /// The Stopped event of the present Stop Endpoint command is not posted.
    pub(super) loses_stopped: bool,
    pub(super) faults: PlannedFaults,
    /// A stopped endpoint may have been written ([`super::doorbells`]).
    pub(super) perhaps_restarted: bool,
    pub(super) counters: Counters,
}

impl Transfers {
    pub(super) fn new(model: Model) -> Self {
        Self {
            slots: Slots::new(&model),
            model,
            events: Events::new(),
            fetches: Fetches::default(),
            dma: Dma::default(),
            outputs: VecDeque::new(),
            failing: VecDeque::new(),
            loses_stopped: false,
            faults: PlannedFaults::default(),
            perhaps_restarted: false,
            counters: Counters::default(),
        }
    }

    /// Disables all slots and empties the event ring on a reset of the controller.
    pub(super) fn reset(&mut self) {
        (1..=self.model.slots).for_each(|slot| self.disable(slot));
        self.events.reset();
    }

    /// Posts an event.
    pub(super) fn post(&mut self, now: Instant, event: EventTrb) {
        let at = self.dma.write_event(now, &self.model);
        self.events.post(at, event);
    }

    /// Posts an event for a time that may be in the future. It is not ordered behind other memory
    /// writes, which are not known yet.
    pub(super) fn post_later(&mut self, at: Instant, event: EventTrb) {
        self.events.post(Dma::event_unqueued(at, &self.model), event);
    }

    /// Handles the doorbell of an endpoint. Returns false if a planned fault has it ignored.
    pub(super) fn ring(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        to: RingName,
    ) -> Result<bool, Halt> {
        if self.faults.ignore_doorbell()? {
            self.counters.idle_doorbells += 1;
            return Ok(false);
        }
        self.ring_endpoint(now, memory, to)?;
        Ok(true)
    }

    /// Starts an endpoint on its doorbell and schedules a fetch.
    fn ring_endpoint(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        to: RingName,
    ) -> Result<(), Fault> {
        let misbehaves = self.model.misbehaviour.ignores_streams;
        let accepts = |endpoint: &&Endpoint| {
            let runs = matches!(endpoint.state(), EndpointState::Running | EndpointState::Stopped);
            runs && !(misbehaves && endpoint.streams.is_some())
        };
        let endpoint = self.slots.endpoint(to.endpoint_name()).filter(accepts);
        let Some(endpoint) = endpoint.filter(|_| !self.fetches.is_full()) else {
            self.counters.idle_doorbells += 1;
            return Ok(());
        };
        let span = endpoint.doorbell_span(&self.model);
        if endpoint.streams.is_some() {
            self.dma.read_stream_context(now, &self.model);
        }
        if endpoint.state() == EndpointState::Stopped && !self.set_running(now, memory, to)? {
            return Ok(());
        }
        self.fetches.schedule(now + span, to);
        Ok(())
    }

    /// Restarts a stopped endpoint. Returns whether it runs.
    #[cold]
    pub(super) fn set_running(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        to: RingName,
    ) -> Result<bool, Fault> {
        let slot = &self.slots[to.slot];
        let Some(endpoint) = slot.endpoint(to.endpoint) else { return Ok(false) };
        if let Some(code) = endpoint.halted_by {
            self.run_into_halt(now, memory, RingName { stream: 0, ..to }, code)?;
            return Ok(false);
        }
        if let Some(address) = endpoint.address().filter(|_| endpoint.is_on_link) {
            self.outputs.push_back(Output::Link(slot.path, LinkAct::Resume(address)));
        }
        self.slots.set_state(memory, to.endpoint_name(), EndpointState::Running)?;
        Ok(true)
    }

    /// Reports the halt of an endpoint that halted on the link while stopped.
    fn run_into_halt(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        to: RingName,
        code: Code,
    ) -> Result<(), Fault> {
        if let Some(endpoint) = self.slots.endpoint_mut(to.endpoint_name()) {
            endpoint.halted_by = None;
        }
        self.slots.set_state(memory, to.endpoint_name(), EndpointState::Running)?;
        self.fail(now, memory, to, code, EndpointState::Halted)
    }

    /// Handles a scheduled fetch: the line of the next TRB has arrived.
    pub(super) fn fetch(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        to: RingName,
    ) -> Result<(), Fault> {
        match self.slots.endpoint(to.endpoint_name()).map(|endpoint| endpoint.state()) {
            Some(EndpointState::Running) => {
                if let Some(ring) = self.slots.ring_mut(to) {
                    ring.has_line = true;
                }
                self.refill(now, memory, to)
            }
            _ => Ok(()),
        }
    }

    /// Handles progress of a transfer on the link. `bytes` is the data of an IN transfer. Returns
    /// whether the controller may have new work or events.
    #[inline]
    pub(super) fn handle_progress(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        progress: &Progress,
        bytes: &[u8],
    ) -> Result<bool, Fault> {
        match self.progress_single(now, memory, progress, bytes) {
            Some(SingleProgress::Moved) => return Ok(false),
            Some(SingleProgress::Completed) => return Ok(true),
            Some(SingleProgress::Refill(to)) => {
                self.refill(now, memory, to)?;
                return Ok(true);
            }
            None => {}
        }
        let posted = self.events.posted;
        self.progress(now, memory, progress, bytes)?;
        Ok(progress.ended.is_some() || self.events.posted != posted)
    }

    #[inline(never)]
    fn progress(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        progress: &Progress,
        bytes: &[u8],
    ) -> Result<(), Fault> {
        let Progress { id, moved, ended, piece } = *progress;
        let model = self.model;
        let found = RingName::of(id).and_then(|(to, number)| {
            let endpoint = self.slots.endpoint_mut(to.endpoint_name())?;
            let rules = endpoint.rules(&model);
            let ring = endpoint.rings.get_mut(usize::from(to.stream))?;
            let td = ring.first().filter(|td| td.number == number && ring.on_link > 0)?;
            let (base, before) = (td.base, td.moved);
            Some((to, rules, ring, (base, before)))
        });
        let Some((to, rules, ring, (base, before))) = found.filter(|_| ended != Some(End::Withdrawn)) else {
            self.counters.stale_progress += u32::from(ended != Some(End::Withdrawn));
            return Ok(());
        };
        let moved = base + moved;
        if piece.is_some() {
            let came = (moved - before) as usize;
            scatter(memory, ring, before, bytes.get(..came).unwrap_or(bytes))?;
            self.dma.write(now, &self.model, bytes.len());
        }
        let Self { events, dma, model, .. } = self;
        let emit =
            |emit: EventFields| events.post(dma.write_event(now, model), emit.event(to.slot, to.endpoint));
        match ended {
            None => {
                ring.advance(moved, false, emit);
                return Ok(());
            }
            Some(End::Full) => ring.advance(moved, true, emit),
            Some(End::Short) => ring.cut(moved, rules, emit),
            Some(end) => {
                ring.advance(moved, false, emit);
                let code = match end {
                    End::Stalled => Code::StallError,
                    End::Overflow => Code::BabbleDetected,
                    _ => Code::UsbTransactionError,
                };
                return self.fail(now, memory, to, code, EndpointState::Halted);
            }
        }
        ring.on_link -= 1;
        self.counters.tds += 1;
        if rules.direction.is_some() && ring.is_at_rest(memory)? {
            return Ok(());
        }
        self.refill(now, memory, to)
    }

    /// Handles a halt on the link, by STALL or without a response. If it ended a transfer, that was
    /// reported then; otherwise there is no TRB to name, for example when a device answers Prime
    /// with STALL before any stream is current (clauses 4.10.2 and 4.12.2).
    pub(super) fn handle_halt(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        path: DevicePath,
        address: EndpointAddress,
        is_stalled: bool,
    ) -> Result<(), Fault> {
        let id = EndpointId::of(address);
        let code = if is_stalled { Code::StallError } else { Code::UsbTransactionError };
        if let Some(name) = self.slots.find(path, id, EndpointState::Running) {
            return self.fail(now, memory, RingName::without_stream(name), code, EndpointState::Halted);
        }
        // A stopped endpoint answers a proposal with NoStream, which a device may answer with
        // STALL.
        let stopped = self.slots.find(path, id, EndpointState::Stopped);
        if let Some(endpoint) = stopped.and_then(|name| self.slots.endpoint_mut(name)) {
            endpoint.halted_by = Some(code);
        }
        Ok(())
    }

    /// Fails the endpoint: posts an event for the current TRB and saves the ring position.
    pub(super) fn fail(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        to: RingName,
        code: Code,
        state: EndpointState,
    ) -> Result<(), Fault> {
        let nowhere = EventFields { pointer: 0, length: 0, code, event_data: false };
        let emit = self.slots.ring_mut(to).and_then(|ring| ring.here(code)).unwrap_or(nowhere);
        self.fail_with(now, memory, to, emit, state)
    }

    /// Fails the endpoint with this event.
    pub(super) fn fail_with(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        to: RingName,
        emit: EventFields,
        state: EndpointState,
    ) -> Result<(), Fault> {
        let name = to.endpoint_name();
        self.post(now, emit.event(to.slot, to.endpoint));
        self.unwind(name);
        if let Some(endpoint) = self.slots.endpoint_mut(name) {
            endpoint.enter(state);
        }
        self.slots.save(memory, name)
    }

    /// Disables a slot and removes its endpoints.
    pub(super) fn disable(&mut self, number: u8) {
        let slot = core::mem::take(&mut self.slots[number]);
        for endpoint in slot.endpoints.into_iter().flatten() {
            self.remove_from_link(slot.path, &endpoint);
        }
        self.fetches.drop_slot(number);
    }

    /// Removes an endpoint from the link, if it is there.
    pub(super) fn remove_from_link(&mut self, path: DevicePath, endpoint: &Endpoint) {
        if let Some(address) = endpoint.address().filter(|_| endpoint.is_on_link) {
            self.outputs.push_back(Output::Link(path, LinkAct::Remove(address)));
        }
    }

    /// Unqueues the TDs of an endpoint and drops its scheduled fetches.
    pub(super) fn unwind(&mut self, name: EndpointName) {
        self.fetches.drop_endpoint(name);
        let slot = &mut self.slots[name.slot];
        let path = slot.path;
        let Some(endpoint) = slot.endpoint_mut(name.id) else { return };
        let has_any = endpoint.has_transfers();
        endpoint.rings.iter_mut().for_each(Ring::unwind);
        if let Some(address) = endpoint.address().filter(|_| has_any && endpoint.is_on_link) {
            self.outputs.push_back(Output::Link(path, LinkAct::Clear(address)));
        }
    }

    /// Stops a quiet endpoint: reports its partial TDs (clause 4.6.9).
    pub(super) fn stopped(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        name: EndpointName,
    ) -> Result<(), Fault> {
        let Some(endpoint) = self.slots.endpoint_mut(name) else { return Ok(()) };
        let mut reported = endpoint.stopped_events(&self.model);
        endpoint.enter(EndpointState::Stopped);
        if core::mem::take(&mut self.loses_stopped) {
            reported.clear();
        }
        for emit in reported {
            self.post(now, emit.event(name.slot, name.id));
        }
        self.unwind(name);
        self.slots.save(memory, name)?;
        self.forget(name);
        Ok(())
    }

    /// Drops the cycle bits of a stopped endpoint on controllers with that deviation.
    pub(super) fn forget(&mut self, name: EndpointName) {
        if !self.model.misbehaviour.forgets_cycles {
            return;
        }
        if let Some(endpoint) = self.slots.endpoint_mut(name) {
            endpoint.forget_cycles();
        }
    }
}
