//! Requests: slots, addresses, endpoints, streams, hubs (xHCI 1.2 clauses 4.3, 4.5.2, 4.6.3 to
//! 4.6.7, 4.6.11).
//!
//! A request changes the driver's picture of a device only when the controller has agreed. Always
//! true: one request of a device is in flight at a time; what a refused change had allocated is
//! given back.

use super::command::Purpose;
use super::endpoints::EndpointSettings;
use super::live::Live;
use crate::capabilities::Capabilities;
use crate::device::endpoint::{Endpoint, State};
use crate::device::streams::StreamShape;
use crate::device::{Change, Device};
use crate::hardware::Hardware;
use crate::limit::{DEVICES_MAX, PORT_RESET_TIMEOUT};
use crate::ring::RingShape;
use crate::types::{Answer, DeviceId, EndpointPlan, HubShape, Location, Output, Refusal, Request, RequestId};
use alloc::boxed::Box;
use alloc::vec::Vec;
use bus::{Direction, EndpointAddress, TransferStatus};
use units::Instant;
use wire::usb::TransferType;
use wire::xhci::{
    CommandTrb, CompletionCode, EndpointContext, EndpointId, EndpointType, InputControlContext, LinkState,
    PortChanges, PortStatus, SlotContext, offset,
};

/// A request about a device.
#[derive(Clone, Copy, Debug)]
struct DeviceRequest {
    id: RequestId,
    device: DeviceId,
}

/// Endpoints to add and drop, and the answer once the controller has changed them.
#[derive(Debug)]
struct EndpointChange {
    /// `None` for one that could not be allocated.
    add: Vec<Option<Endpoint>>,
    drop: Vec<EndpointId>,
    answer: Answer,
}

impl Live {
    pub(super) fn request(
        &mut self,
        hw: &mut impl Hardware,
        now: Instant,
        capabilities: &Capabilities,
        id: RequestId,
        request: Request,
    ) -> Result<(), Refusal> {
        match request {
            Request::ResetPort { port } => self.reset_port(hw, now, capabilities, id, port),
            Request::SetLinkPower { port, power } => self.set_link_power(hw, capabilities, id, port, power),
            Request::Attach(location) => self.attach(hw, now, capabilities, id, location),
            Request::SetControlPacket(device, bytes) => self.set_control_packet(hw, now, id, device, bytes),
            Request::SetExitLatency(device, us) => self.set_exit_latency(hw, now, id, device, us),
            Request::Configure { device, add, drop } => {
                self.configure(hw, now, DeviceRequest { id, device }, &add, &drop)
            }
            Request::AllocateStreams { device, endpoints, wanted } => {
                if self.config.quirks.broken_streams {
                    return Err(Refusal::NoStreams);
                }
                let shape =
                    StreamShape::new(capabilities, self.config.quirks, wanted).ok_or(Refusal::NoStreams)?;
                self.change_streams(hw, now, DeviceRequest { id, device }, &endpoints, Some(shape))
            }
            Request::FreeStreams(device, endpoints) => {
                self.change_streams(hw, now, DeviceRequest { id, device }, &endpoints, None)
            }
            Request::ResetToggle(device, endpoint) => self.renew(hw, now, id, device, endpoint),
            Request::DescribeHub(device, hub) => self.describe_hub(hw, now, id, device, hub),
            Request::Readdress(device) => self.readdress(hw, now, id, device),
            Request::Detach(device) => {
                let slot = self.device(device).ok_or(Refusal::Gone)?.id.slot;
                self.leave(hw, now, slot);
                if let Some(found) = self.in_slot(slot) {
                    found.left_for = Some(id);
                }
                Ok(())
            }
        }
    }

    fn reset_port(
        &mut self,
        hw: &mut impl Hardware,
        now: Instant,
        capabilities: &Capabilities,
        id: RequestId,
        port: u8,
    ) -> Result<(), Refusal> {
        if port == 0 || port > self.ports {
            return Err(Refusal::NoSuchPipe);
        }
        if self.port_resets.iter().any(|(resetting, ..)| *resetting == port) {
            return Err(Refusal::Busy);
        }
        let at = self.operational + offset::port_status(port);
        let status = PortStatus::from(hw.read_register(at));
        let is_super = capabilities.protocol(port).is_some_and(|p| p.supported.revision.major >= 3);
        let is_stuck = matches!(status.link_state(), LinkState::Inactive | LinkState::Compliance);
        let reset = if is_super && is_stuck { status.warm_resetting() } else { status.resetting() };
        // The code that is attached after this is not who came before it.
        hw.write_register(at, status.acknowledging(PortChanges::CONNECT).into());
        hw.write_register(at, reset.into());
        self.port_resets.push((port, id, now + PORT_RESET_TIMEOUT));
        Ok(())
    }

    fn attach(
        &mut self,
        hw: &mut impl Hardware,
        now: Instant,
        capabilities: &Capabilities,
        id: RequestId,
        location: Location,
    ) -> Result<(), Refusal> {
        if location.root_port == 0 || location.root_port > self.ports {
            return Err(Refusal::NoSuchPipe);
        }
        if self.attaching.len() >= usize::from(DEVICES_MAX) {
            return Err(Refusal::Full);
        }
        if let Some(translator) = location.translator {
            self.device(translator.hub).ok_or(Refusal::Gone)?;
        }
        let slot_type = capabilities.protocol(location.root_port).map_or(0, |p| p.supported.slot_type);
        self.attaching.push((id, location));
        self.command(hw, now, CommandTrb::EnableSlot { slot_type }, Purpose::EnableSlot(id));
        Ok(())
    }

    fn set_control_packet(
        &mut self,
        hw: &mut impl Hardware,
        now: Instant,
        id: RequestId,
        device: DeviceId,
        bytes: u16,
    ) -> Result<(), Refusal> {
        let found = self.free_device(device)?;
        let Some(control) = found.endpoint(EndpointId::CONTROL) else { return Err(Refusal::Gone) };
        control.context.max_packet = bytes;
        let flags = InputControlContext::default().with(EndpointId::CONTROL);
        let endpoints = found.endpoints.iter().flatten().take(1).map(Box::as_ref);
        found.write_input(hw, flags, &found.slot, endpoints);
        found.request = Some(id);
        let command = CommandTrb::EvaluateContext { slot: device.slot, input: found.input };
        self.command(hw, now, command, Purpose::ControlPacket(device.slot, bytes));
        Ok(())
    }

    fn configure(
        &mut self,
        hw: &mut impl Hardware,
        now: Instant,
        request: DeviceRequest,
        add: &[EndpointPlan],
        drop: &[EndpointAddress],
    ) -> Result<(), Refusal> {
        let is_known = |plan: &EndpointPlan| {
            let address = plan.descriptor.address;
            let is_kind = match plan.descriptor.attributes.transfer_type() {
                TransferType::Bulk => true,
                TransferType::Interrupt => address.direction() == Direction::In,
                TransferType::Control | TransferType::Isochronous => false,
            };
            is_kind && address.number() != 0
        };
        if !add.iter().all(is_known) || drop.iter().any(|address| address.number() == 0) {
            return Err(Refusal::NotAllowed);
        }
        let device = request.device;
        let drop = drop.iter().copied().map(EndpointId::of).collect();
        let slot = self.free_device(device)?.slot;
        let settings = self.endpoint_settings();
        let made = add.iter().map(|plan| settings.data_endpoint(hw, slot, *plan)).collect();
        self.change(hw, now, request, EndpointChange { add: made, drop, answer: Answer::Done })
    }

    fn change_streams(
        &mut self,
        hw: &mut impl Hardware,
        now: Instant,
        request: DeviceRequest,
        endpoints: &[EndpointAddress],
        shape: Option<StreamShape>,
    ) -> Result<(), Refusal> {
        let ring = RingShape {
            segments: self.config.stream_ring_segments,
            trbs: self.config.stream_ring_trbs,
            chained_links: self.config.quirks.chained_links,
        };
        let device = request.device;
        let found = self.free_device(device)?;
        let slot = found.slot;
        let ids: Vec<_> = endpoints.iter().copied().map(EndpointId::of).collect();
        let mut plans = Vec::new();
        for id in &ids {
            let endpoint = found.endpoint(*id).ok_or(Refusal::NoSuchPipe)?;
            let plan = endpoint.plan.ok_or(Refusal::NoStreams)?;
            let has = plan.companion.map_or(0, |companion| companion.max_streams());
            if (endpoint.streams() > 0) == shape.is_some() || shape.is_some() && has == 0 {
                return Err(Refusal::NoStreams);
            }
            plans.push((plan, has));
        }
        // Stream ids end where the poorest endpoint's do.
        let most = plans.iter().map(|(_, has)| (*has).min(u32::from(u16::MAX)) as u16).min().unwrap_or(0);
        let shape = shape.map(|shape| StreamShape { streams: shape.streams.min(most), ..shape });
        let mut made = Vec::new();
        for (id, (plan, _)) in ids.iter().zip(plans) {
            made.push(match shape {
                None => self.endpoint_settings().data_endpoint(hw, slot, plan),
                Some(shape) => self
                    .device(device)
                    .and_then(|found| found.endpoint(*id))
                    .and_then(|plain| Endpoint::with_streams(hw, plain, shape, ring)),
            });
        }
        let answer = shape.map_or(Answer::Done, |shape| Answer::Streams(shape.streams));
        self.change(hw, now, request, EndpointChange { add: made, drop: ids, answer })
    }

    fn describe_hub(
        &mut self,
        hw: &mut impl Hardware,
        now: Instant,
        id: RequestId,
        device: DeviceId,
        hub: HubShape,
    ) -> Result<(), Refusal> {
        let found = self.free_device(device)?;
        let slot = SlotContext {
            is_hub: true,
            hub_ports: hub.ports,
            think_time: hub.think_time,
            multiple_translators: hub.multiple_translators,
            ..found.slot
        };
        found.change = Some(Change { slot, add: Vec::new(), drop: Vec::new(), answer: Answer::Done });
        self.send_change(hw, now, id, device);
        Ok(())
    }

    fn readdress(
        &mut self,
        hw: &mut impl Hardware,
        now: Instant,
        id: RequestId,
        device: DeviceId,
    ) -> Result<(), Refusal> {
        let found = self.free_device(device)?;
        (found.request, found.is_readdressing) = (Some(id), true);
        let slot = device.slot;
        self.command(hw, now, CommandTrb::ResetDevice { slot }, Purpose::ResetDevice(slot));
        Ok(())
    }

    fn endpoint_settings(&self) -> EndpointSettings<'_> {
        EndpointSettings { config: &self.config, td_size: self.td_size }
    }

    /// A device without a request in progress.
    pub(super) fn free_device(&mut self, id: DeviceId) -> Result<&mut Device, Refusal> {
        let device = self.device(id).ok_or(Refusal::Gone)?;
        if device.request.is_some() { Err(Refusal::Busy) } else { Ok(device) }
    }

    /// Asks the controller for a change of endpoints, if all that come could be made and those that
    /// go are idle.
    fn change(
        &mut self,
        hw: &mut impl Hardware,
        now: Instant,
        request: DeviceRequest,
        change: EndpointChange,
    ) -> Result<(), Refusal> {
        let DeviceRequest { id, device } = request;
        let EndpointChange { add: made, drop, answer } = change;
        let is_whole = made.iter().all(Option::is_some);
        let mut add: Vec<_> = made.into_iter().flatten().collect();
        let found = self.free_device(device)?;
        let is_idle = |found: &Device, id: &EndpointId| {
            let endpoint = found.endpoints.get(id.index()).and_then(Option::as_ref);
            endpoint.map(|endpoint| !endpoint.is_busy())
        };
        let comes_twice = |found: &Device, at: usize, new: &Endpoint| {
            let stays =
                found.endpoints.get(new.id.index()).is_some_and(Option::is_some) && !drop.contains(&new.id);
            stays || add.iter().take(at).any(|other| other.id == new.id)
        };
        let refusal = match () {
            () if drop.iter().any(|id| is_idle(found, id).is_none()) => Some(Refusal::NoSuchPipe),
            () if drop.iter().any(|id| is_idle(found, id) == Some(false)) => Some(Refusal::Busy),
            () if add.iter().enumerate().any(|(at, new)| comes_twice(found, at, new)) => {
                Some(Refusal::NotAllowed)
            }
            () => None,
        };
        if refusal.is_some() || !is_whole {
            add.iter_mut().for_each(|endpoint| endpoint.release(hw));
            if let Some(refusal) = refusal {
                return Err(refusal);
            }
            self.answer(id, Answer::NoMemory);
            return Ok(());
        }
        let context_entries = found.context_entries(&add, &drop);
        let slot = SlotContext { context_entries, ..found.slot };
        // What would be written to its rings now would go with them.
        found.set_states(&drop, State::Leaving);
        found.change = Some(Change { slot, add, drop, answer });
        self.send_change(hw, now, id, device);
        Ok(())
    }

    fn send_change(&mut self, hw: &mut impl Hardware, now: Instant, id: RequestId, device: DeviceId) {
        let Some(found) = self.device(device) else { return };
        let Some(change) = &found.change else { return };
        let mut flags = InputControlContext::default().with_slot();
        flags = change.drop.iter().fold(flags, |flags, id| flags.dropping(*id));
        flags = change.add.iter().fold(flags, |flags, endpoint| flags.with(endpoint.id));
        found.write_input(hw, flags, &change.slot, change.add.iter());
        found.request = Some(id);
        let (slot, input) = (device.slot, found.input);
        let command = CommandTrb::ConfigureEndpoint { slot, input, deconfigure: false };
        self.command(hw, now, command, Purpose::Configure(slot));
    }

    /// A device is given up: its slot goes back, and with that all its transfers end.
    pub(super) fn leave(&mut self, hw: &mut impl Hardware, now: Instant, slot: u8) {
        let Some(found) = self.in_slot(slot) else { return };
        if !core::mem::replace(&mut found.is_leaving, true) {
            self.command(hw, now, CommandTrb::DisableSlot { slot }, Purpose::DisableSlot(slot));
        }
    }

    /// A command was answered. `slot` is what the event says; only Enable Slot gives one.
    pub(super) fn handle_answer(
        &mut self,
        hw: &mut impl Hardware,
        now: Instant,
        purpose: Purpose,
        code: CompletionCode,
        slot: u8,
    ) {
        match purpose {
            Purpose::EnableSlot(request) => self.slot_given(hw, now, request, code, slot),
            Purpose::Address(slot) => {
                if let Some(device) = self.in_slot(slot) {
                    device.is_attached = code == CompletionCode::Success && !device.is_leaving;
                }
                self.finish(slot, code, |device| Answer::Attached(device.id));
                if code != CompletionCode::Success {
                    self.forget(hw, now, slot);
                }
            }
            Purpose::ControlPacket(slot, bytes) => {
                if let Some(endpoint) = self.in_slot(slot).and_then(|d| d.endpoint(EndpointId::CONTROL))
                    && code == CompletionCode::Success
                {
                    endpoint.writing.packet = bytes.max(1).into();
                }
                self.finish(slot, code, |_| Answer::Done);
            }
            Purpose::ExitLatency(slot, us) => self.exit_latency_set(slot, us, code),
            Purpose::Configure(slot) => self.configured(hw, slot, code),
            Purpose::Renew(slot, endpoint) => self.renewed(hw, now, (slot, endpoint), code),
            Purpose::ResetDevice(slot) => self.device_reset(hw, now, slot, code),
            Purpose::Readdress(slot) => {
                if let Some(device) = self.in_slot(slot) {
                    device.is_readdressing = false;
                }
                self.finish(slot, code, |_| Answer::Done);
            }
            Purpose::DisableSlot(slot) => self.slot_taken(hw, slot),
            Purpose::Stop(slot, endpoint) => self.stopped(hw, now, (slot, endpoint), code),
            Purpose::ResetEndpoint(slot, endpoint) => self.was_reset(hw, now, (slot, endpoint), code),
            Purpose::Move(slot, endpoint) => self.was_moved(hw, now, (slot, endpoint), code),
        }
    }

    /// Answers the request of a device.
    pub(super) fn finish(&mut self, slot: u8, code: CompletionCode, answer: impl Fn(&Device) -> Answer) {
        let Some(device) = self.in_slot(slot) else { return };
        let Some(request) = device.request.take() else { return };
        let answer = match code {
            _ if device.is_leaving => Answer::Gone,
            CompletionCode::Success => answer(device),
            CompletionCode::CommandAborted => Answer::TimedOut,
            code => Answer::Failed(code),
        };
        self.answer(request, answer);
    }

    fn slot_given(
        &mut self,
        hw: &mut impl Hardware,
        now: Instant,
        request: RequestId,
        code: CompletionCode,
        slot: u8,
    ) {
        let Some(at) = self.attaching.iter().position(|(id, _)| *id == request) else { return };
        let (_, location) = self.attaching.swap_remove(at);
        let is_free = slot != 0 && self.devices.get(usize::from(slot)).is_some_and(Option::is_none);
        let answer = match code {
            CompletionCode::Success if is_free => {
                if self.address(hw, now, request, slot, location) {
                    return;
                }
                self.forget(hw, now, slot);
                Answer::NoMemory
            }
            CompletionCode::Success => {
                self.counters.stray_events += 1;
                Answer::Failed(code)
            }
            CompletionCode::NoSlotsAvailable => Answer::NoMemory,
            CompletionCode::CommandAborted => Answer::TimedOut,
            code => Answer::Failed(code),
        };
        self.answer(request, answer);
    }

    /// Makes a device of a slot and asks for its address; whether there was memory.
    fn address(
        &mut self,
        hw: &mut impl Hardware,
        now: Instant,
        request: RequestId,
        slot: u8,
        location: Location,
    ) -> bool {
        let translator = location.translator;
        let context = SlotContext {
            route: location.route,
            translator_slot: translator.map_or(0, |translator| translator.hub.slot),
            translator_port: translator.map_or(0, |translator| translator.port),
            multiple_translators: translator.is_some_and(|translator| translator.multiple),
            ..SlotContext::at_root(location.root_port, location.speed_id)
        };
        self.generation = self.generation.wrapping_add(1);
        let id = DeviceId { slot, generation: self.generation };
        let Some(mut device) = Device::allocate(hw, id, context, self.size) else { return false };
        let control = EndpointContext {
            average_trb_length: 8,
            ..EndpointContext::plain(EndpointType::Control, location.control_packet, 0)
        };
        let Some(control) =
            self.endpoint_settings().endpoint(hw, EndpointId::CONTROL, control, Direction::Out)
        else {
            device.release(hw);
            return false;
        };
        if let Some(place) = device.endpoints.get_mut(EndpointId::CONTROL.index()) {
            *place = Some(Box::new(control));
        }
        device.request = Some(request);
        self.point_slot(hw, slot, device.output);
        if let Some(place) = self.devices.get_mut(usize::from(slot)) {
            *place = Some(Box::new(device));
        }
        self.ask_address(hw, now, slot, Purpose::Address(slot));
        true
    }

    fn ask_address(&mut self, hw: &mut impl Hardware, now: Instant, slot: u8, purpose: Purpose) {
        let Some(device) = self.in_slot(slot) else { return };
        let flags = InputControlContext::default().with_slot().with(EndpointId::CONTROL);
        let control = device.endpoints.iter().flatten().take(1).map(Box::as_ref);
        device.write_input(hw, flags, &device.slot, control);
        let command = CommandTrb::AddressDevice { slot, input: device.input, block_set_address: false };
        self.command(hw, now, command, purpose);
    }

    /// A slot that led to no device goes back; no one is reported of that.
    fn forget(&mut self, hw: &mut impl Hardware, now: Instant, slot: u8) {
        match self.in_slot(slot) {
            Some(_) => self.leave(hw, now, slot),
            None => self.command(hw, now, CommandTrb::DisableSlot { slot }, Purpose::DisableSlot(slot)),
        }
    }

    fn configured(&mut self, hw: &mut impl Hardware, slot: u8, code: CompletionCode) {
        let Some(device) = self.in_slot(slot) else { return };
        let Some(mut change) = device.change.take() else { return };
        let answer = change.answer;
        if code == CompletionCode::Success {
            device.slot = change.slot;
            for id in change.drop {
                if let Some(mut endpoint) = device.endpoints.get_mut(id.index()).and_then(Option::take) {
                    endpoint.release(hw);
                }
            }
            for endpoint in change.add {
                let index = endpoint.id.index();
                if let Some(place) = device.endpoints.get_mut(index) {
                    *place = Some(Box::new(endpoint));
                }
            }
        } else {
            device.set_states(&change.drop, State::Running);
            change.add.iter_mut().for_each(|endpoint| endpoint.release(hw));
        }
        self.finish(slot, code, |_| answer);
    }

    fn device_reset(&mut self, hw: &mut impl Hardware, now: Instant, slot: u8, code: CompletionCode) {
        let Some(device) = self.in_slot(slot) else { return };
        // A device that was never configured is where a reset would bring it, which is no error.
        if !matches!(code, CompletionCode::Success | CompletionCode::ContextStateError) {
            device.is_readdressing = false;
            self.finish(slot, code, |_| Answer::Done);
            return;
        }
        let (id, ended) = (device.id, device.end_all(TransferStatus::Cancelled));
        for place in &mut device.endpoints {
            match place {
                Some(endpoint) if endpoint.id == EndpointId::CONTROL => endpoint.restart(hw),
                _ => {
                    if let Some(mut endpoint) = place.take() {
                        endpoint.release(hw);
                    }
                }
            }
        }
        device.slot.context_entries = 1;
        self.emit(id, ended);
        self.ask_address(hw, now, slot, Purpose::Readdress(slot));
    }

    /// The slot is the controller's again, or the controller knows of none: it has released it of
    /// everything.
    fn slot_taken(&mut self, hw: &mut impl Hardware, slot: u8) {
        let Some(mut device) = self.devices.get_mut(usize::from(slot)).and_then(Option::take) else { return };
        let (id, ended) = (device.id, device.end_all(TransferStatus::Disconnected));
        self.point_slot(hw, slot, 0);
        device.release(hw);
        self.settling.retain(|(_, settling, _)| *settling != slot);
        self.emit(id, ended);
        match (device.left_for, device.request) {
            (None, None) if device.is_attached => self.outputs.push_back(Output::Gone(id)),
            (left_for, request) => {
                left_for.into_iter().for_each(|request| self.answer(request, Answer::Done));
                request.into_iter().for_each(|request| self.answer(request, Answer::Gone));
            }
        }
    }
}
