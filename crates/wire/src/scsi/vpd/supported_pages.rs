//! Supported VPD pages, page 00h (SPC-5): the codes of the pages there are, ascending.

use super::header::{VpdPageCode, body_of, encode_with_header, length_16};
use crate::scsi::inquiry::Peripheral;
use crate::{DecodeError, NoRoom, Writer};
use core::fmt;

/// The list of page codes, one byte each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SupportedVpdPages<'a> {
    /// The codes as they lie on the wire.
    pub codes: &'a [u8],
}

impl<'a> SupportedVpdPages<'a> {
    /// Decodes the page.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Ok(Self { codes: body_of(VpdPageCode::SupportedPages, bytes)? })
    }

    /// The pages, in the order of the wire.
    pub fn pages(&self) -> impl Iterator<Item = VpdPageCode> + 'a {
        self.codes.iter().map(|&code| code.into())
    }

    /// Writes the page; the answer is the bytes written.
    pub fn encode(&self, peripheral: Peripheral, out: &mut [u8]) -> Result<usize, NoRoom> {
        encode_with_header(peripheral, VpdPageCode::SupportedPages, self.codes, out)
    }

    /// Writes a page that lists `pages`; the answer is the bytes written.
    pub fn encode_list(
        peripheral: Peripheral,
        pages: &[VpdPageCode],
        out: &mut [u8],
    ) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out);
        writer.u8(peripheral.byte())?;
        writer.u8(VpdPageCode::SupportedPages.into())?;
        writer.be16(length_16(pages.len())?)?;
        for page in pages {
            writer.u8((*page).into())?;
        }
        Ok(writer.written())
    }
}

impl fmt::Display for SupportedVpdPages<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} VPD pages", self.codes.len())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn literal_bytes_both_ways() {
        let bytes = [0x00, 0x00, 0x00, 0x04, 0x00, 0x80, 0xb0, 0xc1];
        let codes = [
            VpdPageCode::SupportedPages,
            VpdPageCode::UnitSerialNumber,
            VpdPageCode::BlockLimits,
            VpdPageCode::Unknown(0xc1),
        ];
        let page = SupportedVpdPages::decode(&bytes).unwrap();
        assert!(page.pages().eq(codes));
        let mut out = [0xff; 8];
        assert_eq!(page.encode(Peripheral::DISK, &mut out), Ok(8));
        assert_eq!(out, bytes);
        let mut out = [0xff; 8];
        assert_eq!(SupportedVpdPages::encode_list(Peripheral::DISK, &codes, &mut out), Ok(8));
        assert_eq!(out, bytes);
    }
}
