//! Fixtures for tests of several crates: a drive with one logical unit, and a host that drives it.
//!
//! A development dependency only: no crate that ships uses it. Fixtures of one crate alone stay in that crate.

pub mod drive;
pub mod host;
