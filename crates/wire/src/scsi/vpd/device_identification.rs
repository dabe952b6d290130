//! Device identification, page 83h (SPC-5): names of the logical unit, its target port and its target.
//!
//! ```text
//!  0      protocol identifier (7:4), code set (3:0)
//!  1      PIV (7), association (5:4), designator type (3:0)
//!  2      reserved
//!  3      designator length
//!  4..    designator
//! ```
//! Always true: a designator whose length is not that of its type decodes as [`Designator::Other`] and
//! keeps its bytes. Left out: the inside of NAA and EUI-64 names, which are opaque to those who compare them.

use super::header::{VpdHeader, VpdPageCode, body_of, encode_with_header, length_16};
use crate::scsi::ascii::Ascii;
use crate::scsi::inquiry::Peripheral;
use crate::scsi::layout::{bit, bits, set_bit, set_bits};
use crate::{DecodeError, NoRoom, Reader, Writer};
use core::fmt;

/// Page 83h: a list of designation descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceIdentification<'a> {
    /// The descriptors as they lie on the wire.
    pub descriptors: &'a [u8],
}

impl<'a> DeviceIdentification<'a> {
    /// Decodes the page; the descriptors are decoded by [`Self::iter`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Ok(Self { descriptors: body_of(VpdPageCode::DeviceIdentification, bytes)? })
    }

    /// The descriptors, one by one.
    pub const fn iter(&self) -> DesignationDescriptors<'a> {
        DesignationDescriptors { reader: Reader::new(self.descriptors), failed: false }
    }

    /// Writes the page; the answer is the bytes written.
    pub fn encode(&self, peripheral: Peripheral, out: &mut [u8]) -> Result<usize, NoRoom> {
        encode_with_header(peripheral, VpdPageCode::DeviceIdentification, self.descriptors, out)
    }

    /// Writes a page that holds `descriptors`; the answer is the bytes written.
    pub fn encode_list(
        peripheral: Peripheral,
        descriptors: &[DesignationDescriptor<'_>],
        out: &mut [u8],
    ) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out);
        let page = VpdPageCode::DeviceIdentification;
        writer.put(&VpdHeader { peripheral, page, page_length: 0 }.encode())?;
        for descriptor in descriptors {
            descriptor.put(&mut writer)?;
        }
        let page_length = length_16(writer.written() - VpdHeader::LEN)?;
        writer.patch(2, &page_length.to_be_bytes())?;
        Ok(writer.written())
    }
}

impl fmt::Display for DeviceIdentification<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} designators", self.iter().count())
    }
}

/// The descriptors of a list; one that is cut short ends it with an error.
#[derive(Clone, Debug)]
pub struct DesignationDescriptors<'a> {
    reader: Reader<'a>,
    failed: bool,
}

impl<'a> Iterator for DesignationDescriptors<'a> {
    type Item = Result<DesignationDescriptor<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.reader.rest().is_empty() {
            return None;
        }
        let descriptor = DesignationDescriptor::read(&mut self.reader);
        self.failed = descriptor.is_err();
        Some(descriptor)
    }
}

code! {
    /// CODE SET, four bits: what the bytes of a designator are.
    pub enum CodeSet: u8 {
        /// Binary.
        Binary = 0x01 => "binary",
        /// Printable ASCII.
        Ascii = 0x02 => "ASCII",
        /// UTF-8.
        Utf8 = 0x03 => "UTF-8",
    }
}

code! {
    /// ASSOCIATION, two bits: what a designator names.
    pub enum Association: u8 {
        /// The logical unit.
        LogicalUnit = 0x00 => "logical unit",
        /// The target port that received the command.
        TargetPort = 0x01 => "target port",
        /// The target device that holds the logical unit.
        TargetDevice = 0x02 => "target device",
    }
}

code! {
    /// PROTOCOL IDENTIFIER, four bits: the transport that a name belongs to.
    pub enum ProtocolId: u8 {
        /// Fibre Channel.
        FibreChannel = 0x00 => "Fibre Channel",
        /// Parallel SCSI.
        Parallel = 0x01 => "parallel SCSI",
        /// IEEE 1394.
        Sbp = 0x03 => "SBP",
        /// SCSI RDMA.
        Srp = 0x04 => "SRP",
        /// iSCSI.
        Iscsi = 0x05 => "iSCSI",
        /// Serial attached SCSI.
        Sas = 0x06 => "SAS",
        /// ATA.
        Ata = 0x08 => "ATA",
        /// USB attached SCSI.
        Uas = 0x09 => "UAS",
        /// SCSI over PCI Express.
        Sop = 0x0a => "SOP",
        /// None in particular.
        None = 0x0f => "none",
    }
}

/// One name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DesignationDescriptor<'a> {
    /// Encoding of the designator.
    pub code_set: CodeSet,
    /// Entity that the designator identifies.
    pub association: Association,
    /// The transport, if PIV says that it counts; only names of ports and targets have one.
    #[doc(alias = "PIV")]
    pub protocol: Option<ProtocolId>,
    /// The name.
    pub designator: Designator<'a>,
}

/// The name in a designation descriptor, by DESIGNATOR TYPE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Designator<'a> {
    /// Type 0: what the vendor likes.
    VendorSpecific(&'a [u8]),
    /// Type 1: vendor identification and what the vendor adds.
    T10Vendor {
        /// T10 VENDOR IDENTIFICATION.
        vendor: Ascii<8>,
        /// VENDOR SPECIFIC IDENTIFIER.
        specific: &'a [u8],
    },
    /// Type 2: EUI-64 and its longer forms, 8, 12 or 16 bytes.
    Eui64(&'a [u8]),
    /// Type 3: a network address authority name, 8 or 16 bytes.
    Naa(&'a [u8]),
    /// Type 4: RELATIVE TARGET PORT IDENTIFIER.
    RelativeTargetPort(u16),
    /// Type 5: TARGET PORT GROUP.
    TargetPortGroup(u16),
    /// Type 6: LOGICAL UNIT GROUP.
    LogicalUnitGroup(u16),
    /// Type 7: MD5 logical unit identifier.
    Md5(&'a [u8; 16]),
    /// Type 8: SCSI name string, without the NULs that end and pad it on the wire.
    ScsiName(&'a [u8]),
    /// Any other type, or a length that is not the type's.
    Other {
        /// DESIGNATOR TYPE, four bits.
        designator_type: u8,
        /// The bytes.
        bytes: &'a [u8],
    },
}

impl<'a> DesignationDescriptor<'a> {
    /// Bytes before the designator.
    pub const HEADER_LEN: usize = 4;

    /// Decodes the descriptor at the front of `bytes`.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Self::read(&mut Reader::new(bytes))
    }

    /// Writes the descriptor; the answer is the bytes written.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out);
        self.put(&mut writer)?;
        Ok(writer.written())
    }

    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let head: [u8; 4] = reader.array()?;
        let bytes = reader.slice(usize::from(head[3]))?;
        let protocol = ProtocolId::from(bits::<7, 4>(head[0]));
        Ok(Self {
            code_set: bits::<3, 0>(head[0]).into(),
            association: bits::<5, 4>(head[1]).into(),
            protocol: bit::<7>(head[1]).then_some(protocol),
            designator: Designator::decode(bits::<3, 0>(head[1]), bytes),
        })
    }

    pub(super) fn put(&self, writer: &mut Writer<'_>) -> Result<(), NoRoom> {
        let start = writer.written();
        let protocol = self.protocol.map_or(0, u8::from);
        writer.put(&[
            set_bits::<7, 4>(protocol) | set_bits::<3, 0>(self.code_set.into()),
            set_bit::<7>(self.protocol.is_some())
                | set_bits::<5, 4>(self.association.into())
                | set_bits::<3, 0>(self.designator.designator_type()),
            0,
            0,
        ])?;
        self.designator.put(writer)?;
        let len = writer.written() - start - Self::HEADER_LEN;
        let len = u8::try_from(len).map_err(|_| NoRoom { needed: len, got: u8::MAX.into() })?;
        writer.patch(start + 3, &[len])
    }
}

impl<'a> Designator<'a> {
    fn decode(designator_type: u8, bytes: &'a [u8]) -> Self {
        let other = Self::Other { designator_type, bytes };
        // The number of types 4 to 6 is preceded by two obsolete or reserved bytes.
        let number = match *bytes {
            [_, _, high, low] => Some(u16::from_be_bytes([high, low])),
            _ => None,
        };
        match designator_type {
            0 => Self::VendorSpecific(bytes),
            1 => bytes
                .split_first_chunk()
                .map_or(other, |(vendor, specific)| Self::T10Vendor { vendor: Ascii(*vendor), specific }),
            2 if matches!(bytes.len(), 8 | 12 | 16) => Self::Eui64(bytes),
            3 if matches!(bytes.len(), 8 | 16) => Self::Naa(bytes),
            4 => number.map_or(other, Self::RelativeTargetPort),
            5 => number.map_or(other, Self::TargetPortGroup),
            6 => number.map_or(other, Self::LogicalUnitGroup),
            7 => bytes.try_into().map_or(other, Self::Md5),
            8 if bytes.len().is_multiple_of(4) && bytes.last() == Some(&0) => {
                let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |at| at + 1);
                Self::ScsiName(bytes.get(..end).unwrap_or(bytes))
            }
            _ => other,
        }
    }

    /// DESIGNATOR TYPE.
    pub const fn designator_type(&self) -> u8 {
        match self {
            Self::VendorSpecific(_) => 0,
            Self::T10Vendor { .. } => 1,
            Self::Eui64(_) => 2,
            Self::Naa(_) => 3,
            Self::RelativeTargetPort(_) => 4,
            Self::TargetPortGroup(_) => 5,
            Self::LogicalUnitGroup(_) => 6,
            Self::Md5(_) => 7,
            Self::ScsiName(_) => 8,
            Self::Other { designator_type, .. } => *designator_type,
        }
    }

    fn put(&self, writer: &mut Writer<'_>) -> Result<(), NoRoom> {
        match self {
            Self::VendorSpecific(bytes)
            | Self::Eui64(bytes)
            | Self::Naa(bytes)
            | Self::Other { bytes, .. } => writer.put(bytes),
            Self::T10Vendor { vendor, specific } => {
                writer.put(&vendor.0)?;
                writer.put(specific)
            }
            Self::RelativeTargetPort(number)
            | Self::TargetPortGroup(number)
            | Self::LogicalUnitGroup(number) => writer.be32((*number).into()),
            Self::Md5(digest) => writer.put(*digest),
            Self::ScsiName(name) => {
                writer.put(name)?;
                writer.zeroes(4 - name.len() % 4)
            }
        }
    }
}

impl fmt::Display for DesignationDescriptor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.association, self.designator)
    }
}

impl fmt::Display for Designator<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, bytes) = match self {
            Self::T10Vendor { vendor, specific } => {
                return write!(f, "T10 vendor {vendor} {}", specific.escape_ascii());
            }
            Self::RelativeTargetPort(number) => return write!(f, "relative target port {number}"),
            Self::TargetPortGroup(number) => return write!(f, "target port group {number}"),
            Self::LogicalUnitGroup(number) => return write!(f, "logical unit group {number}"),
            Self::ScsiName(name) => return write!(f, "SCSI name {}", name.escape_ascii()),
            Self::VendorSpecific(bytes) => ("vendor specific", *bytes),
            Self::Eui64(bytes) => ("EUI-64", *bytes),
            Self::Naa(bytes) => ("NAA", *bytes),
            Self::Md5(digest) => ("MD5", digest.as_slice()),
            Self::Other { designator_type, bytes } => {
                write!(f, "type {designator_type} ")?;
                ("", *bytes)
            }
        };
        f.write_str(name)?;
        f.write_str(if name.is_empty() { "" } else { " " })?;
        bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// An NAA name of type 3h, locally assigned: 60 bits chosen by the administrator.
pub const fn locally_assigned_naa(value: u64) -> [u8; 8] {
    (3 << 60 | value & (u64::MAX >> 4)).to_be_bytes()
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;
    use std::vec::Vec;

    /// A page with a T10 name, an NAA name, a port number over UAS and a SCSI name.
    const PAGE: [u8; 70] = *b"\x00\x83\x00\x42\
        \x02\x01\x00\x0euaskit  UK0042\
        \x01\x03\x00\x08\x30\x11\x22\x33\x44\x55\x66\x77\
        \x91\x94\x00\x04\x00\x00\x00\x01\
        \x03\x28\x00\x18naa.3011223344556677\x00\x00\x00\x00";

    #[test]
    fn literal_bytes_both_ways() {
        let page = DeviceIdentification::decode(&PAGE).unwrap();
        let naa = locally_assigned_naa(0x0011_2233_4455_6677);
        let expected = [
            DesignationDescriptor {
                code_set: CodeSet::Ascii,
                association: Association::LogicalUnit,
                protocol: None,
                designator: Designator::T10Vendor { vendor: Ascii::new("uaskit"), specific: b"UK0042" },
            },
            DesignationDescriptor {
                code_set: CodeSet::Binary,
                association: Association::LogicalUnit,
                protocol: None,
                designator: Designator::Naa(&naa),
            },
            DesignationDescriptor {
                code_set: CodeSet::Binary,
                association: Association::TargetPort,
                protocol: Some(ProtocolId::Uas),
                designator: Designator::RelativeTargetPort(1),
            },
            DesignationDescriptor {
                code_set: CodeSet::Utf8,
                association: Association::TargetDevice,
                protocol: None,
                designator: Designator::ScsiName(b"naa.3011223344556677"),
            },
        ];
        let found: Vec<_> = page.iter().map(Result::unwrap).collect();
        assert_eq!(found, expected);
        let mut out = [0xff; 80];
        assert_eq!(DeviceIdentification::encode_list(Peripheral::DISK, &expected, &mut out), Ok(70));
        assert_eq!(out[..70], PAGE);
        assert_eq!(found[0].to_string(), "logical unit: T10 vendor uaskit UK0042");
        assert_eq!(found[1].to_string(), "logical unit: NAA 3011223344556677");
    }

    #[test]
    fn a_descriptor_cut_short_ends_the_list_with_an_error() {
        let page = DeviceIdentification { descriptors: &PAGE[4..27] };
        let found: Vec<_> = page.iter().collect();
        assert_eq!(found.len(), 2);
        assert_eq!(found[1], Err(DecodeError::Truncated { needed: 30, got: 23 }));
    }

    #[test]
    fn every_known_type_is_distinguished() {
        for (designator_type, bytes, expected) in [
            (0, &[1, 2][..], Designator::VendorSpecific(&[1, 2])),
            (2, &[7; 12], Designator::Eui64(&[7; 12])),
            (5, &[0, 0, 0x12, 0x34], Designator::TargetPortGroup(0x1234)),
            (6, &[0, 0, 0, 9], Designator::LogicalUnitGroup(9)),
            (7, &[5; 16], Designator::Md5(&[5; 16])),
        ] {
            let mut wire = std::vec![0x01, designator_type, 0, bytes.len() as u8];
            wire.extend(bytes);
            let descriptor = DesignationDescriptor::decode(&wire).unwrap();
            assert_eq!(descriptor.designator, expected);
            let mut out = [0; 20];
            let len = descriptor.encode(&mut out).unwrap();
            assert_eq!(out[..len], wire);
        }
    }

    #[test]
    fn an_unknown_type_or_an_odd_length_keeps_its_bytes() {
        for wire in [&[0x05, 0x0a, 0, 2, 8, 9][..], &[1, 3, 0, 1, 7], &[1, 7, 0, 0], &[3, 8, 0, 2, b'x', 0]] {
            let descriptor = DesignationDescriptor::decode(wire).unwrap();
            assert!(matches!(descriptor.designator, Designator::Other { .. }));
            let mut out = [0; 8];
            assert_eq!(descriptor.encode(&mut out), Ok(wire.len()));
            assert_eq!(out[..wire.len()], *wire);
        }
    }

    #[test]
    fn a_designator_longer_than_its_length_byte_has_no_room() {
        let descriptor = DesignationDescriptor {
            code_set: CodeSet::Binary,
            association: Association::LogicalUnit,
            protocol: None,
            designator: Designator::VendorSpecific(&[0; 256]),
        };
        assert_eq!(descriptor.encode(&mut [0; 300]), Err(NoRoom { needed: 256, got: 255 }));
    }
}
