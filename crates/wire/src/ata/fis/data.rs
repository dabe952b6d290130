//! Data and DMA Activate (Serial ATA 3.x clauses 10.5.12 and 10.5.8): four bytes each.
//!
//! After the four bytes of Data come up to 8192 bytes of it, a multiple of four; those are the caller's.

use super::{FisType, PORT, frame};
use crate::DecodeError;
use core::fmt;

/// Header of the Data FIS; the data follow it.
///
/// ```text
///  0  type (46h)      1  port (3:0)      2..4  reserved
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataFis {
    /// Port of a port multiplier, 0..=15.
    pub port: u8,
}

impl DataFis {
    /// Bytes on the wire, without the data.
    pub const LEN: usize = 4;
    /// Bytes of data in one frame.
    pub const DATA_LEN_MAX: usize = 8192;

    /// Decodes a frame; what follows is the data.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let [_, flags, ..] = frame::<4>(FisType::Data, bytes)?;
        Ok(Self { port: flags & PORT })
    }

    /// The bytes of the frame before the data.
    pub fn encode(&self) -> [u8; 4] {
        [FisType::Data.into(), self.port & PORT, 0, 0]
    }
}

impl fmt::Display for DataFis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        FisType::Data.fmt(f)
    }
}

/// The device is ready for the next frame of data of a DMA write.
///
/// ```text
///  0  type (39h)      1  port (3:0)      2..4  reserved
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaActivateFis {
    /// Port of a port multiplier, 0..=15.
    pub port: u8,
}

impl DmaActivateFis {
    /// Bytes on the wire.
    pub const LEN: usize = 4;

    /// Decodes a frame; bytes past [`Self::LEN`] are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let [_, flags, ..] = frame::<4>(FisType::DmaActivate, bytes)?;
        Ok(Self { port: flags & PORT })
    }

    /// The bytes of the frame.
    pub fn encode(&self) -> [u8; 4] {
        [FisType::DmaActivate.into(), self.port & PORT, 0, 0]
    }
}

impl fmt::Display for DmaActivateFis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        FisType::DmaActivate.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_bytes_both_ways() {
        assert_eq!(DataFis::decode(&[0x46, 0x03, 0, 0, 0xff]), Ok(DataFis { port: 3 }));
        assert_eq!(DataFis { port: 3 }.encode(), [0x46, 0x03, 0, 0]);
        assert_eq!(DmaActivateFis::decode(&[0x39, 0xf1, 0, 0]), Ok(DmaActivateFis { port: 1 }));
        assert_eq!(DmaActivateFis { port: 1 }.encode(), [0x39, 0x01, 0, 0]);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for got in 0..4 {
            let error = DecodeError::Truncated { needed: 4, got };
            assert_eq!(DataFis::decode(&[0x46; 4][..got]), Err(error));
            assert_eq!(DmaActivateFis::decode(&[0x39; 4][..got]), Err(error));
        }
    }

    #[test]
    fn another_type_is_another_kind() {
        let error = DecodeError::WrongKind { expected: 0x46, found: 0x39 };
        assert_eq!(DataFis::decode(&[0x39; 4]), Err(error));
        let error = DecodeError::WrongKind { expected: 0x39, found: 0x46 };
        assert_eq!(DmaActivateFis::decode(&[0x46; 4]), Err(error));
    }
}
