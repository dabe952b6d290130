//! A text of which all is read or nothing, packed by gzip (RFC 1952) or not.
//!
//! Of such a text it counts what is *not* in it, so that one that ends early must not pass for a short one: what is
//! damaged, cut short or too long fails. Always true: whatever a file unpacks to, [`TEXT_BYTES_MAX`] bytes of it are made
//! and [`LINES_MAX`] lines are expected. Left out: files of several members, of which the first is read.

use super::Unread;
use flate2::bufread::GzDecoder;
use std::io::{BufRead, BufReader};

/// Bytes of the text, and bytes that it may be packed in. The configuration of a distribution's kernel has 300 KB.
pub(super) const TEXT_BYTES_MAX: u64 = 4 << 20;

/// Lines that are expected.
const LINES_MAX: usize = 256;

/// The first bytes of a file of gzip.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The lines that `keep` wants.
pub(super) fn lines(reader: impl BufRead, keep: impl Fn(&str) -> bool) -> Result<Vec<String>, Unread> {
    let mut reader = reader.take(TEXT_BYTES_MAX);
    let beginning = reader.fill_buf().map_err(|error| Unread::from(&error))?;
    if beginning.starts_with(&MAGIC) {
        return lines_of(BufReader::new(GzDecoder::new(reader)), keep);
    }
    // One byte more than is allowed distinguishes a text that is too long.
    reader.set_limit(TEXT_BYTES_MAX + 1);
    lines_of(reader, keep)
}

fn lines_of(text: impl BufRead, keep: impl Fn(&str) -> bool) -> Result<Vec<String>, Unread> {
    let mut text = text.take(TEXT_BYTES_MAX + 1);
    let (mut lines, mut line) = (Vec::new(), Vec::new());
    while text.read_until(b'\n', &mut line).map_err(|error| Unread::from(&error))? > 0 {
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        if keep(text) {
            if lines.len() == LINES_MAX {
                return Err(Unread::Failed);
            }
            lines.push(text.to_owned());
        }
        line.clear();
    }
    if text.limit() == 0 { Err(Unread::Failed) } else { Ok(lines) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text).expect("into memory");
        encoder.finish().expect("into memory")
    }

    fn of(bytes: &[u8]) -> Result<Vec<String>, Unread> {
        lines(bytes, |line| line.starts_with('A'))
    }

    #[test]
    fn packed_or_not_the_lines_are_the_same() {
        let text = b"A=y\nB=m\n\nA is not set  \nA";
        let wanted = Ok(vec!["A=y".to_owned(), "A is not set".to_owned(), "A".to_owned()]);
        assert_eq!((of(text), of(&packed(text))), (wanted.clone(), wanted));
        assert_eq!((of(b""), of(&packed(b""))), (Ok(vec![]), Ok(vec![])));
    }

    #[test]
    fn these_bytes_are_a_packed_line() {
        // Written by `gzip -n9` from "A=y" and a line feed.
        let bytes = [
            0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0, 0x02, 0x03, 0x73, 0xb4, 0xad, 0xe4, 0x02, 0, 0x26, 0xbd, 0x77,
            0x30, 0x04, 0, 0, 0,
        ];
        assert_eq!(of(&bytes), Ok(vec!["A=y".to_owned()]));
    }

    #[test]
    fn what_is_cut_short_or_damaged_fails() {
        let whole = packed(b"A=y\nB=m\n");
        for end in MAGIC.len()..whole.len() {
            assert_eq!(of(&whole[..end]), Err(Unread::Failed), "{end}");
        }
        // The check sum and the length of what was packed are the last eight bytes.
        for at in whole.len() - 8..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            assert_eq!(of(&damaged), Err(Unread::Failed), "{at}");
        }
    }

    #[test]
    fn what_unpacks_to_more_than_is_allowed_fails() {
        let max = TEXT_BYTES_MAX as usize;
        let text = |bytes: usize| [b"A=y\n".as_slice(), &vec![b'x'; bytes - 4]].concat();
        let expected = Ok(vec!["A=y".to_owned()]);
        assert_eq!((of(&text(max)), of(&packed(&text(max)))), (expected.clone(), expected));
        assert_eq!(of(&text(max + 1)), Err(Unread::Failed));
        assert_eq!(of(&packed(&text(max + 1))), Err(Unread::Failed));
        // 64 MiB that are packed in 64 KiB.
        assert_eq!(of(&packed(&vec![b'\n'; 64 << 20])), Err(Unread::Failed));
        // Packed in more than is allowed: members without an end are not read on.
        let long = [&packed(b"")[..10], &[0, 0, 0, 0xff, 0xff].repeat(1 << 20)].concat();
        assert_eq!(of(&long), Err(Unread::Failed));
    }

    #[test]
    fn lines_without_end_are_not_kept() {
        assert_eq!(of(&b"A\n".repeat(LINES_MAX)).map(|lines| lines.len()), Ok(LINES_MAX));
        assert_eq!(of(&b"A\n".repeat(LINES_MAX + 1)), Err(Unread::Failed));
        assert_eq!(of(&packed(&b"A\n".repeat(1 << 20))), Err(Unread::Failed));
    }

    proptest::proptest! {
        /// Any bytes, with the beginning of a packed file before them or not.
        #[test]
        fn any_bytes_are_read_without_harm(is_packed: bool, bytes: Vec<u8>) {
            let head: &[u8] = if is_packed { &[0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0, 0, 0x03] } else { &[] };
            let _ = of(&[head, &bytes].concat());
        }
    }
}
