//! The wire types of one family: see `crates/wire/tests/families/vfio_user.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::families::vfio_user::check(bytes));
