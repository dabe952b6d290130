//! Payload of writes that are not verified.
//!
//! Drives compress and deduplicate, so random payload differs from block to block and from write to
//! write. Left out: payload of a given compressibility.

use fastrand::Rng;
use workload::Fill;

/// Writes differ in each unit of this size.
const STEP_BYTES: usize = 512;

/// The byte of [`Fill::Repeated`].
const REPEATED: u8 = 0x5a;

/// Data to write.
#[derive(Debug)]
pub(crate) struct Payload {
    fill: Fill,
    random: Rng,
    /// Reads share the buffer, so it is filled again for each write.
    is_shared: bool,
    master: Vec<u8>,
}

impl Payload {
    /// For accesses of at most `bytes`; `is_shared` if reads use the same buffers.
    pub(crate) fn new(fill: Fill, bytes: u32, is_shared: bool, seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let mut master = vec![0; if fill == Fill::Random { bytes as usize } else { 0 }];
        random.fill(&mut master);
        Self { fill, random, is_shared, master }
    }

    /// Fills the buffer of a slot once.
    pub(crate) fn prepare(&self, memory: &mut [u8]) {
        match self.fill {
            Fill::Zero => memory.fill(0),
            Fill::Repeated => memory.fill(REPEATED),
            Fill::Random => memory.iter_mut().zip(&self.master).for_each(|(place, byte)| *place = *byte),
        }
    }

    /// Prepares the buffer for one write.
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
    fn random_payload_never_repeats() {
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
    fn data_read_is_not_written_back() {
        let mut payload = Payload::new(Fill::Random, 512, true, 1);
        let mut memory = vec![0; 512];
        payload.renew(&mut memory);
        assert!(memory.iter().filter(|byte| **byte == 0).count() < 16);
        let mut zeroes = Payload::new(Fill::Zero, 512, true, 1);
        zeroes.renew(&mut memory);
        assert_eq!(memory, [0; 512]);
    }
}
