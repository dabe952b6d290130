//! ATA strings (ACS-4 clause 3.3.10): printable ASCII, padded with spaces, byte-swapped in each word.

use core::fmt;

/// A string of `N` bytes, in reading order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtaText<const N: usize>([u8; N]);

impl<const N: usize> AtaText<N> {
    /// The text padded with spaces, or cut; what is not printable ASCII becomes `?`.
    pub fn new(text: &str) -> Self {
        let mut field = [b' '; N];
        for (place, letter) in field.iter_mut().zip(text.chars()) {
            *place = if matches!(letter, ' '..='~') { letter as u8 } else { b'?' };
        }
        Self(field)
    }

    /// The text without the spaces around it: any bytes, if it was decoded.
    pub const fn trimmed(&self) -> &[u8] {
        self.0.trim_ascii()
    }

    /// The whole field, in reading order.
    pub const fn padded(&self) -> &[u8; N] {
        &self.0
    }

    /// From the order on the wire.
    pub const fn decode(words: [u8; N]) -> Self {
        Self(swapped(words))
    }

    /// In the order on the wire.
    pub const fn encode(&self) -> [u8; N] {
        swapped(self.0)
    }
}

/// Each pair of bytes the other way round.
const fn swapped<const N: usize>(mut bytes: [u8; N]) -> [u8; N] {
    let mut rest = bytes.as_mut_slice();
    while let [first, second, others @ ..] = rest {
        core::mem::swap(first, second);
        rest = others;
    }
    bytes
}

impl<const N: usize> fmt::Display for AtaText<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.trimmed().escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn literal_bytes_both_ways() {
        let text = AtaText::<8>::decode(*b"auksti  ");
        assert_eq!(text.padded(), b"uaskit  ");
        assert_eq!(AtaText::<8>::new("drive 1").encode(), *b"rdvi e 1");
    }

    #[test]
    fn a_text_is_padded_cut_and_made_printable() {
        assert_eq!(AtaText::<4>::new("a").padded(), b"a   ");
        assert_eq!(AtaText::<4>::new("abcdef").padded(), b"abcd");
        assert_eq!(AtaText::<4>::new("a\nüb").padded(), b"a??b");
    }

    #[test]
    fn spaces_around_a_text_do_not_count() {
        assert_eq!(AtaText::<8>::new("  ab c ").trimmed(), b"ab c");
        assert_eq!(AtaText::<4>::decode([0, b'x', b' ', b'"']).to_string(), "x\\x00\\\"");
    }
}
