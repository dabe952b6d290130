//! Draws the accesses of a job on one drive, reproducibly from a seed.
//!
//! Always true: every access lies within the part of the drive that the job uses and is aligned
//! from the start of that part, unless it continues at its kind's position ([`Sequence::PerKind`]).

use super::job::{AccessKind, Align, Job, REQUEST_BYTES_MAX, Sequence};
use fastrand::Rng;
use std::fmt;
use units::{BlockCount, BlockSize, Extent};

/// One access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Read or write.
    pub kind: AccessKind,
    /// Its blocks.
    pub extent: Extent,
}

/// The endless accesses of a job on a drive.
#[derive(Clone, Debug)]
pub struct Accesses {
    specs: Vec<SpecInBlocks>,
    first_block: u64,
    /// Blocks used, from the first.
    span: u64,
    sequence: Sequence,
    /// End of the last access at each position, from the first block.
    cursors: [u64; 2],
    random: Rng,
}

/// Why a job cannot run on a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobError {
    /// A length, alignment or offset is not a multiple of the block size, is zero, or is too large.
    Length {
        /// The value.
        bytes: u64,
        /// Block size of the drive.
        block_bytes: u32,
    },
    /// The used part is smaller than one access.
    NoRoom {
        /// Bytes that the job uses.
        span_bytes: u64,
        /// Bytes of the access.
        bytes: u32,
    },
    /// The percentages do not add up to 100.
    Shares,
}

/// An access specification in blocks.
#[derive(Clone, Copy, Debug)]
struct SpecInBlocks {
    /// Draws below this select this specification or an earlier one.
    percent_end: u64,
    blocks: u64,
    /// Alignment of random accesses.
    align: u64,
    /// Alignment of sequential accesses.
    step: u64,
    read_percent: u64,
    random_percent: u64,
}

impl Accesses {
    /// Prepares the accesses of `job` on a drive of `capacity` blocks.
    ///
    /// # Errors
    ///
    /// If the job does not fit the drive.
    pub fn new(job: &Job, block_size: BlockSize, capacity: BlockCount, seed: u64) -> Result<Self, JobError> {
        let first_block = in_blocks(job.offset_bytes, block_size)?;
        let there = capacity.0.saturating_sub(first_block);
        let asked = job.span_bytes.map_or(there, |bytes| bytes / u64::from(block_size.bytes()));
        let span = asked.min(there);
        let mut specs = Vec::with_capacity(job.specs.len());
        let mut percent_end = 0;
        for spec in &job.specs {
            if spec.bytes > REQUEST_BYTES_MAX {
                let block_bytes = block_size.bytes();
                return Err(JobError::Length { bytes: spec.bytes.into(), block_bytes });
            }
            let blocks = in_length(spec.bytes.into(), block_size)?;
            let align = match spec.align {
                Align::Length => blocks,
                Align::Block => 1,
                Align::Bytes(bytes) => in_length(bytes.into(), block_size)?,
            };
            if blocks > span {
                let span_bytes = span * u64::from(block_size.bytes());
                return Err(JobError::NoRoom { span_bytes, bytes: spec.bytes });
            }
            percent_end += u64::from(spec.percent);
            let (read_percent, random_percent) = (spec.read_percent.into(), spec.random_percent.into());
            let step = match job.sequence {
                Sequence::Shared => align,
                Sequence::PerKind => 1,
            };
            specs.push(SpecInBlocks { percent_end, blocks, align, step, read_percent, random_percent });
        }
        if percent_end != 100 {
            return Err(JobError::Shares);
        }
        let random = Rng::with_seed(seed);
        Ok(Self { specs, first_block, span, sequence: job.sequence, cursors: [0; 2], random })
    }

    /// Draws the next access.
    pub fn draw(&mut self) -> Access {
        let spec = self.draw_spec();
        let places = (self.span - spec.blocks) / spec.align + 1;
        let is_random = self.random.u64(..100) < spec.random_percent;
        let random = is_random.then(|| self.random.u64(..places) * spec.align);
        let kind =
            if self.random.u64(..100) < spec.read_percent { AccessKind::Read } else { AccessKind::Write };
        let cursor = &mut self.cursors[self.sequence.position(kind)];
        let place = random.unwrap_or_else(|| {
            let onward = cursor.next_multiple_of(spec.step);
            if onward + spec.blocks <= self.span { onward } else { 0 }
        });
        *cursor = place + spec.blocks;
        Access { kind, extent: Extent::new(self.first_block + place, spec.blocks) }
    }

    /// Returns the used blocks.
    pub const fn extent(&self) -> Extent {
        Extent::new(self.first_block, self.span)
    }

    fn draw_spec(&mut self) -> SpecInBlocks {
        if let [only] = self.specs[..] {
            return only;
        }
        let drawn = self.random.u64(..100);
        let found = self.specs.iter().find(|spec| drawn < spec.percent_end);
        *found.expect("the last spec ends at a hundred, and draws are below")
    }
}

impl Sequence {
    /// Selects the position that an access of this kind continues.
    const fn position(self, kind: AccessKind) -> usize {
        match (self, kind) {
            (Self::Shared, _) | (Self::PerKind, AccessKind::Read) => 0,
            (Self::PerKind, AccessKind::Write) => 1,
        }
    }
}

/// Converts a length to whole blocks, at least one.
fn in_length(bytes: u64, block_size: BlockSize) -> Result<u64, JobError> {
    match in_blocks(bytes, block_size)? {
        0 => Err(JobError::Length { bytes, block_bytes: block_size.bytes() }),
        blocks => Ok(blocks),
    }
}

fn in_blocks(bytes: u64, block_size: BlockSize) -> Result<u64, JobError> {
    let block_bytes = block_size.bytes();
    match bytes % u64::from(block_bytes) {
        0 => Ok(bytes / u64::from(block_bytes)),
        _ => Err(JobError::Length { bytes, block_bytes }),
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { bytes, block_bytes } => {
                write!(f, "{bytes} bytes is not a positive multiple of the block size of {block_bytes}")
            }
            Self::NoRoom { span_bytes, bytes } => {
                write!(f, "the used part of {span_bytes} bytes is smaller than one access of {bytes}")
            }
            Self::Shares => f.write_str("the specs of the accesses are not 100 % together"),
        }
    }
}

impl std::error::Error for JobError {}

#[cfg(test)]
mod tests {
    use super::super::AccessSpec;
    use super::*;
    use proptest::prelude::*;

    fn accesses(spec: AccessSpec, blocks: u64) -> Accesses {
        let job = Job::of(spec, 1);
        Accesses::new(&job, BlockSize::B512, BlockCount(blocks), 1).expect("it fits")
    }

    #[test]
    fn sequential_accesses_follow_one_another_and_begin_again_at_the_end() {
        let mut drawn = accesses(AccessSpec::all(1024, 100, 0), 5);
        let places: Vec<u64> = (0..4).map(|_| drawn.draw().extent.lba.0).collect();
        assert_eq!(places, [0, 2, 0, 2]);
    }

    /// Where accesses of each kind begin and end, in their order.
    fn streams(sequence: Sequence, specs: &[AccessSpec]) -> [Vec<(u64, u64)>; 2] {
        let job = Job { sequence, specs: specs.to_vec(), ..Job::of(specs[0], 1) };
        let mut drawn = Accesses::new(&job, BlockSize::B512, BlockCount(100_000), 1).expect("it fits");
        let mut streams = [Vec::new(), Vec::new()];
        for _ in 0..200 {
            let Access { kind, extent } = drawn.draw();
            streams[usize::from(kind == AccessKind::Write)]
                .push((extent.lba.0, extent.lba.0 + extent.blocks.0));
        }
        streams
    }

    fn has_holes(stream: &[(u64, u64)]) -> bool {
        stream.windows(2).any(|pair| pair[0].1 != pair[1].0)
    }

    #[test]
    fn reads_and_writes_share_a_position_or_not() {
        let spec = AccessSpec { align: Align::Bytes(65_536), ..AccessSpec::all(4096, 70, 0) };
        let [reads, writes] = streams(Sequence::PerKind, &[spec]);
        assert!(!has_holes(&reads) && !has_holes(&writes) && reads.len() > writes.len());
        assert_eq!((reads[0].0, writes[0].0), (0, 0));
        let mut all = streams(Sequence::Shared, &[spec]).concat();
        all.sort_unstable();
        assert!(all.iter().map(|(begin, _)| *begin).eq((0..200).map(|number| number * 128)), "{all:?}");
        // Of different lengths, too.
        let half = |bytes| AccessSpec { percent: 50, ..AccessSpec::all(bytes, 50, 0) };
        let [reads, writes] = streams(Sequence::PerKind, &[half(4096), half(65_536)]);
        assert!(!has_holes(&reads) && !has_holes(&writes));
    }

    #[test]
    fn sequential_accesses_continue_after_random_ones() {
        let spec = AccessSpec { align: Align::Bytes(65_536), ..AccessSpec::all(4096, 50, 50) };
        for stream in streams(Sequence::PerKind, &[spec]) {
            let onward = stream.windows(2).filter(|pair| pair[0].1 == pair[1].0).count();
            let others = stream.windows(2).filter(|pair| pair[0].1 != pair[1].0);
            assert!(onward > 30 && others.into_iter().all(|pair| pair[1].0 % 128 == 0), "{stream:?}");
        }
    }

    #[test]
    fn random_accesses_reach_every_place() {
        let mut drawn = accesses(AccessSpec::all(512, 0, 100), 8);
        let mut seen = [0; 8];
        for _ in 0..400 {
            let Access { kind, extent } = drawn.draw();
            assert_eq!(kind, AccessKind::Write);
            seen[extent.lba.0 as usize] += 1;
        }
        assert!(seen.iter().all(|&count| count > 20), "{seen:?}");
    }

    #[test]
    fn a_mix_has_its_read_percentage() {
        let mut drawn = accesses(AccessSpec::all(512, 80, 100), 64);
        let reads = (0..10_000).filter(|_| drawn.draw().kind == AccessKind::Read).count();
        assert!((7_800..8_200).contains(&reads), "{reads}");
    }

    #[test]
    fn mismatched_lengths_are_errors() {
        let fit = |spec: AccessSpec, blocks| {
            let job = Job::of(spec, 1);
            Accesses::new(&job, BlockSize::B4096, BlockCount(blocks), 1).map(|_| ())
        };
        assert_eq!(
            fit(AccessSpec::all(512, 100, 0), 9),
            Err(JobError::Length { bytes: 512, block_bytes: 4096 })
        );
        assert_eq!(fit(AccessSpec::all(0, 100, 0), 9), Err(JobError::Length { bytes: 0, block_bytes: 4096 }));
        assert_eq!(
            fit(AccessSpec::all(8192, 100, 0), 1),
            Err(JobError::NoRoom { span_bytes: 4096, bytes: 8192 })
        );
        assert_eq!(fit(AccessSpec { percent: 99, ..AccessSpec::all(4096, 0, 0) }, 1), Err(JobError::Shares));
    }

    proptest! {
        #[test]
        fn accesses_stay_within_their_part(
            (blocks, align) in (1_u32..40, 1_u32..40),
            (offset, span) in (0_u64..100, 0_u64..2000),
            (reads, random, seed) in (0_u8..=100, 0_u8..=100, any::<u64>()),
            is_per_kind in any::<bool>(),
        ) {
            let mut job = Job::of(AccessSpec { align: Align::Bytes(align * 512), ..AccessSpec::all(blocks * 512, reads, random) }, 1);
            (job.offset_bytes, job.span_bytes) = (offset * 512, Some(span * 512));
            job.sequence = if is_per_kind { Sequence::PerKind } else { Sequence::Shared };
            let Ok(mut drawn) = Accesses::new(&job, BlockSize::B512, BlockCount(1000), seed) else { return Ok(()) };
            let end = (offset + span).min(1000);
            for _ in 0..50 {
                let Extent { lba, blocks } = drawn.draw().extent;
                prop_assert!(lba.0 >= offset && lba.0 + blocks.0 <= end);
                prop_assert!(is_per_kind || (lba.0 - offset) % u64::from(align) == 0);
            }
        }
    }
}
