//! Tables of text, fitted to the width of a terminal.
//!
//! A table that is too wide becomes narrower in this order, until it fits: heads and text columns break into several lines; columns
//! that matter less are left out, and [`Fitted`] names them; the rest is split into blocks that repeat the key columns. A table of
//! numbers leaves columns out before it breaks cells ([`TextTable::keeps_lines`]). Widths count characters. Not handled here: colours,
//! and characters that take two places.
//!
//! Invariant: a fitted table is no wider than asked for, unless its key columns and a single other one are too wide already.

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle, presets};

/// A table: heads, and rows of cells below them.
#[derive(Clone, Debug, Default)]
pub struct TextTable {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Columns of words, aligned to the left; numbers are aligned to the right.
    left: Vec<usize>,
    /// Columns whose cells may break into lines.
    breaking: Vec<usize>,
    /// Columns that each block begins with.
    keys: usize,
    /// Columns that may be left out, the least important first.
    left_out_first: Vec<usize>,
    is_open: bool,
    keeps_lines: bool,
}

/// Parts of a table that may break into lines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Breaks {
    /// Heads alone.
    Heads,
    /// Heads, and cells of words.
    Cells,
}

/// A table as it is printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fitted {
    /// Its lines, without a line feed at the end.
    pub text: String,
    /// Heads of the columns that it has no room for.
    pub left_out: Vec<String>,
}

/// The longest word that a column of text is kept wide enough for.
const WORD_MAX: usize = 16;

impl TextTable {
    /// A table with these heads and no rows, framed. The first column is its key and has words.
    pub fn new<T: Into<String>>(heads: impl IntoIterator<Item = T>) -> Self {
        let heads = heads.into_iter().map(Into::into).collect();
        Self { heads, keys: 1, left: vec![0], breaking: vec![0], ..Self::default() }
    }

    /// Without a frame: a line below the heads is all.
    #[must_use]
    pub fn open(self) -> Self {
        Self { is_open: true, ..self }
    }

    /// With these columns as words, aligned to the left, whose cells may break into lines.
    #[must_use]
    pub fn words(mut self, columns: impl IntoIterator<Item = usize>) -> Self {
        let columns: Vec<usize> = columns.into_iter().collect();
        (self.left, self.breaking) = (columns.clone(), columns);
        self
    }

    /// With these columns as names, aligned to the left, which do not break.
    #[must_use]
    pub fn names(mut self, columns: impl IntoIterator<Item = usize>) -> Self {
        for column in columns {
            self.breaking.retain(|breaking| *breaking != column);
            self.left.push(column);
        }
        self
    }

    /// With so many columns at the beginning of each block.
    #[must_use]
    pub fn keys(self, keys: usize) -> Self {
        Self { keys, ..self }
    }

    /// With columns that may be left out, by their heads, the least important first.
    #[must_use]
    pub fn leave_out_first(mut self, heads: &[&str]) -> Self {
        let place = |head: &&str| self.heads.iter().position(|own| own == head);
        self.left_out_first = heads.iter().filter_map(place).collect();
        self
    }

    /// Adds a row; cells that are missing at its end are empty.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let mut cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        cells.resize(self.heads.len(), String::new());
        self.rows.push(cells);
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Leaves columns out before it breaks cells into lines: for tables of numbers.
    #[must_use]
    pub fn keeps_lines(self) -> Self {
        Self { keeps_lines: true, ..self }
    }

    /// The table in so many columns of a terminal; `None` has room for everything.
    pub fn fitted(&self, width: Option<usize>) -> Fitted {
        let all: Vec<usize> = (0..self.heads.len()).collect();
        let Some(width) = width else {
            return Fitted { text: self.drawn(&all, &self.natural(&all)), left_out: Vec::new() };
        };
        let whole = if self.keeps_lines { self.shown(Breaks::Heads, width) } else { None };
        let (breaks, left_out) = match whole {
            Some(left_out) => (Breaks::Heads, left_out),
            None => (Breaks::Cells, self.shown(Breaks::Cells, width).unwrap_or(&self.left_out_first)),
        };
        let shown: Vec<usize> = all.into_iter().filter(|column| !left_out.contains(column)).collect();
        let (blocks, breaks) = self.blocks(&shown, breaks, width);
        let text = blocks.iter().map(|block| self.drawn(block, &self.shrunk(block, breaks, width)));
        let left_out = left_out.iter().map(|column| self.heads[*column].clone()).collect();
        Fitted { text: text.collect::<Vec<_>>().join("\n"), left_out }
    }

    /// As few columns to leave out as there is room for the rest; none if there is no room without all of them.
    fn shown(&self, breaks: Breaks, width: usize) -> Option<&[usize]> {
        let left_out = (0..=self.left_out_first.len()).map(|count| &self.left_out_first[..count]);
        left_out.into_iter().find(|left_out| {
            let shown: Vec<usize> =
                (0..self.heads.len()).filter(|column| !left_out.contains(column)).collect();
            self.least(&shown, breaks) <= width
        })
    }

    /// All columns in one block if they fit so, else in several, with cells that stay whole if that takes no more blocks.
    fn blocks(&self, shown: &[usize], breaks: Breaks, width: usize) -> (Vec<Vec<usize>>, Breaks) {
        if self.least(shown, breaks) <= width {
            return (vec![shown.to_vec()], breaks);
        }
        let split = |breaks| self.split(shown, breaks, width);
        let (whole, broken) = (split(Breaks::Heads), split(Breaks::Cells));
        let fits = whole.iter().all(|block| self.least(block, Breaks::Heads) <= width);
        match fits && whole.len() <= broken.len() {
            true => (whole, Breaks::Heads),
            false => (broken, Breaks::Cells),
        }
    }

    /// Columns in blocks that each fit and begin with the key columns.
    fn split(&self, shown: &[usize], breaks: Breaks, width: usize) -> Vec<Vec<usize>> {
        let (keys, others) = shown.split_at(self.keys.min(shown.len()));
        let mut blocks = vec![keys.to_vec()];
        for column in others {
            let Some(block) = blocks.last_mut() else { break };
            block.push(*column);
            if block.len() > keys.len() + 1 && self.least(block, breaks) > width {
                block.pop();
                blocks.push([keys, &[*column]].concat());
            }
        }
        blocks
    }

    /// The width of each column where nothing breaks.
    fn natural(&self, columns: &[usize]) -> Vec<usize> {
        columns.iter().map(|column| self.cells(*column).map(length).max().unwrap_or(0)).collect()
    }

    /// The least width of each column: that of its longest word if it may break, else of its longest cell.
    fn narrow(&self, columns: &[usize], breaks: Breaks) -> Vec<usize> {
        let longest_word = |text: &str| text.split(' ').map(length).max().unwrap_or(0);
        let of = |column: &usize| {
            let rows = self.rows.iter().map(|row| row[*column].as_str());
            let head = longest_word(&self.heads[*column]);
            let cells = match breaks == Breaks::Cells && self.breaking.contains(column) {
                true => rows.map(longest_word).max().unwrap_or(0).min(WORD_MAX),
                false => rows.map(length).max().unwrap_or(0),
            };
            cells.max(head)
        };
        columns.iter().map(of).collect()
    }

    /// The least width of a table of some columns.
    fn least(&self, columns: &[usize], breaks: Breaks) -> usize {
        self.narrow(columns, breaks).iter().sum::<usize>() + self.frame(columns.len())
    }

    /// Widths of columns with which they fit: the widest ones that can give way do.
    fn shrunk(&self, columns: &[usize], breaks: Breaks, width: usize) -> Vec<usize> {
        let (mut widths, narrow) = (self.natural(columns), self.narrow(columns, breaks));
        let room = width.saturating_sub(self.frame(columns.len()));
        while widths.iter().sum::<usize>() > room {
            let can_give = (0..widths.len()).filter(|place| widths[*place] > narrow[*place]);
            let Some(widest) = can_give.max_by_key(|place| widths[*place]) else { break };
            widths[widest] -= 1;
        }
        widths
    }

    /// Returns the characters around the contents of so many columns.
    fn frame(&self, columns: usize) -> usize {
        if self.is_open { (3 * columns).saturating_sub(1) } else { 3 * columns + 1 }
    }

    fn cells(&self, column: usize) -> impl Iterator<Item = &str> {
        [self.heads[column].as_str()].into_iter().chain(self.rows.iter().map(move |row| row[column].as_str()))
    }

    fn drawn(&self, columns: &[usize], widths: &[usize]) -> String {
        let mut table = Table::new();
        if self.is_open {
            table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')));
        } else {
            table.load_style(presets::UTF8_FULL_CONDENSED);
        }
        let broken = |cells: &[String]| -> Vec<String> {
            let each = columns.iter().zip(widths);
            each.map(|(column, width)| lines(&cells[*column], *width).join("\n")).collect()
        };
        table.set_header(broken(&self.heads));
        for row in &self.rows {
            table.add_row(broken(row));
        }
        for (column, drawn) in columns.iter().zip(table.column_iter_mut()) {
            if !self.left.contains(column) {
                drawn.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.to_string()
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// A text in lines of at most so many characters, broken at spaces, and within a word that is longer.
fn lines(text: &str, width: usize) -> Vec<String> {
    if length(text) <= width || width == 0 {
        return vec![text.to_owned()];
    }
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let signs: Vec<char> = word.chars().collect();
        for (number, piece) in signs.chunks(width).enumerate() {
            let Some(line) = lines.last_mut() else { break };
            let space = usize::from(number == 0 && !line.is_empty());
            if length(line) + space + piece.len() > width {
                lines.push(piece.iter().collect());
            } else {
                line.extend([' '].iter().take(space));
                line.extend(piece);
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn width(text: &str) -> usize {
        text.lines().map(length).max().unwrap_or(0)
    }

    fn table() -> TextTable {
        let heads = ["job", "depth", "IOPS before", "IOPS after", "ratio"];
        let mut table = TextTable::new(heads).keys(2).leave_out_first(&["IOPS before", "IOPS after"]);
        table.row(["4K random read, 70 % read", "1", "1000.0", "2000.0", "2.00 (1.50 to 2.50)"]);
        table.row(["2M sequential write", "32", "10.0", "20.0", "2.00"]);
        table
    }

    #[test]
    fn without_a_width_nothing_is_left_out_or_broken() {
        let Fitted { text, left_out } = table().fitted(None);
        assert!(left_out.is_empty() && text.contains("4K random read, 70 % read"), "{text}");
        assert_eq!(table().fitted(Some(width(&text))).text, text);
    }

    #[test]
    fn words_break_first_then_columns_go_and_the_ratio_stays() {
        let wide = width(&table().fitted(None).text);
        let broken = table().fitted(Some(wide - 10));
        assert!(broken.left_out.is_empty() && width(&broken.text) <= wide - 10, "{}", broken.text);
        let narrow = table().fitted(Some(56));
        assert_eq!(narrow.left_out, ["IOPS before"], "{}", narrow.text);
        assert!(width(&narrow.text) <= 56 && narrow.text.contains("2.00 (1.50 to 2.50)"), "{}", narrow.text);
        let narrower = table().fitted(Some(45));
        assert_eq!(narrower.left_out, ["IOPS before", "IOPS after"], "{}", narrower.text);
        assert!(narrower.text.contains("2.00 (1.50 to 2.50)"), "{}", narrower.text);
    }

    #[test]
    fn a_table_of_numbers_leaves_columns_out_before_it_breaks_cells() {
        let numbers = table().keeps_lines();
        let wide = width(&numbers.fitted(None).text);
        let narrow = numbers.fitted(Some(wide - 10));
        assert_eq!(narrow.left_out, ["IOPS before"], "{}", narrow.text);
        assert!(narrow.text.contains("4K random read, 70 % read"), "{}", narrow.text);
        // Where that is not enough cells break after all.
        let narrower = numbers.fitted(Some(45));
        assert!(
            width(&narrower.text) <= 45 && narrower.text.contains("2.00 (1.50 to 2.50)"),
            "{}",
            narrower.text
        );
    }

    #[test]
    fn what_cannot_be_left_out_is_split_into_blocks_with_the_keys() {
        let ways = (0..9).map(|way| format!("way-number-{way}"));
        let mut table = TextTable::new(["".to_owned(), "depth".to_owned()].into_iter().chain(ways)).keys(2);
        table.row(["reads", "32"].map(str::to_owned).into_iter().chain((0..9).map(|way| format!("{way}.5"))));
        for columns in [60, 80] {
            let Fitted { text, left_out } = table.fitted(Some(columns));
            assert!(left_out.is_empty() && width(&text) <= columns, "{text}");
            assert!((0..9).all(|way| text.contains(&format!("way-number-{way}"))), "{text}");
            assert!(text.matches("reads").count() > 1, "{text}");
        }
    }

    #[test]
    fn a_table_without_a_frame_fits_as_well() {
        let open = table().open();
        let natural = width(&open.fitted(None).text);
        assert!(natural < width(&table().fitted(None).text) && !open.fitted(None).text.contains('│'));
        for columns in 42..natural {
            let Fitted { text, .. } = open.fitted(Some(columns));
            assert!(width(&text) <= columns, "{columns}: {text}");
        }
    }

    #[test]
    fn lines_break_at_spaces_and_within_long_words_alone() {
        assert_eq!(lines("4K random read", 9), ["4K random", "read"]);
        assert_eq!(lines("a linux-uas-6.14", 6), ["a", "linux-", "uas-6.", "14"]);
        assert_eq!(lines("short", 9), ["short"]);
    }

    proptest! {
        #[test]
        fn lines_lose_no_letter_and_are_short_enough(text in "[a-zµ ]{0,40}", width in 1_usize..12) {
            let lines = lines(&text, width);
            let letters = |text: &str| text.replace(' ', "");
            prop_assert_eq!(letters(&lines.concat()), letters(&text));
            prop_assert!(lines.len() == 1 || lines.iter().all(|line| length(line) <= width));
        }
    }
}
