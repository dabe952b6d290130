//! Hub descriptor of SuperSpeed (USB 3.2 clause 10.15.2.1).

use crate::DecodeError;
use crate::usb::descriptor_kind::{DescriptorKind, fixed_descriptor};
use core::fmt;

/// Properties of a SuperSpeed hub.
///
/// ```text
///  0      bDescLength (12)                        6      bHubContrCurrent (4 mA)
///  1      bDescriptorType (2Ah)                   7      bHubHdrDecLat (100 ns)
///  2      bNbrPorts                               8..10  wHubDelay (ns)
///  3..5   wHubCharacteristics                     10..12 DeviceRemovable
///  5      bPwrOn2PwrGood (2 ms)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuperSpeedHubDescriptor {
    /// Ports that face away from the host, 15 at most.
    #[doc(alias = "bNbrPorts")]
    pub ports: u8,
    /// As on the wire.
    #[doc(alias = "wHubCharacteristics")]
    pub characteristics: u16,
    /// From power on a port until it can be used, in units of 2 ms.
    #[doc(alias = "bPwrOn2PwrGood")]
    pub power_good_2ms: u8,
    /// Current that the hub itself draws at most, in units of 4 mA.
    #[doc(alias = "bHubContrCurrent")]
    pub current_4ma: u8,
    /// Time to decode a packet header, in units of 100 ns.
    #[doc(alias = "bHubHdrDecLat")]
    pub header_decode_100ns: u8,
    /// Average delay of a packet that the hub forwards, in ns.
    #[doc(alias = "wHubDelay")]
    pub delay_ns: u16,
    /// Ports whose device cannot be removed, port n in bit n.
    #[doc(alias = "DeviceRemovable")]
    pub fixed: u16,
}

impl SuperSpeedHubDescriptor {
    /// Bytes of the descriptor.
    pub const LEN: usize = 12;

    /// Decodes a descriptor; bytes past the known ones are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let &[_, _, ports, c0, c1, power_good_2ms, current_4ma, header_decode_100ns, d0, d1, f0, f1] =
            fixed_descriptor::<12>(bytes, DescriptorKind::SuperSpeedHub)?;
        let [characteristics, delay_ns, fixed] = [[c0, c1], [d0, d1], [f0, f1]].map(u16::from_le_bytes);
        Ok(Self { ports, characteristics, power_good_2ms, current_4ma, header_decode_100ns, delay_ns, fixed })
    }

    /// The whole descriptor.
    pub fn encode(&self) -> [u8; 12] {
        let [[c0, c1], [d0, d1], [f0, f1]] =
            [self.characteristics, self.delay_ns, self.fixed].map(u16::to_le_bytes);
        let [ports, good, current] = [self.ports, self.power_good_2ms, self.current_4ma];
        let kind = DescriptorKind::SuperSpeedHub.into();
        [12, kind, ports, c0, c1, good, current, self.header_decode_100ns, d0, d1, f0, f1]
    }
}

impl fmt::Display for SuperSpeedHubDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SuperSpeed hub of {} ports, {} ns", self.ports, self.delay_ns)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    /// Four ports with individual power switching, 100 ms, 0 mA, 400 ns to decode, 320 ns of delay, port 3 fixed.
    const FOUR: [u8; 12] = [0x0c, 0x2a, 0x04, 0x09, 0x00, 0x32, 0x00, 0x04, 0x40, 0x01, 0x08, 0x00];

    #[test]
    fn literal_bytes_both_ways() {
        let four = SuperSpeedHubDescriptor::decode(&FOUR).unwrap();
        let expected = SuperSpeedHubDescriptor {
            ports: 4,
            characteristics: 9,
            power_good_2ms: 50,
            current_4ma: 0,
            header_decode_100ns: 4,
            delay_ns: 320,
            fixed: 8,
        };
        assert_eq!(four, expected);
        assert_eq!(four.encode(), FOUR);
        assert_eq!(four.to_string(), "SuperSpeed hub of 4 ports, 320 ns");
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..12 {
            let error = SuperSpeedHubDescriptor::decode(&FOUR[..len]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 12, got: len });
        }
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_say_why(bytes in prop::collection::vec(any::<u8>(), 0..16)) {
            let _ = SuperSpeedHubDescriptor::decode(&bytes);
        }
    }
}
