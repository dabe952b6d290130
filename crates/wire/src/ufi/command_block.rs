//! Logical unit and data phase of a command block, for a transport without a wrapper.

/// Bytes of a command block (UFI 1.0 clause 4).
pub const BLOCK_LEN: usize = 12;

/// The data phase that a command block announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataStage {
    /// No data.
    None,
    /// To the host, at most so many bytes.
    In {
        /// Bytes.
        bytes: u32,
    },
    /// From the host, so many bytes.
    Out {
        /// Bytes.
        bytes: u32,
    },
}

/// Returns the data phase of a command block with blocks of `block_bytes` bytes; `None` for a command that UFI does not have, or
/// a block that is too short.
pub fn data_stage(block: &[u8], block_bytes: u32) -> Option<DataStage> {
    let &[opcode, _, _, _, b4, _, b6, b7, b8, b9, ..] = block else { return None };
    let word = u32::from(u16::from_be_bytes([b7, b8]));
    let blocks = |count: u32| count.saturating_mul(block_bytes);
    let long = u32::from_be_bytes([b6, b7, b8, b9]);
    Some(match opcode {
        // TEST UNIT READY, REZERO UNIT, START STOP, SEND DIAGNOSTIC, PREVENT ALLOW, SEEK, VERIFY.
        0x00 | 0x01 | 0x1b | 0x1d | 0x1e | 0x2b | 0x2f => DataStage::None,
        // REQUEST SENSE, INQUIRY.
        0x03 | 0x12 => DataStage::In { bytes: b4.into() },
        // FORMAT UNIT, MODE SELECT.
        0x04 | 0x55 => DataStage::Out { bytes: word },
        // READ FORMAT CAPACITIES, MODE SENSE.
        0x23 | 0x5a => DataStage::In { bytes: word },
        // READ CAPACITY.
        0x25 => DataStage::In { bytes: 8 },
        // READ(10), WRITE(10), WRITE AND VERIFY, READ(12), WRITE(12).
        0x28 => DataStage::In { bytes: blocks(word) },
        0x2a | 0x2e => DataStage::Out { bytes: blocks(word) },
        0xa8 => DataStage::In { bytes: blocks(long) },
        0xaa => DataStage::Out { bytes: blocks(long) },
        _ => return None,
    })
}

/// Returns the logical unit number of a command block: bits 7:5 of byte 1.
pub fn lun(block: &[u8]) -> u8 {
    block.get(1).map_or(0, |byte| byte >> 5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_stages_follow_the_command() {
        let of = |block: [u8; 12]| data_stage(&block, 512);
        assert_eq!(of([0; 12]), Some(DataStage::None));
        assert_eq!(of([0x03, 0, 0, 0, 18, 0, 0, 0, 0, 0, 0, 0]), Some(DataStage::In { bytes: 18 }));
        assert_eq!(of([0x04, 0x17, 0, 0, 0, 0, 0, 0, 12, 0, 0, 0]), Some(DataStage::Out { bytes: 12 }));
        assert_eq!(of([0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Some(DataStage::In { bytes: 8 }));
        assert_eq!(of([0x28, 0, 0, 0, 0, 5, 0, 0x01, 2, 0, 0, 0]), Some(DataStage::In { bytes: 258 * 512 }));
        assert_eq!(of([0x2a, 0, 0, 0, 0, 5, 0, 0, 2, 0, 0, 0]), Some(DataStage::Out { bytes: 1024 }));
        assert_eq!(of([0xa8, 0, 0, 0, 0, 5, 0, 0, 1, 2, 0, 0]), Some(DataStage::In { bytes: 258 * 512 }));
        assert_eq!(
            of([0xaa, 0, 0, 0, 0, 5, 255, 255, 255, 255, 0, 0]),
            Some(DataStage::Out { bytes: u32::MAX })
        );
        assert_eq!(of([0x5a, 0, 5, 0, 0, 0, 0, 0, 192, 0, 0, 0]), Some(DataStage::In { bytes: 192 }));
        assert_eq!(of([0xa0; 12]), None);
        assert_eq!(data_stage(&[0x28; 9], 512), None);
    }

    #[test]
    fn the_unit_is_in_the_second_byte() {
        assert_eq!([lun(&[0, 0x20]), lun(&[0, 0xff]), lun(&[0])], [1, 7, 0]);
    }
}
