//! The header of a vital product data page, and what its pages share (SPC-5, vital product data
//! parameters).
//!
//! Left out: the pages. Always true: a body is as long as PAGE LENGTH says.

use crate::scsi::inquiry::Peripheral;
use crate::scsi::layout::be16;
use crate::{DecodeError, NoRoom, Writer};
use core::fmt;

code! {
    /// PAGE CODE of a vital product data page.
    pub enum VpdPageCode: u8 {
        /// The list of the pages there are.
        SupportedPages = 0x00 => "supported VPD pages",
        /// The serial number.
        UnitSerialNumber = 0x80 => "unit serial number",
        /// Names of the unit, its port and its target.
        DeviceIdentification = 0x83 => "device identification",
        /// Extension of standard INQUIRY data.
        ExtendedInquiry = 0x86 => "extended INQUIRY data",
        /// The ATA device behind a translation layer.
        AtaInformation = 0x89 => "ATA information",
        /// How large one command may be, and which sizes are good.
        BlockLimits = 0xb0 => "block limits",
        /// Rotation, form factor and the like.
        BlockDeviceCharacteristics = 0xb1 => "block device characteristics",
        /// How blocks are mapped and unmapped.
        LogicalBlockProvisioning = 0xb2 => "logical block provisioning",
    }
}

/// The four bytes that open each page: peripheral, page code, page length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VpdHeader {
    /// Whether something is there, and what.
    pub peripheral: Peripheral,
    /// Which page it is.
    pub page: VpdPageCode,
    /// PAGE LENGTH: bytes that follow the header in the whole page.
    pub page_length: u16,
}

impl VpdHeader {
    /// Bytes on the wire.
    pub const LEN: usize = 4;

    /// Decodes the first four bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (head, _) = bytes
            .split_first_chunk::<{ Self::LEN }>()
            .ok_or(DecodeError::Truncated { needed: Self::LEN, got: bytes.len() })?;
        let peripheral = Peripheral::from_byte(head[0]);
        Ok(Self { peripheral, page: head[1].into(), page_length: be16::<2, _>(head) })
    }

    /// The four bytes on the wire.
    pub fn encode(&self) -> [u8; 4] {
        let [high, low] = self.page_length.to_be_bytes();
        [self.peripheral.byte(), self.page.into(), high, low]
    }

    /// Header and body of the page at the front of `bytes`; the body is as long as PAGE LENGTH says.
    pub(super) fn split(bytes: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let header = Self::decode(bytes)?;
        let needed = Self::LEN + usize::from(header.page_length);
        let truncated = DecodeError::Truncated { needed, got: bytes.len() };
        Ok((header, bytes.get(Self::LEN..needed).ok_or(truncated)?))
    }
}

impl fmt::Display for VpdHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VPD page {:#04x} {}, {} bytes", u8::from(self.page), self.page, self.page_length)
    }
}

/// The body of a page that must be `page`.
pub(super) fn body_of(page: VpdPageCode, bytes: &[u8]) -> Result<&[u8], DecodeError> {
    let (header, body) = VpdHeader::split(bytes)?;
    if header.page != page {
        let (expected, found) = (u8::from(page).into(), u8::from(header.page).into());
        return Err(DecodeError::WrongKind { expected, found });
    }
    Ok(body)
}

/// A page of a fixed length with its header, so that byte numbers are those of the standard's table.
///
/// Bytes of the `N` that the page does not have are zero.
pub(super) fn whole_of<const N: usize>(page: VpdPageCode, bytes: &[u8]) -> Result<[u8; N], DecodeError> {
    let body = body_of(page, bytes)?;
    let mut whole = [0; N];
    for (place, byte) in whole.iter_mut().skip(VpdHeader::LEN).zip(body) {
        *place = *byte;
    }
    Ok(whole)
}

/// A page of a fixed length with its header and zeroes.
pub(super) fn blank<const N: usize>(page: VpdPageCode, peripheral: Peripheral) -> [u8; N] {
    const { assert!(N >= VpdHeader::LEN && N - VpdHeader::LEN <= u16::MAX as usize) };
    let mut whole = [0; N];
    let header = VpdHeader { peripheral, page, page_length: (N - VpdHeader::LEN) as u16 };
    for (place, byte) in whole.iter_mut().zip(header.encode()) {
        *place = byte;
    }
    whole
}

/// Writes a header that says the length of `body`, then `body`.
pub(super) fn encode_with_header(
    peripheral: Peripheral,
    page: VpdPageCode,
    body: &[u8],
    out: &mut [u8],
) -> Result<usize, NoRoom> {
    let page_length = length_16(body.len())?;
    let mut writer = Writer::new(out);
    writer.put(&VpdHeader { peripheral, page, page_length }.encode())?;
    writer.put(body)?;
    Ok(writer.written())
}

/// `len` as a 16-bit PAGE LENGTH.
pub(super) fn length_16(len: usize) -> Result<u16, NoRoom> {
    u16::try_from(len).map_err(|_| NoRoom { needed: len, got: u16::MAX.into() })
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_header_both_ways() {
        let header = VpdHeader::decode(&[0x7f, 0xb0, 0x01, 0x3c]).unwrap();
        assert_eq!(header.peripheral, Peripheral::NOT_CAPABLE);
        assert_eq!(header.page, VpdPageCode::BlockLimits);
        assert_eq!(header.page_length, 0x013c);
        assert_eq!(header.encode(), [0x7f, 0xb0, 0x01, 0x3c]);
        assert_eq!(header.to_string(), "VPD page 0xb0 block limits, 316 bytes");
    }
}
