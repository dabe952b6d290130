//! Header that all descriptors share: length and type (USB 3.2 clause 9.5).
//!
//! Left out: the fields of each. Always true: bytes past a descriptor's length are not its own.

use crate::DecodeError;

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
        /// SuperSpeed properties of the endpoint before it.
        SuperSpeedCompanion = 0x30 => "SuperSpeed endpoint companion",
    }
}

/// The known bytes of a descriptor of this kind.
pub(super) fn fixed_descriptor<const LEN: usize>(
    bytes: &[u8],
    kind: DescriptorKind,
) -> Result<&[u8; LEN], DecodeError> {
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
pub(super) fn whole_descriptor<const LEN: usize>(
    bytes: &[u8],
    kind: DescriptorKind,
) -> Result<(&[u8; LEN], &[u8]), DecodeError> {
    let fixed = fixed_descriptor::<LEN>(bytes, kind)?;
    let len = bytes.first().copied().map_or(LEN, usize::from);
    let truncated = DecodeError::Truncated { needed: len, got: bytes.len() };
    Ok((fixed, bytes.get(LEN..len).ok_or(truncated)?))
}
