//! VERIFY and WRITE AND VERIFY, (10), (12) and (16) (SBC-4 clauses 5.36 to 5.38 and 5.44 to 5.46).
//!
//! BYTCHK says what with: 0, the blocks need only be readable; 1, the command's data; 3, one block for all of them,
//! which WRITE AND VERIFY does not have.

use super::{Decision, bytes_of, fields, moving, settle, transferable, without_protection};
use crate::lun::row::{MediumFn, Needs, PlanFn, Row};
use crate::lun::{Context, DataPhase, LogicalUnit, MediumPlan, Plan};
use crate::medium::MediumOp;
use units::Extent;
use wire::scsi::cdb::{ByteCheck, Verify, WriteAndVerify};
use wire::scsi::sense::Sense;

pub(in crate::lun) const VERIFY_10: Row =
    verify_row(&[0x2f, 0xf6, 0xff, 0xff, 0xff, 0xff, 0, 0xff, 0xff, 0x04]);
pub(in crate::lun) const VERIFY_12: Row =
    verify_row(&[0xaf, 0xf6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x04]);
pub(in crate::lun) const VERIFY_16: Row = verify_row(&[
    0x8f, 0xf6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x04,
]);
pub(in crate::lun) const WRITE_AND_VERIFY_10: Row =
    write_row(&[0x2e, 0xf6, 0xff, 0xff, 0xff, 0xff, 0, 0xff, 0xff, 0x04]);
pub(in crate::lun) const WRITE_AND_VERIFY_12: Row =
    write_row(&[0xae, 0xf6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x04]);
pub(in crate::lun) const WRITE_AND_VERIFY_16: Row =
    write_row(&[0x8e, 0xf6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x04]);

const fn verify_row(usage: &'static [u8]) -> Row {
    Row { usage, needs: Needs::READ, timeout_s: 60, plan: PLAN_VERIFY, on_list: None, on_medium: None }
}

const fn write_row(usage: &'static [u8]) -> Row {
    Row {
        usage,
        needs: Needs::WRITE,
        timeout_s: 60,
        plan: PLAN_WRITE,
        on_list: None,
        on_medium: Some(PLAN_SECOND),
    }
}

const PLAN_VERIFY: PlanFn = |context, cdb| settle(verify(context.unit, cdb));
const PLAN_WRITE: PlanFn = |context, cdb| settle(write(context.unit, cdb));
const PLAN_SECOND: MediumFn = |context, cdb, _, _| settle(verify_written(context, cdb));

fn verify(unit: &LogicalUnit, cdb: &[u8]) -> Decision {
    let command = fields(Verify::decode(cdb))?;
    without_protection(command.protect)?;
    if command.byte_check == ByteCheck::Reserved {
        return Err(Sense::invalid_field_in_cdb(1, Some(2)));
    }
    let extent = transferable(unit, command.width, command.lba, command.blocks)?;
    if extent.is_empty() {
        return Ok(Plan::Good);
    }
    Ok(match command.byte_check {
        ByteCheck::MediumOnly | ByteCheck::Reserved => {
            Plan::Medium(MediumPlan::bare(MediumOp::Verify, extent))
        }
        ByteCheck::Data => moving(unit, MediumOp::Compare, extent, DataPhase::Out),
        ByteCheck::OneBlock => Plan::Medium(MediumPlan {
            op: MediumOp::CompareSame,
            extent,
            data: DataPhase::Out,
            bytes: unit.config.block_size.bytes(),
        }),
    })
}

fn write(unit: &LogicalUnit, cdb: &[u8]) -> Decision {
    let (_, extent) = to_write_and_verify(unit, cdb)?;
    // What is verified is the medium, so that is where the blocks must be.
    Ok(moving(unit, MediumOp::Write { fua: true }, extent, DataPhase::Out))
}

/// The blocks are written: looks at them, then it is done.
fn verify_written(context: &mut Context<'_>, cdb: &[u8]) -> Decision {
    if core::mem::replace(context.step, 1) == 1 {
        return Ok(Plan::Good);
    }
    let (byte_check, extent) = to_write_and_verify(context.unit, cdb)?;
    Ok(match byte_check {
        ByteCheck::Data => Plan::Medium(MediumPlan {
            op: MediumOp::Compare,
            extent,
            data: DataPhase::None,
            bytes: bytes_of(context.unit, extent),
        }),
        _ => Plan::Medium(MediumPlan::bare(MediumOp::Verify, extent)),
    })
}

fn to_write_and_verify(unit: &LogicalUnit, cdb: &[u8]) -> Result<(ByteCheck, Extent), Sense> {
    let command = fields(WriteAndVerify::decode(cdb))?;
    without_protection(command.protect)?;
    if matches!(command.byte_check, ByteCheck::Reserved | ByteCheck::OneBlock) {
        return Err(Sense::invalid_field_in_cdb(1, Some(2)));
    }
    Ok((command.byte_check, transferable(unit, command.width, command.lba, command.blocks)?))
}

#[cfg(test)]
mod tests {
    use crate::lun::fixture::Fixture;
    use crate::lun::{DataPhase, MediumPlan, Plan};
    use crate::medium::{MediumDone, MediumOp};
    use units::Extent;
    use wire::scsi::sense::{AdditionalSense, Sense};

    #[test]
    fn without_a_byte_check_the_blocks_need_only_be_readable() {
        let expected = Plan::Medium(MediumPlan::bare(MediumOp::Verify, Extent::new(1, 2)));
        let cdbs: [&[u8]; 3] = [
            &[0x2f, 0x10, 0, 0, 0, 1, 0, 0, 2, 0],
            &[0xaf, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0],
            &[0x8f, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0],
        ];
        for cdb in cdbs {
            assert_eq!(Fixture::new().run(cdb), expected, "{cdb:02x?}");
        }
    }

    #[test]
    fn a_byte_check_compares_with_the_data() {
        let expected = MediumPlan {
            op: MediumOp::Compare,
            extent: Extent::new(1, 2),
            data: DataPhase::Out,
            bytes: 1024,
        };
        let plan = Fixture::new().run(&[0x2f, 0x02, 0, 0, 0, 1, 0, 0, 2, 0]);
        assert_eq!(plan, Plan::Medium(expected));
    }

    #[test]
    fn one_block_can_be_compared_with_many() {
        let expected = MediumPlan {
            op: MediumOp::CompareSame,
            extent: Extent::new(1, 100),
            data: DataPhase::Out,
            bytes: 512,
        };
        let plan = Fixture::new().run(&[0x2f, 0x06, 0, 0, 0, 1, 0, 0, 100, 0]);
        assert_eq!(plan, Plan::Medium(expected));
    }

    #[test]
    fn byte_checks_without_a_meaning_are_refused() {
        let expected = Sense::invalid_field_in_cdb(1, Some(2));
        assert_eq!(Fixture::new().check(&[0x2f, 0x04, 0, 0, 0, 1, 0, 0, 1, 0]), expected);
        assert_eq!(Fixture::new().check(&[0x2e, 0x04, 0, 0, 0, 1, 0, 0, 1, 0]), expected);
        assert_eq!(Fixture::new().check(&[0x2e, 0x06, 0, 0, 0, 1, 0, 0, 1, 0]), expected);
    }

    #[test]
    fn protection_information_is_refused() {
        let expected = Sense::invalid_field_in_cdb(1, Some(7));
        assert_eq!(Fixture::new().check(&[0x2f, 0x20, 0, 0, 0, 1, 0, 0, 1, 0]), expected);
        assert_eq!(Fixture::new().check(&[0x2e, 0xe0, 0, 0, 0, 1, 0, 0, 1, 0]), expected);
    }

    #[test]
    fn no_blocks_are_no_error_where_the_address_exists() {
        let mut fixture = Fixture::new();
        for check in [0x00, 0x02, 0x06] {
            assert_eq!(fixture.run(&[0x2f, check, 0, 0, 0, 0, 0, 0, 0, 0]), Plan::Good);
            let sense = fixture.check(&[0x2f, check, 0x80, 0, 0, 0, 0, 0, 0, 0]);
            assert_eq!(sense.additional, AdditionalSense { asc: 0x21, ascq: 0x00 });
        }
    }

    #[test]
    fn what_is_written_is_compared_with_the_same_data() {
        let mut fixture = Fixture::new();
        let cdb = [0xae, 0x02, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0];
        let extent = Extent::new(4, 3);
        let write =
            MediumPlan { op: MediumOp::Write { fua: true }, extent, data: DataPhase::Out, bytes: 1536 };
        let compare = MediumPlan { op: MediumOp::Compare, extent, data: DataPhase::None, bytes: 1536 };
        assert_eq!(fixture.run(&cdb), Plan::Medium(write));
        assert_eq!(fixture.run_medium(&cdb, MediumDone::Done), Plan::Medium(compare));
        assert_eq!(fixture.run_medium(&cdb, MediumDone::Done), Plan::Good);
    }

    #[test]
    fn what_is_written_is_read_without_a_byte_check() {
        let mut fixture = Fixture::new();
        let cdb = [0x8e, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0];
        let verify = MediumPlan::bare(MediumOp::Verify, Extent::new(4, 3));
        assert!(matches!(fixture.run(&cdb), Plan::Medium(_)));
        assert_eq!(fixture.run_medium(&cdb, MediumDone::Done), Plan::Medium(verify));
        assert_eq!(fixture.run_medium(&cdb, MediumDone::Done), Plan::Good);
    }
}
