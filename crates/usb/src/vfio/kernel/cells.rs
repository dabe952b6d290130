//! Cells in memory that a device sees.

use super::memory::SharedMemory;
use crate::door::{CellId, CellMemory};
use units::ByteRange;

/// Cells, and the memory that they are in.
#[derive(Debug, Default)]
pub(crate) struct SharedCells {
    areas: Vec<SharedMemory>,
    cells: CellMemory,
}

// SAFETY: the cells lie in the areas, which belong to this value alone and to no thread.
unsafe impl Send for SharedCells {}

impl SharedCells {
    /// Bytes for so many cells of so many bytes.
    pub(crate) fn bytes_for(count: u16, bytes: u32) -> usize {
        usize::from(count) * CellMemory::stride(bytes)
    }

    /// Makes cells of shared memory, as many as are asked for and have room. They have successive names, of which this
    /// is the first.
    pub(crate) fn add(&mut self, memory: SharedMemory, count: u16, bytes: u32) -> CellId {
        let first = self.cells.next();
        let room = memory.len() / CellMemory::stride(bytes);
        // SAFETY: no more strides than the memory has; it is kept for as long as the cells are, and they are all that
        // refers to it.
        unsafe { self.cells.add(memory.start(), room.min(count.into()), bytes) };
        self.areas.push(memory);
        first
    }

    /// The cells.
    pub(crate) const fn cells(&mut self) -> &mut CellMemory {
        &mut self.cells
    }

    /// The cells, to look at.
    pub(crate) const fn cells_ref(&self) -> &CellMemory {
        &self.cells
    }

    /// A transfer goes into a range of a cell, which the device sees at this bus address.
    pub(crate) fn lend(&mut self, cell: CellId, range: ByteRange) -> Option<u64> {
        let start = self.cells.lend(cell, range)? as usize;
        let inside = |area: &SharedMemory| {
            let offset = start.checked_sub(area.start() as usize)?;
            (offset <= area.len()).then(|| area.bus_address() + offset as u64)
        };
        self.areas.iter().find_map(inside)
    }

    /// The memory, when there are no cells any more.
    pub(crate) fn into_areas(self) -> Vec<SharedMemory> {
        self.areas
    }
}
