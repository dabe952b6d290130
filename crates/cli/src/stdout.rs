//! Writes to standard output, and asks for the width of its terminal.

use crate::failure::Failure;
use std::io::Write;

/// Columns of the terminal that is written to; `None` if it is none.
pub(crate) fn terminal_columns() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(std::io::stdout())?;
    Some(width.0.into())
}

/// Prints all at once; a reader that is gone is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new("cannot print").because(error))
        }
        _ => Ok(()),
    }
}
