//! Commands to a logical unit number without a logical unit (SPC-5 clause 6.7.2, SAM-6 clause 4.7.5).

use super::{Plan, Reply, spc};
use wire::scsi::lun::{Lun, LunField, WellKnownLun};
use wire::scsi::opcode::OperationCode;
use wire::scsi::sense::{AdditionalSense, Sense};

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
