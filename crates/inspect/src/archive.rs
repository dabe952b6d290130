//! Reports that arrive packed: tar, zip, and single files or archives in gzip, xz and zstd.
//!
//! A format is known by its first bytes, never by a name. Everything has a limit with a name: bytes in all, members, how
//! much a member may expand, how deep archives nest. Links, devices and paths that lead out are skipped: members become
//! documents in memory and never files. Left out: encryption, zip64, tars with sparse files.

use crate::text::{Document, is_wide};
use std::fmt;
use std::io::Read;

/// Bytes of all members together.
pub const TOTAL_BYTES_MAX: usize = 128 << 20;

/// Members of all archives together.
pub const MEMBERS_MAX: usize = 4096;

/// Archives within archives.
pub const NESTING_MAX: usize = 3;

/// How many times its packed size a stream may expand to.
pub const RATIO_MAX: usize = 300;

/// Packed bytes below which the ratio does not count: text of one letter packs very well.
const RATIO_FREE_BYTES: usize = 64 << 10;

/// A text has at most one zero in so many bytes.
const TEXT_BYTES_PER_ZERO: usize = 16;

/// Why a report could not be unpacked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchiveError {
    /// It is damaged, or no such archive.
    Damaged(&'static str),
    /// A limit was exceeded.
    TooLarge(&'static str),
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged(format) => write!(f, "the {format} data is damaged"),
            Self::TooLarge(what) => write!(f, "limit exceeded: {what}"),
        }
    }
}

impl std::error::Error for ArchiveError {}

/// The documents in a file: itself if it is text, else its members.
///
/// # Errors
/// If an archive is damaged or exceeds a limit.
pub fn documents(name: &str, bytes: &[u8]) -> Result<Vec<Document>, ArchiveError> {
    let mut unpacker = Unpacker::default();
    unpacker.take(name, bytes, 0)?;
    Ok(unpacker.documents)
}

/// Whether a file begins as a text of lines: no archive, and no recorded machine, whose lines begin with `#` or a path.
pub fn is_text(begin: &[u8]) -> bool {
    const MARK: &[u8] = "\u{feff}".as_bytes();
    let is_archive =
        begin.starts_with(b"PK") || begin.starts_with(ZSTD) || begin.get(257..262) == Some(b"ustar");
    let first = begin.strip_prefix(MARK).unwrap_or(begin).first().copied().unwrap_or_default();
    let is_narrow = first.is_ascii() && !matches!(first, b'#' | b'/' | 0x1f) && !begin.contains(&0);
    !is_archive && (is_narrow || is_wide(begin))
}

/// The first bytes of a frame of zstd (RFC 8878 clause 3.1.1).
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

#[derive(Default)]
struct Unpacker {
    documents: Vec<Document>,
    total: usize,
    members: usize,
}

impl Unpacker {
    fn take(&mut self, name: &str, bytes: &[u8], depth: usize) -> Result<(), ArchiveError> {
        if depth > NESTING_MAX {
            return Err(ArchiveError::TooLarge("archives nest too deep"));
        }
        self.total = self.total.saturating_add(bytes.len());
        self.members += 1;
        if self.total > TOTAL_BYTES_MAX {
            return Err(ArchiveError::TooLarge("128 MiB in all"));
        }
        if self.members > MEMBERS_MAX {
            return Err(ArchiveError::TooLarge("4,096 members"));
        }
        if bytes.starts_with(b"PK\x03\x04") {
            return self.zip(name, bytes, depth);
        }
        if bytes.get(257..262) == Some(b"ustar") {
            return self.tar(name, bytes, depth);
        }
        if let Some(unpacked) = unpacked(bytes)? {
            let name = [".gz", ".xz", ".zst"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
            return self.take(name, &unpacked, depth + 1);
        }
        // What is no text is no evidence: a capture, a picture. Files of a device tree end with a zero.
        let begin = bytes.get(..8192.min(bytes.len())).unwrap_or_default();
        let zeros = begin.iter().filter(|byte| **byte == 0).count();
        let is_binary = zeros * TEXT_BYTES_PER_ZERO > begin.len();
        if !is_binary || is_wide(bytes) {
            self.documents.push(Document::of_bytes(name, bytes));
        }
        Ok(())
    }

    /// POSIX.1-2001 ustar, with long names of GNU and pax as far as a name for people needs them.
    fn tar(&mut self, _archive: &str, bytes: &[u8], depth: usize) -> Result<(), ArchiveError> {
        const BLOCK: usize = 512;
        let mut at = 0;
        while let Some(header) = bytes.get(at..at + BLOCK) {
            if header.iter().all(|byte| *byte == 0) {
                break;
            }
            let size = octal(header.get(124..136).unwrap_or_default()).ok_or(ArchiveError::Damaged("tar"))?;
            let kind = header.get(156).copied().unwrap_or_default();
            let from = at + BLOCK;
            let end = from.checked_add(size).ok_or(ArchiveError::Damaged("tar"))?;
            // A tar that was cut short still has its first members.
            let Some(content) = bytes.get(from..end) else { break };
            if matches!(kind, 0 | b'0') {
                let name = text_of(header.get(..100).unwrap_or_default());
                let prefix = text_of(header.get(345..500).unwrap_or_default());
                let name = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
                if leads_inside(&name) {
                    self.take(&name, content, depth + 1)?;
                }
            }
            at = from + size.div_ceil(BLOCK) * BLOCK;
        }
        Ok(())
    }

    /// PKWARE APPNOTE 6.3: members by their central directory.
    fn zip(&mut self, _archive: &str, bytes: &[u8], depth: usize) -> Result<(), ArchiveError> {
        const DAMAGED: ArchiveError = ArchiveError::Damaged("zip");
        let end = bytes.windows(4).rposition(|four| four == b"PK\x05\x06").ok_or(DAMAGED)?;
        let mut at = long_at(bytes, end + 16).ok_or(DAMAGED)?;
        while bytes.get(at..at + 4) == Some(b"PK\x01\x02") {
            let short = |from: usize| short_at(bytes, at + from).ok_or(DAMAGED);
            let (method, name_len) = (short(10)?, short(28)?);
            let (extra, comment) = (short(30)?, short(32)?);
            let packed_len = long_at(bytes, at + 20).ok_or(DAMAGED)?;
            let header = long_at(bytes, at + 42).ok_or(DAMAGED)?;
            let name =
                String::from_utf8_lossy(bytes.get(at + 46..at + 46 + name_len).ok_or(DAMAGED)?).into_owned();
            let skipped = 30
                + short_at(bytes, header + 26).ok_or(DAMAGED)?
                + short_at(bytes, header + 28).ok_or(DAMAGED)?;
            let packed = bytes.get(header + skipped..header + skipped + packed_len).ok_or(DAMAGED)?;
            if !name.ends_with('/') && leads_inside(&name) {
                match method {
                    0 => self.take(&name, packed, depth + 1)?,
                    8 => {
                        let content =
                            read_limited(flate2::read::DeflateDecoder::new(packed), packed.len(), "zip")?;
                        self.take(&name, &content, depth + 1)?;
                    }
                    _ => {}
                }
            }
            at += 46 + name_len + extra + comment;
        }
        Ok(())
    }
}

/// The content of a compressed stream; `None` if it is none.
fn unpacked(bytes: &[u8]) -> Result<Option<Vec<u8>>, ArchiveError> {
    let len = bytes.len();
    Ok(Some(if bytes.starts_with(&[0x1f, 0x8b]) {
        read_limited(flate2::read::MultiGzDecoder::new(bytes), len, "gzip")?
    } else if bytes.starts_with(&[0xfd, b'7', b'z', b'X', b'Z', 0]) {
        const MEMORY_KIB_MAX: u32 = 128 << 10;
        read_limited(lzma_rust2::XzReader::new_mem_limit(bytes, true, MEMORY_KIB_MAX), len, "xz")?
    } else if bytes.starts_with(ZSTD) {
        const WINDOW_BYTES_MAX: u64 = 64 << 20;
        let stream = ruzstd::decoding::StreamingDecoder::new_with_max_window_size(bytes, WINDOW_BYTES_MAX)
            .map_err(|_| ArchiveError::Damaged("zstd"))?;
        read_limited(stream, len, "zstd")?
    } else {
        return Ok(None);
    }))
}

fn read_limited(reader: impl Read, packed: usize, format: &'static str) -> Result<Vec<u8>, ArchiveError> {
    let by_ratio = packed.max(RATIO_FREE_BYTES).saturating_mul(RATIO_MAX);
    let limit = by_ratio.min(TOTAL_BYTES_MAX);
    let mut content = Vec::new();
    let read = reader.take(limit as u64 + 1).read_to_end(&mut content);
    if content.len() > limit {
        return Err(ArchiveError::TooLarge("a member expands too much"));
    }
    read.map_err(|_| ArchiveError::Damaged(format))?;
    Ok(content)
}

fn leads_inside(name: &str) -> bool {
    !name.starts_with('/') && !name.split(['/', '\\']).any(|part| part == "..")
}

fn text_of(field: &[u8]) -> String {
    String::from_utf8_lossy(field.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

fn octal(field: &[u8]) -> Option<usize> {
    let text = text_of(field);
    let digits = text.trim_matches([' ', '\0']);
    if digits.is_empty() { Some(0) } else { usize::from_str_radix(digits, 8).ok() }
}

fn short_at(bytes: &[u8], at: usize) -> Option<usize> {
    let pair: [u8; 2] = bytes.get(at..at.checked_add(2)?)?.try_into().ok()?;
    Some(u16::from_le_bytes(pair).into())
}

fn long_at(bytes: &[u8], at: usize) -> Option<usize> {
    let four: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(four)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut archive = Vec::new();
        for (name, content) in members {
            let mut header = vec![0; 512];
            header[..name.len()].copy_from_slice(name.as_bytes());
            header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
            header[156] = b'0';
            header[257..262].copy_from_slice(b"ustar");
            archive.extend(header);
            archive.extend_from_slice(content);
            archive.resize(archive.len().div_ceil(512) * 512, 0);
        }
        archive.extend([0; 1024]);
        archive
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).expect("in memory");
        encoder.finish().expect("in memory")
    }

    fn names(documents: &[Document]) -> Vec<(&str, &str)> {
        documents.iter().map(|one| (one.name.as_str(), one.text.as_str())).collect()
    }

    #[test]
    fn members_of_a_packed_tar_are_documents() {
        let archive = gzip(&tar(&[
            ("a/dmesg.txt", b"one"),
            ("../out", b"two"),
            ("/abs", b"x"),
            ("b.gz", &gzip(b"three")),
        ]));
        let found = documents("report.tar.gz", &archive).expect("whole");
        assert_eq!(names(&found), [("a/dmesg.txt", "one"), ("b", "three")]);
        assert_eq!(names(&documents("x.txt", b"plain").expect("text")), [("x.txt", "plain")]);
    }

    #[test]
    fn a_bomb_is_refused() {
        let bomb = gzip(&vec![b'a'; 64 << 20]);
        assert_eq!(documents("bomb.gz", &bomb), Err(ArchiveError::TooLarge("a member expands too much")));
        let mut nested = b"text".to_vec();
        for _ in 0..8 {
            nested = gzip(&nested);
        }
        assert!(matches!(documents("nested", &nested), Err(ArchiveError::TooLarge(_))));
        let cut = gzip(b"some text that is cut");
        assert!(documents("cut.gz", &cut[..cut.len() - 6]).is_err());
    }

    #[test]
    fn a_zip_is_read_by_its_directory() {
        let name = b"dmesg.txt";
        let mut zip = b"PK\x03\x04".to_vec();
        zip.extend([20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 9, 0, 0, 0]);
        zip.extend_from_slice(name);
        zip.extend_from_slice(b"one");
        let directory = zip.len() as u8;
        zip.extend(b"PK\x01\x02");
        zip.extend([
            20, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ]);
        zip.extend_from_slice(name);
        zip.extend(b"PK\x05\x06");
        zip.extend([0, 0, 0, 0, 1, 0, 1, 0, 55, 0, 0, 0, directory, 0, 0, 0, 0, 0]);
        assert_eq!(names(&documents("x.zip", &zip).expect("whole")), [("dmesg.txt", "one")]);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_end(magic in 0_usize..5, bytes: Vec<u8>) {
            let magics: [&[u8]; 5] = [b"PK\x03\x04", b"\x1f\x8b\x08", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b""];
            let _ = documents("x", &[magics[magic], &bytes].concat());
        }
    }
}
