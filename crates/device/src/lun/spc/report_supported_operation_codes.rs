//! REPORT SUPPORTED OPERATION CODES (SPC-4 clause 6.35): the list of commands.
//!
//! Built from the rows in [`crate::lun::registry`]: each is a descriptor in the list, and its usage map answers a query
//! for one command.

use super::{Decision, fields, settle};
use crate::lun::registry;
use crate::lun::row::{Needs, Row};
use crate::lun::{Context, Plan, Reply};
use wire::scsi::cdb::{ReportSupportedOperationCodes, ReportingOptions};
use wire::scsi::opcode::OperationCode;
use wire::scsi::sense::Sense;
use wire::scsi::supported_opcodes::{
    AllCommands, CommandDescriptor, CommandSupport, CommandTimeouts, OneCommand,
};

pub(in crate::lun) const ROW: Row = Row {
    usage: &[0xa3, 0x0c, 0x87, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x04],
    needs: Needs::UNIT,
    timeout_s: 1,
    plan: |context, cdb| settle(plan(context, cdb)),
    on_list: None,
    on_medium: None,
};

fn plan(context: &mut Context<'_>, cdb: &[u8]) -> Decision {
    let command = fields(ReportSupportedOperationCodes::decode(cdb))?;
    let opcode = OperationCode::from(command.requested_operation_code);
    let action = command.requested_service_action;
    let unit_type = context.unit.config.unit_type;
    // All rows of an operation code agree on whether it has service actions.
    let has_actions = registry::rows(unit_type)
        .find(|row| row.opcode() == opcode)
        .map(|row| row.service_action().is_some());
    let wanted = match (command.reporting_options, has_actions) {
        (ReportingOptions::All, _) => return Ok(report_all(context, &command)),
        (ReportingOptions::OperationCode, Some(true)) | (ReportingOptions::ServiceAction, Some(false)) => {
            return Err(Sense::invalid_field_in_cdb(2, Some(2)));
        }
        (ReportingOptions::OperationCode, _) => None,
        (ReportingOptions::ServiceAction, _) => Some(action),
        // With neither, the command is one without service actions.
        (ReportingOptions::Either, Some(false)) if action == 0 => None,
        (ReportingOptions::Either, _) => Some(action),
        _ => return Err(Sense::invalid_field_in_cdb(2, Some(2))),
    };
    let is_it = |row: &&Row| row.opcode() == opcode && row.service_action() == wanted;
    let row = registry::rows(unit_type).find(is_it).filter(|row| row.is_offered(&context.unit.config));
    Ok(report_one(context.reply, &command, row))
}

fn report_all(context: &mut Context<'_>, command: &ReportSupportedOperationCodes) -> Plan {
    let config = &context.unit.config;
    let offered = registry::rows(config.unit_type).filter(|row| row.is_offered(config));
    let descriptors = offered.map(|row| CommandDescriptor {
        opcode: row.opcode().into(),
        service_action: row.service_action(),
        cdb_length: row.usage.len() as u16,
        timeouts: command.timeouts.then(|| timeouts(row)),
    });
    context.reply.fill(command.allocation_len, |out| AllCommands::encode_list(descriptors, out))
}

fn report_one(reply: &mut Reply, command: &ReportSupportedOperationCodes, row: Option<&'static Row>) -> Plan {
    let answer = match row {
        Some(row) => OneCommand {
            support: CommandSupport::Standard,
            usage: row.usage,
            timeouts: command.timeouts.then(|| timeouts(row)),
        },
        None => OneCommand { support: CommandSupport::No, usage: &[], timeouts: None },
    };
    reply.fill(command.allocation_len, |out| answer.encode(out))
}

fn timeouts(row: &Row) -> CommandTimeouts {
    CommandTimeouts { command_specific: 0, nominal_s: 0, recommended_s: row.timeout_s }
}

#[cfg(test)]
mod tests {
    use crate::lun::UnitType;
    use crate::lun::fixture::Fixture;
    use crate::lun::registry;
    use wire::scsi::cdb::Command;
    use wire::scsi::sense::Sense;

    const fn cdb(options: u8, opcode: u8, action: u8) -> [u8; 12] {
        [0xa3, 0x0c, options, opcode, 0, action, 0, 0, 0x20, 0, 0, 0]
    }

    #[test]
    fn all_commands_are_reported_with_their_lengths() {
        let mut fixture = Fixture::new();
        let bytes = fixture.read(&cdb(0, 0, 0)).to_vec();
        let rows = registry::rows(UnitType::Disk).count();
        assert_eq!(bytes.len(), 4 + 8 * rows);
        assert_eq!(bytes[..4], (8 * rows as u32).to_be_bytes());
        assert_eq!(bytes[4..12], [0x00, 0, 0, 0, 0, 0, 0, 6], "TEST UNIT READY");
        assert!(bytes[4..].chunks(8).any(|reported| *reported == [0xa3, 0, 0, 0x0c, 0, 0x01, 0, 12]));
    }

    #[test]
    fn rctd_adds_timeouts() {
        let mut fixture = Fixture::new();
        let bytes = fixture.read(&cdb(0x80, 0, 0)).to_vec();
        assert_eq!(bytes.len(), 4 + 20 * registry::rows(UnitType::Disk).count());
        assert_eq!(bytes[4..24], [0, 0, 0, 0, 0, 2, 0, 6, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        let inquiry = fixture.read(&cdb(0x81, 0x12, 0));
        assert_eq!(inquiry[..10], [0, 0x83, 0, 6, 0x12, 0x01, 0xff, 0xff, 0xff, 0x04]);
        assert_eq!(inquiry[10..], [0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn one_command_is_reported_with_its_usage() {
        let mut fixture = Fixture::new();
        let inquiry = [0, 3, 0, 6, 0x12, 0x01, 0xff, 0xff, 0xff, 0x04];
        assert_eq!(fixture.read(&cdb(1, 0x12, 0)), inquiry);
        assert_eq!(fixture.read(&cdb(3, 0x12, 0)), inquiry);
        assert_eq!(fixture.read(&cdb(2, 0xa3, 0x0c))[..6], [0, 3, 0, 12, 0xa3, 0x0c]);
        assert_eq!(fixture.read(&cdb(3, 0xa3, 0x0d))[..6], [0, 3, 0, 12, 0xa3, 0x0d]);
    }

    #[test]
    fn what_is_not_supported_is_reported_with_good_status() {
        let mut fixture = Fixture::new();
        let no = [0, 1, 0, 0];
        for (options, opcode, action) in [
            (1, 0xff, 0),
            (2, 0x7f, 9),
            (3, 0xff, 0),
            (2, 0xa3, 0x1f),
            (3, 0xa3, 0x1f),
            (3, 0x12, 1),
            (0x81, 0x83, 0),
        ] {
            assert_eq!(fixture.read(&cdb(options, opcode, action)), no, "{options} {opcode:#x} {action}");
        }
    }

    #[test]
    fn questions_that_do_not_fit_the_command_are_refused() {
        let mut fixture = Fixture::new();
        let options = Sense::invalid_field_in_cdb(2, Some(2));
        assert_eq!(fixture.check(&cdb(1, 0xa3, 0x0c)), options);
        assert_eq!(fixture.check(&cdb(2, 0x12, 0)), options);
        assert_eq!(fixture.check(&cdb(4, 0x12, 0)), options);
    }

    #[test]
    fn every_row_uses_only_bits_that_its_cdb_has() {
        for row in registry::rows(UnitType::Disk) {
            let opcode = u8::from(row.opcode());
            let action = row.service_action().unwrap_or(0) as u8;
            let known = Command::usage(opcode, action);
            let known = known.unwrap_or_else(|| panic!("{row} is a CDB of wire"));
            assert_eq!(row.usage.len(), known.len(), "{row}");
            for (at, (used, known)) in row.usage.iter().zip(known.iter()).enumerate() {
                assert_eq!(used & !known, 0, "{row}, byte {at}");
            }
        }
    }

    #[test]
    fn no_command_is_in_the_table_twice() {
        let mut seen = alloc::collections::BTreeSet::new();
        for row in registry::rows(UnitType::Disk) {
            assert!(seen.insert((u8::from(row.opcode()), row.service_action())), "{row}");
        }
    }
}
