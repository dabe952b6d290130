//! Diagnostic pages of SEND DIAGNOSTIC and RECEIVE DIAGNOSTIC RESULTS: header and page 00h (SPC-5).
//!
//! ```text
//!  0      page code
//!  1      the page's own
//!  2..4   page length
//!  4..    the page
//! ```

use super::layout::be16;
use crate::{DecodeError, NoRoom, Writer};
use core::fmt;

/// The four bytes that open each page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiagnosticHeader {
    /// PAGE CODE.
    pub code: u8,
    /// Byte 1, whose meaning is the page's.
    pub page_specific: u8,
    /// PAGE LENGTH: bytes that follow the header.
    pub page_length: u16,
}

impl DiagnosticHeader {
    /// Bytes on the wire.
    pub const LEN: usize = 4;

    /// Decodes the first four bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let head = bytes
            .first_chunk::<{ Self::LEN }>()
            .ok_or(DecodeError::Truncated { needed: Self::LEN, got: bytes.len() })?;
        Ok(Self { code: head[0], page_specific: head[1], page_length: be16::<2, _>(head) })
    }

    /// The four bytes on the wire.
    pub fn encode(&self) -> [u8; 4] {
        let [high, low] = self.page_length.to_be_bytes();
        [self.code, self.page_specific, high, low]
    }
}

/// Supported diagnostic pages, page 00h: the codes of the pages there are, ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SupportedDiagnosticPages<'a> {
    /// The codes.
    pub codes: &'a [u8],
}

impl<'a> SupportedDiagnosticPages<'a> {
    /// PAGE CODE.
    pub const CODE: u8 = 0x00;

    /// Decodes the page.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let header = DiagnosticHeader::decode(bytes)?;
        if header.code != Self::CODE {
            let (expected, found) = (Self::CODE.into(), header.code.into());
            return Err(DecodeError::WrongKind { expected, found });
        }
        let needed = DiagnosticHeader::LEN + usize::from(header.page_length);
        let truncated = DecodeError::Truncated { needed, got: bytes.len() };
        Ok(Self { codes: bytes.get(DiagnosticHeader::LEN..needed).ok_or(truncated)? })
    }

    /// Writes the page; the answer is the bytes written.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, NoRoom> {
        let len = self.codes.len();
        let page_length = u16::try_from(len).map_err(|_| NoRoom { needed: len, got: u16::MAX.into() })?;
        let header = DiagnosticHeader { code: Self::CODE, page_specific: 0, page_length };
        let mut writer = Writer::new(out);
        writer.put(&header.encode())?;
        writer.put(self.codes)?;
        Ok(writer.written())
    }
}

impl fmt::Display for DiagnosticHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "diagnostic page {:#04x}, {} bytes", self.code, self.page_length)
    }
}

impl fmt::Display for SupportedDiagnosticPages<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} diagnostic pages", self.codes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_both_ways() {
        let header = DiagnosticHeader::decode(&[0x40, 0x05, 0x01, 0x02]).unwrap();
        let expected = DiagnosticHeader { code: 0x40, page_specific: 5, page_length: 0x0102 };
        assert_eq!(header, expected);
        assert_eq!(header.encode(), [0x40, 0x05, 0x01, 0x02]);
    }

    #[test]
    fn supported_pages_both_ways() {
        let bytes = [0x00, 0x00, 0x00, 0x02, 0x00, 0x3f];
        let page = SupportedDiagnosticPages { codes: &[0x00, 0x3f] };
        assert_eq!(SupportedDiagnosticPages::decode(&bytes), Ok(page));
        let mut out = [0xff; 6];
        assert_eq!(page.encode(&mut out), Ok(6));
        assert_eq!(out, bytes);
        for got in 0..6 {
            let error = DecodeError::Truncated { needed: if got < 4 { 4 } else { 6 }, got };
            assert_eq!(SupportedDiagnosticPages::decode(&bytes[..got]), Err(error));
        }
    }

    #[test]
    fn another_page_is_another_kind() {
        let error = DecodeError::WrongKind { expected: 0, found: 0x3f };
        assert_eq!(SupportedDiagnosticPages::decode(&[0x3f, 0, 0, 0]), Err(error));
    }
}
