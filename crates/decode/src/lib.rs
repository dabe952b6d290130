#![doc = include_str!("../README.md")]
//!
//! ## Design
//!
//! Packets of a capture go into a [`Decoder`], [`Command`]s come out of it: each with its time, unit, tag, command block, bytes, status
//! and sense data, whatever carried it. What went wrong is a [`Verdict`], with the side that caused it, the packets that show it, and Linux's
//! quirk where one fits. [`Stats`] counts commands by what they are and how deep the queue was.
//!
//! ```text
//! capture::Packet ── source ──▶ event (one end of a transfer) ── device ── bot │ uas │ cbi ──▶ command, verdict
//! ```
//!
//! Which endpoint is which is learned from descriptors in the capture, or from what is in the transfers. Everything here is a value;
//! nothing knows a file or a clock. Invariants: memory does not grow with the capture, and what
//! is discarded for that is counted ([`Losses`]).

mod bot;
mod cbi;
mod clock;
mod command;
mod contents;
mod cover;
mod decoder;
mod device;
mod event;
mod ledger;
mod open;
mod source;
mod stats;
mod uas;
mod unit;
mod verdict;

pub use {capture, wire};

pub use command::{Block, Command, Outcome, Part, SENSE_BYTES_MAX, STEPS_MAX, TransferStep, Transport};
pub use contents::{DeviceSummary, TransferCounts, class_name};
pub use decoder::{DEVICES_MAX, Decoder, Drive};
pub use event::{Address, Mark, Phase, TransferEnd};
pub use ledger::Losses;
pub use source::NotUnderstood;
pub use stats::{DEPTH_MAX, Gaps, Spread, Stats, Summary};
pub use verdict::{EVIDENCE_MAX, Fault, Side, VERDICTS_MAX, Verdict};

#[cfg(test)]
mod tests;
