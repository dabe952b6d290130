//! Documentation begins with its subject: a verb for a function, a noun for the rest, as the standard library's does.
//!
//! Left out: later sentences of a paragraph. A paragraph begins after a line without documentation or with nothing else.

use crate::tidy::{
    finding::{Finding, Rule},
    source::Source,
};

/// Words that stand for a subject and do not name it.
const STAND_INS: &[&str] = &["What ", "Who ", "The one "];

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut follows_text = false;
    for (index, line) in source.text.lines().enumerate() {
        let line = line.trim_start();
        let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map_or("", str::trim);
        if let Some(word) = STAND_INS.iter().find(|word| !follows_text && text.starts_with(**word)) {
            let advice = format!("begin with the verb, or name the thing, in place of `{}`", word.trim_end());
            findings.push(Finding::new(&source.path, index + 1, Rule::DocSubject, advice));
        }
        follows_text = !text.is_empty();
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rules::findings_of;

    const BUS: &str = "crates/bus/src/a.rs";

    #[test]
    fn a_paragraph_that_begins_with_a_stand_in_is_found() {
        assert_eq!(findings_of(check, BUS, "//! A.\n//!\n//! What it is.\n").len(), 1);
        assert_eq!(findings_of(check, BUS, "//! A.\n\n/// The one that sends.\nfn a() {}\n").len(), 1);
    }

    #[test]
    fn a_line_within_a_paragraph_is_not_looked_at() {
        let text = "//! A.\n/// Returns the length.\n/// What follows is left.\n// What else.\nfn a() {}\n";
        assert_eq!(findings_of(check, BUS, text), [""; 0]);
    }
}
