//! USB 2.0 extension capability (USB 3.2 clause 9.6.2.1; the latencies: USB 2.0 LPM errata).

use super::super::descriptor_kind::DescriptorKind;
use super::capability_kind::{CapabilityKind, fixed_capability};
use crate::DecodeError;
use core::fmt;

/// Link power management at USB 2.0 speeds. A SuperSpeed device must have it.
///
/// ```text
///  0      bLength (7)                             2      bDevCapabilityType (02h)
///  1      bDescriptorType (10h)                   3..7   bmAttributes: LPM (1), BESL (2), baseline and deep
///                                                        BESL valid (3, 4), baseline (11:8), deep (15:12)
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usb2ExtensionCapability {
    /// The device understands link power management.
    pub lpm: bool,
    /// It understands the best-effort service latency (BESL) instead of the older HIRD.
    pub besl: bool,
    /// The BESL it likes best in general, 0 to 15, an index into a table of times.
    pub baseline_besl: Option<u8>,
    /// The BESL from which it can save most power, 0 to 15.
    pub deep_besl: Option<u8>,
}

impl Usb2ExtensionCapability {
    /// Bytes of the descriptor.
    pub const LEN: usize = 7;

    /// Decodes a descriptor; reserved bits and bytes past the known ones are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let &[_, _, _, flags, besl, _, _] = fixed_capability::<7>(bytes, CapabilityKind::Usb2Extension)?;
        Ok(Self {
            lpm: flags & 0x02 != 0,
            besl: flags & 0x04 != 0,
            baseline_besl: (flags & 0x08 != 0).then_some(besl & 0x0f),
            deep_besl: (flags & 0x10 != 0).then_some(besl >> 4),
        })
    }

    /// The whole descriptor.
    pub fn encode(&self) -> [u8; 7] {
        let modes = u8::from(self.lpm) << 1 | u8::from(self.besl) << 2;
        let valid = u8::from(self.baseline_besl.is_some()) << 3 | u8::from(self.deep_besl.is_some()) << 4;
        let besl = self.baseline_besl.unwrap_or(0) & 0x0f | self.deep_besl.unwrap_or(0) << 4;
        let kind = DescriptorKind::DeviceCapability.into();
        [7, kind, CapabilityKind::Usb2Extension.into(), modes | valid, besl, 0, 0]
    }
}

impl fmt::Display for Usb2ExtensionCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.lpm, self.besl) {
            (false, _) => "USB 2.0 extension without LPM",
            (true, false) => "USB 2.0 extension with LPM",
            (true, true) => "USB 2.0 extension with LPM and BESL",
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    /// LPM with BESL, baseline 4, deep 10.
    const LPM: [u8; 7] = [0x07, 0x10, 0x02, 0x1e, 0xa4, 0x00, 0x00];

    #[test]
    fn literal_bytes_both_ways() {
        let capability = Usb2ExtensionCapability::decode(&LPM).unwrap();
        let (baseline_besl, deep_besl) = (Some(4), Some(10));
        assert_eq!(capability, Usb2ExtensionCapability { lpm: true, besl: true, baseline_besl, deep_besl });
        assert_eq!(capability.encode(), LPM);
        assert_eq!(capability.to_string(), "USB 2.0 extension with LPM and BESL");
    }

    #[test]
    fn a_latency_that_is_not_valid_is_not_there() {
        let capability = Usb2ExtensionCapability::decode(&[7, 0x10, 2, 0x02, 0xa4, 0, 0]).unwrap();
        assert_eq!(capability, Usb2ExtensionCapability { lpm: true, ..Default::default() });
        assert_eq!(capability.encode(), [7, 0x10, 2, 0x02, 0, 0, 0]);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..7 {
            let error = DecodeError::Truncated { needed: 7, got: len };
            assert_eq!(Usb2ExtensionCapability::decode(&LPM[..len]), Err(error));
        }
    }

    #[test]
    fn another_capability_is_another_kind() {
        let error = DecodeError::WrongKind { expected: 2, found: 3 };
        assert_eq!(Usb2ExtensionCapability::decode(&[7, 0x10, 3, 0, 0, 0, 0]), Err(error));
    }

    proptest! {
        #[test]
        fn decode_undoes_encode(
            lpm: bool, besl: bool, baseline in prop::option::of(0u8..16), deep in prop::option::of(0u8..16),
        ) {
            let capability =
                Usb2ExtensionCapability { lpm, besl, baseline_besl: baseline, deep_besl: deep };
            prop_assert_eq!(Usb2ExtensionCapability::decode(&capability.encode()).unwrap(), capability);
        }
    }
}
