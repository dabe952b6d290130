//! A model of block contents: what a host may read, given what it wrote and how that completed.
//!
//! Each write is numbered, and each block stores number and address in every word. A write that
//! completed with GOOD hides every write that completed before it began. Of concurrent writes
//! either may win; a failed write may be present or absent, block by block; what a read has
//! returned is final. For a drive with a volatile cache a second set per block holds what may be
//! there after a power loss, which only a flush or a write-through narrows.
//!
//! Invariant: permitted behaviour is never reported, so every report is a fault.

use std::collections::BTreeMap;
use std::fmt;
use units::{BlockSize, Extent, Lba};

/// Identifies a write. 0 is the initial content, zeroes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WriteNumber(pub u32);

/// An access to blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockAccess {
    /// Read.
    Read,
    /// Write, `through` a volatile cache or not.
    Write {
        /// Durable on completion.
        through: bool,
    },
    /// The blocks read as zeroes afterwards.
    Zero,
    /// Everything that completed before becomes durable.
    Flush,
}

/// A block holds impossible content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnexpectedBlock {
    /// The block.
    pub lba: Lba,
    /// The write that it holds, if any.
    pub holds: Option<WriteNumber>,
}

/// The blocks of a drive as the host knows them.
#[derive(Clone, Debug)]
pub struct BlockModel {
    block_size: BlockSize,
    is_cached: bool,
    /// Logical clock of starts and completions.
    clock: u64,
    writes: Vec<Write>,
    /// Possible content of each block.
    now: Vec<Vec<WriteNumber>>,
    /// Possible content of each block after a power loss.
    durable: Vec<Vec<WriteNumber>>,
    /// Outstanding accesses by the host's id.
    open: BTreeMap<u64, Open>,
}

#[derive(Clone, Copy, Debug)]
struct Write {
    extent: Extent,
    begun: u64,
    ended: Option<u64>,
    holds: Holds,
    state: Safety,
}

/// Content of the blocks of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    /// Write number and address.
    Itself,
    Zeroes,
    /// Unknown: the host took a status of another command for this one's, and the drive took the
    /// data of the next command under this tag.
    Anything,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Safety {
    /// Not completed with GOOD, or in a volatile cache at a power loss.
    Unknown,
    /// Completed with GOOD, possibly in a volatile cache.
    Cached,
    /// Survives a power loss.
    Durable,
}

#[derive(Clone, Debug)]
struct Open {
    access: BlockAccess,
    begun: u64,
    extent: Extent,
    /// For a write: its number.
    number: WriteNumber,
    /// For a read: possible content of each block.
    allowed: Vec<Vec<WriteNumber>>,
}

impl BlockModel {
    /// Creates `blocks` blocks of zeroes. `is_cached`: the drive has a volatile cache.
    pub fn new(blocks: u32, block_size: BlockSize, is_cached: bool) -> Self {
        let first = WriteNumber(0);
        let of_first = vec![vec![first]; blocks as usize];
        let extent = Extent::new(0, u64::from(blocks));
        let write = Write { extent, begun: 0, ended: Some(0), holds: Holds::Zeroes, state: Safety::Durable };
        Self {
            block_size,
            is_cached,
            clock: 0,
            writes: vec![write],
            now: of_first.clone(),
            durable: of_first,
            open: BTreeMap::new(),
        }
    }

    /// Starts an access under an unused id. Returns the number of a write, for [`Self::fill`].
    pub fn begin(&mut self, id: u64, access: BlockAccess, extent: Extent) -> WriteNumber {
        self.clock += 1;
        let mut open =
            Open { access, begun: self.clock, extent, number: WriteNumber(0), allowed: Vec::new() };
        match access {
            BlockAccess::Read => open.allowed = self.now[places(extent)].to_vec(),
            BlockAccess::Write { .. } | BlockAccess::Zero => open.number = self.begin_write(access, extent),
            BlockAccess::Flush => {}
        }
        let number = open.number;
        self.open.insert(id, open);
        number
    }

    fn begin_write(&mut self, access: BlockAccess, extent: Extent) -> WriteNumber {
        let number = WriteNumber(self.writes.len() as u32);
        let holds = if access == BlockAccess::Zero { Holds::Zeroes } else { Holds::Itself };
        let (begun, state) = (self.clock, Safety::Unknown);
        self.writes.push(Write { extent, begun, ended: None, holds, state });
        for place in places(extent) {
            self.now[place].push(number);
            self.durable[place].push(number);
        }
        for read in self.open.values_mut().filter(|open| open.access == BlockAccess::Read) {
            for place in places(extent) {
                let at = place.checked_sub(places(read.extent).start);
                if let Some(allowed) = at.and_then(|at| read.allowed.get_mut(at)) {
                    allowed.push(number);
                }
            }
        }
        number
    }

    /// Fills in the bytes of a write from block `first` on.
    pub fn fill(&self, number: WriteNumber, first: Lba, bytes: &mut [u8]) {
        let block_bytes = self.block_size.bytes() as usize;
        for (lba, block) in (first.0..).zip(bytes.chunks_mut(block_bytes)) {
            for (at, word) in block.chunks_exact_mut(WORD_BYTES).enumerate() {
                word.copy_from_slice(&word_of(number, lba, at).to_be_bytes());
            }
        }
    }

    /// Completes an access; `well` if with GOOD. `bytes` is what a read returned.
    ///
    /// # Errors
    /// The first block with impossible content.
    pub fn end(&mut self, id: u64, well: bool, bytes: &[u8]) -> Result<(), UnexpectedBlock> {
        self.clock += 1;
        let Some(open) = self.open.remove(&id) else { return Ok(()) };
        match open.access {
            BlockAccess::Read if well => return self.end_read(&open, bytes),
            BlockAccess::Read => {}
            BlockAccess::Write { through } => self.end_write(open.number, well, through),
            BlockAccess::Zero => self.end_write(open.number, well, false),
            BlockAccess::Flush if well => self.end_flush(open.begun),
            BlockAccess::Flush => {}
        }
        Ok(())
    }

    /// Forgets an access whose outcome is unknown: a read is not checked, and the blocks of a write
    /// may hold anything until [`Self::settle`] and the next write.
    pub fn mark_unknown(&mut self, id: u64) {
        let Some(open) = self.open.remove(&id) else { return };
        let writes = matches!(open.access, BlockAccess::Write { .. } | BlockAccess::Zero);
        if let Some(write) = self.writes.get_mut(open.number.0 as usize).filter(|_| writes) {
            write.holds = Holds::Anything;
        }
    }

    /// Ends all outstanding accesses: the drive was reset or disconnected.
    pub fn settle(&mut self) {
        self.clock += 1;
        for write in &mut self.writes {
            write.ended.get_or_insert(self.clock);
        }
        self.open.clear();
    }

    /// Applies a power loss: [`Self::settle`], and the volatile cache is lost.
    pub fn lose_power(&mut self) {
        self.settle();
        for write in self.writes.iter_mut().filter(|write| write.state == Safety::Cached) {
            // A later flush does not make it durable.
            write.state = Safety::Unknown;
        }
        self.now.clone_from(&self.durable);
    }

    fn end_write(&mut self, number: WriteNumber, well: bool, through: bool) {
        let clock = self.clock;
        let Some(write) = self.writes.get_mut(number.0 as usize) else { return };
        write.ended = Some(clock);
        if !well {
            return;
        }
        let is_durable = through || !self.is_cached;
        write.state = if is_durable { Safety::Durable } else { Safety::Cached };
        let write = *write;
        hide(&mut self.now, &self.writes, number, write);
        if is_durable {
            hide(&mut self.durable, &self.writes, number, write);
        }
    }

    fn end_flush(&mut self, begun: u64) {
        for at in 0..self.writes.len() {
            let write = self.writes[at];
            if write.state == Safety::Cached && write.ended.is_some_and(|ended| ended < begun) {
                self.writes[at].state = Safety::Durable;
                hide(&mut self.durable, &self.writes, WriteNumber(at as u32), write);
            }
        }
    }

    fn end_read(&mut self, open: &Open, bytes: &[u8]) -> Result<(), UnexpectedBlock> {
        let blocks = bytes.chunks_exact(self.block_size.bytes() as usize);
        for ((place, allowed), bytes) in places(open.extent).zip(&open.allowed).zip(blocks) {
            let lba = place as u64;
            let found = number_of(bytes, lba);
            let is_zero = bytes.iter().all(|&byte| byte == 0);
            let fits = |number: &WriteNumber| match self.writes[number.0 as usize].holds {
                Holds::Itself => found == Some(*number),
                Holds::Zeroes => is_zero,
                Holds::Anything => true,
            };
            if !allowed.iter().any(fits) {
                let holds = if is_zero { Some(WriteNumber(0)) } else { found };
                return Err(UnexpectedBlock { lba: Lba(lba), holds });
            }
            // A write that completed before the read began and is absent stays absent.
            let writes = &self.writes;
            self.now[place].retain(|number| {
                let may_come = writes[number.0 as usize].ended.is_none_or(|ended| ended > open.begun);
                may_come || fits(number)
            });
        }
        Ok(())
    }
}

/// Removes the writes that completed before a successful write began.
fn hide(blocks: &mut [Vec<WriteNumber>], writes: &[Write], number: WriteNumber, write: Write) {
    for place in places(write.extent) {
        blocks[place].retain(|&other| {
            other == number || writes[other.0 as usize].ended.is_none_or(|ended| ended > write.begun)
        });
    }
}

fn places(extent: Extent) -> std::ops::Range<usize> {
    let first = extent.lba.0 as usize;
    first..first + extent.blocks.0 as usize
}

/// Bytes of a word that identifies write and address.
const WORD_BYTES: usize = size_of::<u64>();

/// Returns word `at` of a block, from write, address and position.
fn word_of(number: WriteNumber, lba: u64, at: usize) -> u64 {
    (u64::from(number.0) << u32::BITS | lba) ^ place_word(at)
}

/// Zero for the first word, so that it identifies the write.
const fn place_word(at: usize) -> u64 {
    (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Returns the write whose complete block this is at this address.
fn number_of(bytes: &[u8], lba: u64) -> Option<WriteNumber> {
    let (first, _) = bytes.split_first_chunk::<WORD_BYTES>()?;
    let number = WriteNumber((u64::from_be_bytes(*first) >> u32::BITS) as u32);
    let mut words = bytes.chunks_exact(WORD_BYTES).enumerate();
    words.all(|(at, word)| word == word_of(number, lba, at).to_be_bytes()).then_some(number)
}

impl fmt::Display for WriteNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("zeroes"),
            number => write!(f, "write {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THROUGH: BlockAccess = BlockAccess::Write { through: true };
    const CACHED: BlockAccess = BlockAccess::Write { through: false };

    /// Four blocks of a drive with a volatile cache.
    struct Four(BlockModel);

    impl Four {
        fn new() -> Self {
            Self(BlockModel::new(4, BlockSize::B512, true))
        }

        /// Writes block 1; `well` if with GOOD.
        fn write(&mut self, id: u64, access: BlockAccess, well: bool) -> WriteNumber {
            let number = self.0.begin(id, access, Extent::new(1, 1));
            self.0.end(id, well, &[]).unwrap();
            number
        }

        fn flush(&mut self) {
            self.0.begin(90, BlockAccess::Flush, Extent::new(0, 0));
            self.0.end(90, true, &[]).unwrap();
        }

        /// Reads block 1, which holds this write.
        fn read(&mut self, number: WriteNumber) -> Result<(), UnexpectedBlock> {
            self.0.begin(91, BlockAccess::Read, Extent::new(1, 1));
            self.found(91, number)
        }

        fn found(&mut self, id: u64, number: WriteNumber) -> Result<(), UnexpectedBlock> {
            let mut bytes = [0; 512];
            if number.0 > 0 {
                self.0.fill(number, Lba(1), &mut bytes);
            }
            self.0.end(id, true, &bytes)
        }
    }

    const ZEROES: WriteNumber = WriteNumber(0);

    #[test]
    fn a_read_returns_the_last_completed_write() {
        let mut four = Four::new();
        assert_eq!(four.read(ZEROES), Ok(()));
        let first = four.write(1, CACHED, true);
        assert_eq!(four.read(ZEROES), Err(UnexpectedBlock { lba: Lba(1), holds: Some(ZEROES) }));
        assert_eq!(four.read(first), Ok(()));
        let second = four.write(2, CACHED, true);
        assert_eq!(four.read(first), Err(UnexpectedBlock { lba: Lba(1), holds: Some(first) }));
        assert_eq!(four.read(second), Ok(()));
    }

    #[test]
    fn either_of_two_concurrent_writes_may_win() {
        let mut four = Four::new();
        let first = four.0.begin(1, CACHED, Extent::new(1, 1));
        let second = four.0.begin(2, CACHED, Extent::new(0, 3));
        four.0.end(2, true, &[]).unwrap();
        four.0.end(1, true, &[]).unwrap();
        assert_eq!(four.clone().read(first), Ok(()));
        assert!(four.clone().read(ZEROES).is_err());
        assert_eq!(four.read(second), Ok(()));
        assert!(four.read(first).is_err(), "what a read has found stays");
    }

    #[test]
    fn a_write_that_failed_may_be_there_or_not() {
        let mut four = Four::new();
        let first = four.write(1, CACHED, true);
        let failed = four.write(2, CACHED, false);
        assert_eq!(four.clone().read(first), Ok(()));
        assert_eq!(four.clone().read(failed), Ok(()));
        assert!(four.clone().read(ZEROES).is_err());
        let third = four.write(3, CACHED, true);
        assert!(four.clone().read(failed).is_err());
        assert_eq!(four.read(third), Ok(()));
    }

    #[test]
    fn a_read_may_find_a_write_that_came_meanwhile() {
        let mut four = Four::new();
        four.0.begin(5, BlockAccess::Read, Extent::new(0, 2));
        let number = four.write(1, CACHED, true);
        let mut bytes = [0; 1024];
        four.0.fill(number, Lba(1), &mut bytes[512..]);
        assert_eq!(four.0.end(5, true, &bytes), Ok(()));
    }

    #[test]
    fn bytes_of_another_block_or_of_two_writes_match_no_write() {
        let mut four = Four::new();
        let (first, second) = (four.write(1, CACHED, true), four.write(2, CACHED, true));
        let mut bytes = [0; 512];
        four.0.fill(second, Lba(2), &mut bytes);
        four.0.begin(5, BlockAccess::Read, Extent::new(1, 1));
        assert_eq!(four.0.end(5, true, &bytes), Err(UnexpectedBlock { lba: Lba(1), holds: None }));
        four.0.fill(second, Lba(1), &mut bytes);
        let mut of_first = [0; 512];
        four.0.fill(first, Lba(1), &mut of_first);
        bytes[504..].copy_from_slice(&of_first[504..]);
        four.0.begin(5, BlockAccess::Read, Extent::new(1, 1));
        assert_eq!(four.0.end(5, true, &bytes), Err(UnexpectedBlock { lba: Lba(1), holds: None }));
    }

    #[test]
    fn a_power_loss_may_lose_unflushed_data_only() {
        let mut four = Four::new();
        let first = four.write(1, CACHED, true);
        four.flush();
        let second = four.write(2, CACHED, true);
        four.0.lose_power();
        assert_eq!(four.clone().read(first), Ok(()));
        assert_eq!(four.clone().read(second), Ok(()));
        assert!(four.read(ZEROES).is_err());
    }

    #[test]
    fn a_flush_after_a_power_loss_restores_nothing() {
        let mut four = Four::new();
        four.write(1, CACHED, true);
        four.0.lose_power();
        four.flush();
        four.0.lose_power();
        assert_eq!(four.read(ZEROES), Ok(()));
    }

    #[test]
    fn a_write_through_the_cache_is_durable_at_its_end() {
        let mut four = Four::new();
        four.write(1, CACHED, true);
        let second = four.write(2, THROUGH, true);
        four.0.lose_power();
        assert_eq!(four.clone().read(second), Ok(()));
        assert!(four.read(WriteNumber(1)).is_err());
    }

    #[test]
    fn a_flush_covers_writes_completed_before_it() {
        let mut four = Four::new();
        let number = four.0.begin(1, CACHED, Extent::new(1, 1));
        four.0.begin(2, BlockAccess::Flush, Extent::new(0, 0));
        four.0.end(1, true, &[]).unwrap();
        four.0.end(2, true, &[]).unwrap();
        four.0.lose_power();
        assert_eq!(four.clone().read(ZEROES), Ok(()));
        assert_eq!(four.read(number), Ok(()));
    }

    #[test]
    fn without_a_cache_completed_writes_are_durable() {
        let mut four = Four(BlockModel::new(4, BlockSize::B512, false));
        let number = four.write(1, CACHED, true);
        four.0.lose_power();
        assert!(four.clone().read(ZEROES).is_err());
        assert_eq!(four.read(number), Ok(()));
    }

    #[test]
    fn an_unknown_write_may_appear_until_settle() {
        let mut four = Four::new();
        let vague = four.0.begin(1, CACHED, Extent::new(1, 1));
        four.0.mark_unknown(1);
        let second = four.write(2, CACHED, true);
        assert_eq!(four.read(second), Ok(()));
        assert_eq!(four.clone().read(vague), Ok(()));
        // Data of the next command under its tag may be there.
        let mut elsewhere = [0; 512];
        four.0.fill(second, Lba(3), &mut elsewhere);
        let reads_elsewhere = |four: &mut Four| {
            four.0.begin(7, BlockAccess::Read, Extent::new(1, 1));
            four.0.end(7, true, &elsewhere)
        };
        assert_eq!(reads_elsewhere(&mut four.clone()), Ok(()));
        four.0.settle();
        let third = four.write(3, CACHED, true);
        assert!(four.clone().read(vague).is_err());
        assert!(reads_elsewhere(&mut four.clone()).is_err());
        assert_eq!(four.read(third), Ok(()));
    }

    #[test]
    fn unmapped_blocks_read_as_zeroes() {
        let mut four = Four::new();
        four.write(1, CACHED, true);
        four.write(2, BlockAccess::Zero, true);
        assert_eq!(four.read(ZEROES), Ok(()));
    }

    impl Clone for Four {
        fn clone(&self) -> Self {
            Self(self.0.clone())
        }
    }
}
