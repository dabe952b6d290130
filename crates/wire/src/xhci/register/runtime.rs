//! Run-time registers of an interrupter (xHCI 1.2 clause 5.5.2).

use crate::xhci::{bit, field, flag, place, pointer, wide};
use core::fmt;

/// IMAN: IP 0 (a one clears it), IE 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterrupterManagement {
    /// An interrupt waits; writing it takes note.
    pub pending: bool,
    /// Interrupts are wanted.
    pub enabled: bool,
}

impl InterrupterManagement {
    /// Decodes the value of the register.
    pub const fn decode(word: u32) -> Self {
        Self { pending: flag(word, 0), enabled: flag(word, 1) }
    }

    /// Encodes the value to write.
    pub const fn encode(self) -> u32 {
        bit(self.pending, 0) | bit(self.enabled, 1)
    }
}

/// IMOD: IMODI 15:0, IMODC 31:16, in units of 250 ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterrupterModeration {
    /// The least time between two interrupts, in units of 250 ns; 0 is none, 4000 after a reset.
    pub interval_250ns: u16,
    /// Remainder of the interval.
    pub counter_250ns: u16,
}

impl InterrupterModeration {
    /// Decodes the value of the register.
    pub const fn decode(word: u32) -> Self {
        Self { interval_250ns: field(word, 0, 16) as u16, counter_250ns: field(word, 16, 16) as u16 }
    }

    /// Encodes the value to write.
    pub const fn encode(self) -> u32 {
        self.interval_250ns as u32 | place(self.counter_250ns as u32, 16, 16)
    }
}

/// ERDP: DESI 2:0, EHB 3 (a one clears it), Event Ring Dequeue Pointer 63:4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventRingDequeue {
    /// The first event that was not taken; a multiple of 16.
    pub address: u64,
    /// Low bits of the segment it is in.
    pub segment: u8,
    /// The handler is busy; writing it says that it is not any more.
    pub handler_busy: bool,
}

impl EventRingDequeue {
    /// Decodes the value of the register.
    pub const fn decode(value: u64) -> Self {
        let [low, high] = pointer(value, 4);
        let word = value as u32;
        Self { address: wide(low, high), segment: field(word, 0, 3) as u8, handler_busy: flag(word, 3) }
    }

    /// Encodes the value to write.
    pub const fn encode(self) -> u64 {
        let [low, high] = pointer(self.address, 4);
        wide(low | place(self.segment as u32, 0, 3) | bit(self.handler_busy, 3), high)
    }
}

impl fmt::Display for InterrupterModeration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns between interrupts", u32::from(self.interval_250ns) * 250)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn literal_values_both_ways() {
        let management = InterrupterManagement { pending: true, enabled: true };
        assert_eq!(management.encode(), 3);
        assert_eq!(InterrupterManagement::decode(3), management);
        let moderation = InterrupterModeration { interval_250ns: 160, counter_250ns: 1 };
        assert_eq!(moderation.encode(), 0x0001_00a0);
        assert_eq!(InterrupterModeration::decode(0x0001_00a0), moderation);
        assert_eq!(moderation.to_string(), "40000 ns between interrupts");
        let dequeue = EventRingDequeue { address: 0x1_0000_0010, segment: 2, handler_busy: true };
        assert_eq!(dequeue.encode(), 0x1_0000_001a);
        assert_eq!(EventRingDequeue::decode(0x1_0000_001a), dequeue);
    }
}
