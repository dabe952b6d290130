//! The medium's coming and going (SBC-4 clause 4.4), as commands and the drive's owner see it.
//!
//! An owner may put a medium in, take it out or change its size at any time, whether the host prevents removal or
//! not: it is the hand at the drive. The host learns of it by a unit attention.

use crate::unit::attention::Attention;
use crate::unit::{Readiness, Unit};
use units::BlockCount;

impl Unit {
    /// Whether there is a medium, be it at rest or busy.
    pub const fn has_medium(&self) -> bool {
        !matches!(self.readiness, Readiness::Ejected | Readiness::Absent)
    }

    /// A medium of `capacity` blocks was put in, perhaps in place of another.
    pub fn insert_medium(&mut self, capacity: BlockCount) {
        self.config.capacity = capacity;
        self.readiness = Readiness::Ready;
        self.attentions.establish(Attention::MediumChanged);
    }

    /// The medium was taken out. Until another is put in, the host cannot load one.
    pub const fn remove_medium(&mut self) {
        self.readiness = Readiness::Absent;
    }

    /// The medium has another size now; what fits into the smaller of the two is still there.
    pub fn resize_medium(&mut self, capacity: BlockCount) {
        if self.config.capacity != capacity {
            self.config.capacity = capacity;
            self.attentions.establish(Attention::CapacityChanged);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::unit::Plan;
    use crate::unit::fixture::Fixture;
    use units::BlockCount;
    use wire::scsi::sense::{AdditionalSense, Sense};

    const TEST_UNIT_READY: [u8; 6] = [0; 6];

    #[test]
    fn a_medium_that_comes_is_told_once() {
        let mut fixture = Fixture::new();
        fixture.unit.remove_medium();
        let no_medium = Sense::not_ready(AdditionalSense { asc: 0x3a, ascq: 0x00 });
        assert_eq!(fixture.check(&TEST_UNIT_READY), no_medium);
        fixture.unit.insert_medium(BlockCount(10));
        let changed = Sense::unit_attention(AdditionalSense { asc: 0x28, ascq: 0x00 });
        assert_eq!(fixture.check(&TEST_UNIT_READY), changed);
        assert_eq!(fixture.run(&TEST_UNIT_READY), Plan::Good);
        assert_eq!(fixture.read(&[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0])[..4], [0, 0, 0, 9]);
    }

    #[test]
    fn a_new_size_is_told_once() {
        let mut fixture = Fixture::new();
        fixture.unit.resize_medium(BlockCount(2048));
        assert_eq!(fixture.run(&TEST_UNIT_READY), Plan::Good);
        fixture.unit.resize_medium(BlockCount(4096));
        let changed = Sense::unit_attention(AdditionalSense { asc: 0x2a, ascq: 0x09 });
        assert_eq!(fixture.check(&TEST_UNIT_READY), changed);
        assert_eq!(fixture.run(&TEST_UNIT_READY), Plan::Good);
    }
}
