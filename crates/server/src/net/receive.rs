//! Received bytes, contiguous until they are taken.

use crate::usbredir::CONTIGUOUS_BYTES_MAX;

/// Bytes read at once at most, and the size of the buffer.
const CAPACITY_BYTES: usize = 256 << 10;
const _: () = assert!(CAPACITY_BYTES / 2 >= CONTIGUOUS_BYTES_MAX, "a packet fits where space is made");

/// The buffer.
#[derive(Debug)]
pub(super) struct ReceiveBuffer {
    memory: Box<[u8]>,
    start: usize,
    end: usize,
}

impl ReceiveBuffer {
    pub(super) fn new() -> Self {
        Self { memory: vec![0; CAPACITY_BYTES].into_boxed_slice(), start: 0, end: 0 }
    }

    /// Bytes that were not taken.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.end]
    }

    /// Room for more.
    pub(super) fn space(&mut self) -> &mut [u8] {
        if self.memory.len() - self.end < CAPACITY_BYTES / 2 {
            self.memory.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        &mut self.memory[self.end..]
    }

    /// The first `count` bytes of the space are filled.
    pub(super) const fn filled(&mut self, count: usize) {
        self.end += count;
    }

    /// The first `count` bytes are taken.
    pub(super) const fn taken(&mut self, count: usize) {
        self.start += count;
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_moves_to_the_front_when_space_runs_out() {
        let mut buffer = ReceiveBuffer::new();
        buffer.space()[..200_000].fill(1);
        buffer.filled(200_000);
        buffer.taken(199_990);
        assert_eq!(buffer.space().len(), (256 << 10) - 10);
        assert_eq!(buffer.bytes(), [1; 10]);
        buffer.taken(10);
        assert_eq!(buffer.space().len(), 256 << 10);
    }
}
