//! Bytes of others as text: names of files, serial numbers, anything that should be UTF-8 and need not be.
//!
//! Bytes that are UTF-8 as a whole are shown unchanged. In all others, each byte that belongs to no character is
//! `\x` and two hexadecimal digits, and a backslash is two, so that different bytes stay different; U+FFFD would
//! merge them. Left out: control characters, which are characters like others here and the concern of the caller.

use core::fmt::{self, Write};

/// Bytes that are shown as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Legible<'a>(pub &'a [u8]);

impl fmt::Display for Legible<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Ok(text) = core::str::from_utf8(self.0) {
            return f.write_str(text);
        }
        for chunk in self.0.utf8_chunks() {
            for sign in chunk.valid().chars() {
                match sign {
                    '\\' => f.write_str("\\\\")?,
                    sign => f.write_char(sign)?,
                }
            }
            chunk.invalid().iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;
    use std::vec::Vec;

    #[test]
    fn what_is_utf_8_is_its_own_text() {
        for text in ["", "/dev/sdb", "Größe\\x20\u{9b}€\n"] {
            assert_eq!(Legible(text.as_bytes()).to_string(), text);
        }
    }

    #[test]
    fn unprintable_bytes_and_backslashes_are_escaped_in_hexadecimal() {
        assert_eq!(Legible(b"/tmp/a\xffb\x80").to_string(), "/tmp/a\\xffb\\x80");
        assert_eq!(Legible(b"\\xff\xff").to_string(), "\\\\xff\\xff");
        // A character that is cut short, a surrogate, and one that is written longer than it has to be.
        assert_eq!(
            Legible(b"\xe2\x82|\xed\xa0\x80|\xc0\xaf\xc3\xa4").to_string(),
            "\\xe2\\x82|\\xed\\xa0\\x80|\\xc0\\xaf\u{e4}"
        );
    }

    proptest! {
        #[test]
        fn different_bytes_that_are_no_utf_8_have_different_texts(one: Vec<u8>, at: usize, byte: u8) {
            let mut one = one;
            one.push(0xff);
            let mut other = one.clone();
            other[at % one.len()] = byte;
            other.push(0xff);
            one.push(0xff);
            prop_assert_eq!(one == other, Legible(&one).to_string() == Legible(&other).to_string());
        }
    }
}
