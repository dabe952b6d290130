//! Control extension mode page, 0Ah subpage 01h (SPC-5).

use super::{ModePageCode, blank, whole_of};
use crate::DecodeError;
use crate::scsi::layout::{bit, bits, set_bit, set_bits};
use core::fmt;

/// Timestamp, priority and sense length.
///
/// ```text
///  4      DLC (3), TCMOS (2), SCSIP (1), IALUAE (0)
///  5      initial command priority (3:0)
///  6      maximum sense data length
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlExtensionPage {
    /// The drive may limit its own capacity to keep going.
    #[doc(alias = "DLC")]
    pub device_life_control: bool,
    /// The timestamp can be changed outside the standard.
    #[doc(alias = "TCMOS")]
    pub timestamp_changeable_outside: bool,
    /// SET TIMESTAMP goes before other ways to set it.
    #[doc(alias = "SCSIP")]
    pub scsi_precedence: bool,
    /// Implicit asymmetric access is on.
    #[doc(alias = "IALUAE")]
    pub implicit_asymmetric_access: bool,
    /// INITIAL COMMAND PRIORITY, four bits; 0: none or the drive's own.
    pub initial_command_priority: u8,
    /// MAXIMUM SENSE DATA LENGTH in bytes; 0: no limit.
    pub maximum_sense_length: u8,
}

impl ControlExtensionPage {
    /// SUBPAGE CODE.
    pub const SUBPAGE: u8 = 0x01;
    /// Bytes with the header.
    pub const LEN: usize = 32;

    /// Decodes the page at the front of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let page: &[u8; Self::LEN] = whole_of(ModePageCode::Control, Some(Self::SUBPAGE), bytes)?;
        Ok(Self {
            device_life_control: bit::<3>(page[4]),
            timestamp_changeable_outside: bit::<2>(page[4]),
            scsi_precedence: bit::<1>(page[4]),
            implicit_asymmetric_access: bit::<0>(page[4]),
            initial_command_priority: bits::<3, 0>(page[5]),
            maximum_sense_length: page[6],
        })
    }

    /// The 32 bytes on the wire.
    pub fn encode(&self, saveable: bool) -> [u8; 32] {
        let mut out: [u8; Self::LEN] = blank(ModePageCode::Control, Some(Self::SUBPAGE), saveable);
        out[4] = set_bit::<3>(self.device_life_control)
            | set_bit::<2>(self.timestamp_changeable_outside)
            | set_bit::<1>(self.scsi_precedence)
            | set_bit::<0>(self.implicit_asymmetric_access);
        out[5] = set_bits::<3, 0>(self.initial_command_priority);
        out[6] = self.maximum_sense_length;
        out
    }
}

impl fmt::Display for ControlExtensionPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (priority, sense) = (self.initial_command_priority, self.maximum_sense_length);
        write!(f, "initial priority {priority}, sense of {sense} bytes at most")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes() -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..7].copy_from_slice(&[0xca, 0x01, 0x00, 0x1c, 0x0d, 0x07, 0xfc]);
        bytes
    }

    #[test]
    fn literal_bytes_both_ways() {
        let page = ControlExtensionPage {
            device_life_control: true,
            timestamp_changeable_outside: true,
            scsi_precedence: false,
            implicit_asymmetric_access: true,
            initial_command_priority: 7,
            maximum_sense_length: 252,
        };
        assert_eq!(ControlExtensionPage::decode(&bytes()), Ok(page));
        assert_eq!(page.encode(true), bytes());
    }

    #[test]
    fn the_control_page_itself_is_another_kind() {
        let error = DecodeError::WrongKind { expected: 0x0a01, found: 0x0a00 };
        let control = [0x0a, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(ControlExtensionPage::decode(&control), Err(error));
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for got in 0..32 {
            let needed = if got < 2 {
                2
            } else if got < 4 {
                4
            } else {
                32
            };
            let error = DecodeError::Truncated { needed, got };
            assert_eq!(ControlExtensionPage::decode(&bytes()[..got]), Err(error));
        }
    }
}
