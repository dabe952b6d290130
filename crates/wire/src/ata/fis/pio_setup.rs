//! PIO Setup (Serial ATA 3.x clause 10.5.11).

use super::{FisType, INTERRUPT, PORT, TO_HOST, flag, frame, lba, lba_bytes};
use crate::DecodeError;
use crate::ata::{AtaStatus, ResultRegisters};
use core::fmt;

/// One block of PIO data comes next.
///
/// ```text
///  0  type (5Fh)                  4..7  LBA 23:0    12..14  count
///  1  I (6), D (5), port (3:0)    7     device      15      E_Status
///  2  status before the data      8..11 LBA 47:24   16..18  transfer count
///  3  error
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PioSetupFis {
    /// Port of a port multiplier, 0..=15.
    pub port: u8,
    /// Whether the host is interrupted.
    pub interrupt: bool,
    /// Whether data goes to the host.
    pub to_host: bool,
    /// The registers before the data moves.
    pub registers: ResultRegisters,
    /// The status register after it.
    pub ending_status: AtaStatus,
    /// Bytes that move, an even number.
    pub transfer_count: u16,
}

impl PioSetupFis {
    /// Bytes on the wire.
    pub const LEN: usize = 20;

    /// Decodes a frame; bytes past [`Self::LEN`] are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let [_, flags, status, error, l0, l1, l2, device, l3, l4, l5, _, c0, c1, _, ending, t0, t1, ..] =
            frame::<20>(FisType::PioSetup, bytes)?;
        let registers = ResultRegisters {
            status: status.into(),
            error: error.into(),
            count: u16::from_le_bytes([c0, c1]),
            lba: lba([l0, l1, l2, l3, l4, l5]),
            device,
        };
        Ok(Self {
            port: flags & PORT,
            interrupt: flags & INTERRUPT != 0,
            to_host: flags & TO_HOST != 0,
            registers,
            ending_status: ending.into(),
            transfer_count: u16::from_le_bytes([t0, t1]),
        })
    }

    /// The bytes of the frame.
    pub fn encode(&self) -> [u8; 20] {
        let ResultRegisters { status, error, count, lba, device } = self.registers;
        let kind = FisType::PioSetup.into();
        let flags = flag(self.interrupt, INTERRUPT) | flag(self.to_host, TO_HOST) | self.port & PORT;
        let (status, error, ending) = (status.into(), error.into(), self.ending_status.into());
        let [l0, l1, l2, l3, l4, l5] = lba_bytes(lba);
        let ([c0, c1], [t0, t1]) = (count.to_le_bytes(), self.transfer_count.to_le_bytes());
        [kind, flags, status, error, l0, l1, l2, device, l3, l4, l5, 0, c0, c1, 0, ending, t0, t1, 0, 0]
    }
}

impl fmt::Display for PioSetupFis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let to = if self.to_host { "host" } else { "device" };
        write!(
            f,
            "{}, {} bytes to the {to}, then {}",
            FisType::PioSetup,
            self.transfer_count,
            self.ending_status
        )
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    /// 512 bytes of IDENTIFY DEVICE.
    const IDENTIFY: [u8; 20] =
        [0x5f, 0x63, 0x58, 0, 1, 2, 3, 0x40, 4, 5, 6, 0, 7, 8, 0, 0x50, 0x00, 0x02, 0, 0];

    #[test]
    fn literal_bytes_both_ways() {
        let fis = PioSetupFis::decode(&IDENTIFY).unwrap();
        assert_eq!((fis.port, fis.interrupt, fis.to_host), (3, true, true));
        assert_eq!((u8::from(fis.registers.status), u8::from(fis.ending_status)), (0x58, 0x50));
        assert_eq!((fis.registers.lba, fis.registers.count), (0x0605_0403_0201, 0x0807));
        assert_eq!(fis.transfer_count, 512);
        assert_eq!(fis.encode(), IDENTIFY);
        assert_eq!(fis.to_string(), "PIO Setup, 512 bytes to the host, then DRDY DWE");
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for got in 0..20 {
            let error = PioSetupFis::decode(&IDENTIFY[..got]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 20, got });
        }
    }

    #[test]
    fn another_type_is_another_kind() {
        let error = DecodeError::WrongKind { expected: 0x5f, found: 0x41 };
        assert_eq!(PioSetupFis::decode(&[0x41; 20]), Err(error));
    }

    proptest! {
        #[test]
        fn encode_undoes_decode(rest: [u8; 19]) {
            let mut bytes = [0x5f; 20];
            bytes[1..].copy_from_slice(&rest);
            bytes[1] &= 0x6f; // reserved, here and below
            (bytes[11], bytes[14], bytes[18], bytes[19]) = (0, 0, 0, 0);
            prop_assert_eq!(PioSetupFis::decode(&bytes).unwrap().encode(), bytes);
        }
    }
}
