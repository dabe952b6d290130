//! Device statistics log, log address 04h: the list of pages and the general statistics page (ACS-4 clause 9.5).
//!
//! A page is 64 words of eight bytes: a header, then statistics, each with flags that say whether it is there and
//! whether it holds. Left out: pages other than these two, and the flags of normalised values and of monitoring.
//!
//! Always true: a statistic has 48 bits, and one that is not there is zero.

use super::LBA_MASK;
use super::block::Block;
use crate::DecodeError;
use core::fmt;

/// Page 01h.
///
/// ```text
///  0..8   header: page number in byte 2, revision (0001h) in bytes 0..2
///  8..16  power-on resets        32..40  write commands
/// 16..24  power-on hours         40..48  sectors read
/// 24..32  sectors written        48..56  read commands
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GeneralStatistics {
    /// Times that power came, 32 bits.
    pub power_on_resets: Option<u64>,
    /// Hours with power, 32 bits.
    pub power_on_hours: Option<u64>,
    /// Logical sectors that hosts wrote.
    pub sectors_written: Option<u64>,
    /// Write commands that ended.
    pub write_commands: Option<u64>,
    /// Logical sectors that hosts read.
    pub sectors_read: Option<u64>,
    /// Read commands that ended.
    pub read_commands: Option<u64>,
}

impl GeneralStatistics {
    /// Bytes on the wire.
    pub const LEN: usize = 512;
    /// Its page number.
    pub const PAGE: u8 = 0x01;

    /// Page 00h: which pages the log has, itself and this one.
    pub const fn page_list() -> [u8; 512] {
        let mut out = [0; Self::LEN];
        if let Some(head) = out.first_chunk_mut() {
            *head = [REVISION, 0, 0, 0, 0, 0, 0, 0, 2, 0x00, Self::PAGE];
        }
        out
    }

    /// Decodes a page; bytes past [`Self::LEN`] are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let block = Block::decode(bytes)?;
        let found = block.u8::<2>();
        if found != Self::PAGE {
            return Err(DecodeError::WrongKind { expected: Self::PAGE.into(), found: found.into() });
        }
        Ok(Self {
            power_on_resets: statistic(block.bytes::<8, 8>()),
            power_on_hours: statistic(block.bytes::<16, 8>()),
            sectors_written: statistic(block.bytes::<24, 8>()),
            write_commands: statistic(block.bytes::<32, 8>()),
            sectors_read: statistic(block.bytes::<40, 8>()),
            read_commands: statistic(block.bytes::<48, 8>()),
        })
    }

    /// The bytes of the page.
    pub fn encode(&self) -> [u8; 512] {
        let mut block = Block::zeroed();
        block.put::<0, 3>([REVISION, 0, Self::PAGE]);
        block.put::<8, 8>(word(self.power_on_resets));
        block.put::<16, 8>(word(self.power_on_hours));
        block.put::<24, 8>(word(self.sectors_written));
        block.put::<32, 8>(word(self.write_commands));
        block.put::<40, 8>(word(self.sectors_read));
        block.put::<48, 8>(word(self.read_commands));
        block.0
    }
}

const REVISION: u8 = 1;
/// Bits 63 and 62 of a statistic: it is supported, and it holds.
const SUPPORTED_AND_VALID: u64 = 0xc000_0000_0000_0000;

fn statistic(word: [u8; 8]) -> Option<u64> {
    let word = u64::from_le_bytes(word);
    (word & SUPPORTED_AND_VALID == SUPPORTED_AND_VALID).then_some(word & LBA_MASK)
}

/// A value past 48 bits stays at their end.
fn word(statistic: Option<u64>) -> [u8; 8] {
    statistic.map_or([0; 8], |value| (value.min(LBA_MASK) | SUPPORTED_AND_VALID).to_le_bytes())
}

impl fmt::Display for GeneralStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("general statistics")?;
        let counts = [(self.sectors_read, "sectors read"), (self.sectors_written, "sectors written")];
        for (count, what) in counts.into_iter().filter_map(|(count, what)| Some((count?, what))) {
            write!(f, ", {count} {what}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    const PAGE: GeneralStatistics = GeneralStatistics {
        power_on_resets: Some(3),
        power_on_hours: None,
        sectors_written: Some(0x0605_0403_0201),
        write_commands: Some(4),
        sectors_read: Some(0),
        read_commands: Some(u64::MAX),
    };

    fn bytes() -> [u8; 512] {
        let mut bytes = [0; 512];
        bytes[..3].copy_from_slice(&[1, 0, 1]);
        bytes[8..16].copy_from_slice(&[3, 0, 0, 0, 0, 0, 0, 0xc0]);
        bytes[24..32].copy_from_slice(&[1, 2, 3, 4, 5, 6, 0, 0xc0]);
        bytes[32..40].copy_from_slice(&[4, 0, 0, 0, 0, 0, 0, 0xc0]);
        bytes[40..48].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0xc0]);
        bytes[48..56].copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0xc0]);
        bytes
    }

    #[test]
    fn literal_bytes_both_ways() {
        assert_eq!(PAGE.encode(), bytes());
        let cut = GeneralStatistics { read_commands: Some(0xffff_ffff_ffff), ..PAGE };
        assert_eq!(GeneralStatistics::decode(&bytes()), Ok(cut));
        assert_eq!(PAGE.to_string(), "general statistics, 0 sectors read, 6618611909121 sectors written");
    }

    #[test]
    fn a_statistic_that_does_not_hold_is_none() {
        let mut bytes = bytes();
        bytes[15] = 0x80;
        assert_eq!(GeneralStatistics::decode(&bytes).unwrap().power_on_resets, None);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for got in 0..512 {
            let error = GeneralStatistics::decode(&bytes()[..got]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 512, got });
        }
    }

    #[test]
    fn another_page_is_another_kind() {
        let error = DecodeError::WrongKind { expected: 1, found: 0 };
        assert_eq!(GeneralStatistics::decode(&GeneralStatistics::page_list()), Err(error));
    }

    #[test]
    fn the_list_of_pages_names_both() {
        let list = GeneralStatistics::page_list();
        assert_eq!(list[..12], [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0]);
    }
}
