//! MECHANISM STATUS data (MMC-6 clause 6.11) of a drive that is no changer: the header without slots.

use super::head;
use crate::DecodeError;
use crate::scsi::layout::{be16, bit, bits, set_bit, set_bits};
use core::fmt;

/// Mechanism status header.
///
/// ```text
/// 0  fault (7), changer state (6:5), current slot (4:0)   2..5  current LBA
/// 1  mechanism state (7:5), tray open (4)                 5     slots
///                                                         6..8  length of the slot tables
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MechanismState {
    /// A changer has failed.
    pub fault: bool,
    /// MECHANISM STATE, three bits: 0 is idle.
    pub state: u8,
    /// The tray is open.
    pub tray_open: bool,
    /// Slots of a changer.
    pub slots: u8,
    /// Bytes of the slot tables that follow.
    pub table_length: u16,
}

impl MechanismState {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// Decodes the first eight bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let whole: &[u8; Self::LEN] = head(bytes)?;
        Ok(Self {
            fault: bit::<7>(whole[0]),
            state: bits::<7, 5>(whole[1]),
            tray_open: bit::<4>(whole[1]),
            slots: bits::<5, 0>(whole[5]),
            table_length: be16::<6, _>(whole),
        })
    }

    /// The eight bytes on the wire.
    pub fn encode(&self) -> [u8; 8] {
        let state = set_bits::<7, 5>(self.state) | set_bit::<4>(self.tray_open);
        let [high, low] = self.table_length.to_be_bytes();
        [set_bit::<7>(self.fault), state, 0, 0, 0, set_bits::<5, 0>(self.slots), high, low]
    }
}

impl fmt::Display for MechanismState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "state {}, tray open {}, {} slots", self.state, self.tray_open, self.slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_tray_both_ways() {
        let bytes = [0x80, 0x30, 0, 0, 0, 2, 0, 8];
        let state = MechanismState { fault: true, state: 1, tray_open: true, slots: 2, table_length: 8 };
        assert_eq!(MechanismState::decode(&bytes), Ok(state));
        assert_eq!(state.encode(), bytes);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for got in 0..8 {
            let error = DecodeError::Truncated { needed: 8, got };
            assert_eq!(MechanismState::decode(&[0; 8][..got]), Err(error));
        }
    }
}
