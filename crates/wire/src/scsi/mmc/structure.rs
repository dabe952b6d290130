//! READ DISC STRUCTURE data (MMC-6 clause 6.22): the header, the list of structures, the physical format of a DVD.
//!
//! ```text
//! header  0..2  data length (bytes that follow)
//! entry   0     format code    1  SDS (7), RDS (6)    2..4  structure length
//! ```

use super::head;
use crate::DecodeError;
use crate::scsi::layout::{be16, bit, bits, part, set_bit, set_bits};
use core::fmt;

code! {
    /// FORMAT of READ DISC STRUCTURE.
    pub enum StructureFormat: u8 {
        /// Layers, size and addresses of a DVD; disc information of a BD.
        Physical = 0x00 => "physical format",
        /// Copy protection of a DVD.
        Copyright = 0x01 => "copyright",
        /// Burst cutting area.
        BurstCuttingArea = 0x03 => "burst cutting area",
        /// Data of the maker.
        Manufacturing = 0x04 => "manufacturing",
        /// The structures that there are.
        List = 0xff => "list of structures",
    }
}

/// Disc structure header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StructureHeader {
    /// DISC STRUCTURE DATA LENGTH: bytes that follow the field.
    pub data_length: u16,
}

/// Entry of the list of structures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StructureEntry {
    /// Which structure.
    pub format: StructureFormat,
    /// SEND DISC STRUCTURE can send it.
    #[doc(alias = "SDS")]
    pub sendable: bool,
    /// READ DISC STRUCTURE can read it.
    #[doc(alias = "RDS")]
    pub readable: bool,
    /// Bytes of it, with the header.
    pub structure_length: u16,
}

/// Physical format of a DVD, the 17 bytes that have a meaning.
///
/// ```text
///  0  disc category (7:4), part version (3:0)     4..8    start of the data area
///  1  disc size (7:4), maximum rate (3:0)         8..12   end of the data area
///  2  layers - 1 (6:5), track path (4),           12..16  end of the data area in layer 0
///     layer type (3:0)                            16      BCA (7)
///  3  linear density (7:4), track density (3:0)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DvdPhysicalFormat {
    /// DISC CATEGORY, four bits: 0 is DVD-ROM.
    pub category: u8,
    /// PART VERSION, four bits.
    pub version: u8,
    /// DISC SIZE, four bits: 0 is 120 mm.
    pub size: u8,
    /// MAXIMUM RATE, four bits: 15 is not specified.
    pub maximum_rate: u8,
    /// NUMBER OF LAYERS, two bits: 0 is one.
    pub layers: u8,
    /// TRACK PATH: the layers are read in opposite directions.
    pub opposite_track_path: bool,
    /// LAYER TYPE, four bits: 1 is embossed data.
    pub layer_type: u8,
    /// First physical sector of the data area.
    pub data_start: u32,
    /// Last physical sector of the data area.
    pub data_end: u32,
    /// Last physical sector of the data area in layer 0; 0 with one layer.
    pub layer_0_end: u32,
}

impl StructureHeader {
    /// Bytes on the wire.
    pub const LEN: usize = 4;

    /// Decodes the first four bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let whole: &[u8; Self::LEN] = head(bytes)?;
        Ok(Self { data_length: be16::<0, _>(whole) })
    }

    /// The four bytes on the wire.
    pub const fn encode(&self) -> [u8; 4] {
        let [high, low] = self.data_length.to_be_bytes();
        [high, low, 0, 0]
    }
}

impl fmt::Display for StructureHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.data_length)
    }
}

impl StructureEntry {
    /// Bytes on the wire.
    pub const LEN: usize = 4;

    /// Decodes the first four bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let whole: &[u8; Self::LEN] = head(bytes)?;
        Ok(Self {
            format: whole[0].into(),
            sendable: bit::<7>(whole[1]),
            readable: bit::<6>(whole[1]),
            structure_length: be16::<2, _>(whole),
        })
    }

    /// The four bytes on the wire.
    pub fn encode(&self) -> [u8; 4] {
        let [high, low] = self.structure_length.to_be_bytes();
        let flags = set_bit::<7>(self.sendable) | set_bit::<6>(self.readable);
        [self.format.into(), flags, high, low]
    }
}

impl fmt::Display for StructureEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} bytes", self.format, self.structure_length)
    }
}

impl DvdPhysicalFormat {
    /// Bytes that have a meaning.
    pub const LEN: usize = 17;

    /// Decodes the first 17 bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let whole: &[u8; Self::LEN] = head(bytes)?;
        let sector = |[_, high, middle, low]: [u8; 4]| u32::from_be_bytes([0, high, middle, low]);
        Ok(Self {
            category: bits::<7, 4>(whole[0]),
            version: bits::<3, 0>(whole[0]),
            size: bits::<7, 4>(whole[1]),
            maximum_rate: bits::<3, 0>(whole[1]),
            layers: bits::<6, 5>(whole[2]),
            opposite_track_path: bit::<4>(whole[2]),
            layer_type: bits::<3, 0>(whole[2]),
            data_start: sector(part::<4, 4, _>(whole)),
            data_end: sector(part::<8, 4, _>(whole)),
            layer_0_end: sector(part::<12, 4, _>(whole)),
        })
    }

    /// The 17 bytes on the wire. Sector numbers have three bytes; what does not fit is cut off.
    pub fn encode(&self) -> [u8; 17] {
        let sector = |number: u32| {
            let [_, high, middle, low] = number.to_be_bytes();
            [0, high, middle, low]
        };
        let mut out = [0; Self::LEN];
        out[0] = set_bits::<7, 4>(self.category) | set_bits::<3, 0>(self.version);
        out[1] = set_bits::<7, 4>(self.size) | set_bits::<3, 0>(self.maximum_rate);
        out[2] = set_bits::<6, 5>(self.layers)
            | set_bit::<4>(self.opposite_track_path)
            | set_bits::<3, 0>(self.layer_type);
        out[4..8].copy_from_slice(&sector(self.data_start));
        out[8..12].copy_from_slice(&sector(self.data_end));
        out[12..16].copy_from_slice(&sector(self.layer_0_end));
        out
    }
}

impl fmt::Display for DvdPhysicalFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} layers, sectors {:#x} to {:#x}", self.layers + 1, self.data_start, self.data_end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_bytes_both_ways() {
        let bytes = [0x01, 0x0f, 0x31, 0, 0, 3, 0, 0, 0, 0xfc, 0xff, 0xfe, 0, 0x1b, 0, 0xff, 0];
        let format = DvdPhysicalFormat {
            category: 0,
            version: 1,
            size: 0,
            maximum_rate: 15,
            layers: 1,
            opposite_track_path: true,
            layer_type: 1,
            data_start: 0x03_0000,
            data_end: 0xfc_fffe,
            layer_0_end: 0x1b_00ff,
        };
        assert_eq!(DvdPhysicalFormat::decode(&bytes), Ok(format));
        assert_eq!(format.encode(), bytes);
        let entry = StructureEntry {
            format: StructureFormat::List,
            sendable: false,
            readable: true,
            structure_length: 0x0804,
        };
        assert_eq!(entry.encode(), [0xff, 0x40, 0x08, 0x04]);
        assert_eq!(StructureEntry::decode(&[0xff, 0x40, 0x08, 0x04]), Ok(entry));
        assert_eq!(StructureHeader { data_length: 2050 }.encode(), [0x08, 0x02, 0, 0]);
        assert_eq!(StructureHeader::decode(&[8, 2, 0, 0]), Ok(StructureHeader { data_length: 2050 }));
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for got in 0..17 {
            let bytes = &[0; 17][..got];
            assert_eq!(DvdPhysicalFormat::decode(bytes), Err(DecodeError::Truncated { needed: 17, got }));
            assert_eq!(StructureEntry::decode(bytes).is_err(), got < 4);
            assert_eq!(StructureHeader::decode(bytes).is_err(), got < 4);
        }
    }
}
