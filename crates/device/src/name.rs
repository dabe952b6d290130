//! Names for device transfers that lead back to their owner in constant time.

use bus::TransferId;

/// Gives out transfer names. Each is new, and says which of a fixed number of owners it belongs to.
#[derive(Debug)]
pub(crate) struct Names {
    /// Low bits of a name that say whose it is.
    owner_bits: u32,
    next: u64,
}

impl Names {
    pub(crate) const fn new(owners: u64) -> Self {
        Self { owner_bits: owners.next_power_of_two().trailing_zeros(), next: 0 }
    }

    /// Names for other owners, none of which `earlier` has given.
    pub(crate) const fn after(earlier: &Self, owners: u64) -> Self {
        let names = Self::new(owners);
        Self { next: (earlier.next + 1) << earlier.owner_bits >> names.owner_bits, ..names }
    }

    pub(crate) const fn name(&mut self, owner: usize) -> TransferId {
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
    fn names_after_others_are_new() {
        let mut many = Names::new(33);
        many.name(32);
        let last = many.name(32);
        let mut few = Names::after(&many, 2);
        assert!(few.name(0) > last);
    }

    #[test]
    fn a_name_leads_back_to_its_owner_and_is_never_given_twice() {
        let mut names = Names::new(3);
        let (a, b, c) = (names.name(2), names.name(2), names.name(0));
        assert_ne!(a, b);
        assert_eq!([a, b, c].map(|id| names.owner(id)), [2, 2, 0]);
    }
}
