//! USB traffic as capture files: written as pcapng, which tshark and Wireshark open, with the stream of each transfer kept; read as
//! pcap and pcapng.
//!
//! [`Pcapng`] writes the blocks of a file. On it one of two things is told of a device: its [`Transfers`], as Linux's usbmon
//! would (link type 220), or the [`Transactions`] that move them, as an analyser of USB 2.0 would (link type 288). What is in
//! such a file, and where the stream is, says docs/CAPTURE.md.
//!
//! [`Reader`] reads what these and others wrote: packets, and what of a file could not be read. What packets mean is for others.
//! Whoever owns the traffic calls, and says when; nothing here reads a clock.
//!
//! Always true: what is held in memory does not grow with the file; an error names the file; a record is whole or not there,
//! unless the writer below fails in the middle of it.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod ends;
mod error;
mod pcapng;
mod reader;
mod retold;
mod transactions;
mod transfers;
mod unpack;

pub use error::{ReadError, WriteError};
pub use pcapng::{COMMENT_BYTES_MAX, INTERFACES_MAX, Interface, InterfaceId, LinkType, Pcapng, Record};
pub use reader::{ByteOrder, Damage, DamageKind, Dropped, Item, Link, Packet, RECORD_BYTES_MAX, Reader};
pub use transactions::{Crossed, Said, Transactions, UNDER_WAY_MAX};
pub use transfers::{Control, Transfer, Transfers};
pub use unpack::{NESTING_MAX, UnpackDamage, UnpackLimits, Unpacked};

/// What a comment begins with of a record that was not on the link: whoever wrote it has added it for readers.
const ADDED: &str = "not on the link";

/// Where a device is, to whoever reads a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the bus, from 1.
    pub bus: u16,
    /// Address of the device, 1 to 127.
    pub device: u8,
}
