//! Standard INQUIRY data (SPC-5, INQUIRY command, standard INQUIRY data).
//!
//! [`Peripheral`], the first byte, opens every vital product data page as well. Left out: the bits that only
//! the parallel interface had, and those that SPC-5 calls obsolete; they decode to nothing and encode as
//! zero. Always true: what is encoded is 96 bytes and says so in ADDITIONAL LENGTH; a reader with a smaller
//! allocation length takes the front of it.

use super::ascii::Ascii;
use super::layout::{bit, bits, part, set_bit, set_bits};
use crate::DecodeError;
use core::fmt;

/// The first byte of INQUIRY data: whether something is there, and what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peripheral {
    /// Whether a device is reachable behind the logical unit number.
    pub qualifier: PeripheralQualifier,
    /// Kind of device.
    pub device_type: PeripheralDeviceType,
}

code! {
    /// PERIPHERAL QUALIFIER, three bits.
    pub enum PeripheralQualifier: u8 {
        /// A device of the type given is there.
        Connected = 0x00 => "connected",
        /// The target could have one here, but none is there.
        NotConnected = 0x01 => "not connected",
        /// The target cannot have one here.
        NotCapable = 0x03 => "not capable",
    }
}

code! {
    /// PERIPHERAL DEVICE TYPE, five bits.
    pub enum PeripheralDeviceType: u8 {
        /// A direct access block device (SBC-4): a disk.
        DirectAccess = 0x00 => "direct access block device",
        /// A tape (SSC-5).
        SequentialAccess = 0x01 => "sequential access device",
        /// A CD, DVD or BD drive (MMC-6).
        CdDvd = 0x05 => "CD/DVD device",
        /// A medium changer (SMC-3).
        MediaChanger = 0x08 => "media changer",
        /// A storage array controller (SCC-2).
        StorageArrayController = 0x0c => "storage array controller",
        /// Enclosure services (SES-4).
        EnclosureServices = 0x0d => "enclosure services device",
        /// A simplified direct access device (RBC).
        SimplifiedDirectAccess = 0x0e => "simplified direct access device",
        /// A host managed zoned block device (ZBC-2).
        HostManagedZoned = 0x14 => "host managed zoned block device",
        /// A well known logical unit.
        WellKnownLogicalUnit = 0x1e => "well known logical unit",
        /// Unknown or no device.
        UnknownOrNone = 0x1f => "unknown or no device",
    }
}

impl Peripheral {
    /// A disk that is there: the byte 00h.
    pub const DISK: Self =
        Self { qualifier: PeripheralQualifier::Connected, device_type: PeripheralDeviceType::DirectAccess };
    /// A CD, DVD or BD drive that is there: the byte 05h.
    pub const OPTICAL: Self =
        Self { qualifier: PeripheralQualifier::Connected, device_type: PeripheralDeviceType::CdDvd };
    /// No logical unit of this number can exist: the byte 7Fh.
    pub const NOT_CAPABLE: Self =
        Self { qualifier: PeripheralQualifier::NotCapable, device_type: PeripheralDeviceType::UnknownOrNone };

    /// From the byte on the wire; every byte has a meaning.
    pub fn from_byte(byte: u8) -> Self {
        Self { qualifier: bits::<7, 5>(byte).into(), device_type: bits::<4, 0>(byte).into() }
    }

    /// The byte on the wire.
    pub fn byte(self) -> u8 {
        set_bits::<7, 5>(self.qualifier.into()) | set_bits::<4, 0>(self.device_type.into())
    }
}

impl fmt::Display for Peripheral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.device_type, self.qualifier)
    }
}

code! {
    /// VERSION of SPC that the logical unit claims.
    pub enum SpcVersion: u8 {
        /// No standard is claimed.
        None = 0x00 => "none",
        /// SPC.
        Spc = 0x03 => "SPC",
        /// SPC-2.
        Spc2 = 0x04 => "SPC-2",
        /// SPC-3.
        Spc3 = 0x05 => "SPC-3",
        /// SPC-4.
        Spc4 = 0x06 => "SPC-4",
        /// SPC-5.
        Spc5 = 0x07 => "SPC-5",
    }
}

code! {
    /// VERSION DESCRIPTOR, the "no version claimed" value of the standards a drive here may name
    /// (SPC-5, numeric order codes annex).
    pub enum VersionDescriptor: u16 {
        /// None, or the standard has no value.
        None = 0x0000 => "none",
        /// SAM-5.
        Sam5 = 0x00a0 => "SAM-5",
        /// SPC-4.
        Spc4 = 0x0460 => "SPC-4",
        /// SPC-5.
        Spc5 = 0x05c0 => "SPC-5",
        /// SBC-3.
        Sbc3 = 0x04c0 => "SBC-3",
        /// SBC-4.
        Sbc4 = 0x0600 => "SBC-4",
        /// MMC-6.
        Mmc6 = 0x04e0 => "MMC-6",
        /// Universal Serial Bus specification, revision 2.0.
        Usb2 = 0x1729 => "USB 2.0",
        /// USB Mass Storage Class Bulk-Only Transport, revision 1.0.
        BulkOnly = 0x1730 => "USB BOT",
        /// UAS.
        Uas = 0x1740 => "UAS",
        /// UAS-2.
        Uas2 = 0x1780 => "UAS-2",
        /// SAT-3.
        Sat3 = 0x1ee0 => "SAT-3",
        /// SAT-4.
        Sat4 = 0x1f00 => "SAT-4",
    }
}

/// TPGS: which asymmetric access the logical unit supports, two bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetPortGroupSupport {
    /// None, or one that is not of the standard.
    None,
    /// Implicit only.
    Implicit,
    /// Explicit only.
    Explicit,
    /// Both.
    ImplicitAndExplicit,
}

impl TargetPortGroupSupport {
    const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::None,
            1 => Self::Implicit,
            2 => Self::Explicit,
            _ => Self::ImplicitAndExplicit,
        }
    }
}

/// Standard INQUIRY data of a logical unit.
///
/// ```text
///  0      peripheral qualifier (7:5), device type (4:0)
///  1      RMB (7)
///  2      version
///  3      NORMACA (5), HISUP (4), response data format (3:0)
///  4      additional length (91: 96 bytes in all)
///  5      SCCS (7), TPGS (5:4), 3PC (3), PROTECT (0)
///  6      ENCSERV (6), MULTIP (4)
///  7      CMDQUE (1)
///  8..16  T10 vendor identification      36..56  vendor specific
/// 16..32  product identification         58..74  eight version descriptors
/// 32..36  product revision level         74..96  reserved
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandardInquiry {
    /// Whether something is there, and what.
    pub peripheral: Peripheral,
    /// The medium can be removed.
    #[doc(alias = "RMB")]
    pub removable: bool,
    /// The SPC the logical unit claims.
    pub version: SpcVersion,
    /// Normal ACA: the NACA bit of a CDB is supported.
    #[doc(alias = "NORMACA")]
    pub normal_aca: bool,
    /// LUNs are assigned by the hierarchical model.
    #[doc(alias = "HISUP")]
    pub hierarchical: bool,
    /// RESPONSE DATA FORMAT, four bits; 2 is the only one of SPC-5.
    pub response_data_format: u8,
    /// Holds an embedded storage array controller.
    #[doc(alias = "SCCS")]
    pub storage_array: bool,
    /// Asymmetric logical unit access.
    #[doc(alias = "TPGS")]
    pub target_port_groups: TargetPortGroupSupport,
    /// Third-party copy commands are supported.
    #[doc(alias = "3PC")]
    pub third_party_copy: bool,
    /// Protection information is supported.
    #[doc(alias = "PROTECT")]
    pub protection: bool,
    /// Holds enclosure services.
    #[doc(alias = "ENCSERV")]
    pub enclosure_services: bool,
    /// The device has more than one target port.
    #[doc(alias = "MULTIP")]
    pub multi_port: bool,
    /// Full task management: more than one command at a time.
    #[doc(alias = "CMDQUE")]
    pub command_queuing: bool,
    /// T10 VENDOR IDENTIFICATION.
    pub vendor: Ascii<8>,
    /// PRODUCT IDENTIFICATION.
    pub product: Ascii<16>,
    /// PRODUCT REVISION LEVEL.
    pub revision: Ascii<4>,
    /// Bytes 36 to 55: the vendor's.
    pub vendor_specific: [u8; 20],
    /// Standards claimed; the unused ones are [`VersionDescriptor::None`].
    pub version_descriptors: [VersionDescriptor; 8],
}

impl StandardInquiry {
    /// Bytes as encoded.
    pub const LEN: usize = 96;
    /// The fewest bytes that decode.
    pub const LEN_MIN: usize = 36;

    /// Decodes 36 bytes or more; what is missing of 96, or past ADDITIONAL LENGTH, counts as zero.
    ///
    /// The first 36 bytes count whatever ADDITIONAL LENGTH says: devices are about that say too little.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let truncated = DecodeError::Truncated { needed: Self::LEN_MIN, got: bytes.len() };
        let said = bytes.get(4).map_or(0, |&length| usize::from(length) + 5).max(Self::LEN_MIN);
        if bytes.len() < Self::LEN_MIN {
            return Err(truncated);
        }
        let mut whole = [0; Self::LEN];
        for (place, byte) in whole.iter_mut().zip(bytes.iter().take(said)) {
            *place = *byte;
        }
        let descriptors = part::<58, 16, _>(&whole);
        let mut version_descriptors = [VersionDescriptor::None; 8];
        for (place, pair) in version_descriptors.iter_mut().zip(descriptors.as_chunks().0) {
            *place = u16::from_be_bytes(*pair).into();
        }
        Ok(Self {
            peripheral: Peripheral::from_byte(whole[0]),
            removable: bit::<7>(whole[1]),
            version: whole[2].into(),
            normal_aca: bit::<5>(whole[3]),
            hierarchical: bit::<4>(whole[3]),
            response_data_format: bits::<3, 0>(whole[3]),
            storage_array: bit::<7>(whole[5]),
            target_port_groups: TargetPortGroupSupport::from_bits(bits::<5, 4>(whole[5])),
            third_party_copy: bit::<3>(whole[5]),
            protection: bit::<0>(whole[5]),
            enclosure_services: bit::<6>(whole[6]),
            multi_port: bit::<4>(whole[6]),
            command_queuing: bit::<1>(whole[7]),
            vendor: Ascii(part::<8, 8, _>(&whole)),
            product: Ascii(part::<16, 16, _>(&whole)),
            revision: Ascii(part::<32, 4, _>(&whole)),
            vendor_specific: part::<36, 20, _>(&whole),
            version_descriptors,
        })
    }

    /// The 96 bytes on the wire.
    pub fn encode(&self) -> [u8; 96] {
        let mut out = [0; Self::LEN];
        out[0] = self.peripheral.byte();
        out[1] = set_bit::<7>(self.removable);
        out[2] = self.version.into();
        out[3] = set_bit::<5>(self.normal_aca)
            | set_bit::<4>(self.hierarchical)
            | set_bits::<3, 0>(self.response_data_format);
        out[4] = 91;
        out[5] = set_bit::<7>(self.storage_array)
            | set_bits::<5, 4>(self.target_port_groups as u8)
            | set_bit::<3>(self.third_party_copy)
            | set_bit::<0>(self.protection);
        out[6] = set_bit::<6>(self.enclosure_services) | set_bit::<4>(self.multi_port);
        out[7] = set_bit::<1>(self.command_queuing);
        out[8..16].copy_from_slice(&self.vendor.0);
        out[16..32].copy_from_slice(&self.product.0);
        out[32..36].copy_from_slice(&self.revision.0);
        out[36..56].copy_from_slice(&self.vendor_specific);
        for (place, descriptor) in out[58..74].chunks_exact_mut(2).zip(self.version_descriptors) {
            place.copy_from_slice(&u16::from(descriptor).to_be_bytes());
        }
        out
    }
}

impl fmt::Display for StandardInquiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { vendor, product, revision, version, peripheral, .. } = self;
        write!(f, "{vendor} {product} {revision}, {version}, {peripheral}")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;
    use std::vec::Vec;

    /// A removable disk that queues, with SAM-5, SPC-5, SBC-4 and UAS-2 claimed.
    fn disk() -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend([0x00, 0x80, 0x07, 0x32, 0x5b, 0x89, 0x10, 0x02]);
        bytes.extend(b"uaskit  virtual drive   0.1 ");
        bytes.extend([0x11; 20]);
        bytes.extend([0, 0]);
        bytes.extend([0x00, 0xa0, 0x05, 0xc0, 0x06, 0x00, 0x17, 0x80, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend([0; 22]);
        bytes
    }

    #[test]
    fn literal_bytes_both_ways() {
        let bytes = disk();
        let inquiry = StandardInquiry::decode(&bytes).unwrap();
        assert_eq!(inquiry.peripheral, Peripheral::DISK);
        assert_eq!(inquiry.version, SpcVersion::Spc5);
        assert!(inquiry.removable && inquiry.normal_aca && inquiry.hierarchical);
        assert_eq!(inquiry.response_data_format, 2);
        assert!(inquiry.storage_array && inquiry.third_party_copy && inquiry.protection);
        assert_eq!(inquiry.target_port_groups, TargetPortGroupSupport::None);
        assert!(inquiry.multi_port && !inquiry.enclosure_services && inquiry.command_queuing);
        assert_eq!(inquiry.vendor, Ascii::new("uaskit"));
        assert_eq!(inquiry.product, Ascii::new("virtual drive"));
        assert_eq!(inquiry.revision, Ascii::new("0.1"));
        assert_eq!(inquiry.vendor_specific, [0x11; 20]);
        assert_eq!(inquiry.version_descriptors[1], VersionDescriptor::Spc5);
        assert_eq!(inquiry.version_descriptors[3], VersionDescriptor::Uas2);
        assert_eq!(inquiry.version_descriptors[4], VersionDescriptor::None);
        assert_eq!(inquiry.encode()[..], bytes);
        assert_eq!(
            inquiry.to_string(),
            "uaskit virtual drive 0.1, SPC-5, direct access block device (connected)"
        );
    }

    #[test]
    fn fewer_than_36_bytes_are_too_few() {
        for len in 0..36 {
            let error = StandardInquiry::decode(&disk()[..len]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 36, got: len });
        }
        let short = StandardInquiry::decode(&disk()[..36]).unwrap();
        assert_eq!(short.version_descriptors, [VersionDescriptor::None; 8]);
        assert_eq!(short.product, Ascii::new("virtual drive"));
    }

    #[test]
    fn bytes_past_the_additional_length_do_not_count() {
        let mut bytes = disk();
        bytes[4] = 31;
        let inquiry = StandardInquiry::decode(&bytes).unwrap();
        assert_eq!(inquiry.vendor_specific, [0; 20]);
        bytes[4] = 0;
        assert_eq!(StandardInquiry::decode(&bytes), Ok(inquiry));
    }

    #[test]
    fn every_peripheral_byte_survives() {
        for byte in 0..=u8::MAX {
            assert_eq!(Peripheral::from_byte(byte).byte(), byte);
        }
        assert_eq!(Peripheral::NOT_CAPABLE.byte(), 0x7f);
    }

    #[test]
    fn unknown_codes_survive() {
        let mut bytes = disk();
        bytes[2] = 0x42;
        bytes[73] = 0x99;
        let inquiry = StandardInquiry::decode(&bytes).unwrap();
        assert_eq!(inquiry.version, SpcVersion::Unknown(0x42));
        assert_eq!(inquiry.version_descriptors[7], VersionDescriptor::Unknown(0x0099));
        assert_eq!(inquiry.encode()[..], bytes);
    }

    proptest! {
        #[test]
        fn what_decodes_round_trips(bytes in prop::collection::vec(any::<u8>(), 36..120)) {
            let inquiry = StandardInquiry::decode(&bytes).unwrap();
            prop_assert_eq!(StandardInquiry::decode(&inquiry.encode()), Ok(inquiry));
        }
    }
}
