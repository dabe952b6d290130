//! Jobs and workloads: what is asked of a drive.
//!
//! Left out: the accesses that a job makes ([`crate::Accesses`]), and files. Always true: limits hold for jobs of every source.

use std::fmt;
use std::time::Duration;

/// Maximum queue depth of a job.
pub const DEPTH_MAX: u16 = 256;

/// Maximum bytes of one request.
pub const REQUEST_BYTES_MAX: u32 = 16 << 20;

/// Maximum jobs of a workload.
pub const JOBS_MAX: usize = 256;

/// Maximum access specifications of a job.
pub const ACCESS_SPECS_MAX: usize = 100;

/// The direction of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// Reads from the drive.
    Read,
    /// Writes to the drive.
    Write,
}

/// Alignment of accesses, relative to the start of the part that a job uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Align {
    /// Multiples of the access length.
    #[default]
    Length,
    /// Any block.
    Block,
    /// Multiples of this many bytes.
    Bytes(u32),
}

/// Where sequential accesses continue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sequence {
    /// At the end of the last access of either kind, aligned up: IOMeter keeps one position.
    #[default]
    Shared,
    /// At the end of the last access of the same kind, unaligned: fio keeps a position for reads
    /// and one for writes.
    PerKind,
}

/// Payload of writes that are not verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fill {
    /// Incompressible, all blocks different.
    #[default]
    Random,
    /// Zeroes.
    Zero,
    /// One non-zero byte repeated, which compresses well.
    Repeated,
}

/// An access specification: one kind of access of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessSpec {
    /// Percentage of the accesses.
    pub percent: u8,
    /// Length in bytes.
    pub bytes: u32,
    /// Percentage of reads; the others write.
    pub read_percent: u8,
    /// Percentage at random places; the others are sequential.
    pub random_percent: u8,
    /// Alignment; with [`Sequence::PerKind`] of the random ones only.
    pub align: Align,
}

/// A mix of accesses at a queue depth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// A name for people, such as `4K random read`.
    pub label: String,
    /// The access specifications; their percentages add up to 100.
    pub specs: Vec<AccessSpec>,
    /// Where sequential accesses continue.
    pub sequence: Sequence,
    /// Queue depth.
    pub depth: u16,
    /// Run time, if the workload sets one.
    pub run: Option<Duration>,
    /// Ends the run once as many bytes were moved as the used part has, or after the run time if
    /// that is set and shorter. There is no warm-up unless the workload sets one, and it counts
    /// towards the bytes.
    pub once: bool,
    /// Warm-up, if the workload sets one.
    pub warm_up: Option<Duration>,
    /// First byte of the used part of the drive.
    pub offset_bytes: u64,
    /// Length of the used part; the rest of the drive if absent.
    pub span_bytes: Option<u64>,
    /// Payload, if the workload sets one; otherwise the caller's choice.
    pub fill: Option<Fill>,
}

/// A named list of jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its name, or the name of its file.
    pub name: String,
    /// The jobs, in order.
    pub jobs: Vec<Job>,
    /// Deviations from the file.
    pub notes: Vec<String>,
}

impl AccessSpec {
    /// Accesses of one kind only.
    pub const fn all(bytes: u32, read_percent: u8, random_percent: u8) -> Self {
        Self { percent: 100, bytes, read_percent, random_percent, align: Align::Length }
    }
}

impl Job {
    /// Creates a job with one access specification, named after it.
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

    /// Whether it writes to the drive.
    pub fn writes(&self) -> bool {
        self.specs.iter().any(|spec| spec.read_percent < 100)
    }

    /// Whether it reads from the drive.
    pub fn reads(&self) -> bool {
        self.specs.iter().any(|spec| spec.read_percent > 0)
    }

    /// Length of the longest access.
    pub fn bytes_max(&self) -> u32 {
        self.specs.iter().map(|spec| spec.bytes).max().unwrap_or(0)
    }
}

impl Workload {
    /// Whether any job writes to the drive.
    pub fn writes(&self) -> bool {
        self.jobs.iter().any(Job::writes)
    }

    /// Whether any job reads from the drive.
    pub fn reads(&self) -> bool {
        self.jobs.iter().any(Job::reads)
    }

    /// Returns the jobs on the whole drive, with the caller's payload.
    #[must_use]
    pub fn on_whole_drive(mut self) -> Self {
        for job in &mut self.jobs {
            (job.offset_bytes, job.span_bytes, job.fill) = (0, None, None);
        }
        self
    }

    /// Replaces the depths of the jobs, and removes duplicates.
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

/// Formats a length: `512`, `4K`, `1M`.
pub fn short_bytes(bytes: u64) -> String {
    let units = [(40, "T"), (30, "G"), (20, "M"), (10, "K")];
    let exact = units.into_iter().find(|(shift, _)| bytes >> shift > 0 && bytes.trailing_zeros() >= *shift);
    exact.map_or_else(|| bytes.to_string(), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}
