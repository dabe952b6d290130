//! Subjects of commits since [`FIRST`]: `crate: imperative summary`, at most 60 characters, none of the words
//! that are not used.
//!
//! Skipped with a note where there is no `.git`, no `git` or no such commit, as in an archive or a shallow clone. Merges are left out.
//! Whether a summary is imperative is guessed from the ending of its first word.

use crate::tidy::{
    finding::{Finding, Rule},
    fragments::{Fragment, FragmentKind},
    word_list::WordList,
};
use std::{path::Path, process::Command};

/// The commit after which the rule holds. A clone has its hash, but not always a tag.
pub(crate) const FIRST: &str = "0f700cd1538a0c250b76078787c1ccc8cfc549b9";
const SUBJECT_CHARS_MAX: usize = 60;
/// Imperatives that end as another form of a verb would.
const IMPERATIVES: &[&str] =
    &["bring", "embed", "feed", "focus", "need", "ping", "seed", "shed", "speed", "string"];

/// Returns the findings in the subjects of the commits after `first`.
///
/// # Errors
/// Why they were not checked.
pub(crate) fn commits(root: &Path, first: &str, list: &WordList) -> Result<Vec<Finding>, String> {
    let log = subjects(root, first)?;
    let lines = log.lines().filter_map(|line| line.split_once(' '));
    Ok(lines
        .flat_map(|(hash, subject)| faults(list, subject).into_iter().map(move |advice| (hash, advice)))
        .map(|(hash, advice)| {
            Finding::new("commits", 1, Rule::Commit, format!("{hash}: {advice}")).about(hash)
        })
        .collect())
}

/// Hash and subject of each commit, one a line; otherwise why they cannot be read.
fn subjects(root: &Path, first: &str) -> Result<String, String> {
    if !root.join(".git").exists() {
        return Err("this is not a clone (no .git)".to_owned());
    }
    let git = |words: &[&str]| Command::new("git").current_dir(root).args(words).output();
    let commit = format!("{first}^{{commit}}");
    let known = git(&["rev-parse", "--quiet", "--verify", &commit]);
    if !known.map_err(|error| format!("cannot run git: {error}"))?.status.success() {
        return Err(format!("this clone has no commit {first}; to fetch it: git fetch --unshallow"));
    }
    let log = git(&["log", "--no-merges", "--format=%h %s", &format!("{first}..HEAD")]);
    let log = log.map_err(|error| format!("cannot run git: {error}"))?;
    if !log.status.success() {
        return Err(format!("git log failed: {}", String::from_utf8_lossy(&log.stderr).trim()));
    }
    String::from_utf8(log.stdout).map_err(|_| "a commit subject is not UTF-8".to_owned())
}

fn faults(list: &WordList, subject: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let chars = subject.chars().count();
    if chars > SUBJECT_CHARS_MAX {
        faults.push(format!("subject of {chars} characters, {SUBJECT_CHARS_MAX} at most"));
    }
    match subject.split_once(": ").filter(|(prefix, _)| is_prefix(prefix)) {
        None => {
            faults.push("begin the subject with `crate: `, or the name of a document or folder".to_owned())
        }
        Some((_, summary)) => {
            let first = summary.split(' ').next().unwrap_or_default();
            if !is_imperative(first) {
                faults.push(format!(
                    "\"{first}\": write the summary as an imperative, as in \"reject a client\""
                ));
            }
        }
    }
    let fragment = Fragment { kind: FragmentKind::Prose, line: 1, text: subject.to_owned() };
    faults.extend(list.hits(&fragment).into_iter().map(|hit| hit.advice));
    faults
}

fn is_prefix(prefix: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c))
    };
    prefix.split(", ").all(is_part)
}

fn is_imperative(word: &str) -> bool {
    let inflected =
        word.ends_with("ed") || word.ends_with("ing") || word.ends_with('s') && !word.ends_with("ss");
    let begins_small = word.starts_with(|c: char| c.is_lowercase());
    begins_small && (!inflected || IMPERATIVES.contains(&word)) && !["a", "an", "the"].contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number_of_faults(subject: &str) -> usize {
        let list = WordList::parse(include_str!("../../../tidy-words.toml")).expect("valid");
        faults(&list, subject).len()
    }

    #[test]
    fn a_plain_subject_is_fine() {
        for subject in
            ["server: reject a second client", "docs/STYLE.md: name the checks", "bus, wire: address LUN 16"]
        {
            assert_eq!(number_of_faults(subject), 0, "{subject}");
        }
    }

    #[test]
    fn each_fault_is_found() {
        let long = format!("bus: {}", "x".repeat(56));
        let banned = concat!("bus: report what is to", "ld");
        let faulty =
            [&long, "Reject a client", "bus: adds a line", "bus: Add a line", "bus: the line", banned];
        for subject in faulty {
            assert_eq!(number_of_faults(subject), 1, "{subject}");
        }
    }

    #[test]
    fn the_commits_after_the_first_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let git = |words: &[&str]| {
            let identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"];
            let done = Command::new("git").current_dir(folder.path()).args(identity).args(words).output();
            assert!(done.expect("git runs").status.success(), "{words:?}");
        };
        let list = WordList::parse(include_str!("../../../tidy-words.toml")).expect("valid");
        let skipped = |reason| commits(folder.path(), "first", &list).is_err_and(|why| why.contains(reason));
        assert!(skipped("no .git"));
        git(&["init", "--quiet"]);
        git(&["commit", "--allow-empty", "--quiet", "-m", "Before the rule"]);
        assert!(skipped("no commit first"));
        git(&["tag", "first"]);
        assert_eq!(commits(folder.path(), "first", &list), Ok(Vec::new()));
        git(&["commit", "--allow-empty", "--quiet", "-m", "bus: accept a transfer"]);
        git(&["commit", "--allow-empty", "--quiet", "-m", "After the rule"]);
        assert_eq!(commits(folder.path(), "first", &list).map(|found| found.len()), Ok(1));
    }
}
