#![doc = include_str!("../README.md")]
//!
//! ## Design
//!
//! [`Pcapng`] writes the blocks of a file. A device is written in one of two ways: its [`Transfers`], as by Linux's usbmon
//! (link type 220), or the [`Transactions`] that move them, as by an analyser of USB 2.0 (link type 288). docs/CAPTURE.md describes
//! such a file, and where the stream is.
//!
//! [`Reader`] reads what these and others wrote: packets, and what of a file could not be read; [`Unpacked`] is the input of one that is
//! compressed. What packets mean is for others. Callers give the time; nothing here reads a clock.
//!
//! Invariants: what is held in memory does not grow with the file; an error names the file; a record is whole or not there,
//! unless the writer below fails in the middle of it.

mod ends;
mod error;
mod pcapng;
mod reader;
mod rewritten;
mod transactions;
mod transfers;
mod unpack;

pub use {bus, units};

pub use error::{ReadError, WriteError};
pub use pcapng::{COMMENT_BYTES_MAX, INTERFACES_MAX, Interface, InterfaceId, LinkType, Pcapng, Record};
pub use reader::{ByteOrder, Damage, DamageKind, Dropped, Item, Link, Packet, RECORD_BYTES_MAX, Reader};
pub use transactions::{Crossed, IN_FLIGHT_MAX, Said, Transactions};
pub use transfers::{Control, Transfer, TransferEnd, Transfers};
pub use unpack::{NESTING_MAX, UnpackDamage, UnpackLimits, Unpacked};

/// How the comment of a record begins that was not on the link and that the writer has added for readers.
const ADDED: &str = "not on the link";

/// The bus and address of a device, for readers of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceAddress {
    /// Number of the bus, from 1.
    pub bus: u16,
    /// Address of the device, 1 to 127.
    pub device: u8,
}
