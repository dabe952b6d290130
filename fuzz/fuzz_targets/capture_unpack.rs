//! Compressed captures: any bytes are unpacked within their limits or refused, and what comes out is read to its end.
#![no_main]

use capture::{Item, Reader, UnpackLimits, Unpacked};
use std::io::Read;

/// More than any input here can need, and little enough for a fuzzer.
const LIMITS: UnpackLimits = UnpackLimits { bytes_max: 1 << 20, ratio_max: 100, ratio_from: 1 << 16 };
/// Bytes that one read may bring beyond the limits.
const BUFFER_BYTES: usize = 4096;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(mut unpacked) = Unpacked::new(bytes, LIMITS) else { return };
    let (mut out, mut buffer) = (Vec::new(), [0; BUFFER_BYTES]);
    while let Ok(read @ 1..) = unpacked.read(&mut buffer) {
        out.extend(&buffer[..read]);
    }
    assert!(out.len() as u64 <= LIMITS.bytes_max + BUFFER_BYTES as u64 || out.len() == bytes.len());
    let Ok(mut reader) = Reader::new(&out[..], "memory".into()) else { return };
    while let Some(item) = reader.next_item().expect("memory is read") {
        if let Item::Damage(damage) = item {
            assert!(damage.bytes > 0);
        }
    }
    assert_eq!(reader.offset(), out.len() as u64);
});
