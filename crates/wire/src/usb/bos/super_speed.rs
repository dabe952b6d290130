//! SuperSpeed USB device capability (USB 3.2 clause 9.6.2.2).

use super::super::descriptor_kind::DescriptorKind;
use super::capability_kind::{CapabilityKind, fixed_capability};
use crate::DecodeError;
use core::fmt;

/// The speeds of the device, and how fast it leaves the low-power states of the link.
///
/// ```text
///  0      bLength (10)                            4..6   wSpeedsSupported
///  1      bDescriptorType (10h)                   6      bFunctionalitySupport
///  2      bDevCapabilityType (03h)                7      bU1DevExitLat (µs)
///  3      bmAttributes: LTM capable (1)           8..10  wU2DevExitLat (µs)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuperSpeedCapability {
    /// Bit 1 of `bmAttributes`: can send latency tolerance messages.
    pub ltm: bool,
    /// The speeds it works at.
    #[doc(alias = "wSpeedsSupported")]
    pub speeds: SpeedSet,
    /// The lowest speed at which everything works, as a bit number of [`SpeedSet`].
    #[doc(alias = "bFunctionalitySupport")]
    pub full_function_from: u8,
    /// Less than this many µs to leave U1; 0 to 10.
    #[doc(alias = "bU1DevExitLat")]
    pub u1_exit_latency_us: u8,
    /// Less than this many µs to leave U2; 0 to 2047.
    #[doc(alias = "wU2DevExitLat")]
    pub u2_exit_latency_us: u16,
}

/// A set of speeds, one bit each; reserved bits are preserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpeedSet(pub u16);

impl SpeedSet {
    /// 1.5 Mbit/s.
    pub const LOW: Self = Self(0x0001);
    /// 12 Mbit/s.
    pub const FULL: Self = Self(0x0002);
    /// 480 Mbit/s.
    pub const HIGH: Self = Self(0x0004);
    /// 5 Gbit/s.
    pub const SUPER: Self = Self(0x0008);

    /// The speeds of both.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether every speed of `other` is in this set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl SuperSpeedCapability {
    /// Bytes of the descriptor.
    pub const LEN: usize = 10;

    /// Decodes a descriptor; reserved attributes and bytes past the known ones are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let &[_, _, _, attributes, s0, s1, full_function_from, u1_exit_latency_us, l0, l1] =
            fixed_capability::<10>(bytes, CapabilityKind::SuperSpeed)?;
        Ok(Self {
            ltm: attributes & 0x02 != 0,
            speeds: SpeedSet(u16::from_le_bytes([s0, s1])),
            full_function_from,
            u1_exit_latency_us,
            u2_exit_latency_us: u16::from_le_bytes([l0, l1]),
        })
    }

    /// The whole descriptor.
    pub fn encode(&self) -> [u8; 10] {
        let (kind, capability) = (DescriptorKind::DeviceCapability.into(), CapabilityKind::SuperSpeed.into());
        let [s0, s1] = self.speeds.0.to_le_bytes();
        let [l0, l1] = self.u2_exit_latency_us.to_le_bytes();
        let (attributes, u1) = (u8::from(self.ltm) << 1, self.u1_exit_latency_us);
        [10, kind, capability, attributes, s0, s1, self.full_function_from, u1, l0, l1]
    }
}

impl fmt::Display for SpeedSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [(Self::LOW, "low"), (Self::FULL, "full"), (Self::HIGH, "high"), (Self::SUPER, "super")];
        let mut present = names.into_iter().filter(|(speed, _)| self.contains(*speed));
        match present.next() {
            None => return f.write_str("no speed"),
            Some((_, name)) => f.write_str(name)?,
        }
        present.try_for_each(|(_, name)| write!(f, ", {name}"))
    }
}

impl fmt::Display for SuperSpeedCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { speeds, u1_exit_latency_us: u1, u2_exit_latency_us: u2, .. } = self;
        write!(f, "SuperSpeed capability: {speeds}; exit latency U1 {u1} µs, U2 {u2} µs")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    /// Full, high and super speed, everything from high speed on, exit latencies 10 and 511 µs.
    const SUPER: [u8; 10] = [0x0a, 0x10, 0x03, 0x00, 0x0e, 0x00, 0x02, 0x0a, 0xff, 0x01];

    #[test]
    fn literal_bytes_both_ways() {
        let capability = SuperSpeedCapability::decode(&SUPER).unwrap();
        let expected = SuperSpeedCapability {
            ltm: false,
            speeds: SpeedSet::FULL.union(SpeedSet::HIGH).union(SpeedSet::SUPER),
            full_function_from: 2,
            u1_exit_latency_us: 10,
            u2_exit_latency_us: 511,
        };
        assert_eq!(capability, expected);
        assert_eq!(capability.encode(), SUPER);
        let text = "SuperSpeed capability: full, high, super; exit latency U1 10 µs, U2 511 µs";
        assert_eq!(capability.to_string(), text);
    }

    #[test]
    fn latency_tolerance_is_bit_1() {
        let mut bytes = SUPER;
        bytes[3] = 0x02;
        let capability = SuperSpeedCapability::decode(&bytes).unwrap();
        assert!(capability.ltm);
        assert_eq!(capability.encode(), bytes);
    }

    #[test]
    fn unknown_speeds_survive() {
        let mut bytes = SUPER;
        bytes[5] = 0x80;
        let capability = SuperSpeedCapability::decode(&bytes).unwrap();
        assert_eq!(capability.encode(), bytes);
        assert_eq!(SpeedSet(0x8000).to_string(), "no speed");
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..10 {
            let error = DecodeError::Truncated { needed: 10, got: len };
            assert_eq!(SuperSpeedCapability::decode(&SUPER[..len]), Err(error));
        }
    }

    #[test]
    fn another_capability_is_another_kind() {
        let mut bytes = SUPER;
        bytes[2] = 0x0a;
        let error = DecodeError::WrongKind { expected: 3, found: 10 };
        assert_eq!(SuperSpeedCapability::decode(&bytes), Err(error));
    }

    proptest! {
        #[test]
        fn every_content_comes_back_but_for_reserved_bits(content: [u8; 7]) {
            let mut bytes = [&[10, 0x10, 3], &content[..]].concat();
            let capability = SuperSpeedCapability::decode(&bytes).unwrap();
            bytes[3] &= 0x02;
            prop_assert_eq!(&capability.encode()[..], &bytes[..]);
        }
    }
}
