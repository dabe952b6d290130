#![doc = include_str!("../README.md")]
//!
//! ## Design
//!
//! One type, one file, one shape: the clause and a byte map, a struct with typed fields, `LEN`, `decode`,
//! `encode`, a one-line `Display`, tests with literal bytes. Decoding is whole: a value that exists is a
//! value that was valid, so no caller checks again. Bit arithmetic lives here and nowhere else.
//!
//! Always true: no allocation, no `unsafe`, no panic on any bytes. Codes are open (an unknown code survives
//! decode and encode); choices are closed (a field with a finite meaning is an enum).
#![no_std]
#![deny(clippy::indexing_slicing)]

#[macro_use]
mod bits;
#[macro_use]
mod code;
mod cursor;
mod error;
#[macro_use]
mod fixed;
mod legible;

pub mod ata;
pub mod bot;
pub mod cbi;
pub mod nbd;
pub mod scsi;
pub mod uas;
pub mod ufi;
pub mod usb;
pub mod usbmon;
pub mod usbpcap;
pub mod usbpf;
pub mod usbredir;
pub mod vfio_user;
pub mod xhci;

pub use cursor::{Reader, Writer};
pub use error::{DecodeError, NoRoom};
pub use legible::Legible;
