//! Buffers of a host bus, named by small indices.
//!
//! The bus owns the memory, since it may have to be special: mapped for a controller, shared with
//! a guest, pinned. [`HeapBuffers`] is for a bus whose memory is ordinary.

use alloc::vec;
use alloc::vec::Vec;
use units::ByteRange;

/// Identifies a buffer of a host bus. Buffers that are allocated together have successive ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferId(u32);

/// A range of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferSpan {
    /// The buffer.
    pub buffer: BufferId,
    /// Its bytes.
    pub range: ByteRange,
}

/// A number of buffers of the same length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferBlock {
    /// Number of buffers.
    pub count: u16,
    /// Bytes of each.
    pub bytes: u32,
}

/// Access to the buffers of a host bus.
pub trait BufferMemory {
    /// Returns the bytes of a buffer; `None` while a transfer uses it.
    fn bytes(&mut self, buffer: BufferId) -> Option<&mut [u8]>;

    /// Copies out of a span, even while a transfer uses its buffer. Returns the bytes copied,
    /// limited by both lengths.
    fn copy_out(&self, from: BufferSpan, into: &mut [u8]) -> usize;

    /// Copies into a span, likewise.
    fn copy_in(&mut self, into: BufferSpan, from: &[u8]) -> usize;

    /// Copies from one span to another, likewise.
    fn copy_across(&mut self, from: BufferSpan, into: BufferSpan) -> usize;
}

impl BufferId {
    /// Creates the id of a bus's buffer number `index`.
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// Returns the number of the buffer.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the id `count` buffers after this one.
    pub const fn after(self, count: u16) -> Self {
        Self(self.0 + count as u32)
    }
}

impl BufferSpan {
    /// Returns the first `bytes` bytes, or all if there are fewer.
    #[must_use]
    pub fn first(self, bytes: u32) -> Self {
        Self { range: ByteRange::new(self.range.start, self.range.len.min(bytes)), ..self }
    }
}

/// Buffers in ordinary memory.
#[derive(Clone, Debug, Default)]
pub struct HeapBuffers(Vec<Vec<u8>>);

impl HeapBuffers {
    /// Allocates the buffers of some blocks; returns the first of each.
    pub fn allocate<const BLOCKS: usize>(&mut self, blocks: [BufferBlock; BLOCKS]) -> [BufferId; BLOCKS] {
        blocks.map(|BufferBlock { count, bytes }| {
            let first = BufferId(self.0.len() as u32);
            self.0.extend((0..count).map(|_| vec![0; bytes as usize]));
            first
        })
    }

    /// Returns the bytes of a span; `None` if there are no such bytes.
    pub fn get(&self, span: BufferSpan) -> Option<&[u8]> {
        self.0.get(span.buffer.index())?.get(span.range.as_usize())
    }
}

impl BufferMemory for HeapBuffers {
    fn bytes(&mut self, buffer: BufferId) -> Option<&mut [u8]> {
        self.0.get_mut(buffer.index()).map(Vec::as_mut_slice)
    }

    fn copy_out(&self, from: BufferSpan, into: &mut [u8]) -> usize {
        self.get(from).map_or(0, |from| copy(from, into))
    }

    fn copy_in(&mut self, into: BufferSpan, from: &[u8]) -> usize {
        let into = self.bytes(into.buffer).and_then(|bytes| bytes.get_mut(into.range.as_usize()));
        into.map_or(0, |into| copy(from, into))
    }

    fn copy_across(&mut self, from: BufferSpan, into: BufferSpan) -> usize {
        let (source, target) = (from.range.as_usize(), into.range.as_usize());
        if from.buffer == into.buffer {
            let Some(bytes) = self.bytes(from.buffer) else { return 0 };
            let are_there = bytes.get(source.clone()).is_some() && bytes.get(target.clone()).is_some();
            let len = if are_there { source.len().min(target.len()) } else { 0 };
            bytes.copy_within(source.start..source.start + len, target.start);
            return len;
        }
        let both = self.0.get_disjoint_mut([from.buffer.index(), into.buffer.index()]);
        let both = both.ok().and_then(|[from, into]| Some((from.get(source)?, into.get_mut(target)?)));
        both.map_or(0, |(from, into)| copy(from, into))
    }
}

/// Copies as much as both hold; returns the bytes copied.
fn copy(from: &[u8], into: &mut [u8]) -> usize {
    let len = from.len().min(into.len());
    into[..len].copy_from_slice(&from[..len]);
    len
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_copied_within_a_buffer_and_between_two() {
        let mut buffers = HeapBuffers::default();
        let [first] = buffers.allocate([BufferBlock { count: 2, bytes: 8 }]);
        let span =
            |count, start, len| BufferSpan { buffer: first.after(count), range: ByteRange::new(start, len) };
        buffers.copy_in(span(0, 0, 8), &[1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(buffers.copy_across(span(0, 1, 4), span(1, 0, 3)), 3);
        assert_eq!(buffers.get(span(1, 0, 8)), Some(&[2, 3, 4, 0, 0, 0, 0, 0][..]));
        assert_eq!(buffers.copy_across(span(0, 0, 4), span(0, 2, 4)), 4);
        assert_eq!(buffers.get(span(0, 0, 8)), Some(&[1, 2, 1, 2, 3, 4, 7, 8][..]));
        for (from, into) in
            [(span(0, 6, 4), span(1, 0, 4)), (span(0, 0, 4), span(1, 6, 4)), (span(0, 0, 4), span(0, 6, 4))]
        {
            assert_eq!(buffers.copy_across(from, into), 0, "there are no such bytes");
        }
        assert_eq!(buffers.copy_across(span(0, 0, 4), span(2, 0, 4)), 0, "there is no such buffer");
    }
}
