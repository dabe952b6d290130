//! Tables of figures: a head, and columns that end at the right.

use comfy_table::{CellAlignment, Table, presets};

/// One with a head alone.
pub(crate) fn empty(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(header);
    table
}

/// The same with all columns at the right.
pub(crate) fn aligned(mut table: Table) -> Table {
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
