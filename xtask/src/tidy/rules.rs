//! The rules, by what they look at: a source file, the files of a crate, a manifest, any text, the workspace as Cargo
//! reports it, the list of licences, the commits.

mod ambient;
mod arrows;
mod bits;
mod circles;
mod commits;
mod doc_subject;
mod documents;
mod impl_lines;
mod length;
mod licences;
mod module_docs;
mod module_style;
mod names;
mod public_names;
mod reason;
mod sizes;
mod text;
mod tokens;
mod tuples;
mod words;

pub(crate) use arrows::arrows;
pub(crate) use commits::{FIRST as FIRST_COMMIT, commits};
pub(crate) use documents::of_document;
pub(crate) use licences::licences;
pub(crate) use module_style::module_style;
pub(crate) use reason::of_manifest;
pub(crate) use sizes::document_size;
pub(crate) use text::of_text;
pub(crate) use words::words;

use super::{finding::Finding, modules::Modules, source::Source};

/// Everything that is wrong with a source file.
pub(crate) fn of_source(source: &Source) -> Vec<Finding> {
    const RULES: [fn(&Source) -> Vec<Finding>; 10] = [
        length::check,
        module_docs::check,
        doc_subject::check,
        tokens::panics,
        tokens::unsafety,
        names::check,
        ambient::check,
        bits::check,
        public_names::check,
        tuples::check,
    ];
    RULES.iter().flat_map(|rule| rule(source)).collect()
}

/// Everything that is wrong with the files of a crate as a whole.
pub(crate) fn of_crate(sources: &[Source]) -> Vec<Finding> {
    let modules = Modules::of_crate(sources);
    [circles::circles(&modules), impl_lines::impl_lines(&modules)].concat()
}

/// Findings of a rule on a piece of source, as printed; for the tests of the rules.
#[cfg(test)]
fn findings_of(rule: fn(&Source) -> Vec<Finding>, path: &str, text: &str) -> Vec<String> {
    let source = Source::parse(path, text).expect("parses");
    rule(&source).iter().map(|finding| format!("{}: {}", finding.line, finding.advice)).collect()
}
