//! Vital product data pages (SPC-5, vital product data parameters; SBC-4, VPD pages; SAT-4, ATA information).
//!
//! Each page has its file. A page here is its content: the first byte ([`Peripheral`]) is the same for all
//! pages of a unit, so `encode` takes it and [`VpdHeader`] gives it back. A page that says less than its
//! full length decodes as if the rest were zero, which in these pages means "not reported"; what lies past
//! the full length is ignored.

use super::inquiry::Peripheral;
use crate::{DecodeError, NoRoom, Writer};
use core::fmt;
use header::encode_with_header;

mod ata_information;
mod block_device_characteristics;
mod block_limits;
mod device_identification;
mod extended_inquiry;
mod header;
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
pub use header::{VpdHeader, VpdPageCode};
pub use logical_block_provisioning::{LogicalBlockProvisioning, ProvisioningType, UnmappedReads};
pub use supported_pages::SupportedVpdPages;
pub use unit_serial_number::UnitSerialNumber;

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
        /// Bytes after its header.
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

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;

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
