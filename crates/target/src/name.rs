//! Names for device transfers that lead back to their owner in constant time.

use bus::TransferId;

/// Gives out transfer names. Each is new, and says which of a fixed number of owners it belongs to.
#[derive(Debug)]
pub(crate) struct Names {
    owners: u64,
    next: u64,
}

impl Names {
    pub(crate) const fn new(owners: u64) -> Self {
        Self { owners, next: 0 }
    }

    /// Names for other owners, none of which `earlier` has given.
    pub(crate) const fn after(earlier: &Self, owners: u64) -> Self {
        Self { owners, next: (earlier.next + 1) * earlier.owners / owners }
    }

    pub(crate) const fn name(&mut self, owner: usize) -> TransferId {
        self.next += 1;
        TransferId(self.next * self.owners + owner as u64)
    }

    pub(crate) const fn owner(&self, id: TransferId) -> usize {
        (id.0 % self.owners) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_after_others_are_new() {
        let mut few = Names::new(2);
        let mut many = Names::new(33);
        many.name(32);
        let last = many.name(32);
        few = Names::after(&many, few.owners);
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
