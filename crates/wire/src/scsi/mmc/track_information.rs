//! READ TRACK INFORMATION data (MMC-6 clause 6.26), as far as CDs have it.

use super::head;
use crate::DecodeError;
use crate::scsi::layout::{be16, be32, bit, bits, set_bit, set_bits};
use core::fmt;

/// Track information block.
///
/// ```text
///  0..2   data length (34)            12..16  next writable address
///  2      track, low byte             16..20  free blocks
///  3      session, low byte           20..24  fixed packet size
///  5      damage (5), copy (4),       24..28  track size in blocks
///         track mode (3:0)            28..32  last recorded address
///  6      RT (7), blank (6), packet   32      track, high byte
///         (5), FP (4), data mode (3:0) 33     session, high byte
///  7      LRA_V (1), NWA_V (0)         8..12  start
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackInformation {
    /// The track.
    pub track: u16,
    /// Its session.
    pub session: u16,
    /// It is damaged.
    pub damage: bool,
    /// It is a second or higher generation copy.
    pub copy: bool,
    /// TRACK MODE, four bits: CONTROL of the Q subchannel; 4 is data.
    pub track_mode: u8,
    /// Nothing is written in it.
    pub blank: bool,
    /// DATA MODE, four bits: 1 is mode 1.
    pub data_mode: u8,
    /// Where it begins.
    pub start: u32,
    /// Blocks that it has.
    pub blocks: u32,
}

impl TrackInformation {
    /// Bytes on the wire.
    pub const LEN: usize = 36;

    /// Decodes the first 36 bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let whole: &[u8; Self::LEN] = head(bytes)?;
        let length = be16::<0, _>(whole);
        if usize::from(length) < Self::LEN - 2 {
            return Err(DecodeError::Invalid { field: "TRACK INFORMATION LENGTH", value: length.into() });
        }
        Ok(Self {
            track: u16::from_be_bytes([whole[32], whole[2]]),
            session: u16::from_be_bytes([whole[33], whole[3]]),
            damage: bit::<5>(whole[5]),
            copy: bit::<4>(whole[5]),
            track_mode: bits::<3, 0>(whole[5]),
            blank: bit::<6>(whole[6]),
            data_mode: bits::<3, 0>(whole[6]),
            start: be32::<8, _>(whole),
            blocks: be32::<24, _>(whole),
        })
    }

    /// The 36 bytes on the wire.
    pub fn encode(&self) -> [u8; 36] {
        let mut out = [0; Self::LEN];
        out[1] = 34;
        [out[32], out[2]] = self.track.to_be_bytes();
        [out[33], out[3]] = self.session.to_be_bytes();
        out[5] = set_bit::<5>(self.damage) | set_bit::<4>(self.copy) | set_bits::<3, 0>(self.track_mode);
        out[6] = set_bit::<6>(self.blank) | set_bits::<3, 0>(self.data_mode);
        out[8..12].copy_from_slice(&self.start.to_be_bytes());
        out[24..28].copy_from_slice(&self.blocks.to_be_bytes());
        out
    }
}

impl fmt::Display for TrackInformation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "track {} of session {}, LBA {}+{}", self.track, self.session, self.start, self.blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_track_both_ways() {
        let mut bytes = [0; 36];
        bytes[..8].copy_from_slice(&[0, 34, 1, 1, 0, 0x04, 0x01, 0]);
        bytes[24..28].copy_from_slice(&[0, 5, 0x7d, 0xa9]);
        let track = TrackInformation {
            track: 1,
            session: 1,
            damage: false,
            copy: false,
            track_mode: 4,
            blank: false,
            data_mode: 1,
            start: 0,
            blocks: 359_849,
        };
        assert_eq!(TrackInformation::decode(&bytes), Ok(track));
        assert_eq!(track.encode(), bytes);
    }

    #[test]
    fn other_and_truncated_lengths_are_errors() {
        for got in 0..36 {
            let error = DecodeError::Truncated { needed: 36, got };
            assert_eq!(TrackInformation::decode(&[0; 36][..got]), Err(error));
        }
        let error = DecodeError::Invalid { field: "TRACK INFORMATION LENGTH", value: 0 };
        assert_eq!(TrackInformation::decode(&[0; 36]), Err(error));
    }
}
