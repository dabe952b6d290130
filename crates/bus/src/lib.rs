//! USB transfer types shared by host and device, and the matching of their transfers.
//!
//! Host and device each submit transfers; [`Rendezvous`] matches them. Only [`Pipe`],
//! [`TransferId`], [`Completion`], [`TransferStatus`] and [`Speed`] cross between the two.
//! Direction is always the host's: *In* moves bytes to the host.
//!
//! Always true: a submitted transfer completes exactly once, a cancelled one included, and
//! transfers of a pipe complete in the order of submission. This crate holds no payload, only
//! ranges of buffers that others own. An [`Observer`] records a host's transfers on any bus.
//!
//! Left out: isochronous and interrupt transfers, and time. Timed buses have their own machines.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![no_std]

extern crate alloc;

mod fifo;
mod line;
pub mod link;
mod observer;
pub mod rendezvous;
mod transfer;

pub use fifo::{Fifo, Front};
pub use line::Line;
pub use observer::Observer;
pub use rendezvous::Rendezvous;
pub use transfer::{Completion, Pipe, Speed, StreamId, TransferId, TransferStatus};
pub use wire::usb::{Direction, EndpointAddress};
