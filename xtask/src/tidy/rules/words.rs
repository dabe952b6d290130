//! Words that are not used: `xtask/tidy-words.toml` holds them, with what to write instead.
//!
//! Each use is a finding. An exception covers a file as a whole, by the number of its uses.

use crate::tidy::{
    finding::{Finding, Rule},
    fragments,
    word_list::{self, WordList},
};

/// Every use of a word of the list in a file.
pub(crate) fn words(list: &WordList, path: &str, text: &str) -> Vec<Finding> {
    if path == word_list::PATH {
        return Vec::new();
    }
    let fragments = fragments::of_file(path, text);
    let hits = fragments.iter().flat_map(|fragment| list.hits(fragment));
    hits.map(|hit| Finding::new(path, hit.line, Rule::Word, hit.advice)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let list = WordList::parse(include_str!("../../../tidy-words.toml")).expect("valid");
        let findings = words(&list, path, text);
        let form = |finding: &Finding| finding.advice.split('"').nth(1).expect("quoted").to_owned();
        findings.iter().map(|finding| format!("{}: {}", finding.line, form(finding))).collect()
    }

    #[test]
    fn every_kind_of_text_is_looked_at() {
        // In two parts, so that this file is clean.
        let word = concat!("to", "ld");
        let text = format!("//! {word}.\n/// {word}\nfn is_{word}() {{ f(\"{word}\") }} // {word}\n");
        let lines = [1, 2, 3, 3, 3].map(|line| format!("{line}: {word}"));
        assert_eq!(found("crates/bus/src/a.rs", &text), lines);
        assert_eq!(found("a.md", &format!("A\nb {word}\n")), [format!("2: {word}")]);
        assert_eq!(found("a.toml", &format!("# {word}\n")), [format!("1: {word}")]);
        assert_eq!(found(&format!("src/{word}.rs"), ""), [format!("1: {word}")]);
    }

    #[test]
    fn a_quotation_and_other_words_are_fine() {
        assert_eq!(
            found("a.md", concat!("> to", "ld\n\nA newsletter, the doorbell, a household.\n")),
            [""; 0]
        );
        assert_eq!(
            found("a.rs", "// The doorbell was rung; 4 transfers in flight.\nfn in_flight() {}\n"),
            [""; 0]
        );
    }

    #[test]
    fn the_list_itself_is_left_out() {
        assert_eq!(found(word_list::PATH, concat!("# to", "ld\n")), [""; 0]);
    }
}
