//! Arguments of `--save`, for `bench` and `compare`.
//!
//! Left out: the file of runs, which [`crate::save`] opens.

use crate::sanitize::is_printable;
use clap::Args;
use records::Selector;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct SaveArguments {
    /// Save the run for `uaskit history` and `uaskit diff`: --save=FILE, or --save for uaskit/runs.sqlite in your data folder.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pub(crate) save: Option<Option<PathBuf>>,
    /// Label of the saved run: `uaskit history TEXT` finds it.
    #[arg(long, value_name = "TEXT", value_parser = label)]
    pub(crate) label: Option<String>,
}

/// The longest label in characters, so that it fits a table.
const LABEL_MAX: usize = 60;

/// A label that cannot be confused with a number or a position.
fn label(text: &str) -> Result<String, String> {
    let signs = text.chars().count();
    let selector = text.parse::<Selector>();
    match () {
        () if text.trim().is_empty() => Err("a label cannot be empty; leave --label out".into()),
        () if signs > LABEL_MAX => Err(format!("{signs} characters are too many (maximum {LABEL_MAX})")),
        () if !text.chars().all(is_printable) => Err("a label cannot contain control characters".into()),
        () if text.parse::<i64>().is_ok() => {
            Err("a label cannot be a number, which selects a run by its number".into())
        }
        () if matches!(selector, Ok(Selector::Last(_))) => {
            Err(format!("a label cannot be `{text}`, which selects a run by its position"))
        }
        () => Ok(text.to_owned()),
    }
}

impl SaveArguments {
    /// Whether the run is to be saved.
    pub(crate) const fn is_asked(&self) -> bool {
        self.save.is_some()
    }

    /// The file that is named, if one is.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.save.as_ref()?.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_one_that_finds_its_run() {
        assert_eq!(label("firmware 1.2"), Ok("firmware 1.2".into()));
        for wrong in ["", " ", "3", "-7", "last", "last~2", "a\nb", "a\u{202e}b", &"x".repeat(61)] {
            assert!(label(wrong).is_err(), "{wrong:?}");
        }
    }
}
