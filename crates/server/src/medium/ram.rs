//! Blocks in memory: the fastest medium, and one that forgets when the process ends.
//!
//! The memory is one allocation of zeroes, which the system backs with pages only as they are written: a drive much
//! larger than the memory of the machine is fine as long as little of it is used. A bit per 4 KiB granule says whether
//! the granule is mapped (SBC-4 clause 4.7), so that GET LBA STATUS and UNMAP behave as on a thin drive. An unmap of
//! part of a granule zeroes that part and leaves the granule mapped.
//!
//! Left out: pages of unmapped granules are zeroed, not given back to the system.
//!
//! Always true: bytes of an unmapped granule are zero.

use super::{Finished, Geometry, Job, Medium, STATE_BYTES_MAX, Span, compound};
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use target::medium::{MediumDone, MediumError, MediumOp, MediumRequest};
use units::{BlockCount, BlockSize, ByteCount};

/// A medium in memory.
pub struct RamMedium {
    geometry: Geometry,
    bytes: Vec<u8>,
    mapped: GranuleMap,
    state: Option<Vec<u8>>,
}

/// The system has no room, not even of addresses, for a medium in memory of this size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RamTooLarge {
    /// What was asked for.
    pub size: ByteCount,
}

impl RamMedium {
    /// A medium of the whole blocks in `size`, all unmapped.
    ///
    /// # Errors
    /// If the system has no room for it.
    pub fn new(size: ByteCount, block_size: BlockSize) -> Result<Self, RamTooLarge> {
        let geometry = Geometry::of(size, block_size);
        let too_large = RamTooLarge { size };
        let len = usize::try_from(geometry.capacity.0 * geometry.block_bytes()).map_err(|_| too_large)?;
        // The macro below would end the process where this refuses. Nothing is touched, so it costs nothing.
        Vec::<u8>::new().try_reserve_exact(len).map_err(|_| too_large)?;
        Ok(Self { geometry, bytes: vec![0; len], mapped: GranuleMap::new(len), state: None })
    }

    fn perform(&mut self, request: &MediumRequest, buffer: &mut [u8]) -> Result<MediumDone, MediumError> {
        let span = self.geometry.span(request, buffer)?;
        let payload = &mut buffer[request.range.as_usize()];
        let stored = &mut self.bytes[span.as_usize()];
        let block_bytes = self.geometry.block_size.bytes() as usize;
        match request.op {
            MediumOp::Read => payload[..stored.len()].copy_from_slice(stored),
            MediumOp::Write { .. } | MediumOp::WriteAtomic { .. } => {
                stored.copy_from_slice(&payload[..stored.len()]);
                self.mapped.map(span);
            }
            MediumOp::Compare => expect_equal(compound::first_difference(stored, payload))?,
            MediumOp::CompareAndWrite { .. } => {
                let (expected, new) = payload.split_at(stored.len());
                expect_equal(compound::first_difference(stored, expected))?;
                stored.copy_from_slice(&new[..stored.len()]);
                self.mapped.map(span);
            }
            MediumOp::Or { .. } => {
                compound::or_into(stored, payload);
                self.mapped.map(span);
            }
            MediumOp::CompareSame => {
                expect_equal(compound::first_difference_from_pattern(stored, &payload[..block_bytes]))?;
            }
            MediumOp::WriteSame { unmap: true } if compound::is_zero(&payload[..block_bytes]) => {
                self.zero(span);
                self.mapped.unmap(span);
            }
            MediumOp::WriteSame { .. } => {
                compound::fill_with_pattern(stored, &payload[..block_bytes]);
                self.mapped.map(span);
            }
            MediumOp::WriteZeroes => {
                self.zero(span);
                self.mapped.map(span);
            }
            MediumOp::Unmap => {
                self.zero(span);
                self.mapped.unmap(span);
            }
            MediumOp::Status => return Ok(self.status(span)),
            MediumOp::Verify | MediumOp::Flush | MediumOp::Prefetch => {}
            MediumOp::SaveState => self.save_state(buffer).map_err(|_| MediumError::OutOfSpace)?,
        }
        Ok(MediumDone::Done)
    }

    /// Zeroes a span, without touching what is unmapped and so zero.
    fn zero(&mut self, span: Span) {
        let mut at = span.start;
        while at < span.end() {
            let run = self.mapped.run(at, span.end());
            if self.mapped.is_mapped(at) {
                self.bytes[run.as_usize()].fill(0);
            }
            at = run.end();
        }
    }

    /// Whether the first block is mapped, and how many like it follow. A block is mapped with its granule.
    fn status(&self, span: Span) -> MediumDone {
        let run = self.mapped.run(span.start, span.end());
        MediumDone::Provisioning {
            mapped: self.mapped.is_mapped(span.start),
            blocks: BlockCount((run.len / self.geometry.block_bytes()).max(1)),
        }
    }
}

/// A difference at `offset` becomes a miscompare.
const fn expect_equal(offset: Option<usize>) -> Result<(), MediumError> {
    match offset {
        None => Ok(()),
        Some(offset) => Err(MediumError::Miscompare { offset: offset as u32 }),
    }
}

impl Medium for RamMedium {
    fn submit(&mut self, mut job: Job) -> Option<Finished> {
        let result = self.perform(&job.request, &mut job.buffer);
        Some(job.finish(result))
    }

    fn flush_submissions(&mut self) {}

    fn poll(&mut self) -> Option<Finished> {
        None
    }

    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn capacity(&self) -> BlockCount {
        self.geometry.capacity
    }

    fn block_size(&self) -> BlockSize {
        self.geometry.block_size
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn writes_atomically(&self) -> bool {
        true
    }

    fn keeps_state(&self) -> bool {
        false
    }

    fn save_state(&mut self, state: &[u8]) -> io::Result<()> {
        if state.len() > STATE_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.state = Some(state.to_vec());
        Ok(())
    }

    fn load_state(&self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.state.clone())
    }

    fn describe(&self) -> String {
        "memory, gone when the process ends".into()
    }
}

impl fmt::Debug for RamMedium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RamMedium").field("geometry", &self.geometry).finish_non_exhaustive()
    }
}

impl fmt::Display for RamTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no memory for a medium of {}: ask for a smaller one, or use an image file", self.size)
    }
}

impl std::error::Error for RamTooLarge {}

impl Span {
    const fn end(self) -> u64 {
        self.start + self.len
    }

    /// For indexing memory that is known to hold the span.
    const fn as_usize(self) -> core::ops::Range<usize> {
        self.start as usize..self.end() as usize
    }
}

/// Which granules are mapped: a bit for each.
struct GranuleMap {
    words: Vec<u64>,
}

impl GranuleMap {
    fn new(bytes: usize) -> Self {
        Self { words: vec![0; bytes.div_ceil(GRANULE_BYTES as usize).div_ceil(64)] }
    }

    fn is_mapped(&self, at: u64) -> bool {
        let granule = at / GRANULE_BYTES;
        self.words[(granule / 64) as usize] & 1 << (granule % 64) != 0
    }

    /// Maps every granule that the span touches.
    fn map(&mut self, span: Span) {
        self.set(span.start / GRANULE_BYTES, span.end().div_ceil(GRANULE_BYTES), true);
    }

    /// Unmaps every granule that lies in the span as a whole.
    fn unmap(&mut self, span: Span) {
        self.set(span.start.div_ceil(GRANULE_BYTES), span.end() / GRANULE_BYTES, false);
    }

    /// Granules `from..to`, a word at a time.
    fn set(&mut self, mut from: u64, to: u64, mapped: bool) {
        while from < to {
            let word = &mut self.words[(from / 64) as usize];
            let count = (64 - from % 64).min(to - from);
            let bits = u64::MAX >> (64 - count) << (from % 64);
            *word = if mapped { *word | bits } else { *word & !bits };
            from += count;
        }
    }

    /// The span from `at`, within `end`, whose granules are mapped or not like the one at `at`.
    fn run(&self, at: u64, end: u64) -> Span {
        if at >= end {
            return Span { start: at, len: 0 };
        }
        let mapped = self.is_mapped(at);
        let mut granule = at / GRANULE_BYTES;
        while granule * GRANULE_BYTES < end {
            let word = self.words[(granule / 64) as usize];
            let unlike = if mapped { !word } else { word } >> (granule % 64);
            if unlike != 0 {
                granule += u64::from(unlike.trailing_zeros());
                break;
            }
            granule = (granule / 64 + 1) * 64;
        }
        Span { start: at, len: (granule * GRANULE_BYTES).min(end) - at }
    }
}

/// What is mapped and unmapped as one.
const GRANULE_BYTES: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::super::suite;
    use super::*;
    use units::Extent;

    const KIB: u64 = 1024;

    fn medium(size: u64) -> RamMedium {
        RamMedium::new(ByteCount(size), BlockSize::B512).unwrap()
    }

    fn status(medium: &mut RamMedium, lba: u64, blocks: u64) -> (bool, u64) {
        match suite::bare(medium, MediumOp::Status, Extent::new(lba, blocks)) {
            Ok(MediumDone::Provisioning { mapped, blocks }) => (mapped, blocks.0),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn memory_behaves_like_the_model() {
        suite::behaves_like_the_model(|size, block_size| Box::new(RamMedium::new(size, block_size).unwrap()));
    }

    #[test]
    fn memory_refuses_what_the_target_never_asks() {
        suite::refuses_what_the_target_never_asks(&mut medium(64 * KIB));
    }

    #[test]
    fn memory_keeps_the_state_of_the_unit() {
        suite::keeps_the_state_of_the_unit(&mut medium(4 * KIB));
    }

    #[test]
    fn a_granule_is_mapped_by_a_write_and_unmapped_as_a_whole() {
        let mut medium = medium(1024 * KIB);
        assert_eq!(status(&mut medium, 0, 2048), (false, 2048));
        suite::write(&mut medium, 8, &[1; 512], false).unwrap();
        assert_eq!(status(&mut medium, 3, 100), (false, 5));
        assert_eq!(status(&mut medium, 8, 100), (true, 8));
        suite::bare(&mut medium, MediumOp::Unmap, Extent::new(8, 7)).unwrap();
        assert_eq!(status(&mut medium, 8, 1), (true, 1));
        suite::bare(&mut medium, MediumOp::Unmap, Extent::new(8, 8)).unwrap();
        assert_eq!(status(&mut medium, 8, 1), (false, 1));
    }

    #[test]
    fn zeroes_keep_their_space() {
        let mut medium = medium(64 * KIB);
        suite::bare(&mut medium, MediumOp::WriteZeroes, Extent::new(8, 16)).unwrap();
        assert_eq!(status(&mut medium, 8, 100), (true, 16));
        assert_eq!(suite::read(&mut medium, Extent::new(8, 1)), Ok(vec![0; 512]));
    }

    #[test]
    fn runs_cross_words_of_the_map() {
        let mut medium = medium(4096 * KIB);
        suite::write(&mut medium, 0, &[1; 600 * 1024], false).unwrap();
        assert_eq!(status(&mut medium, 0, 8192), (true, 1200));
        assert_eq!(status(&mut medium, 1200, 6992), (false, 6992));
    }

    #[test]
    fn a_medium_far_larger_than_memory_is_told_not_tried() {
        let size = ByteCount(1 << 60);
        assert_eq!(RamMedium::new(size, BlockSize::B512).err(), Some(RamTooLarge { size }));
    }
}
