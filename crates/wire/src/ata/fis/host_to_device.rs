//! Register Host to Device (Serial ATA 3.x clause 10.5.5).

use super::{FisType, PORT, flag, frame, lba, lba_bytes};
use crate::DecodeError;
use crate::ata::CommandRegisters;
use core::fmt;

/// A command, or a change of the device control register.
///
/// ```text
///  0     type (27h)           7      device         14      ICC
///  1     C (7), port (3:0)    8..11  LBA 47:24      15      control
///  2     command             11      features 15:8  16..20  auxiliary
///  3     features 7:0        12..14  count
///  4..7  LBA 23:0
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostToDeviceFis {
    /// Port of a port multiplier, 0..=15.
    pub port: u8,
    /// A command; otherwise only the control register counts.
    pub is_command: bool,
    /// The command.
    pub registers: CommandRegisters,
    /// Isochronous command completion.
    pub icc: u8,
    /// The device control register: bit 2 is software reset.
    pub control: u8,
    /// Further parameters of some queued commands.
    pub auxiliary: u32,
}

impl HostToDeviceFis {
    /// Bytes on the wire.
    pub const LEN: usize = 20;

    /// Decodes a frame; bytes past [`Self::LEN`] are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let [
            _,
            flags,
            command,
            features_low,
            l0,
            l1,
            l2,
            device,
            l3,
            l4,
            l5,
            features_high,
            count_low,
            count_high,
            icc,
            control,
            auxiliary @ ..,
        ] = frame::<20>(FisType::RegisterHostToDevice, bytes)?;
        let registers = CommandRegisters {
            command: command.into(),
            features: u16::from_le_bytes([features_low, features_high]),
            count: u16::from_le_bytes([count_low, count_high]),
            lba: lba([l0, l1, l2, l3, l4, l5]),
            device,
        };
        Ok(Self {
            port: flags & PORT,
            is_command: flags & 0x80 != 0,
            registers,
            icc,
            control,
            auxiliary: u32::from_le_bytes(auxiliary),
        })
    }

    /// The bytes of the frame.
    pub fn encode(&self) -> [u8; 20] {
        let CommandRegisters { command, features, count, lba, device } = self.registers;
        let flags = flag(self.is_command, 0x80) | self.port & PORT;
        let [features_low, features_high] = features.to_le_bytes();
        let [count_low, count_high] = count.to_le_bytes();
        let [l0, l1, l2, l3, l4, l5] = lba_bytes(lba);
        let [a0, a1, a2, a3] = self.auxiliary.to_le_bytes();
        [
            FisType::RegisterHostToDevice.into(),
            flags,
            command.into(),
            features_low,
            l0,
            l1,
            l2,
            device,
            l3,
            l4,
            l5,
            features_high,
            count_low,
            count_high,
            self.icc,
            self.control,
            a0,
            a1,
            a2,
            a3,
        ]
    }
}

impl fmt::Display for HostToDeviceFis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_command {
            true => write!(f, "{}, {}", FisType::RegisterHostToDevice, self.registers),
            false => write!(f, "{}, control {:#04x}", FisType::RegisterHostToDevice, self.control),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::ata::AtaCommand;
    use proptest::prelude::*;
    use std::string::ToString;

    /// READ FPDMA QUEUED, 0x0108 sectors at LBA 0x112233445566, tag 3.
    const READ: [u8; 20] = [
        0x27, 0x81, 0x60, 0x08, 0x66, 0x55, 0x44, 0x40, 0x33, 0x22, 0x11, 0x01, 0x18, 0x00, 0x05,
        0x06, //
        0x78, 0x56, 0x34, 0x12,
    ];

    #[test]
    fn literal_bytes_both_ways() {
        let fis = HostToDeviceFis::decode(&READ).unwrap();
        let registers = CommandRegisters {
            command: AtaCommand::ReadFpdmaQueued,
            features: 0x0108,
            count: 0x0018,
            lba: 0x1122_3344_5566,
            device: 0x40,
        };
        let expected = HostToDeviceFis {
            port: 1,
            is_command: true,
            registers,
            icc: 5,
            control: 6,
            auxiliary: 0x1234_5678,
        };
        assert_eq!(fis, expected);
        assert_eq!(fis.encode(), READ);
        let shown = "Register Host to Device, READ FPDMA QUEUED, features 0x108 count 0x18 LBA 0x112233445566 \
                     device 0x40";
        assert_eq!(fis.to_string(), shown);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for got in 0..20 {
            let error = HostToDeviceFis::decode(&READ[..got]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 20, got });
        }
    }

    #[test]
    fn another_type_is_another_kind() {
        let mut bytes = READ;
        bytes[0] = 0x34;
        let error = DecodeError::WrongKind { expected: 0x27, found: 0x34 };
        assert_eq!(HostToDeviceFis::decode(&bytes), Err(error));
    }

    proptest! {
        #[test]
        fn encode_undoes_decode(rest: [u8; 19]) {
            let mut bytes = [0x27; 20];
            bytes[1..].copy_from_slice(&rest);
            bytes[1] &= 0x8f; // the others are reserved
            prop_assert_eq!(HostToDeviceFis::decode(&bytes).unwrap().encode(), bytes);
        }
    }
}
