//! Messages on standard error.
//!
//! A message that cannot be written is dropped: it changes neither the result nor the exit code.

use crate::sanitize::escape_lines;
use std::fmt;
use std::io::Write;

/// Prints a line on standard error, with control characters escaped.
macro_rules! message {
    ($($text:tt)*) => { $crate::messages::print(format_args!($($text)*)) };
}
pub(crate) use message;

/// Prints a line for [`message!`].
pub(crate) fn print(line: fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr().lock(), "{}", escape_lines(&line.to_string()));
}
