//! Tools that others wrote, run in the guest, on what it captured, or on what we print, and their answers as values.

pub mod browser;
pub mod capture;
pub mod conformance;
pub mod fio;
pub mod texts;
pub mod uaskit;
pub mod udev;
