//! Payload memory, recycled.
//!
//! A buffer's bytes are never cleared between uses, since clearing half a megabyte costs more than moving it; who
//! fills a buffer says how far, and bytes past that are not read. The pool keeps buffers up to a limit and frees the rest. An owner that knows how much
//! will be in flight raises the limit.

use std::hint::cold_path;

/// Bytes that the pool keeps for later use, unless the limit is raised.
const POOLED_BYTES_MAX: usize = 8 << 20;

/// Bytes that the pool keeps while nothing happens.
const POOLED_IDLE_BYTES_MAX: usize = 1 << 20;

/// Buffers are made in multiples of this, so that most fit most uses.
const GRAIN_BYTES: usize = 4096;

/// Recycled payload memory.
#[derive(Debug)]
pub struct Pool {
    /// One block each.
    small: Vec<Vec<u8>>,
    /// Longer ones.
    large: Vec<Vec<u8>>,
    pooled_bytes: usize,
    pooled_bytes_max: usize,
}

impl Default for Pool {
    fn default() -> Self {
        Self { small: Vec::new(), large: Vec::new(), pooled_bytes: 0, pooled_bytes_max: POOLED_BYTES_MAX }
    }
}

impl Pool {
    /// Keeps a buffer of so many bytes, beside the usual ones, once it was taken and returned. Frees the buffers it has: no one may
    /// ask for such lengths any more, and they would leave no room for others.
    pub fn keep_also(&mut self, bytes: usize) {
        *self = Self { pooled_bytes_max: POOLED_BYTES_MAX.saturating_add(bytes), ..Self::default() };
    }

    /// Memory of at least `bytes` bytes. What it holds is left over from its last use.
    pub fn take(&mut self, bytes: usize) -> Vec<u8> {
        let shelf = if bytes <= GRAIN_BYTES { &mut self.small } else { &mut self.large };
        // The last one put back is the likeliest to be in the cache.
        if let Some(position) = shelf.iter().rposition(|buffer| buffer.len() >= bytes) {
            let buffer = shelf.swap_remove(position);
            self.pooled_bytes -= buffer.len();
            return buffer;
        }
        cold_path();
        vec![0; bytes.next_multiple_of(GRAIN_BYTES).max(GRAIN_BYTES)]
    }

    /// Frees what is not worth keeping while nothing happens: all but `POOLED_IDLE_BYTES_MAX`, short buffers last.
    pub fn trim(&mut self) {
        while self.pooled_bytes > POOLED_IDLE_BYTES_MAX
            && let Some(buffer) = self.large.pop().or_else(|| self.small.pop())
        {
            self.pooled_bytes -= buffer.len();
        }
    }

    /// Gives memory back.
    pub fn put(&mut self, buffer: Vec<u8>) {
        if buffer.len() < GRAIN_BYTES || self.pooled_bytes + buffer.len() > self.pooled_bytes_max {
            cold_path();
            return;
        }
        self.pooled_bytes += buffer.len();
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
        assert_eq!(pool.pooled_bytes, 6 << 20);
    }

    #[test]
    fn little_is_kept_while_nothing_happens() {
        let mut pool = Pool::default();
        (0..6).for_each(|_| pool.put(vec![0; 1 << 20]));
        (0..300).for_each(|_| pool.put(vec![0; 4096]));
        pool.trim();
        assert_eq!((pool.pooled_bytes, pool.large.len(), pool.small.len()), (1 << 20, 0, 256));
    }

    #[test]
    fn more_is_kept_where_more_will_be_in_flight_and_what_lies_there_does_not_count() {
        let mut pool = Pool::default();
        let fill = |pool: &mut Pool| {
            (0..8).for_each(|_| pool.put(vec![0; 3 << 20]));
            pool.pooled_bytes
        };
        assert_eq!(fill(&mut pool), 6 << 20);
        pool.keep_also(8 << 20);
        assert_eq!((pool.pooled_bytes, fill(&mut pool)), (0, 15 << 20));
        pool.keep_also(0);
        assert_eq!(fill(&mut pool), 6 << 20);
    }
}
