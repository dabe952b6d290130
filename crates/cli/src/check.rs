//! `uaskit check`: runs the tests of the crate `conformance` on a drive, and prints a scorecard.
//!
//! The kernel driver is reattached before anything is printed. Progress goes to standard error.

mod json;
mod junit;
mod progress;
mod resume;
pub(crate) mod target;
mod text;

use crate::args::CheckArguments;
use crate::failure::Failure;
use crate::messages::message;
use crate::output_file::{self, Kind};
use crate::sanitize;
use crate::signals;
use crate::stdout::{Output, terminal_columns};
use conformance::{CheckEvent, Test, suite};
use std::sync::atomic::Ordering;
use study::plural::counted;

pub(crate) fn run(arguments: &CheckArguments, out: &mut Output<'_>) -> Result<(), Failure> {
    let tests = chosen(arguments)?;
    if arguments.list {
        return out.print(&text::tests(&tests));
    }
    if let Some(file) = &arguments.junit {
        output_file::check_replaceable(file, Kind::TestResults)?;
    }
    let mut resume = arguments.resume.as_deref().map(resume::ResumeFile::open).transpose()?;
    // At Ctrl-C the test that runs is finished, and the drive returned.
    let stop = signals::stop_flag(&[])?;
    let total = tests.len();
    let mut done = 0;
    let mut progress = progress::Progress::new();
    let checked = target::check(arguments, &tests, resume.as_mut(), &mut |event: CheckEvent<'_>| {
        match event {
            CheckEvent::Completed(outcome) => {
                done += 1;
                if !outcome.verdict.is_harmless() {
                    message!("{done}/{total} {}: {}", outcome.test.id, outcome.verdict.name());
                }
            }
            CheckEvent::Progress { test, done, total } => progress.report(test, done, total),
        }
        !stop.load(Ordering::Relaxed)
    })?;
    if let Some(file) = &arguments.junit {
        output_file::write(file, Kind::TestResults, &junit::document(&checked)?)?;
    }
    let printed = if arguments.json {
        sanitize::json(&format!("{:#}\n", json::document(&checked)))
    } else {
        sanitize::escape_lines(&text::scorecard(&checked, arguments.steps, terminal_columns()))
    };
    out.print(&printed)?;
    let failed = checked.scorecard.count(None, "fail");
    if checked.scorecard.outcomes.len() < total || stop.load(Ordering::Relaxed) {
        let interrupted = Failure::interrupted("interrupted before all tests were run");
        return Err(match (&resume, &arguments.whole) {
            (Some(resume), _) if resume.has_run() => {
                interrupted.try_this("To continue the pass over all blocks, give the same command again.")
            }
            (None, Some(_)) if !arguments.is_virtual => interrupted
                .try_this("To be able to continue the pass over all blocks next time, add --resume FILE."),
            _ => interrupted,
        });
    }
    match failed {
        0 => Ok(()),
        _ => Err(Failure::new(format!("{} failed", counted(failed as u64, "test")))),
    }
}

/// The tests that `--only` names; all without it.
fn chosen(arguments: &CheckArguments) -> Result<Vec<Test>, Failure> {
    let mut all = suite::read_only();
    if arguments.write.is_some() || arguments.list {
        all.extend(suite::writing());
    }
    if arguments.whole.is_some() || arguments.list {
        all.extend(suite::whole());
    }
    for name in &arguments.only {
        if !all.iter().any(|test| test.id.starts_with(name.as_str())) || name.is_empty() {
            return Err(Failure::usage(format!("no test is named {name:?}"))
                .try_this("See `uaskit check --list` for the tests."));
        }
    }
    let is_named = |test: &Test| arguments.only.iter().any(|name| test.id.starts_with(name.as_str()));
    Ok(all.into_iter().filter(|test| arguments.only.is_empty() || is_named(test)).collect())
}
