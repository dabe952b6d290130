//! What lies behind SATA: drives, by how long what takes, and why.
//!
//! A [`Mechanism`] takes [`DriveCommand`]s and says when sectors of a read lie in its buffer, when
//! it has room for sectors of a write, and when an order has ended. It holds no payload: contents
//! are the medium's. [`disk`] has platters and an arm, [`solid`] has flash.
//!
//! ```text
//!   order ──► mechanism ──► Ready(sectors)…  Done      a read
//!                     ──► Room(sectors)… ◄── sectors … Done      a write
//! ```
//!
//! Not modelled: errors, power states, commands that are neither reads, writes, flushes nor trims.
//!
//! Invariants: an order ends once; of a read each sector is ready once, in order; for a write there
//! is room for each sector once; nothing here takes more memory than its part has.

mod any;
pub mod disk;
pub mod solid;

#[cfg(test)]
mod script;

pub use any::AnyDrive;

use std::fmt;
use units::{Extent, Instant};

/// Bytes of a sector, in which everything here is counted.
pub const SECTOR_BYTES: u32 = 512;

/// The name of an order while it is in flight: that of a queued ATA command (ACS-4 clause 4.15), 0
/// to 31.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u8);

/// Tags that there are.
pub const TAGS: usize = 32;

/// What a mechanism is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveCommand {
    /// Its name; no two in flight have the same.
    pub tag: Tag,
    /// What to do.
    pub kind: DriveCommandKind,
    /// Sectors of [`SECTOR_BYTES`].
    pub extent: Extent,
}

/// What an order does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriveCommandKind {
    /// Sectors to the host.
    Read,
    /// Sectors from the host.
    Write {
        /// It ends when they are on the medium, not when they are in a cache.
        through: bool,
    },
    /// Ends when all is on the medium that was written before.
    Flush,
    /// The sectors are of no interest any more.
    Trim,
}

/// What a mechanism says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriveEvent {
    /// So many further sectors of a read can be sent.
    Ready(Tag, u32),
    /// So many further sectors of a write can be taken.
    Room(Tag, u32),
    /// An order has ended. Of a read all sectors have been ready.
    Done(Tag),
    /// The mechanism turns to something on the medium: for pictures of the order of service.
    Accesses(MediumAccess),
}

/// What a mechanism turned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediumAccess {
    /// For which order; none if it empties its cache.
    pub tag: Option<Tag>,
    /// Where.
    pub extent: Extent,
}

/// Writes that have ended and are not on the medium yet. While they become more, writes end sooner
/// than they do from then on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deferred {
    /// Sectors that are kept, or promised room.
    pub held: u64,
    /// Sectors that there is room for.
    pub room: u64,
}

/// A drive's inside, without input and output.
pub trait Mechanism: fmt::Debug {
    /// Takes an order. It must fit the drive, and its tag must be free.
    fn submit(&mut self, now: Instant, order: DriveCommand);

    /// Sectors of a write have come, for which there was room.
    fn handle_sectors(&mut self, now: Instant, tag: Tag, sectors: u32);

    /// What it has to say, until it says nothing.
    fn poll_event(&mut self) -> Option<DriveEvent>;

    /// When it goes on.
    fn poll_timeout(&self) -> Option<Instant>;

    /// It is that late.
    fn handle_timeout(&mut self, now: Instant);

    /// Sectors that it has.
    fn sectors(&self) -> u64;

    /// What of writes it keeps for later while it has other things to do. Nothing where what is
    /// written goes to the medium at once.
    fn deferred(&self) -> Deferred {
        Deferred::default()
    }
}
