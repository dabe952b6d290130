//! Standard output, or standard error, that takes nothing any more.
//!
//! `println!` panics there. Nobody reads any more, as of `uaskit … | head`: that is no fault, and the program ends quietly and well. A full
//! disk is one, and it is told. Everything is put back on the way out, as with any other unwinding: a drive's own driver, temporary files.
//! What is told on standard error, by [`aside!`], is for whoever looks: it changes neither what is done nor the exit code.

use crate::failure::Failure;
use crate::harmless::tame_lines;
use std::any::Any;
use std::fmt;
use std::io::Write;
use std::panic::{self, AssertUnwindSafe};

/// A line on standard error, as `eprintln!` prints it; where it cannot be printed, it is not. Names of files and of things in them may
/// have anything in them, and come out harmless; lines are ours.
macro_rules! aside {
    ($($words:tt)*) => { $crate::unprinted::tell(format_args!($($words)*)) };
}
pub(crate) use aside;

/// See [`aside!`].
pub(crate) fn tell(line: fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr().lock(), "{}", tame_lines(&line.to_string()));
}

/// Does something; `None` if nobody read its output to the end, a failure if that could not be written.
pub(crate) fn or_told<T>(run: impl FnOnce() -> T) -> Result<Option<T>, Failure> {
    let told = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if reason(panic.payload()).is_none() {
            told(panic);
        }
    }));
    // What it has touched is not looked at again: the program ends.
    match panic::catch_unwind(AssertUnwindSafe(run)) {
        Ok(done) => Ok(Some(done)),
        Err(payload) => match reason(&*payload) {
            Some(why) if why.contains("Broken pipe") => Ok(None),
            Some(why) => Err(Failure::new("standard output cannot be written").because(why)),
            None => panic::resume_unwind(payload),
        },
    }
}

/// Why nothing can be printed, in the words of `std::io::print`, which has no type for it.
fn reason(payload: &(dyn Any + Send)) -> Option<&str> {
    payload.downcast_ref::<String>()?.strip_prefix("failed printing to stdout: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_words_of_print_are_taken_for_it() {
        let closed = "failed printing to stdout: Broken pipe (os error 32)".to_owned();
        assert_eq!(reason(&closed), Some("Broken pipe (os error 32)"));
        assert_eq!(reason(&"index out of bounds"), None);
        assert_eq!(reason(&"index out of bounds".to_owned()), None);
    }
}
