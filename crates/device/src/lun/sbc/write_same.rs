//! WRITE SAME(10) and (16) (SBC-4 clauses 5.52 and 5.53).
//!
//! UNMAP permits the medium to unmap blocks that then read as the block says, which only zeroes do. With NDOB no
//! data comes and the block is zeroes. Nothing can be anchored.

use super::{Decision, existing, fields, length_field, settle, without_protection};
use crate::lun::row::{Needs, PlanFn, Row};
use crate::lun::{DataPhase, LogicalUnit, MediumPlan, Plan, limits};
use crate::medium::MediumOp;
use units::Extent;
use wire::scsi::cdb::WriteSame;
use wire::scsi::sense::Sense;

pub(in crate::lun) const WRITE_SAME_10: Row = row(&[0x41, 0xf8, 0xff, 0xff, 0xff, 0xff, 0, 0xff, 0xff, 0x04]);
pub(in crate::lun) const WRITE_SAME_16: Row =
    row(&[0x93, 0xf9, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x04]);

const fn row(usage: &'static [u8]) -> Row {
    Row { timeout_s: 60, ..Row::planned(usage, Needs::WRITE, PLAN) }
}

const PLAN: PlanFn = |context, cdb| settle(write_same(context.unit, cdb));

fn write_same(unit: &LogicalUnit, cdb: &[u8]) -> Decision {
    let command = fields(WriteSame::decode(cdb))?;
    without_protection(command.protect)?;
    if command.anchor {
        return Err(Sense::invalid_field_in_cdb(1, Some(4)));
    }
    let extent = blocks_to_write(unit, &command)?;
    let plan = match (command.no_data_out, command.unmap) {
        (true, true) => MediumPlan::bare(MediumOp::Unmap, extent),
        (true, false) => MediumPlan::bare(MediumOp::WriteZeroes, extent),
        (false, unmap) => MediumPlan {
            op: MediumOp::WriteSame { unmap },
            extent,
            data: DataPhase::Out,
            bytes: unit.config.block_size.bytes(),
        },
    };
    Ok(Plan::Medium(plan))
}

fn blocks_to_write(unit: &LogicalUnit, command: &WriteSame) -> Result<Extent, Sense> {
    let wrong_length = Sense::invalid_field_in_cdb(length_field(command.width), None);
    let extent = existing(unit, command.lba, command.blocks.into())?;
    if extent.is_empty() && limits::WRITE_SAME_NON_ZERO {
        return Err(wrong_length);
    }
    let extent = match extent.is_empty() {
        true => existing(unit, command.lba, unit.config.capacity.0 - command.lba)?,
        false => extent,
    };
    if extent.blocks.0 > limits::write_same_blocks_max(unit.config.block_size) {
        return Err(wrong_length);
    }
    Ok(extent)
}

#[cfg(test)]
mod tests {
    use crate::lun::fixture::Fixture;
    use crate::lun::{DataPhase, MediumPlan, Plan};
    use crate::medium::MediumOp;
    use units::{BlockCount, Extent};
    use wire::scsi::sense::{AdditionalSense, Sense};

    fn of_one_block(unmap: bool, extent: Extent) -> Plan {
        Plan::Medium(MediumPlan {
            op: MediumOp::WriteSame { unmap },
            extent,
            data: DataPhase::Out,
            bytes: 512,
        })
    }

    #[test]
    fn one_block_is_written_to_many() {
        let expected = of_one_block(false, Extent::new(1, 0x200));
        assert_eq!(Fixture::new().run(&[0x41, 0, 0, 0, 0, 1, 0, 0x02, 0, 0]), expected);
        let cdb = [0x93, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0x02, 0, 0, 0];
        assert_eq!(Fixture::new().run(&cdb), expected);
    }

    #[test]
    fn unmap_is_for_the_medium_to_decide() {
        let expected = of_one_block(true, Extent::new(1, 2));
        assert_eq!(Fixture::new().run(&[0x41, 0x08, 0, 0, 0, 1, 0, 0, 2, 0]), expected);
    }

    #[test]
    fn without_a_block_of_data_it_is_zeroes() {
        let mut fixture = Fixture::new();
        let zero = MediumPlan::bare(MediumOp::WriteZeroes, Extent::new(1, 2));
        let cdb = [0x93, 0x01, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0];
        assert_eq!(fixture.run(&cdb), Plan::Medium(zero));
        let unmap = MediumPlan::bare(MediumOp::Unmap, Extent::new(1, 2));
        let cdb = [0x93, 0x09, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0];
        assert_eq!(fixture.run(&cdb), Plan::Medium(unmap));
    }

    #[test]
    fn nothing_can_be_anchored() {
        for flags in [0x10, 0x18] {
            let sense = Fixture::new().check(&[0x41, flags, 0, 0, 0, 1, 0, 0, 2, 0]);
            assert_eq!(sense, Sense::invalid_field_in_cdb(1, Some(4)));
        }
    }

    #[test]
    fn protection_information_is_refused() {
        let sense = Fixture::new().check(&[0x41, 0x20, 0, 0, 0, 1, 0, 0, 2, 0]);
        assert_eq!(sense, Sense::invalid_field_in_cdb(1, Some(7)));
    }

    #[test]
    fn no_blocks_are_refused_as_the_block_limits_report() {
        let mut fixture = Fixture::new();
        let sense = fixture.check(&[0x41, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
        assert_eq!(sense, Sense::invalid_field_in_cdb(7, None));
        let sense = fixture.check(&[0x93, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(sense.additional, AdditionalSense { asc: 0x21, ascq: 0x00 });
    }

    #[test]
    fn more_blocks_than_the_block_limits_report_are_refused() {
        let mut fixture = Fixture::with(|config| config.capacity = BlockCount(1 << 30));
        let cdb = [0x93, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x00, 0x40, 0, 0, 0];
        assert_eq!(fixture.run(&cdb), of_one_block(false, Extent::new(0, 0x4000)));
        let sense = fixture.check(&[0x93, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x00, 0x40, 1, 0, 0]);
        assert_eq!(sense, Sense::invalid_field_in_cdb(10, None));
    }
}
