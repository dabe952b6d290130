//! Supported log pages, 00h, and supported log pages and subpages, 00h/FFh (SPC-5).
//!
//! These two pages hold no parameters but codes: one byte for a page, two for a page and subpage.

use super::{ALL_SUBPAGES, LogPage, LogPageCode, LogPageHeader};
use crate::scsi::layout::{bits, set_bits};
use crate::{DecodeError, NoRoom, Writer};
use core::fmt;

/// Page 00h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SupportedLogPages<'a> {
    /// The codes as they lie on the wire.
    pub codes: &'a [u8],
}

impl<'a> SupportedLogPages<'a> {
    /// Decodes the page.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Ok(Self { codes: LogPage::of(LogPageCode::SupportedPages, 0, bytes)?.body })
    }

    /// The pages, in the order of the wire.
    pub fn pages(&self) -> impl Iterator<Item = LogPageCode> + 'a {
        self.codes.iter().map(|&code| bits::<5, 0>(code).into())
    }

    /// Writes a page that lists `pages`; the answer is the bytes written.
    pub fn encode_list(pages: &[LogPageCode], out: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out);
        put_header(0, pages.len(), &mut writer)?;
        for &page in pages {
            writer.u8(set_bits::<5, 0>(page.into()))?;
        }
        Ok(writer.written())
    }
}

/// Page 00h/FFh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SupportedLogSubpages<'a> {
    /// Page code and subpage code of each, as they lie on the wire.
    pub codes: &'a [[u8; 2]],
}

impl<'a> SupportedLogSubpages<'a> {
    /// Decodes the page; an odd byte at its end does not count.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let page = LogPage::of(LogPageCode::SupportedPages, ALL_SUBPAGES, bytes)?;
        Ok(Self { codes: page.body.as_chunks().0 })
    }

    /// The pages and subpages, in the order of the wire.
    pub fn pages(&self) -> impl Iterator<Item = (LogPageCode, u8)> + 'a {
        self.codes.iter().map(|&[code, subpage]| (bits::<5, 0>(code).into(), subpage))
    }

    /// Writes a page that lists `pages`; the answer is the bytes written.
    pub fn encode_list(pages: &[(LogPageCode, u8)], out: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out);
        put_header(ALL_SUBPAGES, pages.len().saturating_mul(2), &mut writer)?;
        for &(page, subpage) in pages {
            writer.put(&[set_bits::<5, 0>(page.into()), subpage])?;
        }
        Ok(writer.written())
    }
}

/// Unlike a page of parameters this one has nothing to save, so DS is zero.
fn put_header(subpage: u8, body: usize, writer: &mut Writer<'_>) -> Result<(), NoRoom> {
    let page_length = u16::try_from(body).map_err(|_| NoRoom { needed: body, got: u16::MAX.into() })?;
    let code = LogPageCode::SupportedPages;
    writer.put(&LogPageHeader { disable_save: false, code, subpage, page_length }.encode())
}

impl fmt::Display for SupportedLogPages<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} log pages", self.codes.len())
    }
}

impl fmt::Display for SupportedLogSubpages<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} log pages and subpages", self.codes.len())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn pages_both_ways() {
        let bytes = [0x00, 0x00, 0x00, 0x04, 0x00, 0x0d, 0x2f, 0x37];
        let pages = [
            LogPageCode::SupportedPages,
            LogPageCode::Temperature,
            LogPageCode::InformationalExceptions,
            LogPageCode::Unknown(0x37),
        ];
        assert!(SupportedLogPages::decode(&bytes).unwrap().pages().eq(pages));
        let mut out = [0xff; 8];
        assert_eq!(SupportedLogPages::encode_list(&pages, &mut out), Ok(8));
        assert_eq!(out, bytes);
    }

    #[test]
    fn subpages_both_ways() {
        let bytes = [0x40, 0xff, 0x00, 0x06, 0x00, 0x00, 0x00, 0xff, 0x0d, 0x01];
        let pages = [
            (LogPageCode::SupportedPages, 0),
            (LogPageCode::SupportedPages, 0xff),
            (LogPageCode::Temperature, 1),
        ];
        assert!(SupportedLogSubpages::decode(&bytes).unwrap().pages().eq(pages));
        let mut out = [0xff; 10];
        assert_eq!(SupportedLogSubpages::encode_list(&pages, &mut out), Ok(10));
        assert_eq!(out, bytes);
    }

    #[test]
    fn the_two_pages_are_not_each_other() {
        let error = DecodeError::WrongKind { expected: 0x0000, found: 0x00ff };
        assert_eq!(SupportedLogPages::decode(&[0x40, 0xff, 0, 0]), Err(error));
        let error = DecodeError::WrongKind { expected: 0x00ff, found: 0x0000 };
        assert_eq!(SupportedLogSubpages::decode(&[0, 0, 0, 0]), Err(error));
    }
}
