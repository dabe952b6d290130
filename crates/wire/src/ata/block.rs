//! A block of 512 bytes with fields at fixed offsets, as the ATA command set likes them.

use crate::DecodeError;

/// The block. Offsets are checked when the program is compiled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block(pub(super) [u8; Block::LEN]);

impl Block {
    /// Bytes of a block.
    pub(super) const LEN: usize = 512;

    /// A block of zeroes.
    pub(super) const fn zeroed() -> Self {
        Self([0; Self::LEN])
    }

    /// The first 512 of `bytes`.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let block = bytes.first_chunk::<{ Self::LEN }>();
        block.copied().map(Self).ok_or(DecodeError::Truncated { needed: Self::LEN, got: bytes.len() })
    }

    /// The first 512 of `bytes`, if their sum is zero: byte 511 is the checksum.
    pub(super) fn decode_summed(bytes: &[u8]) -> Result<Self, DecodeError> {
        let block = Self::decode(bytes)?;
        match block.sum() {
            0 => Ok(block),
            _ => Err(DecodeError::Invalid { field: "checksum", value: block.bytes::<511, 1>()[0].into() }),
        }
    }

    /// The block with a checksum in byte 511.
    pub(super) fn summed(mut self) -> [u8; Self::LEN] {
        self.put::<511, 1>([0]);
        self.put::<511, 1>([self.sum().wrapping_neg()]);
        self.0
    }

    /// The sum of all bytes, modulo 256.
    pub(super) fn sum(&self) -> u8 {
        self.0.iter().fold(0, |sum, byte| sum.wrapping_add(*byte))
    }

    /// `N` bytes at offset `AT`.
    pub(super) fn bytes<const AT: usize, const N: usize>(&self) -> [u8; N] {
        const { assert!(AT + N <= Self::LEN) };
        let field = self.0.get(AT..).and_then(|rest| rest.first_chunk::<N>());
        *field.expect("the offset was checked when this was compiled")
    }

    /// Places `N` bytes at offset `AT`.
    pub(super) fn put<const AT: usize, const N: usize>(&mut self, field: [u8; N]) {
        const { assert!(AT + N <= Self::LEN) };
        let place = self.0.get_mut(AT..).and_then(|rest| rest.first_chunk_mut::<N>());
        *place.expect("the offset was checked when this was compiled") = field;
    }

    /// The byte at offset `AT`.
    pub(super) fn u8<const AT: usize>(&self) -> u8 {
        let [byte] = self.bytes::<AT, 1>();
        byte
    }

    /// Word `N`, at offset `2 * N`.
    pub(super) fn word<const N: usize>(&self) -> u16 {
        const { assert!(N < Self::LEN / 2) };
        let word = self.0.as_chunks::<2>().0.get(N);
        u16::from_le_bytes(*word.expect("the word was checked when this was compiled"))
    }

    /// Places word `N`.
    pub(super) fn set_word<const N: usize>(&mut self, value: u16) {
        const { assert!(N < Self::LEN / 2) };
        let word = self.0.as_chunks_mut::<2>().0.get_mut(N);
        *word.expect("the word was checked when this was compiled") = value.to_le_bytes();
    }

    /// The 16-bit field at offset `AT`.
    pub(super) fn le16<const AT: usize>(&self) -> u16 {
        u16::from_le_bytes(self.bytes::<AT, 2>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summed_block_sums_to_zero() {
        let mut block = Block::zeroed();
        block.put::<0, 3>([0x10, 0xff, 0x02]);
        let bytes = block.summed();
        assert_eq!(bytes[511], 0xef);
        assert_eq!(Block::decode_summed(&bytes).map(|block| block.le16::<0>()), Ok(0xff10));
    }

    #[test]
    fn a_wrong_sum_is_an_error() {
        let mut bytes = [0; 512];
        bytes[511] = 7;
        let error = Block::decode_summed(&bytes).err();
        assert_eq!(error, Some(DecodeError::Invalid { field: "checksum", value: 7 }));
    }
}
