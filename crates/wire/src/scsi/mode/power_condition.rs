//! Power condition mode page, 1Ah (SPC-5).

use super::{ModePageCode, blank, whole_of};
use crate::DecodeError;
use crate::scsi::layout::{be32, bit, bits, set_bit, set_bits};
use core::fmt;

/// When the drive goes to an idle or standby power condition by itself.
///
/// ```text
///  2      PM_BG_PRECEDENCE (7:6), STANDBY_Y (0)
///  3      IDLE_C (3), IDLE_B (2), IDLE_A (1), STANDBY_Z (0)
///  4..8   idle_a timer        16..20  idle_c timer
///  8..12  standby_z timer     20..24  standby_y timer
/// 12..16  idle_b timer        39      CCF IDLE (7:6), CCF STANDBY (5:4), CCF STOPPED (3:2)
/// ```
/// A timer counts in units of 100 ms and only if its bit is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerConditionPage {
    /// PM_BG_PRECEDENCE, two bits: whether background functions delay the timers.
    pub background_precedence: u8,
    /// The idle_a timer counts.
    pub idle_a: bool,
    /// The idle_b timer counts.
    pub idle_b: bool,
    /// The idle_c timer counts.
    pub idle_c: bool,
    /// The standby_y timer counts.
    pub standby_y: bool,
    /// The standby_z timer counts.
    pub standby_z: bool,
    /// IDLE_A CONDITION TIMER.
    pub idle_a_timer_100_ms: u32,
    /// STANDBY_Z CONDITION TIMER.
    pub standby_z_timer_100_ms: u32,
    /// IDLE_B CONDITION TIMER.
    pub idle_b_timer_100_ms: u32,
    /// IDLE_C CONDITION TIMER.
    pub idle_c_timer_100_ms: u32,
    /// STANDBY_Y CONDITION TIMER.
    pub standby_y_timer_100_ms: u32,
    /// CCF IDLE, two bits: whether leaving idle_c is a CHECK CONDITION.
    pub check_condition_from_idle: u8,
    /// CCF STANDBY, two bits: the same for standby.
    pub check_condition_from_standby: u8,
    /// CCF STOPPED, two bits: the same for stopped.
    pub check_condition_from_stopped: u8,
}

impl PowerConditionPage {
    /// Bytes with the header.
    pub const LEN: usize = 40;

    /// Decodes the page at the front of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let page: &[u8; Self::LEN] = whole_of(ModePageCode::PowerCondition, None, bytes)?;
        Ok(Self {
            background_precedence: bits::<7, 6>(page[2]),
            idle_a: bit::<1>(page[3]),
            idle_b: bit::<2>(page[3]),
            idle_c: bit::<3>(page[3]),
            standby_y: bit::<0>(page[2]),
            standby_z: bit::<0>(page[3]),
            idle_a_timer_100_ms: be32::<4, _>(page),
            standby_z_timer_100_ms: be32::<8, _>(page),
            idle_b_timer_100_ms: be32::<12, _>(page),
            idle_c_timer_100_ms: be32::<16, _>(page),
            standby_y_timer_100_ms: be32::<20, _>(page),
            check_condition_from_idle: bits::<7, 6>(page[39]),
            check_condition_from_standby: bits::<5, 4>(page[39]),
            check_condition_from_stopped: bits::<3, 2>(page[39]),
        })
    }

    /// The 40 bytes on the wire.
    pub fn encode(&self, saveable: bool) -> [u8; 40] {
        let mut out: [u8; Self::LEN] = blank(ModePageCode::PowerCondition, None, saveable);
        out[2] = set_bits::<7, 6>(self.background_precedence) | set_bit::<0>(self.standby_y);
        out[3] = set_bit::<3>(self.idle_c)
            | set_bit::<2>(self.idle_b)
            | set_bit::<1>(self.idle_a)
            | set_bit::<0>(self.standby_z);
        out[4..8].copy_from_slice(&self.idle_a_timer_100_ms.to_be_bytes());
        out[8..12].copy_from_slice(&self.standby_z_timer_100_ms.to_be_bytes());
        out[12..16].copy_from_slice(&self.idle_b_timer_100_ms.to_be_bytes());
        out[16..20].copy_from_slice(&self.idle_c_timer_100_ms.to_be_bytes());
        out[20..24].copy_from_slice(&self.standby_y_timer_100_ms.to_be_bytes());
        out[39] = set_bits::<7, 6>(self.check_condition_from_idle)
            | set_bits::<5, 4>(self.check_condition_from_standby)
            | set_bits::<3, 2>(self.check_condition_from_stopped);
        out
    }
}

impl fmt::Display for PowerConditionPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (idle, standby) = (self.idle_a_timer_100_ms, self.standby_z_timer_100_ms);
        write!(f, "idle_a {} after {idle} x 100 ms, ", self.idle_a)?;
        write!(f, "standby_z {} after {standby} x 100 ms", self.standby_z)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_bytes_both_ways() {
        let mut bytes = [0; 40];
        bytes[..24].copy_from_slice(&[
            0x9a, 0x26, 0x41, 0x0b, 0, 0, 0, 20, 0, 0, 0x46, 0x50, 0, 0, 0x04, 0xb0, 0, 0, 0x17, 0x70, 0, 0,
            0x23, 0x28,
        ]);
        bytes[39] = 0x58;
        let page = PowerConditionPage {
            background_precedence: 1,
            idle_a: true,
            idle_b: false,
            idle_c: true,
            standby_y: true,
            standby_z: true,
            idle_a_timer_100_ms: 20,
            standby_z_timer_100_ms: 18000,
            idle_b_timer_100_ms: 1200,
            idle_c_timer_100_ms: 6000,
            standby_y_timer_100_ms: 9000,
            check_condition_from_idle: 1,
            check_condition_from_standby: 1,
            check_condition_from_stopped: 2,
        };
        assert_eq!(PowerConditionPage::decode(&bytes), Ok(page));
        assert_eq!(page.encode(true), bytes);
    }
}
