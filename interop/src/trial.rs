//! A test that ends as ignored, with the reason, when what it needs cannot be reached: never as passed.

use libtest_mimic::{Completion, Trial};

use crate::{Error, Result};

/// A test; a slow one runs with `--include-ignored` only.
pub fn trial(name: String, is_slow: bool, run: impl FnOnce() -> Result<()> + Send + 'static) -> Trial {
    let judged = move || match run() {
        Ok(()) => Ok(Completion::Completed),
        Err(error @ Error::Unreachable { .. }) => {
            Ok(Completion::ignored_with(error.to_string().replace('\n', " ")))
        }
        Err(error) => Err(error.into()),
    };
    Trial::ignorable_test(name, judged).with_ignored_flag(is_slow)
}
