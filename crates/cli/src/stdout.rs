//! Standard output: a writer whose errors are failures of the command, and the width of the terminal.
//!
//! A reader that closes the pipe ends the program quietly ([`Failure::is_closed_pipe`]); any other error is reported.

use crate::failure::Failure;
use std::fmt;
use std::io::{self, Write};

/// The standard output of a command. `writeln!` to it returns a [`Failure`].
pub(crate) struct Output<'a> {
    writer: &'a mut dyn Write,
}

impl<'a> Output<'a> {
    pub(crate) fn new(writer: &'a mut dyn Write) -> Self {
        Self { writer }
    }

    /// Formats for `write!` and `writeln!`.
    pub(crate) fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> Result<(), Failure> {
        self.writer.write_fmt(text).map_err(Failure::output)
    }

    /// Writes a text and flushes it.
    pub(crate) fn print(&mut self, text: &str) -> Result<(), Failure> {
        self.writer.write_all(text.as_bytes()).map_err(Failure::output)?;
        self.flush()
    }

    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.writer.flush().map_err(Failure::output)
    }
}

/// Breaks a paragraph between words to fit the terminal; further lines begin with `indent`. Elsewhere it stays one line.
pub(crate) fn wrapped(paragraph: &str, indent: &str) -> String {
    terminal_columns().map_or_else(|| paragraph.to_owned(), |columns| broken(paragraph, indent, columns))
}

/// Breaks a paragraph between words into lines of at most `columns`; further lines begin with `indent`.
pub(crate) fn broken(paragraph: &str, indent: &str, columns: usize) -> String {
    let mut text = String::new();
    let (mut used, mut has_word) = (0, false);
    for word in paragraph.split_inclusive(' ') {
        let length = word.trim_end().chars().count();
        if has_word && used + length > columns {
            text.truncate(text.trim_end().len());
            text += &format!("\n{indent}");
            (used, has_word) = (indent.chars().count(), false);
        }
        text += word;
        used += word.chars().count();
        has_word |= length > 0;
    }
    text
}

/// Columns of the terminal on standard output; `None` if it is not a terminal.
pub(crate) fn terminal_columns() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(width.0.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_breaks_between_words_and_loses_none() {
        assert_eq!(broken("- one two three", "  ", 9), "- one two\n  three");
        assert_eq!(broken("- one two three", "  ", 15), "- one two three");
        assert_eq!(broken("    unbreakable a", "    ", 5), "    unbreakable\n    a");
    }
}
