//! A window on a stream of bytes: what was read and not used yet, and where in the stream it begins.
//!
//! Invariants: memory grows only by bytes that came, and to no more than twice what was asked for; asking for bytes past the end
//! gives what there is.

use std::io::{self, Read};

/// Bytes that are read at once, and kept at least.
const CHUNK_BYTES: usize = 1 << 20;

pub(super) struct Window<R> {
    input: R,
    buffer: Vec<u8>,
    /// Index in `buffer` of the first byte that is not used yet.
    start: usize,
    end: usize,
    /// Of the first byte that is not used yet.
    offset: u64,
    has_ended: bool,
}

impl<R: Read> Window<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, buffer: vec![0; CHUNK_BYTES], start: 0, end: 0, offset: 0, has_ended: false }
    }

    /// Where the first byte of [`Self::bytes`] is in the stream.
    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the bytes that are read and not used yet.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Reads until there are so many bytes: whether there are.
    pub(super) fn want(&mut self, len: usize) -> io::Result<bool> {
        while self.end - self.start < len {
            if self.has_ended {
                return Ok(false);
            }
            if self.end == self.buffer.len() {
                self.make_room();
            }
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.has_ended = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Goes on by so many bytes, which are there.
    pub(super) fn skip(&mut self, len: usize) {
        let len = len.min(self.end - self.start);
        self.start += len;
        self.offset += len as u64;
    }

    /// Moves what is there to the front; if it is all of the buffer, there is a larger one.
    fn make_room(&mut self) {
        if self.start == 0 {
            self.buffer.resize(self.buffer.len() * 2, 0);
        } else {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_as_they_are_wanted_and_know_their_offset() {
        let stream: Vec<u8> = (0..3 * CHUNK_BYTES).map(|at| (at % 251) as u8).collect();
        let mut window = Window::new(&stream[..]);
        assert!(window.want(2 * CHUNK_BYTES).unwrap());
        window.skip(2 * CHUNK_BYTES - 1);
        assert_eq!(window.offset(), 2 * CHUNK_BYTES as u64 - 1);
        assert!(window.want(CHUNK_BYTES + 1).unwrap());
        assert_eq!(window.bytes(), &stream[2 * CHUNK_BYTES - 1..]);
    }

    #[test]
    fn past_the_end_there_is_what_there_is() {
        let mut window = Window::new(&b"abc"[..]);
        assert!(!window.want(4).unwrap());
        assert_eq!(window.bytes(), b"abc");
        window.skip(4);
        assert_eq!(window.offset(), 3);
    }
}
