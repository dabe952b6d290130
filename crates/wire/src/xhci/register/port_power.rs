//! Port power management status and control register of USB 3 (xHCI 1.2 clause 5.4.9.1).

use crate::xhci::{bit, field, flag, place};
use core::fmt;

/// PORTPMSC of a port of USB 3: when its link goes to sleep.
///
/// ```text
///   U1 Timeout 7:0, U2 Timeout 15:8, FLA 16
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortPower {
    /// PORT_U1_TIMEOUT (USB 3.2 table 10-14): 0 does not ask and refuses, 1 to 7Fh microseconds, FFh does not ask and accepts.
    pub u1_timeout: u8,
    /// PORT_U2_TIMEOUT (table 10-15): 0 and FFh alike, the others in units of 256 us.
    pub u2_timeout: u8,
    /// Force Link PM Accept: the device is made to accept every link state request. For tests of hardware.
    pub forces_accept: bool,
}

impl PortPower {
    /// The register.
    pub fn encode(&self) -> u32 {
        u32::from(self.u1_timeout) | place(self.u2_timeout.into(), 8, 8) | bit(self.forces_accept, 16)
    }

    /// Decodes the value of the register.
    pub fn decode(word: u32) -> Self {
        Self {
            u1_timeout: field(word, 0, 8) as u8,
            u2_timeout: field(word, 8, 8) as u8,
            forces_accept: flag(word, 16),
        }
    }
}

impl fmt::Display for PortPower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "U1 after {:#04x}, U2 after {:#04x}", self.u1_timeout, self.u2_timeout)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn literal_bits_both_ways() {
        let power = PortPower { u1_timeout: 0x32, u2_timeout: 0x28, forces_accept: false };
        assert_eq!(power.encode(), 0x0000_2832);
        assert_eq!(PortPower::decode(0x0000_2832), power);
        assert_eq!(power.to_string(), "U1 after 0x32, U2 after 0x28");
        let forced = PortPower { forces_accept: true, ..PortPower::default() };
        assert_eq!(forced.encode(), 0x0001_0000);
    }

    #[test]
    fn reserved_bits_are_not_kept() {
        assert_eq!(PortPower::decode(u32::MAX).encode(), 0x0001_ffff);
    }
}
