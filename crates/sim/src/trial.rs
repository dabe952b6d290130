//! One measurement that is written as `setup/variant workload depth`, made: from names to a figure.
//!
//! The data set is that of IOMeter's runs in the articles, 10 GB of data that repeat. Left out: what draws power, and the
//! order on a platter.
//!
//! Always true: what is measured depends on parts, workload, depth and seed alone.

use crate::assembly::{Assembled, AssemblyError, BLOCK_SIZE};
use crate::drive::solid::Contents;
use crate::measure::{MeasureError, Measured, Stretch, measure};
use crate::parts::Catalogue;
use crate::published::{Access, Facts, Measurement, Outcome, Way, Workload};
use crate::setups::Assembly;
use std::fmt;
use workload::{Job, Share};

/// What is asked besides the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Where random places come from.
    pub seed: u64,
    /// How long.
    pub stretch: Stretch,
    /// What is on the drive, and what is written.
    pub contents: Contents,
}

/// What came of a run, with its books.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// The figures.
    pub measured: Measured,
    /// Events that happened.
    pub events: u64,
    /// The digest of all that happened.
    pub digest: u64,
}

/// Why a measurement cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrialError {
    /// There is no such variant.
    Unknown(String),
    /// The parts are no disk.
    Assembly(AssemblyError),
    /// The disk came to nothing.
    Measure(MeasureError),
    /// Worlds do not make this kind of run.
    Kind,
}

/// Bytes of the data set (P018).
pub const DATA_SET_BYTES: u64 = 10_000_000_000;

impl Terms {
    /// Those of the published runs. Data that repeat leave a seventh when they are compressed: 4 KiB of one pattern become
    /// little more than a unit of the map, and the rest is what a drive keeps beside it. Chosen, not measured.
    pub const USUAL: Self = Self {
        seed: 1,
        stretch: Stretch::USUAL,
        contents: Contents { compressed_per_mille: 140, worn_sectors: 0 },
    };
}

/// Runs a job on parts.
///
/// # Errors
/// See [`TrialError`].
pub fn run(
    assembly: &Assembly,
    catalogue: &Catalogue,
    job: &Job,
    terms: &Terms,
) -> Result<Trial, TrialError> {
    let disk = Assembled::power_on(assembly, catalogue, terms.contents);
    let mut disk = disk.map_err(TrialError::Assembly)?;
    let size = (BLOCK_SIZE, disk.capacity);
    let measured = measure(&mut disk, job, size, &terms.stretch, terms.seed).map_err(TrialError::Measure)?;
    let (_, events, digest) = disk.books();
    Ok(Trial { measured, events, digest })
}

/// Makes a measurement of a published row.
///
/// # Errors
/// See [`TrialError`].
pub fn outcome(facts: Facts<'_>, measurement: &Measurement, terms: &Terms) -> Result<Outcome, TrialError> {
    let Measurement { setup, variant, workload, depth } = measurement;
    let of =
        facts.variant(setup, variant).ok_or_else(|| TrialError::Unknown(format!("{setup}/{variant}")))?;
    let job = job(workload, *depth).ok_or(TrialError::Kind)?;
    let Trial { measured, .. } = run(&of.assembly, facts.catalogue, &job, terms)?;
    Ok(Outcome {
        bytes_per_second: measured.megabytes_per_second() * 1e6,
        requests_per_second: measured.iops(),
        latency_ns: measured.mean.as_ps() as f64 / 1e3,
        ..Outcome::default()
    })
}

/// What a program asks. `None` if it is no loop of requests.
pub fn job(workload: &Workload, depth: u16) -> Option<Job> {
    let share = match *workload {
        Workload::Blocks { bytes, access, way } => {
            let reads = if way == Way::Read { 100 } else { 0 };
            let random = if access == Access::Random { 100 } else { 0 };
            Share::all(bytes, reads, random)
        }
        Workload::Workstation => Share::all(8 << 10, 80, 80),
        Workload::Platter => return None,
    };
    Some(Job { span_bytes: Some(DATA_SET_BYTES), ..Job::of(share, depth) })
}

impl fmt::Display for TrialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "there is no setup `{name}`"),
            Self::Assembly(error) => error.fmt(f),
            Self::Measure(error) => error.fmt(f),
            Self::Kind => f.write_str("worlds of parts do not make this kind of run yet"),
        }
    }
}

impl std::error::Error for TrialError {}
