//! Tables of figures: a head, and columns that end at the right.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

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

/// Columns of a table with long texts, where nobody says how wide a line may be.
const WIDTH: u16 = 120;

/// One with a head alone, whose texts are broken into lines.
pub(crate) fn wrapped(header: &[&str]) -> Table {
    let mut table = empty(header);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    if table.width().is_none() {
        table.set_width(WIDTH);
    }
    table
}
