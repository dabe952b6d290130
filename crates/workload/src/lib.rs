//! What is asked of a drive: jobs, each a mix of accesses at a depth.
//!
//! Sizes are bytes here, since a workload does not know the drive; [`Accesses`] turns them into blocks of one. Left
//! out: think time, bursts, rate limits; all jobs ask as fast as the drive answers.

mod access;
mod fio;
mod icf;
mod job_file;
mod named;
mod statistics;

pub use access::{Access, Accesses, JobError};
pub use fio::parse as fio;
pub use icf::parse as icf;
pub use job_file::{FILE_BYTES_MAX, JobFileError};
pub use named::{NAMES, named};
pub use statistics::Estimate;

use std::fmt;
use std::time::Duration;

/// Requests under way at once that a job may ask for.
pub const DEPTH_MAX: u16 = 256;

/// Bytes of one request at most.
pub const REQUEST_BYTES_MAX: u32 = 16 << 20;

/// Jobs in one workload.
pub const JOBS_MAX: usize = 256;

/// Kinds of access in one job.
pub const ACCESS_SPECS_MAX: usize = 100;

/// The direction of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// Blocks come from the drive.
    Read,
    /// Blocks go to the drive.
    Write,
}

/// Where accesses may begin, counted from the start of the part that a job uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Align {
    /// At multiples of their own length.
    #[default]
    Length,
    /// At any block of the drive.
    Block,
    /// At multiples of so many bytes.
    Bytes(u32),
}

/// Where accesses go on that do not go to a random place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sequence {
    /// Where the last access ended, of whatever kind, or at the first place after it where they may begin: IOMeter has one position for all.
    #[default]
    Shared,
    /// Where the last access of their kind ended, whatever their alignment is: fio has a position for reads and one for writes.
    PerKind,
}

/// What is written where the payload is of no concern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fill {
    /// Bytes that nothing can compress, and no two blocks alike.
    #[default]
    Random,
    /// Zeroes.
    Zero,
    /// One byte over and over, which compresses well and is not zero.
    Repeated,
}

/// One kind of access of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessSpec {
    /// How many of a hundred accesses are like this.
    pub percent: u8,
    /// Length of each.
    pub bytes: u32,
    /// How many of a hundred of them read; the others write.
    pub read_percent: u8,
    /// How many of a hundred of them go to a random place; the others go on where the last one ended.
    pub random_percent: u8,
    /// Where they may begin; with [`Sequence::PerKind`], those that go to a random place.
    pub align: Align,
}

/// A mix of accesses at a depth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// For people, such as `4K random read`.
    pub label: String,
    /// What is accessed; the percents are a hundred together.
    pub specs: Vec<AccessSpec>,
    /// Where those go on that do not go to a random place.
    pub sequence: Sequence,
    /// Requests under way at once.
    pub depth: u16,
    /// The length of one run, where the workload has its own.
    pub run: Option<Duration>,
    /// A run is over when as many bytes were moved as the part that is used has, and only earlier if it has a length of its own. Nothing
    /// is dropped before it unless the workload says so, and what is dropped is of those bytes.
    pub once: bool,
    /// What is dropped before it, where the workload has its own.
    pub warm_up: Option<Duration>,
    /// The first byte that is used.
    pub offset_bytes: u64,
    /// Bytes that are used from there; all there are unless given.
    pub span_bytes: Option<u64>,
    /// What is written, where the workload says so; else what the caller chose.
    pub fill: Option<Fill>,
}

/// Jobs that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its name, or the file that it is from.
    pub name: String,
    /// What runs, in order.
    pub jobs: Vec<Job>,
    /// What is not as the file has it.
    pub notes: Vec<String>,
}

impl AccessSpec {
    /// Accesses of one kind only.
    pub const fn all(bytes: u32, read_percent: u8, random_percent: u8) -> Self {
        Self { percent: 100, bytes, read_percent, random_percent, align: Align::Length }
    }
}

impl Job {
    /// A job with one share, named after it.
    pub fn of(spec: AccessSpec, depth: u16) -> Self {
        Self {
            label: spec.to_string(),
            specs: vec![spec],
            sequence: Sequence::Shared,
            depth,
            run: None,
            once: false,
            warm_up: None,
            offset_bytes: 0,
            span_bytes: None,
            fill: None,
        }
    }

    /// Whether it changes the drive.
    pub fn writes(&self) -> bool {
        self.specs.iter().any(|spec| spec.read_percent < 100)
    }

    /// Whether it looks at what is on the drive.
    pub fn reads(&self) -> bool {
        self.specs.iter().any(|spec| spec.read_percent > 0)
    }

    /// Length of its longest access.
    pub fn bytes_max(&self) -> u32 {
        self.specs.iter().map(|spec| spec.bytes).max().unwrap_or(0)
    }
}

impl Workload {
    /// Whether any of its jobs changes the drive.
    pub fn writes(&self) -> bool {
        self.jobs.iter().any(Job::writes)
    }

    /// Whether any of its jobs looks at what is on the drive.
    pub fn reads(&self) -> bool {
        self.jobs.iter().any(Job::reads)
    }

    /// Its jobs on all of the drive, with whatever data the caller has.
    #[must_use]
    pub fn on_whole_drive(mut self) -> Self {
        for job in &mut self.jobs {
            (job.offset_bytes, job.span_bytes, job.fill) = (0, None, None);
        }
        self
    }

    /// Its jobs at these depths instead of their own, each once.
    #[must_use]
    pub fn at_depths(self, depths: &[u16]) -> Self {
        let mut jobs: Vec<Job> = Vec::new();
        for job in &self.jobs {
            for &depth in depths {
                let job = Job { depth, ..job.clone() };
                if !jobs.contains(&job) {
                    jobs.push(job);
                }
            }
        }
        Self { jobs, ..self }
    }
}

impl fmt::Display for AccessSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", short_bytes(self.bytes.into()))?;
        match self.random_percent {
            0 => f.write_str(" sequential")?,
            100 => f.write_str(" random")?,
            percent => write!(f, " {percent} % random")?,
        }
        match self.read_percent {
            0 => f.write_str(" write"),
            100 => f.write_str(" read"),
            percent => write!(f, ", {percent} % read"),
        }
    }
}

/// A length as people write it: `512`, `4K`, `1M`.
pub fn short_bytes(bytes: u64) -> String {
    let units = [(40, "T"), (30, "G"), (20, "M"), (10, "K")];
    let exact = units.into_iter().find(|(shift, _)| bytes >> shift > 0 && bytes.trailing_zeros() >= *shift);
    exact.map_or_else(|| bytes.to_string(), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}
