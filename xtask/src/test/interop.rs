//! Tests with real kernels, firmware and tools: the programs of `interop`, several at once.
//!
//! A guest spends much of its time waiting, and most programs end with one long test. So more tests run at once than there are
//! processors, each program one test at a time, the longest programs first.

use super::step::{self, Outcome};
use crate::{dist, workers, workspace};
use anyhow::{Context, Result};
use std::{fs, process::Command};
use uaskit_interop::debian;

/// Programs that take minutes, the longest first. They begin first, so that none of them runs alone at the end.
const LONGEST: [&str; 8] =
    ["vfio_user", "diagnose", "usbfs", "bench", "report", "conformance", "disruption", "filesystem"];

/// Builds and runs the tests of `interop`; with `long` those that take long, too.
pub(super) fn checked(long: bool) -> Result<Outcome> {
    debian::ensure()?;
    let built = step::check(cargo(&["--no-run"]))?;
    if built.is_failed() {
        return Ok(built);
    }
    let outcomes = workers::run(&targets()?, workers::processors() + 1, |target| {
        let words: Vec<&str> = target.iter().map(String::as_str).collect();
        let mut command = cargo(&[&words[..], &["--no-fail-fast", "--", "--test-threads=1"]].concat());
        // Tests what the packages hold; without it the scenarios build a program themselves.
        command.envs(dist::program().map(|program| ("UASKIT_BIN", program)));
        if long {
            command.arg("--include-ignored");
        }
        step::tests_under_load(command)
    })?;
    let mut outcome = Outcome::default();
    outcomes.into_iter().for_each(|more| outcome += more);
    Ok(outcome)
}

fn cargo(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(["test", "-p", "uaskit-interop"]).args(words);
    command
}

/// Returns the words that choose each program: its library, its examples in documentation, and each program of tests.
fn targets() -> Result<Vec<Vec<String>>> {
    let folder = workspace::root().join("interop/tests");
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_stem().and_then(|name| name.to_str());
        names.extend(name.map(str::to_owned).filter(|_| path.is_file() || path.join("main.rs").exists()));
    }
    names.sort_by_key(|name| {
        let place = LONGEST.iter().position(|longest| longest == name);
        (place.unwrap_or(LONGEST.len()), name.clone())
    });
    let programs = names.into_iter().map(|name| vec!["--test".into(), name]);
    Ok(programs.chain([vec!["--lib".into()], vec!["--doc".into()]]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_is_run_and_the_longest_begin() {
        let targets = targets().expect("the folder is there");
        let begun: Vec<&str> = targets.iter().take(LONGEST.len()).map(|words| words[1].as_str()).collect();
        assert_eq!(begun, LONGEST, "each of them exists");
        let manifest = fs::read_to_string(workspace::root().join("interop/Cargo.toml")).expect("readable");
        for declared in manifest.lines().filter_map(|line| line.strip_prefix("name = \"")) {
            let name = declared.trim_end_matches('"');
            let is_run = targets.iter().any(|words| words.last().is_some_and(|word| word == name));
            assert!(is_run || name == "uaskit-interop", "{name}");
        }
        assert!(targets.contains(&vec!["--lib".to_owned()]));
    }
}
