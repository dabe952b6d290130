//! Checks that precede every command.
//!
//! In the order of SPC-5 and SAM-6: unit attention, deferred error, known command, reservations, readiness, write
//! protection. Only then does the command read its CDB. A logical unit number without a unit is handled in
//! module `absent_unit`.

use super::access::Access;
use super::reservation::{Nexus, Obstacle};
use super::row::{Row, Unsupported};
use super::sbc::capacity;
use super::{Context, LogicalUnit, Plan};
use core::hint::cold_path;
use wire::scsi::cdb::{PowerCondition, StartStopUnit};
use wire::scsi::opcode::{OperationCode, PersistentReserveOutAction};
use wire::scsi::sense::{AdditionalSense, Sense};

/// Checks whether a command may run: its row, or the plan that ends it instead.
pub(crate) fn admit(
    unit: &mut LogicalUnit,
    row: Result<&'static Row, Unsupported>,
    cdb: &[u8],
) -> Result<&'static Row, Plan> {
    let row = row.and_then(|row| offered(unit, row));
    let ignores_attention = row.is_ok_and(|row| row.needs.ignores_attention);
    // Sense data lasts until the next command, unless that one asks for it (SAM-5 clause 5.13).
    if !row.is_ok_and(|row| row.opcode() == OperationCode::RequestSense) {
        unit.held_sense = None;
    }
    if !ignores_attention && let Some(attention) = unit.take_attention() {
        cold_path();
        return Err(Plan::Check(Sense::unit_attention(attention.additional_sense())));
    }
    if !ignores_attention && let Some(sense) = unit.deferred.take() {
        cold_path();
        return Err(Plan::Check(sense));
    }
    let row = row.map_err(unsupported)?;
    check_reservations(unit, row, cdb)?;
    if row.needs.ready {
        unit.check_ready()?;
        if row.needs.access == Access::Write {
            unit.check_writable()?;
        }
    }
    Ok(row)
}

/// Asks a command that was let through for its plan, and counts it.
pub(crate) fn begin(row: &Row, context: &mut Context<'_>, cdb: &[u8]) -> Plan {
    if row.needs.ready && row.needs.access != Access::Always {
        context.unit.ata.wake();
    }
    let plan = recorded(context, cdb).unwrap_or_else(|| (row.plan)(context, cdb));
    context.unit.logs.record_plan(&plan);
    plan
}

/// The answer of the unit that this one presents, if it does.
#[inline(always)]
fn recorded(context: &mut Context<'_>, cdb: &[u8]) -> Option<Plan> {
    let recorded = context.unit.config.recorded.as_ref()?;
    recorded.answer(cdb, capacity::capacity_16(&context.unit.config), context.reply)
}

/// A command that units of this kind do not have is like one that does not exist.
#[inline(always)]
fn offered(unit: &LogicalUnit, row: &'static Row) -> Result<&'static Row, Unsupported> {
    let recorded = unit.config.recorded.as_ref();
    let is_refused = recorded.is_some_and(|unit| unit.is_refused(row.opcode(), row.service_action()));
    if row.is_offered(&unit.config) && !is_refused { Ok(row) } else { Err(Unsupported::OperationCode) }
}

#[cold]
fn unsupported(reason: Unsupported) -> Plan {
    Plan::Check(match reason {
        Unsupported::OperationCode => Sense::illegal_request(AdditionalSense::INVALID_COMMAND_OPERATION_CODE),
        Unsupported::ServiceAction => Sense::invalid_field_in_cdb(1, Some(4)),
        Unsupported::CdbLength => Sense::illegal_request(AdditionalSense::INVALID_FIELD_IN_CDB),
    })
}

/// Whether reservations allow a command of the host.
fn check_reservations(unit: &LogicalUnit, row: &Row, cdb: &[u8]) -> Result<(), Obstacle> {
    if unit.reservations.are_lost() && !is_allowed_after_loss(row, cdb) {
        cold_path();
        return Err(Obstacle::Lost);
    }
    unit.reservations.check(Nexus::HOST, row.needs.access)
}

/// Whether a command runs although reservations are lost (SPC-4 clauses 5.13.5.2 and 5.13.5.3.2).
fn is_allowed_after_loss(row: &Row, cdb: &[u8]) -> bool {
    use OperationCode as Code;
    match row.opcode() {
        Code::Inquiry
        | Code::LogSense
        | Code::ReadBuffer10
        | Code::ReportLuns
        | Code::RequestSense
        | Code::WriteBuffer => true,
        // Started, and by the START bit alone.
        Code::StartStopUnit => StartStopUnit::decode(cdb)
            .is_ok_and(|command| command.start && command.power_condition == PowerCondition::StartValid),
        Code::PersistentReserveOut => {
            let replace = PersistentReserveOutAction::ReplaceLostReservation;
            row.service_action() == Some(u8::from(replace).into())
        }
        _ => false,
    }
}
