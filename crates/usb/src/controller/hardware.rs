//! Registers and DMA memory of a real controller, for the driver.
//!
//! Memory is shared with the controller in chunks on demand and kept until the controller is
//! released; allocations come from the chunks. Always true: at most [`STRUCTURE_BYTES_MAX`] bytes
//! are shared for structures.

use crate::vfio::{Addresses, Function, SharedMemory};
use xhci_driver::{DmaLayout, DmaMemory, Registers};

/// Bytes of a chunk, unless a piece is longer: rings of hundreds of streams fit.
const CHUNK_BYTES: usize = 1 << 20;

/// Bytes for structures at most: a thousand streams on each of three endpoints of several devices.
const STRUCTURE_BYTES_MAX: usize = 128 << 20;

/// A controller's registers and structures.
#[derive(Debug)]
pub(super) struct Hardware {
    pub(super) function: Function,
    chunks: Vec<SharedMemory>,
    free: Addresses,
}

impl Hardware {
    pub(super) fn new(function: Function) -> Self {
        Self { function, chunks: Vec::new(), free: Addresses::new(0, 0) }
    }

    fn grow(&mut self, layout: DmaLayout) -> Option<()> {
        let shared: usize = self.chunks.iter().map(SharedMemory::len).sum();
        // A piece may have to begin at a multiple of as much as it must stay within.
        let bytes = CHUNK_BYTES.max(layout.bytes as usize + layout.boundary.max(layout.align) as usize);
        if shared + bytes > STRUCTURE_BYTES_MAX {
            return None;
        }
        let chunk = self.function.share(bytes).ok()?;
        self.free.release(chunk.bus_address(), chunk.len() as u64);
        self.chunks.push(chunk);
        Some(())
    }

    fn find(&mut self, layout: DmaLayout) -> Option<u64> {
        self.free.allocate(layout.bytes.into(), layout.align.into(), layout.boundary.into())
    }

    fn chunk(&mut self, address: u64) -> Option<&mut SharedMemory> {
        self.chunks.iter_mut().find(|chunk| chunk.contains(address))
    }
}

impl Registers for Hardware {
    fn read_register(&mut self, offset: u32) -> u32 {
        self.function.registers().read(offset)
    }

    fn write_register(&mut self, offset: u32, value: u32) {
        self.function.registers().write(offset, value);
    }
}

impl DmaMemory for Hardware {
    fn allocate(&mut self, layout: DmaLayout) -> Option<u64> {
        let at = match self.find(layout) {
            Some(at) => at,
            None => {
                self.grow(layout)?;
                self.find(layout)?
            }
        };
        self.write_bytes(at, &vec![0; layout.bytes as usize]);
        Some(at)
    }

    fn release(&mut self, address: u64, layout: DmaLayout) {
        self.free.release(address, layout.bytes.into());
    }

    fn read_bytes(&mut self, address: u64, into: &mut [u8]) {
        let is_read = match <&mut [u8; 4]>::try_from(&mut *into) {
            // Four bytes are a word that the controller may be writing.
            Ok(word) if address.is_multiple_of(4) => {
                let value = self.chunk(address).and_then(|chunk| chunk.read_u32(address));
                value.map(|value| *word = value.to_le_bytes()).is_some()
            }
            _ => self.chunk(address).is_some_and(|chunk| chunk.read(address, into)),
        };
        debug_assert!(is_read, "the driver reads only what it has: {address:#x}");
    }

    fn write_bytes(&mut self, address: u64, bytes: &[u8]) {
        let is_written = self.chunk(address).is_some_and(|chunk| chunk.write(address, bytes));
        debug_assert!(is_written, "the driver writes only to what it has: {address:#x}");
    }

    fn write_u32(&mut self, address: u64, value: u32) {
        let is_written = self.chunk(address).is_some_and(|chunk| chunk.write_u32(address, value));
        debug_assert!(is_written, "the driver writes only to what it has: {address:#x}");
    }
}
