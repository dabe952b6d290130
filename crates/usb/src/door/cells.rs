//! Memory for transfers, in cells: what of it may be looked at while transfers are in it, and by whom.
//!
//! A cell is the buffer of one thing, contiguous for the controller as well, and counts the transfers that are in it.
//! Where the memory comes from is for others to say. Always true: no reference to a cell is given out while a transfer
//! is in it; what is copied in or out meanwhile stays in its range.
#![allow(unsafe_code)]

use std::{ptr, slice};
use units::ByteRange;

/// Cells begin at multiples of this, so that two of them never share a cache line.
const CELL_ALIGNMENT: usize = 64;

/// Names a piece of memory for transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CellId(u32);

/// All cells of a door.
#[derive(Debug, Default)]
pub(crate) struct CellMemory {
    cells: Vec<Cell>,
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    /// Has `bytes` behind it that belong to no other cell.
    start: *mut u8,
    bytes: u32,
    /// Transfers in it.
    lent: u32,
}

impl CellMemory {
    /// The name of the next cell.
    pub(crate) fn next(&self) -> CellId {
        CellId(self.cells.len() as u32)
    }

    /// How far apart cells of so many bytes are.
    pub(crate) fn stride(bytes: u32) -> usize {
        (bytes as usize).next_multiple_of(CELL_ALIGNMENT).max(CELL_ALIGNMENT)
    }

    /// Adds so many cells of so many bytes, a [stride](Self::stride) apart.
    ///
    /// # Safety
    /// From `start` on there must be as many strides of initialised memory, which nobody else refers to, for as long as
    /// `self` lives.
    pub(crate) unsafe fn add(&mut self, start: *mut u8, count: usize, bytes: u32) {
        let stride = Self::stride(bytes);
        // SAFETY: the caller promises as many strides, so each start is inside.
        let cells = (0..count).map(|at| Cell { start: unsafe { start.add(at * stride) }, bytes, lent: 0 });
        self.cells.extend(cells);
    }

    /// The bytes of a cell; `None` while a transfer is in it.
    pub(crate) fn bytes(&mut self, id: CellId) -> Option<&mut [u8]> {
        let cell = self.cells.get(id.0 as usize).filter(|cell| cell.lent == 0)?;
        // SAFETY: the cell's bytes are mapped for as long as `self` lives, belong to it alone and are initialised, and
        // no transfer is in it, so neither the kernel nor the controller touches them. The borrow of `self` keeps it so.
        Some(unsafe { slice::from_raw_parts_mut(cell.start, cell.bytes as usize) })
    }

    /// Copies out of a range of a cell, whoever is in the rest of it; as many bytes as there are, and as there is room.
    pub(crate) fn copy_out(&self, id: CellId, range: ByteRange, into: &mut [u8]) -> usize {
        let Some((start, bytes)) = self.range(id, range) else { return 0 };
        let bytes = bytes.min(into.len());
        // SAFETY: `range` has shown that these bytes are the cell's; there are no references to them, since `bytes`
        // borrows `self` for writing. A byte that is being written to is some byte.
        unsafe { ptr::copy_nonoverlapping(start, into.as_mut_ptr(), bytes) };
        bytes
    }

    /// Copies into a range of a cell, likewise.
    pub(crate) fn copy_in(&mut self, id: CellId, range: ByteRange, from: &[u8]) -> usize {
        let Some((start, bytes)) = self.range(id, range) else { return 0 };
        let bytes = bytes.min(from.len());
        // SAFETY: as above.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), start, bytes) };
        bytes
    }

    /// Copies from one cell to another.
    pub(crate) fn copy_across(&mut self, from: (CellId, ByteRange), to: (CellId, ByteRange)) -> usize {
        let (Some((source, available)), Some((target, room))) =
            (self.range(from.0, from.1), self.range(to.0, to.1))
        else {
            return 0;
        };
        let bytes = available.min(room);
        // SAFETY: as above; the two may be in the same cell and overlap, which this kind of copy allows.
        unsafe { ptr::copy(source, target, bytes) };
        bytes
    }

    /// Where a range of a cell is, if it is all inside.
    fn range(&self, id: CellId, range: ByteRange) -> Option<(*mut u8, usize)> {
        let cell = self.cells.get(id.0 as usize)?;
        let end = u64::from(range.start) + u64::from(range.len);
        if end > u64::from(cell.bytes) {
            return None;
        }
        // SAFETY: the start is not past the end, which is in the cell.
        Some((unsafe { cell.start.add(range.start as usize) }, range.len as usize))
    }

    /// A transfer goes into a range of a cell.
    pub(crate) fn lend(&mut self, id: CellId, range: ByteRange) -> Option<*mut u8> {
        let (start, _) = self.range(id, range)?;
        self.cells[id.0 as usize].lent += 1;
        Some(start)
    }

    /// It has come out: whoever calls this has seen that nobody writes there any more.
    pub(crate) fn take_back(&mut self, id: CellId) {
        if let Some(cell) = self.cells.get_mut(id.0 as usize) {
            cell.lent = cell.lent.saturating_sub(1);
        }
    }
}

impl CellId {
    /// The cell so many names further on.
    pub const fn after(self, count: u16) -> Self {
        Self(self.0 + count as u32)
    }
}
