//! The command ring: commands execute one by one, in order, and complete with events (xHCI 1.2
//! clauses 4.6 and 4.9.3).
//!
//! Most commands take the model's command time. Stop Endpoint waits for the link to become quiet,
//! Address Device for the device's answer. The states in which a command is allowed, and its
//! effects, are here and in `configure`.
//!
//! Invariants: a command completes once; an aborted command completes as aborted.

use super::controller::Controller;
use super::controller_fault::{ControllerFault, StopFault};
use super::memory::{Fault, GuestMemory};
use super::output::{ControlRequest, DevicePath, LinkAct, Output};
use super::ring::Cursor;
use super::slot::{Endpoint, Slot, SlotStage, slots_at};
use alloc::vec::Vec;
use units::Instant;
use wire::usb::{Direction, EndpointAddress, Recipient, RequestKind, SetupPacket, StandardRequest};
use wire::xhci::{
    CommandRingControl, CommandTrb, CompletionCode as Code, EndpointContext, EndpointId, EndpointState,
    EventTrb, SlotContext, SlotState, StreamDequeue, TRB_BYTES, TransferTrb, cycle_of, trb_type_of,
};

/// Link TRBs in a row that count as a loop.
const LINKS_MAX: u32 = 16;

#[derive(Clone, Debug, Default)]
pub(super) struct Commands {
    at: Cursor,
    /// The doorbell was rung since the ring was placed or stopped (CRR).
    pub(super) is_running: bool,
    /// When the next command is looked for.
    step_at: Option<Instant>,
    current: Option<Current>,
    /// It is to stop after the current command (CS).
    stops: bool,
}

/// A command that waits for the link or the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Current {
    pointer: u64,
    slot: u8,
    waits: Waits,
}

/// The event that a command waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// The link to become quiet.
    Quiet(EndpointId),
    /// The device's answer to SET_ADDRESS.
    Address(u64),
    /// Nothing: it never completes.
    Never,
}

/// The result of a command: a completion, or pending.
pub(super) type Did = Result<(Code, u8), Pending>;

/// The command is pending.
pub(super) struct Pending(Waits);

impl Commands {
    pub(super) const fn due(&self) -> Option<Instant> {
        self.step_at
    }

    /// Sets the ring pointer.
    pub(super) const fn place(&mut self, control: CommandRingControl) {
        self.at = Cursor { at: control.ring, cycle: control.cycle };
    }

    /// Stops; the current command never completes.
    pub(super) fn halt(&mut self) {
        (self.step_at, self.current, self.stops, self.is_running) = (None, None, false, false);
    }
}

impl Commands {
    /// Returns whether no command is being executed, and the driver has queued none.
    pub(super) fn are_done(&self, memory: &impl GuestMemory) -> bool {
        let Cursor { at, cycle } = self.at;
        let is_idle = self.current.is_none() && self.step_at.is_none();
        is_idle && memory.read_trb(at).is_ok_and(|trb| cycle_of(&trb) != cycle)
    }

    /// Returns whether a command waits for an endpoint to become quiet.
    pub(super) fn is_stopping(&self, slot: u8, endpoint: EndpointId) -> bool {
        let is_it = |current: Current| current.slot == slot && current.waits == Waits::Quiet(endpoint);
        self.current.is_some_and(is_it)
    }

    /// Returns the address of the next command.
    #[cfg(test)]
    pub(super) const fn next(&self) -> u64 {
        self.at.at
    }
}

impl Controller {
    /// Handles a doorbell of the command ring.
    pub(super) fn ring_commands(&mut self, now: Instant) {
        self.commands.is_running = true;
        if self.commands.current.is_none() && self.commands.step_at.is_none() {
            let attachment = self.model.attachment;
            self.commands.step_at = Some(now + attachment.register_write + attachment.memory_read);
        }
    }

    /// Handles a write to the command ring control register: stop or abort.
    pub(super) fn control_commands(
        &mut self,
        now: Instant,
        _: &mut impl GuestMemory,
        control: CommandRingControl,
    ) {
        if !self.commands.is_running || self.model.misbehaviour.ignores_abort {
            return;
        }
        match self.commands.current {
            Some(Current { pointer, slot, .. }) if control.abort => {
                self.commands.current = None;
                self.answer(now, pointer, (Code::CommandAborted, slot));
                self.stop_commands(now);
            }
            None if control.abort || control.stop => self.stop_commands(now),
            _ => self.commands.stops |= control.stop,
        }
    }

    fn stop_commands(&mut self, now: Instant) {
        let pointer = self.commands.at.at;
        (self.commands.is_running, self.commands.step_at, self.commands.stops) = (false, None, false);
        let code = Code::CommandRingStopped;
        self.post_later(now, EventTrb::CommandCompletion { pointer, parameter: 0, code, slot: 0 });
    }

    fn answer(&mut self, at: Instant, pointer: u64, (code, slot): (Code, u8)) {
        self.post_later(at, EventTrb::CommandCompletion { pointer, parameter: 0, code, slot });
    }

    /// Completes a command and schedules the next fetch.
    fn finish(&mut self, at: Instant, pointer: u64, answer: (Code, u8)) {
        self.commands.current = None;
        self.answer(at, pointer, answer);
        if self.commands.stops {
            self.stop_commands(at);
        } else {
            self.commands.step_at = Some(at);
        }
    }

    /// Fetches and executes the next command.
    pub(super) fn step_commands(&mut self, now: Instant, memory: &mut impl GuestMemory) -> Result<(), Fault> {
        self.commands.step_at = None;
        if self.events.ring.is_full() {
            // Continues with the next doorbell or when there is room.
            return Ok(());
        }
        for _ in 0..LINKS_MAX {
            let Cursor { at, cycle } = self.commands.at;
            let trb = memory.read_trb(at)?;
            if cycle_of(&trb) != cycle {
                return Ok(());
            }
            // What was written before the command was written counts before it.
            self.take_slot_doorbells(now, memory);
            // Later TRBs are read during its execution.
            self.dma.read_trbs(now, &self.model, 1);
            if let Ok((TransferTrb::Link { segment, toggle_cycle, .. }, _)) = TransferTrb::decode(&trb) {
                self.commands.at = Cursor { at: segment, cycle: cycle ^ toggle_cycle };
                continue;
            }
            self.commands.at.at += TRB_BYTES as u64;
            let kind = trb_type_of(&trb);
            let scripted = self.script.commands.iter().position(|(scripted, _)| *scripted == kind);
            let scripted = scripted.and_then(|at| self.script.commands.remove(at));
            if let Ok((command, _)) = CommandTrb::decode(&trb) {
                self.events.notes.command(now, at, command);
            }
            let did = match (CommandTrb::decode(&trb), scripted) {
                (Ok((command, _)), Some((_, code))) => Ok((code, command.slot())),
                (Ok((command, _)), None) => self.carry_out(now, memory, command)?,
                (Err(_), _) => Ok((Code::TrbError, 0)),
            };
            let unanswered = self.model.misbehaviour.unanswered == Some(kind);
            match did {
                Ok((_, slot)) if unanswered => self.wait(at, slot, Waits::Never),
                Ok(answer) => self.finish(now + self.model.command, at, answer),
                Err(Pending(waits)) => {
                    let slot = CommandTrb::decode(&trb).map_or(0, |(command, _)| command.slot());
                    self.wait(at, slot, waits);
                }
            }
            return Ok(());
        }
        Ok(())
    }

    const fn wait(&mut self, pointer: u64, slot: u8, waits: Waits) {
        self.commands.current = Some(Current { pointer, slot, waits });
    }

    fn carry_out(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        command: CommandTrb,
    ) -> Result<Did, Fault> {
        let number = command.slot();
        let stage = self.slots.get(usize::from(number)).map_or(SlotStage::Disabled, |slot| slot.stage);
        let code = match command {
            CommandTrb::NoOp => Code::Success,
            CommandTrb::EnableSlot { .. } => return Ok(Ok(self.enable_slot())),
            _ if number == 0 || stage == SlotStage::Disabled => Code::SlotNotEnabled,
            CommandTrb::DisableSlot { slot } => {
                self.disable(slot);
                Code::Success
            }
            CommandTrb::AddressDevice { slot, input, block_set_address } => {
                return self.address(now, memory, (slot, input, block_set_address));
            }
            CommandTrb::ConfigureEndpoint { slot, deconfigure: true, .. } => {
                self.deconfigure(memory, slot)?
            }
            CommandTrb::ConfigureEndpoint { slot, input, .. } => self.configure(memory, slot, input)?,
            CommandTrb::EvaluateContext { slot, input } => self.evaluate(memory, slot, input)?,
            CommandTrb::StopEndpoint { slot, endpoint, .. } => {
                return self.stop_endpoint(now, memory, slot, endpoint);
            }
            CommandTrb::ResetEndpoint { slot, endpoint, preserve_state } => {
                self.reset_endpoint(memory, (slot, endpoint), preserve_state)?
            }
            CommandTrb::SetTrDequeuePointer { slot, endpoint, dequeue: at, cycle, stream } => {
                self.set_dequeue(memory, (slot, endpoint), Cursor { at, cycle }, stream)?
            }
            CommandTrb::ResetDevice { slot } => self.reset_device(memory, slot)?,
        };
        Ok(Ok((code, number)))
    }

    fn enable_slot(&mut self) -> (Code, u8) {
        let enabled = usize::from(self.registers.configure.slots.min(self.model.slots));
        let free = (1..=enabled).find(|number| self.slots[*number].stage == SlotStage::Disabled);
        let Some(number) = free else { return (Code::NoSlotsAvailable, 0) };
        self.slots[number] = Slot { stage: SlotStage::Enabled, ..Slot::default() };
        (Code::Success, number as u8)
    }

    /// Disables a slot and removes its endpoints.
    pub(super) fn disable(&mut self, number: u8) {
        let slot = core::mem::take(&mut self.slots[usize::from(number)]);
        for endpoint in slot.endpoints.into_iter().flatten() {
            self.remove_from_link(slot.path, &endpoint);
        }
        self.fetches.retain(|fetch| fetch.to.slot != number);
    }

    pub(super) fn remove_from_link(&mut self, path: DevicePath, endpoint: &Endpoint) {
        if let Some(address) = endpoint.address().filter(|_| endpoint.is_on_link) {
            self.outputs.push_back(Output::Link(path, LinkAct::Remove(address)));
        }
    }

    /// Sends SET_ADDRESS; the command waits for the answer.
    pub(super) fn ask_address(&mut self, slot: u8, input: u64) -> Did {
        let setup = SetupPacket {
            direction: Direction::Out,
            kind: RequestKind::Standard,
            recipient: Recipient::Device,
            request: StandardRequest::SetAddress.into(),
            value: slot.into(),
            index: 0,
            length: 0,
        };
        let path = self.slots[usize::from(slot)].path;
        let request = ControlRequest { slot, number: Self::ADDRESS_REQUEST, setup, data_out: Vec::new() };
        self.outputs.push_back(Output::Control(path, request));
        Err(Pending(Waits::Address(input)))
    }

    /// Request number of SET_ADDRESS.
    pub(super) const ADDRESS_REQUEST: u32 = u32::MAX;

    /// Handles the answer to SET_ADDRESS.
    pub(super) fn addressed(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        number: u8,
        code: Code,
    ) -> Result<(), Fault> {
        let Some(Current { pointer, slot, waits: Waits::Address(input) }) = self.commands.current else {
            return Ok(());
        };
        if slot != number {
            return Ok(());
        }
        if code == Code::Success {
            self.take_address(memory, slot, input, Some(slot))?;
        }
        self.finish(now + self.model.command, pointer, (code, slot));
        Ok(())
    }

    fn stop_endpoint(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        number: u8,
        id: EndpointId,
    ) -> Result<Did, Fault> {
        let slot = &self.slots[usize::from(number)];
        let path = slot.path;
        let Some(endpoint) = slot.endpoint(id) else { return Ok(Ok((Code::EndpointNotEnabled, number))) };
        // To the driver one that may have been written runs already.
        if endpoint.state() != EndpointState::Running && !endpoint.perhaps_restarted {
            return Ok(Ok((Code::ContextStateError, number)));
        }
        let fault = self.faults.fire(ControllerFault::of_stop);
        if fault == Some(StopFault::LoseCompletion) {
            return Ok(Err(Pending(Waits::Never)));
        }
        self.script.loses_stopped = fault == Some(StopFault::LoseStopped);
        let is_moving = endpoint.is_on_link && endpoint.rings.iter().any(|ring| ring.on_link > 0);
        let Some(address) = endpoint.address().filter(|_| is_moving) else {
            self.stopped(now, memory, (number, id))?;
            return Ok(Ok((Code::Success, number)));
        };
        self.outputs.push_back(Output::Link(path, LinkAct::Stop(address)));
        if self.model.misbehaviour.answers_stop_early || fault == Some(StopFault::LateStopped) {
            self.set_state(memory, (number, id), EndpointState::Stopped)?;
            return Ok(Ok((Code::Success, number)));
        }
        Ok(Err(Pending(Waits::Quiet(id))))
    }

    /// Completes Stop Endpoint when the link is quiet.
    pub(super) fn settle_stop(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        path: DevicePath,
        address: EndpointAddress,
    ) -> Result<(), Fault> {
        let id = EndpointId::of(address);
        let waiting = self.commands.current.filter(|current| current.waits == Waits::Quiet(id));
        let found = waiting
            .map(|current| current.slot)
            .filter(|slot| self.slots.get(usize::from(*slot)).is_some_and(|slot| slot.path == path));
        if let (Some(Current { pointer, .. }), Some(slot)) = (waiting, found) {
            let state = self.slots[usize::from(slot)].endpoint(id).map(|endpoint| endpoint.state());
            // It halted before it came to rest.
            let code = match state {
                Some(EndpointState::Running) => {
                    self.stopped(now, memory, (slot, id))?;
                    Code::Success
                }
                _ => Code::ContextStateError,
            };
            self.finish(now + self.model.command, pointer, (code, slot));
        } else if let Some(slot) = slots_at(&self.slots, path.port).into_iter().find(|slot| {
            let slot = &self.slots[usize::from(*slot)];
            slot.path == path && slot.endpoint(id).is_some_and(|e| e.state() == EndpointState::Stopped)
        }) {
            self.stopped(now, memory, (slot, id))?;
        }
        Ok(())
    }

    fn reset_endpoint(
        &mut self,
        memory: &mut impl GuestMemory,
        (number, id): (u8, EndpointId),
        preserves: bool,
    ) -> Result<Code, Fault> {
        let slot = &mut self.slots[usize::from(number)];
        let path = slot.path;
        let Some(endpoint) = slot.endpoint_mut(id) else { return Ok(Code::EndpointNotEnabled) };
        if endpoint.state() != EndpointState::Halted {
            return Ok(Code::ContextStateError);
        }
        if let Some(address) = endpoint.address().filter(|_| endpoint.is_on_link) {
            let act = if preserves { LinkAct::Retry(address) } else { LinkAct::Reset(address) };
            self.outputs.push_back(Output::Link(path, act));
        }
        self.set_state(memory, (number, id), EndpointState::Stopped)?;
        if preserves && let Some(endpoint) = self.slots[usize::from(number)].endpoint_mut(id) {
            // A retry: the device has nothing to clear.
            endpoint.has_failed = false;
        }
        self.forget((number, id));
        Ok(Code::Success)
    }

    fn set_dequeue(
        &mut self,
        memory: &mut impl GuestMemory,
        (number, id): (u8, EndpointId),
        to: Cursor,
        stream: Option<StreamDequeue>,
    ) -> Result<Code, Fault> {
        let Some(endpoint) = self.slots[usize::from(number)].endpoint_mut(id) else {
            return Ok(Code::EndpointNotEnabled);
        };
        if !matches!(endpoint.state(), EndpointState::Stopped | EndpointState::Error) {
            return Ok(Code::ContextStateError);
        }
        let stream_id = stream.map_or(0, |stream| stream.id);
        match (endpoint.streams, stream) {
            (None, None) => {}
            (Some(streams), Some(stream)) if stream.context_type != streams.ring_type() => {
                return Ok(Code::InvalidStreamType);
            }
            (Some(_), Some(_)) => {}
            _ => return Ok(Code::TrbError),
        }
        if let Err(code) = endpoint.load(memory, stream_id)? {
            return Ok(code);
        }
        endpoint.rings[usize::from(stream_id)].restart(to);
        endpoint.enter(EndpointState::Stopped);
        self.save(memory, (number, id))?;
        Ok(Code::Success)
    }

    fn reset_device(&mut self, memory: &mut impl GuestMemory, number: u8) -> Result<Code, Fault> {
        let slot = &mut self.slots[usize::from(number)];
        if !matches!(slot.stage, SlotStage::Addressed | SlotStage::Configured) {
            return Ok(Code::ContextStateError);
        }
        slot.stage = SlotStage::Default;
        self.drop_endpoints(memory, number)?;
        self.set_state(memory, (number, EndpointId::CONTROL), EndpointState::Stopped)?;
        self.slots[usize::from(number)].update_context(memory, |slot| SlotContext {
            state: SlotState::Default,
            address: 0,
            context_entries: 1,
            ..slot
        })?;
        Ok(Code::Success)
    }

    /// Drops all endpoints except 0.
    pub(super) fn drop_endpoints(&mut self, memory: &mut impl GuestMemory, number: u8) -> Result<(), Fault> {
        for id in (2..=EndpointId::MAX).filter_map(EndpointId::new) {
            self.drop_endpoint(memory, (number, id))?;
        }
        Ok(())
    }

    pub(super) fn drop_endpoint(
        &mut self,
        memory: &mut impl GuestMemory,
        which: (u8, EndpointId),
    ) -> Result<(), Fault> {
        let slot = &mut self.slots[usize::from(which.0)];
        let path = slot.path;
        let Some(endpoint) = slot.remove(which.1) else { return Ok(()) };
        self.remove_from_link(path, &endpoint);
        self.fetches.retain(|fetch| (fetch.to.slot, fetch.to.endpoint) != which);
        self.write_state(memory, which, EndpointState::Disabled)
    }

    /// Handles the loss of the device at a port: a pending SET_ADDRESS fails.
    pub(super) fn lose_device(&mut self, now: Instant, port: u8) {
        for number in slots_at(&self.slots, port) {
            let waits = self.commands.current.filter(|current| current.slot == number);
            if let Some(Current { pointer, waits: Waits::Address(_), .. }) = waits {
                self.finish(now, pointer, (Code::UsbTransactionError, number));
            }
        }
    }

    // Context writes.

    pub(super) fn context_at(&self, (number, id): (u8, EndpointId)) -> u64 {
        self.slots[usize::from(number)].context + self.model.contexts.in_device(Some(id))
    }

    /// Sets the state of an endpoint, here and in its context.
    pub(super) fn set_state(
        &mut self,
        memory: &mut impl GuestMemory,
        which: (u8, EndpointId),
        state: EndpointState,
    ) -> Result<(), Fault> {
        if let Some(endpoint) = self.slots[usize::from(which.0)].endpoint_mut(which.1) {
            endpoint.enter(state);
        }
        self.write_state(memory, which, state)
    }

    fn write_state(
        &self,
        memory: &mut impl GuestMemory,
        which: (u8, EndpointId),
        state: EndpointState,
    ) -> Result<(), Fault> {
        let at = self.context_at(which);
        if let Ok(context) = EndpointContext::decode(&memory.read::<{ EndpointContext::LEN }>(at)?) {
            memory.write(at, &EndpointContext { state, ..context }.encode())?;
        }
        Ok(())
    }

    /// Writes the state and ring pointers of an endpoint to its context.
    pub(super) fn save(&self, memory: &mut impl GuestMemory, which: (u8, EndpointId)) -> Result<(), Fault> {
        let at = self.context_at(which);
        match self.slots[usize::from(which.0)].endpoint(which.1) {
            Some(endpoint) => endpoint.save(memory, at),
            None => Ok(()),
        }
    }
}
