//! Commands of every device (SPC-5): one file each.
//!
//! Reserved bits of a CDB are not looked at, as SPC-5 clause 3.3 permits, except in INQUIRY, where a host that
//! sets the obsolete CMDDT wants another answer.

pub(super) mod inquiry;
pub(super) mod log_select;
pub(super) mod log_sense;
pub(super) mod mode_select;
pub(super) mod mode_sense;
pub(super) mod read_buffer;
pub(super) mod receive_diagnostic_results;
pub(super) mod report_luns;
pub(super) mod report_supported_operation_codes;
pub(super) mod report_supported_task_management_functions;
pub(super) mod request_sense;
pub(super) mod send_diagnostic;
pub(super) mod test_unit_ready;
mod vital_product_data;
pub(super) mod write_buffer;

use super::plan::{Decision, fetch_list, fields, settle};
use super::{LogicalUnit, Plan, Readiness};
pub(super) use inquiry::inquire_without_unit;
pub(super) use report_luns::report_luns;
pub(super) use request_sense::report_sense;
use wire::scsi::sense::Sense;

/// NOT READY while FORMAT UNIT or SANITIZE runs (SBC-4 clauses 5.4 and 4.11): the unit is not to be changed then,
/// though it may be stopped or empty.
fn check_undisturbed(unit: &LogicalUnit) -> Result<(), Sense> {
    match (unit.readiness, unit.check_ready()) {
        (Readiness::Formatting | Readiness::Sanitizing { .. }, Err(Plan::Check(sense))) => Err(sense),
        _ => Ok(()),
    }
}
