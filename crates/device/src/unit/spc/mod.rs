//! Commands of every device (SPC-5): one file each.
//!
//! Reserved bits of a CDB are not looked at, as SPC-5 clause 3.3 permits, except in INQUIRY, where a host that
//! sets the obsolete CMDDT wants another answer.

mod inquiry;
mod log_select;
mod log_sense;
mod mode_select;
mod mode_sense;
mod read_buffer;
mod receive_diagnostic_results;
mod report_luns;
mod report_supported_operation_codes;
mod report_supported_task_management_functions;
mod request_sense;
mod send_diagnostic;
mod test_unit_ready;
mod vital_product_data;
mod write_buffer;

use super::table::Row;
use super::{PARAMETER_BYTES_MAX, Plan, Readiness, Unit, gate};
pub(super) use inquiry::inquire_without_unit;
pub(super) use report_luns::report_luns;
pub(super) use request_sense::report_sense;
use wire::DecodeError;
use wire::scsi::sense::{AdditionalSense, Sense};

/// The family's rows.
pub const ROWS: &[Row] = &[
    test_unit_ready::ROW,
    request_sense::ROW,
    inquiry::ROW,
    mode_select::ROW_6,
    mode_sense::ROW_6,
    receive_diagnostic_results::ROW,
    send_diagnostic::ROW,
    write_buffer::ROW,
    read_buffer::ROW,
    log_select::ROW,
    log_sense::ROW,
    mode_select::ROW_10,
    mode_sense::ROW_10,
    report_luns::ROW,
    report_supported_operation_codes::ROW,
    report_supported_task_management_functions::ROW,
];

/// A plan, or the sense data that ends the command instead.
pub(super) type Decision = Result<Plan, Sense>;

/// The plan of a decision.
pub(super) fn settle(decision: Decision) -> Plan {
    decision.unwrap_or_else(Plan::Check)
}

/// The fields of a CDB. The table has seen to operation code and length, so nothing is refused here in fact.
pub(super) fn fields<T>(decoded: Result<T, DecodeError>) -> Result<T, Sense> {
    decoded.map_err(|_| Sense::illegal_request(AdditionalSense::INVALID_FIELD_IN_CDB))
}

/// Fetches a parameter list of a length that the CDB says at byte `length_field`.
pub(super) fn fetch_list(bytes: u32, length_field: u16) -> Decision {
    if bytes as usize > PARAMETER_BYTES_MAX {
        return Err(Sense::invalid_field_in_cdb(length_field, None));
    }
    Ok(Plan::List { bytes })
}

/// NOT READY while FORMAT UNIT or SANITIZE runs (SBC-4 clauses 5.4 and 4.11): the unit is not to be changed then,
/// though it may be stopped or empty.
fn check_undisturbed(unit: &Unit) -> Result<(), Sense> {
    match (unit.readiness, gate::check_ready(unit)) {
        (Readiness::Formatting | Readiness::Sanitizing { .. }, Err(Plan::Check(sense))) => Err(sense),
        _ => Ok(()),
    }
}
