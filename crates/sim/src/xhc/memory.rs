//! Host memory: allocations at bus addresses with gaps between them.
//!
//! An allocation starts at a page and has its exact length, so that reads past its end fail. A
//! window is an allocation whose bytes are lent: the buffer of a command is attached while the
//! command runs, without a copy. Addresses are looked up by page, in constant time.
//!
//! Not modelled: access times, which are the controller's; addresses above 4 GiB.
//!
//! Invariants: two allocations share no page; an access is within one allocation or fails.

use wire::xhci::TRB_BYTES;
use xhci_controller::{Fault, GuestMemory};
use xhci_driver::{DmaLayout, DmaMemory};

/// Bytes of a page.
const PAGE_BYTES: u64 = 4096;
/// First page of allocations: a null pointer is invalid.
const FIRST_PAGE: usize = 256;
/// Maximum pages: 1 GiB. Further allocations fail.
const PAGES_MAX: usize = 1 << 18;

/// A host's memory.
#[derive(Clone, Debug)]
pub struct Memory {
    /// By page: the index of the allocation plus one, or 0.
    pages: Vec<u32>,
    allocations: Vec<Allocation>,
    /// Free indices.
    spare: Vec<u32>,
    /// Free page ranges: first page and length.
    gaps: Vec<(usize, usize)>,
    /// Pages left to allocate; limited in tests.
    left: usize,
    faults: u64,
}

#[derive(Clone, Debug, Default)]
struct Allocation {
    bytes: Vec<u8>,
    /// Its first page, and how many it has.
    first: u32,
    pages: u32,
}

// Each access touches one of thousands of these: two per cache line.
const _: () = assert!(size_of::<Allocation>() <= 32);

impl Memory {
    /// Creates empty memory.
    pub const fn new() -> Self {
        Self {
            pages: Vec::new(),
            allocations: Vec::new(),
            spare: Vec::new(),
            gaps: Vec::new(),
            left: PAGES_MAX,
            faults: 0,
        }
    }

    /// Returns bytes at an address.
    ///
    /// # Errors
    /// If they are not within one allocation.
    pub fn slice(&self, address: u64, bytes: usize) -> Result<&[u8], Fault> {
        let (allocation, at) = self.find(address)?;
        self.allocations[allocation].bytes.get(at..at + bytes).ok_or(Fault { address })
    }

    /// The same, to be written.
    ///
    /// # Errors
    /// As [`Memory::slice`].
    pub fn slice_mut(&mut self, address: u64, bytes: usize) -> Result<&mut [u8], Fault> {
        let (allocation, at) = self.find(address)?;
        self.allocations[allocation].bytes.get_mut(at..at + bytes).ok_or(Fault { address })
    }

    /// Reserves addresses for a buffer of `bytes`, without memory; `None` if none are left.
    pub fn window(&mut self, bytes: u32) -> Option<u64> {
        let layout = DmaLayout { bytes, align: 1, boundary: 1 << 31 };
        self.place(layout, Vec::new())
    }

    /// Attaches a buffer to a window, which must be large enough. Returns the buffer that it had
    /// before.
    pub fn lend(&mut self, window: u64, buffer: Vec<u8>) -> Option<Vec<u8>> {
        let (allocation, at) = self.find(window).ok()?;
        let allocation = &mut self.allocations[allocation];
        let fits = at == 0 && buffer.len() as u64 <= u64::from(allocation.pages) * PAGE_BYTES;
        fits.then(|| std::mem::replace(&mut allocation.bytes, buffer))
    }

    /// Detaches and returns the buffer of a window.
    pub fn reclaim(&mut self, window: u64) -> Vec<u8> {
        self.lend(window, Vec::new()).unwrap_or_default()
    }

    /// Returns the number of allocations.
    pub const fn in_use(&self) -> usize {
        self.allocations.len() - self.spare.len()
    }

    /// Returns the number of invalid accesses and releases by the driver.
    pub const fn faults(&self) -> u64 {
        self.faults
    }

    /// Limits the pages that can be allocated.
    pub const fn limit_pages(&mut self, pages: usize) {
        self.left = pages;
    }

    #[inline]
    fn find(&self, address: u64) -> Result<(usize, usize), Fault> {
        let page = usize::try_from(address / PAGE_BYTES).unwrap_or(usize::MAX);
        match self.pages.get(page) {
            None | Some(0) => Err(Fault { address }),
            Some(number) => {
                let allocation = *number as usize - 1;
                let base = u64::from(self.allocations[allocation].first) * PAGE_BYTES;
                Ok((allocation, (address - base) as usize))
            }
        }
    }

    /// Allocates `bytes` with the layout.
    fn place(&mut self, layout: DmaLayout, bytes: Vec<u8>) -> Option<u64> {
        let pages = u64::from(layout.bytes).div_ceil(PAGE_BYTES).max(1) as usize;
        self.left = self.left.checked_sub(pages)?;
        let first = self.find_pages(layout, pages)?;
        let base = first as u64 * PAGE_BYTES;
        let allocation = Allocation { bytes, first: first as u32, pages: pages as u32 };
        let number = match self.spare.pop() {
            Some(number) => {
                self.allocations[number as usize] = allocation;
                number
            }
            None => {
                self.allocations.push(allocation);
                self.allocations.len() as u32 - 1
            }
        };
        self.pages[first..first + pages].fill(number + 1);
        Some(base)
    }

    /// Finds and reserves free pages for a layout.
    fn find_pages(&mut self, layout: DmaLayout, pages: usize) -> Option<usize> {
        let fit = |from: usize| {
            let align = u64::from(layout.align).div_ceil(PAGE_BYTES).max(1) as usize;
            let boundary = (u64::from(layout.boundary) / PAGE_BYTES).max(1) as usize;
            let first = from.next_multiple_of(align);
            let crosses = first / boundary != (first + pages - 1) / boundary;
            if crosses { first.next_multiple_of(boundary) } else { first }
        };
        let found = self.gaps.iter().position(|&(from, count)| fit(from) + pages <= from + count);
        let (from, count) = match found {
            Some(gap) => self.gaps.remove(gap),
            None => {
                let from = self.pages.len().max(FIRST_PAGE);
                let first = fit(from);
                if first + pages > FIRST_PAGE + PAGES_MAX {
                    return None;
                }
                self.pages.resize(first + pages, 0);
                (from, first + pages - from)
            }
        };
        let first = fit(from);
        self.add_gap(first + pages, from + count - first - pages);
        self.add_gap(from, first - from);
        Some(first)
    }

    /// Adds a free page range, coalesced with its neighbours.
    fn add_gap(&mut self, mut first: usize, mut count: usize) {
        if count == 0 {
            return;
        }
        let mut at = self.gaps.partition_point(|(other, _)| *other < first);
        if let Some(&(_, after)) = self.gaps.get(at).filter(|(next, _)| *next == first + count) {
            self.gaps.remove(at);
            count += after;
        }
        if let Some(&(before, length)) = at.checked_sub(1).map(|prior| &self.gaps[prior])
            && before + length == first
        {
            at -= 1;
            self.gaps.remove(at);
            (first, count) = (before, count + length);
        }
        self.gaps.insert(at, (first, count));
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl GuestMemory for Memory {
    fn read_bytes(&self, address: u64, into: &mut [u8]) -> Result<(), Fault> {
        into.copy_from_slice(self.slice(address, into.len())?);
        Ok(())
    }

    #[inline]
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.slice_mut(address, bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    #[inline]
    fn read<const N: usize>(&self, address: u64) -> Result<[u8; N], Fault> {
        let (allocation, at) = self.find(address)?;
        let bytes = self.allocations[allocation].bytes.get(at..);
        bytes.and_then(<[u8]>::first_chunk).copied().ok_or(Fault { address })
    }

    #[inline]
    fn write_trb(&mut self, address: u64, trb: [u8; TRB_BYTES]) -> Result<(), Fault> {
        let (allocation, at) = self.find(address)?;
        let bytes = self.allocations[allocation].bytes.get_mut(at..);
        *bytes.and_then(<[u8]>::first_chunk_mut).ok_or(Fault { address })? = trb;
        Ok(())
    }

    #[inline]
    fn borrow(&self, address: u64, bytes: usize) -> Option<&[u8]> {
        self.slice(address, bytes).ok()
    }
}

impl DmaMemory for Memory {
    fn allocate(&mut self, layout: DmaLayout) -> Option<u64> {
        self.place(layout, vec![0; layout.bytes as usize])
    }

    fn release(&mut self, address: u64, _: DmaLayout) {
        let found = self.find(address).ok().filter(|(_, at)| *at == 0);
        let Some((number, _)) = found else {
            self.faults += 1;
            return;
        };
        let Allocation { first, pages, .. } = std::mem::take(&mut self.allocations[number]);
        let (first, pages) = (first as usize, pages as usize);
        self.pages[first..first + pages].fill(0);
        self.spare.push(number as u32);
        self.left += pages;
        self.add_gap(first, pages);
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

    // No other access is concurrent with a driver call.
    #[inline]
    fn write_trb(&mut self, address: u64, trb: &[u8; TRB_BYTES]) {
        if GuestMemory::write_trb(self, address, *trb).is_err() {
            self.faults += 1;
        }
    }

    #[inline]
    fn read_trb(&mut self, address: u64) -> [u8; TRB_BYTES] {
        self.read(address).unwrap_or_else(|_| {
            self.faults += 1;
            [0; TRB_BYTES]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn layout(bytes: u32, align: u32, boundary: u32) -> DmaLayout {
        DmaLayout { bytes, align, boundary }
    }

    #[test]
    fn a_piece_is_zeroes_and_ends_where_it_ends() {
        let mut memory = Memory::new();
        let at = memory.allocate(layout(100, 64, 4096)).unwrap();
        assert_eq!(memory.read::<100>(at), Ok([0; 100]));
        assert_eq!(memory.read::<4>(at + 98), Err(Fault { address: at + 98 }));
        assert_eq!(memory.read::<1>(at + 4096), Err(Fault { address: at + 4096 }));
        assert_eq!(memory.read::<1>(0), Err(Fault { address: 0 }));
        assert_eq!(memory.read::<1>(u64::MAX), Err(Fault { address: u64::MAX }));
    }

    #[test]
    fn what_the_driver_does_wrong_is_counted() {
        let mut memory = Memory::new();
        let at = memory.allocate(layout(64, 64, 4096)).unwrap();
        let mut four = [7; 4];
        DmaMemory::read_bytes(&mut memory, at + 62, &mut four);
        memory.write_bytes(8, &four);
        memory.release(at + 16, layout(64, 64, 4096));
        assert_eq!((four, memory.faults()), ([0; 4], 3));
        memory.release(at, layout(64, 64, 4096));
        assert_eq!((memory.faults(), memory.in_use()), (3, 0));
    }

    #[test]
    fn a_buffer_is_lent_and_reclaimed_without_a_copy() {
        let mut memory = Memory::new();
        let window = memory.window(8192).unwrap();
        let buffer = vec![1; 8192];
        let place = buffer.as_ptr();
        assert_eq!(memory.lend(window, buffer), Some(Vec::new()));
        memory.write(window + 8190, &[2, 3]).unwrap();
        let back = memory.reclaim(window);
        assert_eq!((back.as_ptr(), back[8190], back[8191]), (place, 2, 3));
        assert_eq!(memory.slice(window, 1), Err(Fault { address: window }));
        assert_eq!(memory.lend(window, vec![0; 8193]), None);
    }

    #[test]
    fn memory_that_ends_is_refused_and_comes_back() {
        let mut memory = Memory::new();
        memory.limit_pages(2);
        let at = memory.allocate(layout(8192, 64, 1 << 16)).unwrap();
        assert_eq!(memory.allocate(layout(1, 1, 4096)), None);
        memory.release(at, layout(8192, 64, 1 << 16));
        assert_eq!(memory.allocate(layout(1, 1, 4096)), Some(at));
    }

    proptest! {
        #[test]
        fn pieces_are_as_asked_for_and_share_nothing(
            steps in prop::collection::vec((1u32..40_000, 0u32..17, 12u32..20, any::<bool>()), 1..80)
        ) {
            let (mut memory, mut out) = (Memory::new(), Vec::<(u64, DmaLayout)>::new());
            for (bytes, align, boundary, releases) in steps {
                if releases && !out.is_empty() {
                    let (at, asked) = out.swap_remove(bytes as usize % out.len());
                    memory.release(at, asked);
                    continue;
                }
                let boundary = (1 << boundary).max(bytes.next_power_of_two());
                let asked = layout(bytes, 1 << align, boundary);
                let at = memory.allocate(asked).unwrap();
                prop_assert_eq!(at % (1 << align), 0);
                prop_assert_eq!(at / u64::from(boundary), (at + u64::from(bytes) - 1) / u64::from(boundary));
                for (other, layout) in &out {
                    prop_assert!(at + u64::from(bytes) <= *other || other + u64::from(layout.bytes) <= at);
                }
                out.push((at, asked));
            }
            prop_assert_eq!((memory.in_use(), memory.faults()), (out.len(), 0));
        }
    }
}
