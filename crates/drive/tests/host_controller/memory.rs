//! Memory of a test: allocations that share no page, so that an access past the end of one fails.

use std::collections::BTreeMap;
use xhci_controller::{Fault, GuestMemory};
use xhci_driver::{DmaLayout, DmaMemory};

/// Bytes of a page.
const PAGE_BYTES: u64 = 4096;

/// Memory without content at address 0.
pub(crate) struct HostMemory {
    /// By address.
    allocations: BTreeMap<u64, Vec<u8>>,
    /// Where the next one starts.
    next: u64,
    /// Accesses of the driver outside of an allocation.
    faults: u32,
}

impl HostMemory {
    pub(crate) const fn new() -> Self {
        Self { allocations: BTreeMap::new(), next: 256 * PAGE_BYTES, faults: 0 }
    }

    pub(crate) const fn faults(&self) -> u32 {
        self.faults
    }

    /// Returns bytes of an allocation.
    pub(crate) fn slice(&self, address: u64, bytes: usize) -> Option<&[u8]> {
        let (base, at) = self.find(address)?;
        self.allocations[&base].get(at..at.checked_add(bytes)?)
    }

    fn find(&self, address: u64) -> Option<(u64, usize)> {
        let (base, _) = self.allocations.range(..=address).next_back()?;
        Some((*base, usize::try_from(address - base).ok()?))
    }
}

impl GuestMemory for HostMemory {
    fn read_bytes(&self, address: u64, into: &mut [u8]) -> Result<(), Fault> {
        into.copy_from_slice(self.slice(address, into.len()).ok_or(Fault { address })?);
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        let found = self.find(address).and_then(|(base, at)| {
            let end = at.checked_add(bytes.len())?;
            self.allocations.get_mut(&base)?.get_mut(at..end)
        });
        found.ok_or(Fault { address })?.copy_from_slice(bytes);
        Ok(())
    }
}

impl DmaMemory for HostMemory {
    fn allocate(&mut self, layout: DmaLayout) -> Option<u64> {
        let (bytes, boundary) = (u64::from(layout.bytes), u64::from(layout.boundary.max(1)));
        let mut address = self.next.next_multiple_of(u64::from(layout.align).max(PAGE_BYTES));
        if address / boundary != (address + bytes.saturating_sub(1)) / boundary {
            address = address.next_multiple_of(boundary);
        }
        self.next = (address + bytes).next_multiple_of(PAGE_BYTES);
        self.allocations.insert(address, vec![0; layout.bytes as usize]);
        Some(address)
    }

    fn release(&mut self, address: u64, _: DmaLayout) {
        if self.allocations.remove(&address).is_none() {
            self.faults += 1;
        }
    }

    fn read_bytes(&mut self, address: u64, into: &mut [u8]) {
        if GuestMemory::read_bytes(self, address, into).is_err() {
            self.faults += 1;
            into.fill(0);
        }
    }

    fn write_bytes(&mut self, address: u64, bytes: &[u8]) {
        if self.write(address, bytes).is_err() {
            self.faults += 1;
        }
    }
}
