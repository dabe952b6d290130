//! An allocator of address ranges.
//!
//! Always true: allocated ranges do not overlap; adjacent free ranges are merged.

use std::collections::BTreeMap;

/// The free ranges of an address space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Free ranges: start and length.
    free: BTreeMap<u64, u64>,
}

impl Addresses {
    /// Creates a free space from `start` up to, excluding, `end`.
    pub fn new(start: u64, end: u64) -> Self {
        let free = end.checked_sub(start).filter(|bytes| *bytes > 0).map(|bytes| (start, bytes));
        Self { free: free.into_iter().collect() }
    }

    /// Allocates `bytes` bytes at a multiple of `align`, within an aligned block of `boundary`
    /// bytes; both are powers of two. `None` if there is no such range.
    pub fn allocate(&mut self, bytes: u64, align: u64, boundary: u64) -> Option<u64> {
        if bytes == 0 || bytes > boundary {
            return None;
        }
        let place = |(start, len): (&u64, &u64)| {
            let mut at = start.checked_next_multiple_of(align)?;
            if at / boundary != (at + (bytes - 1)) / boundary {
                at = at.checked_next_multiple_of(boundary.max(align))?;
            }
            (at.checked_add(bytes)? <= start + len).then_some((*start, at))
        };
        let (start, at) = self.free.iter().find_map(place)?;
        let end = start + self.free.remove(&start)?;
        for (start, end) in [(start, at), (at + bytes, end)] {
            if start < end {
                self.free.insert(start, end - start);
            }
        }
        Some(at)
    }

    /// Frees an allocated range.
    pub fn release(&mut self, mut at: u64, mut bytes: u64) {
        if let Some((&before, &len)) = self.free.range(..at).next_back()
            && before + len == at
        {
            self.free.remove(&before);
            (at, bytes) = (before, bytes + len);
        }
        if let Some(len) = self.free.remove(&(at + bytes)) {
            bytes += len;
        }
        self.free.insert(at, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ANY: u64 = 1 << 40;

    #[test]
    fn a_piece_is_aligned_and_stays_within_its_boundary() {
        let mut addresses = Addresses::new(0x1_0010, 0x5_0000);
        assert_eq!(addresses.allocate(0x20, 64, 0x1_0000), Some(0x1_0040));
        assert_eq!(addresses.allocate(0xf000, 64, 0x1_0000), Some(0x1_0080));
        assert_eq!(addresses.allocate(0x2000, 64, 0x1_0000), Some(0x2_0000));
        assert_eq!(addresses.allocate(0x10, 16, 0x1_0000), Some(0x1_0010));
    }

    #[test]
    fn what_does_not_fit_is_not_given() {
        let mut addresses = Addresses::new(0x1000, 0x3000);
        assert_eq!(addresses.allocate(0x3000, 1, ANY), None);
        assert_eq!(addresses.allocate(0x2000, 1, 0x1000), None);
        assert_eq!(addresses.allocate(0, 1, ANY), None);
        assert_eq!(addresses.allocate(0x2000, 1, ANY), Some(0x1000));
        assert_eq!(addresses.allocate(1, 1, ANY), None);
    }

    proptest! {
        #[test]
        fn pieces_never_overlap_and_all_comes_back(
            steps in prop::collection::vec((1_u64..5000, 0_u32..8, 12_u32..17, any::<bool>()), 1..60)
        ) {
            let whole = Addresses::new(0x1234, 0x2_0000);
            let (mut addresses, mut out) = (whole.clone(), Vec::<(u64, u64)>::new());
            for (bytes, align, boundary, gives_back) in steps {
                if gives_back && !out.is_empty() {
                    let (at, bytes) = out.swap_remove(bytes as usize % out.len());
                    addresses.release(at, bytes);
                } else if let Some(at) = addresses.allocate(bytes, 1 << align, 1 << boundary) {
                    prop_assert!(at % (1 << align) == 0 && at >= 0x1234 && at + bytes <= 0x2_0000);
                    prop_assert_eq!(at >> boundary, (at + bytes - 1) >> boundary);
                    prop_assert!(out.iter().all(|(other, len)| at + bytes <= *other || other + len <= at));
                    out.push((at, bytes));
                }
            }
            out.into_iter().for_each(|(at, bytes)| addresses.release(at, bytes));
            prop_assert_eq!(addresses, whole);
        }
    }
}
