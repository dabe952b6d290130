//! Blocks in memory: the fastest medium, and one that forgets when the process ends.
//!
//! The memory is made in chunks, each when it is first written, and the system backs a chunk with pages only as they are
//! written: a drive much larger than the memory of the machine is fine as long as little of it is used. A bit per 4 KiB
//! granule says whether the granule is mapped (SBC-4 clause 4.7), so that GET LBA STATUS and UNMAP behave as on a thin
//! drive. An unmap of part of a granule zeroes that part and leaves the granule mapped. A medium that is not large is
//! backed with huge pages where the system has them, since random blocks of small pages cost a walk of the page tables
//! each.
//!
//! Unmapped memory goes back to the system: a chunk without a mapped granule is dropped, and one that is mostly
//! unmapped is reallocated with the rest of it.
//!
//! Always true: bytes of an unmapped granule are zero; what has no chunk is unmapped.

use super::{CompletedJob, Geometry, Job, Medium, STATE_BYTES_MAX, Span, ahead, compound};
use device::medium::{MediumDone, MediumError, MediumOp, MediumRequest};
use memmap2::{Advice, MmapMut};
use std::fmt;
use std::io;
use std::ops::Range;
use units::{BlockCount, BlockSize, ByteCount, Extent};

/// Bytes of a chunk.
const CHUNK_BYTES: u64 = 64 << 20;
/// The largest medium that asks for huge pages. Of a larger one little may ever be used, and a huge page makes each block
/// that is take 2 MiB.
const HUGE_PAGES_BYTES_MAX: usize = 1 << 30;
/// Granules of a chunk that may lie idle, unmapped but with a page behind them, before it is reallocated: 8 MiB.
const IDLE_GRANULES_MAX: u32 = 2048;

/// A medium in memory.
pub struct RamMedium {
    geometry: Geometry,
    chunks: Vec<Option<Chunk>>,
    huge_pages: bool,
    mapped: GranuleMap,
    state: Option<Vec<u8>>,
}

/// Memory that was asked of the system, and goes back to it when this is dropped.
struct Chunk {
    bytes: MmapMut,
    /// Granules that have been mapped since: so many may have a page behind them.
    touched: u32,
}

/// The part of a span that lies in one chunk.
struct Piece {
    chunk: usize,
    /// Bytes of the chunk.
    inside: Range<usize>,
    /// Bytes of the span.
    of_span: Range<usize>,
}

/// The system has no room, not even of addresses, for a medium in memory of this size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RamTooLarge {
    /// Size that was asked for.
    pub size: ByteCount,
}

impl RamMedium {
    /// Bytes of a line that [`RamMedium::expect`] counts in.
    pub const LINE_BYTES: usize = ahead::LINE_BYTES;

    /// A medium of the whole blocks in `size`, all unmapped.
    ///
    /// # Errors
    /// If the system has no room for it.
    pub fn new(size: ByteCount, block_size: BlockSize) -> Result<Self, RamTooLarge> {
        let geometry = Geometry::of(size, block_size);
        let too_large = RamTooLarge { size };
        let len = usize::try_from(geometry.capacity.0 * geometry.block_bytes()).map_err(|_| too_large)?;
        // Fails now and not in the middle of a write. No page is touched, so it costs nothing.
        Vec::<u8>::new().try_reserve_exact(len).map_err(|_| too_large)?;
        let count = len.div_ceil(CHUNK_BYTES as usize);
        let chunks = (0..count).map(|_| None).collect();
        let huge_pages = len <= HUGE_PAGES_BYTES_MAX;
        Ok(Self { geometry, chunks, huge_pages, mapped: GranuleMap::new(len), state: None })
    }

    /// The blocks of `extent` will be read or written soon: has some lines of them fetched into a near cache, counted in units
    /// of [`RamMedium::LINE_BYTES`] from the first. Nothing else comes of it; lines that do not exist are left out.
    pub fn expect(&self, extent: Extent, lines: Range<usize>) {
        if !extent.fits(self.geometry.capacity) {
            return;
        }
        let block_bytes = self.geometry.block_bytes();
        let (start, len) = (extent.lba.0 * block_bytes, extent.blocks.0 * block_bytes);
        let at = |line: usize| (line as u64).saturating_mul(ahead::LINE_BYTES as u64).min(len);
        let (from, to) = (start + at(lines.start), start + at(lines.end));
        for piece in pieces(Span { start: from, len: to.saturating_sub(from) }) {
            if let Some(bytes) = self.stored(&piece) {
                ahead::fetch(bytes);
            }
        }
    }

    /// Does what `request` asks with a buffer, as [`Medium::submit`] with a job of both.
    ///
    /// # Errors
    /// Whatever the job would fail with.
    pub fn perform(&mut self, request: &MediumRequest, buffer: &mut [u8]) -> Result<MediumDone, MediumError> {
        let span = self.geometry.span(request, buffer)?;
        let len = span.len as usize;
        let payload = &mut buffer[request.range.as_usize()];
        let block_bytes = self.geometry.block_size.bytes() as usize;
        match request.op {
            MediumOp::Read => self.read(span, &mut payload[..len]),
            MediumOp::Write { .. } | MediumOp::WriteAtomic { .. } => self.write(span, &payload[..len])?,
            MediumOp::Compare => self.compare(span, &payload[..len])?,
            MediumOp::CompareAndWrite { .. } => {
                let (expected, new) = payload.split_at(len);
                self.compare(span, expected)?;
                self.write(span, &new[..len])?;
            }
            MediumOp::Or { .. } => {
                self.change(span, |stored, at| compound::or_into(stored, &payload[at]))?;
            }
            MediumOp::CompareSame => self.compare_same(span, &payload[..block_bytes])?,
            MediumOp::WriteSame { unmap: true } if compound::is_zero(&payload[..block_bytes]) => {
                self.unmap(span);
            }
            MediumOp::WriteSame { .. } => {
                let pattern = &payload[..block_bytes];
                self.change(span, |stored, _| compound::fill_with_pattern(stored, pattern))?;
            }
            MediumOp::WriteZeroes => self.change(span, |stored, _| stored.fill(0))?,
            MediumOp::Unmap => self.unmap(span),
            MediumOp::Status => return Ok(self.status(span)),
            MediumOp::Verify | MediumOp::Flush | MediumOp::Prefetch => {}
            MediumOp::SaveState => self.save_state(buffer).map_err(|_| MediumError::OutOfSpace)?,
        }
        Ok(MediumDone::Done)
    }

    /// Does what a write asks, whose bytes `copy` carries: to where they belong, from as many of `buffer`.
    pub(super) fn write_by(
        &mut self,
        request: &MediumRequest,
        buffer: &[u8],
        copy: impl Fn(&mut [u8], &[u8]),
    ) -> Result<MediumDone, MediumError> {
        let span = self.geometry.span(request, buffer)?;
        let payload = &buffer[request.range.as_usize()][..span.len as usize];
        self.change(span, |stored, at| copy(stored, &payload[at]))?;
        Ok(MediumDone::Done)
    }

    pub(super) fn read(&self, span: Span, payload: &mut [u8]) {
        for piece in pieces(span) {
            let place = &mut payload[piece.of_span.clone()];
            match self.stored(&piece) {
                Some(stored) => place.copy_from_slice(stored),
                None => place.fill(0),
            }
        }
    }

    pub(super) fn write(&mut self, span: Span, payload: &[u8]) -> Result<(), MediumError> {
        self.change(span, |stored, at| stored.copy_from_slice(&payload[at]))
    }

    /// Maps a span and has its bytes changed, all of them or, for want of memory, none. `change` is given a part of
    /// the span and its range in the span.
    fn change(&mut self, span: Span, change: impl Fn(&mut [u8], Range<usize>)) -> Result<(), MediumError> {
        for piece in pieces(span) {
            self.provide(piece.chunk)?;
        }
        for piece in pieces(span) {
            if let Some(chunk) = &mut self.chunks[piece.chunk] {
                change(&mut chunk.bytes[piece.inside.clone()], piece.of_span.clone());
                chunk.touched += self.mapped.map(piece.span());
            }
        }
        Ok(())
    }

    /// The chunk exists, or is made: of zeroes, without a page behind it.
    fn provide(&mut self, chunk: usize) -> Result<(), MediumError> {
        if self.chunks[chunk].is_none() {
            self.chunks[chunk] = Some(Chunk::new(self.huge_pages).ok_or(MediumError::OutOfSpace)?);
        }
        Ok(())
    }

    fn compare(&self, span: Span, expected: &[u8]) -> Result<(), MediumError> {
        for piece in pieces(span) {
            let part = &expected[piece.of_span.clone()];
            let difference = match self.stored(&piece) {
                Some(stored) => compound::first_difference(stored, part),
                None => part.iter().position(|&byte| byte != 0),
            };
            expect_equal(difference.map(|offset| piece.of_span.start + offset))?;
        }
        Ok(())
    }

    fn compare_same(&self, span: Span, pattern: &[u8]) -> Result<(), MediumError> {
        for piece in pieces(span) {
            let difference = match self.stored(&piece) {
                Some(stored) => compound::first_difference_from_pattern(stored, pattern),
                None => pattern.iter().position(|&byte| byte != 0),
            };
            expect_equal(difference.map(|offset| piece.of_span.start + offset))?;
        }
        Ok(())
    }

    fn stored(&self, piece: &Piece) -> Option<&[u8]> {
        self.chunks[piece.chunk].as_ref().map(|chunk| &chunk.bytes[piece.inside.clone()])
    }

    /// Zeroes a span, without touching what is unmapped and so zero; then releases memory that is no longer needed.
    fn unmap(&mut self, span: Span) {
        for piece in pieces(span) {
            self.zero(&piece);
            self.mapped.unmap(piece.span());
            self.tidy(piece.chunk);
        }
    }

    fn zero(&mut self, piece: &Piece) {
        let Some(chunk) = &mut self.chunks[piece.chunk] else { return };
        let span = piece.span();
        let mut at = span.start;
        while at < span.end() {
            let run = self.mapped.run(at, span.end());
            if self.mapped.is_mapped(at) {
                let start = (at % CHUNK_BYTES) as usize;
                chunk.bytes[start..start + run.len as usize].fill(0);
            }
            at = run.end();
        }
    }

    /// Drops an unmapped chunk, and reallocates one that is mostly unmapped.
    fn tidy(&mut self, index: usize) {
        let Some(chunk) = &mut self.chunks[index] else { return };
        let start = index as u64 * CHUNK_BYTES;
        let mapped = self.mapped.count(start, start + CHUNK_BYTES);
        if mapped == 0 {
            self.chunks[index] = None;
            return;
        }
        let idle = chunk.touched.saturating_sub(mapped);
        if idle <= IDLE_GRANULES_MAX.max(chunk.touched / 2) {
            return;
        }
        // What is left is scattered, so pages are small. Without memory for both the old one has to do.
        let Some(mut fresh) = Chunk::new(false) else { return };
        let mut at = start;
        let end = start + chunk.bytes.len() as u64;
        while at < end {
            let run = self.mapped.run(at, end);
            if self.mapped.is_mapped(at) {
                let inside = (at - start) as usize..(run.end() - start) as usize;
                fresh.bytes[inside.clone()].copy_from_slice(&chunk.bytes[inside]);
            }
            at = run.end();
        }
        *chunk = Chunk { touched: mapped, ..fresh };
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

impl Chunk {
    /// A chunk of zeroes, if the system has room for it.
    fn new(huge_pages: bool) -> Option<Self> {
        let bytes = MmapMut::map_anon(CHUNK_BYTES as usize).ok()?;
        if huge_pages {
            // Systems without huge pages say so, and nothing is lost.
            let _ = bytes.advise(Advice::HugePage);
        }
        Some(Self { bytes, touched: 0 })
    }
}

impl Piece {
    /// The same as bytes of the medium.
    const fn span(&self) -> Span {
        let start = self.chunk as u64 * CHUNK_BYTES + self.inside.start as u64;
        Span { start, len: (self.inside.end - self.inside.start) as u64 }
    }
}

/// A span, cut where chunks end.
fn pieces(span: Span) -> impl Iterator<Item = Piece> {
    let mut at = span.start;
    std::iter::from_fn(move || {
        if at >= span.end() {
            return None;
        }
        let (chunk, first) = (at / CHUNK_BYTES, at % CHUNK_BYTES);
        let len = (CHUNK_BYTES - first).min(span.end() - at);
        let done = at - span.start;
        at += len;
        Some(Piece {
            chunk: chunk as usize,
            inside: first as usize..(first + len) as usize,
            of_span: done as usize..(done + len) as usize,
        })
    })
}

/// A difference at `offset` becomes a miscompare.
const fn expect_equal(offset: Option<usize>) -> Result<(), MediumError> {
    match offset {
        None => Ok(()),
        Some(offset) => Err(MediumError::Miscompare { offset: offset as u32 }),
    }
}

impl Medium for RamMedium {
    fn submit(&mut self, mut job: Job) -> Option<CompletedJob> {
        let result = self.perform(&job.request, &mut job.buffer);
        Some(job.finish(result))
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
        "RAM, lost on exit".into()
    }
}

impl fmt::Debug for RamMedium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RamMedium").field("geometry", &self.geometry).finish_non_exhaustive()
    }
}

impl fmt::Display for RamTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "out of memory for a medium of {}; choose a smaller size or use an image file", self.size)
    }
}

impl std::error::Error for RamTooLarge {}

impl Span {
    const fn end(self) -> u64 {
        self.start + self.len
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

    /// Maps every granule that the span touches. How many of them were not.
    fn map(&mut self, span: Span) -> u32 {
        self.set(span.start / GRANULE_BYTES, span.end().div_ceil(GRANULE_BYTES), true)
    }

    /// Granules that are mapped between two places, which are words' limits.
    fn count(&self, from: u64, to: u64) -> u32 {
        let word = |at: u64| (at / GRANULE_BYTES / 64) as usize;
        let words = &self.words[word(from)..word(to).min(self.words.len())];
        words.iter().map(|word| word.count_ones()).sum()
    }

    /// Unmaps every granule that lies in the span as a whole.
    fn unmap(&mut self, span: Span) {
        self.set(span.start.div_ceil(GRANULE_BYTES), span.end() / GRANULE_BYTES, false);
    }

    /// Granules `from..to`, a word at a time. How many of them were not like that.
    fn set(&mut self, mut from: u64, to: u64, mapped: bool) -> u32 {
        let mut changed = 0;
        while from < to {
            let word = &mut self.words[(from / 64) as usize];
            let count = (64 - from % 64).min(to - from);
            let bits = u64::MAX >> (64 - count) << (from % 64);
            changed += (bits & if mapped { !*word } else { *word }).count_ones();
            *word = if mapped { *word | bits } else { *word & !bits };
            from += count;
        }
        changed
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

/// Bytes that are mapped and unmapped as one.
const GRANULE_BYTES: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::super::suite;
    use super::*;
    use std::os::unix::fs::FileExt;
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

    const MIB: u64 = 1 << 20;

    /// Bytes of a medium that have a page behind them, by the system's table of pages
    /// (`Documentation/admin-guide/mm/pagemap.rst` of Linux). Other tests of this process do not
    /// change it, as they would a process's resident memory.
    fn resident(medium: &RamMedium) -> u64 {
        const PAGE: u64 = 4 * KIB;
        let pagemap = std::fs::File::open("/proc/self/pagemap").unwrap();
        let chunks = medium.chunks.iter().flatten().map(|chunk| &chunk.bytes);
        let pages = chunks.map(|bytes| {
            let mut entries = vec![0; bytes.len() / PAGE as usize * 8];
            pagemap.read_exact_at(&mut entries, bytes.as_ptr().addr() as u64 / PAGE * 8).unwrap();
            // Bit 63: present; bit 62: swapped.
            entries.chunks_exact(8).filter(|entry| entry[7] & 0xc0 != 0).count() as u64
        });
        pages.sum::<u64>() * PAGE
    }

    #[test]
    fn what_is_unmapped_goes_back_to_the_system() {
        let mut medium = medium(192 * MIB);
        let megabyte = vec![7; MIB as usize];
        for at in 0..192 {
            suite::write(&mut medium, at * 2048, &megabyte, false).unwrap();
        }
        let full = resident(&medium);
        assert_eq!(full, 192 * MIB);
        // All but a granule in every megabyte of the first chunk, and all of the others.
        for at in 0..64 {
            suite::bare(&mut medium, MediumOp::Unmap, Extent::new(at * 2048 + 8, 2040)).unwrap();
        }
        suite::bare(&mut medium, MediumOp::Unmap, Extent::new(64 * 2048, 128 * 2048)).unwrap();
        let left = resident(&medium);
        assert!(left < full - 140 * MIB, "{left} of {full} bytes are still there");
        assert_eq!(suite::read(&mut medium, Extent::new(5 * 2048 + 7, 2)), Ok([[7; 512], [0; 512]].concat()));
        assert_eq!(status(&mut medium, 63 * 2048, 9), (true, 8));
    }

    #[test]
    fn spans_cross_chunks() {
        let mut medium = medium(130 * MIB);
        let lba = 64 * 2048 - 3;
        suite::write(&mut medium, lba, &[9; 6 * 512], false).unwrap();
        assert_eq!(suite::read(&mut medium, Extent::new(lba - 1, 8)).unwrap()[512..7 * 512], [9; 6 * 512]);
        suite::bare(&mut medium, MediumOp::Unmap, Extent::new(64 * 2048, 130 * 2048 - 64 * 2048)).unwrap();
        assert_eq!(
            suite::read(&mut medium, Extent::new(lba, 4)).unwrap(),
            [[9; 3 * 512].as_slice(), &[0; 512]].concat()
        );
        let last = 130 * 2048 - 1;
        suite::write(&mut medium, last, &[1; 512], false).unwrap();
        assert_eq!(suite::read(&mut medium, Extent::new(last, 1)), Ok(vec![1; 512]));
    }

    #[test]
    fn a_medium_far_larger_than_memory_is_reported_not_tried() {
        let size = ByteCount(1 << 60);
        assert_eq!(RamMedium::new(size, BlockSize::B512).err(), Some(RamTooLarge { size }));
    }
}
