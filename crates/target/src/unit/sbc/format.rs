//! FORMAT UNIT (SBC-4 clause 5.4): every block reads as zero afterwards.
//!
//! There is no protection information, no defect and no pattern to format with; a list that brings one is refused.
//! Blocks are zeroed however fast the format is asked to be.

use super::{Decision, everything, fetch_list, fields, settle};
use crate::medium::MediumOp;
use crate::unit::table::{Needs, Row};
use crate::unit::{Context, MediumPlan, Plan, Readiness, Unit};
use wire::scsi::block::FormatList;
use wire::scsi::cdb;
use wire::scsi::opcode::OperationCode;
use wire::scsi::sense::{AdditionalSense, Sense};

pub(super) const FORMAT_UNIT: Row = Row {
    opcode: OperationCode::FormatUnit,
    service_action: None,
    name: "FORMAT UNIT",
    usage: &[0x04, 0xff, 0, 0, 0x03, 0x04],
    needs: Needs::WRITE.exclusive(),
    timeout_s: 3600,
    plan: |context, cdb| settle(format(context.unit, cdb)),
    on_list: Some(|context, cdb, list| settle(format_by_list(context.unit, cdb, list))),
    on_medium: Some(|context, _, _, _| zeroed(context)),
};

fn format(unit: &mut Unit, cdb: &[u8]) -> Decision {
    let command = fields(cdb::FormatUnit::decode(cdb))?;
    if command.protection_information != 0 {
        return Err(Sense::invalid_field_in_cdb(1, Some(7)));
    }
    if command.fast_format == 3 {
        return Err(Sense::invalid_field_in_cdb(4, Some(1)));
    }
    if command.format_data {
        return fetch_list(FormatList::header_len(command.long_list) as u32, 1);
    }
    if command.long_list || command.complete_list {
        return Err(Sense::invalid_field_in_cdb(1, Some(if command.long_list { 5 } else { 3 })));
    }
    Ok(Plan::Lasting(begin(unit)))
}

fn format_by_list(unit: &mut Unit, cdb: &[u8], list: &[u8]) -> Decision {
    let command = fields(cdb::FormatUnit::decode(cdb))?;
    let list = FormatList::decode(command.long_list, list)
        .map_err(|_| Sense::illegal_request(AdditionalSense::PARAMETER_LIST_LENGTH_ERROR))?;
    check(&list, command.long_list)?;
    let plan = begin(unit);
    Ok(if list.immediate { Plan::Background(plan) } else { Plan::Lasting(plan) })
}

fn check(list: &FormatList, long: bool) -> Result<(), Sense> {
    let refused = |byte, bit| Err(Sense::invalid_field_in_parameter_list(byte, bit));
    let options = list.disable_primary || list.disable_certification || list.stop_format;
    if list.protection_field_usage != 0 {
        return refused(0, Some(2));
    }
    if options && !list.options_valid {
        return refused(1, Some(6));
    }
    if list.initialization_pattern {
        return refused(1, Some(3));
    }
    if list.protection_information != 0 || list.protection_interval_exponent != 0 {
        return refused(3, None);
    }
    if list.defect_list_len != 0 {
        return refused(if long { 4 } else { 2 }, None);
    }
    Ok(())
}

fn begin(unit: &mut Unit) -> MediumPlan {
    unit.readiness = Readiness::Formatting;
    MediumPlan::bare(MediumOp::Unmap, everything(unit))
}

/// The blocks are zero, or that is durable as well.
fn zeroed(context: &mut Context<'_>) -> Plan {
    if core::mem::replace(context.step, 1) == 0 {
        return Plan::Medium(MediumPlan::bare(MediumOp::Flush, everything(context.unit)));
    }
    if context.unit.readiness == Readiness::Formatting {
        context.unit.readiness = Readiness::Ready;
    }
    Plan::Good
}

#[cfg(test)]
mod tests {
    use crate::medium::{MediumDone, MediumOp};
    use crate::unit::fixture::Fixture;
    use crate::unit::{MediumPlan, Plan, Readiness};
    use units::Extent;
    use wire::scsi::sense::{AdditionalSense, Sense};

    const FORMAT: [u8; 6] = [0x04, 0, 0, 0, 0, 0];
    const WITH_LIST: [u8; 6] = [0x04, 0x10, 0, 0, 0, 0];
    const WITH_LONG_LIST: [u8; 6] = [0x04, 0x30, 0, 0, 0, 0];
    const UNMAP: MediumPlan = MediumPlan::bare(MediumOp::Unmap, Extent::new(0, 2048));
    const FLUSH: MediumPlan = MediumPlan::bare(MediumOp::Flush, Extent::new(0, 2048));

    #[test]
    fn a_format_zeroes_everything_and_keeps_others_out_meanwhile() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.run(&FORMAT), Plan::Lasting(UNMAP));
        let formatting = Sense::not_ready(AdditionalSense { asc: 0x04, ascq: 0x04 });
        assert_eq!(fixture.check(&[0; 6]), formatting);
        fixture.run(&FORMAT);
        assert_eq!(fixture.run_medium(&FORMAT, MediumDone::Done), Plan::Medium(FLUSH));
        assert_eq!(fixture.run_medium(&FORMAT, MediumDone::Done), Plan::Good);
        assert_eq!(fixture.unit.readiness, Readiness::Ready);
    }

    #[test]
    fn the_list_says_whether_it_is_immediate() {
        assert_eq!(Fixture::new().run_list(&WITH_LIST, &[0, 0, 0, 0]), Plan::Lasting(UNMAP));
        assert_eq!(Fixture::new().run_list(&WITH_LIST, &[0, 0x82, 0, 0]), Plan::Background(UNMAP));
        let long = [0, 0xa2, 0, 0, 0, 0, 0, 0];
        assert_eq!(Fixture::new().run_list(&WITH_LONG_LIST, &long), Plan::Background(UNMAP));
    }

    #[test]
    fn protection_information_is_refused() {
        let sense = Fixture::new().check(&[0x04, 0x40, 0, 0, 0, 0]);
        assert_eq!(sense, Sense::invalid_field_in_cdb(1, Some(7)));
        let mut fixture = Fixture::new();
        let plan = fixture.run_list(&WITH_LONG_LIST, &[0, 0, 0, 0x01, 0, 0, 0, 0]);
        assert_eq!(plan, Plan::Check(Sense::invalid_field_in_parameter_list(3, None)));
        assert_eq!(fixture.unit.readiness, Readiness::Ready);
    }

    #[test]
    fn options_count_only_with_their_valid_bit() {
        let plan = Fixture::new().run_list(&WITH_LIST, &[0, 0x20, 0, 0]);
        assert_eq!(plan, Plan::Check(Sense::invalid_field_in_parameter_list(1, Some(6))));
        assert_eq!(Fixture::new().run_list(&WITH_LIST, &[0, 0xf0, 0, 0]), Plan::Lasting(UNMAP));
    }

    #[test]
    fn patterns_and_defects_are_refused() {
        let plan = Fixture::new().run_list(&WITH_LIST, &[0, 0x88, 0, 0]);
        assert_eq!(plan, Plan::Check(Sense::invalid_field_in_parameter_list(1, Some(3))));
        let plan = Fixture::new().run_list(&WITH_LIST, &[0, 0, 0, 4]);
        assert_eq!(plan, Plan::Check(Sense::invalid_field_in_parameter_list(2, None)));
    }

    #[test]
    fn fields_of_a_list_need_a_list() {
        assert_eq!(Fixture::new().check(&[0x04, 0x20, 0, 0, 0, 0]), Sense::invalid_field_in_cdb(1, Some(5)));
        assert_eq!(Fixture::new().check(&[0x04, 0x08, 0, 0, 0, 0]), Sense::invalid_field_in_cdb(1, Some(3)));
    }
}
