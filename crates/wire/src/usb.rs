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
mod descriptor_kind;
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
pub use descriptor_kind::DescriptorKind;
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
