//! READ and WRITE, (6), (10), (12) and (16), by one path (SBC-4 clauses 5.16 to 5.18 and 5.40 to 5.42).
//!
//! FUA of a READ needs no special handling: the medium interface returns only data that it would return after a power loss.

use super::{Decision, fields, moving, must_be_durable, settle, transferable, without_protection};
use crate::lun::row::{Needs, PlanFn, Row};
use crate::lun::{DataPhase, LogicalUnit};
use crate::medium::MediumOp;
use wire::scsi::cdb::{Read, Write};

pub(in crate::lun) const READ_6: Row =
    Row::planned(&[0x08, 0x1f, 0xff, 0xff, 0xff, 0x04], Needs::READ, PLAN_READ);
pub(in crate::lun) const READ_10: Row =
    Row::planned(&[0x28, 0xf8, 0xff, 0xff, 0xff, 0xff, 0, 0xff, 0xff, 0x04], Needs::READ, PLAN_READ);
pub(in crate::lun) const READ_12: Row = Row::planned(
    &[0xa8, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x04],
    Needs::READ,
    PLAN_READ,
);
pub(in crate::lun) const READ_16: Row = Row::planned(
    &[0x88, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x04],
    Needs::READ,
    PLAN_READ,
);
pub(in crate::lun) const WRITE_6: Row =
    Row::planned(&[0x0a, 0x1f, 0xff, 0xff, 0xff, 0x04], Needs::WRITE, PLAN_WRITE);
pub(in crate::lun) const WRITE_10: Row =
    Row::planned(&[0x2a, 0xf8, 0xff, 0xff, 0xff, 0xff, 0, 0xff, 0xff, 0x04], Needs::WRITE, PLAN_WRITE);
pub(in crate::lun) const WRITE_12: Row = Row::planned(
    &[0xaa, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x04],
    Needs::WRITE,
    PLAN_WRITE,
);
pub(in crate::lun) const WRITE_16: Row = Row::planned(
    &[0x8a, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x04],
    Needs::WRITE,
    PLAN_WRITE,
);

const PLAN_READ: PlanFn = |context, cdb| settle(read(context.unit, cdb));
const PLAN_WRITE: PlanFn = |context, cdb| settle(write(context.unit, cdb));

fn read(unit: &LogicalUnit, cdb: &[u8]) -> Decision {
    let command = fields(Read::decode(cdb))?;
    without_protection(command.protect)?;
    let extent = transferable(unit, command.width, command.lba, command.blocks)?;
    Ok(moving(unit, MediumOp::Read, extent, DataPhase::In))
}

fn write(unit: &LogicalUnit, cdb: &[u8]) -> Decision {
    let command = fields(Write::decode(cdb))?;
    without_protection(command.protect)?;
    let extent = transferable(unit, command.width, command.lba, command.blocks)?;
    let op = MediumOp::Write { fua: must_be_durable(unit, command.fua) };
    Ok(moving(unit, op, extent, DataPhase::Out))
}

#[cfg(test)]
mod tests {
    use crate::lun::fixture::Fixture;
    use crate::lun::{DataPhase, MediumPlan, Plan};
    use crate::medium::MediumOp;
    use units::{BlockCount, Extent};
    use wire::scsi::sense::{AdditionalSense, Sense, SenseKey};

    fn plan(op: MediumOp, extent: Extent, data: DataPhase, bytes: u32) -> Plan {
        Plan::Medium(MediumPlan { op, extent, data, bytes })
    }

    #[test]
    fn every_width_of_read_says_the_same() {
        let expected = plan(MediumOp::Read, Extent::new(0x123, 8), DataPhase::In, 4096);
        let cdbs: [&[u8]; 4] = [
            &[0x08, 0, 0x01, 0x23, 8, 0],
            &[0x28, 0, 0, 0, 0x01, 0x23, 0, 0, 8, 0],
            &[0xa8, 0, 0, 0, 0x01, 0x23, 0, 0, 0, 8, 0, 0],
            &[0x88, 0, 0, 0, 0, 0, 0, 0, 0x01, 0x23, 0, 0, 0, 8, 0, 0],
        ];
        for cdb in cdbs {
            assert_eq!(Fixture::new().run(cdb), expected, "{cdb:02x?}");
        }
    }

    #[test]
    fn every_width_of_write_says_the_same() {
        let mut fixture = Fixture::new();
        let op = MediumOp::Write { fua: !fixture.unit.write_cache_enabled() };
        let expected = plan(op, Extent::new(0x123, 8), DataPhase::Out, 4096);
        let cdbs: [&[u8]; 4] = [
            &[0x0a, 0, 0x01, 0x23, 8, 0],
            &[0x2a, 0, 0, 0, 0x01, 0x23, 0, 0, 8, 0],
            &[0xaa, 0, 0, 0, 0x01, 0x23, 0, 0, 0, 8, 0, 0],
            &[0x8a, 0, 0, 0, 0, 0, 0, 0, 0x01, 0x23, 0, 0, 0, 8, 0, 0],
        ];
        for cdb in cdbs {
            assert_eq!(fixture.run(cdb), expected, "{cdb:02x?}");
        }
    }

    #[test]
    fn six_bytes_say_256_blocks_with_a_zero() {
        let expected = plan(MediumOp::Read, Extent::new(1, 256), DataPhase::In, 131_072);
        assert_eq!(Fixture::new().run(&[0x08, 0, 0, 1, 0, 0]), expected);
    }

    #[test]
    fn fua_is_for_the_medium() {
        let expected = plan(MediumOp::Write { fua: true }, Extent::new(0, 1), DataPhase::Out, 512);
        assert_eq!(Fixture::new().run(&[0x2a, 0x08, 0, 0, 0, 0, 0, 0, 1, 0]), expected);
    }

    #[test]
    fn without_a_write_cache_every_write_is_durable() {
        let mut fixture = Fixture::new();
        let mut values = *fixture.unit.modes.current();
        for (write_cache, fua) in [(false, true), (true, false)] {
            values.caching.write_cache = write_cache;
            fixture.unit.modes.set_current(values);
            let expected = plan(MediumOp::Write { fua }, Extent::new(0, 1), DataPhase::Out, 512);
            assert_eq!(fixture.run(&[0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0]), expected);
        }
    }

    #[test]
    fn no_blocks_are_no_error_where_the_address_exists() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.run(&[0x28, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Plan::Good);
        assert_eq!(fixture.run(&[0x2a, 0, 0, 0, 0x07, 0xff, 0, 0, 0, 0]), Plan::Good);
        let sense = fixture.check(&[0x28, 0, 0, 0, 0x08, 0x01, 0, 0, 0, 0]);
        assert_eq!(sense.additional, AdditionalSense { asc: 0x21, ascq: 0x00 });
    }

    #[test]
    fn the_first_block_past_the_end_is_reported() {
        let mut fixture = Fixture::new();
        let sense = fixture.check(&[0x28, 0, 0, 0, 0x07, 0xff, 0, 0, 2, 0]);
        assert_eq!(sense.key, SenseKey::IllegalRequest);
        assert_eq!(sense.additional, AdditionalSense { asc: 0x21, ascq: 0x00 });
        assert_eq!(sense.information, Some(2048));
        let far = fixture.check(&[0x8a, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]);
        assert_eq!(far.information, Some(0x8000_0000_0000_0000));
        let last =
            fixture.check(&[0x88, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 2, 0, 0]);
        assert_eq!(last.additional, AdditionalSense { asc: 0x21, ascq: 0x00 });
    }

    #[test]
    fn protection_information_is_refused() {
        for protect in 1..8u8 {
            let expected = Sense::invalid_field_in_cdb(1, Some(7));
            assert_eq!(Fixture::new().check(&[0x28, protect << 5, 0, 0, 0, 0, 0, 0, 1, 0]), expected);
            assert_eq!(Fixture::new().check(&[0x2a, protect << 5, 0, 0, 0, 0, 0, 0, 1, 0]), expected);
        }
    }

    #[test]
    fn a_longer_transfer_than_the_block_limits_report_is_refused() {
        let mut fixture = Fixture::with(|config| config.capacity = BlockCount(1 << 20));
        let most = plan(MediumOp::Read, Extent::new(0, 16384), DataPhase::In, 8 << 20);
        assert_eq!(fixture.run(&[0x28, 0, 0, 0, 0, 0, 0, 0x40, 0x00, 0]), most);
        let sense = fixture.check(&[0x28, 0, 0, 0, 0, 0, 0, 0x40, 0x01, 0]);
        assert_eq!(sense, Sense::invalid_field_in_cdb(7, None));
        let sense = fixture.check(&[0x8a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x01, 0, 0]);
        assert_eq!(sense, Sense::invalid_field_in_cdb(10, None));
    }

    #[test]
    fn a_protected_unit_reads_and_does_not_write() {
        let mut fixture = Fixture::with(|config| config.read_only = true);
        let sense = fixture.check(&[0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
        assert_eq!(sense, Sense::new(SenseKey::DataProtect, AdditionalSense { asc: 0x27, ascq: 0x00 }));
        assert!(matches!(fixture.run(&[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0]), Plan::Medium(_)));
    }
}
