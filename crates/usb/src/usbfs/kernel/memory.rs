//! DMA buffers: memory mapped from usbfs where possible, so that nothing is copied, else of the
//! process.
//!
//! A buffer is contiguous, also for the controller, and counts the URBs that use it. Always true: a
//! buffer does not move; no reference to it is given out while an URB uses it.

use super::node::{Capabilities, Node};
use crate::host_bus::{BufferId, DmaBuffers};
use rustix::io::{Errno, Result};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::fmt;
use std::ptr;

/// Bytes of an area that holds several buffers. The controller wants each area in one piece, which
/// the kernel finds more easily if it is small, and it looks at all areas for each URB, so they
/// should be few.
const AREA_BYTES: usize = 256 << 10;

/// The longest pages that kernels are built for.
const PAGE_BYTES_MAX: usize = 64 << 10;

/// All memory of a device.
pub(in crate::usbfs) struct Memory {
    areas: Vec<Area>,
    buffers: DmaBuffers,
    /// Why usbfs's memory is not used.
    refusal: Option<Errno>,
}

/// A mapping of this process, ended when it is dropped.
struct Area {
    start: *mut u8,
    bytes: usize,
}

impl Memory {
    pub(super) fn new(capabilities: Capabilities) -> Self {
        let refusal = (!capabilities.mapping).then_some(Errno::NOSYS);
        Self { areas: Vec::new(), buffers: DmaBuffers::default(), refusal }
    }

    /// Returns the bytes that usbfs counts at most for so many buffers of so many bytes: each area is whole pages.
    pub(in crate::usbfs) fn footprint_bytes(count: u16, bytes: u32) -> u64 {
        let stride = DmaBuffers::stride(bytes);
        areas(count, stride).map(|buffers| (buffers * stride).next_multiple_of(PAGE_BYTES_MAX) as u64).sum()
    }

    /// Makes so many buffers of so many bytes, all zero. They have successive names, of which this
    /// is the first.
    pub(super) fn add(&mut self, node: &Node, count: u16, bytes: u32) -> Result<BufferId> {
        let first = self.buffers.next();
        let stride = DmaBuffers::stride(bytes);
        for here in areas(count, stride) {
            let area = self.map(node, here * stride)?;
            // SAFETY: the area has `here * stride` bytes, is kept for as long as the buffers are,
            // and is theirs alone.
            unsafe { self.buffers.add(area.start, here, bytes) };
            self.areas.push(area);
        }
        Ok(first)
    }

    /// Usbfs's memory, or, once that was refused, the process's own.
    fn map(&mut self, node: &Node, bytes: usize) -> Result<Area> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        if self.refusal.is_none() {
            // SAFETY: a new mapping at a place that the kernel chooses touches no memory that is in
            // use.
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

    /// The buffers.
    pub(in crate::usbfs) const fn buffers(&mut self) -> &mut DmaBuffers {
        &mut self.buffers
    }

    /// The buffers, to look at.
    pub(in crate::usbfs) const fn buffers_ref(&self) -> &DmaBuffers {
        &self.buffers
    }
}

/// How many of so many buffers, a stride apart, each area has.
fn areas(count: u16, stride: usize) -> impl Iterator<Item = usize> {
    let (count, per_area) = (usize::from(count), (AREA_BYTES / stride).max(1));
    (0..count).step_by(per_area).map(move |at| per_area.min(count - at))
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with these bounds and is this value's alone; `Memory` goes
        // as a whole, so no buffer is left. An URB that is still in flight does no harm: the kernel
        // keeps its own hold of usbfs's memory, and writes to a process's memory only inside of a
        // call that reaps.
        let ended = unsafe { munmap(self.start.cast(), self.bytes) };
        debug_assert_eq!(ended, Ok(()), "our mapping can be unmapped");
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("areas", &self.areas.len())
            .field("buffers", &self.buffers.next())
            .field("refusal", &self.refusal)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_pages_of_each_area_are_counted() {
        assert_eq!(Memory::footprint_bytes(14, 512 << 10), 7 << 20);
        assert_eq!(Memory::footprint_bytes(65, 4096), (256 << 10) + (64 << 10));
        assert_eq!((Memory::footprint_bytes(1, 1), Memory::footprint_bytes(0, 4096)), (64 << 10, 0));
    }
}
