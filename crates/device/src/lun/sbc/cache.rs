//! SYNCHRONIZE CACHE and PRE-FETCH, (10) and (16) (SBC-4 clauses 5.13, 5.14, 5.33 and 5.34).
//!
//! Everything is flushed, whichever blocks are named. PRE-FETCH ends with GOOD and not with CONDITION MET, because
//! the cache is the medium's and whether all of the blocks fit there is not known.

use super::{Decision, existing_to_end, fields, settle};
use crate::lun::access::Access;
use crate::lun::row::{Needs, PlanFn, Row};
use crate::lun::{LogicalUnit, MediumPlan, Plan};
use crate::medium::MediumOp;
use units::Extent;
use wire::scsi::cdb::{PreFetch, SynchronizeCache};

/// Reservations stop it as they stop a write, write protection does not. It looks itself whether the unit is ready.
const SYNCHRONIZE: Needs = Needs { access: Access::Write, ..Needs::UNIT };

pub(in crate::lun) const SYNCHRONIZE_CACHE_10: Row = slow(Row::planned(
    &[0x35, 0x02, 0xff, 0xff, 0xff, 0xff, 0, 0xff, 0xff, 0x04],
    SYNCHRONIZE,
    PLAN_SYNCHRONIZE,
));
pub(in crate::lun) const SYNCHRONIZE_CACHE_16: Row = slow(Row::planned(
    &[0x91, 0x02, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x04],
    SYNCHRONIZE,
    PLAN_SYNCHRONIZE,
));
pub(in crate::lun) const PRE_FETCH_10: Row = slow(Row::planned(
    &[0x34, 0x02, 0xff, 0xff, 0xff, 0xff, 0, 0xff, 0xff, 0x04],
    Needs::READ,
    PLAN_PRE_FETCH,
));
pub(in crate::lun) const PRE_FETCH_16: Row = slow(Row::planned(
    &[0x90, 0x02, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x04],
    Needs::READ,
    PLAN_PRE_FETCH,
));

/// The same, with time for a whole cache.
const fn slow(row: Row) -> Row {
    Row { timeout_s: 60, ..row }
}

const PLAN_SYNCHRONIZE: PlanFn = |context, cdb| match context.unit.check_ready() {
    Ok(()) => settle(synchronize(context.unit, cdb)),
    Err(plan) => plan,
};
const PLAN_PRE_FETCH: PlanFn = |context, cdb| settle(pre_fetch(context.unit, cdb));

fn synchronize(unit: &LogicalUnit, cdb: &[u8]) -> Decision {
    let command = fields(SynchronizeCache::decode(cdb))?;
    let extent = existing_to_end(unit, command.lba, command.blocks.into())?;
    Ok(bare(MediumOp::Flush, extent, command.immediate))
}

fn pre_fetch(unit: &LogicalUnit, cdb: &[u8]) -> Decision {
    let command = fields(PreFetch::decode(cdb))?;
    let extent = existing_to_end(unit, command.lba, command.blocks.into())?;
    if extent.is_empty() {
        return Ok(Plan::Good);
    }
    Ok(bare(MediumOp::Prefetch, extent, command.immediate))
}

const fn bare(op: MediumOp, extent: Extent, immediate: bool) -> Plan {
    let plan = MediumPlan::bare(op, extent);
    if immediate { Plan::Background(plan) } else { Plan::Medium(plan) }
}

#[cfg(test)]
mod tests {
    use crate::lun::fixture::Fixture;
    use crate::lun::{MediumPlan, Plan, Readiness};
    use crate::medium::MediumOp;
    use units::Extent;
    use wire::scsi::sense::{AdditionalSense, Sense};

    #[test]
    fn no_blocks_mean_all_of_the_rest() {
        let mut fixture = Fixture::new();
        let rest = Plan::Medium(MediumPlan::bare(MediumOp::Flush, Extent::new(2000, 48)));
        assert_eq!(fixture.run(&[0x35, 0, 0, 0, 0x07, 0xd0, 0, 0, 0, 0]), rest);
        assert_eq!(fixture.run(&[0x91, 0, 0, 0, 0, 0, 0, 0, 0x07, 0xd0, 0, 0, 0, 0, 0, 0]), rest);
        let rest = Plan::Medium(MediumPlan::bare(MediumOp::Prefetch, Extent::new(2000, 48)));
        assert_eq!(fixture.run(&[0x34, 0, 0, 0, 0x07, 0xd0, 0, 0, 0, 0]), rest);
        assert_eq!(fixture.run(&[0x90, 0, 0, 0, 0, 0, 0, 0, 0x07, 0xd0, 0, 0, 0, 0, 0, 0]), rest);
    }

    #[test]
    fn immediate_work_is_done_in_the_background() {
        let mut fixture = Fixture::new();
        let flush = Plan::Background(MediumPlan::bare(MediumOp::Flush, Extent::new(0, 1)));
        assert_eq!(fixture.run(&[0x35, 0x02, 0, 0, 0, 0, 0, 0, 1, 0]), flush);
        let fetch = Plan::Background(MediumPlan::bare(MediumOp::Prefetch, Extent::new(0, 1)));
        assert_eq!(fixture.run(&[0x34, 0x02, 0, 0, 0, 0, 0x03, 0, 1, 0]), fetch);
    }

    #[test]
    fn the_blocks_must_exist() {
        let out_of_range = AdditionalSense { asc: 0x21, ascq: 0x00 };
        let cdbs: [&[u8]; 4] = [
            &[0x35, 0, 0, 0, 0x07, 0xff, 0, 0, 2, 0],
            &[0x34, 0, 0, 0, 0x08, 0x01, 0, 0, 0, 0],
            &[0x91, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0],
            &[0x90, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0],
        ];
        for cdb in cdbs {
            assert_eq!(Fixture::new().check(cdb).additional, out_of_range, "{cdb:02x?}");
        }
    }

    #[test]
    fn behind_the_last_block_there_is_nothing_to_fetch() {
        assert_eq!(Fixture::new().run(&[0x34, 0, 0, 0, 0x08, 0, 0, 0, 0, 0]), Plan::Good);
    }

    #[test]
    fn a_flush_needs_a_medium_but_may_be_done_on_a_protected_one() {
        let mut fixture = Fixture::with(|config| config.read_only = true);
        assert!(matches!(fixture.run(&[0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Plan::Medium(_)));
        fixture.unit.readiness = Readiness::Ejected;
        let sense = fixture.check(&[0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(sense, Sense::not_ready(AdditionalSense { asc: 0x3a, ascq: 0x00 }));
    }
}
