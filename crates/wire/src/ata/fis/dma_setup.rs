//! DMA Setup (Serial ATA 3.x clause 10.5.9).

use super::{FisType, INTERRUPT, PORT, TO_HOST, flag, frame};
use crate::{DecodeError, Reader};
use core::fmt;

/// The data phase of a queued command begins.
///
/// ```text
///  0     type (41h)                         4..12  DMA buffer identifier (4:0 is the tag)
///  1     A (7), I (6), D (5), port (3:0)   16..20  DMA buffer offset
///  2..4  reserved                          20..24  DMA transfer count
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaSetupFis {
    /// Port of a port multiplier, 0..=15.
    pub port: u8,
    /// Whether the host may send without a DMA Activate.
    pub auto_activate: bool,
    /// Whether the host is interrupted.
    pub interrupt: bool,
    /// Whether data goes to the host.
    pub to_host: bool,
    /// Names the host's buffer; for a queued command its tag.
    pub buffer_id: u64,
    /// Bytes into the buffer, a multiple of four.
    pub buffer_offset: u32,
    /// Bytes that move, an even number.
    pub transfer_count: u32,
}

impl DmaSetupFis {
    /// Bytes on the wire.
    pub const LEN: usize = 28;

    /// The tag of a queued command, 0..=31.
    pub const fn tag(&self) -> u8 {
        self.buffer_id as u8 & 0x1f
    }

    /// Decodes a frame; bytes past [`Self::LEN`] are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let frame = frame::<28>(FisType::DmaSetup, bytes)?;
        let mut reader = Reader::new(&frame);
        let [_, flags, _, _] = reader.array()?;
        let (buffer_id, _) = (reader.le64()?, reader.le32()?);
        Ok(Self {
            port: flags & PORT,
            auto_activate: flags & 0x80 != 0,
            interrupt: flags & INTERRUPT != 0,
            to_host: flags & TO_HOST != 0,
            buffer_id,
            buffer_offset: reader.le32()?,
            transfer_count: reader.le32()?,
        })
    }

    /// The bytes of the frame.
    pub fn encode(&self) -> [u8; 28] {
        let flags = flag(self.auto_activate, 0x80)
            | flag(self.interrupt, INTERRUPT)
            | flag(self.to_host, TO_HOST)
            | self.port & PORT;
        let head = [FisType::DmaSetup.into(), flags, 0, 0];
        let fields = head.into_iter().chain(self.buffer_id.to_le_bytes()).chain([0; 4]);
        let counts = self.buffer_offset.to_le_bytes().into_iter().chain(self.transfer_count.to_le_bytes());
        let mut bytes = [0; 28];
        for (place, byte) in bytes.iter_mut().zip(fields.chain(counts)) {
            *place = byte;
        }
        bytes
    }
}

impl fmt::Display for DmaSetupFis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let to = if self.to_host { "host" } else { "device" };
        write!(f, "{}, tag {}, {} bytes to the {to}", FisType::DmaSetup, self.tag(), self.transfer_count)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    /// 0x11000 bytes to the host for tag 7.
    const SETUP: [u8; 28] = [
        0x41, 0xa4, 0, 0, 0x07, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, // flags, identifier, reserved
        0x00, 0x02, 0, 0, 0x00, 0x10, 0x01, 0, 0, 0, 0, 0, // offset, count, reserved
    ];

    #[test]
    fn literal_bytes_both_ways() {
        let fis = DmaSetupFis::decode(&SETUP).unwrap();
        let expected = DmaSetupFis {
            port: 4,
            auto_activate: true,
            interrupt: false,
            to_host: true,
            buffer_id: 0x8000_0000_0000_0007,
            buffer_offset: 512,
            transfer_count: 0x1_1000,
        };
        assert_eq!(fis, expected);
        assert_eq!(fis.encode(), SETUP);
        assert_eq!(fis.to_string(), "DMA Setup, tag 7, 69632 bytes to the host");
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for got in 0..28 {
            let error = DmaSetupFis::decode(&SETUP[..got]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 28, got });
        }
    }

    #[test]
    fn another_type_is_another_kind() {
        let error = DecodeError::WrongKind { expected: 0x41, found: 0x46 };
        assert_eq!(DmaSetupFis::decode(&[0x46; 28]), Err(error));
    }

    proptest! {
        #[test]
        fn decode_undoes_encode(
            port in 0u8..16, auto_activate: bool, interrupt: bool, to_host: bool, buffer_id: u64,
            buffer_offset: u32, transfer_count: u32,
        ) {
            let fis = DmaSetupFis {
                port, auto_activate, interrupt, to_host, buffer_id, buffer_offset, transfer_count,
            };
            prop_assert_eq!(DmaSetupFis::decode(&fis.encode()).unwrap(), fis);
        }
    }
}
