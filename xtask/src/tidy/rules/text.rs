//! Rules on any text: no path of somebody's machine, nothing left to be done later.
//!
//! Missing parts belong in docs/ROADMAP.md, where they are read; a mark in a comment is not read.

use crate::tidy::finding::{Finding, Rule};

/// First folders of absolute paths that exist on one machine only.
const MACHINE_FOLDERS: &[&str] = &["home", "root", "work", "Users"];
/// Marks of something put off. Spelt in two parts so that this file does not find itself.
const MARKS: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X:")];

/// Returns the findings in a text of any kind.
pub(crate) fn of_text(path: &str, text: &str) -> Vec<Finding> {
    if path.ends_with(".lock") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if let Some(found) = machine_path(line) {
            let advice = format!("{found} exists on one machine; use a relative path or an argument");
            findings.push(Finding::new(path, index + 1, Rule::MachinePath, advice));
        }
        if let Some(mark) = MARKS.iter().find(|mark| has_word(line, mark)) {
            let advice = format!("{mark}: write it, or say in docs/ROADMAP.md that it is missing");
            findings.push(Finding::new(path, index + 1, Rule::LeftOver, advice));
        }
    }
    findings
}

fn machine_path(line: &str) -> Option<String> {
    let is_start = |at: usize| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|letter| !letter.is_alphanumeric() && !"._-/~}".contains(letter))
    };
    let folders = MACHINE_FOLDERS.iter().map(|folder| format!("/{folder}/"));
    folders.into_iter().find(|folder| line.match_indices(folder.as_str()).any(|(at, _)| is_start(at)))
}

fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let is_letter =
            |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
        !is_letter(before) && !is_letter(after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<Rule> {
        of_text("a.md", text).into_iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn a_path_of_one_machine_is_found() {
        let path = ["", "home", "someone", "disk.img"].join("/");
        assert_eq!(found(&format!("open {path}")), [Rule::MachinePath]);
        assert_eq!(found(&format!("{path} and more")), [Rule::MachinePath]);
    }

    #[test]
    fn a_relative_path_with_such_a_folder_is_fine() {
        assert_eq!(found("see docs/work/plan.md and ./home/x"), []);
    }

    #[test]
    fn a_mark_is_found_as_a_word_only() {
        assert_eq!(found(&format!("// {}: later", MARKS[0])), [Rule::LeftOver]);
        assert_eq!(found(&format!("{}S", MARKS[0])), []);
        assert_eq!(found("todo!() is forbidden elsewhere"), []);
    }
}
