//! Commands of every device (SPC-5): one file each.

mod test_unit_ready;

use super::table::Row;

/// The family's rows.
pub const ROWS: &[Row] = &[test_unit_ready::ROW];
