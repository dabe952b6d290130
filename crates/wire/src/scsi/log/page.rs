//! Header of a log page, a page as bytes, and the builder of pages (SPC-5, log page format).
//!
//! ```text
//!  0      DS (7), SPF (6), page code (5:0)
//!  1      subpage code
//!  2..4   page length
//!  4..    parameters
//! ```

use super::{LogPageCode, LogParameters, ParameterControl};
use crate::scsi::layout::{be16, bit, bits, set_bit, set_bits};
use crate::{DecodeError, NoRoom, Writer};
use core::fmt;

/// The four bytes that open a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPageHeader {
    /// The page is not saved.
    #[doc(alias = "DS")]
    pub disable_save: bool,
    /// PAGE CODE.
    pub code: LogPageCode,
    /// SUBPAGE CODE; SPF is set where it is not zero.
    #[doc(alias = "SPF")]
    pub subpage: u8,
    /// PAGE LENGTH: bytes that follow the header in the whole page.
    pub page_length: u16,
}

impl LogPageHeader {
    /// Bytes on the wire.
    pub const LEN: usize = 4;

    /// Decodes the first four bytes; without SPF the subpage byte is reserved and counts as zero.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let head = bytes
            .first_chunk::<{ Self::LEN }>()
            .ok_or(DecodeError::Truncated { needed: Self::LEN, got: bytes.len() })?;
        Ok(Self {
            disable_save: bit::<7>(head[0]),
            code: bits::<5, 0>(head[0]).into(),
            subpage: if bit::<6>(head[0]) { head[1] } else { 0 },
            page_length: be16::<2, _>(head),
        })
    }

    /// The four bytes on the wire.
    pub fn encode(&self) -> [u8; 4] {
        let [high, low] = self.page_length.to_be_bytes();
        let first = set_bit::<7>(self.disable_save)
            | set_bit::<6>(self.subpage != 0)
            | set_bits::<5, 0>(self.code.into());
        [first, self.subpage, high, low]
    }
}

impl fmt::Display for LogPageHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, subpage, page_length, .. } = *self;
        write!(f, "log page {:#04x}/{subpage:02x} {code}, {page_length} bytes", u8::from(code))
    }
}

/// A page as bytes, with its header decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPage<'a> {
    /// Which page it is.
    pub header: LogPageHeader,
    /// Bytes after the header.
    pub body: &'a [u8],
}

impl<'a> LogPage<'a> {
    /// Decodes a page; bytes past PAGE LENGTH are ignored.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let header = LogPageHeader::decode(bytes)?;
        let needed = LogPageHeader::LEN + usize::from(header.page_length);
        let truncated = DecodeError::Truncated { needed, got: bytes.len() };
        let body = bytes.get(LogPageHeader::LEN..needed).ok_or(truncated)?;
        Ok(Self { header, body })
    }

    /// Decodes a page that must be `code` and `subpage`.
    pub(super) fn of(code: LogPageCode, subpage: u8, bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let page = Self::decode(bytes)?;
        let full = |code: LogPageCode, subpage| u32::from(u8::from(code)) << 8 | u32::from(subpage);
        let (expected, found) = (full(code, subpage), full(page.header.code, page.header.subpage));
        if expected == found { Ok(page) } else { Err(DecodeError::WrongKind { expected, found }) }
    }

    /// The parameters, one by one. Pages 00h and 00h/FFh have none.
    pub const fn parameters(&self) -> LogParameters<'a> {
        LogParameters::new(self.body)
    }
}

/// Builds a page front to back; the length is written at the end.
#[derive(Debug)]
pub struct LogWriter<'a> {
    writer: Writer<'a>,
    pointer: u16,
}

impl<'a> LogWriter<'a> {
    /// Starts a page; parameters with a code below `pointer` (PARAMETER POINTER of LOG SENSE) are skipped.
    pub fn new(code: LogPageCode, subpage: u8, pointer: u16, out: &'a mut [u8]) -> Result<Self, NoRoom> {
        let header = LogPageHeader { disable_save: true, code, subpage, page_length: 0 };
        let mut writer = Writer::new(out);
        writer.put(&header.encode())?;
        Ok(Self { writer, pointer })
    }

    /// Appends a parameter; codes must rise.
    pub fn parameter(&mut self, code: u16, control: ParameterControl, value: &[u8]) -> Result<(), NoRoom> {
        if code < self.pointer {
            return Ok(());
        }
        let len = value.len();
        let length = u8::try_from(len).map_err(|_| NoRoom { needed: len, got: u8::MAX.into() })?;
        self.writer.be16(code)?;
        self.writer.put(&[control.byte(), length])?;
        self.writer.put(value)
    }

    /// Appends a counter of eight bytes, if there is one.
    pub fn counter(&mut self, code: u16, count: Option<u64>) -> Result<(), NoRoom> {
        count.map_or(Ok(()), |count| self.parameter(code, ParameterControl::COUNTER, &count.to_be_bytes()))
    }

    /// Writes PAGE LENGTH; the answer is the bytes of the page.
    pub fn finish(mut self) -> Result<usize, NoRoom> {
        let total = self.writer.written();
        let body = total - LogPageHeader::LEN;
        let length = u16::try_from(body).map_err(|_| NoRoom { needed: body, got: u16::MAX.into() })?;
        self.writer.patch(2, &length.to_be_bytes())?;
        Ok(total)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_header_both_ways() {
        let header = LogPageHeader::decode(&[0xd9, 0x20, 0x01, 0x02]).unwrap();
        assert!(header.disable_save);
        assert_eq!((header.code, header.subpage), (LogPageCode::GeneralStatistics, 0x20));
        assert_eq!(header.page_length, 0x0102);
        assert_eq!(header.encode(), [0xd9, 0x20, 0x01, 0x02]);
        assert_eq!(header.to_string(), "log page 0x19/20 general statistics and performance, 258 bytes");
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        let bytes = [0x3f, 0, 0, 3, 1, 2, 3];
        for got in 0..7 {
            let needed = if got < 4 { 4 } else { 7 };
            assert_eq!(LogPage::decode(&bytes[..got]), Err(DecodeError::Truncated { needed, got }));
        }
        let page = LogPage::decode(&bytes).unwrap();
        assert_eq!(page.header.code, LogPageCode::Unknown(0x3f));
        assert_eq!(page.body, [1, 2, 3]);
    }

    #[test]
    fn a_page_is_built_from_the_pointer_on() {
        let mut out = [0xff; 64];
        let mut writer = LogWriter::new(LogPageCode::ReadErrors, 0, 3, &mut out).unwrap();
        writer.counter(2, Some(7)).unwrap();
        writer.counter(3, Some(8)).unwrap();
        writer.counter(4, None).unwrap();
        writer.parameter(5, ParameterControl::BINARY_LIST, &[0xaa]).unwrap();
        assert_eq!(writer.finish(), Ok(21));
        assert_eq!(out[..21], [0x83, 0, 0, 17, 0, 3, 0x00, 8, 0, 0, 0, 0, 0, 0, 0, 8, 0, 5, 0x03, 1, 0xaa]);
    }

    #[test]
    fn a_full_buffer_is_an_error() {
        let mut out = [0; 8];
        let mut writer = LogWriter::new(LogPageCode::ReadErrors, 0, 0, &mut out).unwrap();
        assert_eq!(writer.counter(0, Some(1)), Err(NoRoom { needed: 16, got: 8 }));
        let long = writer.parameter(0, ParameterControl::COUNTER, &[0; 256]);
        assert_eq!(long, Err(NoRoom { needed: 256, got: 255 }));
    }
}
