//! Arguments of the benches that have several parts: of the drive, and of the host side.
//!
//! Left out: those of a bench with one part, which are beside it. Always true: a length is a number of seconds, not negative.

use clap::ValueEnum;
use std::path::PathBuf;
use std::time::Duration;

/// How to measure the drive.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DriveArguments {
    /// Length of each measurement; a fraction is fine.
    #[arg(long, default_value = "1", value_parser = seconds)]
    pub(super) seconds: Duration,
    /// How often the drive and its reference are measured, alternately.
    #[arg(long, default_value_t = 7)]
    pub(super) rounds: u32,
    /// Commands in flight.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=255))]
    pub(super) depth: u16,
    /// Print everything as JSON.
    #[arg(long)]
    pub(super) json: bool,
    /// Drive the server that listens there, instead of one started for this; no bar then.
    #[arg(long, value_name = "PATH")]
    pub(super) socket: Option<PathBuf>,
    /// Measure in a guest as well, against QEMU's own drive: some minutes.
    #[arg(long)]
    pub(super) guest: bool,
    /// Measure only this.
    #[arg(long, value_enum)]
    pub(super) only: Option<DrivePart>,
    /// Print how to profile the server under this load, and do nothing else.
    #[arg(long)]
    pub(super) profile: bool,
}

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum DrivePart {
    /// The codec.
    Codec,
    /// The drive over a socket.
    Socket,
    /// The drive in a guest.
    Guest,
}

/// How to measure the host side.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct HostArguments {
    /// Length of each measurement; a fraction is fine, but in a guest seconds are whole.
    #[arg(long, default_value = "1", value_parser = seconds)]
    pub(super) seconds: Duration,
    /// How often each is measured, alternately with its reference.
    #[arg(long, default_value_t = 7)]
    pub(super) rounds: u32,
    /// Print everything as JSON.
    #[arg(long)]
    pub(super) json: bool,
    /// Measure what is in memory alone, in a build with a profile of its branches: some minutes more.
    #[arg(long, conflicts_with = "only")]
    pub(super) profiled: bool,
    /// Measure only this.
    #[arg(long, value_enum)]
    pub(super) only: Option<HostPart>,
}

/// How to measure our controller over vfio-user.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct VfioArguments {
    /// How long each drive is measured in a round; a fraction is fine.
    #[arg(long, default_value = "2", value_parser = seconds)]
    pub(super) seconds: Duration,
    /// How often all drives are measured, in turn.
    #[arg(long, default_value_t = 5)]
    pub(super) rounds: u32,
    /// Print everything as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum HostPart {
    /// Initiator and drive in memory.
    Memory,
    /// Our drivers in a guest.
    Guest,
    /// The list of drives.
    List,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number")?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}
