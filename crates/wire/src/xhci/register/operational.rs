//! Operational registers (xHCI 1.2 clause 5.4), without those of the ports.

use crate::xhci::{bit, field, flag, pointer, wide};
use core::fmt;

register_bits! {
    /// USBCMD.
    pub struct UsbCommand: u32 {
        /// The controller runs (R/S).
        RUN = 0x0000_0001 => "run",
        /// The controller resets; zero again when it has (HCRST).
        RESET = 0x0000_0002 => "reset",
        /// Interrupts (INTE).
        INTERRUPTER_ENABLE = 0x0000_0004 => "interrupts",
        /// Host system errors are reported (HSEE).
        HOST_SYSTEM_ERROR_ENABLE = 0x0000_0008 => "system errors",
        /// Microframe index wraps are reported (EWE).
        WRAP_EVENT = 0x0000_0400 => "wrap events",
    }
}

register_bits! {
    /// USBSTS. Writing a one clears the bits of errors and changes.
    pub struct UsbStatus: u32 {
        /// It does not run (HCH).
        HALTED = 0x0000_0001 => "halted",
        /// Its memory or bus failed it (HSE).
        HOST_SYSTEM_ERROR = 0x0000_0004 => "host system error",
        /// An interrupter has an interrupt pending (EINT).
        EVENT_INTERRUPT = 0x0000_0008 => "event interrupt",
        /// A port changed (PCD).
        PORT_CHANGE = 0x0000_0010 => "port change",
        /// Save or restore failed (SRE).
        SAVE_RESTORE_ERROR = 0x0000_0400 => "save or restore error",
        /// Registers must not be touched yet (CNR).
        NOT_READY = 0x0000_0800 => "not ready",
        /// It is broken until it is reset (HCE).
        CONTROLLER_ERROR = 0x0000_1000 => "controller error",
    }
}

/// PAGESIZE: bit n set, pages are of 2^(n+12) bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSize(u32);

impl PageSize {
    /// Decodes the value of the register.
    pub const fn from_register(word: u32) -> Self {
        Self(word)
    }

    /// Bytes of the smallest page that it says; `None` if it says none.
    pub const fn bytes(self) -> Option<u64> {
        match field(self.0, 0, 16) {
            0 => None,
            pages => Some(4096 << pages.trailing_zeros()),
        }
    }
}

/// CRCR. The pointer reads as zero; only the last of these can be read.
///
/// ```text
///   RCS 0, CS 1, CA 2, CRR 3, Command Ring Pointer 63:6
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandRingControl {
    /// Where the ring begins, a multiple of 64.
    pub ring: u64,
    /// The cycle bit of the TRBs there.
    pub cycle: bool,
    /// Stop after the current command.
    pub stop: bool,
    /// Stop, and abort the current command.
    pub abort: bool,
    /// The ring runs.
    pub running: bool,
}

impl CommandRingControl {
    /// Decodes the value of the register.
    pub const fn decode(value: u64) -> Self {
        let [low, high] = pointer(value, 6);
        let word = value as u32;
        let (ring, cycle) = (wide(low, high), flag(word, 0));
        Self { ring, cycle, stop: flag(word, 1), abort: flag(word, 2), running: flag(word, 3) }
    }

    /// Encodes the value to write.
    pub const fn encode(self) -> u64 {
        let [low, high] = pointer(self.ring, 6);
        let stops = bit(self.stop, 1) | bit(self.abort, 2);
        wide(low | bit(self.cycle, 0) | stops | bit(self.running, 3), high)
    }
}

/// CONFIG.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Configure {
    /// Slots that may be used.
    pub slots: u8,
    /// Port link state changes to U3 are reported (U3E).
    pub u3_entry: bool,
    /// Input contexts carry configuration values (CIE).
    pub configuration_information: bool,
}

impl Configure {
    /// Decodes the value of the register.
    pub const fn decode(word: u32) -> Self {
        let slots = field(word, 0, 8) as u8;
        Self { slots, u3_entry: flag(word, 8), configuration_information: flag(word, 9) }
    }

    /// Encodes the value to write.
    pub const fn encode(self) -> u32 {
        self.slots as u32 | bit(self.u3_entry, 8) | bit(self.configuration_information, 9)
    }
}

impl fmt::Display for CommandRingControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "command ring at {:#x} {}", self.ring, if self.running { "running" } else { "stopped" })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_command_ring_both_ways() {
        let control = CommandRingControl { ring: 0x1_0000_1040, cycle: true, ..Default::default() };
        assert_eq!(control.encode(), 0x1_0000_1041);
        assert_eq!(CommandRingControl::decode(0x1_0000_1041), control);
        let abort = CommandRingControl { abort: true, ..Default::default() };
        assert_eq!(abort.encode(), 0x04);
        assert!(CommandRingControl::decode(0x08).running);
        assert_eq!(CommandRingControl::decode(0x08).to_string(), "command ring at 0x0 running");
    }

    #[test]
    fn slots_are_configured() {
        let configure = Configure { slots: 64, u3_entry: false, configuration_information: true };
        assert_eq!(configure.encode(), 0x240);
        assert_eq!(Configure::decode(0x240), configure);
    }

    #[test]
    fn pages_have_4_kib_or_more() {
        let bytes = [1, 2, 3, 0x8000, 0, 0x1_0000].map(|word| PageSize::from_register(word).bytes());
        assert_eq!(bytes, [Some(4096), Some(8192), Some(4096), Some(1 << 27), None, None]);
    }

    #[test]
    fn status_bits_have_names() {
        let status = UsbStatus::from(0x1005);
        assert!(status.has(UsbStatus::HALTED) && status.has(UsbStatus::CONTROLLER_ERROR));
        assert_eq!(status.to_string(), "halted host system error controller error");
    }
}
