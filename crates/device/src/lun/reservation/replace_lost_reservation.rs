//! PERSISTENT RESERVE OUT, REPLACE LOST RESERVATION (SPC-4 clause 5.13.11.3): a new reservation where the one that
//! was to outlive a power loss cannot be read any more.
//!
//! The sender has no key to show, since all keys are lost: RESERVATION KEY must be zero. While nothing is lost there
//! is nothing to replace. Always true: the change is saved before GOOD is sent, or the next power cycle would
//! find the damage again.

use super::Nexus;
use super::persistent_reserve_out::{REGISTER, SAVE, order, plan, refused};
use crate::lun::row::Row;
use crate::lun::{Context, Plan};
use wire::scsi::sense::Sense;

pub(in crate::lun) const REPLACE_LOST_RESERVATION: Row = Row {
    usage: &[0x5f, 0x08, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x04],
    plan: |_, cdb| plan(cdb).unwrap_or_else(Plan::Check),
    on_list: Some(|context, cdb, list| replace(context, cdb, list).unwrap_or_else(Plan::Check)),
    ..REGISTER
};

fn replace(context: &mut Context<'_>, cdb: &[u8], list: &[u8]) -> Result<Plan, Sense> {
    let order = order(context.unit.config.durable, cdb, list)?;
    let reservations = &mut context.unit.reservations;
    if reservations.are_lost() {
        if order.list.key != 0 {
            return Err(Sense::invalid_field_in_parameter_list(0, None));
        }
        if order.list.service_action_key == 0 {
            return Err(Sense::invalid_field_in_parameter_list(8, None));
        }
    }
    let registering = order.registering(false);
    let replaced =
        order.coverage.and_then(|coverage| reservations.replace_lost(Nexus::HOST, registering, coverage));
    Ok(replaced.map_or_else(refused, |()| Plan::Medium(SAVE)))
}

#[cfg(test)]
mod tests {
    use crate::lun::Plan;
    use crate::lun::fixture::Fixture;
    use crate::lun::reservation::Nexus;
    use alloc::vec::Vec;
    use wire::scsi::sense::{AdditionalSense, Sense, SenseKey};

    const LOST: Sense = Sense::new(SenseKey::DataProtect, AdditionalSense { asc: 0x44, ascq: 0x01 });
    const READ: [u8; 10] = [0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0];
    /// WRITE EXCLUSIVE.
    const REPLACE: [u8; 10] = [0x5f, 0x08, 0x01, 0, 0, 0, 0, 0, 24, 0];

    const fn list(key: u8, action_key: u8) -> [u8; 24] {
        [0, 0, 0, 0, 0, 0, 0, key, 0, 0, 0, 0, 0, 0, 0, action_key, 0, 0, 0, 0, 0x01, 0, 0, 0]
    }

    fn damaged() -> Fixture {
        Fixture::with(|config| config.durable_state = Some(Vec::from(*b"half a file")))
    }

    #[test]
    fn a_unit_that_lost_its_reservations_guards_the_medium_and_says_so() {
        let mut fixture = damaged();
        assert_eq!(fixture.check(&READ), LOST);
        assert_eq!(fixture.check(&[0x5e, 0, 0, 0, 0, 0, 0, 0, 8, 0]), LOST);
        assert_eq!(fixture.check(&[0x5f, 0, 0, 0, 0, 0, 0, 0, 24, 0]), LOST);
        assert_eq!(fixture.check(&[0; 6]), LOST);
        assert_eq!(fixture.check(&[0x1a, 0, 0x3f, 0, 255, 0]), LOST, "MODE SENSE");
        assert_eq!(fixture.check(&[0x1b, 0, 0, 0, 0x00, 0]), LOST, "stop");
        assert_eq!(fixture.run(&[0x1b, 0, 0, 0, 0x01, 0]), Plan::Good, "start");
        assert_eq!(fixture.run(&[0x12, 0, 0, 0, 36, 0]), Plan::Reply);
        assert_eq!(fixture.run(&[0x4d, 0, 0x40, 0, 0, 0, 0, 0, 255, 0]), Plan::Reply, "LOG SENSE");
    }

    #[test]
    fn a_new_reservation_ends_the_loss_for_good() {
        let mut fixture = damaged();
        assert_eq!(fixture.run_list(&REPLACE, &list(0, 7)), Plan::Medium(super::SAVE));
        assert!(matches!(fixture.run(&READ), Plan::Medium(_)));
        fixture.power_cycle();
        let state = fixture.unit.reservations.persistent().unwrap();
        assert_eq!((state.key_of(Nexus::HOST), state.holds(Nexus::HOST)), (Some(7), true));
        assert_eq!(state.generation(), 0);
    }

    #[test]
    fn the_replacement_has_a_type_and_a_new_key_and_no_old_one() {
        let mut fixture = damaged();
        let field = |byte| Plan::Check(Sense::invalid_field_in_parameter_list(byte, None));
        assert_eq!(fixture.run_list(&REPLACE, &list(5, 7)), field(0));
        assert_eq!(fixture.run_list(&REPLACE, &list(0, 0)), field(8));
        let no_type = [0x5f, 0x08, 0x00, 0, 0, 0, 0, 0, 24, 0];
        let wrong = Plan::Check(Sense::invalid_field_in_cdb(2, None));
        assert_eq!(fixture.run_list(&no_type, &list(0, 7)), wrong);
        assert_eq!(fixture.check(&READ), LOST);
    }

    #[test]
    fn while_nothing_is_lost_there_is_nothing_to_replace() {
        let nothing = Plan::Check(Sense::illegal_request(AdditionalSense { asc: 0x26, ascq: 0x04 }));
        assert_eq!(Fixture::new().run_list(&REPLACE, &list(0, 7)), nothing);
    }
}
