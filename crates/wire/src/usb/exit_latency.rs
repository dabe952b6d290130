//! The data stage of SET_SEL (USB 3.2 clause 9.4.12).

use crate::DecodeError;
use core::fmt;

/// How long the path between host and device takes to leave U1 and U2. Little-endian.
///
/// ```text
///  0      U1 SEL (µs)               2..4   U2 SEL (µs)
///  1      U1 PEL (µs)               4..6   U2 PEL (µs)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitLatencies {
    /// From U1 until the host gets a packet, in µs.
    pub u1_system_us: u8,
    /// From U1 until the device gets a packet, in µs.
    pub u1_device_us: u8,
    /// From U2 until the host gets a packet, in µs.
    pub u2_system_us: u16,
    /// From U2 until the device gets a packet, in µs.
    pub u2_device_us: u16,
}

impl ExitLatencies {
    /// Bytes of the data stage.
    pub const LEN: usize = 6;

    /// Decodes the data stage; bytes past it are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let &[u1_system_us, u1_device_us, s0, s1, d0, d1] =
            bytes.first_chunk::<6>().ok_or(DecodeError::Truncated { needed: Self::LEN, got: bytes.len() })?;
        let (u2_system_us, u2_device_us) = (u16::from_le_bytes([s0, s1]), u16::from_le_bytes([d0, d1]));
        Ok(Self { u1_system_us, u1_device_us, u2_system_us, u2_device_us })
    }

    /// The whole data stage.
    pub fn encode(&self) -> [u8; 6] {
        let (system, device) = (self.u2_system_us.to_le_bytes(), self.u2_device_us.to_le_bytes());
        [self.u1_system_us, self.u1_device_us, system[0], system[1], device[0], device[1]]
    }
}

impl fmt::Display for ExitLatencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { u1_system_us, u1_device_us, u2_system_us, u2_device_us } = self;
        write!(f, "exit latencies U1 {u1_system_us}/{u1_device_us} µs, U2 {u2_system_us}/{u2_device_us} µs")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    const LATENCIES: [u8; 6] = [0x0a, 0x05, 0x00, 0x02, 0xff, 0x01];

    #[test]
    fn literal_bytes_both_ways() {
        let latencies = ExitLatencies::decode(&LATENCIES).unwrap();
        let expected =
            ExitLatencies { u1_system_us: 10, u1_device_us: 5, u2_system_us: 512, u2_device_us: 511 };
        assert_eq!(latencies, expected);
        assert_eq!(latencies.encode(), LATENCIES);
        assert_eq!(latencies.to_string(), "exit latencies U1 10/5 µs, U2 512/511 µs");
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..6 {
            let error = ExitLatencies::decode(&LATENCIES[..len]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 6, got: len });
        }
    }

    proptest! {
        #[test]
        fn every_six_bytes_come_back(bytes: [u8; 6]) {
            prop_assert_eq!(ExitLatencies::decode(&bytes).unwrap().encode(), bytes);
        }
    }
}
