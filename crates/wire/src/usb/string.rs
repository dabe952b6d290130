//! String descriptors (USB 3.2 clause 9.6.9, USB 2.0 clause 9.6.7): text in UTF-16LE, and the languages it
//! comes in.
//!
//! Descriptor 0 is the table of languages; every other one is text in one of them. What a device calls
//! text may be any 16-bit values, so decoding replaces what is not Unicode, and `Display` also what would
//! steer a terminal. An odd last byte, which some devices send, is ignored.

use super::descriptor_kind::{DescriptorKind, whole_descriptor};
use crate::{DecodeError, NoRoom, Writer};
use core::fmt;

/// Text.
///
/// ```text
///  0      bLength (2 + twice the code units)      2..    UTF-16LE code units, 126 at most
///  1      bDescriptorType (03h)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StringDescriptor<'a> {
    /// The code units as they are on the wire, little-endian.
    pub units: &'a [[u8; 2]],
}

impl<'a> StringDescriptor<'a> {
    /// Code units that a descriptor has room for.
    pub const UNITS_MAX: usize = 126;
    /// Bytes of the longest descriptor.
    pub const LEN_MAX: usize = 2 + 2 * Self::UNITS_MAX;

    /// Decodes a descriptor.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        units(bytes).map(|units| Self { units })
    }

    /// Writes the descriptor to the front of `out` and says how long it is.
    ///
    /// Code units past 126 cannot be said in the length field and are left off.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, NoRoom> {
        encode_units(self.units.iter().map(|unit| u16::from_le_bytes(*unit)), self.units.len(), out)
    }

    /// Writes the descriptor of `text` to the front of `out` and says how long it is.
    ///
    /// Text past 126 code units is left off, at a character boundary.
    pub fn encode_text(text: &str, out: &mut [u8]) -> Result<usize, NoRoom> {
        let lengths = text.chars().scan(0, |len, c| {
            *len += c.len_utf16();
            Some(*len)
        });
        let len = lengths.take_while(|len| *len <= Self::UNITS_MAX).last().unwrap_or(0);
        encode_units(text.encode_utf16(), len, out)
    }

    /// The text; what is not Unicode becomes U+FFFD.
    pub fn chars(&self) -> impl Iterator<Item = char> + use<'a> {
        let units = self.units.iter().map(|unit| u16::from_le_bytes(*unit));
        char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
    }
}

impl fmt::Display for StringDescriptor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        self.chars()
            .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
            .try_for_each(|c| f.write_char(c))
    }
}

/// The languages that the other string descriptors come in: string descriptor 0.
///
/// ```text
///  0      bLength (2 + twice the languages)       2..    wLANGID, each two bytes, 126 at most
///  1      bDescriptorType (03h)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LanguageTable<'a> {
    /// The language identifiers as they are on the wire, little-endian.
    pub ids: &'a [[u8; 2]],
}

impl<'a> LanguageTable<'a> {
    /// English as in the United States, which nearly every device speaks.
    pub const US_ENGLISH: u16 = 0x0409;

    /// Decodes a descriptor.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        units(bytes).map(|ids| Self { ids })
    }

    /// Writes the descriptor to the front of `out` and says how long it is.
    ///
    /// Languages past 126 cannot be said in the length field and are left off.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, NoRoom> {
        encode_units(self.languages(), self.ids.len(), out)
    }

    /// The language identifiers.
    pub fn languages(&self) -> impl Iterator<Item = u16> + use<'a> {
        self.ids.iter().map(|id| u16::from_le_bytes(*id))
    }
}

impl fmt::Display for LanguageTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("languages")?;
        self.languages().try_for_each(|id| write!(f, " {id:#06x}"))
    }
}

fn units(bytes: &[u8]) -> Result<&[[u8; 2]], DecodeError> {
    let (units, _odd) = whole_descriptor::<2>(bytes, DescriptorKind::String)?.1.as_chunks::<2>();
    Ok(units)
}

fn encode_units(units: impl Iterator<Item = u16>, count: usize, out: &mut [u8]) -> Result<usize, NoRoom> {
    let count = count.min(StringDescriptor::UNITS_MAX);
    let (len, got) = (2 + 2 * count, out.len());
    let mut writer = Writer::new(out);
    let put = || {
        writer.put(&[len as u8, DescriptorKind::String.into()])?;
        units.take(count).try_for_each(|unit| writer.le16(unit))
    };
    put().map_err(|_: NoRoom| NoRoom { needed: len, got })?;
    Ok(len)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::{String, ToString};
    use std::vec;

    /// "Añ😀": one, one and two code units.
    const TEXT: [u8; 10] = [0x0a, 0x03, 0x41, 0x00, 0xf1, 0x00, 0x3d, 0xd8, 0x00, 0xde];

    #[test]
    fn literal_text_both_ways() {
        let string = StringDescriptor::decode(&TEXT).unwrap();
        assert_eq!(string.chars().collect::<String>(), "Añ😀");
        assert_eq!(string.to_string(), "Añ😀");
        let mut out = [0xff; 12];
        assert_eq!(string.encode(&mut out), Ok(10));
        assert_eq!(out[..10], TEXT);
        let mut out = [0xff; 12];
        assert_eq!(StringDescriptor::encode_text("Añ😀", &mut out), Ok(10));
        assert_eq!(out, [0x0a, 0x03, 0x41, 0x00, 0xf1, 0x00, 0x3d, 0xd8, 0x00, 0xde, 0xff, 0xff]);
    }

    #[test]
    fn literal_language_table_both_ways() {
        let bytes = [0x06, 0x03, 0x09, 0x04, 0x07, 0x04];
        let table = LanguageTable::decode(&bytes).unwrap();
        assert!(table.languages().eq([0x0409, 0x0407]));
        assert_eq!(table.to_string(), "languages 0x0409 0x0407");
        let mut out = [0xff; 6];
        assert_eq!(table.encode(&mut out), Ok(6));
        assert_eq!(out, bytes);
        assert_eq!(LanguageTable::US_ENGLISH, 0x0409);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..10 {
            let needed = if len < 2 { 2 } else { 10 };
            let error = DecodeError::Truncated { needed, got: len };
            assert_eq!(StringDescriptor::decode(&TEXT[..len]), Err(error));
            assert_eq!(LanguageTable::decode(&TEXT[..len]), Err(error));
        }
    }

    #[test]
    fn every_buffer_too_small_is_an_error() {
        for len in 0..10 {
            let error = Err(NoRoom { needed: 10, got: len });
            assert_eq!(StringDescriptor::encode_text("Añ😀", &mut vec![0; len]), error);
        }
    }

    #[test]
    fn another_type_is_another_kind() {
        let error = DecodeError::WrongKind { expected: 3, found: 4 };
        assert_eq!(StringDescriptor::decode(&[2, 4]), Err(error));
    }

    #[test]
    fn a_length_byte_too_small_is_an_error() {
        for len in [0, 1] {
            let error = DecodeError::Invalid { field: "bLength", value: len.into() };
            assert_eq!(StringDescriptor::decode(&[len, 3, 0x41, 0]), Err(error));
        }
    }

    #[test]
    fn an_odd_last_byte_is_ignored() {
        let string = StringDescriptor::decode(&[0x05, 0x03, 0x41, 0x00, 0x42]).unwrap();
        assert_eq!(string.units, [[0x41, 0x00]]);
    }

    #[test]
    fn a_lone_surrogate_and_a_control_character_are_replaced() {
        let bytes = [0x08, 0x03, 0x3d, 0xd8, 0x1b, 0x00, 0x41, 0x00];
        let string = StringDescriptor::decode(&bytes).unwrap();
        assert!(string.chars().eq(['\u{fffd}', '\u{1b}', 'A']));
        assert_eq!(string.to_string(), "\u{fffd}\u{fffd}A");
    }

    #[test]
    fn text_too_long_ends_at_a_character() {
        let text = "a".repeat(125) + "😀b";
        let mut out = [0; 254];
        assert_eq!(StringDescriptor::encode_text(&text, &mut out), Ok(252));
        assert_eq!(StringDescriptor::encode_text(&"a".repeat(200), &mut out), Ok(254));
        assert_eq!(out[0], 254);
        assert_eq!(StringDescriptor::encode_text("", &mut out), Ok(2));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_say_why(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut bytes = bytes;
            if let Some(kind) = bytes.get_mut(1) {
                *kind = 3;
            }
            if let Ok(string) = StringDescriptor::decode(&bytes) {
                prop_assert!(string.to_string().chars().all(|c| !c.is_control()));
            }
        }

        #[test]
        fn decode_undoes_encode(
            text in "\\PC{0,63}", units in prop::collection::vec(any::<[u8; 2]>(), 0..=126),
        ) {
            let mut out = [0; 254];
            let len = StringDescriptor::encode_text(&text, &mut out).unwrap();
            let string = StringDescriptor::decode(&out[..len]).unwrap();
            prop_assert_eq!(string.chars().collect::<String>(), text);

            let string = StringDescriptor { units: &units };
            let len = string.encode(&mut out).unwrap();
            prop_assert_eq!(StringDescriptor::decode(&out[..len]).unwrap(), string);
        }
    }
}
