//! Header that all capabilities of the BOS share (USB 3.2 clause 9.6.2).
//!
//! Left out: the fields of each. Always true: a type that is not known survives.

use super::super::descriptor_kind::{DescriptorKind, fixed_descriptor};
use crate::DecodeError;

code! {
    /// Capability type, byte 2 of a device capability descriptor (USB 3.2 table 9-14).
    #[doc(alias = "bDevCapabilityType")]
    pub enum CapabilityKind: u8 {
        /// [`Usb2ExtensionCapability`](super::Usb2ExtensionCapability).
        Usb2Extension = 0x02 => "USB 2.0 extension",
        /// [`SuperSpeedCapability`](super::SuperSpeedCapability).
        SuperSpeed = 0x03 => "SuperSpeed",
        /// [`ContainerIdCapability`](super::ContainerIdCapability).
        ContainerId = 0x04 => "container id",
        /// [`PlatformCapability`](super::PlatformCapability).
        Platform = 0x05 => "platform",
        /// [`SuperSpeedPlusCapability`](super::SuperSpeedPlusCapability).
        SuperSpeedPlus = 0x0a => "SuperSpeedPlus",
    }
}

/// The known bytes of a capability of this kind.
pub(super) fn fixed_capability<const LEN: usize>(
    bytes: &[u8],
    kind: CapabilityKind,
) -> Result<&[u8; LEN], DecodeError> {
    let fixed = fixed_descriptor::<LEN>(bytes, DescriptorKind::DeviceCapability)?;
    let (expected, found) = (u8::from(kind), fixed.get(2).copied().unwrap_or_default());
    if found != expected {
        return Err(DecodeError::WrongKind { expected: expected.into(), found: found.into() });
    }
    Ok(fixed)
}
