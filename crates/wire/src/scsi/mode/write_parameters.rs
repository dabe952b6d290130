//! Write parameters mode page, 05h (MMC-6 clause 7.3).
//!
//! Left out: what only a writer looks at; it decodes to nothing and encodes as zero.

use super::{ModePageCode, blank, whole_of};
use crate::DecodeError;
use crate::scsi::layout::{bits, set_bits};
use core::fmt;

/// How a disc would be written.
///
/// ```text
/// 2  write type (3:0)      3  multi-session (7:6), track mode (3:0)      4  data block type (3:0)
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteParametersPage {
    /// WRITE TYPE, four bits: 0 is packets.
    pub write_type: u8,
    /// MULTI-SESSION, two bits: 0 is that no session follows.
    pub multi_session: u8,
    /// TRACK MODE, four bits: 4 is data.
    pub track_mode: u8,
    /// DATA BLOCK TYPE, four bits: 8 is mode 1, 2048 bytes.
    pub data_block_type: u8,
}

impl WriteParametersPage {
    /// Bytes with the header.
    pub const LEN: usize = 52;

    /// Decodes the page at the front of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let page: &[u8; Self::LEN] = whole_of(ModePageCode::WriteParameters, None, bytes)?;
        Ok(Self {
            write_type: bits::<3, 0>(page[2]),
            multi_session: bits::<7, 6>(page[3]),
            track_mode: bits::<3, 0>(page[3]),
            data_block_type: bits::<3, 0>(page[4]),
        })
    }

    /// The 52 bytes on the wire.
    pub fn encode(&self, saveable: bool) -> [u8; 52] {
        let mut out: [u8; Self::LEN] = blank(ModePageCode::WriteParameters, None, saveable);
        out[2] = set_bits::<3, 0>(self.write_type);
        out[3] = set_bits::<7, 6>(self.multi_session) | set_bits::<3, 0>(self.track_mode);
        out[4] = set_bits::<3, 0>(self.data_block_type);
        out
    }
}

impl fmt::Display for WriteParametersPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "write type {}, track mode {}", self.write_type, self.track_mode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_bytes_both_ways() {
        let mut bytes = [0; 52];
        bytes[..5].copy_from_slice(&[0x05, 0x32, 0x02, 0xc4, 0x08]);
        let page = WriteParametersPage { write_type: 2, multi_session: 3, track_mode: 4, data_block_type: 8 };
        assert_eq!(WriteParametersPage::decode(&bytes), Ok(page));
        assert_eq!(page.encode(false), bytes);
        assert!(WriteParametersPage::decode(&bytes[..51]).is_err());
    }
}
