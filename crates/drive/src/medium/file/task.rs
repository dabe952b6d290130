//! One job on a file, as decisions without system calls.
//!
//! A [`Task`] names the next system call as a [`FileOperation`] and receives its result; a ring or a thread makes the calls.
//! So both carry out the same operations and meet the same errors in the same way, and each error path is tested by
//! passing it a result.
//!
//! The decisions: short reads and writes go on where they stopped; interrupted calls are made again; a failed read or
//! write is narrowed down to the first bad block by halving; an allocation that the file system refuses is replaced by
//! the next best, in the end by writing zeroes; operations with a comparison or a pattern go through the file in
//! chunks of [`SCRATCH_BYTES_MAX`]; an atomic write is recorded in the journal before it begins, and undone if it fails
//! half way.
//!
//! Always true: a step lies within the span of its request and within the memory it names; the number of steps is
//! bounded by the length of the request.

use super::journal::{self, HEADER_BYTES};
use super::transfer::{Transfer, TransferPurpose};
use crate::medium::{CompletedJob, Geometry, Job, Span, compound};
use device::lun::limits::ATOMIC_BYTES_MAX;
use device::medium::{MediumDone, MediumError, MediumOp};
use rustix::io::Errno;
use std::ops::Range;
use units::{BlockCount, Lba};

/// Bytes of memory that a task wants beside its buffer, at most. An atomic write wants its record, which is longer.
pub(in crate::medium) const SCRATCH_BYTES_MAX: usize = 256 << 10;

/// Times that a call is made again which did nothing (`EINTR`, `EAGAIN`), in a row.
const RETRIES_MAX: u32 = 100;

/// A system call on the image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::medium) enum FileOperation {
    /// Reads into memory; brings the bytes read.
    Read { at: u64, memory: Memory, range: Range<usize> },
    /// Writes from memory; brings the bytes written. With `durable`, they are on stable storage by then.
    Write { at: u64, memory: Memory, range: Range<usize>, durable: bool },
    /// Makes everything written durable.
    Sync,
    /// Changes what space the bytes take.
    Allocate { how: Allocation, at: u64, len: u64 },
    /// Announces that bytes will be read soon.
    Advise { at: u64, len: u64 },
    /// Finds the next byte that has space; brings its offset.
    SeekMapped { at: u64 },
    /// Finds the next byte that has none; brings its offset.
    SeekHole { at: u64 },
    /// Keeps the buffer as the unit's state.
    KeepState,
    /// Keeps the scratch memory as the record of an atomic write, durably.
    KeepRecord,
    /// Clears that record, durably.
    ClearRecord,
}

/// Which memory of a task a step works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::medium) enum Memory {
    /// The buffer of the job.
    Buffer,
    /// Scratch memory of the task.
    Scratch,
}

/// Change to the space of some bytes. The length of the file stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::medium) enum Allocation {
    /// They have space, and read as zero.
    Zero,
    /// They have none, and read as zero.
    Punch,
    /// They have space, and read as before.
    Reserve,
}

/// A job in progress.
#[derive(Debug)]
pub(in crate::medium) struct Task {
    job: Job,
    scratch: Vec<u8>,
    block_bytes: usize,
    /// Where zeroes follow that are not stored; past every byte if there are none.
    padding_at: u64,
    span: Span,
    /// Where the current chunk starts, from the start of the span.
    chunk: usize,
    durability: Durability,
    retries: u32,
    phase: Phase,
}

/// Durability that forced unit access requires of the writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Durability {
    /// Nothing.
    Cached,
    /// Each is durable.
    EachWrite,
    /// The file cannot do that, so a sync comes at the end.
    SyncAfter,
}

/// Phase of a task.
#[derive(Clone, Debug)]
enum Phase {
    Moving(Transfer),
    Allocating(Allocation),
    /// Syncs the blocks that an atomic write will replace, so that an undo finds nothing else.
    SyncingOld,
    /// With the result that the task has if it succeeds.
    Syncing(Result<MediumDone, MediumError>),
    Advising,
    SeekingMapped,
    SeekingHole {
        from: u64,
    },
    KeepingState,
    KeepingRecord,
    /// With the result that the task has if it succeeds.
    ClearingRecord(Result<MediumDone, MediumError>),
    Over(Result<MediumDone, MediumError>),
}

impl Task {
    /// A task for the job. It is over at once if there is nothing to do or nothing may be done.
    pub(in crate::medium) fn new(job: Job, geometry: Geometry, read_only: bool) -> Self {
        let mut task = Self {
            job,
            scratch: Vec::new(),
            block_bytes: geometry.block_size.bytes() as usize,
            padding_at: if geometry.padding_bytes > 0 { geometry.stored_end() } else { u64::MAX },
            span: Span { start: 0, len: 0 },
            chunk: 0,
            durability: Durability::Cached,
            retries: 0,
            phase: Phase::Over(Ok(MediumDone::Done)),
        };
        let op = task.job.request.op;
        match geometry.span(&task.job.request, &task.job.buffer) {
            Err(error) => task.phase = Phase::Over(Err(error)),
            Ok(_) if read_only && changes(op) => task.phase = Phase::Over(Err(MediumError::WriteProtected)),
            Ok(span) if is_atomic(op) && span.len > ATOMIC_BYTES_MAX.into() => {
                task.phase = Phase::Over(Err(MediumError::Unsupported));
            }
            Ok(span) => {
                task.span = span;
                if span.len > 0 || matches!(op, MediumOp::Flush | MediumOp::SaveState) {
                    task.phase = task.first_phase();
                }
            }
        }
        task
    }

    /// Bytes of scratch memory that it wants before the first step.
    pub(in crate::medium) fn scratch_bytes(&self) -> usize {
        let wants = match self.job.request.op {
            MediumOp::WriteAtomic { .. } if !self.is_over() => {
                return journal::record_bytes(self.span.len as usize);
            }
            MediumOp::Read | MediumOp::Write { .. } | MediumOp::Flush => false,
            MediumOp::Status | MediumOp::Prefetch | MediumOp::SaveState => false,
            _ => !self.is_over(),
        };
        if wants { self.span.len.min(SCRATCH_BYTES_MAX as u64) as usize } else { 0 }
    }

    /// Lends it scratch memory of [`scratch_bytes`](Self::scratch_bytes) bytes.
    pub(in crate::medium) fn lend(&mut self, mut scratch: Vec<u8>) {
        scratch.clear();
        scratch.resize(self.scratch_bytes(), 0);
        if !scratch.is_empty() && matches!(self.job.request.op, MediumOp::WriteSame { .. }) {
            compound::fill_with_pattern(&mut scratch, self.pattern());
        }
        self.scratch = scratch;
    }

    /// Whether it has steps that wait, and that no ring has an operation for.
    pub(in crate::medium) const fn wants_thread(&self) -> bool {
        matches!(self.job.request.op, MediumOp::Status | MediumOp::SaveState | MediumOp::WriteAtomic { .. })
    }

    /// Whether there are no more steps.
    pub(in crate::medium) const fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over(_))
    }

    /// The answer, and the memory that was lent. To be asked when the task is over.
    pub(in crate::medium) fn finish(self) -> (CompletedJob, Vec<u8>) {
        let result = match self.phase {
            Phase::Over(result) => result,
            // Never asked before the end; such a job was not done.
            _ => Err(MediumError::Unsupported),
        };
        (self.job.finish(result), self.scratch)
    }

    /// The next system call, or `None` when it is over. Asking twice changes nothing.
    pub(in crate::medium) fn step(&self) -> Option<FileOperation> {
        let Span { start: at, len } = self.span;
        Some(match &self.phase {
            Phase::Over(_) => return None,
            Phase::Moving(transfer) => {
                let attempt = transfer.attempt(self.block_bytes);
                let start = transfer.start + transfer.moved;
                let (at, memory, range) = (transfer.position(), transfer.memory, start..start + attempt);
                match transfer.purpose {
                    TransferPurpose::Load => FileOperation::Read { at, memory, range },
                    TransferPurpose::Store | TransferPurpose::Restore(_) => FileOperation::Write {
                        at,
                        memory,
                        range,
                        durable: self.durability == Durability::EachWrite,
                    },
                }
            }
            Phase::Allocating(how) => FileOperation::Allocate { how: *how, at, len },
            Phase::SyncingOld | Phase::Syncing(_) => FileOperation::Sync,
            Phase::Advising => FileOperation::Advise { at, len },
            Phase::SeekingMapped => FileOperation::SeekMapped { at },
            Phase::SeekingHole { from } => FileOperation::SeekHole { at: *from },
            Phase::KeepingState => FileOperation::KeepState,
            Phase::KeepingRecord => FileOperation::KeepRecord,
            Phase::ClearingRecord(_) => FileOperation::ClearRecord,
        })
    }

    /// The memory that a step names.
    pub(in crate::medium) fn memory(&mut self, which: Memory) -> &mut [u8] {
        match which {
            Memory::Buffer => &mut self.job.buffer,
            Memory::Scratch => &mut self.scratch,
        }
    }

    /// The memory that a step names, to read from.
    pub(in crate::medium) fn bytes(&self, which: Memory) -> &[u8] {
        match which {
            Memory::Buffer => &self.job.buffer,
            Memory::Scratch => &self.scratch,
        }
    }

    /// Ends it with this error, wherever it is.
    pub(in crate::medium) fn fail(&mut self, error: MediumError) {
        self.phase = Phase::Over(Err(error));
    }

    /// Takes what came of the step: a count or an offset, as the step says.
    pub(in crate::medium) fn handle(&mut self, outcome: Result<u64, Errno>) {
        if let Err(Errno::INTR | Errno::AGAIN) = outcome
            && self.retries < RETRIES_MAX
        {
            self.retries += 1;
            return;
        }
        self.retries = 0;
        let phase = std::mem::replace(&mut self.phase, Phase::Over(Ok(MediumDone::Done)));
        self.phase = match phase {
            Phase::Moving(transfer) => self.after_move(transfer, outcome),
            Phase::Allocating(how) => self.after_allocation(how, outcome),
            Phase::SeekingMapped => self.after_seek_mapped(outcome),
            Phase::SeekingHole { .. } => self.after_seek_hole(outcome),
            // Advice that is not taken does no harm.
            Phase::Advising => Phase::Over(Ok(MediumDone::Done)),
            Phase::SyncingOld => match self.done_or_failed(outcome) {
                Ok(_) => self.record(TransferPurpose::Load, self.span.len as usize),
                Err(error) => Phase::Over(Err(error)),
            },
            Phase::Syncing(result) => self.after_sync(result, outcome),
            Phase::KeepingRecord => self.after_keeping_record(outcome),
            Phase::ClearingRecord(result) => Phase::Over(result.and(self.done_or_failed(outcome))),
            Phase::KeepingState => Phase::Over(self.done_or_failed(outcome)),
            over @ Phase::Over(_) => over,
        };
    }

    fn first_phase(&mut self) -> Phase {
        match self.job.request.op {
            MediumOp::Read => self.whole(TransferPurpose::Load, 0),
            MediumOp::Write { fua } => {
                self.force(fua);
                self.whole(TransferPurpose::Store, 0)
            }
            MediumOp::CompareAndWrite { fua } | MediumOp::Or { fua } => {
                self.force(fua);
                self.load_chunk()
            }
            MediumOp::Compare | MediumOp::CompareSame | MediumOp::Verify => self.load_chunk(),
            MediumOp::WriteSame { unmap: true } if compound::is_zero(self.pattern()) => {
                Phase::Allocating(Allocation::Punch)
            }
            MediumOp::WriteSame { .. } => self.store_chunk(),
            MediumOp::WriteZeroes => Phase::Allocating(Allocation::Zero),
            MediumOp::Unmap => Phase::Allocating(Allocation::Punch),
            MediumOp::Flush => Phase::Syncing(Ok(MediumDone::Done)),
            MediumOp::Status => Phase::SeekingMapped,
            MediumOp::Prefetch => Phase::Advising,
            MediumOp::SaveState => Phase::KeepingState,
            MediumOp::WriteAtomic { .. } => {
                // Durable with or without FUA: the record goes when it is done.
                self.force(true);
                Phase::SyncingOld
            }
        }
    }

    fn force(&mut self, fua: bool) {
        if fua {
            self.durability = Durability::EachWrite;
        }
    }

    /// Returns the one block of WRITE SAME, or of its comparison.
    fn pattern(&self) -> &[u8] {
        let start = self.job.request.range.start as usize;
        &self.job.buffer[start..start + self.block_bytes]
    }

    /// The whole span between the file and the buffer, from byte `skip` of the payload on.
    fn whole(&self, purpose: TransferPurpose, skip: usize) -> Phase {
        let start = self.job.request.range.start as usize + skip;
        Phase::Moving(Transfer::new(purpose, Memory::Buffer, start, self.span))
    }

    /// The first `len` bytes of the span between the file and the old bytes of the record.
    fn record(&self, purpose: TransferPurpose, len: usize) -> Phase {
        let span = Span { len: len as u64, ..self.span };
        Phase::Moving(Transfer::new(purpose, Memory::Scratch, HEADER_BYTES, span))
    }

    fn load_chunk(&self) -> Phase {
        Phase::Moving(Transfer::new(TransferPurpose::Load, Memory::Scratch, 0, self.chunk_span()))
    }

    fn store_chunk(&self) -> Phase {
        Phase::Moving(Transfer::new(TransferPurpose::Store, Memory::Scratch, 0, self.chunk_span()))
    }

    fn chunk_span(&self) -> Span {
        let chunk = self.chunk as u64;
        Span { start: self.span.start + chunk, len: (self.span.len - chunk).min(SCRATCH_BYTES_MAX as u64) }
    }

    /// Goes on to the next chunk; `false` after the last.
    fn next_chunk(&mut self) -> bool {
        self.chunk += self.chunk_span().len as usize;
        (self.chunk as u64) < self.span.len
    }

    fn after_move(&mut self, mut transfer: Transfer, outcome: Result<u64, Errno>) -> Phase {
        match outcome {
            Ok(0) if transfer.purpose == TransferPurpose::Load => {
                if transfer.position() < self.padding_at {
                    return Phase::Over(Err(MediumError::Shrunk));
                }
                self.pad(&mut transfer);
            }
            Ok(0) => return self.after_failed_move(&transfer, Errno::IO),
            Ok(count) => transfer.advance(count as usize),
            Err(Errno::OPNOTSUPP | Errno::INVAL) if self.durability == Durability::EachWrite => {
                self.durability = Durability::SyncAfter;
            }
            Err(errno) if is_media_error(errno) && transfer.narrow(self.block_bytes) => {}
            Err(errno) => return self.after_failed_move(&transfer, errno),
        }
        if transfer.moved < transfer.len {
            return Phase::Moving(transfer);
        }
        match transfer.purpose {
            TransferPurpose::Load => self.after_load(),
            TransferPurpose::Store => self.after_store(),
            TransferPurpose::Restore(error) => self.after_last_store(Err(error)),
        }
    }

    /// Fills what is left of a transfer, all of it padding.
    fn pad(&mut self, transfer: &mut Transfer) {
        let rest = transfer.start + transfer.moved..transfer.start + transfer.len;
        self.memory(transfer.memory)[rest].fill(0);
        transfer.advance(transfer.len);
    }

    fn after_failed_move(&self, transfer: &Transfer, errno: Errno) -> Phase {
        let lba = Lba(transfer.position() / self.block_bytes as u64);
        match transfer.purpose {
            TransferPurpose::Load => Phase::Over(Err(MediumError::Unreadable { lba })),
            TransferPurpose::Store if is_atomic(self.job.request.op) => {
                // Without space nothing was written but what was counted, and no more can be.
                let touched = if is_media_error(errno) { transfer.len } else { transfer.moved };
                self.undo(touched, write_error(errno, lba))
            }
            TransferPurpose::Store => Phase::Over(Err(write_error(errno, lba))),
            // The record stays, for the next opening.
            TransferPurpose::Restore(error) => Phase::Over(Err(error)),
        }
    }

    /// Restores the first `touched` bytes of an atomic write that failed.
    fn undo(&self, touched: usize, error: MediumError) -> Phase {
        if touched == 0 {
            return Phase::ClearingRecord(Err(error));
        }
        self.record(TransferPurpose::Restore(error), touched)
    }

    fn after_load(&mut self) -> Phase {
        match self.job.request.op {
            MediumOp::Read => return Phase::Over(Ok(MediumDone::Done)),
            MediumOp::WriteAtomic { .. } => {
                let (start, len) = (self.job.request.range.start as usize, self.span.len as usize);
                journal::seal(&mut self.scratch, self.span.start, &self.job.buffer[start..start + len]);
                return Phase::KeepingRecord;
            }
            _ => {}
        }
        let chunk = self.chunk_span().len as usize;
        let start = self.job.request.range.start as usize + self.chunk;
        let loaded = &mut self.scratch[..chunk];
        let difference = match self.job.request.op {
            MediumOp::Compare | MediumOp::CompareAndWrite { .. } => {
                compound::first_difference(loaded, &self.job.buffer[start..start + chunk])
            }
            MediumOp::CompareSame => {
                let start = self.job.request.range.start as usize;
                let pattern = &self.job.buffer[start..start + self.block_bytes];
                compound::first_difference_from_pattern(loaded, pattern)
            }
            MediumOp::Or { .. } => {
                compound::or_into(loaded, &self.job.buffer[start..start + chunk]);
                return self.store_chunk();
            }
            _ => None,
        };
        if let Some(offset) = difference {
            return Phase::Over(Err(MediumError::Miscompare { offset: (self.chunk + offset) as u32 }));
        }
        if self.next_chunk() {
            return self.load_chunk();
        }
        match self.job.request.op {
            MediumOp::CompareAndWrite { .. } => self.whole(TransferPurpose::Store, self.span.len as usize),
            _ => Phase::Over(Ok(MediumDone::Done)),
        }
    }

    fn after_store(&mut self) -> Phase {
        let op = self.job.request.op;
        let whole = matches!(op, MediumOp::Write { .. } | MediumOp::CompareAndWrite { .. }) || is_atomic(op);
        if !whole && self.next_chunk() {
            return if matches!(op, MediumOp::Or { .. }) { self.load_chunk() } else { self.store_chunk() };
        }
        self.after_last_store(Ok(MediumDone::Done))
    }

    /// Returns the phase after the last write.
    fn after_last_store(&self, result: Result<MediumDone, MediumError>) -> Phase {
        match self.durability {
            Durability::SyncAfter => Phase::Syncing(result),
            Durability::Cached | Durability::EachWrite if is_atomic(self.job.request.op) => {
                Phase::ClearingRecord(result)
            }
            Durability::Cached | Durability::EachWrite => Phase::Over(result),
        }
    }

    fn after_sync(&self, result: Result<MediumDone, MediumError>, outcome: Result<u64, Errno>) -> Phase {
        if !is_atomic(self.job.request.op) {
            return Phase::Over(result.and(self.done_or_failed(outcome)));
        }
        match (self.done_or_failed(outcome), result) {
            (Ok(_), _) => Phase::ClearingRecord(result),
            (Err(error), Ok(_)) => self.undo(self.span.len as usize, error),
            // The record stays, for the next opening.
            (Err(_), Err(_)) => Phase::Over(result),
        }
    }

    fn after_keeping_record(&self, outcome: Result<u64, Errno>) -> Phase {
        match outcome {
            Ok(_) => self.whole(TransferPurpose::Store, 0),
            // There is no place for a journal: that says nothing about the image.
            Err(errno) if !is_media_error(errno) && !is_lack_of_space(errno) => {
                Phase::Over(Err(MediumError::Unsupported))
            }
            Err(errno) => Phase::Over(Err(write_error(errno, self.job.request.extent.lba))),
        }
    }

    /// Returns the result of a call that concerns the extent as a whole.
    fn done_or_failed(&self, outcome: Result<u64, Errno>) -> Result<MediumDone, MediumError> {
        let failed = |errno| write_error(errno, self.job.request.extent.lba);
        outcome.map(|_| MediumDone::Done).map_err(failed)
    }

    /// Returns the phase after an allocation, which may be another one in place of one that is not supported.
    fn after_allocation(&self, how: Allocation, outcome: Result<u64, Errno>) -> Phase {
        let keeps_space = self.job.request.op == MediumOp::WriteZeroes;
        match (outcome, how) {
            (Ok(_), Allocation::Punch) if keeps_space => Phase::Allocating(Allocation::Reserve),
            (Ok(_), _) => Phase::Over(Ok(MediumDone::Done)),
            (Err(errno), _) if !is_refusal(errno) => {
                Phase::Over(Err(write_error(errno, self.job.request.extent.lba)))
            }
            (Err(_), Allocation::Zero) if keeps_space => Phase::Allocating(Allocation::Punch),
            (Err(_), Allocation::Punch) if !keeps_space => Phase::Allocating(Allocation::Zero),
            (Err(_), _) => self.store_chunk(),
        }
    }

    fn after_seek_mapped(&self, outcome: Result<u64, Errno>) -> Phase {
        let blocks = self.job.request.extent.blocks;
        match outcome {
            Ok(found) => {
                let gap = found.saturating_sub(self.span.start) / self.block_bytes as u64;
                if gap == 0 {
                    return Phase::SeekingHole { from: found.max(self.span.start) };
                }
                provisioning(false, gap, blocks)
            }
            // Nothing but a hole to the end of the file.
            Err(Errno::NXIO) => provisioning(false, blocks.0, blocks),
            // A block device, or a file system without holes.
            Err(_) => provisioning(true, blocks.0, blocks),
        }
    }

    fn after_seek_hole(&self, outcome: Result<u64, Errno>) -> Phase {
        let blocks = self.job.request.extent.blocks;
        let mapped = outcome.map_or(blocks.0, |found| {
            // A block of which a part has space is mapped.
            found.saturating_sub(self.span.start).div_ceil(self.block_bytes as u64)
        });
        provisioning(true, mapped, blocks)
    }
}

const fn provisioning(mapped: bool, found: u64, most: BlockCount) -> Phase {
    let blocks = if found < most.0 { found } else { most.0 };
    let blocks = BlockCount(if blocks == 0 { 1 } else { blocks });
    Phase::Over(Ok(MediumDone::Provisioning { mapped, blocks }))
}

/// Whether an operation needs a medium that may be changed.
const fn changes(op: MediumOp) -> bool {
    match op {
        MediumOp::Read
        | MediumOp::Verify
        | MediumOp::Compare
        | MediumOp::CompareSame
        | MediumOp::Flush
        | MediumOp::Status
        | MediumOp::Prefetch => false,
        MediumOp::Write { .. }
        | MediumOp::WriteAtomic { .. }
        | MediumOp::CompareAndWrite { .. }
        | MediumOp::Or { .. }
        | MediumOp::WriteSame { .. }
        | MediumOp::WriteZeroes
        | MediumOp::Unmap
        | MediumOp::SaveState => true,
    }
}

const fn is_atomic(op: MediumOp) -> bool {
    matches!(op, MediumOp::WriteAtomic { .. })
}

/// Whether the storage failed, so that it matters which block is bad.
fn is_media_error(errno: Errno) -> bool {
    matches!(errno, Errno::IO | Errno::NODATA | Errno::ILSEQ | Errno::REMOTEIO)
}

fn is_lack_of_space(errno: Errno) -> bool {
    matches!(errno, Errno::NOSPC | Errno::DQUOT | Errno::FBIG)
}

/// Whether an allocation is unknown here, rather than failed.
fn is_refusal(errno: Errno) -> bool {
    matches!(errno, Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS | Errno::NODEV)
}

/// Returns the error of a failed change for the host.
fn write_error(errno: Errno, lba: Lba) -> MediumError {
    match errno {
        errno if is_lack_of_space(errno) => MediumError::OutOfSpace,
        Errno::ROFS | Errno::PERM | Errno::ACCESS | Errno::BADF => MediumError::WriteProtected,
        _ => MediumError::Unwritable { lba },
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::suite::request;
    use super::*;
    use units::{BlockSize, ByteCount, Extent};

    fn task(op: MediumOp, extent: Extent, payload: usize) -> Task {
        let geometry = Geometry::of(ByteCount(1 << 20), BlockSize::B512);
        let job = Job { request: request(op, extent, payload as u32), buffer: vec![0; payload] };
        let mut task = Task::new(job, geometry, false);
        task.lend(Vec::new());
        task
    }

    fn result(task: Task) -> Result<MediumDone, MediumError> {
        assert_eq!(task.step(), None);
        task.finish().0.completion.result
    }

    fn read_step(at: u64, range: Range<usize>) -> Option<FileOperation> {
        Some(FileOperation::Read { at, memory: Memory::Buffer, range })
    }

    #[test]
    fn a_short_read_goes_on_where_it_stopped() {
        let mut task = task(MediumOp::Read, Extent::new(2, 2), 1024);
        assert_eq!(task.step(), read_step(1024, 0..1024));
        task.handle(Ok(700));
        assert_eq!(task.step(), read_step(1724, 700..1024));
        task.handle(Ok(324));
        assert_eq!(result(task), Ok(MediumDone::Done));
    }

    #[test]
    fn padding_is_zero_and_a_file_that_shrank_is_not_padded() {
        let geometry = Geometry::padded(ByteCount(3 * 2048 + 100), BlockSize::B2048);
        assert_eq!((geometry.capacity, geometry.padding_bytes), (units::BlockCount(4), 1948));
        let read = |first: u64, ends: &[u64]| {
            let request = request(MediumOp::Read, Extent::new(2, 2), 4096);
            let mut task = Task::new(Job { request, buffer: vec![0xee; 4096] }, geometry, true);
            task.handle(Ok(first));
            ends.iter().for_each(|&count| task.handle(Ok(count)));
            let (over, _) = task.finish();
            (over.completion.result, over.buffer)
        };
        let (result, buffer) = read(2048, &[100, 0]);
        assert_eq!(result, Ok(MediumDone::Done));
        assert!(buffer[..2148].iter().all(|&byte| byte == 0xee) && buffer[2148..] == [0; 1948]);
        assert_eq!(read(2048, &[99, 0]).0, Err(MediumError::Shrunk));
    }

    #[test]
    fn an_interrupted_call_is_made_again_but_not_forever() {
        let mut task = task(MediumOp::Read, Extent::new(2, 1), 512);
        for _ in 0..100 {
            task.handle(Err(Errno::INTR));
            assert_eq!(task.step(), read_step(1024, 0..512));
        }
        task.handle(Err(Errno::AGAIN));
        assert_eq!(result(task), Err(MediumError::Unreadable { lba: Lba(2) }));
    }

    #[test]
    fn a_failed_read_is_halved_until_one_block_is_left() {
        let mut task = task(MediumOp::Read, Extent::new(0, 4), 2048);
        task.handle(Err(Errno::IO));
        assert_eq!(task.step(), read_step(0, 0..1024));
        task.handle(Ok(1024));
        assert_eq!(task.step(), read_step(1024, 1024..1536));
        task.handle(Err(Errno::IO));
        assert_eq!(result(task), Err(MediumError::Unreadable { lba: Lba(2) }));
    }

    #[test]
    fn an_error_that_passes_does_not_fail_the_read() {
        let mut task = task(MediumOp::Read, Extent::new(0, 4), 2048);
        task.handle(Err(Errno::IO));
        task.handle(Ok(1024));
        task.handle(Ok(512));
        assert_eq!(task.step(), read_step(1536, 1536..2048));
        task.handle(Ok(512));
        assert_eq!(result(task), Ok(MediumDone::Done));
    }

    #[test]
    fn a_read_past_the_end_of_the_file_has_shrunk() {
        let mut task = task(MediumOp::Read, Extent::new(0, 1), 512);
        task.handle(Ok(0));
        assert_eq!(result(task), Err(MediumError::Shrunk));
    }

    #[test]
    fn each_error_of_a_write_has_its_meaning() {
        let cases = [
            (Errno::NOSPC, MediumError::OutOfSpace),
            (Errno::DQUOT, MediumError::OutOfSpace),
            (Errno::ROFS, MediumError::WriteProtected),
            (Errno::PERM, MediumError::WriteProtected),
            (Errno::IO, MediumError::Unwritable { lba: Lba(9) }),
        ];
        for (errno, error) in cases {
            let mut task = task(MediumOp::Write { fua: false }, Extent::new(9, 1), 512);
            task.handle(Err(errno));
            assert_eq!(result(task), Err(error));
        }
    }

    #[test]
    fn a_forced_write_is_durable_by_itself_or_by_a_sync() {
        let mut task = task(MediumOp::Write { fua: true }, Extent::new(0, 1), 512);
        let write =
            |durable| Some(FileOperation::Write { at: 0, memory: Memory::Buffer, range: 0..512, durable });
        assert_eq!(task.step(), write(true));
        task.handle(Err(Errno::OPNOTSUPP));
        assert_eq!(task.step(), write(false));
        task.handle(Ok(512));
        assert_eq!(task.step(), Some(FileOperation::Sync));
        task.handle(Ok(0));
        assert_eq!(result(task), Ok(MediumDone::Done));
    }

    #[test]
    fn zeroes_are_punched_and_reserved_where_ranges_cannot_be_zeroed() {
        let mut task = task(MediumOp::WriteZeroes, Extent::new(1, 2), 0);
        let allocate = |how| Some(FileOperation::Allocate { how, at: 512, len: 1024 });
        assert_eq!(task.step(), allocate(Allocation::Zero));
        task.handle(Err(Errno::OPNOTSUPP));
        assert_eq!(task.step(), allocate(Allocation::Punch));
        task.handle(Ok(0));
        assert_eq!(task.step(), allocate(Allocation::Reserve));
        task.handle(Err(Errno::NOSPC));
        assert_eq!(result(task), Err(MediumError::OutOfSpace));
    }

    #[test]
    fn unmap_writes_zeroes_where_no_allocation_is_known() {
        let mut task = task(MediumOp::Unmap, Extent::new(0, 1), 0);
        task.handle(Err(Errno::OPNOTSUPP));
        assert_eq!(task.step(), Some(FileOperation::Allocate { how: Allocation::Zero, at: 0, len: 512 }));
        task.handle(Err(Errno::OPNOTSUPP));
        let write = FileOperation::Write { at: 0, memory: Memory::Scratch, range: 0..512, durable: false };
        assert_eq!(task.step(), Some(write));
        task.handle(Ok(512));
        assert_eq!(result(task), Ok(MediumDone::Done));
    }

    #[test]
    fn a_block_of_which_a_part_has_space_is_mapped() {
        let mut task = task(MediumOp::Status, Extent::new(1, 9), 0);
        task.handle(Ok(600));
        assert_eq!(task.step(), Some(FileOperation::SeekHole { at: 600 }));
        task.handle(Ok(1030));
        let mapped = MediumDone::Provisioning { mapped: true, blocks: BlockCount(2) };
        assert_eq!(result(task), Ok(mapped));
    }

    #[test]
    fn a_device_without_holes_is_mapped() {
        let mut task = task(MediumOp::Status, Extent::new(1, 9), 0);
        task.handle(Err(Errno::INVAL));
        assert_eq!(result(task), Ok(MediumDone::Provisioning { mapped: true, blocks: BlockCount(9) }));
    }

    #[test]
    fn a_flush_that_fails_is_reported() {
        let mut task = task(MediumOp::Flush, Extent::new(0, 0), 0);
        assert_eq!(task.step(), Some(FileOperation::Sync));
        task.handle(Err(Errno::IO));
        assert_eq!(result(task), Err(MediumError::Unwritable { lba: Lba(0) }));
    }

    fn atomic() -> Task {
        let mut task = task(MediumOp::WriteAtomic { fua: false }, Extent::new(2, 1), 512);
        task.job.buffer.fill(7);
        task
    }

    /// Takes an atomic write to where its record is durable.
    fn recorded() -> Task {
        let mut task = atomic();
        for count in [0, 512, 0] {
            task.handle(Ok(count));
        }
        task
    }

    fn write_step(memory: Memory, range: Range<usize>) -> Option<FileOperation> {
        Some(FileOperation::Write { at: 1024, memory, range, durable: true })
    }

    #[test]
    fn an_atomic_write_begins_when_its_record_is_durable() {
        let mut task = atomic();
        assert_eq!(task.step(), Some(FileOperation::Sync));
        task.handle(Ok(0));
        let load = FileOperation::Read { at: 1024, memory: Memory::Scratch, range: 32..544 };
        assert_eq!(task.step(), Some(load));
        task.memory(Memory::Scratch)[32..544].fill(5);
        task.handle(Ok(512));
        assert_eq!(task.step(), Some(FileOperation::KeepRecord));
        let record = task.memory(Memory::Scratch);
        assert_eq!((record.len(), record[31], record[543], record[544]), (1056, 0, 5, 7));
        task.handle(Ok(0));
        assert_eq!(task.step(), write_step(Memory::Buffer, 0..512));
        task.handle(Ok(512));
        assert_eq!(task.step(), Some(FileOperation::ClearRecord));
        task.handle(Ok(0));
        assert_eq!(result(task), Ok(MediumDone::Done));
    }

    #[test]
    fn an_atomic_write_is_synced_where_a_write_cannot_be_durable() {
        let mut task = recorded();
        task.handle(Err(Errno::OPNOTSUPP));
        task.handle(Ok(512));
        assert_eq!(task.step(), Some(FileOperation::Sync));
        task.handle(Ok(0));
        assert_eq!(task.step(), Some(FileOperation::ClearRecord));
    }

    #[test]
    fn an_atomic_write_that_fails_is_undone_as_far_as_it_came() {
        let mut task = recorded();
        task.handle(Ok(100));
        task.handle(Err(Errno::NOSPC));
        assert_eq!(task.step(), write_step(Memory::Scratch, 32..132));
        task.handle(Ok(100));
        assert_eq!(task.step(), Some(FileOperation::ClearRecord));
        task.handle(Ok(0));
        assert_eq!(result(task), Err(MediumError::OutOfSpace));
    }

    #[test]
    fn an_atomic_write_without_any_space_has_nothing_to_undo() {
        let mut task = recorded();
        task.handle(Err(Errno::NOSPC));
        assert_eq!(task.step(), Some(FileOperation::ClearRecord));
        task.handle(Ok(0));
        assert_eq!(result(task), Err(MediumError::OutOfSpace));
    }

    #[test]
    fn a_failed_sync_of_an_atomic_write_undoes_all_of_it() {
        let mut task = recorded();
        for outcome in [Err(Errno::OPNOTSUPP), Ok(512), Err(Errno::IO)] {
            task.handle(outcome);
        }
        let restore =
            FileOperation::Write { at: 1024, memory: Memory::Scratch, range: 32..544, durable: false };
        assert_eq!(task.step(), Some(restore));
        for outcome in [Ok(512), Ok(0), Ok(0)] {
            task.handle(outcome);
        }
        assert_eq!(result(task), Err(MediumError::Unwritable { lba: Lba(2) }));
    }

    #[test]
    fn the_record_stays_when_an_undo_fails() {
        let mut task = recorded();
        task.handle(Err(Errno::IO));
        assert_eq!(task.step(), write_step(Memory::Scratch, 32..544));
        task.handle(Err(Errno::IO));
        assert_eq!(result(task), Err(MediumError::Unwritable { lba: Lba(2) }));
    }

    #[test]
    fn an_atomic_write_needs_a_place_for_its_journal() {
        let cases = [
            (Errno::ACCESS, MediumError::Unsupported),
            (Errno::OPNOTSUPP, MediumError::Unsupported),
            (Errno::NOSPC, MediumError::OutOfSpace),
            (Errno::IO, MediumError::Unwritable { lba: Lba(2) }),
        ];
        for (errno, error) in cases {
            let mut task = atomic();
            for outcome in [Ok(0), Ok(512), Err(errno)] {
                task.handle(outcome);
            }
            assert_eq!(result(task), Err(error));
        }
    }
}
