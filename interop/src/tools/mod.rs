//! Tools that others wrote, run in the guest or on what it captured, and their answers as values.

pub mod capture;
pub mod conformance;
pub mod fio;
