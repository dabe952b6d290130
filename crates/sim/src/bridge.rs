//! A USB-to-SATA bridge chip.
//!
//! The SCSI side is the crate `device`; this module models what is below its medium. A [`Store`]
//! translates medium requests to ATA commands: one per SCSI command, queued by tag where the
//! transport has several in flight, non-queued otherwise. It buffers sectors between the two sides,
//! and the faster side waits. Its firmware is one [`Processor`](crate::engine::Processor), which
//! handles each command on arrival and on completion.
//!
//! ```text
//!   UAS or BOT ── unit ── medium requests ── Store ── ATA commands ── cable ── drive
//!        └───────── Processor: each command, coming and going ──────────┘
//! ```
//!
//! Not modelled: contents (in the medium), drive errors, bridges with two drives.
//!
//! Invariants: a request completes once, when its sectors have moved and, except for a read, the
//! drive has completed the command; queued and non-queued commands are never in flight together.

mod chip;
mod store;

pub use chip::{Chip, Times};
pub use store::{Store, StorePart};
