//! PERSISTENT RESERVE OUT (SPC-4 clause 6.16): registers, reserves, releases, clears, preempts.
//!
//! Every service action here has a list of 24 bytes; the two rare ones have separate files. Where registrations survive power loss, the change is saved before
//! GOOD is sent. SPEC_I_PT is refused (SIP_C = 0); ALL_TG_PT is noted and changes nothing, since all
//! target ports are one.

use super::{Coverage, Nexus, Notices, Persistent, Refusal, Registering};
use crate::lun::row::{ListFn, Needs, Row};
use crate::lun::{Context, MediumPlan, Plan};
use crate::medium::MediumOp;
use units::Extent;
use wire::scsi::Status;
use wire::scsi::cdb::PersistentReserveOut;
use wire::scsi::persistent_reserve::PersistentReserveOutList;
use wire::scsi::sense::{AdditionalSense, Sense, SenseKey};

pub(in crate::lun) const REGISTER: Row = Row {
    usage: &[0x5f, 0x00, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x04],
    needs: Needs::UNIT,
    timeout_s: 1,
    plan: |_, cdb| plan(cdb).unwrap_or_else(Plan::Check),
    on_list: Some(|context, cdb, list| {
        change(context, cdb, list, |state, order| state.register(Nexus::HOST, order.registering(true)))
    }),
    on_medium: None,
};

pub(in crate::lun) const RESERVE: Row = Row {
    usage: &[0x5f, 0x01, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x04],
    on_list: Some(|context, cdb, list| {
        change(context, cdb, list, |state, order| {
            state.reserve(Nexus::HOST, order.list.key, order.coverage?).map(|()| Notices::new())
        })
    }),
    ..REGISTER
};

pub(in crate::lun) const RELEASE: Row = Row {
    usage: &[0x5f, 0x02, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x04],
    on_list: Some(|context, cdb, list| {
        change(context, cdb, list, |state, order| state.release(Nexus::HOST, order.list.key, order.coverage))
    }),
    ..REGISTER
};

pub(in crate::lun) const CLEAR: Row = Row {
    usage: &[0x5f, 0x03, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x04],
    on_list: Some(|context, cdb, list| {
        change(context, cdb, list, |state, order| state.clear(Nexus::HOST, order.list.key))
    }),
    ..REGISTER
};

pub(in crate::lun) const PREEMPT: Row = Row {
    usage: &[0x5f, 0x04, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x04],
    on_list: Some(ON_PREEMPT),
    ..REGISTER
};

pub(in crate::lun) const PREEMPT_AND_ABORT: Row = Row {
    usage: &[0x5f, 0x05, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x04],
    on_list: Some(ON_PREEMPT),
    ..REGISTER
};

pub(in crate::lun) const REGISTER_AND_IGNORE_EXISTING_KEY: Row = Row {
    usage: &[0x5f, 0x06, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x04],
    on_list: Some(|context, cdb, list| {
        change(context, cdb, list, |state, order| state.register(Nexus::HOST, order.registering(false)))
    }),
    ..REGISTER
};

const ON_PREEMPT: ListFn = |context, cdb, list| {
    change(context, cdb, list, |state, order| {
        state.preempt(Nexus::HOST, order.list.key, order.list.service_action_key, order.coverage)
    })
};

/// Parameters of the command, from CDB and list.
pub(super) struct Order<'a> {
    /// Coverage by TYPE. Not looked at by service actions that do not use it.
    pub(super) coverage: Result<Coverage, Refusal>,
    pub(super) list: PersistentReserveOutList<'a>,
}

impl Order<'_> {
    pub(super) const fn registering(&self, knows_key: bool) -> Registering {
        Registering {
            key: if knows_key { Some(self.list.key) } else { None },
            new_key: self.list.service_action_key,
            all_target_ports: self.list.all_target_ports,
            outlives_power: self.list.persist_through_power_loss,
        }
    }
}

pub(super) fn plan(cdb: &[u8]) -> Result<Plan, Sense> {
    let command = fields(cdb)?;
    if command.parameter_list_len != PersistentReserveOutList::LEN as u32 {
        return Err(Sense::illegal_request(AdditionalSense::PARAMETER_LIST_LENGTH_ERROR));
    }
    Ok(Plan::List { bytes: command.parameter_list_len })
}

/// Carries a service action out.
fn change(
    context: &mut Context<'_>,
    cdb: &[u8],
    list: &[u8],
    act: impl FnOnce(&mut Persistent, &Order<'_>) -> Result<Notices, Refusal>,
) -> Plan {
    let order = match order(context.unit.config.durable, cdb, list) {
        Ok(order) => order,
        Err(sense) => return Plan::Check(sense),
    };
    carry_out(context, |state| act(state, &order))
}

/// Changes registrations and reservation, notifies the nexuses concerned, and saves the change.
pub(super) fn carry_out(
    context: &mut Context<'_>,
    act: impl FnOnce(&mut Persistent) -> Result<Notices, Refusal>,
) -> Plan {
    let state = match context.unit.reservations.persistent_mut() {
        Ok(state) => state,
        Err(obstacle) => return obstacle.into(),
    };
    let was_saved = state.outlives_power();
    let notices = match act(state) {
        Ok(notices) => notices,
        Err(refusal) => return refused(refusal),
    };
    let keep = was_saved || state.outlives_power();
    for (nexus, attention) in notices {
        if nexus == Nexus::HOST {
            context.unit.attentions.establish(attention);
        }
    }
    if keep { Plan::Medium(SAVE) } else { Plan::Good }
}

/// Saves the unit's state.
pub(super) const SAVE: MediumPlan = MediumPlan::bare(MediumOp::SaveState, Extent::new(0, 0));

pub(super) fn order<'a>(durable: bool, cdb: &[u8], list: &'a [u8]) -> Result<Order<'a>, Sense> {
    let command = fields(cdb)?;
    if list.len() != PersistentReserveOutList::LEN {
        return Err(Sense::illegal_request(AdditionalSense::PARAMETER_LIST_LENGTH_ERROR));
    }
    // Of a list this long only SPEC_I_PT, whose identifiers would follow, cannot be decoded.
    let list = PersistentReserveOutList::decode(list)
        .map_err(|_| Sense::invalid_field_in_parameter_list(20, Some(3)))?;
    if list.persist_through_power_loss && !durable {
        return Err(Sense::invalid_field_in_parameter_list(20, Some(0)));
    }
    let unit_scope = command.scope == 0;
    let coverage = Coverage::try_from(command.reservation_type);
    Ok(Order { coverage: if unit_scope { coverage } else { Err(Refusal::Type) }, list })
}

pub(super) fn fields(cdb: &[u8]) -> Result<PersistentReserveOut, Sense> {
    PersistentReserveOut::decode(cdb)
        .map_err(|_| Sense::illegal_request(AdditionalSense::INVALID_FIELD_IN_CDB))
}

pub(super) const fn refused(refusal: Refusal) -> Plan {
    Plan::Check(match refusal {
        Refusal::Conflict => return Plan::Status(Status::ReservationConflict),
        Refusal::InvalidRelease | Refusal::NothingLost => {
            Sense::illegal_request(AdditionalSense::INVALID_RELEASE_OF_PERSISTENT_RESERVATION)
        }
        Refusal::ZeroKey => Sense::invalid_field_in_parameter_list(8, None),
        Refusal::Type => Sense::invalid_field_in_cdb(2, None),
        Refusal::NothingReserved => Sense::invalid_field_in_cdb(1, Some(4)),
        Refusal::TargetPort => Sense::invalid_field_in_parameter_list(18, None),
        Refusal::InitiatorPort => Sense::invalid_field_in_parameter_list(24, None),
        Refusal::NoRoom => {
            Sense::new(SenseKey::IllegalRequest, AdditionalSense::INSUFFICIENT_REGISTRATION_RESOURCES)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lun::UnitEvent;
    use crate::lun::fixture::Fixture;

    const CONFLICT: Plan = Plan::Status(Status::ReservationConflict);
    const SAVE: Plan = Plan::Medium(super::SAVE);

    const fn cdb(action: u8, scope_and_type: u8) -> [u8; 10] {
        [0x5f, action, scope_and_type, 0, 0, 0, 0, 0, 24, 0]
    }

    const fn list(key: u8, action_key: u8, flags: u8) -> [u8; 24] {
        [0, 0, 0, 0, 0, 0, 0, key, 0, 0, 0, 0, 0, 0, 0, action_key, 0, 0, 0, 0, flags, 0, 0, 0]
    }

    fn registered() -> Fixture {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.run_list(&cdb(0, 0), &list(0, 7, 0)), Plan::Good);
        fixture
    }

    #[test]
    fn a_host_registers_reserves_and_releases() {
        let mut fixture = registered();
        assert_eq!(fixture.run_list(&cdb(1, 0x05), &list(7, 0, 0)), Plan::Good);
        assert_eq!(fixture.unit.reservations.persistent().map(|state| state.holds(Nexus::HOST)), Ok(true));
        assert_eq!(fixture.run_list(&cdb(2, 0x05), &list(7, 0, 0)), Plan::Good);
        assert_eq!(fixture.unit.reservations.persistent().map(Persistent::reservation), Ok(None));
    }

    #[test]
    fn a_wrong_key_is_a_reservation_conflict() {
        let mut fixture = registered();
        for action in 0..6 {
            assert_eq!(fixture.run_list(&cdb(action, 0x01), &list(8, 7, 0)), CONFLICT, "{action}");
        }
        assert_eq!(Fixture::new().run_list(&cdb(1, 0x01), &list(0, 0, 0)), CONFLICT);
    }

    #[test]
    fn ignoring_the_existing_key_needs_none() {
        let mut fixture = registered();
        assert_eq!(fixture.run_list(&cdb(6, 0), &list(99, 8, 0)), Plan::Good);
        assert_eq!(
            fixture.unit.reservations.persistent().map(|state| state.key_of(Nexus::HOST)),
            Ok(Some(8))
        );
    }

    #[test]
    fn releasing_another_type_is_an_invalid_release() {
        let mut fixture = registered();
        assert_eq!(fixture.run_list(&cdb(1, 0x05), &list(7, 0, 0)), Plan::Good);
        let sense = Sense::illegal_request(AdditionalSense { asc: 0x26, ascq: 0x04 });
        assert_eq!(fixture.run_list(&cdb(2, 0x06), &list(7, 0, 0)), Plan::Check(sense));
    }

    #[test]
    fn clear_and_preempt_reach_the_registration() {
        let mut fixture = registered();
        assert_eq!(fixture.run_list(&cdb(1, 0x01), &list(7, 0, 0)), Plan::Good);
        assert_eq!(fixture.run_list(&cdb(4, 0x03), &list(7, 7, 0)), Plan::Good);
        let reservation = fixture.unit.reservations.persistent().unwrap().reservation();
        assert!(reservation.is_some_and(|held| held.coverage.reads_too));
        assert_eq!(fixture.run_list(&cdb(5, 0x01), &list(7, 9, 0)), CONFLICT);
        let zero = Plan::Check(Sense::invalid_field_in_parameter_list(8, None));
        assert_eq!(fixture.run_list(&cdb(5, 0x01), &list(7, 0, 0)), zero);
        assert_eq!(fixture.run_list(&cdb(3, 0), &list(7, 0, 0)), Plan::Good);
        assert_eq!(fixture.unit.reservations.persistent().map(Persistent::has_registrations), Ok(false));
    }

    #[test]
    fn a_list_is_24_bytes() {
        let sense = Sense::illegal_request(AdditionalSense { asc: 0x1a, ascq: 0x00 });
        for length in [0, 8, 23, 25] {
            let mut short = cdb(0, 0);
            short[8] = length;
            assert_eq!(Fixture::new().check(&short), sense, "{length}");
        }
    }

    #[test]
    fn scope_and_type_must_exist_where_they_count() {
        let mut fixture = registered();
        let wrong = Plan::Check(Sense::invalid_field_in_cdb(2, None));
        for scope_and_type in [0x00, 0x02, 0x04, 0x09, 0x11] {
            assert_eq!(fixture.run_list(&cdb(1, scope_and_type), &list(7, 0, 0)), wrong);
        }
        assert_eq!(fixture.run_list(&cdb(0, 0xff), &list(7, 7, 0)), Plan::Good);
    }

    #[test]
    fn specified_initiator_ports_are_refused_and_all_target_ports_are_one() {
        let mut fixture = Fixture::new();
        let refused = Plan::Check(Sense::invalid_field_in_parameter_list(20, Some(3)));
        assert_eq!(fixture.run_list(&cdb(0, 0), &list(0, 7, 0x08)), refused);
        assert_eq!(fixture.run_list(&cdb(0, 0), &list(0, 7, 0x04)), Plan::Good);
        let state = fixture.unit.reservations.persistent().unwrap();
        assert!(state.registrations()[0].all_target_ports);
    }

    #[test]
    fn what_is_to_outlive_power_is_kept_before_the_end() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.run_list(&cdb(0, 0), &list(0, 7, 0x01)), SAVE);
        assert_eq!(fixture.run_list(&cdb(1, 0x01), &list(7, 0, 0)), SAVE);
        fixture.power_cycle();
        fixture.unit.attentions = Default::default();
        let state = fixture.unit.reservations.persistent().unwrap();
        assert_eq!((state.key_of(Nexus::HOST), state.holds(Nexus::HOST)), (Some(7), true));
        assert_eq!(fixture.run_list(&cdb(0, 0), &list(7, 7, 0)), SAVE);
        fixture.power_cycle();
        assert_eq!(fixture.unit.reservations.persistent().map(Persistent::has_registrations), Ok(false));
    }

    #[test]
    fn a_medium_that_keeps_nothing_cannot_be_asked_to() {
        let mut fixture = Fixture::with(|config| config.durable = false);
        let refused = Plan::Check(Sense::invalid_field_in_parameter_list(20, Some(0)));
        assert_eq!(fixture.run_list(&cdb(0, 0), &list(0, 7, 0x01)), refused);
    }

    #[test]
    fn a_registration_meets_the_host_again_after_a_nexus_loss() {
        let mut fixture = registered();
        fixture.unit.handle_event(UnitEvent::NexusLoss);
        fixture.unit.attentions = Default::default();
        assert_eq!(fixture.run_list(&cdb(1, 0x01), &list(7, 0, 0)), Plan::Good);
    }
}
