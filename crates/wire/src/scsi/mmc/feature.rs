//! GET CONFIGURATION data: a header, and a descriptor for each feature (MMC-6 clauses 5.2 and 6.6).
//!
//! ```text
//! header      0..4  data length (bytes that follow)   6..8  current profile
//! descriptor  0..2  feature code
//!             2     VERSION (5:2), PERSISTENT (1), CURRENT (0)
//!             3     additional length, a multiple of four
//!             4..   what the feature defines
//! ```

use super::{Profile, head};
use crate::scsi::layout::{be16, be32, bit, bits, set_bit, set_bits};
use crate::{DecodeError, NoRoom, Writer};
use core::fmt;

code! {
    /// FEATURE CODE.
    pub enum FeatureCode: u16 {
        /// Which profiles the drive knows.
        ProfileList = 0x0000 => "profile list",
        /// Mandatory behavior.
        Core = 0x0001 => "core",
        /// Behavior that depends on the disc, and events about it.
        Morphing = 0x0002 => "morphing",
        /// The medium can be taken out.
        RemovableMedium = 0x0003 => "removable medium",
        /// Blocks are read in any order.
        RandomReadable = 0x0010 => "random readable",
        /// READ CD and READ TOC.
        CdRead = 0x001e => "CD read",
        /// DVDs are read.
        DvdRead = 0x001f => "DVD read",
        /// BDs are read.
        BdRead = 0x0040 => "BD read",
        /// Power conditions.
        PowerManagement = 0x0100 => "power management",
        /// Commands end in time.
        Timeout = 0x0105 => "timeout",
        /// A serial number.
        SerialNumber = 0x0108 => "serial number",
    }
}

/// Feature header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureHeader {
    /// DATA LENGTH: bytes that follow the field, whatever the allocation length.
    pub data_length: u32,
    /// The profile of the disc.
    pub current_profile: Profile,
}

/// Feature descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureDescriptor<'a> {
    /// Which feature.
    pub code: FeatureCode,
    /// VERSION, four bits.
    pub version: u8,
    /// It is always current.
    pub persistent: bool,
    /// It can be used now.
    pub current: bool,
    /// Bytes that the feature defines.
    pub bytes: &'a [u8],
}

impl FeatureHeader {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// Decodes the header at the front of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let head: &[u8; Self::LEN] = head(bytes)?;
        Ok(Self { data_length: be32::<0, _>(head), current_profile: be16::<6, _>(head).into() })
    }

    /// The eight bytes on the wire.
    pub fn encode(&self) -> [u8; 8] {
        let mut out = [0; Self::LEN];
        out[..4].copy_from_slice(&self.data_length.to_be_bytes());
        out[6..].copy_from_slice(&u16::from(self.current_profile).to_be_bytes());
        out
    }
}

impl fmt::Display for FeatureHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes, profile {}", self.data_length, self.current_profile)
    }
}

impl<'a> FeatureDescriptor<'a> {
    /// Bytes before what the feature defines.
    pub const HEADER_LEN: usize = 4;

    /// Decodes the descriptor at the front of `bytes`.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let head: &[u8; 4] = head(bytes)?;
        let needed = Self::HEADER_LEN + usize::from(head[3]);
        let whole = bytes.get(Self::HEADER_LEN..needed);
        Ok(Self {
            code: be16::<0, _>(head).into(),
            version: bits::<5, 2>(head[2]),
            persistent: bit::<1>(head[2]),
            current: bit::<0>(head[2]),
            bytes: whole.ok_or(DecodeError::Truncated { needed, got: bytes.len() })?,
        })
    }

    /// Writes the descriptor; the answer is the bytes written.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out);
        self.put(&mut writer)?;
        Ok(writer.written())
    }

    fn put(&self, writer: &mut Writer<'_>) -> Result<(), NoRoom> {
        let len = self.bytes.len();
        let additional = u8::try_from(len).map_err(|_| NoRoom { needed: len, got: u8::MAX.into() })?;
        writer.be16(self.code.into())?;
        let flags = set_bit::<1>(self.persistent) | set_bit::<0>(self.current);
        writer.put(&[set_bits::<5, 2>(self.version) | flags, additional])?;
        writer.put(self.bytes)
    }
}

impl fmt::Display for FeatureDescriptor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let current = if self.current { "current" } else { "not current" };
        write!(f, "feature {:#06x} {}, {current}", u16::from(self.code), self.code)
    }
}

/// The descriptors of GET CONFIGURATION data, one by one; a truncated one is an error and the last.
#[derive(Clone, Debug)]
pub struct Features<'a> {
    rest: &'a [u8],
}

impl<'a> Features<'a> {
    /// Walks the bytes that follow the header.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }
}

impl<'a> Iterator for Features<'a> {
    type Item = Result<FeatureDescriptor<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let descriptor = FeatureDescriptor::decode(self.rest);
        let len = descriptor.map_or(self.rest.len(), |it| FeatureDescriptor::HEADER_LEN + it.bytes.len());
        self.rest = self.rest.get(len..).unwrap_or_default();
        Some(descriptor)
    }
}

/// Builds GET CONFIGURATION data front to back; the length is written at the end.
#[derive(Debug)]
pub struct FeatureWriter<'a> {
    writer: Writer<'a>,
}

impl<'a> FeatureWriter<'a> {
    /// Starts with the header.
    pub fn new(current_profile: Profile, out: &'a mut [u8]) -> Result<Self, NoRoom> {
        let mut writer = Writer::new(out);
        writer.put(&FeatureHeader { data_length: 0, current_profile }.encode())?;
        Ok(Self { writer })
    }

    /// Appends a descriptor.
    pub fn feature(&mut self, descriptor: &FeatureDescriptor<'_>) -> Result<(), NoRoom> {
        descriptor.put(&mut self.writer)
    }

    /// Writes DATA LENGTH; the answer is the bytes of all.
    pub fn finish(mut self) -> Result<usize, NoRoom> {
        let total = self.writer.written();
        // The field does not count itself.
        let length = total.saturating_sub(4) as u32;
        self.writer.patch(0, &length.to_be_bytes())?;
        Ok(total)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_header_and_a_descriptor_both_ways() {
        let bytes = [0, 0, 0, 12, 0, 0, 0x00, 0x08, 0x00, 0x1e, 0x09, 4, 0x80, 0, 0, 0];
        let header = FeatureHeader { data_length: 12, current_profile: Profile::CdRom };
        let feature = FeatureDescriptor {
            code: FeatureCode::CdRead,
            version: 2,
            persistent: false,
            current: true,
            bytes: &[0x80, 0, 0, 0],
        };
        assert_eq!(FeatureHeader::decode(&bytes), Ok(header));
        assert_eq!(header.encode(), bytes[..8]);
        assert_eq!(Features::new(&bytes[8..]).next(), Some(Ok(feature)));
        let mut out = [0; 16];
        let mut writer = FeatureWriter::new(Profile::CdRom, &mut out).unwrap();
        writer.feature(&feature).unwrap();
        assert_eq!(writer.finish(), Ok(16));
        assert_eq!(out, bytes);
        assert_eq!(feature.to_string(), "feature 0x001e CD read, current");
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..8 {
            assert!(FeatureHeader::decode(&[0; 8][..len]).is_err());
        }
        let bytes = [0x01, 0x08, 0x03, 8, b'A', b'B', b'C', b'D', b'E', b'F', b'G', b'H'];
        for len in 0..12 {
            let error = FeatureDescriptor::decode(&bytes[..len]).unwrap_err();
            assert!(matches!(error, DecodeError::Truncated { got, .. } if got == len));
        }
        let mut cut = Features::new(&bytes[..9]);
        assert!(cut.next().is_some_and(|it| it.is_err()) && cut.next().is_none());
    }

    #[test]
    fn an_unknown_feature_survives() {
        let bytes = [0x80, 0x01, 0x3f, 0];
        let feature = FeatureDescriptor::decode(&bytes).unwrap();
        assert_eq!((feature.code, feature.version), (FeatureCode::Unknown(0x8001), 15));
        let mut out = [0; 4];
        assert_eq!(feature.encode(&mut out), Ok(4));
        assert_eq!(out, bytes);
    }
}
