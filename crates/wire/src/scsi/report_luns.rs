//! REPORT LUNS parameter data (SPC-5, REPORT LUNS command).
//!
//! ```text
//!  0..4   LUN list length in bytes, of the whole list even where the allocation length cut it
//!  4..8   reserved
//!  8..    eight bytes per logical unit number
//! ```
//! [`super::lun`] defines the meaning of the eight bytes of a number; here they are bytes.

use crate::{DecodeError, NoRoom, Reader, Writer};
use core::fmt;

/// The logical unit numbers of a target, or as many of them as there was room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LunList<'a> {
    /// LUN LIST LENGTH: bytes of the whole list.
    pub list_length: u32,
    /// The numbers that are here, each eight bytes.
    pub luns: &'a [[u8; 8]],
}

impl<'a> LunList<'a> {
    /// Bytes before the first number.
    pub const HEADER_LEN: usize = 8;

    /// The whole list of `luns`.
    pub fn new(luns: &'a [[u8; 8]]) -> Self {
        Self { list_length: u32::try_from(luns.len().saturating_mul(8)).unwrap_or(!7), luns }
    }

    /// Decodes a list, whole or cut; half a number at the cut is not counted.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let list_length = reader.be32()?;
        reader.be32()?;
        if list_length % 8 != 0 {
            return Err(DecodeError::Invalid { field: "LUN LIST LENGTH", value: list_length.into() });
        }
        let said = usize::try_from(list_length).unwrap_or(usize::MAX);
        let list = reader.rest().get(..said).unwrap_or(reader.rest());
        Ok(Self { list_length, luns: list.as_chunks().0 })
    }

    /// Whether every number of the list is here.
    pub fn is_whole(&self) -> bool {
        usize::try_from(self.list_length).is_ok_and(|length| length == self.luns.len() * 8)
    }

    /// Writes header and numbers; the answer is the bytes written.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out);
        writer.be32(self.list_length)?;
        writer.zeroes(4)?;
        writer.put(self.luns.as_flattened())?;
        Ok(writer.written())
    }
}

impl fmt::Display for LunList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} logical unit numbers", self.luns.len(), self.list_length / 8)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    /// LUN 0 and LUN 1.
    const TWO: [u8; 24] = [0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];

    #[test]
    fn literal_bytes_both_ways() {
        let luns = [[0; 8], [0, 1, 0, 0, 0, 0, 0, 0]];
        let list = LunList::decode(&TWO).unwrap();
        assert_eq!(list, LunList::new(&luns));
        assert!(list.is_whole());
        let mut out = [0xff; 30];
        assert_eq!(list.encode(&mut out), Ok(24));
        assert_eq!(out[..24], TWO);
        assert_eq!(list.to_string(), "2 of 2 logical unit numbers");
    }

    #[test]
    fn a_cut_list_still_reports_its_whole_length() {
        for len in 0..8 {
            assert!(matches!(LunList::decode(&TWO[..len]), Err(DecodeError::Truncated { .. })));
        }
        for (len, here) in [(8, 0), (15, 0), (16, 1), (23, 1)] {
            let list = LunList::decode(&TWO[..len]).unwrap();
            assert_eq!((list.list_length, list.luns.len()), (16, here));
            assert!(!list.is_whole());
        }
    }

    #[test]
    fn a_length_in_between_is_invalid() {
        let error = DecodeError::Invalid { field: "LUN LIST LENGTH", value: 9 };
        assert_eq!(LunList::decode(&[0, 0, 0, 9, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), Err(error));
    }

    #[test]
    fn a_full_buffer_is_an_error() {
        let list = LunList::decode(&TWO).unwrap();
        assert_eq!(list.encode(&mut [0; 23]), Err(NoRoom { needed: 24, got: 23 }));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_say_why(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = LunList::decode(&bytes);
        }

        #[test]
        fn decode_undoes_encode(luns in prop::collection::vec(any::<[u8; 8]>(), 0..20)) {
            let mut out = [0; 8 + 20 * 8];
            let len = LunList::new(&luns).encode(&mut out).unwrap();
            prop_assert_eq!(LunList::decode(&out[..len]).unwrap().luns, &luns[..]);
        }
    }
}
