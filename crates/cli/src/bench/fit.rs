//! Checks that the jobs fit: memory for their requests, whole blocks, room on the drive.
//!
//! Every job is checked before anything runs and before the user confirms, so that no run ends in a table without
//! figures. Left out: the size of a drive at a USB port, which is known only once our driver has it. Invariant: an
//! error is about the arguments, and names what to change. Jobs of a named workload whose lengths are not multiples
//! of the drive's blocks are left out, with a note.

use crate::args::BenchArguments;
use crate::failure::Failure;
use crate::sanitize::shown;
use bench::backend::DriveInfo;
use study::plural::listed;
use units::{BlockCount, BlockSize, ByteCount, Capacity};
use workload::{Accesses, Fill, Job, JobError, Workload, short_bytes};

/// Memory for all requests of a job at once.
const BUFFER_BYTES_MAX: u64 = 1 << 30;

/// Checks what is known before the drive is opened.
pub(super) fn check_asked(arguments: &BenchArguments, workloads: &[Workload]) -> Result<(), Failure> {
    if let Some(size) = arguments.size {
        // Blocks of the virtual drive; those of another drive are unknown here, and not shorter.
        check_size(size.0, arguments.block_size.into())?;
    }
    for job in workloads.iter().flat_map(|workload| &workload.jobs) {
        let bytes = u64::from(job.depth) * u64::from(job.bytes_max());
        if bytes > BUFFER_BYTES_MAX {
            let (each, all) = (ByteCount(job.bytes_max().into()), ByteCount(bytes));
            let most = ByteCount(BUFFER_BYTES_MAX);
            return Err(Failure::usage(format!(
                "{}, depth {}: too much memory",
                named(arguments, job),
                job.depth
            ))
            .because(format!("{} requests of {each} need {all} of buffers (maximum {most})", job.depth))
            .try_this("Choose shorter requests or a lower queue depth."));
        }
        if arguments.verify && job.fill == Some(Fill::Zero) {
            return Err(Failure::usage(format!("{}: this job writes zeros", named(arguments, job)))
                .because("--verify writes a stamp into every block")
                .try_this("Leave --verify out, or choose a job with random data."));
        }
    }
    Ok(())
}

/// Checks the jobs against the drive. A drive of unknown size has room, and blocks of at least 512 bytes.
pub(super) fn check(
    arguments: &BenchArguments,
    workloads: &mut [Workload],
    identity: &DriveInfo,
) -> Result<(), Failure> {
    let block_size = BlockSize::from_bytes(identity.block_bytes).unwrap_or(BlockSize::B512);
    if arguments.has_named() {
        leave_out(workloads, block_size)?;
    }
    let bytes = if identity.bytes == 0 { u64::MAX } else { identity.bytes };
    if let Some(size) = arguments.size {
        check_size(size.0, block_size)?;
    }
    let capacity = BlockCount(bytes / u64::from(block_size.bytes()));
    let says_where = arguments.size.is_some() || file(arguments).is_some();
    for job in workloads.iter().flat_map(|workload| &workload.jobs) {
        let end = job.offset_bytes.saturating_add(job.span_bytes.unwrap_or(0));
        if says_where && end > bytes {
            return Err(Failure::usage(format!(
                "{}: the job ends at {}, beyond the end of the drive",
                named(arguments, job),
                Capacity(end)
            ))
            .because(format!("the drive has {}", Capacity(bytes)))
            .try_this("Lower the size or the offset."));
        }
        if let Err(error) = Accesses::new(job, block_size, capacity, 0) {
            return Err(Failure::usage(named(arguments, job))
                .because(error)
                .try_this(remedy(error, block_size)));
        }
    }
    Ok(())
}

/// Removes jobs whose lengths are not multiples of the block size.
fn leave_out(workloads: &mut [Workload], block_size: BlockSize) -> Result<(), Failure> {
    let block_bytes = block_size.bytes();
    let is_whole = |job: &Job| job.specs.iter().all(|share| share.bytes.is_multiple_of(block_bytes));
    for workload in &mut *workloads {
        let (whole, left_out): (Vec<Job>, Vec<Job>) = workload.jobs.drain(..).partition(is_whole);
        workload.jobs = whole;
        let mut lengths: Vec<String> = Vec::new();
        for share in left_out.iter().flat_map(|job| &job.specs) {
            let length = short_bytes(share.bytes.into());
            if !lengths.contains(&length) {
                lengths.push(length);
            }
        }
        if !lengths.is_empty() {
            let (name, lengths) = (&workload.name, listed(&lengths));
            let note = format!(
                "{name}: jobs of {lengths} were skipped, since the drive has blocks of {block_bytes} bytes"
            );
            workload.notes.push(note);
        }
    }
    if workloads.iter().any(|workload| !workload.jobs.is_empty()) {
        return Ok(());
    }
    let notes = workloads.iter().flat_map(|workload| &workload.notes);
    let failure = notes.fold(Failure::usage("no job of the workload fits the drive"), Failure::because);
    Err(failure.try_this(format!("Choose lengths that are multiples of {block_bytes}.")))
}

fn check_size(bytes: u64, block_size: BlockSize) -> Result<(), Failure> {
    let block_bytes = block_size.bytes();
    if bytes > 0 && bytes.is_multiple_of(block_bytes.into()) {
        return Ok(());
    }
    Err(Failure::usage(format!("--size {bytes} is not a whole number of blocks"))
        .because(format!("blocks have {block_bytes} bytes"))
        .try_this(format!("Choose a multiple of {block_bytes}.")))
}

fn remedy(error: JobError, block_size: BlockSize) -> String {
    match error {
        JobError::Length { .. } => {
            format!("Choose lengths, alignments and offsets that are multiples of {}.", block_size.bytes())
        }
        JobError::NoRoom { .. } => "Choose shorter requests or a larger --size.".to_owned(),
        JobError::Shares => "Make the percentages of the access specifications add up to 100.".to_owned(),
    }
}

/// The job, with the file that it is from.
fn named(arguments: &BenchArguments, job: &Job) -> String {
    file(arguments).map_or_else(|| job.label.clone(), |file| format!("{}: {}", shown(file), job.label))
}

fn file(arguments: &BenchArguments) -> Option<&std::path::Path> {
    arguments.fio.as_deref().or(arguments.icf.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_whose_blocks_are_longer_than_all_that_is_asked_is_refused() {
        let of = |bytes| Job::of(workload::AccessSpec::all(bytes, 100, 0), 1);
        let workload = |name: &str, jobs| Workload { name: name.into(), jobs, notes: Vec::new() };
        let mut workloads =
            [workload("short", vec![of(512), of(6144), of(512)]), workload("long", vec![of(8192), of(1024)])];
        leave_out(&mut workloads, BlockSize::B512).expect("all fit");
        assert!(workloads.iter().all(|workload| workload.notes.is_empty()));
        leave_out(&mut workloads, BlockSize::B4096).expect("one fits");
        assert_eq!(workloads.each_ref().map(|workload| workload.jobs.len()), [0, 1]);
        assert_eq!(
            workloads[0].notes,
            ["short: jobs of 512 and 6K were skipped, since the drive has blocks of 4096 bytes"]
        );
        let refused = leave_out(&mut workloads[..1], BlockSize::B4096).expect_err("none is left").to_string();
        assert!(
            refused.contains("no job of the workload fits") && refused.contains("multiples of 4096"),
            "{refused}"
        );
    }
}
