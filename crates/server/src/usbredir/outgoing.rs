//! Bytes on their way to the client.
//!
//! Headers and short payloads are copied together; long payloads stay in the memory in which they came from the
//! medium and are sent from there. Both lie in one queue, which is returned as slices for `writev`.
//!
//! Always true: bytes leave in the order in which they were pushed; in steady state nothing is allocated.

use drive::Pool;
use std::collections::VecDeque;
use std::io::IoSlice;

/// Slices per system call. More gain nothing: the system call is a small part of moving as many blocks.
pub const SLICES_MAX: usize = 64;

/// Payloads up to this many bytes are copied: a separate slice costs more.
const COPY_BYTES_MAX: usize = 512;

/// Bytes of the headers of a bulk packet.
pub(super) const HEAD_ROOM: usize = 32;

/// Sent bytes at the front of [`Outgoing::copied`] that are given up when there are this many.
const SENT_BYTES_MAX: usize = 64 << 10;

/// The queue.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    pieces: VecDeque<Piece>,
    /// Bytes of the first piece that are sent.
    front_sent: usize,
    /// The bytes of the pieces [`Piece::Copied`], in order.
    copied: Vec<u8>,
    /// Bytes of `copied` that belong to pieces that are gone.
    copied_gone: usize,
    bytes: usize,
}

#[derive(Debug)]
enum Piece {
    /// The next so many of the copied bytes.
    Copied(usize),
    /// The first so many bytes of a buffer.
    Buffer(Vec<u8>, usize),
}

impl Outgoing {
    /// Bytes that wait.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Appends a copy of these.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.copied.extend_from_slice(bytes);
        self.count_copied(bytes.len());
    }

    /// Appends headers, which `write` writes where they are sent from; it returns how long they are.
    pub(super) fn push_head(&mut self, write: impl FnOnce(&mut [u8; HEAD_ROOM]) -> usize) {
        let start = self.copied.len();
        self.copied.resize(start + HEAD_ROOM, 0);
        let Some(room) = self.copied.last_chunk_mut() else { return };
        let len = write(room).min(HEAD_ROOM);
        self.copied.truncate(start + len);
        self.count_copied(len);
    }

    fn count_copied(&mut self, count: usize) {
        self.bytes += count;
        match self.pieces.back_mut() {
            Some(Piece::Copied(len)) => *len += count,
            _ => self.pieces.push_back(Piece::Copied(count)),
        }
    }

    /// Appends the first `len` bytes of a buffer, which goes to the pool when they are sent.
    pub(super) fn push_buffer(&mut self, buffer: Vec<u8>, len: usize, pool: &mut Pool) {
        if len <= COPY_BYTES_MAX {
            self.push(&buffer[..len]);
            return pool.put(buffer);
        }
        self.bytes += len;
        self.pieces.push_back(Piece::Buffer(buffer, len));
    }

    /// Fills `slices` with what is to be sent next; returns how many there are.
    pub(super) fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let (mut count, mut copied, mut sent) = (0, self.copied_gone, self.front_sent);
        for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
            *slice = IoSlice::new(match piece {
                Piece::Copied(len) => {
                    copied += len;
                    &self.copied[copied - len + sent..copied]
                }
                Piece::Buffer(buffer, len) => &buffer[sent..*len],
            });
            sent = 0;
            count += 1;
        }
        count
    }

    /// The first `bytes` bytes are sent.
    pub(super) fn advance(&mut self, bytes: usize, pool: &mut Pool) {
        self.bytes -= bytes;
        let mut sent = self.front_sent + bytes;
        while let Some(piece) = self.pieces.front() {
            let (Piece::Copied(len) | Piece::Buffer(_, len)) = piece;
            if sent < *len {
                break;
            }
            sent -= len;
            match self.pieces.pop_front() {
                Some(Piece::Copied(len)) => self.copied_gone += len,
                Some(Piece::Buffer(buffer, _)) => pool.put(buffer),
                None => {}
            }
        }
        self.front_sent = sent;
        if self.copied_gone == self.copied.len() {
            self.copied.clear();
            self.copied_gone = 0;
        } else if self.copied_gone >= SENT_BYTES_MAX {
            self.copied.drain(..self.copied_gone);
            self.copied_gone = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn waiting(outgoing: &Outgoing) -> Vec<u8> {
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let count = outgoing.slices(&mut slices);
        slices[..count].iter().flat_map(|slice| slice.iter().copied()).collect()
    }

    #[test]
    fn short_pieces_share_a_slice_and_long_ones_have_their_own() {
        let (mut outgoing, mut pool) = (Outgoing::default(), Pool::default());
        outgoing.push(&[1, 2]);
        outgoing.push(&[3]);
        outgoing.push_buffer(vec![4; 4096], 1000, &mut pool);
        outgoing.push_buffer(vec![5; 4096], 2, &mut pool);
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        assert_eq!(outgoing.slices(&mut slices), 3);
        assert_eq!((&*slices[0], slices[1].len(), &*slices[2]), (&[1, 2, 3][..], 1000, &[5, 5][..]));
        assert_eq!(outgoing.bytes(), 1005);
    }

    proptest! {
        #[test]
        fn bytes_leave_as_they_came_however_they_are_cut(
            pieces in prop::collection::vec((any::<bool>(), 0usize..1200, any::<u8>()), 1..40),
            cuts in prop::collection::vec(1usize..2000, 1..60),
        ) {
            let (mut outgoing, mut pool) = (Outgoing::default(), Pool::default());
            let (mut expected, mut sent) = (vec![], vec![]);
            let mut cuts = cuts.into_iter().cycle();
            for (copied, len, byte) in pieces {
                expected.extend(vec![byte; len]);
                match copied {
                    true => outgoing.push(&vec![byte; len]),
                    false => outgoing.push_buffer(vec![byte; 4096], len, &mut pool),
                }
                let next = waiting(&outgoing);
                let cut = cuts.next().unwrap().min(next.len());
                sent.extend_from_slice(&next[..cut]);
                outgoing.advance(cut, &mut pool);
            }
            while outgoing.bytes() > 0 {
                let next = waiting(&outgoing);
                sent.extend_from_slice(&next);
                outgoing.advance(next.len(), &mut pool);
            }
            prop_assert_eq!(sent, expected);
            prop_assert!(outgoing.pieces.is_empty() && outgoing.copied.is_empty());
        }
    }
}
