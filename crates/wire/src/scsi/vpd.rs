//! Vital product data pages (SPC-5, vital product data parameters; SBC-4, VPD pages; SAT-4, ATA information).
//!
//! Each page has its file. A page here is its content: the first byte ([`Peripheral`]) is the same for all
//! pages of a unit, so `encode` takes it and [`VpdHeader`] gives it back. A page that says less than its
//! full length decodes as if the rest were zero, which in these pages means "not reported"; what lies past
//! the full length is ignored.

use super::inquiry::Peripheral;
use super::layout::be16;
use crate::{DecodeError, NoRoom, Writer};
use core::fmt;

mod ata_information;
mod block_device_characteristics;
mod block_limits;
mod device_identification;
mod extended_inquiry;
mod logical_block_provisioning;
mod supported_pages;
mod unit_serial_number;

pub use ata_information::AtaInformation;
pub use block_device_characteristics::{
    AfterErase, BlockDeviceCharacteristics, FormFactor, ProductType, RotationRate, Zoned,
};
pub use block_limits::BlockLimits;
pub use device_identification::{
    Association, CodeSet, DesignationDescriptor, DesignationDescriptors, Designator, DeviceIdentification,
    ProtocolId, locally_assigned_naa,
};
pub use extended_inquiry::ExtendedInquiry;
pub use logical_block_provisioning::{LogicalBlockProvisioning, ProvisioningType, UnmappedReads};
pub use supported_pages::SupportedVpdPages;
pub use unit_serial_number::UnitSerialNumber;

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
    fn split(bytes: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
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

/// Any page, by its code; one that is not known here keeps its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VpdPage<'a> {
    /// Page 00h.
    SupportedPages(SupportedVpdPages<'a>),
    /// Page 80h.
    UnitSerialNumber(UnitSerialNumber<'a>),
    /// Page 83h.
    DeviceIdentification(DeviceIdentification<'a>),
    /// Page 86h.
    ExtendedInquiry(ExtendedInquiry),
    /// Page 89h.
    AtaInformation(AtaInformation<'a>),
    /// Page B0h.
    BlockLimits(BlockLimits),
    /// Page B1h.
    BlockDeviceCharacteristics(BlockDeviceCharacteristics),
    /// Page B2h.
    LogicalBlockProvisioning(LogicalBlockProvisioning<'a>),
    /// Any other.
    Unknown {
        /// Its code.
        page: VpdPageCode,
        /// What follows its header.
        body: &'a [u8],
    },
}

impl<'a> VpdPage<'a> {
    /// Decodes the page that the header names.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let (header, body) = VpdHeader::split(bytes)?;
        Ok(match header.page {
            VpdPageCode::SupportedPages => Self::SupportedPages(SupportedVpdPages::decode(bytes)?),
            VpdPageCode::UnitSerialNumber => Self::UnitSerialNumber(UnitSerialNumber::decode(bytes)?),
            VpdPageCode::DeviceIdentification => {
                Self::DeviceIdentification(DeviceIdentification::decode(bytes)?)
            }
            VpdPageCode::ExtendedInquiry => Self::ExtendedInquiry(ExtendedInquiry::decode(bytes)?),
            VpdPageCode::AtaInformation => Self::AtaInformation(AtaInformation::decode(bytes)?),
            VpdPageCode::BlockLimits => Self::BlockLimits(BlockLimits::decode(bytes)?),
            VpdPageCode::BlockDeviceCharacteristics => {
                Self::BlockDeviceCharacteristics(BlockDeviceCharacteristics::decode(bytes)?)
            }
            VpdPageCode::LogicalBlockProvisioning => {
                Self::LogicalBlockProvisioning(LogicalBlockProvisioning::decode(bytes)?)
            }
            page @ VpdPageCode::Unknown(_) => Self::Unknown { page, body },
        })
    }

    /// The code of the page.
    pub const fn page(&self) -> VpdPageCode {
        match self {
            Self::SupportedPages(_) => VpdPageCode::SupportedPages,
            Self::UnitSerialNumber(_) => VpdPageCode::UnitSerialNumber,
            Self::DeviceIdentification(_) => VpdPageCode::DeviceIdentification,
            Self::ExtendedInquiry(_) => VpdPageCode::ExtendedInquiry,
            Self::AtaInformation(_) => VpdPageCode::AtaInformation,
            Self::BlockLimits(_) => VpdPageCode::BlockLimits,
            Self::BlockDeviceCharacteristics(_) => VpdPageCode::BlockDeviceCharacteristics,
            Self::LogicalBlockProvisioning(_) => VpdPageCode::LogicalBlockProvisioning,
            Self::Unknown { page, .. } => *page,
        }
    }

    /// Writes the page with its header; the answer is the bytes written.
    pub fn encode(&self, peripheral: Peripheral, out: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out);
        match self {
            Self::SupportedPages(page) => return page.encode(peripheral, out),
            Self::UnitSerialNumber(page) => return page.encode(peripheral, out),
            Self::DeviceIdentification(page) => return page.encode(peripheral, out),
            Self::LogicalBlockProvisioning(page) => return page.encode(peripheral, out),
            Self::Unknown { page, body } => return encode_with_header(peripheral, *page, body, out),
            Self::ExtendedInquiry(page) => writer.put(&page.encode(peripheral))?,
            Self::AtaInformation(page) => writer.put(&page.encode(peripheral))?,
            Self::BlockLimits(page) => writer.put(&page.encode(peripheral))?,
            Self::BlockDeviceCharacteristics(page) => writer.put(&page.encode(peripheral))?,
        }
        Ok(writer.written())
    }
}

impl fmt::Display for VpdPage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VPD page {:#04x} {}", u8::from(self.page()), self.page())
    }
}

/// The body of a page that must be `page`.
fn body_of(page: VpdPageCode, bytes: &[u8]) -> Result<&[u8], DecodeError> {
    let (header, body) = VpdHeader::split(bytes)?;
    if header.page != page {
        let (expected, found) = (u8::from(page).into(), u8::from(header.page).into());
        return Err(DecodeError::WrongKind { expected, found });
    }
    Ok(body)
}

/// A page of a fixed length with its header, so that byte numbers are those of the standard's table.
///
/// What the page does not say of its `N` bytes is zero.
fn whole_of<const N: usize>(page: VpdPageCode, bytes: &[u8]) -> Result<[u8; N], DecodeError> {
    let body = body_of(page, bytes)?;
    let mut whole = [0; N];
    for (place, byte) in whole.iter_mut().skip(VpdHeader::LEN).zip(body) {
        *place = *byte;
    }
    Ok(whole)
}

/// A page of a fixed length with its header and zeroes.
fn blank<const N: usize>(page: VpdPageCode, peripheral: Peripheral) -> [u8; N] {
    const { assert!(N >= VpdHeader::LEN && N - VpdHeader::LEN <= u16::MAX as usize) };
    let mut whole = [0; N];
    let header = VpdHeader { peripheral, page, page_length: (N - VpdHeader::LEN) as u16 };
    for (place, byte) in whole.iter_mut().zip(header.encode()) {
        *place = byte;
    }
    whole
}

/// Writes a header that says the length of `body`, then `body`.
fn encode_with_header(
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
fn length_16(len: usize) -> Result<u16, NoRoom> {
    u16::try_from(len).map_err(|_| NoRoom { needed: len, got: u16::MAX.into() })
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
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

    #[test]
    fn an_unknown_page_survives() {
        let bytes = [0x00, 0xc5, 0x00, 0x03, 0xaa, 0xbb, 0xcc];
        let page = VpdPage::decode(&bytes).unwrap();
        let expected = VpdPage::Unknown { page: VpdPageCode::Unknown(0xc5), body: &[0xaa, 0xbb, 0xcc] };
        assert_eq!(page, expected);
        let mut out = [0; 7];
        assert_eq!(page.encode(Peripheral::DISK, &mut out), Ok(7));
        assert_eq!(out, bytes);
        assert_eq!(page.encode(Peripheral::DISK, &mut out[..6]), Err(NoRoom { needed: 7, got: 6 }));
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        let bytes = [0x00, 0xc5, 0x00, 0x03, 0xaa, 0xbb, 0xcc];
        for len in 0..7 {
            let needed = if len < 4 { 4 } else { 7 };
            assert_eq!(VpdPage::decode(&bytes[..len]), Err(DecodeError::Truncated { needed, got: len }));
        }
    }

    #[test]
    fn another_page_is_another_kind() {
        let error = DecodeError::WrongKind { expected: 0xb0, found: 0xb1 };
        assert_eq!(BlockLimits::decode(&[0, 0xb1, 0, 0]), Err(error));
    }

    const KNOWN: [u8; 9] = [0x00, 0x80, 0x83, 0x86, 0x89, 0xb0, 0xb1, 0xb2, 0xc0];

    proptest! {
        #[test]
        fn what_decodes_round_trips(
            code in prop::sample::select(&KNOWN[..]), body in prop::collection::vec(any::<u8>(), 0..600),
        ) {
            let mut bytes = std::vec![0, code, (body.len() >> 8) as u8, body.len() as u8];
            bytes.extend(&body);
            if let Ok(page) = VpdPage::decode(&bytes) {
                let mut out = [0; 700];
                let len = page.encode(Peripheral::DISK, &mut out).unwrap();
                prop_assert_eq!(VpdPage::decode(&out[..len]), Ok(page));
            }
        }
    }
}
