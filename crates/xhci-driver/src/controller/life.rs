//! The start sequence of a controller (xHCI 1.2 clauses 4.2, 4.22.1, 5.4.1): handover, halt, reset,
//! setup, start.
//!
//! Each step waits for a register, polled every [`POLL_INTERVAL`] with a named timeout. With a
//! controller that answers at once, as simulated ones do, it takes one call. Memory of an earlier
//! run is freed only after the reset, since the controller may write to it until then.

use super::{Controller, live::Live};
use crate::capabilities::Capabilities;
use crate::hardware::{Hardware, Registers};
use crate::limit::{HALT_TIMEOUT, HANDOVER_TIMEOUT, POLL_INTERVAL, RESET_TIMEOUT};
use crate::types::{DeadlineReason, Death, Output};
use alloc::boxed::Box;
use units::Instant;
use wire::xhci::{LegacySupport, UsbCommand, UsbStatus, offset};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Not started, or dead.
    Off,
    /// On the way.
    Waiting(Wait),
    /// It runs.
    Running,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) what: DeadlineReason,
    pub(super) poll_at: Instant,
    until: Instant,
}

impl Controller {
    pub(super) fn begin(&mut self, hw: &mut impl Hardware, now: Instant) {
        let capabilities = match Capabilities::read(hw) {
            Ok(capabilities) => capabilities,
            Err(unusable) => {
                self.phase = Phase::Off;
                self.outputs.push_back(Output::Died(Death::Unusable(unusable)));
                return;
            }
        };
        if let Some(at) = capabilities.legacy {
            let support = LegacySupport::decode(hw.read_register(at));
            hw.write_register(at, LegacySupport { system: true, ..support }.encode());
        }
        self.capabilities = Some(capabilities);
        self.wait_for(DeadlineReason::Handover, now);
        self.wait_on(hw, now);
    }

    fn wait_for(&mut self, what: DeadlineReason, now: Instant) {
        let timeout = match what {
            DeadlineReason::Handover => HANDOVER_TIMEOUT,
            DeadlineReason::Halt => HALT_TIMEOUT,
            _ => RESET_TIMEOUT,
        };
        self.phase = Phase::Waiting(Wait { what, poll_at: now + POLL_INTERVAL, until: now + timeout });
    }

    /// Looks at what is waited for, and goes on as far as it can.
    pub(super) fn wait_on(&mut self, hw: &mut impl Hardware, now: Instant) {
        while let Phase::Waiting(wait) = self.phase {
            let is_late = now >= wait.until;
            match wait.what {
                // Firmware that does not answer is taken the controller from.
                DeadlineReason::Handover if is_late || self.is_handed_over(hw) => {
                    self.quieten_firmware(hw);
                    self.halt(hw);
                    self.wait_for(DeadlineReason::Halt, now);
                }
                DeadlineReason::Halt if self.is_halted(hw) => {
                    let command = self.operational() + offset::USB_COMMAND;
                    hw.write_register(command, UsbCommand::RESET.into());
                    self.wait_for(DeadlineReason::Reset, now);
                }
                DeadlineReason::Reset if self.is_reset(hw) => return self.set_up(hw),
                what if is_late => return self.die(hw, Death::NotInTime(what)),
                _ => {
                    self.phase = Phase::Waiting(Wait { poll_at: now + POLL_INTERVAL, ..wait });
                    return;
                }
            }
        }
    }

    fn set_up(&mut self, hw: &mut impl Hardware) {
        if let Some(mut buried) = self.buried.take() {
            buried.release(hw);
        }
        let Some(capabilities) = &self.capabilities else { return };
        match Live::set_up(hw, capabilities, self.config) {
            Some(live) => {
                self.live = Some(Box::new(live));
                self.phase = Phase::Running;
                self.outputs.push_back(Output::Running);
            }
            None => self.die(hw, Death::NoMemory),
        }
    }

    /// Stops the controller, and clears every other bit of its command register,
    /// the interrupt enable too.
    pub(super) fn halt(&mut self, hw: &mut impl Registers) {
        if self.capabilities.is_some() {
            hw.write_register(self.operational() + offset::USB_COMMAND, UsbCommand::EMPTY.into());
        }
    }

    fn operational(&self) -> u32 {
        self.capabilities.as_ref().map_or(0, |found| found.registers.operational_offset.into())
    }

    fn is_handed_over(&self, hw: &mut impl Registers) -> bool {
        let legacy = self.capabilities.as_ref().and_then(|found| found.legacy);
        legacy.is_none_or(|at| !LegacySupport::decode(hw.read_register(at)).firmware)
    }

    fn quieten_firmware(&self, hw: &mut impl Registers) {
        if let Some(at) = self.capabilities.as_ref().and_then(|found| found.legacy) {
            let support = LegacySupport::decode(hw.read_register(at));
            hw.write_register(at, LegacySupport { firmware: false, system: true, ..support }.encode());
            hw.write_register(at + 4, LegacySupport::FIRMWARE_INTERRUPTS_OFF);
        }
    }

    fn is_halted(&self, hw: &mut impl Registers) -> bool {
        let status = UsbStatus::from(hw.read_register(self.operational() + offset::USB_STATUS));
        status.has(UsbStatus::HALTED) && !status.has(UsbStatus::NOT_READY)
    }

    fn is_reset(&self, hw: &mut impl Registers) -> bool {
        let command = UsbCommand::from(hw.read_register(self.operational() + offset::USB_COMMAND));
        let status = UsbStatus::from(hw.read_register(self.operational() + offset::USB_STATUS));
        !command.has(UsbCommand::RESET) && !status.has(UsbStatus::NOT_READY)
    }
}
