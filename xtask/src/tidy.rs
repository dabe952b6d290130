//! `cargo xtask tidy`: the rules of docs/STYLE.md that a program can check.
//!
//! Problems that the compiler and clippy find are left to them. A rule is a function from a source
//! file, a manifest or a text to findings; a finding says where, which rule, and what to do.
//! Findings that cannot be fixed yet are in the list of exceptions, which may only shrink. Words
//! that are not used are data, in `xtask/tidy-words.toml`.
//!
//! Left out: whether a name is good, a comment true, a module in its right place. That is read by people.

mod exceptions;
mod finding;
mod fragments;
mod modules;
mod rules;
mod source;
mod word_list;

use crate::workspace;
use anyhow::{Context, Result, bail};
use exceptions::Exceptions;
use finding::Finding;
use rayon::prelude::*;
use source::Source;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};
use word_list::WordList;

/// Options of `cargo xtask tidy`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Show findings below this folder or in this file only, for example `crates/wire`
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// Ignore the list of exceptions
    #[arg(long)]
    all: bool,
    /// Lower and delete exceptions that cover more than there is; never raises or adds one
    #[arg(long, conflicts_with_all = ["path", "all"])]
    update: bool,
    /// Write the list of exceptions from all current findings; refused in CI
    #[arg(long, hide = true, conflicts_with_all = ["path", "all", "update"])]
    regenerate: bool,
}

impl Options {
    /// Whether a finding is below the path that was asked for; one about the list counts for the file it names.
    fn covers(&self, finding: &Finding) -> bool {
        let Some(wanted) = &self.path else { return true };
        let wanted = wanted.trim_start_matches("./").trim_end_matches('/');
        let path = if finding.path == exceptions::PATH { &finding.subject } else { &finding.path };
        path.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// Checks the repository and prints the findings; whether there were none.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let root = workspace::root();
    let Checked { files, mut findings, unchecked } = check(&root)?;
    let list = root.join(exceptions::PATH);
    let mut exceptions = Exceptions::parse(&std::fs::read_to_string(&list).context("read the exceptions")?)?;
    if options.regenerate {
        if std::env::var_os("CI").is_some() {
            bail!("--regenerate is refused in CI: exceptions are added by people");
        }
        exceptions = exceptions.regenerated(&findings);
        std::fs::write(&list, exceptions.to_toml()).context("write the exceptions")?;
    } else if options.update {
        exceptions = exceptions.lowered(&findings);
        std::fs::write(&list, exceptions.to_toml()).context("write the exceptions")?;
        exceptions = Exceptions::parse(&exceptions.to_toml())?;
    }
    if !options.all {
        findings = exceptions.apply(findings);
    }
    findings.retain(|finding| options.covers(finding));
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    if let Some(why) = unchecked {
        println!("tidy: commit subjects not checked: {why}");
    }
    println!("tidy: {files} files, {} findings", findings.len());
    Ok(findings.is_empty())
}

/// Returns the findings in the repository, exceptions aside.
pub(crate) fn findings() -> Result<Vec<Finding>> {
    let root = workspace::root();
    let list = std::fs::read_to_string(root.join(exceptions::PATH)).context("read the exceptions")?;
    let mut findings = Exceptions::parse(&list)?.apply(check(&root)?.findings);
    findings.sort();
    Ok(findings)
}

/// Result of a check.
struct Checked {
    /// How many files were read.
    files: usize,
    findings: Vec<Finding>,
    /// Why commit subjects were not checked, if they were not.
    unchecked: Option<String>,
}

/// Returns the findings in the repository, exceptions included.
fn check(root: &Path) -> Result<Checked> {
    let (of_tree, of_cargo) = rayon::join(|| of_tree(root), || of_cargo(root));
    let mut checked = of_tree?;
    checked.findings.extend(of_cargo?);
    Ok(checked)
}

/// Returns the findings in the workspace as Cargo reports it.
fn of_cargo(root: &Path) -> Result<Vec<Finding>> {
    let mut findings = rules::arrows(root)?;
    findings.extend(rules::licences(root)?);
    Ok(findings)
}

/// Returns the findings in files and commits.
fn of_tree(root: &Path) -> Result<Checked> {
    let list = std::fs::read_to_string(root.join(word_list::PATH)).context("read the word list")?;
    let list = WordList::parse(&list)?;
    let paths = workspace::files(root)?;
    let names: BTreeSet<&str> = paths.iter().map(String::as_str).collect();
    let (mut findings, unchecked) = match rules::commits(root, rules::FIRST_COMMIT, &list) {
        Ok(findings) => (findings, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    let mut files = BTreeMap::new();
    for path in &paths {
        let bytes = std::fs::read(root.join(path)).with_context(|| format!("read {path}"))?;
        if let Ok(text) = String::from_utf8(bytes) {
            files.insert(path.as_str(), text);
        }
    }
    let of_files = files.par_iter().flat_map_iter(|(path, text)| of_file(path, text, &list, &names));
    findings.par_extend(of_files);
    let mut crates: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".rs")) {
        crates.entry(source::member(path)).or_default().push((path, text));
    }
    let mut crates: Vec<_> = crates.into_values().collect();
    // The largest first, so that none is left over for one processor at the end.
    crates.sort_by_key(|files| usize::MAX - files.iter().map(|(_, text)| text.len()).sum::<usize>());
    let of_crates: Vec<Result<Vec<Finding>>> =
        crates.par_iter().with_max_len(1).map(|files| of_crate(files)).collect();
    for found in of_crates {
        findings.extend(found?);
    }
    Ok(Checked { files: paths.len(), findings, unchecked })
}

/// Returns the findings in a file as a text.
fn of_file(path: &str, text: &str, list: &WordList, files: &BTreeSet<&str>) -> Vec<Finding> {
    let mut findings = rules::of_text(path, text);
    findings.extend(rules::words(list, path, text));
    findings.extend(rules::module_style(path));
    findings.extend(rules::document_size(path, text));
    if path.ends_with("Cargo.toml") {
        findings.extend(rules::of_manifest(path, text));
    }
    if path.ends_with(".md") {
        findings.extend(rules::of_document(path, text, files));
    }
    findings
}

/// Returns the findings in the code of a crate. Syntax stays on the thread that parsed it, so a
/// crate is read as a whole.
fn of_crate(files: &[(&str, &str)]) -> Result<Vec<Finding>> {
    let sources: Result<Vec<Source>> = files.iter().map(|(path, text)| Source::parse(path, text)).collect();
    let mut sources = sources?;
    mark_tests(&mut sources);
    let mut findings: Vec<Finding> = sources.iter().flat_map(rules::of_source).collect();
    findings.extend(rules::of_crate(&sources));
    Ok(findings)
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
    use super::{finding::Rule, *};

    #[test]
    fn a_path_covers_what_is_below_it() {
        let options = Options { path: Some("crates/bus/".into()), ..Options::default() };
        let covers = |path: &str| options.covers(&Finding::new(path, 1, Rule::Bits, "move it"));
        assert!(covers("crates/bus/src/lib.rs") && covers("crates/bus"));
        assert!(!covers("crates/busy/src/lib.rs"));
        let about_the_list = Finding::new(exceptions::PATH, 1, Rule::Bits, "lower it");
        assert!(options.covers(&about_the_list.about("crates/bus/src/lib.rs")));
    }

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
