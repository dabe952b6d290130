//! Fixtures for tests of several crates: drives, a host that drives one without an initiator, an
//! initiator and a drive on a bus with faults, a disk that is identified.
//!
//! A development dependency only: no crate that ships uses it. Fixtures of one crate alone stay in that crate.

pub mod command;
pub mod disk;
pub mod drive;
pub mod faulty_bus;
pub mod host;
pub mod nbd;
pub mod pair;
