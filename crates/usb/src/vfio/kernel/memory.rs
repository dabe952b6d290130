//! Memory of this process that a device sees as well, at a bus address.
//!
//! It is pinned for as long as it is shared. Always true: the device sees it no more before the
//! process gives it back; what the device may write is read and written by pointer, word by word
//! where a word must not be torn.

use super::node::Container;
use rustix::io::Result;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::fmt;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

/// Pages are this long, or a power of two longer.
const PAGE_BYTES: usize = 4096;

/// A piece of shared memory, zeroes at first.
pub struct SharedMemory {
    start: *mut u8,
    bytes: usize,
    bus_address: u64,
    container: Arc<Container>,
}

// SAFETY: the mapping is this value's alone and belongs to no thread; every access needs a borrow
// of it.
unsafe impl Send for SharedMemory {}

impl SharedMemory {
    /// Shares so many bytes, rounded up to pages, at a bus address that nothing else has.
    pub(in crate::vfio) fn share(container: Arc<Container>, bytes: usize, bus_address: u64) -> Result<Self> {
        let bytes = Self::rounded(bytes);
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at a place that the kernel chooses touches no memory that is in
        // use.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), bytes, access, MapFlags::PRIVATE) }?;
        // From here on dropping the value ends the mapping, whether it was shared or not.
        let memory = Self { start: start.cast(), bytes, bus_address, container };
        // SAFETY: these bytes stay mapped until `drop`, which takes them out of the device's sight
        // first; they are only reached through pointers, or while no transfer is in them.
        unsafe { memory.container.map(memory.start, bytes, bus_address) }?;
        Ok(memory)
    }

    /// How many bytes are shared when so many are asked for.
    pub(in crate::vfio) const fn rounded(bytes: usize) -> usize {
        if bytes == 0 { PAGE_BYTES } else { bytes.next_multiple_of(PAGE_BYTES) }
    }

    /// Where the device sees it.
    pub fn bus_address(&self) -> u64 {
        self.bus_address
    }

    /// How long it is.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Its beginning.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// Whether a bus address is in it.
    pub fn contains(&self, bus_address: u64) -> bool {
        bus_address.checked_sub(self.bus_address).is_some_and(|offset| offset < self.bytes as u64)
    }

    /// Reads from a bus address on; whether all of that is here.
    pub fn read(&self, bus_address: u64, into: &mut [u8]) -> bool {
        let Some(from) = self.place(bus_address, into.len()) else { return false };
        // SAFETY: `place` has shown that the bytes are here; `into` is not, since no one is given a
        // reference to it.
        unsafe { ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
        fence(Ordering::Acquire);
        true
    }

    /// Reads four bytes at once, at a multiple of four.
    pub fn read_u32(&self, bus_address: u64) -> Option<u32> {
        let from = self.place(bus_address, 4).filter(|_| bus_address.is_multiple_of(4))?;
        // SAFETY: as above; the memory begins at a page, so a multiple of four on the bus is one
        // here.
        let value = unsafe { from.cast::<u32>().read_volatile() };
        fence(Ordering::Acquire);
        Some(u32::from_le(value))
    }

    /// Writes from a bus address on; whether all of that is here.
    pub fn write(&mut self, bus_address: u64, from: &[u8]) -> bool {
        let Some(to) = self.place(bus_address, from.len()) else { return false };
        fence(Ordering::Release);
        // SAFETY: as in `read`.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
        true
    }

    /// Writes four bytes at once, at a multiple of four; whether they are here.
    pub fn write_u32(&mut self, bus_address: u64, value: u32) -> bool {
        let Some(to) = self.place(bus_address, 4).filter(|_| bus_address.is_multiple_of(4)) else {
            return false;
        };
        fence(Ordering::Release);
        // SAFETY: as in `read_u32`.
        unsafe { to.cast::<u32>().write_volatile(value.to_le()) };
        true
    }

    fn place(&self, bus_address: u64, bytes: usize) -> Option<*mut u8> {
        let offset = usize::try_from(bus_address.checked_sub(self.bus_address)?).ok()?;
        let is_inside = offset.checked_add(bytes)? <= self.bytes;
        // SAFETY: the offset is inside the mapping.
        is_inside.then(|| unsafe { self.start.add(offset) })
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // If the device still sees it, which cannot be, it must not go.
        match self.container.unmap(self.bytes, self.bus_address) {
            Ok(()) => {
                // SAFETY: the mapping was made with these bounds and is this value's alone; no
                // device sees it.
                let ended = unsafe { munmap(self.start.cast(), self.bytes) };
                debug_assert_eq!(ended, Ok(()), "our mapping can be unmapped");
            }
            Err(errno) => debug_assert!(false, "shared memory is not given back: {errno}"),
        }
    }
}

impl fmt::Debug for SharedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedMemory({} bytes at {:#x})", self.bytes, self.bus_address)
    }
}
