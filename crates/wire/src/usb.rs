//! USB 2.0 and 3.2: setup packets and descriptors (chapter 9 of both), and the packets of USB 2.0 (chapter 8).
//!
//! Everything is little-endian. A descriptor begins with its length and its kind, and may be longer than the
//! version of the standard that defined it: decoders ignore what lies past the fields they know, and refuse
//! a descriptor that is shorter. Left out: On-The-Go, isochronous companions, interface associations.

mod bos;
mod class_code;
mod companion;
mod configuration;
mod descriptor;
mod device;
mod endpoint;
mod exit_latency;
mod feature;
pub mod hub;
mod interface;
mod other_speed;
mod packet;
mod pipe_usage;
mod qualifier;
mod setup;
mod string;
mod version;

pub use bos::{
    BosDescriptor, CapabilityKind, ContainerIdCapability, DeviceCapability, LaneSpeedUnit, LinkProtocol,
    PlatformCapability, SpeedSet, SublinkSpeed, SuperSpeedCapability, SuperSpeedPlusCapability,
    SuperSpeedPlusMinimum, Usb2ExtensionCapability,
};
pub use class_code::ClassCode;
pub use companion::SuperSpeedCompanion;
pub use configuration::ConfigurationDescriptor;
pub use descriptor::{Descriptor, Descriptors};
pub use device::DeviceDescriptor;
pub use endpoint::{EndpointAddress, EndpointAttributes, EndpointDescriptor, TransferType};
pub use exit_latency::ExitLatencies;
pub use feature::{
    DeviceFeature, DeviceStatus, EndpointFeature, EndpointStatus, InterfaceFeature, InterfaceStatus,
    SuspendOptions,
};
pub use interface::InterfaceDescriptor;
pub use other_speed::OtherSpeedConfigurationDescriptor;
pub use packet::{PacketId, Token, check_of_payload};
pub use pipe_usage::PipeUsageDescriptor;
pub use qualifier::QualifierDescriptor;
pub use setup::{Recipient, RequestKind, SetupPacket, StandardRequest};
pub use string::{LanguageTable, StringDescriptor};
pub use version::BcdVersion;

use crate::DecodeError;
use core::fmt;

/// Which way bytes travel, seen from the host. A choice, not a code: one bit wherever it is on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Host to device.
    Out,
    /// Device to host.
    In,
}

impl Direction {
    /// The direction in bit 7 of `byte`: of an endpoint address, `bmRequestType` or `bmCBWFlags`.
    pub const fn from_bit_7(byte: u8) -> Self {
        if byte & 0x80 == 0 { Self::Out } else { Self::In }
    }

    /// 80h for [`Self::In`], 0 for [`Self::Out`].
    pub const fn bit_7(self) -> u8 {
        match self {
            Self::Out => 0x00,
            Self::In => 0x80,
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Out => "OUT",
            Self::In => "IN",
        })
    }
}

code! {
    /// Descriptor type, byte 1 of each descriptor (USB 3.2 table 9-6; the class descriptor: UAS-2).
    #[doc(alias = "bDescriptorType")]
    pub enum DescriptorKind: u8 {
        /// The device, once.
        Device = 0x01 => "device",
        /// A configuration, with everything in it.
        Configuration = 0x02 => "configuration",
        /// A string, or the languages of the strings.
        String = 0x03 => "string",
        /// An alternate setting of an interface.
        Interface = 0x04 => "interface",
        /// An endpoint of the interface before it.
        Endpoint = 0x05 => "endpoint",
        /// The device at the other of full and high speed.
        DeviceQualifier = 0x06 => "device qualifier",
        /// A configuration at the other of full and high speed.
        OtherSpeedConfiguration = 0x07 => "other-speed configuration",
        /// Which interfaces make one function.
        InterfaceAssociation = 0x0b => "interface association",
        /// Binary device object store.
        Bos = 0x0f => "BOS",
        /// One capability in the BOS.
        DeviceCapability = 0x10 => "device capability",
        /// Class-specific descriptor; below a UAS interface it contains the pipe usage of the endpoint before it.
        PipeUsage = 0x24 => "pipe usage",
        /// A hub of USB 2.0.
        Hub = 0x29 => "hub",
        /// A hub of SuperSpeed.
        SuperSpeedHub = 0x2a => "SuperSpeed hub",
        /// What SuperSpeed adds to the endpoint before it.
        SuperSpeedCompanion = 0x30 => "SuperSpeed endpoint companion",
    }
}

/// The known bytes of a descriptor of this kind.
fn fixed_descriptor<const LEN: usize>(bytes: &[u8], kind: DescriptorKind) -> Result<&[u8; LEN], DecodeError> {
    let truncated = DecodeError::Truncated { needed: LEN, got: bytes.len() };
    let (fixed, &[len, found]) = bytes.first_chunk::<LEN>().zip(bytes.first_chunk::<2>()).ok_or(truncated)?;
    let expected = u8::from(kind);
    if found != expected {
        return Err(DecodeError::WrongKind { expected: expected.into(), found: found.into() });
    }
    if usize::from(len) < LEN {
        return Err(DecodeError::Invalid { field: "bLength", value: len.into() });
    }
    Ok(fixed)
}

/// The first `LEN` bytes of a descriptor of this kind, and the rest of what its length byte says.
fn whole_descriptor<const LEN: usize>(
    bytes: &[u8],
    kind: DescriptorKind,
) -> Result<(&[u8; LEN], &[u8]), DecodeError> {
    let fixed = fixed_descriptor::<LEN>(bytes, kind)?;
    let len = bytes.first().copied().map_or(LEN, usize::from);
    let truncated = DecodeError::Truncated { needed: len, got: bytes.len() };
    Ok((fixed, bytes.get(LEN..len).ok_or(truncated)?))
}
