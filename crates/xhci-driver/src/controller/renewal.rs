//! Resetting the sequence numbers of an endpoint after the device has (xHCI 1.2 clauses 4.6.6 and
//! 4.6.8).
//!
//! The recovery from a halt may suffice; else the endpoint is dropped and added with its rings, so
//! that transfers submitted in the meantime are not lost. Always true: no doorbell is rung before
//! the controller has agreed.

use super::command::Purpose;
use super::live::Live;
use super::recovery::EndpointRef;
use crate::device::endpoint::{EndpointHold, State};
use crate::hardware::Hardware;
use crate::types::{Answer, DeviceId, Refusal, RequestId};
use alloc::boxed::Box;
use bus::EndpointAddress;
use units::Instant;
use wire::xhci::{CommandTrb, CompletionCode, EndpointId, InputControlContext};

impl Live {
    /// The device has begun again. It is answered when the controller has as well.
    pub(super) fn renew(
        &mut self,
        hw: &mut impl Hardware,
        now: Instant,
        id: RequestId,
        device: DeviceId,
        address: EndpointAddress,
    ) -> Result<(), Refusal> {
        let found = self.free_device(device)?;
        let which = (device.slot, EndpointId::of(address));
        let endpoint = found.endpoint(which.1).ok_or(Refusal::NoSuchPipe)?;
        if endpoint.plan.is_none() {
            return Err(Refusal::NotAllowed);
        }
        if !endpoint.is_held() && endpoint.is_busy() {
            return Err(Refusal::Busy);
        }
        endpoint.is_cleared = true;
        found.request = Some(id);
        self.go_on_cleared(hw, now, which);
        Ok(())
    }

    /// The device's end is cleared, and ours is to be. If a command is in progress for it, that is
    /// answered first, and this is called again. Linux waits for both ends as well
    /// (`xhci_endpoint_reset`).
    pub(super) fn go_on_cleared(
        &mut self,
        hw: &mut impl Hardware,
        now: Instant,
        (slot, endpoint): EndpointRef,
    ) {
        let Some(device) = self.in_slot(slot) else { return };
        let Some(found) = device.endpoint(endpoint).filter(|found| found.is_free()) else { return };
        if found.hold == EndpointHold::SequenceReset {
            return self.release_hold(hw, (slot, endpoint), CompletionCode::Success);
        }
        found.state = State::Renewing;
        found.place_rings(hw);
        let flags = InputControlContext::default().with_slot().dropping(endpoint).with(endpoint);
        let placed = device.endpoints.iter().flatten().filter(|placed| placed.id == endpoint);
        device.write_input(hw, flags, &device.slot, placed.map(Box::as_ref));
        let command = CommandTrb::ConfigureEndpoint { slot, input: device.input, deconfigure: false };
        self.command(hw, now, command, Purpose::Renew(slot, endpoint));
    }

    /// The endpoint was dropped and added, or was not: one that is held then stays so.
    pub(super) fn renewed(
        &mut self,
        hw: &mut impl Hardware,
        now: Instant,
        (slot, endpoint): EndpointRef,
        code: CompletionCode,
    ) {
        let found = self.endpoint_at((slot, endpoint));
        let Some(found) = found.filter(|found| found.state == State::Renewing) else { return };
        found.state = State::Running;
        let is_wanted_back = found.has_cancelled();
        self.release_hold(hw, (slot, endpoint), code);
        if is_wanted_back {
            self.cancel_tds(hw, now, (slot, endpoint));
        }
    }

    fn release_hold(&mut self, hw: &mut impl Hardware, (slot, endpoint): EndpointRef, code: CompletionCode) {
        let Some(found) = self.endpoint_at((slot, endpoint)) else { return };
        found.is_cleared = false;
        if code == CompletionCode::Success {
            found.hold = EndpointHold::None;
        }
        self.finish(slot, code, |_| Answer::Done);
        self.go_on(hw, (slot, endpoint));
    }
}
