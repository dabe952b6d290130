//! The words both sides of a USB share, and the place where their transfers meet.
//!
//! A host offers transfers, a device offers transfers; a bus is where one meets the other. The words here are
//! the only ones that cross: [`Pipe`], [`TransferId`], [`Completion`], [`TransferStatus`], [`Speed`].
//! Direction is always the host's: *In* moves bytes to the host.
//!
//! Always true: a submitted transfer completes exactly once, a cancel is answered by a completion, and a pipe
//! completes in the order of submission. No payload is held here, only ranges of buffers that others own. An [`Observer`] looks
//! on at a host's transfers, whatever carries them.
//!
//! Left out: isochronous and interrupt transfers, and time. Timed buses bring their own machines.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![no_std]

extern crate alloc;

mod fifo;
mod line;
mod observer;
pub mod rendezvous;
mod transfer;

pub use fifo::{Fifo, Front};
pub use line::Line;
pub use observer::Observer;
pub use rendezvous::Rendezvous;
pub use transfer::{Completion, Pipe, Speed, StreamId, TransferId, TransferStatus};
pub use wire::usb::{Direction, EndpointAddress};
