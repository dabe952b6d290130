//! A medium that lies about the blocks of another: it wraps around, loses writes, keeps what was unmapped, ignores flushes.
//!
//! Extents are those of the announced capacity. One that the lie maps to several places is carried out piece by piece, with
//! the same buffer; its ends are reported as those of one job. Left out: COMPARE AND WRITE across the end of the stored blocks,
//! which is refused.
//!
//! Always true: each job brings one `CompletedJob`; without a lie that concerns it a job reaches the medium unchanged.

mod stuck;

use super::{CompletedJob, Geometry, Job, Lie, Medium, PowerLoss};
use device::medium::{MediumDone, MediumError, MediumOp, MediumRequest, MediumRequestId};
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use stuck::StuckBlocks;
use units::{BlockCount, BlockSize, ByteRange, Extent, Lba};

/// A medium and its lies.
#[derive(Debug)]
pub struct LyingMedium {
    inner: Box<dyn Medium + Send>,
    lies: Vec<Lie>,
    /// Blocks that are there, if fewer than announced, and whether those past them wrap around.
    stored: Option<StoredBlocks>,
    /// With `stored`: what is announced, before [`Lie::CapacityOffByOne`].
    announced: BlockCount,
    /// Jobs whose extents are mapped.
    mapped: Vec<MappedJob>,
    /// Blocks that return one old block.
    stuck: Option<StuckBlocks>,
}

/// The blocks that are stored.
#[derive(Clone, Copy, Debug)]
struct StoredBlocks {
    blocks: u64,
    wraps: bool,
}

/// A job whose extent lies elsewhere, or in several places.
#[derive(Debug)]
struct MappedJob {
    /// As the device asked.
    request: MediumRequest,
    /// Blocks that are finished.
    done: u64,
    /// Blocks of the piece at the medium, and where it begins there.
    piece: Extent,
}

/// Where the next blocks of a job are.
enum Piece {
    /// At the medium.
    Stored(Extent),
    /// Nowhere: so many blocks.
    Lost(u64),
}

/// Lies that do not fit a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LieError {
    /// `wrap` and `drop`, or one of them twice.
    TwoSizes,
    /// The stored size is no whole number of blocks, or zero.
    NotBlocks,
    /// More is stored than the medium has or announces.
    KeepsMore,
    /// A stuck block is beyond the end.
    NoSuchBlock,
}

impl LyingMedium {
    /// A medium that lies about `inner` and announces this capacity. `inner` may be as small as what is stored of it.
    ///
    /// # Errors
    /// Why these lies do not fit this medium.
    pub fn new(inner: Box<dyn Medium + Send>, announced: BlockCount, lies: &[Lie]) -> Result<Self, LieError> {
        let sizes =
            lies.iter().filter_map(|lie| lie.stored().map(|size| (size, matches!(lie, Lie::Wrap(_)))));
        let sizes: Vec<_> = sizes.collect();
        let stored = match sizes.as_slice() {
            [] => None,
            [(size, wraps)] => {
                let block_bytes = u64::from(inner.block_size().bytes());
                if size.0 == 0 || !size.0.is_multiple_of(block_bytes) {
                    return Err(LieError::NotBlocks);
                }
                Some(StoredBlocks { blocks: size.0 / block_bytes, wraps: *wraps })
            }
            _ => return Err(LieError::TwoSizes),
        };
        if stored.is_some_and(|stored| stored.blocks > inner.capacity().0.min(announced.0)) {
            return Err(LieError::KeepsMore);
        }
        let block_bytes = inner.block_size().bytes();
        let stuck = lies.iter().find_map(|lie| match lie {
            Lie::Stuck(lba) => Some(*lba),
            _ => None,
        });
        if stuck.is_some_and(|lba| lba.0 >= announced.0) {
            return Err(LieError::NoSuchBlock);
        }
        let stuck = stuck.map(|lba| StuckBlocks::new(lba, block_bytes));
        Ok(Self { inner, lies: lies.to_vec(), stored, announced, mapped: Vec::new(), stuck })
    }

    fn has(&self, lie: Lie) -> bool {
        self.lies.contains(&lie)
    }

    /// Whether a request is acknowledged without effect.
    fn ignores(&self, request: &MediumRequest, buffer: &[u8]) -> bool {
        let pattern = || buffer.get(request.range.as_usize()).unwrap_or_default();
        let unmaps = match request.op {
            MediumOp::Unmap => true,
            MediumOp::WriteSame { unmap } => unmap && pattern().iter().all(|byte| *byte == 0),
            _ => false,
        };
        unmaps && self.has(Lie::KeepAfterUnmap) || request.op == MediumOp::Flush && self.has(Lie::IgnoreFlush)
    }

    /// Submits a job, of which the lies leave as much as the medium has.
    fn submit_mapped(&mut self, job: Job) -> Option<CompletedJob> {
        let Some(stored) = self.stored else { return self.inner.submit(job) };
        if matches!(job.request.op, MediumOp::Flush | MediumOp::SaveState) {
            return self.inner.submit(job);
        }
        let geometry = Geometry { capacity: self.announced, block_size: self.block_size(), padding_bytes: 0 };
        if let Err(error) = geometry.span(&job.request, &job.buffer) {
            return Some(job.finish(Err(error)));
        }
        let request = stored.bounded(job.request);
        let ends_elsewhere = !request.extent.is_empty()
            && match stored.next(&request, 0) {
                Piece::Stored(extent) => extent.blocks < request.extent.blocks,
                Piece::Lost(_) => false,
            };
        if ends_elsewhere && matches!(request.op, MediumOp::CompareAndWrite { .. }) {
            return Some(job.finish(Err(MediumError::Unsupported)));
        }
        if request.extent.is_empty() {
            return Some(job.finish(Ok(MediumDone::Done)));
        }
        self.carry_on(job, MappedJob { request, done: 0, piece: Extent::default() }, stored)
    }

    /// Has stuck blocks of a completed read return what they are stuck with.
    fn altered(&mut self, mut finished: CompletedJob) -> CompletedJob {
        if let Some(stuck) = &mut self.stuck {
            stuck.alter(&mut finished);
        }
        finished
    }

    /// Carries a mapped job on until a piece of it is at the medium, or the job is over.
    fn carry_on(
        &mut self,
        mut job: Job,
        mut mapped: MappedJob,
        stored: StoredBlocks,
    ) -> Option<CompletedJob> {
        let block_bytes = u64::from(self.block_size().bytes());
        loop {
            let whole = mapped.request.extent.blocks.0;
            let is_over =
                mapped.done >= whole && whole > 0 || mapped.done > 0 && mapped.request.op == MediumOp::Status;
            if is_over {
                return Some(restored(job, &mapped).finish(Ok(MediumDone::Done)));
            }
            let piece = stored.next(&mapped.request, mapped.done);
            let offset = mapped.done * block_bytes;
            let lost = match piece {
                Piece::Stored(extent) => {
                    mapped.piece = extent;
                    job.request = part_of(&mapped.request, extent, offset, block_bytes);
                    let finished = match self.inner.submit(job) {
                        None => {
                            self.mapped.push(mapped);
                            return None;
                        }
                        Some(finished) => finished,
                    };
                    match finished_piece(finished, &mut mapped, block_bytes) {
                        Ok(next) => {
                            job = next;
                            continue;
                        }
                        Err(over) => return Some(over),
                    }
                }
                Piece::Lost(blocks) => blocks,
            };
            let part = part_of(&mapped.request, Extent::new(0, lost), offset, block_bytes);
            match lose(&part, &mut job.buffer, offset as u32) {
                Ok(MediumDone::Done) => mapped.done += lost,
                result => return Some(restored(job, &mapped).finish(result)),
            }
        }
    }

    /// Handles a job that the medium has completed. `None`: the next piece of it is at the medium.
    fn receive(&mut self, finished: CompletedJob) -> Option<CompletedJob> {
        let id = finished.completion.id;
        let Some(stored) = self.stored else { return Some(finished) };
        let Some(index) = self.index_of(id) else { return Some(finished) };
        let mut mapped = self.mapped.swap_remove(index);
        let block_bytes = u64::from(self.block_size().bytes());
        match finished_piece(finished, &mut mapped, block_bytes) {
            Ok(job) => self.carry_on(job, mapped, stored),
            Err(over) => Some(over),
        }
    }

    fn index_of(&self, id: MediumRequestId) -> Option<usize> {
        self.mapped.iter().position(|mapped| mapped.request.id == id)
    }
}

impl StoredBlocks {
    /// Where the blocks of a request are, from the `done`th on.
    fn next(self, request: &MediumRequest, done: u64) -> Piece {
        let (lba, left) = (request.extent.lba.0 + done, request.extent.blocks.0 - done);
        if !self.wraps {
            return match self.blocks.checked_sub(lba).filter(|room| *room > 0) {
                Some(room) => Piece::Stored(Extent::new(lba, left.min(room))),
                None => Piece::Lost(left),
            };
        }
        let at = lba % self.blocks;
        Piece::Stored(Extent::new(at, left.min(self.blocks - at)))
    }

    /// The same request with no more blocks than have an effect: of operations whose payload does not grow with them, those that
    /// go round more than once.
    fn bounded(self, mut request: MediumRequest) -> MediumRequest {
        let is_bounded = matches!(
            request.op,
            MediumOp::Verify
                | MediumOp::CompareSame
                | MediumOp::WriteSame { .. }
                | MediumOp::WriteZeroes
                | MediumOp::Unmap
                | MediumOp::Prefetch
        );
        if self.wraps && is_bounded {
            request.extent.blocks.0 = request.extent.blocks.0.min(self.blocks);
        }
        request
    }
}

/// The same operation, not durable at its completion.
const fn without_fua(op: MediumOp) -> MediumOp {
    match op {
        MediumOp::Write { .. } => MediumOp::Write { fua: false },
        MediumOp::WriteAtomic { .. } => MediumOp::WriteAtomic { fua: false },
        MediumOp::CompareAndWrite { .. } => MediumOp::CompareAndWrite { fua: false },
        MediumOp::Or { .. } => MediumOp::Or { fua: false },
        other => other,
    }
}

/// The job, as it was submitted.
fn restored(mut job: Job, mapped: &MappedJob) -> Job {
    job.request = mapped.request;
    job
}

/// A piece has ended: the job, to go on with, or its end.
fn finished_piece(
    finished: CompletedJob,
    mapped: &mut MappedJob,
    block_bytes: u64,
) -> Result<Job, CompletedJob> {
    let CompletedJob { completion, buffer } = finished;
    let job = Job { request: mapped.request, buffer };
    let back = |lba: Lba| {
        let inside = lba.0.saturating_sub(mapped.piece.lba.0);
        Lba(mapped.request.extent.lba.0 + mapped.done + inside)
    };
    let error = match completion.result {
        Ok(MediumDone::Done) => {
            mapped.done += mapped.piece.blocks.0;
            return Ok(job);
        }
        Err(MediumError::Unreadable { lba }) => MediumError::Unreadable { lba: back(lba) },
        Err(MediumError::Unwritable { lba }) => MediumError::Unwritable { lba: back(lba) },
        Err(MediumError::Miscompare { offset }) => {
            let before = (mapped.done * block_bytes) as u32;
            MediumError::Miscompare { offset: offset.saturating_add(before) }
        }
        result => return Err(job.finish(result)),
    };
    Err(job.finish(Err(error)))
}

/// The request for a piece, whose payload begins `offset` bytes into that of the whole.
fn part_of(whole: &MediumRequest, extent: Extent, offset: u64, block_bytes: u64) -> MediumRequest {
    let range = match whole.op {
        MediumOp::Read
        | MediumOp::Write { .. }
        | MediumOp::WriteAtomic { .. }
        | MediumOp::Compare
        | MediumOp::Or { .. } => {
            ByteRange::new(whole.range.start + offset as u32, (extent.blocks.0 * block_bytes) as u32)
        }
        _ => whole.range,
    };
    MediumRequest { extent, range, ..*whole }
}

/// Does what a drive does with blocks that it does not have: they are zeros, whatever is written. `offset` is where the
/// payload is in that of the whole job.
fn lose(request: &MediumRequest, buffer: &mut [u8], offset: u32) -> Result<MediumDone, MediumError> {
    let payload = &mut buffer[request.range.as_usize()];
    let compared = match request.op {
        MediumOp::Read => {
            payload.fill(0);
            &[][..]
        }
        MediumOp::Compare | MediumOp::CompareSame => payload,
        MediumOp::CompareAndWrite { .. } => &payload[..payload.len() / 2],
        MediumOp::Status => {
            return Ok(MediumDone::Provisioning { mapped: false, blocks: request.extent.blocks });
        }
        _ => &[],
    };
    match compared.iter().position(|byte| *byte != 0) {
        None => Ok(MediumDone::Done),
        Some(at) => Err(MediumError::Miscompare { offset: offset.saturating_add(at as u32) }),
    }
}

impl Medium for LyingMedium {
    fn submit(&mut self, mut job: Job) -> Option<CompletedJob> {
        if self.ignores(&job.request, &job.buffer) {
            return Some(job.finish(Ok(MediumDone::Done)));
        }
        if self.has(Lie::IgnoreFua) {
            job.request.op = without_fua(job.request.op);
        }
        if let Some(stuck) = &mut self.stuck {
            stuck.note(&job);
        }
        let finished = self.submit_mapped(job)?;
        Some(self.altered(finished))
    }

    fn flush_submissions(&mut self) {
        self.inner.flush_submissions();
    }

    fn poll(&mut self) -> Option<CompletedJob> {
        loop {
            let finished = self.inner.poll()?;
            if let Some(over) = self.receive(finished) {
                return Some(self.altered(over));
            }
            // The next piece was submitted.
            self.inner.flush_submissions();
        }
    }

    fn lose_power(&mut self, loss: PowerLoss) -> bool {
        self.inner.lose_power(PowerLoss { tears: loss.tears || self.has(Lie::TornWrites), ..loss })
    }

    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.event_fd()
    }

    fn capacity(&self) -> BlockCount {
        let blocks = if self.stored.is_some() { self.announced } else { self.inner.capacity() };
        BlockCount(blocks.0.saturating_add(u64::from(self.has(Lie::CapacityOffByOne))))
    }

    fn measure(&mut self) -> io::Result<BlockCount> {
        self.inner.measure()?;
        Ok(self.capacity())
    }

    fn block_size(&self) -> BlockSize {
        self.inner.block_size()
    }

    fn is_read_only(&self) -> bool {
        self.inner.is_read_only()
    }

    fn writes_atomically(&self) -> bool {
        self.stored.is_none() && self.inner.writes_atomically()
    }

    fn keeps_state(&self) -> bool {
        self.inner.keeps_state()
    }

    fn save_state(&mut self, state: &[u8]) -> io::Result<()> {
        self.inner.save_state(state)
    }

    fn load_state(&self) -> io::Result<Option<Vec<u8>>> {
        self.inner.load_state()
    }

    fn describe(&self) -> String {
        let lies: Vec<String> = self.lies.iter().map(ToString::to_string).collect();
        format!("{}, lies: {}", self.inner.describe(), lies.join(", "))
    }

    fn path(&self) -> Option<&Path> {
        self.inner.path()
    }
}

impl fmt::Display for LieError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TwoSizes => "a drive either wraps around or drops writes, at one size",
            Self::NotBlocks => "the size that is stored is not a whole number of blocks, or zero",
            Self::KeepsMore => "the size that is stored is larger than the drive",
            Self::NoSuchBlock => "the LBA that is stuck is beyond the end of the drive",
        })
    }
}

impl std::error::Error for LieError {}

#[cfg(test)]
mod tests;
