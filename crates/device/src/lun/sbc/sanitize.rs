//! SANITIZE (SBC-4 clauses 4.11 and 5.30): nothing that was written can be read again.
//!
//! A block or cryptographic erase unmaps everything, which reads as zero; an overwrite writes its pattern, pass by
//! pass. Nothing stops it but its end: neither an abort nor a reset, nor a power loss where the medium keeps the unit's
//! state ([`crate::lun::sanitizing`]); after that it restarts. If it fails, every access to the medium fails until
//! another sanitize succeeds or, where AUSE allowed it, EXIT FAILURE MODE.
//!
//! Left out: progress. ZNR has no zones to spare.

use super::{Decision, everything, fetch_list, fields, settle};
use crate::lun::access::Access;
use crate::lun::row::{ListFn, MediumFn, Needs, Row};
use crate::lun::sanitizing::Record;
use crate::lun::{Context, DataPhase, LogicalUnit, MediumPlan, Plan, Readiness};
use crate::medium::MediumOp;
use units::Extent;
use wire::scsi::block::OverwriteList;
use wire::scsi::cdb::Sanitize;
use wire::scsi::opcode::SanitizeAction;
use wire::scsi::sense::{AdditionalSense, Sense};

pub(in crate::lun) const OVERWRITE: Row = row(
    &[0x48, 0xa1, 0, 0, 0, 0, 0, 0xff, 0xff, 0x04],
    Some(|context, cdb, list| settle(overwrite_by_list(context, cdb, list))),
    GO_ON,
);
pub(in crate::lun) const BLOCK_ERASE: Row = row(&[0x48, 0xa2, 0, 0, 0, 0, 0, 0xff, 0xff, 0x04], None, GO_ON);
pub(in crate::lun) const CRYPTOGRAPHIC_ERASE: Row =
    row(&[0x48, 0xa3, 0, 0, 0, 0, 0, 0xff, 0xff, 0x04], None, GO_ON);
pub(in crate::lun) const EXIT_FAILURE_MODE: Row =
    row(&[0x48, 0x1f, 0, 0, 0, 0, 0, 0xff, 0xff, 0x04], None, |context, _, _, _| {
        leave_failure_mode(context.unit)
    });

const GO_ON: MediumFn = |context, cdb, list, _| settle(go_on(context, cdb, list));

const fn row(usage: &'static [u8], on_list: Option<ListFn>, on_medium: MediumFn) -> Row {
    Row {
        usage,
        // It is the way out of a state in which nothing else gets at the medium, so it looks itself.
        needs: Needs { access: Access::Write, ..Needs::UNIT }.exclusive(),
        timeout_s: 3600,
        plan: |context, cdb| settle(sanitize(context, cdb)),
        on_list,
        on_medium: Some(on_medium),
    }
}

/// Byte of PARAMETER LIST LENGTH.
const LIST_LENGTH_FIELD: u16 = 7;

fn sanitize(context: &mut Context<'_>, cdb: &[u8]) -> Decision {
    let command = fields(Sanitize::decode(cdb))?;
    let unit = &mut *context.unit;
    if let Err(plan) = check_access(unit) {
        return Ok(plan);
    }
    let list_len = usize::from(command.parameter_list_len);
    if command.service_action == SanitizeAction::Overwrite {
        let most = OverwriteList::HEADER_LEN + unit.config.block_size.bytes() as usize;
        if list_len <= OverwriteList::HEADER_LEN || list_len > most {
            return Err(Sense::invalid_field_in_cdb(LIST_LENGTH_FIELD, None));
        }
        check_exit(unit, &command)?;
        return fetch_list(command.parameter_list_len.into(), LIST_LENGTH_FIELD);
    }
    if list_len != 0 {
        return Err(Sense::invalid_field_in_cdb(LIST_LENGTH_FIELD, None));
    }
    if command.service_action == SanitizeAction::ExitFailureMode {
        return exit_failure_mode(unit);
    }
    check_exit(unit, &command)?;
    begin(context, cdb, &[])
}

/// Whether the unit can be sanitized: there is a medium that moves and may be written.
fn check_access(unit: &LogicalUnit) -> Result<(), Plan> {
    if !matches!(unit.readiness, Readiness::SanitizeFailed { .. }) {
        unit.check_ready()?;
    }
    unit.check_writable()
}

/// A failure that has no exit cannot be given one by trying again.
fn check_exit(unit: &LogicalUnit, command: &Sanitize) -> Result<(), Sense> {
    let restricted = unit.readiness == Readiness::SanitizeFailed { unrestricted_exit: false };
    if restricted && command.allow_unrestricted_exit {
        return Err(Sense::invalid_field_in_cdb(1, Some(5)));
    }
    Ok(())
}

fn exit_failure_mode(unit: &mut LogicalUnit) -> Decision {
    match unit.readiness {
        Readiness::SanitizeFailed { unrestricted_exit: true } => unit.sanitizing.forget(),
        Readiness::SanitizeFailed { unrestricted_exit: false } => {
            return Err(Sense::invalid_field_in_cdb(1, Some(4)));
        }
        _ => return Ok(Plan::Good),
    }
    // Until that is saved, a power loss would repeat the sanitize operation.
    Ok(if unit.config.durable { Plan::Medium(SAVE) } else { leave_failure_mode(unit) })
}

fn leave_failure_mode(unit: &mut LogicalUnit) -> Plan {
    unit.readiness = Readiness::Ready;
    Plan::Good
}

/// Saves the unit's state.
const SAVE: MediumPlan = MediumPlan::bare(MediumOp::SaveState, Extent::new(0, 0));

/// Keeps others out from now on, and has the operation recorded before it begins.
fn begin(context: &mut Context<'_>, cdb: &[u8], list: &[u8]) -> Decision {
    let command = fields(Sanitize::decode(cdb))?;
    let cdb = *cdb.first_chunk().ok_or(Sense::invalid_field_in_cdb(0, None))?;
    let unit = &mut *context.unit;
    unit.sanitizing.begin(unit.readiness, Record { cdb, list: list.into() });
    unit.readiness = Readiness::Sanitizing { unrestricted_exit: command.allow_unrestricted_exit };
    if unit.config.durable { Ok(Plan::LongRunning(SAVE)) } else { go_on(context, &cdb, list) }
}

fn overwrite_by_list(context: &mut Context<'_>, cdb: &[u8], bytes: &[u8]) -> Decision {
    let command = fields(Sanitize::decode(cdb))?;
    if bytes.len() < usize::from(command.parameter_list_len) {
        return Err(Sense::illegal_request(AdditionalSense::PARAMETER_LIST_LENGTH_ERROR));
    }
    let list = decode(bytes)?;
    let refused = |byte, bit| Err(Sense::invalid_field_in_parameter_list(byte, bit));
    if list.test != 0 {
        return refused(0, Some(6));
    }
    if list.count == 0 {
        return refused(0, Some(4));
    }
    if list.pattern.is_empty() {
        return refused(2, None);
    }
    begin(context, cdb, bytes)
}

/// Plans the next step: the first pass when the record is saved, another pass, the flush after the last, the end.
fn go_on(context: &mut Context<'_>, cdb: &[u8], list: &[u8]) -> Decision {
    let list = if list.is_empty() { None } else { Some(decode(list)?) };
    if context.unit.sanitizing.confirm() {
        let pass = pass(context, list.as_ref());
        let immediate = fields(Sanitize::decode(cdb))?.immediate;
        return Ok(if immediate { Plan::Background(pass) } else { Plan::LongRunning(pass) });
    }
    *context.step += 1;
    let beyond = context.step.checked_sub(list.as_ref().map_or(1, |list| list.count.into()));
    Ok(match beyond {
        None => Plan::Medium(pass(context, list.as_ref())),
        Some(0) => Plan::Medium(MediumPlan::bare(MediumOp::Flush, everything(context.unit))),
        Some(1) if context.unit.config.durable => {
            context.unit.sanitizing.forget();
            Plan::Medium(SAVE)
        }
        Some(_) => finish(context.unit),
    })
}

fn finish(unit: &mut LogicalUnit) -> Plan {
    unit.sanitizing.forget();
    if matches!(unit.readiness, Readiness::Sanitizing { .. }) {
        unit.readiness = Readiness::Ready;
    }
    Plan::Good
}

/// The first pass of the operation that a power loss has cut off; `list` is its parameter list.
pub(crate) fn resume(context: &mut Context<'_>, list: &[u8]) -> Plan {
    match (list.is_empty(), decode(list)) {
        (true, _) => Plan::LongRunning(pass(context, None)),
        (false, Ok(list)) => Plan::LongRunning(pass(context, Some(&list))),
        (false, Err(sense)) => Plan::Check(sense),
    }
}

/// The pass that the step counts: an erase if there is no list.
fn pass(context: &mut Context<'_>, list: Option<&OverwriteList<'_>>) -> MediumPlan {
    match list {
        Some(list) => overwrite(context, list),
        None => MediumPlan::bare(MediumOp::Unmap, everything(context.unit)),
    }
}

fn overwrite(context: &mut Context<'_>, list: &OverwriteList<'_>) -> MediumPlan {
    let bytes = context.unit.config.block_size.bytes();
    let pass = *context.step;
    context.reply.fill(bytes, |out| {
        list.fill(pass, out);
        Ok(out.len())
    });
    MediumPlan {
        op: MediumOp::WriteSame { unmap: false },
        extent: everything(context.unit),
        data: DataPhase::Own,
        bytes,
    }
}

/// A pattern longer than the list is a wrong length of the pattern; the list is as long as the CDB says.
fn decode(list: &[u8]) -> Result<OverwriteList<'_>, Sense> {
    OverwriteList::decode(list).map_err(|_| Sense::invalid_field_in_parameter_list(2, None))
}

#[cfg(test)]
mod tests {
    use crate::lun::fixture::Fixture;
    use crate::lun::{DataPhase, MediumPlan, Plan, Readiness};
    use crate::medium::{MediumDone, MediumOp};
    use units::Extent;
    use wire::scsi::sense::{AdditionalSense, KeySpecific, Sense, SenseKey};

    const ALL: Extent = Extent::new(0, 2048);
    const UNMAP: MediumPlan = MediumPlan::bare(MediumOp::Unmap, ALL);
    const SAVE: MediumPlan = MediumPlan::bare(MediumOp::SaveState, Extent::new(0, 0));
    const FLUSH: MediumPlan = MediumPlan::bare(MediumOp::Flush, ALL);
    const PASS: MediumPlan = MediumPlan {
        op: MediumOp::WriteSame { unmap: false },
        extent: ALL,
        data: DataPhase::Own,
        bytes: 512,
    };
    const FAILED: Sense = Sense::new(SenseKey::MediumError, AdditionalSense { asc: 0x31, ascq: 0x03 });

    const fn cdb(flags_and_action: u8, list_len: u8) -> [u8; 10] {
        [0x48, flags_and_action, 0, 0, 0, 0, 0, 0, list_len, 0]
    }

    #[test]
    fn an_erase_unmaps_everything_and_keeps_others_out_meanwhile() {
        for action in [0x02, 0x03] {
            let mut fixture = Fixture::new();
            let cdb = cdb(action, 0);
            assert_eq!(fixture.run(&cdb), Plan::LongRunning(SAVE));
            assert_eq!(fixture.run_medium(&cdb, MediumDone::Done), Plan::LongRunning(UNMAP));
            assert_eq!(fixture.run_medium(&cdb, MediumDone::Done), Plan::Medium(FLUSH));
            assert_eq!(fixture.run_medium(&cdb, MediumDone::Done), Plan::Medium(SAVE));
            let sanitizing = Readiness::Sanitizing { unrestricted_exit: false };
            assert_eq!(fixture.unit.readiness, sanitizing);
            assert_eq!(fixture.run_medium(&cdb, MediumDone::Done), Plan::Good);
            assert_eq!(fixture.unit.readiness, Readiness::Ready);
        }
    }

    #[test]
    fn while_it_runs_another_is_refused() {
        let mut fixture = Fixture::new();
        let immediate = cdb(0x82, 0);
        assert_eq!(fixture.run(&immediate), Plan::LongRunning(SAVE));
        assert_eq!(fixture.run_medium(&immediate, MediumDone::Done), Plan::Background(UNMAP));
        let running = Sense::not_ready(AdditionalSense { asc: 0x04, ascq: 0x1b })
            .with_key_specific(KeySpecific::Progress(0));
        assert_eq!(fixture.check(&cdb(0x82, 0)), running);
        assert_eq!(fixture.check(&[0; 6]), running);
    }

    #[test]
    fn an_overwrite_writes_its_pattern_pass_by_pass() {
        let mut fixture = Fixture::with(|config| config.durable = false);
        let cdb = cdb(0x01, 6);
        assert_eq!(fixture.run_list(&cdb, &[0x83, 0, 0, 2, 0x5a, 0x00]), Plan::LongRunning(PASS));
        assert_eq!(fixture.reply().len(), 512);
        assert_eq!(fixture.reply()[..4], [0x5a, 0x00, 0x5a, 0x00]);
        assert_eq!(fixture.run_medium(&cdb, MediumDone::Done), Plan::Medium(PASS));
        assert_eq!(fixture.reply()[..4], [0xa5, 0xff, 0xa5, 0xff]);
        assert_eq!(fixture.run_medium(&cdb, MediumDone::Done), Plan::Medium(PASS));
        assert_eq!(fixture.reply()[..4], [0x5a, 0x00, 0x5a, 0x00]);
        assert_eq!(fixture.run_medium(&cdb, MediumDone::Done), Plan::Medium(FLUSH));
        assert_eq!(fixture.run_medium(&cdb, MediumDone::Done), Plan::Good);
        assert_eq!(fixture.unit.readiness, Readiness::Ready);
    }

    #[test]
    fn an_overwrite_list_holds_a_pattern_of_a_block_at_most() {
        let wrong = Sense::invalid_field_in_cdb(7, None);
        for len in 0..5 {
            assert_eq!(Fixture::new().check(&cdb(0x01, len)), wrong, "{len}");
        }
        assert_eq!(Fixture::new().check(&[0x48, 0x01, 0, 0, 0, 0, 0, 0x02, 0x05, 0]), wrong);
        let most = Fixture::new().run(&[0x48, 0x01, 0, 0, 0, 0, 0, 0x02, 0x04, 0]);
        assert_eq!(most, Plan::List { bytes: 516 });
    }

    #[test]
    fn an_overwrite_needs_passes_and_a_pattern() {
        let cases: [(&[u8], u16, Option<u8>); 4] = [
            (&[0x00, 0, 0, 1, 0], 0, Some(4)),
            (&[0x21, 0, 0, 1, 0], 0, Some(6)),
            (&[0x01, 0, 0, 0, 0], 2, None),
            (&[0x01, 0, 0, 2, 0], 2, None),
        ];
        for (list, byte, bit) in cases {
            let mut fixture = Fixture::new();
            let plan = fixture.run_list(&cdb(0x01, 5), list);
            assert_eq!(plan, Plan::Check(Sense::invalid_field_in_parameter_list(byte, bit)), "{list:02x?}");
            assert_eq!(fixture.unit.readiness, Readiness::Ready);
        }
    }

    #[test]
    fn other_actions_have_no_list() {
        for action in [0x02, 0x03, 0x1f] {
            let sense = Fixture::new().check(&cdb(action, 8));
            assert_eq!(sense, Sense::invalid_field_in_cdb(7, None), "{action:#x}");
        }
        let sense = Fixture::new().check(&cdb(0x04, 0));
        assert_eq!(sense.additional, AdditionalSense { asc: 0x24, ascq: 0x00 });
    }

    #[test]
    fn a_protected_unit_is_not_sanitized() {
        let sense = Fixture::with(|config| config.read_only = true).check(&cdb(0x02, 0));
        assert_eq!(sense, Sense::new(SenseKey::DataProtect, AdditionalSense { asc: 0x27, ascq: 0x00 }));
    }

    #[test]
    fn a_failure_is_left_by_exit_or_by_another_sanitize() {
        let mut fixture = Fixture::new();
        fixture.unit.readiness = Readiness::SanitizeFailed { unrestricted_exit: true };
        assert_eq!(fixture.check(&[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0]), FAILED);
        assert_eq!(fixture.run(&cdb(0x1f, 0)), Plan::Medium(SAVE));
        assert_eq!(fixture.run_medium(&cdb(0x1f, 0), MediumDone::Done), Plan::Good);
        assert_eq!(fixture.unit.readiness, Readiness::Ready);
        fixture.unit.readiness = Readiness::SanitizeFailed { unrestricted_exit: true };
        assert_eq!(fixture.run(&cdb(0x22, 0)), Plan::LongRunning(SAVE));
    }

    #[test]
    fn a_failure_without_exit_is_left_by_another_sanitize_alone() {
        let mut fixture = Fixture::new();
        fixture.unit.readiness = Readiness::SanitizeFailed { unrestricted_exit: false };
        assert_eq!(fixture.check(&cdb(0x1f, 0)), Sense::invalid_field_in_cdb(1, Some(4)));
        assert_eq!(fixture.check(&[0; 6]), FAILED);
        assert_eq!(fixture.check(&cdb(0x22, 0)), Sense::invalid_field_in_cdb(1, Some(5)));
        assert_eq!(fixture.run(&cdb(0x02, 0)), Plan::LongRunning(SAVE));
    }

    #[test]
    fn a_power_loss_does_not_end_it() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.run(&cdb(0x22, 0)), Plan::LongRunning(SAVE));
        fixture.power_cycle();
        assert_eq!(fixture.unit.readiness, Readiness::Sanitizing { unrestricted_exit: true });
        let mut fixture = Fixture::new();
        assert_eq!(fixture.run(&cdb(0x22, 0)), Plan::LongRunning(SAVE));
        for step in [Plan::LongRunning(UNMAP), Plan::Medium(FLUSH), Plan::Medium(SAVE)] {
            assert_eq!(fixture.run_medium(&cdb(0x22, 0), MediumDone::Done), step);
        }
        fixture.power_cycle();
        assert_eq!(fixture.unit.readiness, Readiness::Ready);
    }

    #[test]
    fn without_a_failure_there_is_nothing_to_exit() {
        assert_eq!(Fixture::new().run(&cdb(0x1f, 0)), Plan::Good);
    }
}
