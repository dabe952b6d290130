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
const SHOWN: &str = "Output";
const KEPT: &str = "Saved runs";
const ALONE: &str = "Link and protocols alone";

/// Simulate BOT, Turbo, UASP and SATA on a setup of real parts, and compare them.
///
/// A setup joins parts: host and driver, host controller, hubs, bridge, drive. The simulation runs in virtual time and covers
/// everything between an application's request and flash or platter: driver time on a core, TRBs, packets, bridge firmware,
/// ATA commands, the drive's mechanics. No rate is an input; rates follow from the parts. Figures are the same on every
/// machine; `uaskit validate` compares them with published ones. --raw simulates link and protocols alone, with a
/// fixed-latency drive in place of parts.
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

Several drives (--raw --drives): drives behind hubs share the link of one root port; without hubs each has its own root port, \
at most two. Tables show all drives together, then each drive. --explain shows the first drive; a capture contains all.

Sweeps: a grid is NAME=VALUES,… NAME is host, driver, controller, hub, bridge, speed, drive, depth, block, direction (read, write), \
access (random, sequential) or seed. VALUES are a|b|c, a range a..b that doubles (seeds count by one), or * for all parts that \
fit. An interrupted sweep continues when the command is repeated. See docs/SWEEPS.md and `uaskit merge`.

Captures are for tshark and Wireshark and contain all runs, one after the other: BOT on bus 1, UAS on bus 2. Each drive of each \
run is a separate device with a new address and with the requests that configure it; hubs are left out. The comment of a \
packet names its stream. A run starts with TEST UNIT READY and one queue depth of commands that are not measured, and ends \
with one queue depth of commands in flight.

Exit codes: 0 ok, 1 failed, 2 usage, 130 interrupted.")]
pub(crate) struct CompareArguments {
    /// Simulate link and protocols alone, with a fixed-latency drive.
    #[arg(long, help_heading = ALONE)]
    pub(crate) raw: bool,
    /// List the parts of the catalogue; with --json, all of their constants.
    #[arg(long)]
    pub(crate) list_parts: bool,
    #[command(flatten)]
    pub(crate) choice: Choice,
    /// Folder of additional parts (ssd/NAME.toml, bridges/NAME.toml, …); they replace built-in parts of the same name.
    #[arg(long, help_heading = PARTS, value_name = "DIR")]
    pub(crate) parts: Option<PathBuf>,
    /// Queue depths, at most 256 (62 with --raw): 32, or 1,4,16, or 1..32 (1, 2, 4, …). A driver sends as many commands at
    /// once as it and the drive support; BOT sends one.
    #[arg(long, help_heading = MEASURED, value_name = "N,…", value_delimiter = ',', allow_negative_numbers = true, value_parser = quantity::depths)]
    pub(crate) depth: Option<Vec<Depths>>,
    /// Length of random requests, a multiple of 512 bytes. Default: those of the workload, 4K with --raw.
    #[arg(long, help_heading = MEASURED, value_name = "SIZE", value_parser = quantity::size)]
    pub(crate) block: Option<ByteCount>,
    /// Write. Default: read.
    #[arg(long, help_heading = MEASURED)]
    pub(crate) write: bool,
    /// Link: SuperSpeed (gen1, gen2, gen2x2) or USB 2.0 (high, full).
    #[arg(long, help_heading = PARTS, visible_alias = "speed", value_enum)]
    pub(crate) link: Option<LinkArgument>,
    /// Host controller by name. With --raw: chipset, card or none (default: chipset; none at high and full speed).
    #[arg(long, help_heading = PARTS, value_name = "NAME")]
    pub(crate) controller: Option<String>,
    /// Number of drives, each at the full queue depth.
    #[arg(long, help_heading = ALONE, value_name = "N", default_value = "1", value_parser = quantity::within::<u8>(1, 15))]
    pub(crate) drives: u8,
    /// Number of hubs in series between a root port and the drives.
    #[arg(long, help_heading = ALONE, value_name = "N", default_value = "0", value_parser = quantity::within::<u8>(0, 5))]
    pub(crate) hubs: u8,
    /// Time that the drive takes for a command, in microseconds.
    #[arg(long, help_heading = ALONE, value_name = "MICROSECONDS", default_value = "60", value_parser = quantity::microseconds)]
    pub(crate) latency: u32,
    /// Number of commands that the drive serves in parallel.
    #[arg(long, help_heading = ALONE, value_name = "N", default_value = "32", value_parser = quantity::within::<u16>(1, u16::MAX))]
    pub(crate) at_once: u16,
    /// Commands of each run with --raw (default: 2000 over all drives), of a captured run (100), or of a run drawn in a
    /// report (3000). For measured runs see --seconds.
    #[arg(long, help_heading = MEASURED, value_name = "N", value_parser = quantity::within::<u32>(1, 10_000_000))]
    pub(crate) commands: Option<u32>,
    /// Virtual time to measure, 0.001 to 3600. Default: until the figure is accurate enough.
    #[arg(long, help_heading = MEASURED, value_name = "SECONDS", value_parser = quantity::span)]
    pub(crate) seconds: Option<units::Duration>,
    /// Random seed for LBAs.
    #[arg(long, help_heading = MEASURED, default_value = "1")]
    pub(crate) seed: u64,
    /// Divide the latency of a command into stages: driver, controller, link, bridge, drive, queue.
    #[arg(long, help_heading = SHOWN)]
    pub(crate) explain: bool,
    /// Show the load of each component: lanes and buses, TDs and interrupts of the controller, media; with parts also core,
    /// bridge, SATA cable and drive. --json always contains it.
    #[arg(long, help_heading = SHOWN)]
    pub(crate) components: bool,
    /// Print every packet, and every frame of the SATA cable, until N commands of each run completed.
    #[arg(long, help_heading = SHOWN, value_name = "N", value_parser = quantity::within::<u32>(1, u32::MAX))]
    pub(crate) trace: Option<u32>,
    /// Draw two overlapping requests on the four pipes, in driver, bridge and drive; into an SVG file or the terminal.
    #[arg(long, help_heading = SHOWN, value_name = "FILE.svg", num_args = 0..=1)]
    pub(crate) timeline: Option<Option<PathBuf>>,
    /// Draw the order in which a disk serves four reads on one track; into an SVG file or the terminal.
    #[arg(long, help_heading = SHOWN, value_name = "FILE.svg", num_args = 0..=1)]
    pub(crate) platter: Option<Option<PathBuf>>,
    /// Write charts into one self-contained HTML file: confidence intervals from five seeds, where the time goes, and
    /// --commands commands of each variant on the four pipes.
    #[arg(long, help_heading = SHOWN, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Simulate the jobs of a measurement, a record of `uaskit bench --json`, and show both side by side.
    #[arg(long, help_heading = SHOWN, value_name = "RECORD.json")]
    pub(crate) against: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) grid: GridArguments,
    /// Let links at root ports enter U1 and U2 as with Linux, and show for how long. With --raw: measure cost and savings
    /// with single 4 KiB reads between pauses.
    #[arg(long, help_heading = MEASURED)]
    pub(crate) power_states: bool,
    /// Write a pcapng file of all runs; replaces an older capture.
    #[arg(long, help_heading = SHOWN, value_name = "FILE")]
    pub(crate) capture: Option<PathBuf>,
    /// Contents of the capture.
    #[arg(long, help_heading = SHOWN, value_enum, default_value_t = CaptureKind::Transfers)]
    pub(crate) capture_as: CaptureKind,
    /// Bytes of each transfer that the capture keeps; packets are never cut. Default: 0, all bytes.
    #[arg(long, help_heading = SHOWN, value_name = "SIZE", value_parser = quantity::snap)]
    pub(crate) snap: Option<u32>,
    #[command(flatten, next_help_heading = KEPT)]
    pub(crate) keeping: SaveArguments,
    /// Simulations that run in parallel, at most four per processor. Default: one per processor. Results do not depend on
    /// it.
    #[arg(long, help_heading = MEASURED, value_name = "N", allow_negative_numbers = true, value_parser = quantity::threads)]
    pub(crate) threads: Option<u16>,
    /// Number of findings to show, the most important first, or `all`.
    #[arg(long, help_heading = SHOWN, value_name = "N|all", default_value = "5", value_parser = finding_count)]
    pub(crate) findings: usize,
    /// Show no progress.
    #[arg(long, short, help_heading = SHOWN)]
    pub(crate) quiet: bool,
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
    /// In the chipset: four PCIe lanes, streams.
    Chipset,
    /// A card with one PCIe lane: at most 410 MB/s, and slower register accesses.
    Card,
    /// None, and no driver: the limit of link and protocols.
    None,
}

/// Contents of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CaptureKind {
    /// Transfers in the format of Linux's usbmon, link type 220.
    Transfers,
    /// Packets, as transactions of USB 2.0, link type 288.
    Packets,
}
