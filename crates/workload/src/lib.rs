//! Workloads: jobs, each a mix of accesses at a queue depth.
//!
//! Sizes are bytes here, since a workload does not know the drive; [`Accesses`] converts them to
//! blocks. Left out: think time, bursts, rate limits; all jobs run as fast as the drive.

mod access;
mod fio;
mod icf;
mod job;
mod job_file;
mod named;
pub mod stamp;
mod statistics;

pub use access::{Access, Accesses, JobError};
pub use fio::parse as fio;
pub use icf::parse as icf;
pub use job::{
    ACCESS_SPECS_MAX, AccessKind, AccessSpec, Align, DEPTH_MAX, Fill, JOBS_MAX, Job, REQUEST_BYTES_MAX,
    Sequence, Workload, short_bytes,
};
pub use job_file::{FILE_BYTES_MAX, JobFileError};
pub use named::{NAMES, named};
pub use statistics::Estimate;
