#![doc = include_str!("../README.md")]
//!
//! ## Design
//!
//! From the bus inwards: [`device`] answers endpoint 0 and holds the transport that the host has chosen; [`uas`],
//! [`bot`] and [`cbi`] turn transfers into commands; [`command`] holds the commands and runs them in the order that SAM
//! allows; [`lun`] is what a command means; [`medium`] is the interface to block storage. Requests flow down,
//! outcomes flow up, and no layer uses any but its neighbour.
#![no_std]

extern crate alloc;

pub mod bot;
pub mod cbi;
pub mod command;
pub mod device;
#[cfg(test)]
mod host_fixture;
pub mod lun;
pub mod medium;
mod output;
#[cfg(test)]
mod stress;
mod transfer_id;
pub mod uas;

pub use {bus, units, wire};

pub use device::{ActiveTransport, Device, DeviceConfig, INTERRUPT_INTERVAL_MS, Transports, Verdict};
pub use output::{DeviceTransfer, INLINE_BYTES_MAX, Inline, Output, Payload};
