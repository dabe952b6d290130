//! Arguments of `--save`, for `bench` and `compare`.
//!
//! Left out: the file of runs, which [`crate::save`] opens.

use crate::sanitize::is_printable;
use clap::Args;
use records::Selector;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct SaveArguments {
    /// Keep the figures in a file of runs, for `uaskit history` and `uaskit diff`: --save=FILE, or in your data folder.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pub(crate) save: Option<Option<PathBuf>>,
    /// What the run is called there: `uaskit history before` finds it by that.
    #[arg(long, value_name = "TEXT", requires = "save", value_parser = label)]
    pub(crate) label: Option<String>,
}

/// The longest label, in characters: a table has room for it.
const LABEL_MAX: usize = 60;

/// A name by which a run can be found: none that stands for another one already.
fn label(text: &str) -> Result<String, String> {
    let signs = text.chars().count();
    let selector = text.parse::<Selector>();
    match () {
        () if text.trim().is_empty() => Err("a run without a name is saved by --save alone".into()),
        () if signs > LABEL_MAX => Err(format!("it has {signs} characters, and {LABEL_MAX} are the most")),
        () if !text.chars().all(is_printable) => Err("it has control characters".into()),
        () if text.parse::<i64>().is_ok() => Err("a number calls the run of that number".into()),
        () if matches!(selector, Ok(Selector::Last(_))) => {
            Err(format!("`{text}` calls a run by its place from the end"))
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
