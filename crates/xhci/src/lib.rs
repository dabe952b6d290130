//! A driver of xHCI host controllers (xHCI 1.2) as a machine without I/O.
//!
//! It runs over two traits, [`Registers`] and [`DmaMemory`]: a simulated controller or a real one. Rings and the
//! meaning of events ([`retire`]) are here; the machine over them is to come.
//!
//! Always true: nothing a controller writes makes it panic, loop or grow; every limit has a name ([`limit`]).
//!
//! Left out: isochronous endpoints, suspend, virtualisation, more than one interrupter.
#![no_std]

extern crate alloc;

mod hardware;
pub mod limit;
mod quirks;
pub mod retire;
#[allow(dead_code, unused_imports, reason = "the controller that fills and empties them comes next")]
mod ring;
#[cfg(test)]
mod script;

pub use hardware::{DmaLayout, DmaMemory, Hardware, Registers};
pub use quirks::Quirks;
