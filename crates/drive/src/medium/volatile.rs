//! Blocks in memory behind a volatile write cache, with a model of power loss.
//!
//! Reads see each write at once. Until a flush the old content of a written block is remembered; at a power loss a seed decides
//! for each such block whether it is old or new. A write with FUA, an atomic write and a flush are durable at their completion. The
//! cache is bounded: one that is full is written to the medium, as is what does not fit into it. Left out: contents between the
//! oldest and the newest one of a block.
//!
//! Always true: without [`Medium::lose_power`] it behaves like [`RamMedium`].

use super::{CompletedJob, Job, Medium, PowerLoss, RamMedium, Span};
use device::medium::{MediumOp, MediumRequest};
use fastrand::Rng;
use std::collections::BTreeMap;
use std::io;
use units::{BlockCount, BlockSize};

/// Bytes of the write cache.
const CACHE_BYTES: u64 = 8 << 20;

/// A medium in memory with a volatile write cache.
#[derive(Debug)]
pub struct VolatileRam {
    ram: RamMedium,
    /// Durable content of blocks whose newest content is not durable, by LBA.
    durable: BTreeMap<u64, Vec<u8>>,
}

impl VolatileRam {
    /// Puts a write cache before a medium, whose content is durable.
    pub const fn new(ram: RamMedium) -> Self {
        Self { ram, durable: BTreeMap::new() }
    }

    /// Remembers the durable content of the blocks that a request changes.
    fn remember(&mut self, request: &MediumRequest) {
        let (first, count) = (request.extent.lba.0, request.extent.blocks.0);
        let block_bytes = u64::from(self.block_size().bytes());
        let blocks_max = CACHE_BYTES / block_bytes;
        if !request.extent.fits(self.capacity()) || count > blocks_max {
            self.durable.clear();
            return;
        }
        if self.durable.len() as u64 + count > blocks_max {
            self.durable.clear();
        }
        for lba in first..first + count {
            let ram = &self.ram;
            self.durable.entry(lba).or_insert_with(|| {
                let mut block = vec![0; block_bytes as usize];
                ram.read(Span { start: lba * block_bytes, len: block_bytes }, &mut block);
                block
            });
        }
    }

    /// Restores what a power loss leaves of a block whose durable content this is.
    fn restore(&mut self, lba: u64, mut block: Vec<u8>, torn_at: usize) {
        let bytes = block.len() as u64;
        let span = Span { start: lba * bytes, len: bytes };
        let mut newest = vec![0; block.len()];
        self.ram.read(span, &mut newest);
        block[..torn_at].copy_from_slice(&newest[..torn_at]);
        // Without memory for it, the block stays unmapped.
        let _ = self.ram.write(span, &block);
    }
}

/// The effect of an operation on the cache.
enum CacheEffect {
    /// Nothing.
    None,
    /// It changes blocks, which are not durable yet.
    Volatile,
    /// It changes blocks, which are durable at the completion.
    Durable,
    /// All blocks are durable at the completion.
    Flush,
}

impl CacheEffect {
    const fn of(op: MediumOp) -> Self {
        match op {
            MediumOp::Write { fua } | MediumOp::CompareAndWrite { fua } | MediumOp::Or { fua } if fua => {
                Self::Durable
            }
            MediumOp::WriteAtomic { .. } => Self::Durable,
            MediumOp::Write { .. }
            | MediumOp::CompareAndWrite { .. }
            | MediumOp::Or { .. }
            | MediumOp::WriteSame { .. }
            | MediumOp::WriteZeroes
            | MediumOp::Unmap => Self::Volatile,
            MediumOp::Flush => Self::Flush,
            _ => Self::None,
        }
    }
}

impl Medium for VolatileRam {
    fn submit(&mut self, mut job: Job) -> Option<CompletedJob> {
        let effect = CacheEffect::of(job.request.op);
        if matches!(effect, CacheEffect::Volatile) {
            self.remember(&job.request);
        }
        let result = self.ram.perform(&job.request, &mut job.buffer);
        match effect {
            CacheEffect::Durable if result.is_ok() => {
                let extent = job.request.extent;
                for lba in extent.lba.0..extent.lba.0 + extent.blocks.0 {
                    self.durable.remove(&lba);
                }
            }
            CacheEffect::Flush => self.durable.clear(),
            _ => {}
        }
        Some(job.finish(result))
    }

    fn lose_power(&mut self, loss: PowerLoss) -> bool {
        let mut rng = Rng::with_seed(loss.seed);
        for (lba, block) in std::mem::take(&mut self.durable) {
            let (is_lost, is_torn) = (rng.bool(), loss.tears && rng.u8(..4) == 0);
            let torn_at = if is_torn { rng.usize(1..block.len()) } else { 0 };
            if is_lost || is_torn {
                self.restore(lba, block, torn_at);
            }
        }
        true
    }

    fn capacity(&self) -> BlockCount {
        self.ram.capacity()
    }

    fn block_size(&self) -> BlockSize {
        self.ram.block_size()
    }

    fn is_read_only(&self) -> bool {
        self.ram.is_read_only()
    }

    fn writes_atomically(&self) -> bool {
        self.ram.writes_atomically()
    }

    fn keeps_state(&self) -> bool {
        self.ram.keeps_state()
    }

    fn save_state(&mut self, state: &[u8]) -> io::Result<()> {
        self.ram.save_state(state)
    }

    fn load_state(&self) -> io::Result<Option<Vec<u8>>> {
        self.ram.load_state()
    }

    fn describe(&self) -> String {
        "RAM with a volatile write cache, lost on exit".into()
    }
}

#[cfg(test)]
mod tests {
    use super::super::suite::{self, bare, read, write};
    use super::*;
    use device::medium::MediumDone;
    use units::{ByteCount, Extent};

    /// Each of eight blocks is written old and flushed, then new; and power is lost.
    fn after_power_loss(seed: u64, tears: bool, then: impl Fn(&mut VolatileRam)) -> Vec<u8> {
        let ram = RamMedium::new(ByteCount(64 * 512), BlockSize::B512).expect("memory");
        let mut medium = VolatileRam::new(ram);
        write(&mut medium, 0, &[1; 8 * 512], false).expect("written");
        bare(&mut medium, MediumOp::Flush, Extent::new(0, 0)).expect("flushed");
        write(&mut medium, 0, &[2; 8 * 512], false).expect("written");
        assert_eq!(read(&mut medium, Extent::new(0, 8)), Ok(vec![2; 8 * 512]));
        then(&mut medium);
        assert!(medium.lose_power(PowerLoss { seed, tears }));
        read(&mut medium, Extent::new(0, 8)).expect("they can be read")
    }

    #[test]
    fn an_unflushed_block_is_old_or_new_as_the_seed_decides() {
        let mut found = [0_u32; 2];
        for seed in 0..64 {
            let bytes = after_power_loss(seed, false, |_| {});
            assert_eq!(bytes, after_power_loss(seed, false, |_| {}), "seed {seed}");
            for block in bytes.chunks_exact(512) {
                assert!(block.iter().all(|byte| *byte == block[0]), "seed {seed}: torn");
                found[usize::from(block[0]) - 1] += 1;
            }
        }
        assert!(found.iter().all(|count| *count > 200), "{found:?}");
    }

    #[test]
    fn what_was_flushed_or_written_with_fua_is_there() {
        for seed in 0..64 {
            let flush = |medium: &mut VolatileRam| {
                bare(medium, MediumOp::Flush, Extent::new(0, 0)).expect("flushed");
            };
            assert_eq!(after_power_loss(seed, true, flush), [2; 8 * 512], "seed {seed}");
            let fua = |medium: &mut VolatileRam| {
                write(medium, 2, &[3; 3 * 512], true).expect("written");
            };
            let bytes = after_power_loss(seed, true, fua);
            assert_eq!(bytes[2 * 512..5 * 512], [3; 3 * 512], "seed {seed}");
        }
    }

    #[test]
    fn a_medium_that_tears_leaves_a_block_that_is_new_and_then_old() {
        let torn = (0..64).any(|seed| {
            let bytes = after_power_loss(seed, true, |_| {});
            bytes.chunks_exact(512).any(|block| block[0] == 2 && block[511] == 1)
        });
        assert!(torn);
    }

    #[test]
    fn an_unmapped_block_is_old_or_zero() {
        for seed in 0..16 {
            let unmap = |medium: &mut VolatileRam| {
                bare(medium, MediumOp::Flush, Extent::new(0, 0)).expect("flushed");
                let done = bare(medium, MediumOp::Unmap, Extent::new(0, 8));
                assert_eq!(done, Ok(MediumDone::Done));
            };
            let bytes = after_power_loss(seed, false, unmap);
            assert!(bytes.chunks_exact(512).all(|block| *block == [0; 512] || *block == [2; 512]));
        }
    }

    #[test]
    fn the_cache_is_bounded() {
        let ram = RamMedium::new(ByteCount(64 << 20), BlockSize::B512).expect("memory");
        let mut medium = VolatileRam::new(ram);
        for lba in (0..64 << 11).step_by(128) {
            write(&mut medium, lba, &[7; 128 * 512], false).expect("written");
            assert!(medium.durable.len() as u64 <= CACHE_BYTES / 512);
        }
        bare(&mut medium, MediumOp::WriteZeroes, Extent::new(0, 64 << 11)).expect("written");
        assert!(medium.durable.is_empty());
    }

    #[test]
    fn behaves_like_the_model() {
        suite::behaves_like_the_model(|size, block_size| {
            Box::new(VolatileRam::new(RamMedium::new(size, block_size).expect("memory")))
        });
    }

    #[test]
    fn refuses_what_the_target_never_asks() {
        let ram = RamMedium::new(ByteCount(1 << 20), BlockSize::B512).expect("memory");
        suite::refuses_what_the_target_never_asks(&mut VolatileRam::new(ram));
    }
}
