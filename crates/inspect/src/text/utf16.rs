//! UTF-16 as UTF-8, part by part: a log that PowerShell wrote may be long.
//!
//! Always true: memory is bounded by the parts of the reader; a unit that is no character becomes U+FFFD, as does half a unit
//! at the end. Left out: which of the two orders a text without a byte order mark has; it is little-endian, which Windows writes.

use std::io::{self, BufRead, Read};

/// A reader of the UTF-8 of a text in UTF-16.
pub(super) struct Utf16Reader<R> {
    inner: R,
    from: fn([u8; 2]) -> u16,
    /// The first byte of a unit whose second one is in the next part.
    half: Option<u8>,
    /// Units that are not decoded: a high surrogate whose low one is in the next part.
    units: Vec<u16>,
    decoded: String,
    used: usize,
}

impl<R: BufRead> Utf16Reader<R> {
    /// Takes the byte order mark off, if there is one.
    pub(super) fn new(mut inner: R) -> io::Result<Self> {
        let begin = inner.fill_buf()?;
        let (from, mark): (fn([u8; 2]) -> u16, usize) = match begin {
            [0xff, 0xfe, ..] => (u16::from_le_bytes, 2),
            [0xfe, 0xff, ..] => (u16::from_be_bytes, 2),
            _ => (u16::from_le_bytes, 0),
        };
        inner.consume(mark);
        Ok(Self { inner, from, half: None, units: Vec::new(), decoded: String::new(), used: 0 })
    }

    /// Decodes the next part; `false` at the end.
    fn decode(&mut self) -> io::Result<bool> {
        const HIGH_SURROGATES: std::ops::RangeInclusive<u16> = 0xd800..=0xdbff;
        let part = self.inner.fill_buf()?;
        let len = part.len();
        let mut bytes = self.half.take().into_iter().chain(part.iter().copied());
        while let Some(first) = bytes.next() {
            match bytes.next() {
                Some(second) => self.units.push((self.from)([first, second])),
                None => self.half = Some(first),
            }
        }
        self.inner.consume(len);
        if len == 0 && self.half.take().is_some() {
            self.units.push(0xfffd);
        }
        let open = self.units.pop_if(|last| len > 0 && HIGH_SURROGATES.contains(last));
        self.decoded.clear();
        self.used = 0;
        let signs = char::decode_utf16(self.units.drain(..));
        self.decoded.extend(signs.map(|sign| sign.unwrap_or(char::REPLACEMENT_CHARACTER)));
        self.units.extend(open);
        Ok(len > 0 || !self.decoded.is_empty())
    }
}

impl<R: BufRead> BufRead for Utf16Reader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.used == self.decoded.len() && self.decode()? {}
        Ok(self.decoded.as_bytes().get(self.used..).unwrap_or_default())
    }

    fn consume(&mut self, amount: usize) {
        self.used = (self.used + amount).min(self.decoded.len());
    }
}

impl<R: BufRead> Read for Utf16Reader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.fill_buf()?.read(buffer)?;
        self.consume(len);
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8], part_bytes: usize) -> String {
        let mut text = String::new();
        let inner = io::BufReader::with_capacity(part_bytes, bytes);
        Utf16Reader::new(inner).expect("in memory").read_to_string(&mut text).expect("in memory");
        text
    }

    #[test]
    fn parts_of_any_length_give_the_same_text() {
        let text = "a\u{e9}\n\u{1f600}b";
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for part_bytes in 2..9 {
            assert_eq!(of(&[&[0xff, 0xfe], &little[..]].concat(), part_bytes), text);
            assert_eq!(of(&[&[0xfe, 0xff], &big[..]].concat(), part_bytes), text);
            assert_eq!(of(&little, part_bytes), text);
        }
    }

    #[test]
    fn broken_units_are_replaced() {
        assert_eq!(of(&[0xff, 0xfe, 0x3d, 0xd8], 4), "\u{fffd}");
        assert_eq!(of(&[0xff, 0xfe, 0x3d, 0xd8, 0x41, 0], 2), "\u{fffd}A");
        assert_eq!(of(&[0xff, 0xfe, 0x41, 0, 0x42], 2), "A\u{fffd}");
    }
}
