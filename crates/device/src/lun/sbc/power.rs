//! START STOP UNIT and PREVENT ALLOW MEDIUM REMOVAL (SBC-4 clauses 5.15 and 5.31).
//!
//! Cached data go to the medium before the unit stops, unless NO_FLUSH is one. Of the power conditions only
//! "stopped" is stored: in the others a command works as ever, and nothing reports which of them it left.
//!
//! A unit with a removable medium has no motor to stop, as a memory stick has none: only an eject ends its readiness,
//! and every power condition is taken for reached, reserved ones included. Prevention locks the mechanism in both
//! directions.
//!
//! Left out: reporting idle and standby by REQUEST SENSE, and timers.

use super::{Decision, everything, fields, settle};
use crate::lun::access::Access;
use crate::lun::attention::Attention;
use crate::lun::row::{Needs, Row};
use crate::lun::{LogicalUnit, MediumPlan, Plan, Readiness, UnitType};
use crate::medium::MediumOp;
use wire::scsi::cdb::{PowerCondition, Prevent, PreventAllowMediumRemoval, StartStopUnit};
use wire::scsi::mmc::MediaEventCode;
use wire::scsi::sense::{AdditionalSense, Sense};

/// Changes the unit, not the medium; whether it is ready each command sees for itself.
const NEEDS: Needs = Needs { access: Access::Write, ..Needs::UNIT };

pub(in crate::lun) const START_STOP_UNIT: Row = Row {
    usage: &[0x1b, 0x01, 0, 0x0f, 0xf7, 0x04],
    needs: NEEDS.exclusive(),
    timeout_s: 60,
    plan: |context, cdb| settle(start_stop(context.unit, cdb)),
    on_list: None,
    on_medium: Some(|context, cdb, _, _| settle(flushed(context.unit, cdb))),
};

pub(in crate::lun) const PREVENT_ALLOW_MEDIUM_REMOVAL: Row = Row {
    usage: &[0x1e, 0, 0, 0, 0x03, 0x04],
    needs: NEEDS,
    timeout_s: 1,
    plan: |context, cdb| settle(prevent_allow(context.unit, cdb)),
    on_list: None,
    on_medium: None,
};

/// State change that START STOP UNIT requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transition {
    Start,
    Load,
    Stop,
    Eject,
    /// Idle or active: nothing has to be on the medium before.
    Doze,
    /// Standby: caches may lose power.
    Sleep,
}

fn start_stop(unit: &mut LogicalUnit, cdb: &[u8]) -> Decision {
    let command = fields(StartStopUnit::decode(cdb))?;
    let transition = requested(&command, unit.config.removable)?;
    if matches!(transition, Transition::Load | Transition::Eject) && !unit.config.removable {
        return Err(Sense::invalid_field_in_cdb(4, Some(1)));
    }
    if matches!(transition, Transition::Load | Transition::Eject) && unit.removal_prevented {
        return Err(Sense::illegal_request(AdditionalSense::MEDIUM_REMOVAL_PREVENTED));
    }
    let is_optical = unit.config.unit_type == UnitType::Optical;
    if is_optical
        && unit.readiness == Readiness::Absent
        && !matches!(transition, Transition::Start | Transition::Load)
    {
        // The tray of an empty drive opens as well.
        return Ok(Plan::Good);
    }
    if !matches!(unit.readiness, Readiness::Ready | Readiness::Stopped | Readiness::Ejected)
        && let Err(plan) = unit.check_ready()
    {
        return Ok(plan);
    }
    let flushes = matches!(transition, Transition::Stop | Transition::Eject | Transition::Sleep);
    if !flushes || command.no_flush || unit.readiness != Readiness::Ready {
        return Ok(enter(unit, transition));
    }
    let flush = MediumPlan::bare(MediumOp::Flush, everything(unit));
    if command.immediate {
        enter(unit, transition);
        return Ok(Plan::Background(flush));
    }
    Ok(Plan::Medium(flush))
}

/// The flush before a stop is done.
fn flushed(unit: &mut LogicalUnit, cdb: &[u8]) -> Decision {
    let command = fields(StartStopUnit::decode(cdb))?;
    Ok(if command.immediate { Plan::Good } else { enter(unit, requested(&command, unit.config.removable)?) })
}

fn requested(command: &StartStopUnit, removable: bool) -> Result<Transition, Sense> {
    let modifier_max = match command.power_condition {
        PowerCondition::StartValid => {
            return Ok(match (command.load_eject, command.start) {
                (false, true) => Transition::Start,
                (false, false) if removable => Transition::Sleep,
                (false, false) => Transition::Stop,
                (true, true) => Transition::Load,
                (true, false) => Transition::Eject,
            });
        }
        PowerCondition::Active | PowerCondition::LuControl => 0,
        PowerCondition::Idle | PowerCondition::ForceIdle => 2,
        PowerCondition::Standby | PowerCondition::ForceStandby => 1,
        PowerCondition::Unknown(_) if removable => return Ok(Transition::Doze),
        PowerCondition::Unknown(_) => return Err(Sense::invalid_field_in_cdb(4, Some(7))),
    };
    if command.power_condition_modifier > modifier_max {
        return Err(Sense::invalid_field_in_cdb(3, Some(3)));
    }
    Ok(match command.power_condition {
        PowerCondition::Standby | PowerCondition::ForceStandby => Transition::Sleep,
        _ => Transition::Doze,
    })
}

fn enter(unit: &mut LogicalUnit, transition: Transition) -> Plan {
    match (transition, unit.readiness) {
        // Nothing could change the medium meanwhile, and the host that ejected it knows that it is back; but hosts of
        // optical drives read the disc again only after a unit attention.
        (Transition::Load, Readiness::Ejected) => {
            unit.readiness = Readiness::Ready;
            unit.media_event = MediaEventCode::NewMedia;
            if unit.config.unit_type == UnitType::Optical {
                unit.attentions.establish(Attention::MediumChanged);
            }
        }
        (Transition::Start, Readiness::Ejected) => return Plan::Check(Sense::not_ready(unit.no_medium())),
        (Transition::Eject, Readiness::Ejected) => {}
        (Transition::Stop, Readiness::Ready) => unit.readiness = Readiness::Stopped,
        (Transition::Eject, _) => {
            unit.readiness = Readiness::Ejected;
            unit.media_event = MediaEventCode::MediaRemoval;
        }
        (_, Readiness::Stopped) if transition != Transition::Stop => unit.start(),
        _ => {}
    }
    Plan::Good
}

fn prevent_allow(unit: &mut LogicalUnit, cdb: &[u8]) -> Decision {
    let command = fields(PreventAllowMediumRemoval::decode(cdb))?;
    unit.removal_prevented = match command.prevent {
        Prevent::Allow => false,
        Prevent::Prevent => true,
        Prevent::ObsoleteAllow | Prevent::ObsoletePrevent => {
            return Err(Sense::invalid_field_in_cdb(4, Some(1)));
        }
    };
    Ok(Plan::Good)
}

#[cfg(test)]
mod tests {
    use crate::lun::fixture::Fixture;
    use crate::lun::{MediumPlan, Plan, Readiness, UnitEvent};
    use crate::medium::{MediumDone, MediumOp};
    use units::Extent;
    use wire::scsi::sense::{AdditionalSense, KeySpecific, Sense};

    const START: [u8; 6] = [0x1b, 0, 0, 0, 0x01, 0];
    const STOP: [u8; 6] = [0x1b, 0, 0, 0, 0x00, 0];
    const LOAD: [u8; 6] = [0x1b, 0, 0, 0, 0x03, 0];
    const EJECT: [u8; 6] = [0x1b, 0, 0, 0, 0x02, 0];
    const FLUSH: MediumPlan = MediumPlan::bare(MediumOp::Flush, Extent::new(0, 2048));

    fn removable() -> Fixture {
        Fixture::with(|config| config.removable = true)
    }

    #[test]
    fn a_stop_flushes_first_and_a_start_undoes_it() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.run(&STOP), Plan::Medium(FLUSH));
        assert_eq!(fixture.unit.readiness, Readiness::Ready);
        assert_eq!(fixture.run_medium(&STOP, MediumDone::Done), Plan::Good);
        let stopped = Sense::not_ready(AdditionalSense { asc: 0x04, ascq: 0x02 });
        assert_eq!(fixture.check(&[0; 6]), stopped);
        assert_eq!(fixture.run(&STOP), Plan::Good);
        assert_eq!(fixture.run(&START), Plan::Good);
        assert_eq!(fixture.run(&[0; 6]), Plan::Good);
    }

    #[test]
    fn an_immediate_stop_takes_effect_before_its_flush() {
        let mut fixture = Fixture::new();
        let cdb = [0x1b, 0x01, 0, 0, 0, 0];
        assert_eq!(fixture.run(&cdb), Plan::Background(FLUSH));
        assert_eq!(fixture.unit.readiness, Readiness::Stopped);
        assert_eq!(fixture.run(&START), Plan::Good);
        assert_eq!(fixture.run_medium(&cdb, MediumDone::Done), Plan::Good);
        assert_eq!(fixture.unit.readiness, Readiness::Ready);
    }

    #[test]
    fn a_bus_reset_ends_a_stop_and_other_events_do_not() {
        let mut fixture = Fixture::new();
        fixture.unit.readiness = Readiness::Stopped;
        fixture.unit.handle_event(UnitEvent::LogicalUnitReset);
        assert_eq!(fixture.unit.readiness, Readiness::Stopped);
        fixture.unit.handle_event(UnitEvent::BusReset);
        assert_eq!(fixture.unit.readiness, Readiness::Ready);
    }

    #[test]
    fn a_start_after_a_stop_is_a_cycle_and_a_start_alone_is_none() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.run(&START), Plan::Good);
        assert_eq!(fixture.unit.logs.start_stop_cycles, 0);
        for _ in 0..2 {
            assert_eq!(fixture.run(&[0x1b, 0, 0, 0, 0x04, 0]), Plan::Good);
            assert_eq!(fixture.run(&START), Plan::Good);
        }
        fixture.unit.readiness = Readiness::Stopped;
        fixture.unit.handle_event(UnitEvent::BusReset);
        fixture.unit.attentions = Default::default();
        assert_eq!(fixture.read(&[0x4d, 0, 0x4e, 0, 0, 0, 4, 0, 255, 0])[4..], [0, 4, 0x03, 4, 0, 0, 0, 3]);
    }

    #[test]
    fn without_a_flush_the_stop_is_at_once() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.run(&[0x1b, 0, 0, 0, 0x04, 0]), Plan::Good);
        assert_eq!(fixture.unit.readiness, Readiness::Stopped);
    }

    #[test]
    fn a_medium_that_was_ejected_can_be_loaded_again() {
        let mut fixture = removable();
        assert_eq!(fixture.run(&EJECT), Plan::Medium(FLUSH));
        assert_eq!(fixture.run_medium(&EJECT, MediumDone::Done), Plan::Good);
        let no_medium = Sense::not_ready(AdditionalSense { asc: 0x3a, ascq: 0x00 });
        assert_eq!(fixture.check(&[0; 6]), no_medium);
        assert_eq!(fixture.check(&START), no_medium);
        assert_eq!(fixture.run(&EJECT), Plan::Good);
        assert_eq!(fixture.run(&LOAD), Plan::Good);
        assert_eq!(fixture.run(&[0; 6]), Plan::Good);
    }

    #[test]
    fn a_removable_medium_has_no_motor_to_stop() {
        let mut fixture = removable();
        assert_eq!(fixture.run(&STOP), Plan::Medium(FLUSH));
        assert_eq!(fixture.run_medium(&STOP, MediumDone::Done), Plan::Good);
        assert_eq!(fixture.run(&[0; 6]), Plan::Good);
        for condition in [4, 5, 6, 8, 9, 0xc, 0xf] {
            assert_eq!(fixture.run(&[0x1b, 0, 0, 0, condition << 4 | 0x02, 0]), Plan::Good);
            assert_eq!(fixture.run(&[0; 6]), Plan::Good);
        }
    }

    #[test]
    fn a_locked_mechanism_does_not_load_either() {
        let mut fixture = removable();
        assert_eq!(fixture.run(&[0x1b, 0, 0, 0, 0x06, 0]), Plan::Good);
        assert_eq!(fixture.run(&[0x1e, 0, 0, 0, 1, 0]), Plan::Good);
        let refused = Sense::illegal_request(AdditionalSense { asc: 0x53, ascq: 0x02 });
        assert_eq!(fixture.check(&LOAD), refused);
        assert_eq!(fixture.run(&[0x1e, 0, 0, 0, 0, 0]), Plan::Good);
        assert_eq!(fixture.run(&LOAD), Plan::Good);
    }

    #[test]
    fn a_medium_that_was_taken_away_cannot_be_loaded() {
        let mut fixture = removable();
        fixture.unit.remove_medium();
        let no_medium = Sense::not_ready(AdditionalSense { asc: 0x3a, ascq: 0x00 });
        assert_eq!(fixture.check(&LOAD), no_medium);
    }

    #[test]
    fn a_fixed_medium_cannot_be_ejected_or_loaded() {
        let expected = Sense::invalid_field_in_cdb(4, Some(1));
        assert_eq!(Fixture::new().check(&EJECT), expected);
        assert_eq!(Fixture::new().check(&LOAD), expected);
    }

    #[test]
    fn a_prevented_removal_is_refused_until_allowed_or_reset() {
        let refused = Sense::illegal_request(AdditionalSense { asc: 0x53, ascq: 0x02 });
        let mut fixture = removable();
        assert_eq!(fixture.run(&[0x1e, 0, 0, 0, 1, 0]), Plan::Good);
        assert_eq!(fixture.check(&EJECT), refused);
        assert_eq!(fixture.run(&[0x1e, 0, 0, 0, 0, 0]), Plan::Good);
        assert_eq!(fixture.run(&EJECT), Plan::Medium(FLUSH));
        for event in [UnitEvent::BusReset, UnitEvent::LogicalUnitReset, UnitEvent::NexusLoss] {
            let mut fixture = removable();
            assert_eq!(fixture.run(&[0x1e, 0, 0, 0, 1, 0]), Plan::Good);
            fixture.unit.handle_event(event);
            fixture.unit.attentions = Default::default();
            assert_eq!(fixture.run(&EJECT), Plan::Medium(FLUSH), "{event:?}");
        }
    }

    #[test]
    fn obsolete_ways_to_prevent_are_refused() {
        let expected = Sense::invalid_field_in_cdb(4, Some(1));
        assert_eq!(Fixture::new().check(&[0x1e, 0, 0, 0, 2, 0]), expected);
        assert_eq!(Fixture::new().check(&[0x1e, 0, 0, 0, 3, 0]), expected);
    }

    #[test]
    fn power_conditions_are_accepted_with_their_modifiers() {
        for (condition, modifier_max) in [(1, 0), (2, 2), (7, 0), (0xa, 2)] {
            for modifier in 0..16 {
                let cdb = [0x1b, 0, 0, modifier, condition << 4, 0];
                let expected = match modifier <= modifier_max {
                    true => Plan::Good,
                    false => Plan::Check(Sense::invalid_field_in_cdb(3, Some(3))),
                };
                assert_eq!(Fixture::new().run(&cdb), expected, "{cdb:02x?}");
            }
        }
        for condition in [4, 5, 6, 8, 9, 0xc, 0xf] {
            let sense = Fixture::new().check(&[0x1b, 0, 0, 0, condition << 4, 0]);
            assert_eq!(sense, Sense::invalid_field_in_cdb(4, Some(7)));
        }
    }

    #[test]
    fn a_power_condition_makes_start_and_load_eject_void() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.run(&[0x1b, 0, 0, 0, 0x32, 0]), Plan::Medium(FLUSH));
        assert_eq!(fixture.run_medium(&[0x1b, 0, 0, 0, 0x32, 0], MediumDone::Done), Plan::Good);
        assert_eq!(fixture.unit.readiness, Readiness::Ready);
    }

    #[test]
    fn a_power_condition_ends_the_stop() {
        let mut fixture = Fixture::new();
        fixture.unit.readiness = Readiness::Stopped;
        assert_eq!(fixture.run(&[0x1b, 0, 0, 0, 0x10, 0]), Plan::Good);
        assert_eq!(fixture.unit.readiness, Readiness::Ready);
    }

    #[test]
    fn a_unit_that_is_sanitized_cannot_be_stopped() {
        let mut fixture = Fixture::new();
        fixture.unit.readiness = Readiness::Sanitizing { unrestricted_exit: false };
        let expected = Sense::not_ready(AdditionalSense { asc: 0x04, ascq: 0x1b })
            .with_key_specific(KeySpecific::Progress(0));
        assert_eq!(fixture.check(&STOP), expected);
    }
}
