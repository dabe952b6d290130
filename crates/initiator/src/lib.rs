//! The host side of USB mass storage as machines without I/O.
//!
//! A [`Transport`] takes SCSI [`Command`]s and says what to do on the bus: transfers to submit, transfers to take
//! back, requests to the device, and how each command ended. Whatever has a real bus, a simulated one or the device
//! itself in the same memory carries that out and tells what came of it.
//!
//! Always true: inputs are methods with the time, outputs are polled until there are none; nothing here blocks, knows
//! a clock, or holds payload; every command that was taken ends exactly once, and only when none of its transfers is
//! under way, so that its buffer is the caller's again; everything has a limit with a name.
#![no_std]

extern crate alloc;

pub mod bot;
mod command;
pub mod disk;
mod flights;
mod outcome;
mod output;
mod patience;
mod request;
#[cfg(test)]
mod script;
mod transport;
pub mod turbo;
pub mod uas;
#[cfg(test)]
mod wild;

pub use bot::{Bot, BotConfig};
pub use command::{CDB_BYTES_MAX, Command, CommandBlock, CommandId, DataPhase};
pub use flights::Flights;
pub use outcome::{Answer, Failure, Outcome, SENSE_BYTES_MAX, SenseBytes};
pub use output::{
    BusAnswer, BusRequest, Deadline, DeadlineReason, INLINE_BYTES_MAX, Inline, Output, PEEK_BYTES_MAX,
    PackId, Payload, Piece, RequestId, StreamEndpoints, Transfer,
};
pub use patience::Patience;
pub use transport::{Counters, Refusal, Transport};
pub use turbo::{Turbo, TurboConfig};
pub use uas::{Uas, UasConfig, UasEndpoints};
