//! Links that sleep: when those of root ports do, and what their sleep costs a device (xHCI 1.2
//! clauses 4.6.7, 4.23.5.2 and 5.4.9.1).
//!
//! Left out: link power of USB 2.0 (L1), and suspend. What is written is the caller's to know: from
//! exit latencies of both ends.

use super::command::Purpose;
use super::live::Live;
use crate::capabilities::Capabilities;
use crate::hardware::Hardware;
use crate::types::{Answer, DeviceId, Refusal, RequestId};
use units::Instant;
use wire::xhci::{CommandTrb, CompletionCode, InputControlContext, PortPower, SlotContext, offset};

impl Live {
    /// Writes the time-outs of a root port. There is nothing to wait for.
    pub(super) fn set_link_power(
        &mut self,
        hw: &mut impl Hardware,
        capabilities: &Capabilities,
        id: RequestId,
        port: u8,
        power: PortPower,
    ) -> Result<(), Refusal> {
        if port == 0 || port > self.ports {
            return Err(Refusal::NoSuchPipe);
        }
        if capabilities.protocol(port).is_none_or(|found| found.supported.revision.major < 3) {
            return Err(Refusal::NotAllowed);
        }
        hw.write_register(self.operational + offset::port_power(port), power.encode());
        self.answer(id, Answer::Done);
        Ok(())
    }

    /// Sets how long the links to a device take to wake up.
    pub(super) fn set_exit_latency(
        &mut self,
        hw: &mut impl Hardware,
        now: Instant,
        id: RequestId,
        device: DeviceId,
        us: u16,
    ) -> Result<(), Refusal> {
        let found = self.free_device(device)?;
        let slot = SlotContext { exit_latency_us: us, ..found.slot };
        found.write_input(hw, InputControlContext::default().with_slot(), &slot, core::iter::empty());
        found.request = Some(id);
        let command = CommandTrb::EvaluateContext { slot: device.slot, input: found.input };
        self.command(hw, now, command, Purpose::ExitLatency(device.slot, us));
        Ok(())
    }

    /// The controller has said whether it can do with that.
    pub(super) fn exit_latency_set(&mut self, slot: u8, us: u16, code: CompletionCode) {
        if code == CompletionCode::Success
            && let Some(device) = self.in_slot(slot)
        {
            device.slot.exit_latency_us = us;
        }
        self.finish(slot, code, |_| Answer::Done);
    }
}
