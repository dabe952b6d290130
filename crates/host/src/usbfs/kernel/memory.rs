//! Memory for transfers, in cells: usbfs's own where it can be mapped, so that nothing is copied, else the process's.
//!
//! A cell is the buffer of one thing, contiguous for the controller as well, and counts the URBs that are in it. Always
//! true: a cell stays where it is until the end; no reference to it is given out while an URB is in it.

use super::node::{Capabilities, Node};
use rustix::io::{Errno, Result};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::fmt;
use std::ptr;
use std::slice;
use units::ByteRange;

/// Bytes of an area that holds several cells. The controller wants each area in one piece, which the kernel finds more
/// easily if it is small, and it looks at all areas for each URB, so they should be few.
const AREA_BYTES: usize = 256 << 10;

/// Cells begin at multiples of this, so that two of them never share a cache line.
const CELL_ALIGNMENT: usize = 64;

/// Names a piece of memory for transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CellId(u32);

/// All memory of a device.
pub(in crate::usbfs) struct Memory {
    areas: Vec<Area>,
    cells: Vec<Cell>,
    /// Why usbfs's memory is not used.
    refusal: Option<Errno>,
}

/// A mapping of this process, ended when it is dropped.
struct Area {
    start: *mut u8,
    bytes: usize,
}

#[derive(Clone, Copy)]
struct Cell {
    /// In one of the areas, with `bytes` behind it that belong to no other cell.
    start: *mut u8,
    bytes: u32,
    /// URBs in it.
    urbs: u32,
}

impl Memory {
    pub(super) fn new(capabilities: Capabilities) -> Self {
        let refusal = (!capabilities.mapping).then_some(Errno::NOSYS);
        Self { areas: Vec::new(), cells: Vec::new(), refusal }
    }

    /// Makes so many cells of so many bytes, all zero. They have successive names, of which this is the first.
    pub(super) fn add(&mut self, node: &Node, count: u16, bytes: u32) -> Result<CellId> {
        let first = CellId(self.cells.len() as u32);
        let stride = (bytes as usize).next_multiple_of(CELL_ALIGNMENT).max(CELL_ALIGNMENT);
        let per_area = (AREA_BYTES / stride).max(1);
        let mut left = usize::from(count);
        while left > 0 {
            let here = left.min(per_area);
            let area = self.map(node, here * stride)?;
            // SAFETY: the area has `here * stride` bytes, so each start is inside of it.
            let cells =
                (0..here).map(|at| Cell { start: unsafe { area.start.add(at * stride) }, bytes, urbs: 0 });
            self.cells.extend(cells);
            self.areas.push(area);
            left -= here;
        }
        Ok(first)
    }

    /// Usbfs's memory, or, once that was refused, the process's own.
    fn map(&mut self, node: &Node, bytes: usize) -> Result<Area> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        if self.refusal.is_none() {
            // SAFETY: a new mapping at a place that the kernel chooses touches no memory that is in use.
            match unsafe { mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED, node.fd(), 0) } {
                Ok(start) => return Ok(Area { start: start.cast(), bytes }),
                Err(errno) => self.refusal = Some(errno),
            }
        }
        // SAFETY: as above.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), bytes, access, MapFlags::PRIVATE) }?;
        Ok(Area { start: start.cast(), bytes })
    }

    /// Why some memory is not usbfs's own, if it is not.
    pub(in crate::usbfs) const fn refusal(&self) -> Option<Errno> {
        self.refusal
    }

    /// The bytes of a cell; `None` while an URB is in it.
    pub(in crate::usbfs) fn bytes(&mut self, id: CellId) -> Option<&mut [u8]> {
        let cell = self.cells.get(id.0 as usize).filter(|cell| cell.urbs == 0)?;
        // SAFETY: the cell's bytes are mapped for as long as `self` lives, belong to it alone and are initialised, and
        // no URB is in it, so neither the kernel nor the controller touches them. The borrow of `self` keeps it so.
        Some(unsafe { slice::from_raw_parts_mut(cell.start, cell.bytes as usize) })
    }

    /// Copies out of a range of a cell, whoever is in the rest of it; as many bytes as there are, and as there is room.
    pub(in crate::usbfs) fn copy_out(&self, id: CellId, range: ByteRange, into: &mut [u8]) -> usize {
        let Some((start, bytes)) = self.range(id, range) else { return 0 };
        let bytes = bytes.min(into.len());
        // SAFETY: `range` has shown that these bytes are the cell's; there are no references to them, since `bytes`
        // borrows `self` for writing. A byte that is being written to is some byte.
        unsafe { ptr::copy_nonoverlapping(start, into.as_mut_ptr(), bytes) };
        bytes
    }

    /// Copies into a range of a cell, likewise.
    pub(in crate::usbfs) fn copy_in(&mut self, id: CellId, range: ByteRange, from: &[u8]) -> usize {
        let Some((start, bytes)) = self.range(id, range) else { return 0 };
        let bytes = bytes.min(from.len());
        // SAFETY: as above.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), start, bytes) };
        bytes
    }

    /// Copies from one cell to another.
    pub(in crate::usbfs) fn copy_across(
        &mut self,
        from: (CellId, ByteRange),
        to: (CellId, ByteRange),
    ) -> usize {
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

    /// An URB goes into a range of a cell.
    pub(super) fn lend(&mut self, id: CellId, range: ByteRange) -> Option<*mut u8> {
        let (start, _) = self.range(id, range)?;
        self.cells[id.0 as usize].urbs += 1;
        Some(start)
    }

    /// It has come out.
    pub(super) fn take_back(&mut self, id: CellId) {
        if let Some(cell) = self.cells.get_mut(id.0 as usize) {
            cell.urbs = cell.urbs.saturating_sub(1);
        }
    }
}

impl CellId {
    /// The cell so many names further on.
    pub const fn after(self, count: u16) -> Self {
        Self(self.0 + count as u32)
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with these bounds and is this value's alone; `Memory` goes as a whole, so no
        // cell is left. An URB that is still under way does no harm: the kernel keeps its own hold of usbfs's memory,
        // and writes to a process's memory only inside of a call that reaps.
        let ended = unsafe { munmap(self.start.cast(), self.bytes) };
        debug_assert_eq!(ended, Ok(()), "a mapping of our own can be ended");
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("areas", &self.areas.len())
            .field("cells", &self.cells.len())
            .field("refusal", &self.refusal)
            .finish()
    }
}
