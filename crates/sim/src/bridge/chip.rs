//! Timing and buffer parameters of a bridge chip.

use super::StorePart;
use device::command::Limits;
use units::Duration;

/// Timing and buffer parameters of a bridge chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chip {
    /// Streams of its UAS endpoints: a power of two, 2 to 256.
    pub streams: u16,
    /// Limits of commands and payload, and the chunk size in which payload moves.
    pub limits: Limits,
    /// Firmware time per command over BOT.
    pub bot: Times,
    /// Firmware time per command over UAS.
    pub uas: Times,
    /// Time per sector through its memory, in each direction; zero if memory is never the
    /// bottleneck.
    pub sector: Duration,
    /// Its SATA side.
    pub store: StorePart,
}

/// Firmware time per command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// From arrival to the ATA command.
    pub command: Duration,
    /// From the drive's completion to the status.
    pub status: Duration,
}
