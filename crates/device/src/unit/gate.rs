//! What comes before every command, and what becomes of a medium's failure.
//!
//! The order is SPC-5's and SAM-6's: is there such a unit, is a unit attention pending, has earlier work failed unseen, is
//! there such a command, is the unit reserved by others, is it ready. Only then does the command look at its CDB.

use super::table::{Access, Index, Row, Unsupported};
use super::{Context, Plan, Readiness, Reply, Unit, spc};
use crate::medium::MediumError;
use core::hint::cold_path;
use units::Extent;
use wire::scsi::lun::{Lun, LunField, WellKnownLun};
use wire::scsi::opcode::OperationCode;
use wire::scsi::sense::{AdditionalSense, KeySpecific, Sense, SenseKey};

/// Lets a command through to its `plan`, or says how it ends instead. `row` is the one that is known of it, if there is one.
pub(crate) fn admit(
    unit: &mut Unit,
    row: Option<&'static Row>,
    cdb: &[u8],
    index: &Index,
) -> Result<&'static Row, Plan> {
    let row = row.map_or_else(|| index.find(cdb), Ok).and_then(|row| offered(unit, row));
    let ignores_attention = row.is_ok_and(|row| row.needs.ignores_attention);
    // Sense data lasts until the next command, unless that one asks for it (SAM-5 clause 5.13).
    if !row.is_ok_and(|row| row.opcode == OperationCode::RequestSense) {
        unit.held_sense = None;
    }
    if !ignores_attention && let Some(attention) = unit.attentions.take() {
        cold_path();
        return Err(Plan::Check(Sense::unit_attention(attention.additional_sense())));
    }
    if !ignores_attention && let Some(sense) = unit.deferred.take() {
        cold_path();
        return Err(Plan::Check(sense));
    }
    let row = row.map_err(unsupported)?;
    unit.check_reservations(row, cdb)?;
    if row.needs.ready {
        check_ready(unit)?;
        if row.needs.access == Access::Write {
            check_writable(unit)?;
        }
    }
    Ok(row)
}

/// Asks a command that was let through for its plan, and counts it.
pub(crate) fn begin(row: &Row, context: &mut Context<'_>, cdb: &[u8]) -> Plan {
    if row.needs.ready && row.needs.access != Access::Always {
        context.unit.ata.wake();
    }
    let plan = (row.plan)(context, cdb);
    context.unit.logs.record_plan(&plan);
    plan
}

/// NOT READY with its cause, unless the unit is ready.
pub(crate) fn check_ready(unit: &Unit) -> Result<(), Plan> {
    let cause = match unit.readiness {
        Readiness::Ready => return Ok(()),
        Readiness::Stopped => AdditionalSense::NOT_READY_INITIALIZING_COMMAND_REQUIRED,
        Readiness::Ejected | Readiness::Absent => AdditionalSense::MEDIUM_NOT_PRESENT,
        Readiness::Formatting => AdditionalSense::NOT_READY_FORMAT_IN_PROGRESS,
        Readiness::Sanitizing { .. } => AdditionalSense::NOT_READY_SANITIZE_IN_PROGRESS,
        Readiness::SanitizeFailed { .. } => {
            let failed = Sense::new(SenseKey::MediumError, AdditionalSense::SANITIZE_COMMAND_FAILED);
            return Err(Plan::Check(failed));
        }
    };
    let sense = Sense::not_ready(cause);
    // How far the medium is it does not say, but that is no reason to leave the field out (SBC-4 clause 4.11.3).
    Err(Plan::Check(match unit.readiness {
        Readiness::Formatting | Readiness::Sanitizing { .. } => {
            sense.with_key_specific(KeySpecific::Progress(0))
        }
        _ => sense,
    }))
}

/// DATA PROTECT, unless the medium may be written.
pub(crate) fn check_writable(unit: &Unit) -> Result<(), Plan> {
    if !unit.is_write_protected() {
        return Ok(());
    }
    Err(Plan::Check(Sense::new(SenseKey::DataProtect, AdditionalSense::WRITE_PROTECTED)))
}

/// The answer where no unit stands behind the logical unit number (SPC-5 clause 6.7.2, SAM-6 clause 4.7.5).
///
/// INQUIRY says that nothing is there, REPORT LUNS what is, REQUEST SENSE gives the refusal as data. The well-known
/// unit REPORT LUNS is answered for here as well: those three and TEST UNIT READY are all it knows.
#[cold]
pub(crate) fn without_unit(lun: LunField, cdb: &[u8], reply: &mut Reply, units: u8) -> Plan {
    let refusal = Sense::illegal_request(AdditionalSense::LOGICAL_UNIT_NOT_SUPPORTED);
    let well_known = lun.lun() == Some(Lun::WellKnown(WellKnownLun::ReportLuns));
    let decision = match cdb.first().map(|&byte| OperationCode::from(byte)) {
        Some(OperationCode::Inquiry) => spc::inquire_without_unit(lun.lun(), reply, cdb),
        Some(OperationCode::ReportLuns) => spc::report_luns(reply, cdb, units),
        Some(OperationCode::RequestSense) if well_known => spc::report_sense(reply, cdb, &Sense::NONE),
        Some(OperationCode::RequestSense) => spc::report_sense(reply, cdb, &refusal),
        Some(OperationCode::TestUnitReady) if well_known => Ok(Plan::Good),
        Some(_) if well_known => Err(Sense::illegal_request(AdditionalSense::INVALID_COMMAND_OPERATION_CODE)),
        _ => Err(refusal),
    };
    decision.unwrap_or_else(Plan::Check)
}

/// The end of a command whose medium request failed. `extent` is what was asked for, `row` the command.
pub(crate) fn medium_failure(
    unit: Option<&mut Unit>,
    row: Option<&Row>,
    error: MediumError,
    extent: Extent,
) -> Plan {
    use AdditionalSense as Code;
    let sense = match error {
        MediumError::Unreadable { lba } => Sense::medium_error(Code::UNRECOVERED_READ_ERROR, lba.0),
        MediumError::Unwritable { lba } => Sense::medium_error(Code::WRITE_ERROR, lba.0),
        MediumError::OutOfSpace => {
            Sense::new(SenseKey::DataProtect, Code::SPACE_ALLOCATION_FAILED_WRITE_PROTECT)
        }
        MediumError::WriteProtected => Sense::new(SenseKey::DataProtect, Code::WRITE_PROTECTED),
        MediumError::Shrunk => Sense::medium_error(Code::UNRECOVERED_READ_ERROR, extent.lba.0),
        MediumError::Miscompare { offset } => {
            Sense::new(SenseKey::Miscompare, Code::MISCOMPARE_DURING_VERIFY_OPERATION)
                .with_information(offset.into())
        }
        MediumError::Absent => Sense::not_ready(Code::MEDIUM_NOT_PRESENT),
        MediumError::Unsupported => Sense::new(SenseKey::HardwareError, Code::INTERNAL_TARGET_FAILURE),
    };
    let Some(unit) = unit else { return Plan::Check(sense) };
    unit.logs.record_failure(error);
    match (unit.readiness, row.map(|row| row.opcode)) {
        // What is not written is as it was.
        (Readiness::Formatting, Some(OperationCode::FormatUnit)) => unit.readiness = Readiness::Ready,
        (Readiness::Sanitizing { unrestricted_exit }, Some(OperationCode::Sanitize)) => {
            if let Some(before) = unit.sanitizing.withdraw() {
                unit.readiness = before;
                return Plan::Check(sense);
            }
            // Whatever the cause, that is what the host is told (SBC-4 clause 4.11.4).
            unit.readiness = Readiness::SanitizeFailed { unrestricted_exit };
            let failed = Sense::new(SenseKey::MediumError, Code::SANITIZE_COMMAND_FAILED);
            return Plan::Check(Sense { information: sense.information, ..failed });
        }
        _ => {}
    }
    Plan::Check(sense)
}

/// A command that units of this kind do not have is like one that does not exist.
const fn offered(unit: &Unit, row: &'static Row) -> Result<&'static Row, Unsupported> {
    if row.is_offered(&unit.config) { Ok(row) } else { Err(Unsupported::OperationCode) }
}

#[cold]
fn unsupported(reason: Unsupported) -> Plan {
    Plan::Check(match reason {
        Unsupported::OperationCode => Sense::illegal_request(AdditionalSense::INVALID_COMMAND_OPERATION_CODE),
        Unsupported::ServiceAction => Sense::invalid_field_in_cdb(1, Some(4)),
        Unsupported::CdbLength => Sense::illegal_request(AdditionalSense::INVALID_FIELD_IN_CDB),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{BlockCount, Lba};
    use wire::scsi::sense::SenseFormat;

    /// VALID and response code, sense key, INFORMATION, additional sense code and qualifier, in fixed format.
    fn told(error: MediumError) -> (u8, u8, [u8; 4], [u8; 2]) {
        let extent = Extent { lba: Lba(0x100), blocks: BlockCount(8) };
        let Plan::Check(sense) = medium_failure(None, None, error, extent) else { panic!("no sense data") };
        let mut bytes = [0; 18];
        sense.encode(SenseFormat::Fixed, &mut bytes).unwrap();
        (bytes[0], bytes[2], [bytes[3], bytes[4], bytes[5], bytes[6]], [bytes[12], bytes[13]])
    }

    #[test]
    fn each_failure_of_a_medium_has_its_sense_data() {
        let none = [0; 4];
        for (error, expected) in [
            (MediumError::Unreadable { lba: Lba(0x102) }, (0xf0, 0x03, [0, 0, 1, 2], [0x11, 0x00])),
            (MediumError::Unwritable { lba: Lba(0x102) }, (0xf0, 0x03, [0, 0, 1, 2], [0x0c, 0x00])),
            (MediumError::OutOfSpace, (0x70, 0x07, none, [0x27, 0x07])),
            (MediumError::WriteProtected, (0x70, 0x07, none, [0x27, 0x00])),
            (MediumError::Shrunk, (0xf0, 0x03, [0, 0, 1, 0], [0x11, 0x00])),
            (MediumError::Miscompare { offset: 5 }, (0xf0, 0x0e, [0, 0, 0, 5], [0x1d, 0x00])),
            (MediumError::Absent, (0x70, 0x02, none, [0x3a, 0x00])),
            (MediumError::Unsupported, (0x70, 0x04, none, [0x44, 0x00])),
        ] {
            assert_eq!(told(error), expected, "{error:?}");
        }
    }
}
