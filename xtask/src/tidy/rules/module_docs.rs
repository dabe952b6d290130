//! A module opens with what it is: `//!` at its first line, and enough of it.
//!
//! A module that holds others, or is long, owes three lines: what it is, what it leaves out, what is always true.
//! In `wire` a file is one type with its clause and byte map on the type, so one line above it is enough. The front page of a
//! public crate includes its README above these lines.

use crate::tidy::{
    finding::{Finding, Rule},
    source::Source,
};

/// A module of more shipped lines than this owes the three lines, even if it holds no others.
const SHORT_MODULE_LINES_MAX: usize = 150;
const LINES_MIN: usize = 3;
const LINES_MAX: usize = 30;
const README: &str = "#![doc = include_str!(\"../README.md\")]\n";

pub(super) fn check(source: &Source) -> Vec<Finding> {
    if source.test && !source.path.contains("/tests/") {
        return Vec::new();
    }
    let text = source.text.strip_prefix(README).unwrap_or(&source.text);
    let lines = text.lines().take_while(|line| line.starts_with("//!")).count();
    let advice = if lines == 0 {
        "open with `//!`: what the module is, which clause, what it leaves out".to_owned()
    } else if lines > LINES_MAX {
        format!("{lines} lines of module docs, {LINES_MAX} at most; move the rest to docs/")
    } else if lines < LINES_MIN && owes_more(source) {
        "say more than that: what it is, what it leaves out, what is always true".to_owned()
    } else {
        return Vec::new();
    };
    vec![Finding::new(&source.path, 1, Rule::ModuleDocs, advice)]
}

fn owes_more(source: &Source) -> bool {
    let is_module = |item: &syn::Item| matches!(item, syn::Item::Mod(module) if module.content.is_none());
    let modules = source.syntax.items.iter().filter(|item| is_module(item)).count();
    let holds_others = modules > source.test_modules.len();
    let is_long = source.member() != "wire" && source.shipped_lines() > SHORT_MODULE_LINES_MAX;
    let is_library = source.path.starts_with("crates/");
    is_library && (holds_others && source.shipped_lines() > 20 || is_long)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rules::findings_of;

    const BUS: &str = "crates/bus/src/a.rs";

    #[test]
    fn a_module_without_docs_is_found() {
        assert_eq!(findings_of(check, BUS, "// Note.\nfn a() {}\n").len(), 1);
        assert_eq!(findings_of(check, BUS, "//! A.\nfn a() {}\n"), [""; 0]);
    }

    #[test]
    fn a_front_page_includes_its_readme_first() {
        assert_eq!(findings_of(check, BUS, &format!("{README}//!\n//! A.\nfn a() {{}}\n")), [""; 0]);
        assert_eq!(findings_of(check, BUS, &format!("{README}fn a() {{}}\n")).len(), 1);
    }

    #[test]
    fn a_long_module_owes_three_lines() {
        let body = "fn a() {}\n".repeat(160);
        assert_eq!(findings_of(check, BUS, &format!("//! A.\n{body}")).len(), 1);
        assert_eq!(findings_of(check, BUS, &format!("//! A.\n//!\n//! B.\n{body}")), [""; 0]);
    }

    #[test]
    fn a_wire_type_may_say_it_in_one_line() {
        let body = "fn a() {}\n".repeat(160);
        assert_eq!(findings_of(check, "crates/wire/src/a.rs", &format!("//! A.\n{body}")), [""; 0]);
    }

    #[test]
    fn more_than_thirty_lines_belong_elsewhere() {
        assert_eq!(findings_of(check, BUS, &"//! A.\n".repeat(31)).len(), 1);
    }
}
