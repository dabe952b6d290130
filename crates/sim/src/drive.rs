//! Drive mechanisms behind SATA: timing models of hard disks and solid-state drives.
//!
//! A [`Mechanism`] accepts [`DriveCommand`]s and reports when sectors of a read are buffered, when
//! it has buffer space for sectors of a write, and when a command has completed. It holds no
//! payload: contents are in the medium. [`disk`] has platters and an arm, [`solid`] has flash.
//!
//! ```text
//!   order ──► mechanism ──► Ready(sectors)…  Done      a read
//!                     ──► Room(sectors)… ◄── sectors … Done      a write
//! ```
//!
//! Not modelled: errors, power states, commands that are neither reads, writes, flushes nor trims.
//!
//! Invariants: a command completes once; each sector of a read is ready once, in order; space for
//! each sector of a write is granted once; memory use is bounded by the parameters.

mod any;
pub mod disk;
pub mod solid;

#[cfg(test)]
mod script;

pub use any::AnyDrive;

use std::fmt;
use units::{Extent, Instant};

/// Bytes of a sector, the unit of this module.
pub const SECTOR_BYTES: u32 = 512;

/// The tag of a queued ATA command (ACS-4 clause 4.15), 0 to 31.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u8);

/// Number of tags.
pub const TAGS: usize = 32;

/// A command for a mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveCommand {
    /// Its tag, unique among the commands in flight.
    pub tag: Tag,
    /// The operation.
    pub kind: DriveCommandKind,
    /// Sectors of [`SECTOR_BYTES`].
    pub extent: Extent,
}

/// The operation of a [`DriveCommand`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriveCommandKind {
    /// Sectors to the host.
    Read,
    /// Sectors from the host.
    Write {
        /// Forced unit access: completes when the sectors are on the medium, not in a cache.
        through: bool,
    },
    /// Completes when all earlier writes are on the medium.
    Flush,
    /// Deallocates the sectors.
    Trim,
}

/// An event of a mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriveEvent {
    /// More sectors of a read are ready to send.
    Ready(Tag, u32),
    /// There is buffer space for more sectors of a write.
    Space(Tag, u32),
    /// A command has completed. All sectors of a read have been ready.
    Done(Tag),
    /// The mechanism starts an access to the medium: for charts of the order of service.
    Accesses(MediumAccess),
}

/// An access of a mechanism to its medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediumAccess {
    /// The command, or none for a write-back.
    pub tag: Option<Tag>,
    /// Location.
    pub extent: Extent,
}

/// Completed writes that are not on the medium yet. While this grows, writes complete faster than
/// the medium can sustain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deferred {
    /// Sectors held or granted.
    pub held: u64,
    /// Capacity in sectors.
    pub room: u64,
}

/// A drive mechanism without I/O.
pub trait Mechanism: fmt::Debug {
    /// Accepts a command. It must be within the capacity, and its tag must be free.
    fn submit(&mut self, now: Instant, order: DriveCommand);

    /// Delivers sectors of a write for which space was granted.
    fn handle_sectors(&mut self, now: Instant, tag: Tag, sectors: u32);

    /// Returns the next event, `None` when there are no more.
    fn poll_event(&mut self) -> Option<DriveEvent>;

    /// Returns the time of the next event, if there is one.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Handles the passing of time up to `now`.
    fn handle_timeout(&mut self, now: Instant);

    /// Returns its capacity in sectors.
    fn sectors(&self) -> u64;

    /// Returns the state of the write-back cache; empty for a write-through drive.
    fn deferred(&self) -> Deferred {
        Deferred::default()
    }
}
