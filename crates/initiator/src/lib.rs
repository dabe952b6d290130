#![doc = include_str!("../README.md")]
//!
//! ## Design
//!
//! A [`Transport`] accepts SCSI [`Command`]s and outputs what to do on the bus: transfers to submit
//! or cancel, requests to the device, and the outcome of each command. The driver of the machine,
//! over a real, simulated or in-memory bus, carries the outputs out and feeds back the results.
//! [`Bot`], [`Turbo`] and [`Uas`] are transports; [`disk::Disk`] makes commands of block requests;
//! [`session::Session`] joins both with a bus that implements [`session::HostBus`].
//! The buffer of a command is the caller's again when the command has ended; every limit has a name.
#![no_std]

extern crate alloc;

mod any_transport;
pub mod bot;
mod command;
pub mod disk;
mod outcome;
mod output;
#[cfg(test)]
mod random_device;
mod request;
#[cfg(test)]
mod script;
pub mod session;
mod timeouts;
mod transport;
pub mod turbo;
pub mod uas;

pub use {bus, units, wire};

pub use any_transport::AnyTransport;
pub use bot::{Bot, BotConfig};
pub use command::{CDB_BYTES_MAX, Command, CommandBlock, CommandId, DataPhase};
pub use outcome::{Answer, Failure, Outcome, SENSE_BYTES_MAX, SenseBytes};
pub use output::{
    BufferRange, BusAnswer, BusRequest, Deadline, DeadlineReason, INLINE_BYTES_MAX, Inline, Output,
    PEEK_BYTES_MAX, PackId, Payload, RequestId, StreamEndpoints, Transfer,
};
pub use timeouts::Timeouts;
pub use transport::{Counters, Refusal, Transport};
pub use turbo::{Turbo, TurboConfig};
pub use uas::{Uas, UasConfig, UasEndpoints};
