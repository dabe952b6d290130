//! The arguments of `uaskit bench`.
//!
//! What can be checked on one argument alone, or on two that exclude each other, is checked here; what depends on the
//! drive is checked where it is known.

use super::capture::CaptureArguments;
use super::quantity::{self, Depths};
use super::save::SaveArguments;
use super::serve::{BlockSizeArgument, SpeedArgument};
use clap::{ArgGroup, Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use units::ByteCount;
use workload::NAMES;

/// Measure a drive: on BOT, Turbo and UAS with our own drivers, on whatever driver the kernel has bound, or in memory.
///
/// TARGET is a USB port (2-1.4, see `uaskit list`), a USB id (174c:55aa), a block device (sdb, /dev/sdb) or a file. Runs are repeated until the figures are
/// steady; several transports take turns on the same hardware and are held against the first. Nothing is written unless
/// --write names the device. Ctrl-C ends the run, prints what was measured, and gives the driver back.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("source").args(["workloads", "icf", "fio", "rw"]),
    after_help = after_help(),
)]
pub(crate) struct BenchArguments {
    /// A USB port or id, a block device, or a file.
    #[arg(conflicts_with = "is_virtual")]
    pub(crate) target: Option<OsString>,
    /// Which logical unit of the drive at a port: 0 unless given. Over BOT and Turbo there are units up to 15.
    #[arg(long, value_name = "N", allow_negative_numbers = true, conflicts_with = "is_virtual")]
    pub(crate) lun: Option<u8>,
    /// Measure our own initiator and drive in memory, without any hardware.
    #[arg(long = "virtual")]
    pub(crate) is_virtual: bool,
    /// Transports, separated by commas and measured alternately. Default: all at a USB port, uas for a virtual drive.
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',')]
    pub(crate) transport: Vec<RouteArgument>,
    /// A workload by its name, below; may be given again. Its jobs of less than a block of the drive, or of no whole number of them, are left out.
    #[arg(long = "workload", short, value_name = "NAME", value_parser = names())]
    pub(crate) workloads: Vec<String>,
    /// The workload of a configuration file of IOMeter.
    #[arg(long, value_name = "FILE")]
    pub(crate) icf: Option<PathBuf>,
    /// The workload of a job file of fio: past the page cache, as with `direct=1`; each run for its time, or with `size=` and without
    /// `time_based` until so much was moved.
    #[arg(long, value_name = "FILE")]
    pub(crate) fio: Option<PathBuf>,
    /// What is done, and where.
    #[arg(long, value_enum)]
    pub(crate) rw: Option<PatternArgument>,
    /// Bytes of each request, 16 MiB at most.
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = quantity::size, allow_negative_numbers = true, requires = "rw", conflicts_with_all = OTHER_SOURCES)]
    pub(crate) bs: ByteCount,
    /// Queue depths, such as 32, 1,4,16 or 1..32 (a range doubles), 256 at most; instead of those of a named workload. 1 of --rw unless
    /// given.
    #[arg(long, value_delimiter = ',', allow_negative_numbers = true, value_parser = quantity::depths)]
    pub(crate) depth: Vec<Depths>,
    /// Percent of reads, of rw and randrw; 50 unless given.
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true, value_parser = clap::value_parser!(u8).range(0..=100), requires = "rw", conflicts_with_all = OTHER_SOURCES)]
    pub(crate) mix: Option<u8>,
    /// Align requests to multiples of this. Default: the request length.
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, value_parser = quantity::size, requires = "rw", conflicts_with_all = OTHER_SOURCES)]
    pub(crate) align: Option<ByteCount>,
    /// Use this much from the start of the drive, not all of it or what the workload or --verify says; the size of a virtual drive,
    /// 256 MiB unless given.
    #[arg(long, value_name = "SIZE", value_parser = quantity::size, allow_negative_numbers = true)]
    pub(crate) size: Option<ByteCount>,
    /// Length of each run; a fraction is fine. 3 unless given, here or in a job file, or the job file says how much is moved.
    #[arg(long, allow_negative_numbers = true, value_name = "SECONDS", value_parser = quantity::some_seconds)]
    pub(crate) seconds: Option<Duration>,
    /// What is dropped before each run; a quarter of it, a second at most, unless given, and nothing if the job file says how much is
    /// moved.
    #[arg(long, value_name = "SECONDS", value_parser = quantity::seconds, allow_negative_numbers = true)]
    pub(crate) warm_up: Option<Duration>,
    /// Runs of each job at most; they end earlier when the figures are steady, but not before three.
    #[arg(long, default_value_t = 6, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// Steady is a rate whose 95 % interval is no wider than this to each side.
    #[arg(long, value_name = "PERCENT", default_value_t = 3.0, value_parser = quantity::percent, allow_negative_numbers = true)]
    pub(crate) steady: f64,
    /// Write incompressible bytes. Default, unless the workload says otherwise.
    #[arg(long, conflicts_with = "zero_data")]
    pub(crate) random_data: bool,
    /// Write zeroes.
    #[arg(long)]
    pub(crate) zero_data: bool,
    /// Go through the page cache of the system.
    #[arg(long, conflicts_with = "is_virtual")]
    pub(crate) cached: bool,
    /// Overwrite this device, which must be TARGET, or the block device of its unit. Of a unit that is not 0 the port alone
    /// is not enough: 2-1.4:lun1. What is on it is lost.
    #[arg(long, value_name = "DEVICE", conflicts_with = "is_virtual")]
    pub(crate) write: Option<OsString>,
    /// Do not ask before writing.
    #[arg(long)]
    pub(crate) yes: bool,
    /// Stamp every block that is written, and read it back. Only the first 256 MiB of the drive are used then, or of what a job file
    /// leaves open, unless --size says how much.
    #[arg(long, conflicts_with_all = ["random_data", "zero_data"])]
    pub(crate) verify: bool,
    /// Speed of the virtual drive's link.
    #[arg(long, value_enum, default_value_t = SpeedArgument::Super, requires = "is_virtual", conflicts_with = "target")]
    pub(crate) speed: SpeedArgument,
    /// Bytes of a logical block of the virtual drive: 512 or 4096.
    #[arg(long, value_name = "BYTES", value_enum, default_value_t = BlockSizeArgument::B512, requires = "is_virtual", conflicts_with = "target")]
    pub(crate) block_size: BlockSizeArgument,
    /// Where places and payload come from; the same seed repeats them.
    #[arg(long, default_value_t = 1, allow_negative_numbers = true)]
    pub(crate) seed: u64,
    /// Print one JSON object.
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// Print comma-separated values, one row for each job and transport.
    #[arg(long)]
    pub(crate) csv: bool,
    /// Write all of it as charts into one HTML file that needs nothing but a browser.
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Show no progress.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) capture: CaptureArguments,
    #[command(flatten)]
    pub(crate) keeping: SaveArguments,
    /// Look at another machine than this one when it is decided whether a device may be written, and write nothing: for tests.
    #[arg(long, value_name = "DIRECTORY", hide = true)]
    pub(crate) machine: Option<PathBuf>,
}

/// What a workload of plain flags cannot go with: its own way would say the same otherwise.
const OTHER_SOURCES: [&str; 3] = ["workloads", "icf", "fio"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RouteArgument {
    /// Bulk-Only, one command at a time.
    Bot,
    /// Bulk-Only with neighbouring requests packed into large transfers.
    Turbo,
    /// USB Attached SCSI.
    #[value(alias = "uasp")]
    Uas,
    /// All three, alternately.
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PatternArgument {
    /// Sequential reads.
    Read,
    /// Sequential writes.
    Write,
    /// Sequential reads and writes, one after another from one position.
    Rw,
    /// Random reads.
    Randread,
    /// Random writes.
    Randwrite,
    /// Random reads and writes.
    Randrw,
}

impl BenchArguments {
    /// Whether workloads are run that have a name, the usual one if none is given.
    pub(crate) const fn has_named(&self) -> bool {
        self.icf.is_none() && self.fio.is_none() && self.rw.is_none()
    }
}

impl PatternArgument {
    /// Whether it both reads and writes.
    pub(crate) const fn is_mixed(self) -> bool {
        matches!(self, Self::Rw | Self::Randrw)
    }

    /// Percent of reads, and of random places.
    pub(crate) const fn percents(self, mix: u8) -> (u8, u8) {
        match self {
            Self::Read => (100, 0),
            Self::Write => (0, 0),
            Self::Rw => (mix, 0),
            Self::Randread => (100, 100),
            Self::Randwrite => (0, 100),
            Self::Randrw => (mix, 100),
        }
    }
}

fn names() -> Vec<&'static str> {
    NAMES.iter().map(|(name, _)| *name).collect()
}

fn after_help() -> String {
    let workloads: String = NAMES.iter().map(|(name, what)| format!("  {name:18}{what}\n")).collect();
    format!(
        "Workloads (iometer-4k-read unless given):
{workloads}
Examples:
  uaskit bench --virtual --rw randread --bs 4k --depth 32
  sudo uaskit bench /dev/sdb --workload crystaldiskmark --write=/dev/sdb
  sudo uaskit bench 2-1.4 --transport all --workload iometer-4k-read
  sudo uaskit bench 2-1.4 --rw randwrite --size 1G --verify --write=2-1.4
  sudo uaskit bench 2-1.4 --lun 1 --workload dd --write=2-1.4:lun1
  uaskit bench file.img --fio job.fio --json
  sudo uaskit bench 2-1.4 --transport uas --capture drive.pcapng --snap 64
  sudo uaskit bench 2-1.4 --save=runs.sqlite --label 'firmware 1.2'
  uaskit bench --virtual --transport all --report page.html

Figures are those of runs after their warm-up, from the end of a request to that of another. Intervals are 95 %, Student's t on the logarithms of the rates of \
repeated runs; ratios are taken round by round against the first transport. A run that Ctrl-C cuts off counts only \
where there is no whole one, and not at all within its warm-up. Turbo has a request that goes on where others ended wait for a neighbour, \
100 us at most, as long as fewer are there than the depth says. CPU/IO is processor time of this program \
alone; J/GB that of the processor packages, where RAPL can be read.

Exit codes: 0 ok, 1 failed (also: requests failed, wrong blocks, ended early), 2 usage, 3 refused for safety."
    )
}
