//! Space-padded ASCII fields of a fixed length (SPC-5, ASCII data field requirements).
//!
//! Decoding preserves the bytes as received, printable or not: a device that breaks the rule is still identified
//! apart from another. Only [`Ascii::new`] and [`Display`](core::fmt::Display) insist on printable text.

use core::fmt;

/// `N` bytes of left-aligned ASCII, padded with spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ascii<const N: usize>(pub [u8; N]);

impl<const N: usize> Ascii<N> {
    /// Nothing but spaces.
    pub const BLANK: Self = Self([b' '; N]);

    /// `text` cut or padded to `N` bytes; each byte that is not printable ASCII becomes `?`.
    pub fn new(text: &str) -> Self {
        let mut field = Self::BLANK;
        for (place, byte) in field.0.iter_mut().zip(text.bytes()) {
            *place = if matches!(byte, 0x20..=0x7e) { byte } else { b'?' };
        }
        field
    }

    /// The bytes without the spaces and NULs at the end.
    pub const fn trimmed(&self) -> &[u8] {
        let mut text = self.0.as_slice();
        while let [head @ .., b' ' | 0] = text {
            text = head;
        }
        text
    }
}

impl<const N: usize> fmt::Display for Ascii<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.trimmed().escape_ascii().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn text_is_padded_cut_and_made_printable() {
        assert_eq!(Ascii::<8>::new("uaskit"), Ascii(*b"uaskit  "));
        assert_eq!(Ascii::<4>::new("0.1.0"), Ascii(*b"0.1."));
        assert_eq!(Ascii::<4>::new("a\u{e9}"), Ascii(*b"a?? "));
    }

    #[test]
    fn padding_is_not_shown() {
        assert_eq!(Ascii(*b"disk  \0 ").to_string(), "disk");
        assert_eq!(Ascii(*b" a\x01").to_string(), " a\\x01");
        assert_eq!(Ascii::<4>::BLANK.to_string(), "");
    }
}
