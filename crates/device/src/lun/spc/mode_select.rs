//! MODE SELECT(6) and (10) (SPC-4 clauses 6.11 and 6.12): changes mode pages, all of the list or nothing.
//!
//! Before the write cache goes off, what it holds is made durable (SBC-4 clause 6.5.6); then, with SP, the values are
//! kept. No unit attention follows: it is for other I_T nexuses, and there is one.

use super::mode_sense::{form, long_descriptor, short_descriptor};
use super::{Decision, check_undisturbed, fetch_list, fields, settle};
use crate::lun::access::Access;
use crate::lun::mode::ListFault;
use crate::lun::row::{Needs, Row};
use crate::lun::{Context, LogicalUnit, MediumPlan, Plan};
use crate::medium::MediumOp;
use units::Extent;
use wire::scsi::cdb::ModeSelect;
use wire::scsi::mode::{LongBlockDescriptor, ModeForm, ModeParameters, ShortBlockDescriptor};
use wire::scsi::sense::{AdditionalSense, Sense};

pub(in crate::lun) const ROW_6: Row = Row {
    usage: &[0x15, 0x11, 0, 0, 0xff, 0x04],
    needs: Needs { access: Access::Write, ..Needs::UNIT }.exclusive(),
    timeout_s: 30,
    plan: |context, cdb| settle(plan(context.unit, cdb)),
    on_list: Some(|context, cdb, list| settle(select(context, cdb, list))),
    on_medium: Some(|context, _, _, _| match *context.step {
        SAVE_NEXT => save(context),
        _ => Plan::Good,
    }),
};

pub(in crate::lun) const ROW_10: Row = Row { usage: &[0x55, 0x11, 0, 0, 0, 0, 0, 0xff, 0xff, 0x04], ..ROW_6 };

/// Values of the step: the work that remains when the medium has answered.
const NOTHING_NEXT: u32 = 0;
const SAVE_NEXT: u32 = 1;

fn plan(unit: &LogicalUnit, cdb: &[u8]) -> Decision {
    let command = fields(ModeSelect::decode(cdb))?;
    check_undisturbed(unit)?;
    if command.revert_to_defaults {
        return Err(Sense::invalid_field_in_cdb(1, Some(1)));
    }
    if command.save && !unit.modes.is_saveable() {
        return Err(Sense::invalid_field_in_cdb(1, Some(0)));
    }
    if !command.page_format && command.parameter_list_len > 0 {
        return Err(Sense::invalid_field_in_cdb(1, Some(4)));
    }
    let length_field = if form(command.width) == ModeForm::Six { 4 } else { 7 };
    fetch_list(command.parameter_list_len.into(), length_field)
}

fn select(context: &mut Context<'_>, cdb: &[u8], list: &[u8]) -> Decision {
    let command = fields(ModeSelect::decode(cdb))?;
    let old = *context.unit.modes.current();
    if !list.is_empty() {
        let form = form(command.width);
        let cut = Sense::illegal_request(AdditionalSense::PARAMETER_LIST_LENGTH_ERROR);
        let parameters = ModeParameters::decode(form, list).map_err(|_| cut)?;
        if context.unit.config.recorded.is_some() {
            // Recorded pages do not change.
            return Err(Sense::illegal_request(AdditionalSense::INVALID_FIELD_IN_PARAMETER_LIST));
        }
        check_head(context.unit, form, &parameters)?;
        let pages_at = list.len() - parameters.page_bytes.len();
        let new = old.with_list(parameters.page_bytes).map_err(|fault| match fault {
            ListFault::Truncated => cut,
            ListFault::Field { byte, bit } => wrong_in_list(pages_at + byte, bit),
        })?;
        context.unit.modes.set_current(new);
    }
    let flush = old.caching.write_cache && !context.unit.write_cache_enabled();
    *context.step = if command.save { SAVE_NEXT } else { NOTHING_NEXT };
    Ok(match (flush, command.save) {
        (true, _) => Plan::Medium(MediumPlan::bare(MediumOp::Flush, Extent::default())),
        (false, true) => save(context),
        (false, false) => Plan::Good,
    })
}

fn save(context: &mut Context<'_>) -> Plan {
    *context.step = NOTHING_NEXT;
    context.unit.modes.save();
    Plan::Medium(MediumPlan::bare(MediumOp::SaveState, Extent::default()))
}

/// Header and block descriptor cannot change anything: a medium type of zero, no block descriptor or the one that
/// MODE SENSE reported, whose number of blocks may also be zero or all ones (no change, all of them).
fn check_head(unit: &LogicalUnit, form: ModeForm, parameters: &ModeParameters<'_>) -> Result<(), Sense> {
    let (medium_type_at, length_at) = match form {
        ModeForm::Six => (1, 3),
        ModeForm::Ten => (2, 6),
    };
    let at = form.header_len();
    if parameters.header.medium_type != 0 {
        return Err(wrong_in_list(medium_type_at, None));
    }
    let bytes = parameters.block_descriptors;
    let (same_count, same_length, length_field_at) = match (bytes.len(), parameters.header.long_lba) {
        (0, _) => return Ok(()),
        (ShortBlockDescriptor::LEN, false) => {
            let (sent, ours) = (fields(ShortBlockDescriptor::decode(bytes))?, short_descriptor(unit));
            let same_count = [0, u32::MAX, ours.block_count].contains(&sent.block_count);
            (same_count, sent.block_length == ours.block_length, at + 5)
        }
        (LongBlockDescriptor::LEN, true) => {
            let (sent, ours) = (fields(LongBlockDescriptor::decode(bytes))?, long_descriptor(unit));
            let same_count = [0, u64::MAX, ours.block_count].contains(&sent.block_count);
            (same_count, sent.block_length == ours.block_length, at + 12)
        }
        _ => return Err(wrong_in_list(length_at, None)),
    };
    match (same_count, same_length) {
        (false, _) => Err(wrong_in_list(at, None)),
        (_, false) => Err(wrong_in_list(length_field_at, None)),
        _ => Ok(()),
    }
}

fn wrong_in_list(byte: usize, bit: Option<u8>) -> Sense {
    Sense::invalid_field_in_parameter_list(byte.try_into().unwrap_or(u16::MAX), bit)
}

#[cfg(test)]
mod tests {
    use crate::lun::fixture::Fixture;
    use crate::lun::{MediumPlan, Plan, Readiness, UnitEvent};
    use crate::medium::{MediumDone, MediumOp};
    use units::Extent;
    use wire::scsi::sense::{AdditionalSense, KeySpecific, Sense, SenseFormat};

    const fn bare(op: MediumOp) -> Plan {
        Plan::Medium(MediumPlan::bare(op, Extent::new(0, 0)))
    }

    /// Header of the six byte form without block descriptor, then a control mode page.
    const fn control(d_sense_and_tst: u8, swp: u8) -> [u8; 16] {
        [0, 0, 0, 0, 0x0a, 0x0a, d_sense_and_tst, 0x10, swp, 0, 0, 0, 0, 0, 0, 1]
    }

    /// The same with a caching mode page.
    const fn caching(flags: u8) -> [u8; 24] {
        [0, 0, 0, 0, 0x08, 0x12, flags, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    }

    #[test]
    fn d_sense_changes_the_format_of_sense_data_until_a_reset() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.run_list(&[0x15, 0x10, 0, 0, 16, 0], &control(0x04, 0)), Plan::Good);
        assert_eq!(fixture.unit.sense_format(None), SenseFormat::Descriptor);
        assert!(fixture.unit.attentions.is_empty());
        fixture.unit.handle_event(UnitEvent::NexusLoss);
        assert_eq!(fixture.unit.sense_format(None), SenseFormat::Descriptor);
        fixture.unit.handle_event(UnitEvent::LogicalUnitReset);
        assert_eq!(fixture.unit.sense_format(None), SenseFormat::Fixed);
    }

    #[test]
    fn swp_protects_against_writes() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.run_list(&[0x15, 0x10, 0, 0, 16, 0], &control(0, 0x08)), Plan::Good);
        assert!(fixture.unit.is_write_protected());
        assert_eq!(fixture.read(&[0x1a, 0x08, 0x0a, 0, 255, 0])[2], 0x90);
        assert_eq!(fixture.run_list(&[0x15, 0x10, 0, 0, 16, 0], &control(0, 0)), Plan::Good);
        assert!(!fixture.unit.is_write_protected());
    }

    #[test]
    fn the_cache_is_flushed_before_it_goes_off_and_then_saved() {
        let mut fixture = Fixture::new();
        let cdb = [0x15, 0x11, 0, 0, 24, 0];
        assert_eq!(fixture.run_list(&cdb, &caching(0)), bare(MediumOp::Flush));
        assert!(!fixture.unit.write_cache_enabled());
        assert_eq!(fixture.run_medium(&cdb, MediumDone::Done), bare(MediumOp::SaveState));
        assert_eq!(fixture.run_medium(&cdb, MediumDone::Done), Plan::Good);
        fixture.power_cycle();
        assert!(!fixture.unit.write_cache_enabled());
    }

    #[test]
    fn without_sp_nothing_is_saved() {
        let mut fixture = Fixture::new();
        let cdb = [0x15, 0x10, 0, 0, 24, 0];
        assert_eq!(fixture.run_list(&cdb, &caching(0)), bare(MediumOp::Flush));
        assert_eq!(fixture.run_medium(&cdb, MediumDone::Done), Plan::Good);
        fixture.power_cycle();
        assert!(fixture.unit.write_cache_enabled());
    }

    #[test]
    fn sp_is_refused_where_nothing_is_saved() {
        let mut fixture = Fixture::with(|config| config.durable = false);
        assert_eq!(fixture.check(&[0x15, 0x11, 0, 0, 24, 0]), Sense::invalid_field_in_cdb(1, Some(0)));
    }

    #[test]
    fn a_field_that_cannot_change_is_pointed_at_from_the_first_byte_of_the_list() {
        let mut fixture = Fixture::new();
        let tst = Sense::invalid_field_in_parameter_list(6, Some(5));
        assert_eq!(fixture.run_list(&[0x15, 0x10, 0, 0, 16, 0], &control(0x24, 0)), Plan::Check(tst));
        assert_eq!(fixture.unit.sense_format(None), SenseFormat::Fixed, "all of the list or nothing");
    }

    #[test]
    fn what_mode_sense_reported_can_be_sent_back() {
        let mut fixture = Fixture::new();
        let reported = fixture.read(&[0x1a, 0, 0x3f, 0xff, 255, 0]).to_vec();
        assert_eq!(fixture.run_list(&[0x15, 0x10, 0, 0, reported.len() as u8, 0], &reported), Plan::Good);
        let reported = fixture.read(&[0x5a, 0x10, 0x3f, 0xff, 0, 0, 0, 0, 255, 0]).to_vec();
        let cdb = [0x55, 0x10, 0, 0, 0, 0, 0, 0, reported.len() as u8, 0];
        assert_eq!(fixture.run_list(&cdb, &reported), Plan::Good);
    }

    #[test]
    fn a_list_that_ends_in_the_middle_is_a_length_error() {
        let mut fixture = Fixture::new();
        let error = Plan::Check(Sense::illegal_request(AdditionalSense { asc: 0x1a, ascq: 0 }));
        let list = control(0, 0);
        for len in [1, 3, 5, 15] {
            assert_eq!(fixture.run_list(&[0x15, 0x10, 0, 0, len, 0], &list[..usize::from(len)]), error);
        }
        assert_eq!(fixture.run_list(&[0x15, 0x10, 0, 0, 8, 0], &[0, 0, 0, 8, 0, 0, 0, 0]), error);
    }

    #[test]
    fn the_block_descriptor_cannot_change() {
        let mut fixture = Fixture::new();
        let mut run = |list: &[u8; 12]| fixture.run_list(&[0x15, 0x10, 0, 0, 12, 0], list);
        assert_eq!(run(&[0, 0, 0, 8, 0, 0, 0x08, 0, 0, 0, 2, 0]), Plan::Good);
        assert_eq!(run(&[0, 0, 0, 8, 0xff, 0xff, 0xff, 0xff, 0, 0, 2, 0]), Plan::Good);
        let count = Sense::invalid_field_in_parameter_list(4, None);
        assert_eq!(run(&[0, 0, 0, 8, 0, 0, 0x07, 0, 0, 0, 2, 0]), Plan::Check(count));
        let length = Sense::invalid_field_in_parameter_list(9, None);
        assert_eq!(run(&[0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 16, 0]), Plan::Check(length));
        let descriptor_length = Sense::invalid_field_in_parameter_list(3, None);
        assert_eq!(run(&[0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0]), Plan::Check(descriptor_length));
    }

    #[test]
    fn nothing_changes_while_the_unit_formats() {
        let mut fixture = Fixture::new();
        fixture.unit.readiness = Readiness::Formatting;
        let formatting = Sense::not_ready(AdditionalSense { asc: 0x04, ascq: 0x04 })
            .with_key_specific(KeySpecific::Progress(0));
        assert_eq!(fixture.check(&[0x15, 0x10, 0, 0, 16, 0]), formatting);
    }

    #[test]
    fn an_empty_list_changes_nothing() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.run_list(&[0x15, 0x10, 0, 0, 0, 0], &[]), Plan::Good);
        assert_eq!(fixture.run_list(&[0x15, 0x00, 0, 0, 0, 0], &[]), Plan::Good);
    }

    #[test]
    fn a_list_without_page_format_is_refused() {
        let sense = Fixture::new().check(&[0x15, 0x00, 0, 0, 16, 0]);
        assert_eq!(sense, Sense::invalid_field_in_cdb(1, Some(4)));
    }

    #[test]
    fn more_than_a_unit_takes_is_refused() {
        let sense = Fixture::new().check(&[0x55, 0x10, 0, 0, 0, 0, 0, 0x20, 0x01, 0]);
        assert_eq!(sense, Sense::invalid_field_in_cdb(7, None));
    }
}
