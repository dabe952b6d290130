//! The wire types of one family: see `crates/wire/tests/families/nbd.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::families::nbd::check(bytes));
