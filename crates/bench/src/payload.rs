//! What is written where nobody looks at it afterwards.
//!
//! Drives compress and deduplicate; so random payload differs from block to block and from write to write. Left out:
//! payload of a given compressibility.

use fastrand::Rng;
use workload::Fill;

/// A write is made different from all others in each of these.
const STEP_BYTES: usize = 512;

/// The byte of [`Fill::Repeated`].
const REPEATED: u8 = 0x5a;

/// Bytes to write.
#[derive(Debug)]
pub(crate) struct Payload {
    fill: Fill,
    random: Rng,
    /// Memory for writes holds what was read in between: it is filled anew each time.
    is_shared: bool,
    master: Vec<u8>,
}

impl Payload {
    /// Of accesses of at most `bytes`; `is_shared` where reads use the same memory.
    pub(crate) fn new(fill: Fill, bytes: u32, is_shared: bool, seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let mut master = vec![0; if fill == Fill::Random { bytes as usize } else { 0 }];
        random.fill(&mut master);
        Self { fill, random, is_shared, master }
    }

    /// Makes memory of a slot ready, once.
    pub(crate) fn prepare(&self, memory: &mut [u8]) {
        match self.fill {
            Fill::Zero => memory.fill(0),
            Fill::Repeated => memory.fill(REPEATED),
            Fill::Random => memory.iter_mut().zip(&self.master).for_each(|(place, byte)| *place = *byte),
        }
    }

    /// Makes memory ready for one write.
    pub(crate) fn renew(&mut self, memory: &mut [u8]) {
        match self.fill {
            Fill::Zero => memory.fill(0),
            Fill::Repeated => memory.fill(REPEATED),
            Fill::Random => {
                if self.is_shared {
                    let len = memory.len().min(self.master.len());
                    memory[..len].copy_from_slice(&self.master[..len]);
                }
                for step in memory.chunks_mut(STEP_BYTES) {
                    if let Some(place) = step.first_chunk_mut() {
                        *place = self.random.u64(..).to_le_bytes();
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_blocks_and_no_two_writes_are_alike() {
        let mut payload = Payload::new(Fill::Random, 1024, false, 1);
        let mut memory = vec![0; 1024];
        payload.prepare(&mut memory);
        payload.renew(&mut memory);
        let first = memory.clone();
        payload.renew(&mut memory);
        assert_ne!(memory[..512], memory[512..]);
        assert_ne!(memory[..512], first[..512]);
        assert!(memory.iter().filter(|byte| **byte == 0).count() < 32);
    }

    #[test]
    fn what_was_read_is_not_written_back() {
        let mut payload = Payload::new(Fill::Random, 512, true, 1);
        let mut memory = vec![0; 512];
        payload.renew(&mut memory);
        assert!(memory.iter().filter(|byte| **byte == 0).count() < 16);
        let mut zeroes = Payload::new(Fill::Zero, 512, true, 1);
        zeroes.renew(&mut memory);
        assert_eq!(memory, [0; 512]);
    }
}
