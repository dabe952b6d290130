//! Registers of a function, mapped.
//!
//! Always true: an access is one of 32 bits, at a multiple of four, inside the mapping; accesses
//! reach the device in the order of the calls, and after what was written to memory before them.

use super::node::{Device, Region};
use rustix::io::{Errno, Result};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::fmt;
use std::ptr;
use std::sync::atomic::{Ordering, fence};

/// The registers of one region.
pub struct Registers {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: the mapping is this value's alone and belongs to no thread; every access needs a mutable
// borrow of it.
unsafe impl Send for Registers {}

impl Registers {
    pub(in crate::vfio) fn map(device: &Device, region: Region) -> Result<Self> {
        let bytes = usize::try_from(region.size).map_err(|_| Errno::INVAL)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at a place that the kernel chooses touches no memory that is in
        // use.
        let start =
            unsafe { mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED, device.fd(), region.offset) }?;
        Ok(Self { start: start.cast(), bytes })
    }

    /// How many bytes of registers there are.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// A register; all ones where there is none.
    pub fn read(&mut self, offset: u32) -> u32 {
        let Some(place) = self.place(offset) else { return u32::MAX };
        // SAFETY: `place` has shown that the four bytes are in the mapping and aligned; any value
        // of them is a number.
        let value = unsafe { place.read_volatile() };
        // What the device has written to memory before it answered is seen after it.
        fence(Ordering::Acquire);
        u32::from_le(value)
    }

    /// Writes a register; nothing where there is none.
    pub fn write(&mut self, offset: u32, value: u32) {
        let Some(place) = self.place(offset) else { return };
        // What was written to memory is there before the device hears of it.
        fence(Ordering::Release);
        // SAFETY: as above. What the device does with it is bounded by the IOMMU.
        unsafe { place.write_volatile(value.to_le()) };
    }

    fn place(&self, offset: u32) -> Option<*mut u32> {
        let offset = offset as usize;
        let is_inside = offset.is_multiple_of(4) && offset.checked_add(4)? <= self.bytes;
        // SAFETY: the offset is inside the mapping.
        is_inside.then(|| unsafe { self.start.add(offset) }.cast())
    }
}

impl Drop for Registers {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with these bounds and is this value's alone.
        let ended = unsafe { munmap(self.start.cast(), self.bytes) };
        debug_assert_eq!(ended, Ok(()), "our mapping can be unmapped");
    }
}

impl fmt::Debug for Registers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registers({} bytes)", self.bytes)
    }
}
