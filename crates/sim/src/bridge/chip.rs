//! What of a bridge takes time, and how much of it there is.

use super::StorePart;
use device::command::Limits;
use units::Duration;

/// What of a bridge decides how long things take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chip {
    /// Streams of its UAS endpoints: a power of two, 2 to 256.
    pub streams: u16,
    /// What it can hold of commands and payload, and in which pieces payload moves.
    pub limits: Limits,
    /// What its firmware takes for a command over BOT.
    pub bot: Times,
    /// The same over UAS.
    pub uas: Times,
    /// What a sector takes through its memory, either way; zero if that is never in the way.
    pub sector: Duration,
    /// Its SATA side.
    pub store: StorePart,
}

/// What the firmware takes for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// When it has come: to make an ATA command of it.
    pub command: Duration,
    /// When the drive is done with it: to say so.
    pub status: Duration,
}
