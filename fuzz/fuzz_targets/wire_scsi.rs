//! The wire types of one family: see `crates/wire/tests/families/scsi.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::families::scsi::check(bytes));
