//! Header of a mode page, and the walk from page to page (SPC-5, mode page formats).
//!
//! ```text
//! page     0  PS (7), SPF = 0 (6), page code (5:0)    1  page length
//! subpage  0  PS (7), SPF = 1 (6), page code (5:0)    1  subpage code    2..4  page length
//! ```

use super::ModePageCode;
use crate::scsi::layout::{bit, bits, set_bit, set_bits};
use crate::{DecodeError, Reader};
use core::fmt;

/// The two or four bytes that open a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModePageHeader {
    /// The page can be saved; reserved in MODE SELECT.
    #[doc(alias = "PS")]
    pub saveable: bool,
    /// PAGE CODE.
    pub code: ModePageCode,
    /// SUBPAGE CODE, in the long form.
    #[doc(alias = "SPF")]
    pub subpage: Option<u8>,
    /// PAGE LENGTH: bytes that follow the header.
    pub page_length: u16,
}

impl ModePageHeader {
    /// Bytes of the header: two, or four with a subpage.
    pub const fn header_len(&self) -> usize {
        if self.subpage.is_some() { 4 } else { 2 }
    }

    /// Decodes the header at the front of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(&mut Reader::new(bytes))
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let [first, second] = reader.array()?;
        let long = bit::<6>(first);
        Ok(Self {
            saveable: bit::<7>(first),
            code: bits::<5, 0>(first).into(),
            subpage: long.then_some(second),
            page_length: if long { reader.be16()? } else { second.into() },
        })
    }

    /// Four bytes, of which the first [`Self::header_len`] count.
    pub fn encode(&self) -> [u8; 4] {
        let first = set_bit::<7>(self.saveable)
            | set_bit::<6>(self.subpage.is_some())
            | set_bits::<5, 0>(self.code.into());
        let [high, low] = self.page_length.to_be_bytes();
        self.subpage.map_or([first, low, 0, 0], |subpage| [first, subpage, high, low])
    }
}

impl fmt::Display for ModePageHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mode page {:#04x} {}, {} bytes", u8::from(self.code), self.code, self.page_length)
    }
}

/// A page as bytes, with its header decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawModePage<'a> {
    /// Which page it is.
    pub header: ModePageHeader,
    /// The whole page, header and all.
    pub bytes: &'a [u8],
}

impl<'a> RawModePage<'a> {
    /// The page at the front of `bytes`.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let header = ModePageHeader::decode(bytes)?;
        let needed = header.header_len() + usize::from(header.page_length);
        let bytes = bytes.get(..needed).ok_or(DecodeError::Truncated { needed, got: bytes.len() })?;
        Ok(Self { header, bytes })
    }
}

/// The pages of a list; one that is cut short ends it with an error.
#[derive(Clone, Debug)]
pub struct ModePages<'a> {
    rest: &'a [u8],
    failed: bool,
}

impl<'a> ModePages<'a> {
    /// The pages in `bytes`, which start with a page.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, failed: false }
    }
}

impl<'a> Iterator for ModePages<'a> {
    type Item = Result<RawModePage<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.rest.is_empty() {
            return None;
        }
        let page = RawModePage::decode(self.rest);
        self.failed = page.is_err();
        if let Ok(page) = page {
            self.rest = self.rest.get(page.bytes.len()..).unwrap_or_default();
        }
        Some(page)
    }
}

/// The `N` bytes of a page that must be `code` and `subpage` and exactly that long.
pub(super) fn whole_of<const N: usize>(
    code: ModePageCode,
    subpage: Option<u8>,
    bytes: &[u8],
) -> Result<&[u8; N], DecodeError> {
    let header = ModePageHeader::decode(bytes)?;
    if (header.code, header.subpage) != (code, subpage) {
        let (expected, found) = (full_code(code, subpage), full_code(header.code, header.subpage));
        return Err(DecodeError::WrongKind { expected, found });
    }
    if header.header_len() + usize::from(header.page_length) != N {
        return Err(DecodeError::Invalid { field: "PAGE LENGTH", value: header.page_length.into() });
    }
    bytes.first_chunk().ok_or(DecodeError::Truncated { needed: N, got: bytes.len() })
}

/// Page code and subpage code in one number, as errors name them: 0A01h is the control extension.
fn full_code(code: ModePageCode, subpage: Option<u8>) -> u32 {
    u32::from(u8::from(code)) << 8 | u32::from(subpage.unwrap_or(0))
}

/// The `N` bytes of a page with its header and zeroes.
pub(super) fn blank<const N: usize>(code: ModePageCode, subpage: Option<u8>, saveable: bool) -> [u8; N] {
    const { assert!(N >= 4 && N <= 256) };
    let mut page = [0; N];
    let header_len = if subpage.is_some() { 4 } else { 2 };
    let header = ModePageHeader { saveable, code, subpage, page_length: (N - header_len) as u16 };
    for (place, byte) in page.iter_mut().zip(header.encode()).take(header_len) {
        *place = byte;
    }
    page
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn a_short_header_both_ways() {
        let header = ModePageHeader::decode(&[0x88, 0x12]).unwrap();
        let expected =
            ModePageHeader { saveable: true, code: ModePageCode::Caching, subpage: None, page_length: 0x12 };
        assert_eq!(header, expected);
        assert_eq!(header.encode()[..header.header_len()], [0x88, 0x12]);
    }

    #[test]
    fn a_long_header_both_ways() {
        let header = ModePageHeader::decode(&[0x4a, 0x01, 0x01, 0x1c]).unwrap();
        assert_eq!((header.code, header.subpage), (ModePageCode::Control, Some(1)));
        assert_eq!(header.page_length, 0x011c);
        assert_eq!(header.encode()[..header.header_len()], [0x4a, 0x01, 0x01, 0x1c]);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for (bytes, needed) in [(&[][..], 2), (&[0x08], 2), (&[0x4a, 1], 4), (&[0x4a, 1, 0], 4)] {
            let error = DecodeError::Truncated { needed, got: bytes.len() };
            assert_eq!(ModePageHeader::decode(bytes), Err(error));
        }
    }

    #[test]
    fn pages_follow_each_other_until_one_is_cut() {
        let list = [0x19, 0x01, 0xaa, 0x59, 0x02, 0x00, 0x02, 0xbb, 0xcc, 0x1a, 0x05, 0xdd];
        let pages: Vec<_> = ModePages::new(&list).collect();
        assert_eq!(pages.len(), 3);
        assert_eq!(pages[0].unwrap().bytes, [0x19, 0x01, 0xaa]);
        assert_eq!(pages[1].unwrap().header.subpage, Some(2));
        assert_eq!(pages[2], Err(DecodeError::Truncated { needed: 7, got: 3 }));
    }

    proptest! {
        #[test]
        fn any_list_ends(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let whole: usize = ModePages::new(&bytes).flatten().map(|page| page.bytes.len()).sum();
            prop_assert!(whole <= bytes.len());
        }
    }
}
