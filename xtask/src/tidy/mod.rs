//! `cargo xtask tidy`: the rules of docs/STYLE.md that a program can check.
//!
//! What the compiler and clippy see is left to them. A rule is a function from a source file, a manifest or a text
//! to findings; a finding says where, which rule, and what to do. What cannot be mended yet is in the list of
//! exceptions, which may only shrink.
//!
//! Left out: whether a name is good, a comment true, a module in its right place. That is read by people.

mod exceptions;
mod finding;
mod rules;
mod source;

use crate::workspace;
use anyhow::{Context, Result};
use exceptions::Exceptions;
use finding::Finding;
use source::Source;
use std::{collections::BTreeSet, path::Path};

/// Checks the repository and prints the findings; whether there were none.
pub(crate) fn run() -> Result<bool> {
    let root = workspace::root();
    let (files, findings) = check(&root)?;
    for finding in &findings {
        println!("{finding}");
    }
    println!("tidy: {files} files, {} findings", findings.len());
    Ok(findings.is_empty())
}

/// What is wrong with the repository.
pub(crate) fn findings() -> Result<Vec<Finding>> {
    Ok(check(&workspace::root())?.1)
}

/// How many files were read, and what is wrong with them.
fn check(root: &Path) -> Result<(usize, Vec<Finding>)> {
    let paths = workspace::files(root)?;
    let mut findings = rules::arrows(root)?;
    findings.extend(rules::licences(root)?);
    let mut sources = Vec::new();
    let files = paths.iter().map(String::as_str).collect();
    for path in &paths {
        let bytes = std::fs::read(root.join(path)).with_context(|| format!("read {path}"))?;
        let Ok(text) = String::from_utf8(bytes) else { continue };
        findings.extend(rules::of_text(path, &text));
        if path.ends_with("Cargo.toml") {
            findings.extend(rules::of_manifest(path, &text));
        }
        if path.ends_with(".md") {
            findings.extend(rules::of_document(path, &text, &files));
        }
        if path.ends_with(".rs") {
            sources.push(Source::parse(path, &text)?);
        }
    }
    mark_tests(&mut sources);
    findings.extend(sources.iter().flat_map(rules::of_source));
    let list = std::fs::read_to_string(root.join(exceptions::PATH)).context("read the exceptions")?;
    let mut findings = Exceptions::parse(&list)?.apply(findings);
    findings.sort();
    Ok((paths.len(), findings))
}

/// Marks the files of `#[cfg(test)] mod name;`, those below them, and the fixtures of the testkit as tests.
fn mark_tests(sources: &mut [Source]) {
    let mut stems = BTreeSet::new();
    for source in sources.iter() {
        let folder = source.module_folder();
        stems.extend(source.test_modules.iter().map(|name| format!("{folder}{name}")));
    }
    for source in sources {
        let below = |stem: &String| {
            source.path.strip_prefix(stem.as_str()).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        };
        source.test |= stems.iter().any(below) || source.path.starts_with("crates/testkit/");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_module_in_another_file_is_a_test() {
        let parse = |path: &str, text: &str| Source::parse(path, text).expect("parses");
        let mut sources = [
            parse("crates/bus/src/lib.rs", "#[cfg(test)] mod suite; mod suited;"),
            parse("crates/bus/src/suite/mod.rs", ""),
            parse("crates/bus/src/suited.rs", ""),
        ];
        mark_tests(&mut sources);
        assert_eq!(sources.map(|source| source.test), [false, true, false]);
    }
}
