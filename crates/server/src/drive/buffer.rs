//! Payload memory, recycled.
//!
//! A buffer's bytes are never cleared between uses, since clearing half a megabyte costs more than moving it; who
//! fills a buffer says how far, and nobody looks past that. The pool keeps what it may keep and frees the rest.

use std::hint::cold_path;

/// Bytes that the pool keeps for later use.
const KEPT_BYTES_MAX: usize = 8 << 20;

/// Buffers are made in multiples of this, so that most fit most uses.
const GRAIN_BYTES: usize = 4096;

/// Recycled payload memory.
#[derive(Debug, Default)]
pub struct Pool {
    /// One block each.
    small: Vec<Vec<u8>>,
    /// Longer ones.
    large: Vec<Vec<u8>>,
    kept_bytes: usize,
}

impl Pool {
    /// Memory of at least `bytes` bytes. What it holds is left over from its last use.
    pub fn take(&mut self, bytes: usize) -> Vec<u8> {
        let shelf = if bytes <= GRAIN_BYTES { &mut self.small } else { &mut self.large };
        // The last one put back is the likeliest to be in the cache.
        if let Some(position) = shelf.iter().rposition(|buffer| buffer.len() >= bytes) {
            let buffer = shelf.swap_remove(position);
            self.kept_bytes -= buffer.len();
            return buffer;
        }
        cold_path();
        vec![0; bytes.next_multiple_of(GRAIN_BYTES).max(GRAIN_BYTES)]
    }

    /// Gives memory back.
    pub fn put(&mut self, buffer: Vec<u8>) {
        if buffer.len() < GRAIN_BYTES || self.kept_bytes + buffer.len() > KEPT_BYTES_MAX {
            cold_path();
            return;
        }
        self.kept_bytes += buffer.len();
        let shelf = if buffer.len() <= GRAIN_BYTES { &mut self.small } else { &mut self.large };
        shelf.push(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back_and_fits() {
        let mut pool = Pool::default();
        let mut buffer = pool.take(5000);
        assert_eq!(buffer.len(), 8192);
        buffer[0] = 7;
        pool.put(buffer);
        assert_eq!(pool.take(6000)[0], 7);
        assert_eq!(pool.take(1).len(), 4096);
    }

    #[test]
    fn what_is_kept_has_a_bound() {
        let mut pool = Pool::default();
        for _ in 0..4 {
            pool.put(vec![0; 3 << 20]);
        }
        assert_eq!(pool.kept_bytes, 6 << 20);
    }
}
