//! Standard output that nobody reads any more, as of `uaskit … | head`.
//!
//! `println!` panics there. That is no fault of the program: it ends, quietly and well, and everything is put back on
//! the way out, as with any other unwinding: a drive's own driver, temporary files.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};

/// Does something; `None` if nobody read its output to the end.
pub(crate) fn or_closed<T>(run: impl FnOnce() -> T) -> Option<T> {
    let told = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if !is_closed(panic.payload()) {
            told(panic);
        }
    }));
    // What it has touched is not looked at again: the program ends.
    match panic::catch_unwind(AssertUnwindSafe(run)) {
        Ok(done) => Some(done),
        Err(payload) if is_closed(&*payload) => None,
        Err(payload) => panic::resume_unwind(payload),
    }
}

/// The words of `std::io::print`, which has no type for it.
fn is_closed(payload: &(dyn Any + Send)) -> bool {
    let words = payload.downcast_ref::<String>().map_or("", String::as_str);
    words.starts_with("failed printing to stdout") && words.contains("Broken pipe")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_words_of_a_closed_pipe_are_taken_for_it() {
        let closed = "failed printing to stdout: Broken pipe (os error 32)".to_owned();
        assert!(is_closed(&closed));
        assert!(!is_closed(&"failed printing to stdout: No space left on device".to_owned()));
        assert!(!is_closed(&"index out of bounds"));
    }
}
