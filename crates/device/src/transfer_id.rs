//! Ids of device transfers from which the owner is found in constant time.

use bus::TransferId;

/// Allocates transfer ids. Each is unique and encodes which of a fixed number of owners it belongs to.
#[derive(Debug)]
pub(crate) struct TransferIdAllocator {
    /// Number of low bits of an id that hold the owner.
    owner_bits: u32,
    next: u64,
}

impl TransferIdAllocator {
    pub(crate) const fn new(owners: u64) -> Self {
        Self { owner_bits: owners.next_power_of_two().trailing_zeros(), next: 0 }
    }

    /// Continues after the ids that `earlier` allocated, for another number of owners.
    pub(crate) const fn after(earlier: &Self, owners: u64) -> Self {
        let ids = Self::new(owners);
        Self { next: (earlier.next + 1) << earlier.owner_bits >> ids.owner_bits, ..ids }
    }

    pub(crate) const fn allocate(&mut self, owner: usize) -> TransferId {
        self.next += 1;
        TransferId(self.next << self.owner_bits | owner as u64)
    }

    pub(crate) const fn owner(&self, id: TransferId) -> usize {
        (id.0 & !(u64::MAX << self.owner_bits)) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_after_an_earlier_allocator_are_new() {
        let mut many = TransferIdAllocator::new(33);
        many.allocate(32);
        let last = many.allocate(32);
        let mut few = TransferIdAllocator::after(&many, 2);
        assert!(few.allocate(0) > last);
    }

    #[test]
    fn an_id_encodes_its_owner_and_is_never_reused() {
        let mut transfer_ids = TransferIdAllocator::new(3);
        let (a, b, c) = (transfer_ids.allocate(2), transfer_ids.allocate(2), transfer_ids.allocate(0));
        assert_ne!(a, b);
        assert_eq!([a, b, c].map(|id| transfer_ids.owner(id)), [2, 2, 0]);
    }
}
