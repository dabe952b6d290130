//! Any bytes for any command: the unit answers each with a plan that the executor can carry out.

use super::fixture::Fixture;
use super::registry;
use super::row::Row;
use super::{PARAMETER_BYTES_MAX, Plan, Readiness, UnitEvent, UnitType};
use crate::medium::MediumDone;
use alloc::vec::Vec;
use proptest::prelude::*;
use units::BlockCount;

/// A CDB of some row with arbitrary other bytes, mostly few bits away from zero.
fn any_cdb(unit_type: UnitType) -> impl Strategy<Value = Vec<u8>> {
    let rows: Vec<&'static Row> = registry::rows(unit_type).collect();
    let byte = prop_oneof![4 => Just(0), 2 => 0..8u8, 1 => any::<u8>()];
    (prop::sample::select(rows), prop::collection::vec(byte, 16)).prop_map(|(row, mut cdb)| {
        cdb[0] = row.opcode().into();
        if let Some(action) = row.service_action() {
            cdb[1] = cdb[1] & 0xe0 | action as u8;
        }
        cdb
    })
}

fn check(fixture: &Fixture, plan: &Plan) {
    match plan {
        Plan::List { bytes } | Plan::ListHead { least: bytes } | Plan::ListRest { bytes } => {
            assert!(*bytes as usize <= PARAMETER_BYTES_MAX)
        }
        Plan::Reply | Plan::ReplyThen(_) => assert!(fixture.reply().len() <= PARAMETER_BYTES_MAX),
        Plan::Medium(step) | Plan::LongRunning(step) | Plan::Background(step) => {
            assert!(step.extent.fits(fixture.unit.config.capacity), "{step:?}");
        }
        Plan::Good | Plan::Check(_) | Plan::Status(_) => {}
    }
}

/// Takes each command through its steps; what each answers is checked.
fn check_all(fixture: &mut Fixture, commands: Vec<(Vec<u8>, Vec<u8>)>) {
    for (cdb, list) in commands {
        let mut plan = fixture.run(&cdb);
        check(fixture, &plan);
        if let Plan::List { bytes } = plan {
            let list = &list[..list.len().min(bytes as usize)];
            plan = fixture.interpret(&cdb, list);
            check(fixture, &plan);
            let asks_again = matches!(plan, Plan::List { .. });
            assert!(!asks_again);
        }
        if let Plan::ListHead { .. } = plan {
            let mut whole = Vec::from([0x00, 0x88, 0, 0]);
            whole.extend(&list);
            plan = fixture.interpret(&cdb, &whole);
            check(fixture, &plan);
            if let Plan::ListRest { bytes } = plan {
                whole.resize(whole.len() + bytes as usize, 0x5a);
                plan = fixture.interpret(&cdb, &whole);
                check(fixture, &plan);
                let asks_again = matches!(plan, Plan::ListRest { .. });
                assert!(!asks_again);
            }
        }
        if let Plan::Medium(_) = plan {
            let plan = fixture.run_medium(&cdb, MediumDone::Done);
            check(fixture, &plan);
        }
        fixture.unit.readiness = Readiness::Ready;
        fixture.unit.handle_event(UnitEvent::LogicalUnitReset);
        fixture.unit.attentions = Default::default();
    }
}

proptest! {
    #[test]
    fn any_command_has_a_plan_that_can_be_carried_out(
        commands in prop::collection::vec(
            (any_cdb(UnitType::Disk), prop::collection::vec(any::<u8>(), 0..64)), 1..8,
        ),
    ) {
        check_all(&mut Fixture::with(|config| config.removable = true), commands);
    }

    #[test]
    fn any_command_to_an_optical_drive_has_a_plan_too(
        blocks in prop_oneof![Just(1_u64), Just(1000), Just(2_000_000), Just(4_000_000), Just(50_000_000), Just(u32::MAX.into())],
        commands in prop::collection::vec(
            (any_cdb(UnitType::Optical), prop::collection::vec(any::<u8>(), 0..64)), 1..8,
        ),
    ) {
        let mut fixture = Fixture::optical();
        fixture.unit.config.capacity = BlockCount(blocks);
        check_all(&mut fixture, commands);
    }

    #[test]
    fn any_saved_state_makes_a_unit(state in prop::collection::vec(any::<u8>(), 0..256)) {
        let fixture = Fixture::with(|config| config.durable_state = Some(state));
        prop_assert!(fixture.unit.write_cache_enabled());
    }
}
