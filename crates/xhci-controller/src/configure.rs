//! Input contexts of slots and endpoints: validation and effect (xHCI 1.2 clauses 4.6.5 to 4.6.7,
//! 6.2.2, 6.2.3, 6.2.5).
//!
//! An invalid context ([`super::rules`]) is a Parameter Error, a wrong state a Context State Error,
//! too many endpoints a Resource Error; nothing changes then. Not modelled: bandwidth, exit
//! latencies, isochronous endpoints, interrupt OUT endpoints.

use super::memory::{Fault, GuestMemory};
use super::output::{DevicePath, LinkAct, Output};
use super::rules::{is_control_packet, is_control_right, is_endpoint_right, is_slot_right, translator};
use super::slot::{Endpoint, EndpointName, SlotStage};
use super::slot_command::{Completion, Executed, SlotCommands};
use super::transfer::Transfers;
use alloc::vec::Vec;
use bus::link;
use wire::xhci::{
    CompletionCode as Code, EndpointContext, EndpointId, EndpointState, InputControlContext, SlotContext,
    SlotState,
};

/// Alignment of a device context (table 6-1).
const CONTEXT_ALIGN: u64 = 64;

/// A decoded input context.
struct Input {
    at: u64,
    control: InputControlContext,
    slot: SlotContext,
}

impl SlotCommands<'_> {
    fn read_input(&self, memory: &impl GuestMemory, at: u64) -> Result<Option<Input>, Fault> {
        let control = InputControlContext::decode(&memory.read::<{ InputControlContext::LEN }>(at)?);
        let slot_at = at + self.transfers.model.contexts.in_input(None);
        let slot = SlotContext::decode(&memory.read::<{ SlotContext::LEN }>(slot_at)?);
        Ok(control.ok().zip(slot.ok()).map(|(control, slot)| Input { at, control, slot }))
    }

    fn read_endpoint(
        &self,
        memory: &impl GuestMemory,
        at: u64,
        id: EndpointId,
    ) -> Result<Option<EndpointContext>, Fault> {
        let at = at + self.transfers.model.contexts.in_input(Some(id));
        Ok(EndpointContext::decode(&memory.read::<{ EndpointContext::LEN }>(at)?).ok())
    }

    /// Address Device.
    pub(super) fn address(
        &mut self,
        memory: &mut impl GuestMemory,
        number: u8,
        input: u64,
        blocks: bool,
    ) -> Result<Executed, Fault> {
        let done = |code| Ok(Completion { code, slot: number }.into());
        let stage = self.transfers.slots[number].stage;
        if !(stage == SlotStage::Enabled || stage == SlotStage::Default && !blocks) {
            return done(Code::ContextStateError);
        }
        let Some(Input { at, control, slot }) = self.read_input(memory, input)? else {
            return done(Code::ParameterError);
        };
        let Some(endpoint) = self.read_endpoint(memory, at, EndpointId::CONTROL)? else {
            return done(Code::ParameterError);
        };
        let asked = InputControlContext::default().with_slot().with(EndpointId::CONTROL);
        let Some(status) = self.ports.status(slot.root_port) else { return done(Code::ParameterError) };
        if control != asked || !is_slot_right(&slot, status) || !is_control_right(&endpoint, slot.speed_id) {
            return done(Code::ParameterError);
        }
        let pointer_at = self.contexts + 8 * u64::from(number);
        let context = u64::from_le_bytes(memory.read::<8>(pointer_at)?);
        if context == 0 || !context.is_multiple_of(CONTEXT_ALIGN) {
            return done(Code::ParameterError);
        }
        if let Err(code) = translator(&self.transfers.slots, memory, &slot, status)? {
            return done(code);
        }
        if !status.is_enabled() {
            return done(Code::UsbTransactionError);
        }
        let place = &mut self.transfers.slots[number];
        place.context = context;
        place.path = DevicePath { port: slot.root_port, route: slot.route };
        if blocks {
            self.take_address(memory, number, input, None)?;
            return done(Code::Success);
        }
        Ok(self.ask_address(number, input))
    }

    /// Writes the contexts of an addressed device, or of one in the Default state.
    pub(super) fn take_address(
        &mut self,
        memory: &mut impl GuestMemory,
        number: u8,
        input: u64,
        address: Option<u8>,
    ) -> Result<(), Fault> {
        let Some(Input { at, slot, .. }) = self.read_input(memory, input)? else { return Ok(()) };
        let Some(endpoint) = self.read_endpoint(memory, at, EndpointId::CONTROL)? else { return Ok(()) };
        let (stage, state) = match address {
            None => (SlotStage::Default, SlotState::Default),
            Some(_) => (SlotStage::Addressed, SlotState::Addressed),
        };
        let place = &mut self.transfers.slots[number];
        place.stage = stage;
        let context = place.context;
        place.add(Endpoint::new(EndpointId::CONTROL, &endpoint));
        let slot = SlotContext { state, address: address.unwrap_or(0), ..slot };
        memory.write(context, &slot.encode())?;
        let running = EndpointContext { state: EndpointState::Running, ..endpoint };
        let at = self.transfers.slots.context_at(EndpointName::control(number));
        memory.write(at, &running.encode())
    }

    /// Configure Endpoint with Deconfigure set: drops all endpoints except 0.
    pub(super) fn deconfigure(&mut self, memory: &mut impl GuestMemory, number: u8) -> Result<Code, Fault> {
        let stage = self.transfers.slots[number].stage;
        if !matches!(stage, SlotStage::Addressed | SlotStage::Configured) {
            return Ok(Code::ContextStateError);
        }
        self.drop_endpoints(memory, number)?;
        self.transfers.slots[number].stage = SlotStage::Addressed;
        self.transfers.slots[number].update_context(memory, |slot| SlotContext {
            state: SlotState::Addressed,
            context_entries: 1,
            ..slot
        })?;
        Ok(Code::Success)
    }

    /// Configure Endpoint.
    pub(super) fn configure(
        &mut self,
        memory: &mut impl GuestMemory,
        number: u8,
        input: u64,
    ) -> Result<Code, Fault> {
        let stage = self.transfers.slots[number].stage;
        if !matches!(stage, SlotStage::Addressed | SlotStage::Configured) {
            return Ok(Code::ContextStateError);
        }
        let Some(Input { at, control, slot }) = self.read_input(memory, input)? else {
            return Ok(Code::ParameterError);
        };
        if !control.has_slot() || control.adds(EndpointId::CONTROL) {
            return Ok(Code::ParameterError);
        }
        let ids = || (2..=EndpointId::MAX).filter_map(EndpointId::new);
        let mut added = Vec::new();
        for id in ids().filter(|id| control.adds(*id)) {
            let Some(context) = self.read_endpoint(memory, at, id)? else { return Ok(Code::ParameterError) };
            let is_there = self.transfers.slots[number].endpoint(id).is_some();
            let is_free = !is_there || control.drops(id);
            if !is_free
                || id.get() > slot.context_entries
                || !is_endpoint_right(&self.transfers.model, &context, id, slot.speed_id)
            {
                return Ok(Code::ParameterError);
            }
            added.push((id, context));
        }
        let dropped = |id: EndpointId| control.drops(id) && !control.adds(id);
        let there = &self.transfers.slots[number];
        let stays = |id: &EndpointId| there.endpoint(*id).is_some() && !dropped(*id);
        // All remaining endpoints must be within Context Entries (clause 6.2.2).
        if ids().filter(stays).any(|id| id.get() > slot.context_entries) {
            return Ok(Code::ParameterError);
        }
        let stay = ids().filter(stays).count();
        if self.transfers.slots.bulk_endpoints(number) + stay + added.len()
            > usize::from(self.transfers.model.endpoints_max)
        {
            return Ok(Code::ResourceError);
        }
        for id in ids().filter(|id| control.drops(*id)) {
            self.drop_endpoint(memory, EndpointName { slot: number, id })?;
        }
        for (id, context) in added {
            self.install(memory, EndpointName { slot: number, id }, &context)?;
        }
        let has_endpoints = ids().any(|id| self.transfers.slots[number].endpoint(id).is_some());
        let (stage, state) = match has_endpoints {
            true => (SlotStage::Configured, SlotState::Configured),
            false => (SlotStage::Addressed, SlotState::Addressed),
        };
        self.transfers.slots[number].stage = stage;
        self.transfers.slots[number].update_context(memory, |old| SlotContext {
            state,
            address: old.address,
            ..slot
        })?;
        Ok(Code::Success)
    }

    /// Installs an endpoint.
    fn install(
        &mut self,
        memory: &mut impl GuestMemory,
        name: EndpointName,
        context: &EndpointContext,
    ) -> Result<(), Fault> {
        let mut endpoint = Endpoint::new(name.id, context);
        let Transfers { slots, outputs, .. } = &mut *self.transfers;
        let slot = &mut slots[name.slot];
        endpoint.is_on_link = true;
        if let Some(address) = endpoint.address().filter(|_| endpoint.is_on_link) {
            let on_link = link::Endpoint {
                address,
                packet_bytes: endpoint.packet_bytes,
                burst: endpoint.burst,
                streams: endpoint.stream_count(),
                interval: endpoint.interval,
            };
            outputs.push_back(Output::Link(slot.path, LinkAct::Install(on_link)));
        }
        slot.add(endpoint);
        let running = EndpointContext { state: EndpointState::Running, ..*context };
        memory.write(slots.context_at(name), &running.encode())
    }

    /// Evaluate Context: maximum packet size of endpoint 0 and exit latency of the slot.
    pub(super) fn evaluate(
        &mut self,
        memory: &mut impl GuestMemory,
        number: u8,
        input: u64,
    ) -> Result<Code, Fault> {
        if self.transfers.slots[number].stage < SlotStage::Default {
            return Ok(Code::ContextStateError);
        }
        let Some(Input { at, control, slot }) = self.read_input(memory, input)? else {
            return Ok(Code::ParameterError);
        };
        let mut ids = (1..=EndpointId::MAX).filter_map(EndpointId::new);
        // Only the slot and endpoint 0 are evaluated, and nothing is dropped (clause 6.2.3.3).
        let asks_for_more = ids.any(|id| control.drops(id) || control.adds(id) && id != EndpointId::CONTROL);
        if asks_for_more || control.has_slot() && slot.interrupter != 0 {
            return Ok(Code::ParameterError);
        }
        if control.adds(EndpointId::CONTROL) {
            let Some(context) = self.read_endpoint(memory, at, EndpointId::CONTROL)? else {
                return Ok(Code::ParameterError);
            };
            let packet = context.max_packet;
            let place = self.transfers.slots[number].context;
            let reported = SlotContext::decode(&memory.read::<{ SlotContext::LEN }>(place)?);
            if !reported.is_ok_and(|reported| is_control_packet(packet, reported.speed_id)) {
                return Ok(Code::ParameterError);
            }
            if let Some(endpoint) = self.transfers.slots[number].endpoint_mut(EndpointId::CONTROL) {
                endpoint.packet_bytes = packet;
            }
            let at = self.transfers.slots.context_at(EndpointName::control(number));
            if let Ok(old) = EndpointContext::decode(&memory.read::<{ EndpointContext::LEN }>(at)?) {
                memory.write(at, &EndpointContext { max_packet: packet, ..old }.encode())?;
            }
        }
        if control.has_slot() {
            self.transfers.slots[number].update_context(memory, |old| SlotContext {
                exit_latency_us: slot.exit_latency_us,
                interrupter: slot.interrupter,
                ..old
            })?;
        }
        Ok(Code::Success)
    }
}
