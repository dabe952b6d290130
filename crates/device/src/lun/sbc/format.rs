//! FORMAT UNIT (SBC-4 clause 5.4): every block reads as zero afterwards, or as the host's pattern.
//!
//! Blocks are rewritten even if a fast format is requested. An empty defect list is fine, since there are no
//! defects; one that names any is refused, and so are protection information and security initialization, which would
//! promise that the storage below is overwritten.
//!
//! The CDB does not say how long the list is: its head does, and the rest is fetched once that is known.

use super::{Decision, everything, fields, settle};
use crate::lun::row::{Needs, Row};
use crate::lun::{Context, DataPhase, LIST_HEAD_BYTES, LogicalUnit, MediumPlan, Plan, Readiness};
use crate::medium::MediumOp;
use wire::scsi::block::{FormatList, InitializationPattern, PatternType};
use wire::scsi::cdb;
use wire::scsi::sense::{AdditionalSense, Sense};

pub(in crate::lun) const FORMAT_UNIT: Row = Row {
    usage: &[0x04, 0xff, 0, 0, 0x03, 0x04],
    needs: Needs::WRITE.exclusive(),
    timeout_s: 3600,
    plan: |context, cdb| settle(format(context.unit, cdb)),
    on_list: Some(|context, cdb, list| settle(format_by_list(context, cdb, list))),
    on_medium: Some(|context, _, _, _| written(context)),
};

const LENGTH_ERROR: Sense = Sense::illegal_request(AdditionalSense::PARAMETER_LIST_LENGTH_ERROR);

fn format(unit: &mut LogicalUnit, cdb: &[u8]) -> Decision {
    let command = fields(cdb::FormatUnit::decode(cdb))?;
    if command.protection_information != 0 {
        return Err(Sense::invalid_field_in_cdb(1, Some(7)));
    }
    if command.fast_format == 3 {
        return Err(Sense::invalid_field_in_cdb(4, Some(1)));
    }
    if command.format_data {
        return Ok(Plan::ListHead { least: FormatList::header_len(command.long_list) as u32 });
    }
    if command.long_list || command.complete_list {
        return Err(Sense::invalid_field_in_cdb(1, Some(if command.long_list { 5 } else { 3 })));
    }
    Ok(Plan::LongRunning(begin(unit, zeroes(unit))))
}

fn format_by_list(context: &mut Context<'_>, cdb: &[u8], bytes: &[u8]) -> Decision {
    let command = fields(cdb::FormatUnit::decode(cdb))?;
    let list = FormatList::decode(command.long_list, bytes).map_err(|_| LENGTH_ERROR)?;
    check(&list, command.long_list)?;
    let fill = if list.initialization_pattern {
        let at = FormatList::header_len(command.long_list);
        let descriptor = bytes.get(at..).unwrap_or_default();
        match initialize(context, at as u16, descriptor)? {
            Fill::Known(plan) => plan,
            Fill::Missing { bytes } => return Ok(Plan::ListRest { bytes }),
        }
    } else {
        zeroes(context.unit)
    };
    *context.step = 0;
    let plan = begin(context.unit, fill);
    Ok(if list.immediate { Plan::Background(plan) } else { Plan::LongRunning(plan) })
}

/// Initialization of the blocks.
enum Fill {
    Known(MediumPlan),
    /// So many bytes of the pattern have not come yet.
    Missing {
        bytes: u32,
    },
}

/// Looks at the initialization pattern descriptor, which begins at byte `at` of the list.
fn initialize(context: &mut Context<'_>, at: u16, descriptor: &[u8]) -> Result<Fill, Sense> {
    let refused = |byte, bit| Err(Sense::invalid_field_in_parameter_list(at + byte, bit));
    let head = InitializationPattern::decode(descriptor).map_err(|_| LENGTH_ERROR)?;
    let block_bytes = context.unit.config.block_size.bytes();
    let length_fits = match head.pattern_type {
        PatternType::Default => head.length == 0,
        PatternType::Repeated => (1..=block_bytes).contains(&head.length.into()),
        PatternType::Unknown(_) => return refused(1, None),
    };
    if head.modifier != 0 {
        return refused(0, Some(7));
    }
    if head.security_initialize {
        return refused(0, Some(5));
    }
    if !length_fits {
        return refused(2, None);
    }
    let pattern = descriptor.get(InitializationPattern::LEN..).unwrap_or_default();
    let missing = u32::from(head.length).saturating_sub(pattern.len() as u32);
    if missing > 0 {
        // Fewer bytes than were asked for are all that the host has.
        let is_whole_head = usize::from(at) + descriptor.len() == LIST_HEAD_BYTES as usize;
        let first = core::mem::replace(context.step, 1) == 0;
        return if is_whole_head && first { Ok(Fill::Missing { bytes: missing }) } else { Err(LENGTH_ERROR) };
    }
    Ok(Fill::Known(match pattern.get(..head.length.into()) {
        None | Some([]) => zeroes(context.unit),
        Some(pattern) => repeated(context, pattern),
    }))
}

/// Every block holds the pattern, as often as it fits.
fn repeated(context: &mut Context<'_>, pattern: &[u8]) -> MediumPlan {
    let bytes = context.unit.config.block_size.bytes();
    context.reply.fill(bytes, |out| {
        for (place, byte) in out.iter_mut().zip(pattern.iter().cycle()) {
            *place = *byte;
        }
        Ok(out.len())
    });
    MediumPlan {
        op: MediumOp::WriteSame { unmap: true },
        extent: everything(context.unit),
        data: DataPhase::Own,
        bytes,
    }
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
    if list.protection_information != 0 || list.protection_interval_exponent != 0 {
        return refused(3, None);
    }
    if list.defect_list_len != 0 {
        return refused(if long { 4 } else { 2 }, None);
    }
    Ok(())
}

const fn zeroes(unit: &LogicalUnit) -> MediumPlan {
    MediumPlan::bare(MediumOp::Unmap, everything(unit))
}

/// Keeps others out from now on.
const fn begin(unit: &mut LogicalUnit, fill: MediumPlan) -> MediumPlan {
    unit.readiness = Readiness::Formatting;
    fill
}

/// The blocks are written, or that is durable as well.
fn written(context: &mut Context<'_>) -> Plan {
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
    use crate::lun::fixture::Fixture;
    use crate::lun::{DataPhase, MediumPlan, Plan, Readiness};
    use crate::medium::{MediumDone, MediumOp};
    use alloc::vec::Vec;
    use units::Extent;
    use wire::scsi::sense::{AdditionalSense, KeySpecific, Sense};

    const FORMAT: [u8; 6] = [0x04, 0, 0, 0, 0, 0];
    const WITH_LIST: [u8; 6] = [0x04, 0x10, 0, 0, 0, 0];
    const WITH_LONG_LIST: [u8; 6] = [0x04, 0x30, 0, 0, 0, 0];
    const UNMAP: MediumPlan = MediumPlan::bare(MediumOp::Unmap, Extent::new(0, 2048));
    const FLUSH: MediumPlan = MediumPlan::bare(MediumOp::Flush, Extent::new(0, 2048));

    #[test]
    fn a_format_zeroes_everything_and_keeps_others_out_meanwhile() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.run(&FORMAT), Plan::LongRunning(UNMAP));
        let formatting = Sense::not_ready(AdditionalSense { asc: 0x04, ascq: 0x04 })
            .with_key_specific(KeySpecific::Progress(0));
        assert_eq!(fixture.check(&[0; 6]), formatting);
        fixture.run(&FORMAT);
        assert_eq!(fixture.run_medium(&FORMAT, MediumDone::Done), Plan::Medium(FLUSH));
        assert_eq!(fixture.run_medium(&FORMAT, MediumDone::Done), Plan::Good);
        assert_eq!(fixture.unit.readiness, Readiness::Ready);
    }

    #[test]
    fn the_list_says_whether_it_is_immediate() {
        assert_eq!(Fixture::new().run_list(&WITH_LIST, &[0, 0, 0, 0]), Plan::LongRunning(UNMAP));
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
        assert_eq!(Fixture::new().run_list(&WITH_LIST, &[0, 0xf0, 0, 0]), Plan::LongRunning(UNMAP));
    }

    const PATTERN: MediumPlan = MediumPlan {
        op: MediumOp::WriteSame { unmap: true },
        extent: Extent::new(0, 2048),
        data: DataPhase::Own,
        bytes: 512,
    };

    #[test]
    fn a_pattern_is_repeated_in_every_block() {
        let mut fixture = Fixture::new();
        let plan = fixture.run_list(&WITH_LIST, &[0, 0x88, 0, 0, 0, 0x01, 0, 3, 0xa1, 0xb2, 0xc3]);
        assert_eq!(plan, Plan::LongRunning(PATTERN));
        assert_eq!(fixture.reply().len(), 512);
        assert_eq!(fixture.reply()[..4], [0xa1, 0xb2, 0xc3, 0xa1]);
        assert_eq!(fixture.reply()[510..], [0xa1, 0xb2]);
        assert_eq!(fixture.run_medium(&WITH_LIST, MediumDone::Done), Plan::Medium(FLUSH));
        assert_eq!(fixture.run_medium(&WITH_LIST, MediumDone::Done), Plan::Good);
    }

    #[test]
    fn a_long_pattern_is_fetched_once_its_length_is_known() {
        let mut fixture = Fixture::new();
        let mut list = Vec::from([0, 0x08, 0, 0, 0, 0, 0, 0, 0, 0x01, 2, 0]);
        list.extend([0x77; 512]);
        assert_eq!(fixture.run(&WITH_LONG_LIST), Plan::ListHead { least: 8 });
        assert_eq!(fixture.interpret(&WITH_LONG_LIST, &list[..64]), Plan::ListRest { bytes: 460 });
        assert_eq!(fixture.interpret(&WITH_LONG_LIST, &list), Plan::LongRunning(PATTERN));
        assert_eq!(fixture.reply(), [0x77; 512]);
    }

    #[test]
    fn a_pattern_that_does_not_come_is_not_waited_for() {
        let length = Plan::Check(Sense::illegal_request(AdditionalSense { asc: 0x1a, ascq: 0x00 }));
        let list = [0, 0x08, 0, 0, 0, 0x01, 0, 8, 1, 2, 3];
        assert_eq!(Fixture::new().run_list(&WITH_LIST, &list), length);
        assert_eq!(Fixture::new().run_list(&WITH_LIST, &list[..7]), length);
        let mut whole_head = [0; 64];
        whole_head[..8].copy_from_slice(&[0, 0x08, 0, 0, 0, 0x01, 1, 0]);
        let mut fixture = Fixture::new();
        assert_eq!(fixture.run_list(&WITH_LIST, &whole_head), Plan::ListRest { bytes: 200 });
        assert_eq!(fixture.interpret(&WITH_LIST, &whole_head), length);
        assert_eq!(fixture.unit.readiness, Readiness::Ready);
    }

    #[test]
    fn the_default_pattern_is_zeroes() {
        let plan = Fixture::new().run_list(&WITH_LIST, &[0, 0x08, 0, 0, 0, 0, 0, 0]);
        assert_eq!(plan, Plan::LongRunning(UNMAP));
    }

    #[test]
    fn a_pattern_that_makes_no_sense_is_refused_where_it_does_not() {
        let cases: [([u8; 4], u16, Option<u8>); 6] = [
            ([0x20, 0x00, 0, 0], 4, Some(5)),
            ([0x40, 0x00, 0, 0], 4, Some(7)),
            ([0x00, 0x02, 0, 0], 5, None),
            ([0x00, 0x00, 0, 1], 6, None),
            ([0x00, 0x01, 0, 0], 6, None),
            ([0x00, 0x01, 2, 1], 6, None),
        ];
        for (descriptor, byte, bit) in cases {
            let list = [&[0, 0x08, 0, 0][..], &descriptor].concat();
            let plan = Fixture::new().run_list(&WITH_LIST, &list);
            assert_eq!(
                plan,
                Plan::Check(Sense::invalid_field_in_parameter_list(byte, bit)),
                "{descriptor:02x?}"
            );
        }
    }

    #[test]
    fn defects_are_refused_and_a_list_of_none_is_not() {
        assert_eq!(
            Fixture::new().run_list(&[0x04, 0x18, 0, 0, 0, 0], &[0, 0, 0, 0]),
            Plan::LongRunning(UNMAP)
        );
        let plan = Fixture::new().run_list(&WITH_LIST, &[0, 0, 0, 4]);
        assert_eq!(plan, Plan::Check(Sense::invalid_field_in_parameter_list(2, None)));
    }

    #[test]
    fn fields_of_a_list_need_a_list() {
        assert_eq!(Fixture::new().check(&[0x04, 0x20, 0, 0, 0, 0]), Sense::invalid_field_in_cdb(1, Some(5)));
        assert_eq!(Fixture::new().check(&[0x04, 0x08, 0, 0, 0, 0]), Sense::invalid_field_in_cdb(1, Some(3)));
    }
}
