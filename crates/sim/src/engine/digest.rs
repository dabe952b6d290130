//! A hash of the event sequence: equal for equal runs, and practically only for those.
//!
//! Words are multiplied and folded, independent of byte order, word size and compiler. Not
//! cryptographic.

/// The running digest of a sequence of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

impl Digest {
    /// Creates the digest of an empty sequence.
    pub const fn new() -> Self {
        Self(0x6A09_E667_F3BC_C909)
    }

    /// Adds a word.
    pub const fn mix(&mut self, word: u64) {
        // An odd multiplier is a bijection, so different words never collide here; the rotation
        // spreads high bits.
        let mixed = (self.0 ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed.rotate_left(29) ^ mixed >> (u64::BITS / 2);
    }

    /// Returns the digest of the words so far.
    pub const fn value(self) -> u64 {
        self.0
    }
}

impl Default for Digest {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(words: &[u64]) -> u64 {
        let mut digest = Digest::new();
        for &word in words {
            digest.mix(word);
        }
        digest.value()
    }

    #[test]
    fn it_is_the_same_on_every_machine() {
        assert_eq!(digest(&[1, 2, 3]), GOLDEN);
    }

    #[test]
    fn order_and_number_of_words_count() {
        assert_ne!(digest(&[1, 2]), digest(&[2, 1]));
        assert_ne!(digest(&[0]), digest(&[0, 0]));
        assert_ne!(digest(&[1 << 63]), digest(&[1]));
    }

    const GOLDEN: u64 = 5_653_707_384_894_757_621;
}
