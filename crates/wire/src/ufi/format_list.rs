//! FORMAT UNIT and its parameter list (UFI 1.0 clause 4.2).

use super::head;
use crate::DecodeError;
use crate::scsi::layout::bits;

/// The command block.
///
/// ```text
///  0      04h                                     2      track number
///  1      LUN (7:5), FmtData (4), CmpList (3),    7..9   parameter list length
///         defect list format (2:0)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatUnit {
    /// FmtData: a parameter list follows, as UFI requires.
    pub format_data: bool,
    /// DEFECT LIST FORMAT: 7 alone is defined.
    pub defect_list_format: u8,
    /// TRACK NUMBER: the cylinder of a single track.
    pub track: u8,
    /// PARAMETER LIST LENGTH in bytes.
    pub parameter_list_len: u16,
}

impl FormatUnit {
    /// Decodes a command block of at least nine bytes.
    pub fn decode(block: &[u8]) -> Result<Self, DecodeError> {
        let &[_, flags, track, _, _, _, _, l0, l1] = head::<9>(block)?;
        Ok(Self {
            format_data: bits::<4, 4>(flags) == 1,
            defect_list_format: bits::<2, 0>(flags),
            track,
            parameter_list_len: u16::from_be_bytes([l0, l1]),
        })
    }
}

/// The parameter list: a defect list header and one format descriptor.
///
/// ```text
///  1      FOV (7), extend (6), DCRT (5), single track (4), immediate (1), side (0)
///  2..4   length of the descriptor (8)
///  4..8   number of blocks         9..12  block length
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatTrack {
    /// SINGLE TRACK: one side of one cylinder alone.
    pub single_track: bool,
    /// SIDE of a single track, 0 or 1.
    pub side: u8,
    /// NUMBER OF BLOCKS of the disk.
    pub blocks: u32,
    /// BLOCK LENGTH in bytes.
    pub block_length: u32,
}

impl FormatTrack {
    /// Bytes of the list.
    pub const LEN: usize = 12;

    /// Decodes a list.
    ///
    /// # Errors
    /// It is too short, or the length of its descriptor is not 8.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let &[_, flags, d0, d1, b0, b1, b2, b3, _, l0, l1, l2] = head::<12>(bytes)?;
        let length = u16::from_be_bytes([d0, d1]);
        if length != 8 {
            return Err(DecodeError::Invalid { field: "DEFECT LIST LENGTH", value: length.into() });
        }
        Ok(Self {
            single_track: bits::<4, 4>(flags) == 1,
            side: bits::<0, 0>(flags),
            blocks: u32::from_be_bytes([b0, b1, b2, b3]),
            block_length: u32::from_be_bytes([0, l0, l1, l2]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: [u8; 12] = [0, 0xb1, 0, 8, 0, 0, 0x0b, 0x40, 0, 0, 2, 0];

    #[test]
    fn literal_bytes() {
        let block = FormatUnit::decode(&[0x04, 0x17, 79, 0, 0, 0, 0, 0, 12, 0, 0, 0]).unwrap();
        let expected =
            FormatUnit { format_data: true, defect_list_format: 7, track: 79, parameter_list_len: 12 };
        assert_eq!(block, expected);
        let list = FormatTrack { single_track: true, side: 1, blocks: 2880, block_length: 512 };
        assert_eq!(FormatTrack::decode(&LIST), Ok(list));
    }

    #[test]
    fn short_lists_and_other_lengths_are_errors() {
        for len in 0..12 {
            assert!(FormatTrack::decode(&LIST[..len]).is_err());
        }
        for len in 0..9 {
            assert!(FormatUnit::decode(&[0x04; 12][..len]).is_err());
        }
        let mut other = LIST;
        other[3] = 0;
        assert!(matches!(FormatTrack::decode(&other), Err(DecodeError::Invalid { .. })));
    }
}
