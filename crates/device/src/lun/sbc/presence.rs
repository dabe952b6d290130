//! The medium's coming and going (SBC-4 clause 4.4), as commands and the drive's owner see it.
//!
//! An owner may put a medium in, take it out or change its size at any time, whether the host prevents removal or
//! not: like a person at the drive. The host learns of it by a unit attention.

use crate::lun::attention::Attention;
use crate::lun::sanitizing::Sanitizing;
use crate::lun::{LogicalUnit, Readiness, UnitType};
use alloc::vec::Vec;
use units::BlockCount;
use wire::scsi::mmc::MediaEventCode;

/// A medium that is put into a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InsertedMedium {
    /// How many blocks it has, of the length that the unit was made with.
    pub capacity: BlockCount,
    /// Whether writes are refused.
    pub read_only: bool,
    /// Whether it keeps the unit's state.
    pub durable: bool,
    /// Whether it can write all or nothing.
    pub atomic_writes: bool,
    /// The unit state that was saved with it.
    pub durable_state: Option<Vec<u8>>,
}

impl LogicalUnit {
    /// Whether there is a medium, be it at rest or busy.
    pub const fn has_medium(&self) -> bool {
        !matches!(self.readiness, Readiness::Ejected | Readiness::Absent)
    }

    /// A medium was put in, perhaps in place of another. A sanitize operation that is not over comes with it;
    /// reservations and mode pages are the unit's and stay as they are.
    pub fn insert_medium(&mut self, medium: InsertedMedium) {
        self.config.capacity = medium.capacity;
        self.config.read_only = medium.read_only;
        self.config.durable = medium.durable;
        self.config.atomic_writes = medium.atomic_writes;
        let is_disk = self.config.unit_type == UnitType::Disk;
        self.sanitizing = Sanitizing::new(medium.durable_state.as_deref().filter(|_| is_disk));
        self.readiness = self.sanitizing.readiness();
        self.media_event = MediaEventCode::NewMedia;
        self.attentions.establish(Attention::MediumChanged);
    }

    /// The medium was taken out. Until another is put in, the host cannot load one.
    pub const fn remove_medium(&mut self) {
        self.media_event = MediaEventCode::MediaRemoval;
        self.readiness = Readiness::Absent;
        self.removal_prevented = false;
    }

    /// Someone asks for the medium of an optical drive that the host has locked in: the host learns of it by an event.
    pub fn request_eject(&mut self) {
        self.media_event = MediaEventCode::EjectRequest;
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
    use super::InsertedMedium;
    use crate::lun::fixture::Fixture;
    use crate::lun::{Plan, Readiness};
    use alloc::vec::Vec;
    use units::BlockCount;
    use wire::scsi::sense::{AdditionalSense, Sense};

    const TEST_UNIT_READY: [u8; 6] = [0; 6];

    fn card(blocks: u64) -> InsertedMedium {
        InsertedMedium {
            capacity: BlockCount(blocks),
            read_only: false,
            durable: true,
            atomic_writes: true,
            durable_state: None,
        }
    }

    #[test]
    fn what_a_medium_is_comes_with_it() {
        let mut fixture = Fixture::new();
        fixture.unit.remove_medium();
        fixture.unit.insert_medium(InsertedMedium { read_only: true, atomic_writes: false, ..card(10) });
        fixture.unit.attentions = Default::default();
        let sense = fixture.check(&[0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
        assert_eq!(sense.additional, AdditionalSense { asc: 0x27, ascq: 0x00 });
    }

    #[test]
    fn a_medium_that_is_being_sanitized_is_so_in_another_unit_too() {
        let mut first = Fixture::new();
        first.run(&[0x48, 0x02, 0, 0, 0, 0, 0, 0, 0, 0]);
        let durable_state: Option<Vec<u8>> = Some(first.unit.durable_state());
        let mut second = Fixture::new();
        second.unit.remove_medium();
        second.unit.insert_medium(InsertedMedium { durable_state, ..card(2048) });
        assert_eq!(second.unit.readiness, Readiness::Sanitizing { unrestricted_exit: false });
        assert!(second.unit.unfinished().is_some());
    }

    #[test]
    fn a_medium_that_comes_is_reported_once() {
        let mut fixture = Fixture::new();
        fixture.unit.remove_medium();
        let no_medium = Sense::not_ready(AdditionalSense { asc: 0x3a, ascq: 0x00 });
        assert_eq!(fixture.check(&TEST_UNIT_READY), no_medium);
        fixture.unit.insert_medium(card(10));
        let changed = Sense::unit_attention(AdditionalSense { asc: 0x28, ascq: 0x00 });
        assert_eq!(fixture.check(&TEST_UNIT_READY), changed);
        assert_eq!(fixture.run(&TEST_UNIT_READY), Plan::Good);
        assert_eq!(fixture.read(&[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0])[..4], [0, 0, 0, 9]);
    }

    #[test]
    fn a_new_size_is_reported_once() {
        let mut fixture = Fixture::new();
        fixture.unit.resize_medium(BlockCount(2048));
        assert_eq!(fixture.run(&TEST_UNIT_READY), Plan::Good);
        fixture.unit.resize_medium(BlockCount(4096));
        let changed = Sense::unit_attention(AdditionalSense { asc: 0x2a, ascq: 0x09 });
        assert_eq!(fixture.check(&TEST_UNIT_READY), changed);
        assert_eq!(fixture.run(&TEST_UNIT_READY), Plan::Good);
    }
}
