//! Serial ATA between a host port and a drive: frames on a wire that goes one way at a time (Serial
//! ATA 3.x clauses 9, 10 and 11).
//!
//! An [`Attachment`] is both ends of a cable with a [`Mechanism`](crate::drive::Mechanism) behind
//! it. The host port gives it commands, queued or not; it says when sectors of a read have come,
//! when it may send sectors of a write, and when a command has ended. Frames are as long as those
//! of [`wire::ata`], with what the link adds, and each is asked for and acknowledged before the
//! next.
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
//! Invariants: one frame is on the wire; a drive never sends what the port has no room for; each
//! command ends once.

mod attachment;
mod notes;
mod rate;

pub use attachment::{Attachment, Books, Command, HostPortEvent, Queueing};
pub use notes::Note;
pub use rate::Rate;

#[cfg(test)]
mod tests;
