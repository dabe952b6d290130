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

/// Columns of the terminal on standard output; `None` if it is not a terminal.
pub(crate) fn terminal_columns() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(width.0.into())
}
