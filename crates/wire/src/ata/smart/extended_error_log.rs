//! Extended comprehensive error log, log address 03h (ACS-4 clause 9.6): how many errors there were since the device was
//! made. Left out: the errors themselves, four to a page with 48-bit LBAs; their bytes are zero when written.

use crate::DecodeError;
use crate::ata::block::Block;
use core::fmt;

/// The first page of the log.
///
/// ```text
///  0       version (01h)                        500..502  errors since the device was made
///  2..4    number of the newest error, 0 none   511       checksum
///  4..500  4 errors of 124 bytes
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtendedErrorLog {
    /// Number of the newest error in the log; 0 if there is none.
    pub newest: u16,
    /// Errors since the device was made.
    pub error_count: u16,
}

impl ExtendedErrorLog {
    /// Bytes on the wire.
    pub const LEN: usize = 512;
    /// No error ever.
    pub const EMPTY: Self = Self { newest: 0, error_count: 0 };

    /// Decodes a page; bytes past [`Self::LEN`] are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let block = Block::decode_summed(bytes)?;
        Ok(Self {
            newest: u16::from_le_bytes(block.bytes::<2, 2>()),
            error_count: u16::from_le_bytes(block.bytes::<500, 2>()),
        })
    }

    /// The bytes of the page.
    pub fn encode(&self) -> [u8; 512] {
        let mut block = Block::zeroed();
        block.put::<0, 1>([1]);
        block.put::<2, 2>(self.newest.to_le_bytes());
        block.put::<500, 2>(self.error_count.to_le_bytes());
        block.summed()
    }
}

impl fmt::Display for ExtendedErrorLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "extended error log, {} errors", self.error_count)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    fn page() -> [u8; 512] {
        let mut bytes = [0; 512];
        (bytes[0], bytes[2], bytes[500], bytes[501], bytes[511]) = (1, 2, 3, 1, 0xf9);
        bytes
    }

    #[test]
    fn literal_bytes_both_ways() {
        let log = ExtendedErrorLog { newest: 2, error_count: 0x0103 };
        assert_eq!(ExtendedErrorLog::decode(&page()), Ok(log));
        assert_eq!(log.encode(), page());
        assert_eq!(log.to_string(), "extended error log, 259 errors");
    }

    #[test]
    fn an_empty_log_is_a_version_and_a_checksum() {
        let bytes = ExtendedErrorLog::EMPTY.encode();
        assert_eq!((bytes[0], &bytes[1..511], bytes[511]), (1, &[0; 510][..], 0xff));
    }

    #[test]
    fn a_wrong_checksum_and_every_truncated_length_are_reported() {
        let mut bytes = page();
        bytes[511] = 0;
        assert_eq!(
            ExtendedErrorLog::decode(&bytes),
            Err(DecodeError::Invalid { field: "checksum", value: 0 })
        );
        for got in 0..512 {
            let error = DecodeError::Truncated { needed: 512, got };
            assert_eq!(ExtendedErrorLog::decode(&page()[..got]), Err(error));
        }
    }
}
