//! A path in backticks in a document exists: the walks of docs/ARCHITECTURE.md name real files.
//!
//! A path is recognised by its first folder, which is one at the top of the repository. A pattern (`*`, `TARGET`)
//! is no path.

use crate::tidy::finding::{Finding, Rule};
use std::collections::BTreeSet;

const FOLDERS: &[&str] = &["crates/", "docs/", "fuzz/", "interop/", "xtask/"];

/// Paths in a document that are not there. `files` are all files of the repository.
pub(crate) fn of_document(path: &str, text: &str, files: &BTreeSet<&str>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        // Every second piece between backticks is inside them.
        for named in line.split('`').skip(1).step_by(2).filter(|named| is_path(named)) {
            let folder = format!("{}/", named.trim_end_matches('/'));
            let exists = files.contains(named) || files.iter().any(|file| file.starts_with(&folder));
            if !exists {
                let advice = format!("{named} is not there; name the file that is");
                findings.push(Finding::new(path, index + 1, Rule::Document, advice).about(named));
            }
        }
    }
    findings
}

fn is_path(named: &str) -> bool {
    let is_pattern = named.contains(['*', ' ', '{', '<']) || named.contains("TARGET");
    // What is made while working is named in documents and not in the repository.
    let is_made = ["fuzz/corpus", "fuzz/artifacts", "fuzz/target"].iter().any(|made| named.starts_with(made));
    FOLDERS.iter().any(|folder| named.starts_with(folder)) && !is_pattern && !is_made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let files = BTreeSet::from(["crates/bus/src/lib.rs", "docs/STYLE.md"]);
        of_document("a.md", text, &files).into_iter().map(|finding| finding.subject).collect()
    }

    #[test]
    fn a_file_that_is_gone_is_found() {
        assert_eq!(found("see `crates/bus/src/gone.rs` and `docs/STYLE.md`"), ["crates/bus/src/gone.rs"]);
    }

    #[test]
    fn a_folder_is_there_if_a_file_is_in_it() {
        assert_eq!(found("`crates/bus/` and `crates/bus/src`"), [""; 0]);
        assert_eq!(found("`crates/busy/`"), ["crates/busy/"]);
    }

    #[test]
    fn other_words_and_patterns_are_no_paths() {
        assert_eq!(
            found("`cargo xtask test`, `fuzz/seeds/TARGET`, `crates/*/src`, `target/device`"),
            [""; 0]
        );
    }
}
