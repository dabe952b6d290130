//! Bytes between a file and memory: how far they are, and what to try next.
//!
//! A short count goes on where it stopped. A failure is narrowed down to its first bad block by halving, and what lies
//! before that block is moved. Nothing here makes a system call.
//!
//! Always true: an attempt is never empty, and never leaves the bytes of the transfer.

use super::task::Memory;
use crate::medium::Span;
use device::medium::MediumError;

/// Errors that one transfer is narrowed down for. A medium that fails now here, now there must not hold us forever.
const FAILURES_MAX: u32 = 64;

/// Bytes on their way between file and memory.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    pub(super) purpose: TransferPurpose,
    pub(super) memory: Memory,
    /// Where in the memory.
    pub(super) start: usize,
    /// Where in the file.
    at: u64,
    pub(super) len: usize,
    pub(super) moved: usize,
    /// Offset of the end of the bytes in which a failure lies, if there was one.
    suspect: Option<usize>,
    failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransferPurpose {
    /// From the file.
    Load,
    /// To the file.
    Store,
    /// To the file, what was there before an atomic write that failed like this.
    Restore(MediumError),
}

impl Transfer {
    pub(super) const fn new(purpose: TransferPurpose, memory: Memory, start: usize, span: Span) -> Self {
        let (at, len) = (span.start, span.len as usize);
        Self { purpose, memory, start, at, len, moved: 0, suspect: None, failures: 0 }
    }

    /// Where in the file the next byte lies.
    pub(super) const fn position(&self) -> u64 {
        self.at + self.moved as u64
    }

    /// Bytes to try next: all that is left, or, of bytes in which a failure lies, the first half, in whole blocks.
    pub(super) fn attempt(&self, block: usize) -> usize {
        let Some(end) = self.suspect else { return self.len - self.moved };
        let middle = (self.moved + (end - self.moved) / 2) / block * block;
        let first_block_end = (self.moved / block + 1) * block;
        middle.max(first_block_end).min(end) - self.moved
    }

    pub(super) fn advance(&mut self, count: usize) {
        self.moved = (self.moved + count).min(self.len);
        self.suspect = self.suspect.filter(|&end| self.moved < end);
    }

    /// After a failure: `false` if it was in a single block, or it is not worth while.
    pub(super) fn narrow(&mut self, block: usize) -> bool {
        let attempt = self.attempt(block);
        self.failures += 1;
        if self.moved / block == (self.moved + attempt - 1) / block || self.failures > FAILURES_MAX {
            return false;
        }
        self.suspect = Some(self.moved + attempt);
        true
    }
}
