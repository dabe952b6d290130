//! Commands of slots and endpoints: the states in which they are allowed, and their effects (xHCI 1.2 clause 4.6).
//!
//! Those that read input contexts are in [`super::configure`]. Invariant: a command in a wrong state changes nothing.

use super::controller_fault::{ControllerFault, StopFault};
use super::memory::{Fault, GuestMemory};
use super::output::{ControlId, ControlRequest, LinkAct, Output};
use super::ports::Ports;
use super::ring::Cursor;
use super::slot::{EndpointName, Slot, SlotStage};
use super::transfer::Transfers;
use alloc::vec::Vec;
use units::Instant;
use wire::usb::{Direction, Recipient, RequestKind, SetupPacket, StandardRequest};
use wire::xhci::{
    CommandTrb, CompletionCode as Code, EndpointId, EndpointState, SlotContext, SlotState, StreamDequeue,
};

/// The state that commands of slots and endpoints read and change.
pub(super) struct SlotCommands<'a> {
    pub(super) transfers: &'a mut Transfers,
    pub(super) ports: &'a Ports,
    /// Where the array of device contexts is (DCBAAP).
    pub(super) contexts: u64,
    /// The slots that the driver has enabled (CONFIG).
    pub(super) enabled: u8,
}

/// The completion of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Completion {
    pub(super) code: Code,
    pub(super) slot: u8,
}

/// The result of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Executed {
    Done(Completion),
    Waits(Waits),
}

/// The event that a command waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    /// The link to become quiet.
    Quiet(EndpointId),
    /// The device's answer to SET_ADDRESS.
    Address(u64),
    /// Nothing: it never completes.
    Never,
}

impl From<Completion> for Executed {
    fn from(completion: Completion) -> Self {
        Self::Done(completion)
    }
}

impl SlotCommands<'_> {
    /// Request number of SET_ADDRESS.
    pub(super) const ADDRESS_REQUEST: u32 = u32::MAX;

    /// Executes a command.
    pub(super) fn execute(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        command: CommandTrb,
    ) -> Result<Executed, Fault> {
        let number = command.slot();
        let stage = self.transfers.slots.get(number).map_or(SlotStage::Disabled, |slot| slot.stage);
        let code = match command {
            CommandTrb::NoOp => Code::Success,
            CommandTrb::EnableSlot { .. } => return Ok(self.enable_slot().into()),
            _ if number == 0 || stage == SlotStage::Disabled => Code::SlotNotEnabled,
            CommandTrb::DisableSlot { slot } => {
                self.transfers.disable(slot);
                Code::Success
            }
            CommandTrb::AddressDevice { slot, input, block_set_address } => {
                return self.address(memory, slot, input, block_set_address);
            }
            CommandTrb::ConfigureEndpoint { slot, deconfigure: true, .. } => {
                self.deconfigure(memory, slot)?
            }
            CommandTrb::ConfigureEndpoint { slot, input, .. } => self.configure(memory, slot, input)?,
            CommandTrb::EvaluateContext { slot, input } => self.evaluate(memory, slot, input)?,
            CommandTrb::StopEndpoint { slot, endpoint, .. } => {
                return self.stop_endpoint(now, memory, EndpointName { slot, id: endpoint });
            }
            CommandTrb::ResetEndpoint { slot, endpoint, preserve_state } => {
                self.reset_endpoint(memory, EndpointName { slot, id: endpoint }, preserve_state)?
            }
            CommandTrb::SetTrDequeuePointer { slot, endpoint, dequeue: at, cycle, stream } => {
                self.set_dequeue(memory, EndpointName { slot, id: endpoint }, Cursor { at, cycle }, stream)?
            }
            CommandTrb::ResetDevice { slot } => self.reset_device(memory, slot)?,
        };
        Ok(Completion { code, slot: number }.into())
    }

    fn enable_slot(&mut self) -> Completion {
        let Transfers { slots, model, .. } = &mut *self.transfers;
        let free = (1..=self.enabled.min(model.slots)).find(|slot| slots[*slot].stage == SlotStage::Disabled);
        let Some(slot) = free else { return Completion { code: Code::NoSlotsAvailable, slot: 0 } };
        slots[slot] = Slot { stage: SlotStage::Enabled, ..Slot::default() };
        Completion { code: Code::Success, slot }
    }

    /// Sends SET_ADDRESS; the command waits for the answer.
    pub(super) fn ask_address(&mut self, slot: u8, input: u64) -> Executed {
        let setup = SetupPacket {
            direction: Direction::Out,
            kind: RequestKind::Standard,
            recipient: Recipient::Device,
            request: StandardRequest::SetAddress.into(),
            value: slot.into(),
            index: 0,
            length: 0,
        };
        let path = self.transfers.slots[slot].path;
        let id = ControlId { slot, number: Self::ADDRESS_REQUEST };
        let request = ControlRequest { id, setup, data_out: Vec::new() };
        self.transfers.outputs.push_back(Output::Control(path, request));
        Executed::Waits(Waits::Address(input))
    }

    fn stop_endpoint(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        name: EndpointName,
    ) -> Result<Executed, Fault> {
        let transfers = &mut *self.transfers;
        let done = |code| Ok(Completion { code, slot: name.slot }.into());
        let path = transfers.slots[name.slot].path;
        let Some(endpoint) = transfers.slots.endpoint(name) else { return done(Code::EndpointNotEnabled) };
        // To the driver one that may have been written runs already.
        if endpoint.state() != EndpointState::Running && !endpoint.perhaps_restarted {
            return done(Code::ContextStateError);
        }
        let fault = transfers.faults.fire(ControllerFault::of_stop);
        if fault == Some(StopFault::LoseCompletion) {
            return Ok(Executed::Waits(Waits::Never));
        }
        transfers.loses_stopped = fault == Some(StopFault::LoseStopped);
        let is_moving = endpoint.is_on_link && endpoint.has_transfers();
        let Some(address) = endpoint.address().filter(|_| is_moving) else {
            transfers.stopped(now, memory, name)?;
            return done(Code::Success);
        };
        transfers.outputs.push_back(Output::Link(path, LinkAct::Stop(address)));
        if transfers.model.misbehaviour.answers_stop_early || fault == Some(StopFault::LateStopped) {
            transfers.slots.set_state(memory, name, EndpointState::Stopped)?;
            return done(Code::Success);
        }
        Ok(Executed::Waits(Waits::Quiet(name.id)))
    }

    fn reset_endpoint(
        &mut self,
        memory: &mut impl GuestMemory,
        name: EndpointName,
        preserves: bool,
    ) -> Result<Code, Fault> {
        let Transfers { slots, outputs, .. } = &mut *self.transfers;
        let path = slots[name.slot].path;
        let Some(endpoint) = slots.endpoint_mut(name) else { return Ok(Code::EndpointNotEnabled) };
        if endpoint.state() != EndpointState::Halted {
            return Ok(Code::ContextStateError);
        }
        if let Some(address) = endpoint.address().filter(|_| endpoint.is_on_link) {
            let act = if preserves { LinkAct::Retry(address) } else { LinkAct::Reset(address) };
            outputs.push_back(Output::Link(path, act));
        }
        slots.set_state(memory, name, EndpointState::Stopped)?;
        if preserves && let Some(endpoint) = slots.endpoint_mut(name) {
            // A retry: the device has nothing to clear.
            endpoint.has_failed = false;
        }
        self.transfers.forget(name);
        Ok(Code::Success)
    }

    fn set_dequeue(
        &mut self,
        memory: &mut impl GuestMemory,
        name: EndpointName,
        to: Cursor,
        stream: Option<StreamDequeue>,
    ) -> Result<Code, Fault> {
        let slots = &mut self.transfers.slots;
        let Some(endpoint) = slots.endpoint_mut(name) else { return Ok(Code::EndpointNotEnabled) };
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
        slots.save(memory, name)?;
        Ok(Code::Success)
    }

    fn reset_device(&mut self, memory: &mut impl GuestMemory, number: u8) -> Result<Code, Fault> {
        let slot = &mut self.transfers.slots[number];
        if !matches!(slot.stage, SlotStage::Addressed | SlotStage::Configured) {
            return Ok(Code::ContextStateError);
        }
        slot.stage = SlotStage::Default;
        self.drop_endpoints(memory, number)?;
        let slots = &mut self.transfers.slots;
        let control = EndpointName::control(number);
        slots.set_state(memory, control, EndpointState::Stopped)?;
        slots[number].update_context(memory, |slot| SlotContext {
            state: SlotState::Default,
            address: 0,
            context_entries: 1,
            ..slot
        })?;
        Ok(Code::Success)
    }

    /// Drops all endpoints except 0.
    pub(super) fn drop_endpoints(&mut self, memory: &mut impl GuestMemory, slot: u8) -> Result<(), Fault> {
        for id in (2..=EndpointId::MAX).filter_map(EndpointId::new) {
            self.drop_endpoint(memory, EndpointName { slot, id })?;
        }
        Ok(())
    }

    /// Drops an endpoint, if it is there.
    pub(super) fn drop_endpoint(
        &mut self,
        memory: &mut impl GuestMemory,
        name: EndpointName,
    ) -> Result<(), Fault> {
        let Transfers { slots, fetches, .. } = &mut *self.transfers;
        let slot = &mut slots[name.slot];
        let path = slot.path;
        let Some(endpoint) = slot.remove(name.id) else { return Ok(()) };
        fetches.drop_endpoint(name);
        self.transfers.remove_from_link(path, &endpoint);
        self.transfers.slots.write_state(memory, name, EndpointState::Disabled)
    }
}
