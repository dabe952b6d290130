//! The rules, by what they look at: a source file, a manifest, any text, the workspace as Cargo sees it, the list of licences.

mod ambient;
mod arrows;
mod bits;
mod documents;
mod length;
mod licences;
mod module_docs;
mod names;
mod reason;
mod text;
mod tokens;

pub(crate) use arrows::arrows;
pub(crate) use documents::of_document;
pub(crate) use licences::licences;
pub(crate) use reason::of_manifest;
pub(crate) use text::of_text;

use super::{finding::Finding, source::Source};

/// Everything that is wrong with a source file.
pub(crate) fn of_source(source: &Source) -> Vec<Finding> {
    const RULES: [fn(&Source) -> Vec<Finding>; 7] = [
        length::check,
        module_docs::check,
        tokens::panics,
        tokens::unsafety,
        names::check,
        ambient::check,
        bits::check,
    ];
    RULES.iter().flat_map(|rule| rule(source)).collect()
}

/// Findings of a rule on a piece of source, as printed; for the tests of the rules.
#[cfg(test)]
fn told(rule: fn(&Source) -> Vec<Finding>, path: &str, text: &str) -> Vec<String> {
    let source = Source::parse(path, text).expect("parses");
    rule(&source).iter().map(|finding| format!("{}: {}", finding.line, finding.advice)).collect()
}
