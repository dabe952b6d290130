//! Any bytes for any command: the unit answers each with a plan that the executor can carry out.

use super::fixture::Fixture;
use super::registry;
use super::row::Row;
use super::{PARAMETER_BYTES_MAX, Plan, Readiness, UnitEvent};
use crate::medium::MediumDone;
use alloc::vec::Vec;
use proptest::prelude::*;

/// A CDB of some row with arbitrary other bytes, mostly few bits away from zero.
fn any_cdb() -> impl Strategy<Value = Vec<u8>> {
    let rows: Vec<&'static Row> = registry::rows().collect();
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

proptest! {
    #[test]
    fn any_command_has_a_plan_that_can_be_carried_out(
        commands in prop::collection::vec((any_cdb(), prop::collection::vec(any::<u8>(), 0..64)), 1..8),
    ) {
        let mut fixture = Fixture::with(|config| config.removable = true);
        for (cdb, list) in commands {
            let mut plan = fixture.run(&cdb);
            check(&fixture, &plan);
            if let Plan::List { bytes } = plan {
                let list = &list[..list.len().min(bytes as usize)];
                plan = fixture.interpret(&cdb, list);
                check(&fixture, &plan);
                let asks_again = matches!(plan, Plan::List { .. });
                prop_assert!(!asks_again);
            }
            if let Plan::ListHead { .. } = plan {
                let mut whole = Vec::from([0x00, 0x88, 0, 0]);
                whole.extend(&list);
                plan = fixture.interpret(&cdb, &whole);
                check(&fixture, &plan);
                if let Plan::ListRest { bytes } = plan {
                    whole.resize(whole.len() + bytes as usize, 0x5a);
                    plan = fixture.interpret(&cdb, &whole);
                    check(&fixture, &plan);
                    let asks_again = matches!(plan, Plan::ListRest { .. });
                    prop_assert!(!asks_again);
                }
            }
            if let Plan::Medium(_) = plan {
                let plan = fixture.run_medium(&cdb, MediumDone::Done);
                check(&fixture, &plan);
            }
            fixture.unit.readiness = Readiness::Ready;
            fixture.unit.handle_event(UnitEvent::LogicalUnitReset);
            fixture.unit.attentions = Default::default();
        }
    }

    #[test]
    fn any_saved_state_makes_a_unit(state in prop::collection::vec(any::<u8>(), 0..256)) {
        let fixture = Fixture::with(|config| config.durable_state = Some(state));
        prop_assert!(fixture.unit.write_cache_enabled());
    }
}
