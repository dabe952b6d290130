//! Set Device Bits (Serial ATA 3.x clause 10.5.7).

use super::{FisType, INTERRUPT, PORT, flag, frame};
use crate::DecodeError;
use crate::ata::{AtaError, AtaStatus};
use core::fmt;

/// Queued commands are finished, or something happened.
///
/// ```text
///  0  type (A1h)                  3     error
///  1  N (7), I (6), port (3:0)    4..8  SActive: a bit for each tag that is finished
///  2  status (6:4, 2:0)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetDeviceBitsFis {
    /// Port of a port multiplier, 0..=15.
    pub port: u8,
    /// Whether this is an asynchronous notification.
    pub notification: bool,
    /// Whether the host is interrupted.
    pub interrupt: bool,
    /// Bits 6:4 and 2:0 of the status register; BSY and DRQ are not in it.
    pub status: AtaStatus,
    /// The error register.
    pub error: AtaError,
    /// A bit for each tag that is finished.
    pub finished_tags: u32,
}

/// The status bits that travel.
const STATUS: u8 = 0x77;

impl SetDeviceBitsFis {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// Decodes a frame; bytes past [`Self::LEN`] are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let [_, flags, status, error, tags @ ..] = frame::<8>(FisType::SetDeviceBits, bytes)?;
        Ok(Self {
            port: flags & PORT,
            notification: flags & 0x80 != 0,
            interrupt: flags & INTERRUPT != 0,
            status: (status & STATUS).into(),
            error: error.into(),
            finished_tags: u32::from_le_bytes(tags),
        })
    }

    /// The bytes of the frame.
    pub fn encode(&self) -> [u8; 8] {
        let flags = flag(self.notification, 0x80) | flag(self.interrupt, INTERRUPT) | self.port & PORT;
        let status = u8::from(self.status) & STATUS;
        let [t0, t1, t2, t3] = self.finished_tags.to_le_bytes();
        [FisType::SetDeviceBits.into(), flags, status, self.error.into(), t0, t1, t2, t3]
    }
}

impl fmt::Display for SetDeviceBitsFis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, error, finished_tags, .. } = self;
        write!(f, "{}, status {status}, error {error}, tags {finished_tags:#010x}", FisType::SetDeviceBits)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    const BITS: [u8; 8] = [0xa1, 0xc5, 0x41, 0x04, 0x08, 0x00, 0x00, 0x80];

    #[test]
    fn literal_bytes_both_ways() {
        let fis = SetDeviceBitsFis::decode(&BITS).unwrap();
        let expected = SetDeviceBitsFis {
            port: 5,
            notification: true,
            interrupt: true,
            status: AtaStatus::READY.with(AtaStatus::ERROR),
            error: AtaError::ABORTED,
            finished_tags: 0x8000_0008,
        };
        assert_eq!(fis, expected);
        assert_eq!(fis.encode(), BITS);
        assert_eq!(fis.to_string(), "Set Device Bits, status DRDY ERR, error ABRT, tags 0x80000008");
    }

    #[test]
    fn busy_and_data_request_do_not_travel() {
        let fis = SetDeviceBitsFis::decode(&[0xa1, 0, 0xff, 0, 0, 0, 0, 0]).unwrap();
        assert_eq!(u8::from(fis.status), 0x77);
        let all = SetDeviceBitsFis { status: AtaStatus::from(0xff), ..fis };
        assert_eq!(all.encode()[2], 0x77);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for got in 0..8 {
            let error = SetDeviceBitsFis::decode(&BITS[..got]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 8, got });
        }
    }

    #[test]
    fn another_type_is_another_kind() {
        let error = DecodeError::WrongKind { expected: 0xa1, found: 0 };
        assert_eq!(SetDeviceBitsFis::decode(&[0; 8]), Err(error));
    }

    proptest! {
        #[test]
        fn encode_undoes_decode(flags: u8, status: u8, error: u8, tags: [u8; 4]) {
            let head = [0xa1, flags & 0xcf, status & 0x77, error];
            let bytes: std::vec::Vec<u8> = [head, tags].concat();
            prop_assert_eq!(&SetDeviceBitsFis::decode(&bytes).unwrap().encode()[..], &bytes[..]);
        }
    }
}
