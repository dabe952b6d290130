//! DMA buffers: accounting of which are in use by transfers.
//!
//! A buffer is contiguous, also for the controller, and counts the transfers that use it. The
//! caller provides the memory. Always true: no reference to a buffer is given out while a transfer
//! uses it; copies in or out meanwhile stay in their range.
#![allow(unsafe_code)]

use initiator::session::{BufferId, BufferSpan};
use std::{ptr, slice};

/// Alignment of buffers, so that no two share a cache line.
const BUFFER_ALIGNMENT: usize = 64;

/// All buffers of a host bus.
#[derive(Debug, Default)]
pub(crate) struct DmaBuffers {
    buffers: Vec<DmaBuffer>,
}

#[derive(Clone, Copy, Debug)]
struct DmaBuffer {
    /// Followed by `bytes` bytes that belong to no other buffer.
    start: *mut u8,
    bytes: u32,
    /// Transfers that use it.
    transfers: u32,
}

impl DmaBuffers {
    /// Returns the id of the next buffer.
    pub(crate) fn next(&self) -> BufferId {
        BufferId::new(self.buffers.len() as u32)
    }

    /// Returns the distance of buffers of this length.
    pub(crate) fn stride(bytes: u32) -> usize {
        (bytes as usize).next_multiple_of(BUFFER_ALIGNMENT).max(BUFFER_ALIGNMENT)
    }

    /// Adds `count` buffers of `bytes` bytes, a [stride](Self::stride) apart.
    ///
    /// # Safety
    ///
    /// From `start` on there must be `count` strides of initialised memory to which nothing else
    /// refers, for as long as `self` lives.
    pub(crate) unsafe fn add(&mut self, start: *mut u8, count: usize, bytes: u32) {
        let stride = Self::stride(bytes);
        // SAFETY: the caller promises as many strides, so each start is inside.
        let buffers =
            (0..count).map(|at| DmaBuffer { start: unsafe { start.add(at * stride) }, bytes, transfers: 0 });
        self.buffers.extend(buffers);
    }

    /// Returns the address of a range of a buffer, if it is inside.
    fn range(&self, BufferSpan { buffer, range }: BufferSpan) -> Option<(*mut u8, usize)> {
        let buffer = self.buffers.get(buffer.index())?;
        let end = u64::from(range.start) + u64::from(range.len);
        if end > u64::from(buffer.bytes) {
            return None;
        }
        // SAFETY: the start is not past the end, which is in the buffer.
        Some((unsafe { buffer.start.add(range.start as usize) }, range.len as usize))
    }

    /// Marks a range of a buffer as used by one more transfer.
    pub(crate) fn start_transfer(&mut self, span: BufferSpan) -> Option<*mut u8> {
        let (start, _) = self.range(span)?;
        self.buffers[span.buffer.index()].transfers += 1;
        Some(start)
    }

    /// Marks a buffer as used by one transfer fewer. The caller must know that nothing writes to it
    /// any more.
    pub(crate) fn end_transfer(&mut self, id: BufferId) {
        if let Some(buffer) = self.buffers.get_mut(id.index()) {
            buffer.transfers = buffer.transfers.saturating_sub(1);
        }
    }

    /// Returns the bytes of a buffer; `None` while a transfer uses it.
    pub(crate) fn bytes(&mut self, id: BufferId) -> Option<&mut [u8]> {
        let buffer = self.buffers.get(id.index()).filter(|buffer| buffer.transfers == 0)?;
        // SAFETY: the buffer's bytes are mapped for as long as `self` lives, belong to it alone and
        // are initialised, and no transfer is in it, so neither the kernel nor the controller
        // touches them. The borrow of `self` keeps it so.
        Some(unsafe { slice::from_raw_parts_mut(buffer.start, buffer.bytes as usize) })
    }

    /// Copies out of a span. Returns the bytes copied, limited by both lengths.
    pub(crate) fn copy_out(&self, from: BufferSpan, into: &mut [u8]) -> usize {
        let Some((start, bytes)) = self.range(from) else { return 0 };
        let bytes = bytes.min(into.len());
        // SAFETY: `range` has shown that these bytes are the buffer's; there are no references to
        // them, since `bytes` borrows `self` for writing. A byte that is being written to is some
        // byte.
        unsafe { ptr::copy_nonoverlapping(start, into.as_mut_ptr(), bytes) };
        bytes
    }

    /// Copies into a span, likewise.
    pub(crate) fn copy_in(&mut self, into: BufferSpan, from: &[u8]) -> usize {
        let Some((start, bytes)) = self.range(into) else { return 0 };
        let bytes = bytes.min(from.len());
        // SAFETY: as above.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), start, bytes) };
        bytes
    }

    /// Copies from one span to another.
    pub(crate) fn copy_across(&mut self, from: BufferSpan, into: BufferSpan) -> usize {
        let (Some((source, available)), Some((target, room))) = (self.range(from), self.range(into)) else {
            return 0;
        };
        let bytes = available.min(room);
        // SAFETY: as above; the two may be in the same buffer and overlap, which this kind of copy
        // allows.
        unsafe { ptr::copy(source, target, bytes) };
        bytes
    }
}
