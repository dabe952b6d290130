//! Serial ATA between a host port and a drive: frames on a half-duplex wire (Serial ATA 3.x clauses
//! 9, 10 and 11).
//!
//! An [`Attachment`] is a cable with a [`Mechanism`](crate::drive::Mechanism) behind it. The host
//! port issues commands, queued or not, and is notified when sectors of a read have arrived, when
//! it may send sectors of a write, and when a command has completed. Frames have the lengths of
//! [`wire::ata`] plus link overhead, and each is requested and acknowledged before the next.
//!
//! ```text
//!   queued read   command → ← accepted … ← set-up ← data … ← data … ← set device bits
//!   queued write  command → ← accepted … ← set-up   data → ← activate data → … ← set device bits
//!   other read    command → ← data … ← registers
//!   other write   command → ← activate data → ← activate data → … ← registers
//! ```
//!
//! Not modelled: power states, errors on the wire, port multipliers, commands with PIO data.
//!
//! Invariants: one frame is on the wire; a drive never sends data that the port has no room for;
//! each command completes once.

mod attachment;
mod notes;
mod rate;

pub use attachment::{Attachment, Books, Command, HostPortEvent, Queueing};
pub use notes::Note;
pub use rate::Rate;

#[cfg(test)]
mod tests;
