//! A running controller: its rings, its devices, and the transfers given to them.
//!
//! Always true: a slot has at most one device; a doorbell is rung only for an endpoint that runs;
//! memory that the controller knows of stays until the controller has released it.

use super::command::{Commands, Purpose};
use crate::capabilities::Capabilities;
use crate::device::Device;
use crate::device::endpoint::State;
use crate::device::td::{TdRequest, TdSpec};
use crate::hardware::{DmaLayout, Hardware, Registers};
use crate::limit;
use crate::ring::{EventRing, TdSize};
use crate::types::{
    Answer, Config, ControlTransfer, Counters, Deadline, DeadlineReason, DeviceId, Location, Output, Refusal,
    RequestId, Transfer,
};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use bus::{Completion, Pipe, TransferId, TransferStatus};
use units::Instant;
use wire::usb::{RequestKind, StandardRequest};
use wire::xhci::{
    CommandRingControl, CommandTrb, Configure, ContextSize, ControllerFeatures, Doorbell, EndpointId,
    InterrupterManagement, InterrupterModeration, PageSize, PortStatus, UsbCommand, offset,
};

#[derive(Debug)]
pub(super) struct Live {
    pub(super) config: Config,
    pub(super) size: ContextSize,
    pub(super) td_size: TdSize,
    pub(super) operational: u32,
    pub(super) interrupter: u32,
    doorbells: u32,
    pub(super) ports: u8,
    pub(super) slots: u8,
    /// Device context base address array.
    contexts: u64,
    pieces: Vec<(u64, DmaLayout)>,
    pub(super) events: EventRing,
    pub(super) commands: Commands,
    /// By slot.
    pub(super) devices: Vec<Option<Box<Device>>>,
    pub(super) generation: u32,
    pub(super) attaching: Vec<(RequestId, Location)>,
    pub(super) port_resets: Vec<(u8, RequestId, Instant)>,
    /// Endpoints that wait for late events.
    pub(super) settling: Vec<(Instant, u8, EndpointId)>,
    /// Events were left for another call.
    pub(super) more_events: Option<Instant>,
    pub(super) outputs: VecDeque<Output>,
    ports_changed: BTreeMap<u8, PortStatus>,
    pub(super) counters: Counters,
}

impl Live {
    /// Gives a controller that was reset its memory, and starts it. `None` if there is no memory.
    pub(super) fn set_up(
        hw: &mut impl Hardware,
        capabilities: &Capabilities,
        config: Config,
    ) -> Option<Self> {
        let registers = capabilities.registers;
        let slots = registers.slots.min(limit::DEVICES_MAX);
        let operational = u32::from(registers.operational_offset);
        let page_size = PageSize::from_register(hw.read_register(operational + offset::PAGE_SIZE));
        let page = page_size.bytes().and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(4096);
        let mut pieces = Vec::new();
        let segments = registers.event_segments_max().min(limit::EVENT_RING_SEGMENTS.into()) as u16;
        let contexts = allocate_contexts(hw, &mut pieces, slots, registers.scratchpads, page);
        let trbs = config.event_ring_trbs.clamp(limit::EVENT_RING_TRBS_MIN, limit::EVENT_RING_TRBS_MAX);
        let events = EventRing::allocate(hw, segments, trbs);
        let commands = Commands::allocate(hw, config.quirks.chained_links);
        let (contexts, events, commands) = match (contexts, events, commands) {
            (Some(contexts), Some(events), Some(commands)) => (contexts, events, commands),
            (_, events, commands) => {
                events.into_iter().for_each(|mut events| events.release(hw));
                commands.into_iter().for_each(|mut commands| commands.release(hw));
                pieces.into_iter().for_each(|(at, layout)| hw.release(at, layout));
                return None;
            }
        };
        let mut live = Self {
            config,
            size: registers.context_size(),
            td_size: if registers.version < 0x100 { TdSize::Kibibytes } else { TdSize::Packets },
            operational,
            interrupter: registers.runtime_offset + offset::interrupter(0),
            doorbells: registers.doorbell_offset,
            ports: registers.ports,
            slots,
            contexts,
            pieces,
            events,
            commands,
            devices: (0..=slots).map(|_| None).collect(),
            generation: 0,
            attaching: Vec::new(),
            port_resets: Vec::new(),
            settling: Vec::new(),
            more_events: None,
            outputs: VecDeque::new(),
            ports_changed: BTreeMap::new(),
            counters: Counters::default(),
        };
        live.write_registers(hw);
        live.look_at_ports(hw, registers.features.has(ControllerFeatures::PORT_POWER));
        Some(live)
    }

    fn write_registers(&mut self, hw: &mut impl Hardware) {
        let (operational, interrupter) = (self.operational, self.interrupter);
        let configure = Configure { slots: self.slots, ..Configure::default() };
        hw.write_register(operational + offset::CONFIGURE, configure.encode());
        hw.write_register64(operational + offset::DEVICE_CONTEXT_ARRAY, self.contexts);
        let ring = CommandRingControl { ring: self.commands.start(), cycle: true, ..Default::default() };
        hw.write_register64(operational + offset::COMMAND_RING_CONTROL, ring.encode());
        let (table, segments) = self.events.table();
        hw.write_register(interrupter + offset::EVENT_RING_SEGMENTS, segments);
        self.acknowledge_events(hw);
        hw.write_register64(interrupter + offset::EVENT_RING_TABLE, table);
        let moderation =
            InterrupterModeration { interval_250ns: self.config.moderation_250ns, counter_250ns: 0 };
        hw.write_register(interrupter + offset::INTERRUPTER_MODERATION, moderation.encode());
        self.acknowledge_interrupt(hw);
        let run =
            UsbCommand::RUN.with(UsbCommand::INTERRUPTER_ENABLE).with(UsbCommand::HOST_SYSTEM_ERROR_ENABLE);
        hw.write_register(operational + offset::USB_COMMAND, run.into());
    }

    fn look_at_ports(&mut self, hw: &mut impl Hardware, has_power: bool) {
        for port in 1..=self.ports {
            let at = self.operational + offset::port_status(port);
            let status = PortStatus::from(hw.read_register(at));
            if has_power && !status.is_powered() {
                hw.write_register(at, status.powering().into());
            }
            if status.is_connected() {
                self.report_port(port, status);
            }
        }
    }

    pub(super) fn acknowledge_events(&self, hw: &mut impl Hardware) {
        let dequeue = self.events.acknowledgement().encode();
        hw.write_register64(self.interrupter + offset::EVENT_RING_DEQUEUE, dequeue);
    }

    pub(super) fn acknowledge_interrupt(&self, hw: &mut impl Registers) {
        let management = InterrupterManagement { pending: true, enabled: true };
        hw.write_register(self.interrupter + offset::INTERRUPTER_MANAGEMENT, management.encode());
    }

    /// Gives all memory back; the controller must have been reset.
    pub(super) fn release(&mut self, hw: &mut impl Hardware) {
        self.devices.iter_mut().flatten().for_each(|device| device.release(hw));
        self.devices.clear();
        self.events.release(hw);
        self.commands.release(hw);
        self.pieces.drain(..).for_each(|(at, layout)| hw.release(at, layout));
    }

    /// Ends everything that is in progress.
    pub(super) fn end_all(&mut self) {
        for slot in 1..=self.slots {
            let Some(device) = self.devices.get_mut(usize::from(slot)).and_then(Option::as_mut) else {
                continue;
            };
            let (id, ended) = (device.id, device.end_all(TransferStatus::Disconnected));
            let waiting = [device.request.take(), device.left_for.take()];
            self.emit(id, ended);
            waiting.into_iter().flatten().for_each(|request| self.answer(request, Answer::Gone));
        }
        let attaching = core::mem::take(&mut self.attaching);
        attaching.into_iter().for_each(|(request, _)| self.answer(request, Answer::Gone));
        let resets = core::mem::take(&mut self.port_resets);
        resets.into_iter().for_each(|(_, request, _)| self.answer(request, Answer::Gone));
    }

    pub(super) fn submit(&mut self, hw: &mut impl Hardware, transfer: &Transfer) -> Result<(), Refusal> {
        let Transfer { id, device, pipe, buffer, length } = *transfer;
        if length > limit::TRANSFER_BYTES_MAX || pipe.endpoint.number() == 0 {
            return Err(Refusal::NotAllowed);
        }
        let spec = TdSpec::Bulk { event_data: self.config.event_data };
        self.enqueue(hw, device, pipe, TdRequest { id, spec, buffer, length })
    }

    pub(super) fn submit_control(
        &mut self,
        hw: &mut impl Hardware,
        transfer: &ControlTransfer,
    ) -> Result<(), Refusal> {
        let ControlTransfer { id, device, setup, buffer } = *transfer;
        let is_set_address =
            setup.kind == RequestKind::Standard && setup.standard() == Some(StandardRequest::SetAddress);
        if is_set_address {
            return Err(Refusal::NotAllowed);
        }
        let pipe = Pipe::plain(bus::EndpointAddress::at::<0>(setup.direction));
        self.enqueue(
            hw,
            device,
            pipe,
            TdRequest { id, spec: TdSpec::Control { setup }, buffer, length: setup.length.into() },
        )
    }

    fn enqueue(
        &mut self,
        hw: &mut impl Hardware,
        device: DeviceId,
        pipe: Pipe,
        request: TdRequest,
    ) -> Result<(), Refusal> {
        if self.outputs.len() >= limit::OUTPUTS_MAX {
            return Err(Refusal::Full);
        }
        let found = self.device(device).ok_or(Refusal::Gone)?;
        if found.is_readdressing {
            return Err(Refusal::Busy);
        }
        let endpoint_id = EndpointId::of(pipe.endpoint);
        let endpoint = found.endpoint(endpoint_id).ok_or(Refusal::NoSuchPipe)?;
        if endpoint.state == State::Leaving {
            return Err(Refusal::Busy);
        }
        endpoint.submit(hw, pipe.stream, request)?;
        if endpoint.is_running() {
            self.ring(hw, device.slot, endpoint_id, pipe.stream.map_or(0, |stream| stream.get()));
        }
        Ok(())
    }

    pub(super) fn cancel(
        &mut self,
        hw: &mut impl Hardware,
        now: Instant,
        device: DeviceId,
        pipe: Pipe,
        id: TransferId,
    ) {
        let endpoint_id = EndpointId::of(pipe.endpoint);
        let Some(endpoint) = self.device(device).and_then(|device| device.endpoint(endpoint_id)) else {
            return;
        };
        if endpoint.cancel(pipe.stream, id) && endpoint.is_free() {
            self.cancel_tds(hw, now, (device.slot, endpoint_id));
        }
    }

    /// A device by its id, if it is there and stays.
    pub(super) fn device(&mut self, id: DeviceId) -> Option<&mut Device> {
        let device = self.devices.get_mut(usize::from(id.slot))?.as_deref_mut()?;
        (device.id == id && !device.is_leaving).then_some(device)
    }

    /// A device by its slot.
    pub(super) fn in_slot(&mut self, slot: u8) -> Option<&mut Device> {
        self.devices.get_mut(usize::from(slot))?.as_deref_mut()
    }

    pub(super) fn ring(&self, hw: &mut impl Registers, slot: u8, endpoint: EndpointId, stream: u16) {
        let doorbell = Doorbell { target: Some(endpoint), stream };
        hw.write_register(self.doorbells + offset::doorbell(slot), doorbell.encode());
    }

    pub(super) fn ring_command(&self, hw: &mut impl Registers) {
        hw.write_register(self.doorbells + offset::doorbell(0), Doorbell::COMMAND.encode());
    }

    pub(super) fn command(
        &mut self,
        hw: &mut impl Hardware,
        now: Instant,
        command: CommandTrb,
        purpose: Purpose,
    ) {
        if self.commands.submit(hw, now, command, purpose) {
            self.ring_command(hw);
        }
    }

    /// Writes where the controller finds the contexts of a slot; 0 is nowhere.
    pub(super) fn point_slot(&self, hw: &mut impl Hardware, slot: u8, contexts: u64) {
        hw.write_bytes(self.contexts + 8 * u64::from(slot), &contexts.to_le_bytes());
    }

    pub(super) fn emit(&mut self, device: DeviceId, completions: impl IntoIterator<Item = Completion>) {
        for completion in completions {
            self.outputs.push_back(Output::Completed(device, completion));
        }
    }

    pub(super) fn answer(&mut self, request: RequestId, answer: Answer) {
        self.outputs.push_back(Output::Answered(request, answer));
    }

    /// A port is reported once until it is polled, however often it changes.
    pub(super) fn report_port(&mut self, port: u8, status: PortStatus) {
        self.ports_changed.insert(port, status);
    }

    #[inline]
    pub(super) fn poll_output(&mut self) -> Option<Output> {
        if self.outputs.is_empty() {
            return if self.ports_changed.is_empty() { None } else { self.poll_port() };
        }
        self.outputs.pop_front()
    }

    #[cold]
    fn poll_port(&mut self) -> Option<Output> {
        let (port, status) = self.ports_changed.pop_first()?;
        Some(Output::PortChanged { port, status })
    }

    pub(super) fn poll_timeout(&self) -> Option<Deadline> {
        let reason =
            if self.commands.is_aborting() { DeadlineReason::CommandAbort } else { DeadlineReason::Command };
        let command = self.commands.deadline().map(|at| Deadline { at, reason });
        let more = self.more_events.map(|at| Deadline { at, reason: DeadlineReason::MoreEvents });
        let first = command.into_iter().chain(more).min_by_key(|deadline| deadline.at);
        if self.settling.is_empty() && self.port_resets.is_empty() {
            return first;
        }
        let settling =
            self.settling.iter().map(|(at, ..)| Deadline { at: *at, reason: DeadlineReason::StopSettles });
        let resets = self
            .port_resets
            .iter()
            .map(|(port, _, at)| Deadline { at: *at, reason: DeadlineReason::PortReset(*port) });
        first.into_iter().chain(settling).chain(resets).min_by_key(|deadline| deadline.at)
    }
}

/// The array of contexts, and the scratchpads that its first entry leads to (clauses 4.20 and 6.1).
fn allocate_contexts(
    hw: &mut impl Hardware,
    pieces: &mut Vec<(u64, DmaLayout)>,
    slots: u8,
    scratchpads: u16,
    page: u32,
) -> Option<u64> {
    let mut allocate = |hw: &mut _, layout: DmaLayout| {
        let at = crate::hardware::DmaMemory::allocate(hw, layout)?;
        pieces.push((at, layout));
        Some(at)
    };
    let array = |entries: u32| {
        let bytes = 8 * entries;
        DmaLayout { bytes, align: 64, boundary: bytes.next_power_of_two().max(page) }
    };
    let contexts = allocate(hw, array(u32::from(slots) + 1))?;
    if scratchpads > 0 {
        let list = allocate(hw, array(scratchpads.into()))?;
        for number in 0..u64::from(scratchpads) {
            let pad = allocate(hw, DmaLayout { bytes: page, align: page, boundary: page })?;
            hw.write_bytes(list + 8 * number, &pad.to_le_bytes());
        }
        hw.write_bytes(contexts, &list.to_le_bytes());
    }
    Some(contexts)
}
