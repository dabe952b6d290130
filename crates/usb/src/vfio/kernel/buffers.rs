//! DMA buffers in memory shared with a device.

use super::memory::SharedMemory;
use crate::host_bus::{BufferId, BufferSpan, DmaBuffers};

/// Buffers, and the memory that they are in.
#[derive(Debug, Default)]
pub(crate) struct SharedBuffers {
    areas: Vec<SharedMemory>,
    buffers: DmaBuffers,
}

// SAFETY: the buffers lie in the areas, which belong to this value alone and to no thread.
unsafe impl Send for SharedBuffers {}

impl SharedBuffers {
    /// Bytes for so many buffers of so many bytes.
    pub(crate) fn bytes_for(count: u16, bytes: u32) -> usize {
        usize::from(count) * DmaBuffers::stride(bytes)
    }

    /// Makes buffers of shared memory, as many as are asked for and have room. They have successive
    /// names, of which this is the first.
    pub(crate) fn add(&mut self, memory: SharedMemory, count: u16, bytes: u32) -> BufferId {
        let first = self.buffers.next();
        let room = memory.len() / DmaBuffers::stride(bytes);
        // SAFETY: no more strides than the memory has; it is kept for as long as the buffers are,
        // and they are all that refers to it.
        unsafe { self.buffers.add(memory.start(), room.min(count.into()), bytes) };
        self.areas.push(memory);
        first
    }

    /// The buffers.
    pub(crate) const fn buffers(&mut self) -> &mut DmaBuffers {
        &mut self.buffers
    }

    /// The buffers, to look at.
    pub(crate) const fn buffers_ref(&self) -> &DmaBuffers {
        &self.buffers
    }

    /// A transfer goes into a span, which the device sees at this bus address.
    pub(crate) fn start_transfer(&mut self, span: BufferSpan) -> Option<u64> {
        let start = self.buffers.start_transfer(span)? as usize;
        let inside = |area: &SharedMemory| {
            let offset = start.checked_sub(area.start() as usize)?;
            (offset <= area.len()).then(|| area.bus_address() + offset as u64)
        };
        self.areas.iter().find_map(inside)
    }

    /// The memory, when there are no buffers any more.
    pub(crate) fn into_areas(self) -> Vec<SharedMemory> {
        self.areas
    }
}
