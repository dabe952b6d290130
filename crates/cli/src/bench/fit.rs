//! Whether what is asked for can be: memory for it, whole blocks, a place on the drive.
//!
//! Asked before anything runs and before an owner is asked, of every job, so that nobody waits for a table without figures. Left out: what only a drive
//! at a port knows, which is asked for its size when our drivers have it. Always true: what is refused is a matter of the
//! arguments, and is said with what to change.

use super::arguments::BenchArguments;
use crate::failure::Failure;
use crate::harmless::shown;
use bench::rig::Identity;
use units::{BlockCount, BlockSize, ByteCount, Capacity};
use workload::{Accesses, Fill, Job, Misfit, Workload};

/// Memory for all requests of a job at once.
const BUFFER_BYTES_MAX: u64 = 1 << 30;

/// What can be said before the drive is known.
pub(super) fn check_asked(arguments: &BenchArguments, workloads: &[Workload]) -> Result<(), Failure> {
    if let Some(size) = arguments.size {
        check_size(size.0, BlockSize::B512)?;
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
            .because(format!("{} requests of {each} take {all}, {most} are the most", job.depth))
            .try_this("Choose shorter requests or fewer at once."));
        }
        if arguments.verify && job.fill == Some(Fill::Zero) {
            return Err(Failure::usage(format!("{}: it writes zeroes", named(arguments, job)))
                .because("--verify stamps what is written")
                .try_this("Leave one of them out."));
        }
    }
    Ok(())
}

/// What the drive has to say. One that is not known yet has blocks of 512 bytes at least, and room.
pub(super) fn check(
    arguments: &BenchArguments,
    workloads: &[Workload],
    identity: &Identity,
) -> Result<(), Failure> {
    let block_size = BlockSize::from_bytes(identity.block_bytes).unwrap_or(BlockSize::B512);
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
                "{}: the drive has no {}",
                named(arguments, job),
                Capacity(end)
            ))
            .because(format!("it has {}", Capacity(bytes)))
            .try_this("Lower the size or the offset."));
        }
        if let Err(misfit) = Accesses::new(job, block_size, capacity, 0) {
            return Err(Failure::usage(named(arguments, job))
                .because(misfit)
                .try_this(remedy(misfit, block_size)));
        }
    }
    Ok(())
}

fn check_size(bytes: u64, block_size: BlockSize) -> Result<(), Failure> {
    let block_bytes = block_size.bytes();
    if bytes > 0 && bytes.is_multiple_of(block_bytes.into()) {
        return Ok(());
    }
    Err(Failure::usage(format!("--size {bytes}"))
        .because(format!("it is no whole number of blocks of {block_bytes}, one at least"))
        .try_this(format!("Choose a multiple of {block_bytes}.")))
}

fn remedy(misfit: Misfit, block_size: BlockSize) -> String {
    match misfit {
        Misfit::Length { .. } => {
            format!("Choose lengths, alignments and offsets that are multiples of {}.", block_size.bytes())
        }
        Misfit::NoRoom { .. } => "Choose shorter requests, or use more of the drive.".to_owned(),
        Misfit::Shares => "Make the shares of the accesses 100 %.".to_owned(),
    }
}

/// The job, with the file that it is from.
fn named(arguments: &BenchArguments, job: &Job) -> String {
    file(arguments).map_or_else(|| job.label.clone(), |file| format!("{}: {}", shown(file), job.label))
}

fn file(arguments: &BenchArguments) -> Option<&std::path::Path> {
    arguments.fio.as_deref().or(arguments.icf.as_deref())
}
