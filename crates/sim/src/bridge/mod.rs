//! What turns a USB drive into a SATA drive: a bridge chip, by what it does one after the other.
//!
//! The SCSI side is the project's own target; here is what is below its medium door and beside it.
//! A [`Store`] makes ATA commands of what the unit asks of its medium: one for each SCSI command,
//! queued by tag where the transport lets several be in flight, and alone otherwise. It holds
//! sectors between the two sides in a separate buffer size, and whichever side is faster waits. Its
//! firmware is one [`Processor`](crate::engine::Processor), which looks at each command when it
//! comes and when it ends.
//!
//! ```text
//!   UAS or BOT ── unit ── medium requests ── Store ── ATA commands ── cable ── drive
//!        └───────── Processor: each command, coming and going ──────────┘
//! ```
//!
//! Not modelled: contents (they are the medium's), errors of the drive, bridges with two drives.
//!
//! Invariants: a request ends once, when its sectors have moved and, but for a read, when the drive
//! has said that the command has ended; commands alone and queued ones are never in flight
//! together.

mod chip;
mod store;

pub use chip::{Chip, Times};
pub use store::{Store, StorePart};
