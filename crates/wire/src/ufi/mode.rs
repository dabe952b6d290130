//! Mode parameters of UFI (UFI 1.0 clause 4.5): a header of eight bytes, and pages.

use super::DiskFormat;
use super::head;
use crate::DecodeError;
use crate::scsi::layout::{bits, set_bits};

/// The header.
///
/// ```text
///  0..2   mode data length, of what follows      2      medium type code      3      write protected (7)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UfiModeHeader {
    /// MODE DATA LENGTH in bytes, without itself.
    pub length: u16,
    /// MEDIUM TYPE CODE; 0 without a disk.
    pub medium_type: u8,
    /// WP.
    pub write_protected: bool,
}

impl UfiModeHeader {
    /// Bytes of the header.
    pub const LEN: usize = 8;

    /// Decodes a header.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let &[l0, l1, medium_type, flags] = head::<4>(bytes)?;
        let length = u16::from_be_bytes([l0, l1]);
        Ok(Self { length, medium_type, write_protected: bits::<7, 7>(flags) == 1 })
    }

    /// The eight bytes on the wire.
    pub const fn encode(&self) -> [u8; 8] {
        let [l0, l1] = self.length.to_be_bytes();
        [l0, l1, self.medium_type, set_bits::<7, 7>(self.write_protected as u8), 0, 0, 0, 0]
    }
}

/// Flexible disk page, 05h (table 20).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlexibleDiskPage {
    /// The disk that it describes.
    pub format: DiskFormat,
}

impl FlexibleDiskPage {
    /// Bytes with the page header.
    pub const LEN: usize = 32;

    /// The 32 bytes on the wire.
    pub const fn encode(&self) -> [u8; 32] {
        let Self { format } = *self;
        let [t0, t1] = format.transfer_rate_kbit_s().to_be_bytes();
        let [b0, b1] = format.block_bytes().to_be_bytes();
        let [c0, c1] = format.cylinders().to_be_bytes();
        let [r0, r1] = format.rotation_rpm().to_be_bytes();
        let (heads, sectors) = (DiskFormat::HEADS, format.sectors());
        [
            0x05,
            0x1e,
            t0,
            t1,
            heads,
            sectors,
            b0,
            b1,
            c0,
            c1,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0, //
            MOTOR_ON_DELAY,
            MOTOR_OFF_DELAY,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            r0,
            r1,
            0,
            0,
        ]
    }
}

/// MOTOR ON DELAY in tenths of a second.
const MOTOR_ON_DELAY: u8 = 5;
/// MOTOR OFF DELAY in tenths of a second.
const MOTOR_OFF_DELAY: u8 = 30;

/// Which pages a MODE SENSE asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModePages {
    /// PAGE CODE.
    pub code: u8,
    /// PAGE CONTROL: 0 current, 1 changeable, 2 default, 3 saved.
    pub control: u8,
    /// PARAMETER LIST LENGTH in bytes.
    pub room: u16,
}

impl ModePages {
    /// Every page.
    pub const ALL: u8 = 0x3f;

    /// Decodes a command block of at least nine bytes.
    pub fn decode(block: &[u8]) -> Result<Self, DecodeError> {
        let &[_, _, page, _, _, _, _, l0, l1] = head::<9>(block)?;
        Ok(Self { code: bits::<5, 0>(page), control: bits::<7, 6>(page), room: u16::from_be_bytes([l0, l1]) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_both_ways() {
        let header = UfiModeHeader { length: 38, medium_type: 0x94, write_protected: true };
        let bytes = [0, 38, 0x94, 0x80, 0, 0, 0, 0];
        assert_eq!((header.encode(), UfiModeHeader::decode(&bytes)), (bytes, Ok(header)));
        assert!(UfiModeHeader::decode(&bytes[..3]).is_err());
    }

    #[test]
    fn the_flexible_disk_page_has_these_bytes() {
        let page = FlexibleDiskPage { format: DiskFormat::High1440 }.encode();
        assert_eq!(page[..10], [0x05, 0x1e, 0x01, 0xf4, 2, 18, 2, 0, 0, 80]);
        assert_eq!(page[28..], [0x01, 0x2c, 0, 0]);
    }

    #[test]
    fn a_command_block_names_its_pages() {
        let pages = ModePages::decode(&[0x5a, 0, 0xc5, 0, 0, 0, 0, 0, 192, 0, 0, 0]);
        assert_eq!(pages, Ok(ModePages { code: 5, control: 3, room: 192 }));
        assert!(ModePages::decode(&[0x5a; 8]).is_err());
    }
}
