//! COMPARE AND WRITE, ORWRITE(16), WRITE ATOMIC(16) (SBC-4 clauses 5.3, 5.10 and 5.48).
//!
//! No other command may see them half done, so they run alone. What becomes of WRITE ATOMIC when power goes is the
//! medium's concern, which is asked for all of its blocks at once. A medium that cannot promise that makes a unit without
//! WRITE ATOMIC, and the block limits page reports zero.

use super::{
    Decision, bytes_of, existing, fields, moving, must_be_durable, settle, transferable, without_protection,
};
use crate::lun::row::{Needs, PlanFn, Row};
use crate::lun::{DataPhase, LogicalUnit, MediumPlan, Plan, limits};
use crate::medium::MediumOp;
use wire::scsi::cdb::{CdbWidth, CompareAndWrite, OrWrite, WriteAtomic};
use wire::scsi::sense::Sense;

pub(in crate::lun) const COMPARE_AND_WRITE: Row = row(
    &[0x89, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0xff, 0, 0x04],
    |context, cdb| settle(compare_and_write(context.unit, cdb)),
);
pub(in crate::lun) const ORWRITE_16: Row = row(
    &[0x8b, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x04],
    |context, cdb| settle(orwrite(context.unit, cdb)),
);
pub(in crate::lun) const WRITE_ATOMIC_16: Row = Row {
    needs: Needs { atomic_writes: true, ..NEEDS },
    ..row(
        &[0x9c, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x04],
        |context, cdb| settle(write_atomic(context.unit, cdb)),
    )
};

const NEEDS: Needs = Needs::WRITE.exclusive();

const fn row(usage: &'static [u8], plan: PlanFn) -> Row {
    Row::planned(usage, NEEDS, plan)
}

fn compare_and_write(unit: &LogicalUnit, cdb: &[u8]) -> Decision {
    let command = fields(CompareAndWrite::decode(cdb))?;
    without_protection(command.protect)?;
    let extent = existing(unit, command.lba, command.blocks.into())?;
    const { assert!(limits::COMPARE_AND_WRITE_BLOCKS_MAX == u8::MAX, "the field says no more") };
    if extent.is_empty() {
        return Ok(Plan::Good);
    }
    Ok(Plan::Medium(MediumPlan {
        op: MediumOp::CompareAndWrite { fua: must_be_durable(unit, command.fua) },
        extent,
        data: DataPhase::Out,
        bytes: 2 * bytes_of(unit, extent),
    }))
}

fn orwrite(unit: &LogicalUnit, cdb: &[u8]) -> Decision {
    let command = fields(OrWrite::decode(cdb))?;
    without_protection(command.protect)?;
    let extent = transferable(unit, CdbWidth::Sixteen, command.lba, command.blocks)?;
    let op = MediumOp::Or { fua: must_be_durable(unit, command.fua) };
    Ok(moving(unit, op, extent, DataPhase::Out))
}

fn write_atomic(unit: &LogicalUnit, cdb: &[u8]) -> Decision {
    let command = fields(WriteAtomic::decode(cdb))?;
    without_protection(command.protect)?;
    // The block limits page reports that no boundary is supported.
    if command.atomic_boundary != 0 {
        return Err(Sense::invalid_field_in_cdb(10, None));
    }
    let extent = existing(unit, command.lba, command.blocks.into())?;
    if u32::from(command.blocks) > limits::atomic_blocks_max(unit.config.block_size) {
        return Err(Sense::invalid_field_in_cdb(12, None));
    }
    let op = MediumOp::WriteAtomic { fua: must_be_durable(unit, command.fua) };
    Ok(moving(unit, op, extent, DataPhase::Out))
}

#[cfg(test)]
mod tests {
    use crate::lun::fixture::Fixture;
    use crate::lun::{DataPhase, MediumPlan, Plan};
    use crate::medium::MediumOp;
    use units::{BlockCount, Extent};
    use wire::scsi::sense::{AdditionalSense, Sense};

    fn out(op: MediumOp, extent: Extent, bytes: u32) -> Plan {
        Plan::Medium(MediumPlan { op, extent, data: DataPhase::Out, bytes })
    }

    #[test]
    fn two_blocks_come_for_each_that_is_compared_and_written() {
        let cdb = [0x89, 0x18, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 3, 0, 0];
        let expected = out(MediumOp::CompareAndWrite { fua: true }, Extent::new(9, 3), 3072);
        assert_eq!(Fixture::new().run(&cdb), expected);
    }

    #[test]
    fn ors_and_atomic_writes_move_their_blocks() {
        let cdb = [0x8b, 0x08, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 3, 0, 0];
        assert_eq!(Fixture::new().run(&cdb), out(MediumOp::Or { fua: true }, Extent::new(9, 3), 1536));
        let cdb = [0x9c, 0x08, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 3, 0, 0];
        assert_eq!(
            Fixture::new().run(&cdb),
            out(MediumOp::WriteAtomic { fua: true }, Extent::new(9, 3), 1536)
        );
    }

    #[test]
    fn no_blocks_are_no_error_where_the_address_exists() {
        for opcode in [0x89, 0x8b, 0x9c] {
            let mut fixture = Fixture::new();
            assert_eq!(fixture.run(&[opcode, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Plan::Good);
            let sense = fixture.check(&[opcode, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            assert_eq!(sense.additional, AdditionalSense { asc: 0x21, ascq: 0x00 }, "{opcode:#x}");
        }
    }

    #[test]
    fn protection_information_is_refused() {
        for opcode in [0x89, 0x8b, 0x9c] {
            let sense = Fixture::new().check(&[opcode, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]);
            assert_eq!(sense, Sense::invalid_field_in_cdb(1, Some(7)), "{opcode:#x}");
        }
    }

    #[test]
    fn an_atomic_boundary_is_refused() {
        let sense = Fixture::new().check(&[0x9c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0]);
        assert_eq!(sense, Sense::invalid_field_in_cdb(10, None));
    }

    #[test]
    fn a_medium_without_atomic_writes_makes_a_unit_without_the_command() {
        let mut fixture = Fixture::with(|config| config.atomic_writes = false);
        let write = [0x9c, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 3, 0, 0];
        let absent = Sense::illegal_request(AdditionalSense { asc: 0x20, ascq: 0x00 });
        assert_eq!(fixture.check(&write), absent);
        let reported = fixture.read(&[0xa3, 0x0c, 0x01, 0x9c, 0, 0, 0, 0, 0x20, 0, 0, 0]);
        assert_eq!(reported, [0, 0x01, 0, 0]);
        let all = fixture.read(&[0xa3, 0x0c, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0]);
        assert!(all[4..].chunks(8).all(|command| command[0] != 0x9c));
        let limits = fixture.read(&[0x12, 0x01, 0xb0, 0x04, 0x00, 0]);
        assert_eq!(limits[44..], [0; 20]);
    }

    #[test]
    fn an_atomic_write_has_its_own_limit() {
        let mut fixture = Fixture::with(|config| config.capacity = BlockCount(1 << 20));
        let most = [0x9c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x08, 0, 0, 0];
        assert!(matches!(fixture.run(&most), Plan::Medium(MediumPlan { bytes: 0x10_0000, .. })));
        let sense = fixture.check(&[0x9c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x08, 1, 0, 0]);
        assert_eq!(sense, Sense::invalid_field_in_cdb(12, None));
    }
}
