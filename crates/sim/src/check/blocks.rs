//! What a host may find in the blocks of a drive, given what it has asked for and how that ended.
//!
//! Each write has a number, and each block of it says the number and its address in every word. A write that ended well
//! hides all that had ended before it began. Of writes at the same time either may win; one that failed may be there or not,
//! block by block; what a read has found stays. For a drive with a volatile cache there is a second set for each block: what
//! may be there after a power loss, from which only a flush, or a write through the cache, takes something away.
//!
//! Always true: what the drive may do is never called wrong; so what is found wrong is wrong.

use std::collections::BTreeMap;
use std::fmt;
use units::{BlockSize, Extent, Lba};

/// Names a write. 0 is what the blocks hold at first, which is zeroes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WriteNumber(pub u32);

/// What is asked of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockAccess {
    /// Blocks are read.
    Read,
    /// Blocks are written; `through` a volatile cache or not.
    Write {
        /// Durable when it has ended.
        through: bool,
    },
    /// Blocks read as zeroes afterwards.
    Zero,
    /// All that has ended before becomes durable.
    Flush,
}

/// A block holds what it cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnexpectedBlock {
    /// Which block.
    pub lba: Lba,
    /// The write that it holds, if it is one.
    pub holds: Option<WriteNumber>,
}

/// The blocks of a drive, as a host knows them.
#[derive(Clone, Debug)]
pub struct BlockModel {
    block_size: BlockSize,
    is_cached: bool,
    /// Counts beginnings and ends.
    clock: u64,
    writes: Vec<Write>,
    /// What each block may hold.
    now: Vec<Vec<WriteNumber>>,
    /// What each block may hold after a power loss.
    durable: Vec<Vec<WriteNumber>>,
    /// What was asked for and has not ended, by the host's number.
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

/// What is in the blocks of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    /// Its number and their address.
    Itself,
    Zeroes,
    /// Nobody knows: a status about another command has ended it for the host, and the drive took for it what was meant for the
    /// next under its tag.
    Anything,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Safety {
    /// It has not ended well, or was in a volatile cache when the power was lost.
    Unknown,
    /// It has ended well and may be in a volatile cache.
    Cached,
    /// It outlives a power loss.
    Durable,
}

#[derive(Clone, Debug)]
struct Open {
    access: BlockAccess,
    begun: u64,
    extent: Extent,
    /// Of a write.
    number: WriteNumber,
    /// Of a read: what each block may turn out to hold.
    allowed: Vec<Vec<WriteNumber>>,
}

impl BlockModel {
    /// So many blocks of zeroes. `is_cached`: the drive has a volatile cache.
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

    /// Something is asked for, under a number that is not in use. For a write: its own number, for [`Self::fill`].
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

    /// The bytes of a write, from a block on.
    pub fn fill(&self, number: WriteNumber, first: Lba, bytes: &mut [u8]) {
        let block_bytes = self.block_size.bytes() as usize;
        for (lba, block) in (first.0..).zip(bytes.chunks_mut(block_bytes)) {
            for (at, word) in block.chunks_exact_mut(WORD_BYTES).enumerate() {
                word.copy_from_slice(&word_of(number, lba, at).to_be_bytes());
            }
        }
    }

    /// What was asked for has ended, well or not; `bytes` is what a read has brought.
    ///
    /// # Errors
    /// The first block that holds what it cannot hold.
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

    /// Nothing is known of how something has ended, nor when its effect will be there: a read is not looked at, and the blocks
    /// of a write may hold anything from now on, until [`Self::settle`] and what is written after that.
    pub fn mark_unknown(&mut self, id: u64) {
        let Some(open) = self.open.remove(&id) else { return };
        let writes = matches!(open.access, BlockAccess::Write { .. } | BlockAccess::Zero);
        if let Some(write) = self.writes.get_mut(open.number.0 as usize).filter(|_| writes) {
            write.holds = Holds::Anything;
        }
    }

    /// The drive does nothing any more of what was asked for: it was reset, or the host is gone.
    pub fn settle(&mut self) {
        self.clock += 1;
        for write in &mut self.writes {
            write.ended.get_or_insert(self.clock);
        }
        self.open.clear();
    }

    /// The power was lost: [`Self::settle`], and a volatile cache is gone.
    pub fn lose_power(&mut self) {
        self.settle();
        for write in self.writes.iter_mut().filter(|write| write.state == Safety::Cached) {
            // A later flush says nothing of it.
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
            // What had ended before the read began and is not there does not come any more.
            let writes = &self.writes;
            self.now[place].retain(|number| {
                let may_come = writes[number.0 as usize].ended.is_none_or(|ended| ended > open.begun);
                may_come || fits(number)
            });
        }
        Ok(())
    }
}

/// A write that ended well hides what had ended before it began.
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

/// Bytes that say which write they are of, and where.
const WORD_BYTES: usize = size_of::<u64>();

/// The word `at` of a block: the write, the address, and the place in the block mixed in.
fn word_of(number: WriteNumber, lba: u64, at: usize) -> u64 {
    (u64::from(number.0) << u32::BITS | lba) ^ place_word(at)
}

/// Zero for the first word, so that the first word tells the write.
const fn place_word(at: usize) -> u64 {
    (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The write whose bytes these are, whole and at this address.
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

        /// Block 1 is written; whether that ended well.
        fn write(&mut self, id: u64, access: BlockAccess, well: bool) -> WriteNumber {
            let number = self.0.begin(id, access, Extent::new(1, 1));
            self.0.end(id, well, &[]).unwrap();
            number
        }

        fn flush(&mut self) {
            self.0.begin(90, BlockAccess::Flush, Extent::new(0, 0));
            self.0.end(90, true, &[]).unwrap();
        }

        /// Block 1 is read and holds this write.
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
    fn a_write_that_ended_well_is_what_is_read() {
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
    fn of_writes_at_the_same_time_either_may_win_but_not_both() {
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
    fn bytes_of_another_block_or_of_two_writes_are_nobodys() {
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
    fn a_power_loss_takes_what_was_not_flushed_and_nothing_else() {
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
    fn a_flush_after_a_power_loss_brings_nothing_back() {
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
    fn a_flush_is_of_what_had_ended_when_it_began() {
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
    fn without_a_cache_every_end_is_durable() {
        let mut four = Four(BlockModel::new(4, BlockSize::B512, false));
        let number = four.write(1, CACHED, true);
        four.0.lose_power();
        assert!(four.clone().read(ZEROES).is_err());
        assert_eq!(four.read(number), Ok(()));
    }

    #[test]
    fn what_is_forgiven_may_come_until_all_is_settled() {
        let mut four = Four::new();
        let vague = four.0.begin(1, CACHED, Extent::new(1, 1));
        four.0.mark_unknown(1);
        let second = four.write(2, CACHED, true);
        assert_eq!(four.read(second), Ok(()));
        assert_eq!(four.clone().read(vague), Ok(()));
        // What was meant for the next command under its tag may be there.
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
    fn blocks_that_were_given_back_read_as_zeroes() {
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
