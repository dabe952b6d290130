//! The arguments of `uaskit bench`.
//!
//! Checks of one argument alone are here, those of several options in [`super::together`], and those that depend on the drive
//! where it is known.

use super::capture::CaptureArguments;
use super::quantity::{self, Depths};
use super::save::SaveArguments;
use super::serve::{BlockSizeArgument, SpeedArgument};
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use units::ByteCount;
use workload::NAMES;

/// Measure a drive over BOT, Turbo and UAS, through the kernel's driver, or in memory.
///
/// TARGET is a USB port (2-1.4, see `uaskit list`), a USB id (174c:55aa), a block device (sdb, /dev/sdb) or a file. A USB
/// drive named by port or id is measured with uaskit's own drivers: they detach the kernel's driver and reattach it on exit;
/// a block device or file with the kernel's driver. Jobs are repeated until their figures are steady. Several transports
/// alternate on the same hardware and are compared with the first one. Nothing is written without --write=TARGET. Ctrl-C
/// ends the run and prints what was measured.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub(crate) struct BenchArguments {
    /// USB port or id, block device, or file.
    pub(crate) target: Option<OsString>,
    /// Logical unit of a USB drive, at most 15 over BOT and Turbo. Default: 0.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = quantity::within::<u8>(0, 255))]
    pub(crate) lun: Option<u8>,
    /// Measure uaskit's own host and drive in memory, without hardware.
    #[arg(long = "virtual")]
    pub(crate) is_virtual: bool,
    /// Transports, separated by commas; they alternate. Default: all for a USB drive, uas with --virtual.
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',')]
    pub(crate) transport: Vec<RouteArgument>,
    /// Workload by name (see below); repeatable. Jobs whose requests are not whole blocks of the drive are skipped.
    #[arg(long = "workload", short, value_name = "NAME", value_parser = names())]
    pub(crate) workloads: Vec<String>,
    /// Run the access specifications of an IOMeter configuration file.
    #[arg(long, value_name = "FILE")]
    pub(crate) icf: Option<PathBuf>,
    /// Run the jobs of a fio job file, as with `direct=1`. A job with `size=` and without `time_based` ends when that
    /// many bytes have moved.
    #[arg(long, value_name = "FILE")]
    pub(crate) fio: Option<PathBuf>,
    /// Access pattern.
    #[arg(long, value_enum)]
    pub(crate) rw: Option<PatternArgument>,
    /// Length of each request, at most 16M.
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = quantity::size, allow_negative_numbers = true)]
    pub(crate) bs: ByteCount,
    /// Queue depths, at most 256: 32, or 1,4,16, or 1..32 (1, 2, 4, …). Default: those of the workload, 1 with --rw.
    #[arg(long, value_delimiter = ',', allow_negative_numbers = true, value_parser = quantity::depths)]
    pub(crate) depth: Vec<Depths>,
    /// Percentage of reads with --rw rw or randrw. Default: 50.
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true, value_parser = quantity::within::<u8>(0, 100))]
    pub(crate) mix: Option<u8>,
    /// Align requests to multiples of this. Default: the request length.
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, value_parser = quantity::size)]
    pub(crate) align: Option<ByteCount>,
    /// Use only the first SIZE bytes of the drive (default: all, or what the workload or --verify says). With --virtual, the
    /// size of the drive (default: 256M).
    #[arg(long, value_name = "SIZE", value_parser = quantity::size, allow_negative_numbers = true)]
    pub(crate) size: Option<ByteCount>,
    /// Length of each run, as in 5, 0.5 or 2min. Default: that of the job file, else 3.
    #[arg(long, allow_negative_numbers = true, value_name = "SECONDS", value_parser = quantity::some_seconds)]
    pub(crate) seconds: Option<Duration>,
    /// Time before each run that is not measured. Default: a quarter of the run, at most 1; 0 for fio jobs that end by size.
    #[arg(long, value_name = "SECONDS", value_parser = quantity::seconds, allow_negative_numbers = true)]
    pub(crate) warm_up: Option<Duration>,
    /// Maximum number of runs of each job. A job ends after three or more runs once it is steady.
    #[arg(long, default_value_t = 6, allow_negative_numbers = true, value_parser = quantity::within::<u32>(1, 1000))]
    pub(crate) rounds: u32,
    /// Call a rate steady when its 95 % confidence interval is within ±PERCENT.
    #[arg(long, value_name = "PERCENT", default_value_t = 3.0, value_parser = quantity::percent, allow_negative_numbers = true)]
    pub(crate) steady: f64,
    /// Write incompressible data. Default, unless the workload says otherwise.
    #[arg(long)]
    pub(crate) random_data: bool,
    /// Write zeros.
    #[arg(long)]
    pub(crate) zero_data: bool,
    /// Use the page cache. Default: direct I/O.
    #[arg(long)]
    pub(crate) cached: bool,
    /// Allow writes to DEVICE, which must be TARGET or its block device; its data are lost. Name a logical unit other than 0
    /// as in 2-1.4:lun1.
    #[arg(long, value_name = "DEVICE")]
    pub(crate) write: Option<OsString>,
    /// Do not ask for confirmation before writing.
    #[arg(long)]
    pub(crate) yes: bool,
    /// Write a stamp into every block, and read all blocks back to check it. Uses the first 256 MiB of the drive unless
    /// --size or a job file says otherwise.
    #[arg(long)]
    pub(crate) verify: bool,
    /// Link speed of the virtual drive.
    #[arg(long, value_enum, default_value_t = SpeedArgument::Super)]
    pub(crate) speed: SpeedArgument,
    /// Logical block size of the virtual drive, in bytes.
    #[arg(long, value_name = "BYTES", value_enum, default_value_t = BlockSizeArgument::B512)]
    pub(crate) block_size: BlockSizeArgument,
    /// Random seed for LBAs and payload.
    #[arg(long, default_value_t = 1, allow_negative_numbers = true)]
    pub(crate) seed: u64,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print CSV, one row for each job and transport.
    #[arg(long)]
    pub(crate) csv: bool,
    /// Write charts and tables into one self-contained HTML file.
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Show no progress.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) capture: CaptureArguments,
    #[command(flatten)]
    pub(crate) keeping: SaveArguments,
    /// For tests: check this machine's files in place of /, and write nothing.
    #[arg(long, value_name = "DIRECTORY", hide = true)]
    pub(crate) machine: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RouteArgument {
    /// Bulk-Only, one command at a time.
    Bot,
    /// Bulk-Only; adjacent requests are merged into large transfers.
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
    /// Sequential reads and writes, which share one position.
    Rw,
    /// Random reads.
    Randread,
    /// Random writes.
    Randwrite,
    /// Random reads and writes.
    Randrw,
}

impl BenchArguments {
    /// Whether named workloads are run; so they are by default.
    pub(crate) const fn has_named(&self) -> bool {
        self.icf.is_none() && self.fio.is_none() && self.rw.is_none()
    }
}

impl PatternArgument {
    /// Percentages of reads and of random LBAs.
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
        "Workloads (default: iometer-4k-read):
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

Rates exclude the warm-up; they count from one completion to another. Confidence intervals are 95 %: Student's t on the \
logarithms of the rates of repeated runs. Ratios are taken round by round against the first transport. A run that Ctrl-C \
interrupts counts only if its job has no complete run. Turbo holds back a sequential request for up to 100 us while fewer \
requests are outstanding than the queue depth, to merge it with the next one. CPU/IO is the processor time of this process \
alone; J/GB is the energy of the processor packages, where RAPL is readable.

Exit codes: 0 ok; 1 failed, also by failed requests or miscompares; 2 usage; 3 refused for safety; 130 interrupted."
    )
}
