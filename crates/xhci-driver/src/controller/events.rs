//! Interrupts, events and deadlines of a running controller (xHCI 1.2 clauses 4.9.4, 4.17, 4.19).
//!
//! Nothing in an event is trusted: slots, endpoints and addresses are looked up, and what leads
//! nowhere is counted. An event is passed after it was acted on: a controller with doorbells in
//! memory relies on it. Always true: one call takes [`EVENTS_PER_CALL`] events at most, so a
//! controller that never ends does not keep us.

use super::live::Live;
use super::recovery::EndpointRef;
use crate::device::endpoint::TransferEvent;
use crate::hardware::Hardware;
use crate::limit::{EVENTS_PER_ACKNOWLEDGEMENT, EVENTS_PER_CALL};
use crate::retire::{EventTarget, Recovery};
use crate::types::{Answer, Death, Output};
use units::Instant;
use wire::xhci::{CommandRingControl, CompletionCode, EventTrb, PortChanges, PortStatus, UsbStatus, offset};

impl Live {
    /// Takes what is there; why the controller is of no use any more, if so.
    pub(super) fn handle_interrupt(&mut self, hw: &mut impl Hardware, now: Instant) -> Option<Death> {
        let word = hw.read_register(self.operational + offset::USB_STATUS);
        let status = UsbStatus::from(word);
        if word == u32::MAX {
            return Some(Death::Removed);
        }
        if status.has(UsbStatus::CONTROLLER_ERROR) {
            return Some(Death::ControllerError);
        }
        if status.has(UsbStatus::HOST_SYSTEM_ERROR) {
            return Some(Death::HostSystemError);
        }
        let noted = UsbStatus::EVENT_INTERRUPT.with(UsbStatus::PORT_CHANGE);
        hw.write_register(self.operational + offset::USB_STATUS, noted.into());
        self.acknowledge_interrupt(hw);
        self.more_events = None;
        for taken in 0..=EVENTS_PER_CALL {
            if taken == EVENTS_PER_CALL {
                self.more_events = Some(now);
                break;
            }
            if taken % EVENTS_PER_ACKNOWLEDGEMENT == 0 && taken > 0 {
                self.acknowledge_events(hw);
            }
            let Some(trb) = self.events.take(hw) else { break };
            match EventTrb::decode(&trb) {
                Ok((event, _)) => self.handle_event(hw, now, event),
                Err(_) => self.counters.unknown_events += 1,
            }
        }
        self.acknowledge_events(hw);
        None
    }

    #[inline]
    fn handle_event(&mut self, hw: &mut impl Hardware, now: Instant, event: EventTrb) {
        match event {
            EventTrb::Transfer { pointer, length, code, event_data, endpoint: Some(endpoint), slot } => {
                let event = TransferEvent { pointer, length, code, event_data };
                let device = self.devices.get_mut(usize::from(slot)).and_then(Option::as_deref_mut);
                let found = device.and_then(|device| Some((device.id, device.endpoint(endpoint)?)));
                match found.and_then(|(id, endpoint)| Some((id, endpoint.retire_alone(event)?))) {
                    Some((id, completion)) => self.outputs.push_back(Output::Completed(id, completion)),
                    None => self.handle_transfer(hw, now, (slot, endpoint), event),
                }
            }
            _ => self.handle_other(hw, now, event),
        }
    }

    /// An event that names no endpoint.
    #[inline(never)]
    fn handle_other(&mut self, hw: &mut impl Hardware, now: Instant, event: EventTrb) {
        match event {
            EventTrb::Transfer { .. } => self.counters.stray_events += 1,
            EventTrb::CommandCompletion { code: CompletionCode::CommandRingStopped, .. }
                if self.commands.is_aborting() =>
            {
                if self.commands.stopped(hw, now) {
                    self.ring_command(hw);
                }
            }
            EventTrb::CommandCompletion { pointer, code, slot, .. } => {
                match self.commands.answered(hw, now, pointer) {
                    None => self.counters.stray_events += 1,
                    Some((purpose, rings)) => {
                        if rings {
                            self.ring_command(hw);
                        }
                        self.handle_answer(hw, now, purpose, code, slot);
                    }
                }
            }
            EventTrb::PortStatusChange { port, .. } if port == 0 || port > self.ports => {
                self.counters.stray_events += 1;
            }
            EventTrb::PortStatusChange { port, .. } => self.handle_port(hw, now, port),
            EventTrb::HostController { code } => {
                let is_full = matches!(code, CompletionCode::EventRingFull | CompletionCode::EventLost);
                self.counters.rings_full += u32::from(is_full);
            }
            EventTrb::BandwidthRequest { .. }
            | EventTrb::DeviceNotification { .. }
            | EventTrb::MicroframeIndexWrap { .. } => self.counters.unknown_events += 1,
        }
    }

    #[inline(never)]
    fn handle_transfer(
        &mut self,
        hw: &mut impl Hardware,
        now: Instant,
        (slot, endpoint_id): EndpointRef,
        event: TransferEvent,
    ) {
        let Some(device) = self.in_slot(slot) else {
            self.counters.stray_events += 1;
            return;
        };
        let (id, is_leaving) = (device.id, device.is_leaving);
        let Some(endpoint) = device.endpoint(endpoint_id) else {
            self.counters.stray_events += 1;
            return;
        };
        let result = endpoint.handle_event(event);
        let is_lost = endpoint.is_lost();
        self.emit(id, result.completion);
        match result.place {
            EventTarget::Nowhere => self.counters.stray_events += 1,
            EventTarget::Finished => self.counters.late_events += 1,
            _ => {}
        }
        if is_lost && !is_leaving {
            self.give_up(hw, now, (slot, endpoint_id));
        } else if result.recovery != Recovery::Nothing && !is_leaving {
            self.recover(hw, now, (slot, endpoint_id), result.recovery);
        }
    }

    /// A root port changed: the change is noted, a reset that ended is answered, who was there is
    /// gone.
    fn handle_port(&mut self, hw: &mut impl Hardware, now: Instant, port: u8) {
        let at = self.operational + offset::port_status(port);
        let status = PortStatus::from(hw.read_register(at));
        let changes = status.changes();
        hw.write_register(at, status.acknowledging(changes).into());
        let was_reset = changes.has(PortChanges::RESET) || changes.has(PortChanges::WARM_RESET);
        if was_reset || !status.is_connected() {
            let reset = self.port_resets.iter().position(|(resetting, ..)| *resetting == port);
            if let Some((_, request, _)) = reset.map(|at| self.port_resets.swap_remove(at)) {
                let answer = if was_reset { Answer::Port(status) } else { Answer::Gone };
                self.answer(request, answer);
            }
        }
        // Who is there now may be another one than before: somebody was quick, or we were slow.
        if !status.is_connected() || changes.has(PortChanges::CONNECT) {
            for slot in 1..=self.slots {
                if self.in_slot(slot).is_some_and(|device| device.slot.root_port == port) {
                    self.leave(hw, now, slot);
                }
            }
        }
        self.report_port(port, status);
    }

    /// Sees to deadlines that have come; why the controller is of no use any more, if so.
    pub(super) fn handle_timeout(&mut self, hw: &mut impl Hardware, now: Instant) -> Option<Death> {
        if self.more_events.is_some_and(|at| at <= now)
            && let Some(death) = self.handle_interrupt(hw, now)
        {
            return Some(death);
        }
        while let Some(at) = self.settling.iter().position(|(at, ..)| *at <= now) {
            let (_, slot, endpoint) = self.settling.swap_remove(at);
            self.settled(hw, now, (slot, endpoint));
        }
        while let Some(at) = self.port_resets.iter().position(|(.., at)| *at <= now) {
            let (_, request, _) = self.port_resets.swap_remove(at);
            self.answer(request, Answer::TimedOut);
        }
        if self.commands.deadline().is_some_and(|at| at <= now) {
            if !self.commands.abort(now) {
                return Some(Death::CommandsStuck);
            }
            self.counters.command_timeouts += 1;
            // Only the low half: the pointer in the high one is not to change, and the ring runs.
            let abort = CommandRingControl { abort: true, ..CommandRingControl::default() };
            hw.write_register(self.operational + offset::COMMAND_RING_CONTROL, abort.encode() as u32);
        }
        None
    }
}
