//! Hub descriptor of USB 2.0 (clause 11.23.2.1).

use crate::DecodeError;
use crate::usb::descriptor_kind::{DescriptorKind, whole_descriptor};
use core::fmt;

/// Properties of a USB 2.0 hub. Non-removable devices are reported for the first 15 ports only: route strings reach
/// no others.
///
/// ```text
///  0      bDescLength (7, and two bits a port)    6      bHubContrCurrent (mA)
///  1      bDescriptorType (29h)                   7..    DeviceRemovable, a bit for each port from bit 1 on
///  2      bNbrPorts                                ..    PortPwrCtrlMask, all ones
///  3..5   wHubCharacteristics: Think Time 6:5     5      bPwrOn2PwrGood (2 ms)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HubDescriptor {
    /// Ports that face away from the host.
    #[doc(alias = "bNbrPorts")]
    pub ports: u8,
    /// As on the wire; [`Self::think_time`] is of use.
    #[doc(alias = "wHubCharacteristics")]
    pub characteristics: u16,
    /// From power on a port until it can be used, in units of 2 ms.
    #[doc(alias = "bPwrOn2PwrGood")]
    pub power_good_2ms: u8,
    /// Current that the hub itself draws at most, in mA.
    #[doc(alias = "bHubContrCurrent")]
    pub current_ma: u8,
    /// Ports whose device cannot be removed, port n in bit n.
    #[doc(alias = "DeviceRemovable")]
    pub fixed: u16,
}

impl HubDescriptor {
    /// Bytes of the longest, of a hub of 255 ports.
    pub const LEN_MAX: usize = 71;

    /// Think time of its translators: 0 to 3 for 8, 16, 24, 32 full-speed bit times.
    pub const fn think_time(&self) -> u8 {
        (self.characteristics >> 5) as u8 & 0x03
    }

    /// Decodes a descriptor; what is past the ports that are known here is ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (&[_, _, ports, c0, c1, power_good_2ms, current_ma], rest) =
            whole_descriptor::<7>(bytes, DescriptorKind::Hub)?;
        let mask = usize::from(ports / 8) + 1;
        if rest.len() < mask {
            return Err(DecodeError::Truncated { needed: 7 + mask, got: 7 + rest.len() });
        }
        let byte = |at: usize| rest.get(at).copied().filter(|_| at < mask).unwrap_or(0);
        Ok(Self {
            ports,
            characteristics: u16::from_le_bytes([c0, c1]),
            power_good_2ms,
            current_ma,
            fixed: u16::from_le_bytes([byte(0), byte(1)]),
        })
    }

    /// The descriptor, and how many of the bytes it has.
    pub fn encode(&self) -> ([u8; Self::LEN_MAX], usize) {
        let mask = usize::from(self.ports / 8) + 1;
        let len = 7 + 2 * mask;
        let ([c0, c1], [f0, f1]) = (self.characteristics.to_le_bytes(), self.fixed.to_le_bytes());
        let (kind, [ports, good, current]) =
            (DescriptorKind::Hub.into(), [self.ports, self.power_good_2ms, self.current_ma]);
        let head = [len as u8, kind, ports, c0, c1, good, current, f0, f1];
        let mut bytes = [0; Self::LEN_MAX];
        for (at, byte) in bytes.iter_mut().enumerate().take(len) {
            // PortPwrCtrlMask is all ones.
            *byte = if at >= 7 + mask { 0xff } else { head.get(at).copied().unwrap_or(0) };
        }
        (bytes, len)
    }
}

impl fmt::Display for HubDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hub of {} ports", self.ports)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    /// Four ports, single power switch per port, think time 16 bits, 100 ms, 100 mA, port 2 fixed.
    const FOUR: [u8; 9] = [0x09, 0x29, 0x04, 0x29, 0x00, 0x32, 0x64, 0x04, 0xff];
    const TEN: [u8; 11] = [0x0b, 0x29, 0x0a, 0x09, 0x00, 0x01, 0x00, 0x00, 0x04, 0xff, 0xff];

    #[test]
    fn literal_bytes_both_ways() {
        let four = HubDescriptor::decode(&FOUR).unwrap();
        let expected = HubDescriptor {
            ports: 4,
            characteristics: 0x0029,
            power_good_2ms: 50,
            current_ma: 100,
            fixed: 0x0004,
        };
        assert_eq!((four, four.think_time()), (expected, 1));
        let (bytes, len) = four.encode();
        assert_eq!(bytes[..len], FOUR);
        let ten = HubDescriptor::decode(&TEN).unwrap();
        assert_eq!((ten.ports, ten.fixed), (10, 0x0400));
        let (bytes, len) = ten.encode();
        assert_eq!(bytes[..len], TEN);
        assert_eq!(ten.to_string(), "hub of 10 ports");
    }

    #[test]
    fn many_ports_have_long_masks() {
        let many = HubDescriptor { ports: 255, fixed: 0x8002, ..HubDescriptor::decode(&TEN).unwrap() };
        let (bytes, len) = many.encode();
        assert_eq!(
            (len, bytes[0], &bytes[7..10], bytes[38..40].to_vec()),
            (71, 71, &[0x02, 0x80, 0][..], std::vec![0, 0xff])
        );
        assert_eq!(HubDescriptor::decode(&bytes[..len]), Ok(many));
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..9 {
            let error = HubDescriptor::decode(&FOUR[..len]).unwrap_err();
            assert!(matches!(error, DecodeError::Truncated { got, .. } if got == len), "{error:?}");
        }
        // It says that it has ten ports, and has bits for seven.
        let short = [0x08, 0x29, 0x0a, 0x09, 0x00, 0x01, 0x00, 0x00];
        assert_eq!(HubDescriptor::decode(&short), Err(DecodeError::Truncated { needed: 9, got: 8 }));
    }

    #[test]
    fn another_type_is_another_kind() {
        let error = DecodeError::WrongKind { expected: 0x29, found: 0x2a };
        assert_eq!(HubDescriptor::decode(&[9, 0x2a, 4, 0, 0, 0, 0, 0, 0]), Err(error));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_say_why(bytes in prop::collection::vec(any::<u8>(), 0..16)) {
            let _ = HubDescriptor::decode(&bytes);
        }
    }
}
