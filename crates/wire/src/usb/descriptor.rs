//! Any descriptor, and the walk through the descriptors of one answer (USB 3.2 clause 9.5).
//!
//! GET_DESCRIPTOR of a configuration or of the BOS answers with descriptors end to end. The walk trusts
//! nothing: a length byte that is too small or points past the end is an error and ends it; a descriptor
//! that is framed well but too short for its kind is an error and is stepped over. Always true: the walk
//! ends after at most half as many steps as there are bytes, and one.

use super::{
    BosDescriptor, ClassCode, ConfigurationDescriptor, DescriptorKind, DeviceCapability, DeviceDescriptor,
    EndpointDescriptor, InterfaceDescriptor, OtherSpeedConfigurationDescriptor, PipeUsageDescriptor,
    QualifierDescriptor, StringDescriptor, SuperSpeedCompanion,
};
use crate::{DecodeError, NoRoom, Writer};
use core::fmt;
use core::iter::FusedIterator;

/// One descriptor of any kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descriptor<'a> {
    /// The device.
    Device(DeviceDescriptor),
    /// The head of a configuration.
    Configuration(ConfigurationDescriptor),
    /// Text; string descriptor 0 looks the same, see [`LanguageTable`](super::LanguageTable).
    String(StringDescriptor<'a>),
    /// An alternate setting.
    Interface(InterfaceDescriptor),
    /// An endpoint of it.
    Endpoint(EndpointDescriptor),
    /// The device at the other speed.
    Qualifier(QualifierDescriptor),
    /// The head of a configuration at the other speed.
    OtherSpeedConfiguration(OtherSpeedConfigurationDescriptor),
    /// The head of the BOS.
    Bos(BosDescriptor),
    /// A capability in it.
    Capability(DeviceCapability<'a>),
    /// Which UAS pipe the endpoint is.
    PipeUsage(PipeUsageDescriptor),
    /// SuperSpeed properties of the endpoint.
    Companion(SuperSpeedCompanion),
    /// A descriptor without a type here, or a class-specific one of a class not known here.
    Unknown {
        /// Its type.
        kind: DescriptorKind,
        /// The whole descriptor.
        bytes: &'a [u8],
    },
}

impl<'a> Descriptor<'a> {
    /// Decodes the descriptor at the front of `bytes`; type 24h is taken for pipe usage.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let (kind, whole, _) = split_first(bytes)?;
        match kind {
            DescriptorKind::Device => DeviceDescriptor::decode(whole).map(Self::Device),
            DescriptorKind::Configuration => ConfigurationDescriptor::decode(whole).map(Self::Configuration),
            DescriptorKind::String => StringDescriptor::decode(whole).map(Self::String),
            DescriptorKind::Interface => InterfaceDescriptor::decode(whole).map(Self::Interface),
            DescriptorKind::Endpoint => EndpointDescriptor::decode(whole).map(Self::Endpoint),
            DescriptorKind::DeviceQualifier => QualifierDescriptor::decode(whole).map(Self::Qualifier),
            DescriptorKind::OtherSpeedConfiguration => {
                OtherSpeedConfigurationDescriptor::decode(whole).map(Self::OtherSpeedConfiguration)
            }
            DescriptorKind::Bos => BosDescriptor::decode(whole).map(Self::Bos),
            DescriptorKind::DeviceCapability => DeviceCapability::decode(whole).map(Self::Capability),
            DescriptorKind::PipeUsage => PipeUsageDescriptor::decode(whole).map(Self::PipeUsage),
            DescriptorKind::SuperSpeedCompanion => SuperSpeedCompanion::decode(whole).map(Self::Companion),
            // A hub's own is asked for by itself.
            kind @ (DescriptorKind::InterfaceAssociation
            | DescriptorKind::Hub
            | DescriptorKind::SuperSpeedHub
            | DescriptorKind::Unknown(_)) => Ok(Self::Unknown { kind, bytes: whole }),
        }
    }

    /// Writes the descriptor to the front of `out` and says how long it is.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out);
        match self {
            Self::Device(descriptor) => writer.put(&descriptor.encode())?,
            Self::Configuration(descriptor) => writer.put(&descriptor.encode())?,
            Self::String(descriptor) => return descriptor.encode(out),
            Self::Interface(descriptor) => writer.put(&descriptor.encode())?,
            Self::Endpoint(descriptor) => writer.put(&descriptor.encode())?,
            Self::Qualifier(descriptor) => writer.put(&descriptor.encode())?,
            Self::OtherSpeedConfiguration(descriptor) => writer.put(&descriptor.encode())?,
            Self::Bos(descriptor) => writer.put(&descriptor.encode())?,
            Self::Capability(descriptor) => return descriptor.encode(out),
            Self::PipeUsage(descriptor) => writer.put(&descriptor.encode())?,
            Self::Companion(descriptor) => writer.put(&descriptor.encode())?,
            Self::Unknown { bytes, .. } => writer.put(bytes)?,
        }
        Ok(writer.written())
    }
}

impl fmt::Display for Descriptor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(descriptor) => descriptor.fmt(f),
            Self::Configuration(descriptor) => descriptor.fmt(f),
            Self::String(descriptor) => descriptor.fmt(f),
            Self::Interface(descriptor) => descriptor.fmt(f),
            Self::Endpoint(descriptor) => descriptor.fmt(f),
            Self::Qualifier(descriptor) => descriptor.fmt(f),
            Self::OtherSpeedConfiguration(descriptor) => descriptor.fmt(f),
            Self::Bos(descriptor) => descriptor.fmt(f),
            Self::Capability(descriptor) => descriptor.fmt(f),
            Self::PipeUsage(descriptor) => descriptor.fmt(f),
            Self::Companion(descriptor) => descriptor.fmt(f),
            Self::Unknown { kind, bytes } => write!(f, "descriptor {kind}, {} bytes", bytes.len()),
        }
    }
}

/// The descriptors of one answer, in order.
#[derive(Clone, Debug)]
pub struct Descriptors<'a> {
    rest: &'a [u8],
    // Type 24h belongs to the class of the interface above it; it is pipe usage only below UAS.
    below_other_class: bool,
}

impl<'a> Descriptors<'a> {
    /// A walk that begins at the first of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, below_other_class: false }
    }
}

impl<'a> Iterator for Descriptors<'a> {
    type Item = Result<Descriptor<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let (kind, whole, rest) = match split_first(self.rest) {
            Ok(split) => split,
            Err(error) => {
                self.rest = &[];
                return Some(Err(error));
            }
        };
        self.rest = rest;
        if self.below_other_class && kind == DescriptorKind::PipeUsage {
            return Some(Ok(Descriptor::Unknown { kind, bytes: whole }));
        }
        let descriptor = Descriptor::decode(whole);
        if let Ok(Descriptor::Interface(interface)) = descriptor {
            self.below_other_class = interface.class != ClassCode::UAS;
        }
        Some(descriptor)
    }
}

impl FusedIterator for Descriptors<'_> {}

/// Kind and bytes of the first descriptor of `bytes`, and what follows it.
fn split_first(bytes: &[u8]) -> Result<(DescriptorKind, &[u8], &[u8]), DecodeError> {
    let got = bytes.len();
    let &[len, kind] = bytes.first_chunk::<2>().ok_or(DecodeError::Truncated { needed: 2, got })?;
    if len < 2 {
        return Err(DecodeError::Invalid { field: "bLength", value: len.into() });
    }
    let truncated = DecodeError::Truncated { needed: len.into(), got };
    let (whole, rest) = bytes.split_at_checked(len.into()).ok_or(truncated)?;
    Ok((kind.into(), whole, rest))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::uas::PipeUsage;
    use crate::usb::{Direction, EndpointAddress};
    use proptest::prelude::*;
    use std::string::ToString;
    use std::{vec, vec::Vec};

    /// A SuperSpeed configuration with BOT as alternate setting 0 and UAS as 1, 32 streams.
    const DUAL: [u8; 121] = [
        9, 0x02, 121, 0, 1, 1, 0, 0xc0, 0, // configuration
        9, 0x04, 0, 0, 2, 0x08, 0x06, 0x50, 0, // interface 0, alternate 0: BOT
        7, 0x05, 0x81, 0x02, 0x00, 0x04, 0, 6, 0x30, 15, 0, 0, 0, // 1 IN
        7, 0x05, 0x02, 0x02, 0x00, 0x04, 0, 6, 0x30, 15, 0, 0, 0, // 2 OUT
        9, 0x04, 0, 1, 4, 0x08, 0x06, 0x62, 0, // interface 0, alternate 1: UAS
        7, 0x05, 0x01, 0x02, 0x00, 0x04, 0, 6, 0x30, 0, 0, 0, 0, 4, 0x24, 1, 0, // 1 OUT: command
        7, 0x05, 0x82, 0x02, 0x00, 0x04, 0, 6, 0x30, 0, 5, 0, 0, 4, 0x24, 2, 0, // 2 IN: status
        7, 0x05, 0x83, 0x02, 0x00, 0x04, 0, 6, 0x30, 15, 5, 0, 0, 4, 0x24, 3, 0, // 3 IN: data-in
        7, 0x05, 0x04, 0x02, 0x00, 0x04, 0, 6, 0x30, 15, 5, 0, 0, 4, 0x24, 4, 0, // 4 OUT: data-out
    ];

    fn walk(bytes: &[u8]) -> Vec<Result<Descriptor<'_>, DecodeError>> {
        Descriptors::new(bytes).collect()
    }

    #[test]
    fn a_dual_transport_configuration_is_walked_whole() {
        let descriptors: Vec<_> = walk(&DUAL).into_iter().map(Result::unwrap).collect();
        assert_eq!(descriptors.len(), 1 + 1 + 2 * 2 + 1 + 4 * 3);
        assert!(matches!(descriptors[0], Descriptor::Configuration(c) if c.total_len == 121));
        assert!(matches!(descriptors[1], Descriptor::Interface(i) if i.class == ClassCode::BOT));
        assert!(matches!(descriptors[6], Descriptor::Interface(i) if i.class == ClassCode::UAS));
        let data_in = [
            Descriptor::Endpoint(EndpointDescriptor::bulk(EndpointAddress::at::<3>(Direction::In), 1024)),
            Descriptor::Companion(SuperSpeedCompanion::bulk(15, 5)),
            Descriptor::PipeUsage(PipeUsageDescriptor { usage: PipeUsage::DataIn }),
        ];
        assert_eq!(descriptors[13..16], data_in);
        assert_eq!(descriptors[15].to_string(), "data-in pipe");
    }

    #[test]
    fn what_was_walked_encodes_to_the_same_bytes() {
        let mut out = [0; 121];
        let mut at = 0;
        for descriptor in Descriptors::new(&DUAL) {
            at += descriptor.unwrap().encode(&mut out[at..]).unwrap();
        }
        assert_eq!((at, out), (121, DUAL));
    }

    #[test]
    fn a_store_of_capabilities_is_walked_whole() {
        let bos = [
            5, 0x0f, 22, 0, 2, // header
            7, 0x10, 0x02, 0x02, 0, 0, 0, // USB 2.0 extension
            10, 0x10, 0x03, 0, 0x0e, 0, 1, 10, 0xff, 0x01, // SuperSpeed
        ];
        let descriptors: Vec<_> = walk(&bos).into_iter().map(Result::unwrap).collect();
        assert!(matches!(descriptors[0], Descriptor::Bos(b) if b.capabilities == 2));
        assert!(matches!(descriptors[1], Descriptor::Capability(DeviceCapability::Usb2Extension(_))));
        assert!(matches!(descriptors[2], Descriptor::Capability(DeviceCapability::SuperSpeed(_))));
        assert_eq!(descriptors.len(), 3);
    }

    #[test]
    fn a_length_of_zero_or_one_is_an_error_and_ends_the_walk() {
        for len in [0, 1] {
            let bytes = [4, 0x24, 1, 0, len, 0x24, 2, 0, 4, 0x24, 3, 0];
            let error = DecodeError::Invalid { field: "bLength", value: len.into() };
            let walked = walk(&bytes);
            assert_eq!(walked.len(), 2);
            assert_eq!(walked[1], Err(error));
        }
    }

    #[test]
    fn every_truncated_length_is_an_error_at_the_end() {
        let starts: Vec<usize> = walk(&DUAL)
            .iter()
            .scan(0, |at, descriptor| {
                *at += descriptor.unwrap().encode(&mut [0; 16]).unwrap();
                Some(*at)
            })
            .collect();
        for len in 1..DUAL.len() {
            let last = walk(&DUAL[..len]).pop().unwrap();
            assert_eq!(last.is_ok(), starts.contains(&len), "{len} bytes");
            assert!(last.is_ok() || matches!(last, Err(DecodeError::Truncated { .. })));
        }
    }

    #[test]
    fn a_known_kind_that_is_too_short_is_stepped_over() {
        let bytes = [5, 0x05, 0x81, 2, 0, 4, 0x24, 1, 0];
        let walked = walk(&bytes);
        assert_eq!(walked[0], Err(DecodeError::Truncated { needed: 7, got: 5 }));
        assert_eq!(walked[1], Ok(Descriptor::PipeUsage(PipeUsageDescriptor { usage: PipeUsage::Command })));
    }

    #[test]
    fn an_unknown_descriptor_survives() {
        let bytes = [8, 0x0b, 0, 2, 1, 2, 3, 4, 3, 0xee, 7];
        let kind = DescriptorKind::InterfaceAssociation;
        let association = Descriptor::Unknown { kind, bytes: &bytes[..8] };
        let other = Descriptor::Unknown { kind: DescriptorKind::Unknown(0xee), bytes: &bytes[8..] };
        assert_eq!(walk(&bytes), [Ok(association), Ok(other)]);
        assert_eq!(other.to_string(), "descriptor unknown (0xee), 3 bytes");
        let mut out = [0; 3];
        assert_eq!(other.encode(&mut out), Ok(3));
        assert_eq!(out, [3, 0xee, 7]);
    }

    #[test]
    fn a_class_descriptor_below_another_class_is_not_pipe_usage() {
        let bytes = [9, 0x04, 0, 0, 0, 0x01, 0x01, 0x00, 0, 5, 0x24, 1, 0, 1];
        let walked = walk(&bytes);
        let kind = DescriptorKind::PipeUsage;
        assert_eq!(walked[1], Ok(Descriptor::Unknown { kind, bytes: &bytes[9..] }));
    }

    proptest! {
        #[test]
        fn any_walk_ends(bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0u8..20], 0..400)) {
            let mut walk = Descriptors::new(&bytes);
            let steps = walk.by_ref().count();
            prop_assert!(steps <= bytes.len() / 2 + 1);
            prop_assert!(walk.next().is_none());
        }

        #[test]
        fn decode_undoes_encode(
            kind in prop_oneof![0u8..=0x11, Just(0x24), Just(0x30)],
            content in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let mut bytes = vec![content.len() as u8 + 2, kind];
            bytes.extend(content);
            if let Ok(descriptor) = Descriptor::decode(&bytes) {
                let _ = descriptor.to_string();
                let mut out = [0; 255];
                let len = descriptor.encode(&mut out).unwrap();
                prop_assert_eq!(Descriptor::decode(&out[..len]).unwrap(), descriptor);
            }
        }
    }
}
