//! Register Device to Host (Serial ATA 3.x clause 10.5.6).

use super::{FisType, INTERRUPT, PORT, flag, frame, lba, lba_bytes};
use crate::DecodeError;
use crate::ata::ResultRegisters;
use core::fmt;

/// The result of a command, or the signature after a reset.
///
/// ```text
///  0  type (34h)           3     error       8..11  LBA 47:24
///  1  I (6), port (3:0)    4..7  LBA 23:0   12..14  count
///  2  status               7     device
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceToHostFis {
    /// Port of a port multiplier, 0..=15.
    pub port: u8,
    /// Whether the host is interrupted.
    pub interrupt: bool,
    /// The result.
    pub registers: ResultRegisters,
}

impl DeviceToHostFis {
    /// Bytes on the wire.
    pub const LEN: usize = 20;

    /// Decodes a frame; bytes past [`Self::LEN`] are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let [_, flags, status, error, l0, l1, l2, device, l3, l4, l5, _, c0, c1, ..] =
            frame::<20>(FisType::RegisterDeviceToHost, bytes)?;
        let registers = ResultRegisters {
            status: status.into(),
            error: error.into(),
            count: u16::from_le_bytes([c0, c1]),
            lba: lba([l0, l1, l2, l3, l4, l5]),
            device,
        };
        Ok(Self { port: flags & PORT, interrupt: flags & INTERRUPT != 0, registers })
    }

    /// The bytes of the frame.
    pub fn encode(&self) -> [u8; 20] {
        let ResultRegisters { status, error, count, lba, device } = self.registers;
        let kind = FisType::RegisterDeviceToHost.into();
        let flags = flag(self.interrupt, INTERRUPT) | self.port & PORT;
        let (status, error) = (status.into(), error.into());
        let [l0, l1, l2, l3, l4, l5] = lba_bytes(lba);
        let [c0, c1] = count.to_le_bytes();
        [kind, flags, status, error, l0, l1, l2, device, l3, l4, l5, 0, c0, c1, 0, 0, 0, 0, 0, 0]
    }
}

impl fmt::Display for DeviceToHostFis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", FisType::RegisterDeviceToHost, self.registers)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::ata::{AtaError, AtaStatus};
    use proptest::prelude::*;
    use std::string::ToString;

    /// UNC at LBA 0x112233445566.
    const FAILED: [u8; 20] = [
        0x34, 0x42, 0x41, 0x40, 0x66, 0x55, 0x44, 0x40, 0x33, 0x22, 0x11, 0x00, 0x08, 0x01, 0, 0, //
        0, 0, 0, 0,
    ];

    #[test]
    fn literal_bytes_both_ways() {
        let fis = DeviceToHostFis::decode(&FAILED).unwrap();
        let registers = ResultRegisters {
            status: AtaStatus::READY.with(AtaStatus::ERROR),
            error: AtaError::UNCORRECTABLE,
            count: 0x0108,
            lba: 0x1122_3344_5566,
            device: 0x40,
        };
        assert_eq!(fis, DeviceToHostFis { port: 2, interrupt: true, registers });
        assert_eq!(fis.encode(), FAILED);
        let shown = "Register Device to Host, status DRDY ERR, error UNC, count 0x108 LBA 0x112233445566 device \
                     0x40";
        assert_eq!(fis.to_string(), shown);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for got in 0..20 {
            let error = DeviceToHostFis::decode(&FAILED[..got]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 20, got });
        }
    }

    #[test]
    fn another_type_is_another_kind() {
        let error = DecodeError::WrongKind { expected: 0x34, found: 0x27 };
        assert_eq!(DeviceToHostFis::decode(&[0x27; 20]), Err(error));
    }

    proptest! {
        #[test]
        fn decode_undoes_encode(
            port in 0u8..16, interrupt: bool, status: u8, error: u8, count: u16,
            lba in 0u64..1 << 48, device: u8,
        ) {
            let (status, error) = (status.into(), error.into());
            let registers = ResultRegisters { status, error, count, lba, device };
            let fis = DeviceToHostFis { port, interrupt, registers };
            prop_assert_eq!(DeviceToHostFis::decode(&fis.encode()).unwrap(), fis);
        }
    }
}
