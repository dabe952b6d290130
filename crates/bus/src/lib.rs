#![doc = include_str!("../README.md")]
//!
//! ## Design
//!
//! Only [`Pipe`], [`TransferId`], [`Completion`], [`TransferStatus`] and [`Speed`] cross between host and
//! device. Direction is always the host's: *In* moves bytes to the host. Transfers of a pipe complete
//! in the order of submission. This crate holds no payload, only ranges of buffers that others own. An
//! [`Observer`] records a host's transfers on any bus.
//!
//! Left out: isochronous and interrupt transfers, and time. Timed buses have their own machines.
#![no_std]

extern crate alloc;

mod fault_schedule;
mod fifo;
pub mod link;
mod observer;
pub mod rendezvous;
mod transfer;

pub use fault_schedule::{FaultSchedule, FaultTrigger};
pub use fifo::{Fifo, Front};
pub use observer::Observer;
pub use rendezvous::Rendezvous;
pub use transfer::{Completion, Pipe, Speed, StreamId, TransferId, TransferStatus};
pub use wire::usb::{Direction, EndpointAddress};
