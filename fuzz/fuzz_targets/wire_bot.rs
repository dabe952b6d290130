//! The wire types of one family: see `crates/wire/tests/families/bot.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::families::bot::check(bytes));
