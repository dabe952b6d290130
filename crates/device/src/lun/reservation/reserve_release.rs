//! RESERVE and RELEASE, (6) and (10) (SPC-2 clauses 7.16, 7.17, 7.21 and 7.22): the whole unit for the sender.
//!
//! Left out, as every newer standard does: third parties, extents.

use super::{Nexus, Obstacle};
use crate::lun::Plan;
use crate::lun::row::{Needs, Row};
use wire::scsi::cdb::{CdbWidth, Release, Reserve};
use wire::scsi::sense::{AdditionalSense, Sense};

pub(in crate::lun) const RESERVE_6: Row = Row {
    usage: &[0x16, 0x11, 0, 0, 0, 0x04],
    needs: Needs::UNIT,
    timeout_s: 1,
    plan: |context, cdb| settle(check_reserve(cdb), || context.unit.reservations.reserve(Nexus::HOST)),
    on_list: None,
    on_medium: None,
};

pub(in crate::lun) const RESERVE_10: Row =
    Row { usage: &[0x56, 0x13, 0, 0, 0, 0, 0, 0xff, 0xff, 0x04], ..RESERVE_6 };

pub(in crate::lun) const RELEASE_6: Row = Row {
    usage: &[0x17, 0x11, 0, 0, 0, 0x04],
    needs: Needs::UNIT,
    timeout_s: 1,
    plan: |context, cdb| settle(check_release(cdb), || context.unit.reservations.release(Nexus::HOST)),
    on_list: None,
    on_medium: None,
};

pub(in crate::lun) const RELEASE_10: Row =
    Row { usage: &[0x57, 0x13, 0, 0, 0, 0, 0, 0xff, 0xff, 0x04], ..RELEASE_6 };

fn settle(checked: Result<(), Sense>, change: impl FnOnce() -> Result<(), Obstacle>) -> Plan {
    match checked.map(|()| change()) {
        Ok(Ok(())) => Plan::Good,
        Ok(Err(obstacle)) => obstacle.into(),
        Err(sense) => Plan::Check(sense),
    }
}

fn check_reserve(cdb: &[u8]) -> Result<(), Sense> {
    let command = Reserve::decode(cdb).map_err(|_| UNREADABLE)?;
    let Reserve { third_party, long_id, extent, parameter_list_len, .. } = command;
    check(third_party, long_id, extent, command.width == CdbWidth::Ten && parameter_list_len > 0)
}

fn check_release(cdb: &[u8]) -> Result<(), Sense> {
    let command = Release::decode(cdb).map_err(|_| UNREADABLE)?;
    let Release { third_party, long_id, extent, parameter_list_len, .. } = command;
    check(third_party, long_id, extent, command.width == CdbWidth::Ten && parameter_list_len > 0)
}

/// A parameter list describes what is not done here. In a (6) the bytes are reserved without EXTENT.
fn check(third_party: bool, long_id: bool, extent: bool, has_list: bool) -> Result<(), Sense> {
    if third_party {
        Err(Sense::invalid_field_in_cdb(1, Some(4)))
    } else if long_id {
        Err(Sense::invalid_field_in_cdb(1, Some(1)))
    } else if extent {
        Err(Sense::invalid_field_in_cdb(1, Some(0)))
    } else if has_list {
        Err(Sense::invalid_field_in_cdb(7, None))
    } else {
        Ok(())
    }
}

/// The table has seen to operation code and length, so this is not reached.
const UNREADABLE: Sense = Sense::illegal_request(AdditionalSense::INVALID_FIELD_IN_CDB);

#[cfg(test)]
mod tests {
    use crate::lun::fixture::Fixture;
    use crate::lun::{Plan, UnitEvent};
    use wire::scsi::Status;
    use wire::scsi::sense::Sense;

    const RESERVE: [u8; 6] = [0x16, 0, 0, 0, 0, 0];
    const RELEASE: [u8; 6] = [0x17, 0, 0, 0, 0, 0];
    const READ_KEYS: [u8; 10] = [0x5e, 0, 0, 0, 0, 0, 0, 0, 8, 0];
    const CONFLICT: Plan = Plan::Status(Status::ReservationConflict);

    #[test]
    fn the_host_may_reserve_and_release_the_unit_in_both_widths() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.run(&RESERVE), Plan::Good);
        assert_eq!(fixture.run(&[0x56, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Plan::Good);
        assert_eq!(fixture.run(&READ_KEYS), CONFLICT);
        assert_eq!(fixture.run(&[0x57, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Plan::Good);
        assert_eq!(fixture.run(&READ_KEYS), Plan::Reply);
        assert_eq!(fixture.run(&RELEASE), Plan::Good);
    }

    #[test]
    fn a_reset_releases_the_unit() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.run(&RESERVE), Plan::Good);
        fixture.unit.handle_event(UnitEvent::LogicalUnitReset);
        fixture.unit.attentions = Default::default();
        assert_eq!(fixture.run(&READ_KEYS), Plan::Reply);
    }

    #[test]
    fn third_parties_and_extents_are_refused() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.check(&[0x16, 0x10, 0, 0, 0, 0]), Sense::invalid_field_in_cdb(1, Some(4)));
        assert_eq!(fixture.check(&[0x17, 0x01, 0, 0, 0, 0]), Sense::invalid_field_in_cdb(1, Some(0)));
        let long_id = [0x56, 0x02, 0, 0, 0, 0, 0, 0, 8, 0];
        assert_eq!(fixture.check(&long_id), Sense::invalid_field_in_cdb(1, Some(1)));
        let list = [0x57, 0, 0, 0, 0, 0, 0, 0, 8, 0];
        assert_eq!(fixture.check(&list), Sense::invalid_field_in_cdb(7, None));
    }
}
