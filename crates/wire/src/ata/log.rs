//! Log addresses and the log directory (ACS-4 clauses 9.2 and 9.1).
//!
//! SMART READ LOG and READ LOG EXT return the same directory at address 0: a word for each address, the
//! number of pages there. SMART logs have at most 255 pages, so their upper byte is 0.

use crate::{DecodeError, Reader};
use core::fmt;

code! {
    /// Address of a log.
    pub enum LogAddress: u8 {
        /// Which logs there are.
        Directory = 0x00 => "log directory",
        /// The last five errors, SMART.
        SummaryError = 0x01 => "summary error log",
        /// More errors, SMART.
        ComprehensiveError = 0x02 => "comprehensive error log",
        /// More errors with 48-bit LBAs, general purpose.
        ExtendedComprehensiveError = 0x03 => "extended comprehensive error log",
        /// Counters of the device.
        DeviceStatistics = 0x04 => "device statistics",
        /// Self-test results, SMART.
        SelfTest = 0x06 => "self-test log",
        /// Self-test results with 48-bit LBAs, general purpose.
        ExtendedSelfTest = 0x07 => "extended self-test log",
        /// Spans of the selective self-test, SMART.
        SelectiveSelfTest = 0x09 => "selective self-test log",
        /// Which queued command failed, general purpose.
        NcqCommandError = 0x10 => "NCQ command error log",
        /// Counters of the link, general purpose.
        SataPhyEvents = 0x11 => "SATA phy event counters",
        /// IDENTIFY DEVICE in pages.
        IdentifyDevice = 0x30 => "IDENTIFY DEVICE data log",
    }
}

/// How many pages of 512 bytes each log has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogDirectory {
    version: u16,
    /// By address; the place of address 0 is unused.
    pages: [u16; 256],
}

impl LogDirectory {
    /// Bytes on the wire.
    pub const LEN: usize = 512;
    /// A directory (version 1) without logs.
    pub const EMPTY: Self = Self { version: 1, pages: [0; 256] };

    /// The version; 0 in a SMART directory says that each log has one page at most.
    pub const fn version(&self) -> u16 {
        self.version
    }

    /// Pages of a log, 0 if it does not exist. The directory itself has one.
    pub fn pages(&self, address: LogAddress) -> u16 {
        match u8::from(address) {
            0 => 1,
            address => self.pages.get(usize::from(address)).copied().unwrap_or(0),
        }
    }

    /// The directory with so many pages at an address; the directory's own page always exists.
    #[must_use]
    pub fn with(mut self, address: LogAddress, pages: u16) -> Self {
        let index = usize::from(u8::from(address));
        if let Some(place) = self.pages.get_mut(index).filter(|_| index != 0) {
            *place = pages;
        }
        self
    }

    /// The logs that exist, with their pages, without the directory itself.
    pub fn logs(&self) -> impl Iterator<Item = (LogAddress, u16)> {
        let places = (0..=u8::MAX).zip(self.pages).skip(1);
        places.filter(|(_, pages)| *pages != 0).map(|(address, pages)| (address.into(), pages))
    }

    /// Decodes a directory; bytes past [`Self::LEN`] are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let words = bytes.get(..Self::LEN);
        let words = words.ok_or(DecodeError::Truncated { needed: Self::LEN, got: bytes.len() })?;
        let mut reader = Reader::new(words);
        let version = reader.le16()?;
        let mut pages = [0; 256];
        for place in pages.iter_mut().skip(1) {
            *place = reader.le16()?;
        }
        Ok(Self { version, pages })
    }

    /// The bytes of the directory.
    pub fn encode(&self) -> [u8; 512] {
        let mut bytes = [0; Self::LEN];
        let words = core::iter::once(self.version).chain(self.pages.into_iter().skip(1));
        for (place, byte) in bytes.iter_mut().zip(words.flat_map(u16::to_le_bytes)) {
            *place = byte;
        }
        bytes
    }
}

impl fmt::Display for LogDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("log directory")?;
        for (address, pages) in self.logs() {
            write!(f, ", {:#04x} {pages} pages", u8::from(address))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    #[test]
    fn literal_bytes_both_ways() {
        let mut bytes = [0; 512];
        (bytes[0], bytes[2], bytes[12], bytes[0x61]) = (1, 1, 1, 2);
        let directory = LogDirectory::decode(&bytes).unwrap();
        assert_eq!(directory.version(), 1);
        assert_eq!(directory.pages(LogAddress::SummaryError), 1);
        assert_eq!(directory.pages(LogAddress::IdentifyDevice), 512);
        assert_eq!(directory.pages(LogAddress::SelectiveSelfTest), 0);
        assert_eq!(directory.encode(), bytes);
        assert_eq!(directory.to_string(), "log directory, 0x01 1 pages, 0x06 1 pages, 0x30 512 pages");
    }

    #[test]
    fn the_directory_is_a_log_of_one_page() {
        let directory = LogDirectory::EMPTY.with(LogAddress::Directory, 7);
        assert_eq!(directory.pages(LogAddress::Directory), 1);
        assert_eq!(directory.logs().count(), 0);
        assert_eq!(directory.encode()[..4], [1, 0, 0, 0]);
    }

    #[test]
    fn the_last_address_is_the_last_word() {
        let bytes = LogDirectory::EMPTY.with(LogAddress::from(0xff), 0x0102).encode();
        assert_eq!(bytes[510..], [2, 1]);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for got in 0..512 {
            let error = LogDirectory::decode(&[0; 512][..got]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 512, got });
        }
    }

    proptest! {
        #[test]
        fn encode_undoes_decode(bytes in prop::collection::vec(any::<u8>(), 512)) {
            let again = LogDirectory::decode(&bytes).unwrap().encode();
            prop_assert_eq!(&again[..], &bytes[..]);
        }
    }
}
