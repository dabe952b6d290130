//! Arguments of `uaskit compare`.
//!
//! Left out: whether parts exist and fit, which the catalogue decides.

use super::grid::GridArguments;
use super::parts::{Choice, MEASURED, PARTS};
use super::quantity::{self, Depths};
use super::save::SaveArguments;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use units::ByteCount;

// Headings of the help, since there are many options.
const SHOWN: &str = "What is shown";
const KEPT: &str = "What is kept";
const ALONE: &str = "Link and protocols alone";

/// Compare BOT, Turbo, UASP and SATA in a simulated world, packet by packet.
///
/// A setup joins real parts: a host with its driver, a host controller, hubs, a bridge, a drive. Everything between an
/// application's request and the flash or the platter happens in virtual time: the driver's work on its core, TRBs, packets, the
/// bridge's firmware, ATA commands, the drive's own mechanism. No rate is an input. The figures are the same on every machine;
/// `uaskit validate` holds them against published ones. With --raw there are no parts: both transports on a plain drive.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uaskit compare
  uaskit compare --setup hardware-fr
  uaskit compare --drive disk-7200 --transport bot,uas
  uaskit compare --driver linux-uas --controller vl805 --bridge jms580 --drive dramless-240
  uaskit compare --setup mine.toml --workload workstation --json
  uaskit compare --block 64K --depth 1,4,16 --write
  uaskit compare --depth 1,8 --explain --findings all
  uaskit compare --depth 1,8 --components
  uaskit compare --block 4K --depth 8 --seconds 2
  uaskit compare --timeline both.svg
  uaskit compare --report page.html
  uaskit compare --drive disk-7200 --platter
  uaskit compare --depth 4 --trace 3
  uaskit compare --depth 2 --capture parts.pcapng
  uaskit compare --sweep 'bridge=*,depth=1..32,block=4K..2M' --out grid.jsonl
  uaskit compare --transport uas,bot --against record.json
  uaskit compare --bridge jms580 --save --label 'another bridge'
  uaskit compare --raw
  uaskit compare --raw --block 64K --depth 1,4 --link gen2
  uaskit compare --raw --speed high --block 64K
  uaskit compare --raw --write --latency 20 --json
  uaskit compare --raw --controller card
  uaskit compare --raw --controller none
  uaskit compare --raw --link gen2 --save --label 'twice the link'
  uaskit compare --raw --drives 2 --hubs 1 --block 64K --depth 8
  uaskit compare --raw --depth 1,30 --explain
  uaskit compare --raw --depth 1,30 --components
  uaskit compare --raw --depth 1 --power-states
  uaskit compare --raw --depth 4 --commands 20 --trace 3
  uaskit compare --raw --depth 4 --commands 100 --capture both.pcapng
  uaskit compare --raw --drives 2 --hubs 1 --depth 4 --commands 100 --capture drives.pcapng
  uaskit compare --list-parts

Drives behind hubs share the link of one root port; without hubs each has its own root port, of which the controllers have \
two. Figures are of all drives together, and then of each; --explain is about the first one, and a capture has each of them.

A sweep is a grid: of host, driver, controller, hub, bridge, speed, drive, depth, block, way (read, write), access (random, \
sequential) or seed, each with values a|b|c, a range a..b by doubling (of seeds by one), or * for all parts that fit. Records are lines of JSON, to which \
a run that was interrupted adds what is missing; see docs/SWEEPS.md, and `uaskit merge`.

A capture has all runs of the comparison, one after the other, for tshark and Wireshark: BOT on bus 1, UAS on bus 2. Each drive of \
each run is a separate device, with the requests that configure it; addresses count on: with two drives those of the second run are 3 \
and 4. Hubs are left out. The comment of a record has its stream. A run begins with TEST UNIT READY and one queue depth of \
commands that are not measured, and ends with one queue depth of commands in flight.

Exit codes: 0 ok, 1 failed, 2 usage, 130 interrupted.")]
pub(crate) struct CompareArguments {
    /// Simulate link and protocols alone, on a plain drive.
    #[arg(long, help_heading = ALONE)]
    pub(crate) raw: bool,
    /// List the parts of the catalogue, with --json with all of their numbers.
    #[arg(long, conflicts_with_all = ["raw", "save"])]
    pub(crate) list_parts: bool,
    #[command(flatten)]
    pub(crate) choice: Choice,
    /// A folder with further parts, as `ssd/NAME.toml` and `bridges/NAME.toml`; they take the place of others of the same name.
    #[arg(long, help_heading = PARTS, value_name = "DIR", conflicts_with = "raw")]
    pub(crate) parts: Option<PathBuf>,
    /// Queue depths, one or several numbers up to 256, or a range that doubles, as 1..32; a driver sends as many at once as it and
    /// the drive can, BOT one at a time. With --raw up to 62, all of them sent at once: 32 streams carry 30, and where more
    /// are asked for the drive has 64.
    #[arg(long, help_heading = MEASURED, value_name = "N,…", value_delimiter = ',', allow_negative_numbers = true, value_parser = quantity::depths)]
    pub(crate) depth: Option<Vec<Depths>>,
    /// Bytes of a request at random places, a multiple of 512. Default with --raw: 4 KiB.
    #[arg(long, help_heading = MEASURED, value_name = "SIZE", value_parser = quantity::size)]
    pub(crate) block: Option<ByteCount>,
    /// Write instead of reading.
    #[arg(long, help_heading = MEASURED)]
    pub(crate) write: bool,
    /// The link: one of SuperSpeed, or the bus of USB 2.0.
    #[arg(long, help_heading = PARTS, visible_alias = "speed", value_enum)]
    pub(crate) link: Option<LinkArgument>,
    /// Host controller: a part by name. With --raw `chipset`, `card` or `none`; default at high and full speed: `none`.
    #[arg(long, help_heading = PARTS, value_name = "NAME")]
    pub(crate) controller: Option<String>,
    /// Number of drives, each at the full queue depth.
    #[arg(long, help_heading = ALONE, requires = "raw", value_name = "N", default_value = "1", value_parser = clap::value_parser!(u8).range(1..=15))]
    pub(crate) drives: u8,
    /// Number of hubs in series between a root port and the drives, which are at the last one.
    #[arg(long, help_heading = ALONE, requires = "raw", value_name = "N", default_value = "0", value_parser = clap::value_parser!(u8).range(0..=5))]
    pub(crate) hubs: u8,
    /// Latency of the drive for a command, in microseconds.
    #[arg(long, help_heading = ALONE, requires = "raw", value_name = "MICROSECONDS", default_value = "60", value_parser = quantity::microseconds)]
    pub(crate) latency: u32,
    /// Commands that the drive serves in parallel.
    #[arg(long, help_heading = ALONE, requires = "raw", value_name = "N", default_value = "32", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) at_once: u16,
    /// With --raw, commands of each run, over all drives (default 2000). With parts, requests of a captured run (default
    /// 100) or of a run in a report; for measured runs see --seconds.
    #[arg(long, help_heading = MEASURED, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) commands: Option<u32>,
    /// Virtual seconds to measure, 0.001 to 3600. Default: until the figure is accurate enough.
    #[arg(long, help_heading = MEASURED, value_name = "SECONDS", conflicts_with = "raw", value_parser = quantity::span)]
    pub(crate) seconds: Option<units::Duration>,
    /// Random seed for LBAs.
    #[arg(long, help_heading = MEASURED, default_value = "1")]
    pub(crate) seed: u64,
    /// Show where the time of a command goes: driver, controller, link, bridge, drive, queue. The parts add up to its
    /// latency.
    #[arg(long, help_heading = SHOWN)]
    pub(crate) explain: bool,
    /// Show what each component did: utilisation of lanes and buses, TDs and interrupts of the controller, requests at the
    /// media; with parts, utilisation of core, bridge, SATA cable and drive. Always in --json.
    #[arg(long, help_heading = SHOWN)]
    pub(crate) components: bool,
    /// Print what happens, packet by packet, and frame by frame on the SATA cable, until N commands of each run completed.
    #[arg(long, help_heading = SHOWN, value_name = "N", conflicts_with = "json", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) trace: Option<u32>,
    /// Draw two overlapping requests: what happens for each on the four pipes, in driver, bridge and drive. Into a file, or
    /// in the terminal.
    #[arg(long, help_heading = SHOWN, value_name = "FILE.svg", num_args = 0..=1, conflicts_with_all = ["raw", "json", "trace", "save"])]
    pub(crate) timeline: Option<Option<PathBuf>>,
    /// Draw in which order a disk serves four reads on one track. Into a file, or in the terminal.
    #[arg(long, help_heading = SHOWN, value_name = "FILE.svg", num_args = 0..=1, conflicts_with_all = ["raw", "json", "trace", "timeline", "save"])]
    pub(crate) platter: Option<Option<PathBuf>>,
    /// Write charts into one HTML file for a browser: with confidence intervals from five seeds, where the time goes, and
    /// --commands commands (default 3000) of each column on the four pipes. Also with --raw and with --against.
    #[arg(long, help_heading = SHOWN, value_name = "FILE.html", conflicts_with_all = ["sweep", "timeline", "platter", "trace", "capture"])]
    pub(crate) report: Option<PathBuf>,
    /// Compare with a measurement of hardware: the record of `uaskit bench --json`, whose jobs are simulated.
    #[arg(long, help_heading = SHOWN, value_name = "RECORD.json", conflicts_with_all = ["raw", "workload", "block", "write", "depth", "save"])]
    pub(crate) against: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) grid: GridArguments,
    /// Let links at root ports sleep, in U1 and U2 as Linux does, and say how long they have. With --raw say instead what that costs
    /// and saves: reads of 4 KiB one at a time, at pauses of several lengths.
    #[arg(long, help_heading = MEASURED)]
    pub(crate) power_states: bool,
    /// Write a pcapng file of all runs. An older file of that name is replaced.
    #[arg(long, help_heading = SHOWN, value_name = "FILE", conflicts_with_all = ["timeline", "platter"])]
    pub(crate) capture: Option<PathBuf>,
    /// What the capture contains.
    #[arg(long, help_heading = SHOWN, value_enum, requires = "capture", default_value_t = CaptureKind::Transfers)]
    pub(crate) capture_as: CaptureKind,
    /// Bytes of each transfer that the capture keeps; 0, the default, keeps all. Packets are never cut.
    #[arg(long, help_heading = SHOWN, value_name = "SIZE", requires = "capture", value_parser = quantity::snap)]
    pub(crate) snap: Option<u32>,
    #[command(flatten, next_help_heading = KEPT)]
    pub(crate) keeping: SaveArguments,
    /// Simulations that run in parallel, at most four per processor. Default: one per processor. Results do not depend on
    /// it.
    #[arg(long, help_heading = MEASURED, value_name = "N", conflicts_with_all = ["trace", "capture"], allow_negative_numbers = true, value_parser = quantity::threads)]
    pub(crate) threads: Option<u16>,
    /// Number of findings to show, the most important first, or `all`.
    #[arg(long, help_heading = SHOWN, value_name = "N|all", default_value = "5", value_parser = finding_count)]
    pub(crate) findings: usize,
    /// Print JSON.
    #[arg(long, help_heading = SHOWN)]
    pub(crate) json: bool,
}

impl CompareArguments {
    /// The queue depths that were asked for, if any were.
    pub(crate) fn depths(&self) -> Option<Vec<u16>> {
        self.depth.as_deref().map(quantity::flat)
    }
}

/// A number of findings; all of them are more than there are.
fn finding_count(text: &str) -> Result<usize, String> {
    match text {
        "all" => Ok(usize::MAX),
        number => number.parse().map_err(|_| format!("`{number}` is neither a number nor `all`")),
    }
}

/// A link.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LinkArgument {
    /// 5 Gb/s.
    Gen1,
    /// 10 Gb/s.
    Gen2,
    /// 20 Gb/s on two lanes.
    Gen2x2,
    /// 480 Mb/s, the bus of USB 2.0.
    High,
    /// 12 Mb/s.
    Full,
}

/// A host controller.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ControllerArgument {
    /// Within a chipset: four lanes to memory, streams.
    Chipset,
    /// A card in a slot of one lane: 410 MB/s at most, and every access is a long way.
    Card,
    /// None, and no driver: what link and protocols allow at most.
    None,
}

/// What a capture contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CaptureKind {
    /// Transfers in the format of Linux's usbmon, link type 220.
    Transfers,
    /// Packets, as transactions of USB 2.0, link type 288.
    Packets,
}
