//! Compressed input of each format, cut, damaged, nested and without end.

use super::*;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use std::io::Write;

const TEXT: &[u8] = b"f0 1 S Bi:1:005:1 -115 13 <\nf0 2 C Bi:1:005:1 0 0\n";
/// The same, by `xz -9` and by `zstd`.
#[rustfmt::skip]
const XZ: &[u8] = &[
    253, 55, 122, 88, 90, 0, 0, 4, 230, 214, 180, 70, 2, 0, 33, 1, 28, 0, 0, 0, 16, 207, 88, 204, 224, 0, 49, 0, 41, 93, 0, 51, 12,
    0, 3, 67, 44, 91, 17, 40, 193, 60, 234, 81, 76, 42, 129, 122, 240, 213, 229, 79, 228, 44, 248, 109, 177, 224, 121, 209, 38, 189,
    160, 25, 107, 152, 74, 33, 164, 239, 201, 32, 0, 0, 0, 0, 235, 215, 205, 20, 45, 240, 106, 129, 0, 1, 69, 50, 235, 95, 95, 101,
    31, 182, 243, 125, 1, 0, 0, 0, 0, 4, 89, 90,
];
#[rustfmt::skip]
const ZSTD: &[u8] = &[
    40, 181, 47, 253, 36, 50, 117, 1, 0, 100, 2, 102, 48, 32, 49, 32, 83, 32, 66, 105, 58, 49, 58, 48, 48, 53, 58, 49, 32, 45, 49,
    49, 53, 32, 49, 51, 32, 60, 10, 102, 48, 32, 50, 32, 67, 48, 32, 48, 10, 1, 0, 122, 110, 62, 1, 209, 214, 149, 95,
];

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A member: deflated with a descriptor behind it, or stored.
fn member(name: &str, bytes: &[u8], is_deflated: bool) -> Vec<u8> {
    let body = if is_deflated {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    } else {
        bytes.to_vec()
    };
    let size = if is_deflated { 0 } else { body.len() as u32 };
    let (flags, method) = if is_deflated { (8, 8) } else { (0, 0) };
    let mut all = [&b"PK\x03\x04\x14\0"[..], &[flags, 0, method, 0, 0, 0, 0, 0, 1, 2, 3, 4]].concat();
    all.extend(size.to_le_bytes().repeat(2));
    all.extend([name.len() as u8, 0, 0, 0]);
    all.extend(name.as_bytes());
    all.extend(body);
    if is_deflated {
        all.extend(b"PK\x07\x08abcdefghijkl");
    }
    all
}

fn unpack(bytes: &[u8]) -> (Vec<u8>, Option<String>) {
    let mut unpacked = Unpacked::new(bytes, UnpackLimits::default()).unwrap();
    let mut out = Vec::new();
    unpacked.read_to_end(&mut out).unwrap();
    let damage = unpacked.damage();
    (out, damage)
}

fn error(bytes: &[u8]) -> String {
    let result = Unpacked::new(bytes, UnpackLimits::default())
        .and_then(|mut unpacked| unpacked.read_to_end(&mut Vec::new()));
    result.unwrap_err().to_string()
}

#[test]
fn each_format_is_known_by_how_it_begins() {
    let zip = [member("README", b"see capture", true), member("a.mon", TEXT, true)].concat();
    let stored = [member("a/", b"", false), member("a/a.mon", TEXT, false)].concat();
    let ended = [&zip[..], b"PK\x01\x02 and so on"].concat();
    for bytes in [TEXT, &gzip(TEXT), XZ, ZSTD, &zip, &stored, &ended, &gzip(XZ), &member("a.xz", XZ, true)] {
        assert_eq!(unpack(bytes), (TEXT.to_vec(), None), "{:?}", &bytes[..4]);
    }
    assert_eq!(unpack(b""), (vec![], None));
}

#[test]
fn streams_one_after_the_other_are_one() {
    let skippable = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    for twice in [gzip(TEXT).repeat(2), XZ.repeat(2), [ZSTD, &skippable, ZSTD].concat()] {
        assert_eq!(unpack(&twice), (TEXT.repeat(2), None));
    }
}

#[test]
fn of_compressed_data_that_break_off_what_there_is_can_be_read() {
    let line = |at: u32| format!("{:08x} {at} C Bi:1:005:1 0 0\n", at.wrapping_mul(2_654_435_761));
    let text = [TEXT, (0..10_000).map(line).collect::<String>().as_bytes()].concat();
    for whole in [gzip(&text), member("a.mon", &text, true)] {
        let (out, damage) = unpack(&whole[..whole.len() / 2]);
        assert!(out.len() > text.len() / 4 && text.starts_with(&out) && damage.is_some(), "{damage:?}");
    }
    for whole in [XZ, ZSTD, &gzip(TEXT), &member("a.mon", TEXT, true)] {
        for len in 6..whole.len() {
            let mut unpacked = match Unpacked::new(&whole[..len], UnpackLimits::default()) {
                Ok(unpacked) => unpacked,
                Err(_) => continue,
            };
            let mut out = Vec::new();
            let _ = unpacked.read_to_end(&mut out);
            assert!(TEXT.starts_with(&out));
        }
    }
}

#[test]
fn what_expands_without_end_is_cut_off() {
    let zeros = gzip(&vec![0; 1 << 20]);
    let limits = UnpackLimits { bytes_max: u64::MAX, ratio_max: 10, ratio_from: 4096 };
    let mut unpacked = Unpacked::new(&zeros[..], limits).unwrap();
    let mut out = Vec::new();
    unpacked.read_to_end(&mut out).unwrap();
    assert!(out.len() < 200_000 && unpacked.damage().unwrap().contains("limits"));
    let limits = UnpackLimits { bytes_max: 1000, ..UnpackLimits::default() };
    let mut unpacked = Unpacked::new(&zeros[..], limits).unwrap();
    unpacked.read_to_end(&mut out).unwrap();
    assert!(unpacked.damage().is_some());
}

#[test]
fn what_cannot_be_unpacked_is_refused_with_a_reason() {
    assert!(error(&gzip(&gzip(&gzip(TEXT)))).contains("compressed more than 2 times"));
    assert!(error(&member("README", b"no capture", true)).contains("no capture"));
    let two = [member("a.mon", TEXT, true), member("b.mon", TEXT, true)].concat();
    let (out, damage) = unpack(&two);
    assert!(out == TEXT && damage.unwrap().contains("another capture"));
    let mut encrypted = member("a.mon", TEXT, false);
    encrypted[6] = 1;
    assert!(error(&encrypted).contains("encrypted"));
    let mut other = member("a.mon", TEXT, false);
    other[8] = 12;
    assert!(error(&other).contains("method 12"));
}

/// An input that fails after some bytes.
struct Broken(u8);

impl Read for Broken {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let gzip = gzip(TEXT);
        let at = usize::from(self.0);
        if at >= gzip.len() / 2 {
            return Err(io::Error::other("the disk is gone"));
        }
        buffer[0] = gzip[at];
        self.0 += 1;
        Ok(1)
    }
}

#[test]
fn an_error_of_the_input_is_an_error() {
    let mut out = Vec::new();
    let unpacked = Unpacked::new(Broken(0), UnpackLimits::default());
    let error = unpacked.and_then(|mut unpacked| unpacked.read_to_end(&mut out)).unwrap_err();
    assert_eq!(error.to_string(), "the disk is gone");
}
