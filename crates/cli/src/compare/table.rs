//! Tables of figures as they are printed: fitted to the terminal, with what it has no room for named below.
//!
//! How a table becomes narrower is for [`report::TextTable`] to say. Left out: pages, which scroll.

use crate::stdout::terminal_columns;
use report::{Fitted, TextTable};

/// Columns of a table with long texts, where the output is not a terminal.
const TEXT_COLUMNS: usize = 120;

/// A table in the width of the terminal; elsewhere as wide as it is.
pub(crate) fn fitted(table: &TextTable) -> String {
    in_columns(table, terminal_columns())
}

/// The same of a table with long texts, which break into lines elsewhere, too.
pub(crate) fn wrapped(table: &TextTable) -> String {
    in_columns(table, Some(terminal_columns().unwrap_or(TEXT_COLUMNS)))
}

/// A table in so many columns.
pub(crate) fn in_columns(table: &TextTable, columns: Option<usize>) -> String {
    let Fitted { text, left_out } = table.fitted(columns);
    match left_out.as_slice() {
        [] => text,
        names => {
            format!("{text}\nNot shown: {}; use a wider terminal or --json.", names.join(", "))
        }
    }
}
