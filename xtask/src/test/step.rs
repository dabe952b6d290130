//! One step of the checks: a program that is run, what it printed, what failed and how to repeat it.

use super::count::{Count, failed_tests, skipped_tests};
use crate::workspace;
use anyhow::{Context, Result};
use std::{
    ops::AddAssign,
    path::Path,
    process::{Command, Output},
};

/// Lines of a failed step's output that are shown.
const TAIL_LINES: usize = 120;

/// Lines that are shown of what one failed test has said.
const TEST_LINES: usize = 60;

/// Something that failed.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) what: String,
    /// The command that shows it again.
    pub(super) repeat: String,
}

/// What came of a step.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) count: Count,
    pub(super) failures: Vec<Failure>,
    /// Why the step, or a part of it, was not run, if it was not; that does not count as passed.
    pub(super) skipped: Option<String>,
    /// What the failed parts printed.
    output: String,
}

impl Outcome {
    /// One check, which counts as one test.
    pub(super) fn of_check(passed: bool, what: &str, repeat: &str, output: String) -> Self {
        if passed {
            return Self { count: Count { passed: 1, ..Count::default() }, ..Self::default() };
        }
        let failure = Failure { what: what.into(), repeat: repeat.into() };
        let count = Count { failed: 1, ..Count::default() };
        Self { count, failures: vec![failure], output, ..Self::default() }
    }

    /// A step that could not be run.
    pub(super) fn broken(reason: String) -> Self {
        Self::of_check(false, &reason, "cargo xtask test", reason.clone())
    }

    /// A step that cannot be run here, which neither passes nor fails.
    pub(super) fn skipped(reason: String) -> Self {
        Self { skipped: Some(reason), ..Self::default() }
    }

    /// What happened, in a few words.
    pub(super) fn line(&self) -> String {
        let Count { passed, failed, .. } = self.count;
        let judged = match (passed, failed) {
            (1, 0) => "ok".to_owned(),
            (_, 0) => format!("ok, {passed} passed"),
            _ => format!("FAILED, {passed} passed, {failed} failed"),
        };
        match &self.skipped {
            None => judged,
            Some(reason) if passed + failed == 0 => format!("SKIPPED: {reason}"),
            Some(reason) => format!("{judged}; SKIPPED: {reason}"),
        }
    }

    /// The output of failed tests, or the last lines of the whole output.
    pub(super) fn excerpt(&self) -> String {
        let said = said_by_failed_tests(&self.output);
        if said.is_empty() { last_lines(&self.output, TAIL_LINES) } else { said.join("\n\n") }
    }
}

impl AddAssign for Outcome {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.failures.extend(other.failures);
        self.skipped = self.skipped.take().or(other.skipped);
        self.output.push_str(&other.output);
    }
}

fn last_lines(text: &str, most: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(most)..].join("\n")
}

/// What each failed test has said, cut to its end: test programs print it under the test's name, before they name all that failed.
fn said_by_failed_tests(output: &str) -> Vec<String> {
    let begins = |line: &str| line.starts_with("---- ") && line.ends_with(" ----");
    let mut said = Vec::new();
    let mut lines = output.lines().peekable();
    while let Some(line) = lines.next() {
        if !begins(line) {
            continue;
        }
        let mut text = String::new();
        while let Some(more) = lines.next_if(|next| !begins(next) && *next != "failures:") {
            text.push_str(more);
            text.push('\n');
        }
        said.push(format!("{line}\n{}", last_lines(text.trim_end(), TEST_LINES)));
    }
    said
}

/// Runs a program whose exit status is the verdict.
pub(super) fn check(mut command: Command) -> Result<Outcome> {
    let (output, text) = run(&mut command)?;
    let repeat = repeat(&command);
    Ok(Outcome::of_check(output.status.success(), &repeat, &repeat, text))
}

/// Runs test programs and counts their tests. A failure that no test owns (it does not build) counts as one.
pub(super) fn tests(mut command: Command) -> Result<Outcome> {
    let (output, text) = run(&mut command)?;
    Ok(judge(output.status.success(), &repeat(&command), text))
}

fn judge(success: bool, repeat: &str, text: String) -> Outcome {
    let mut count = Count::of_output(&text);
    let failed =
        failed_tests(&text).into_iter().map(|name| Failure { what: name.into(), repeat: repeat.into() });
    let mut failures: Vec<Failure> = failed.collect();
    if failures.is_empty() && (!success || count.failed > 0) {
        failures.push(Failure { what: repeat.into(), repeat: repeat.into() });
    }
    if count.failed == 0 && !success {
        count.failed = 1;
    }
    let skipped = skipped_tests(&text);
    count.ignored = count.ignored.saturating_sub(skipped.len());
    let skipped = Some(skipped.join("; ")).filter(|reasons| !reasons.is_empty());
    let output = if success { String::new() } else { text };
    Outcome { count, failures, skipped, output }
}

fn run(command: &mut Command) -> Result<(Output, String)> {
    if command.get_current_dir().is_none() {
        command.current_dir(workspace::root());
    }
    let output = command.output().with_context(|| format!("run {}", repeat(command)))?;
    let text = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
    Ok((output, text))
}

/// The command as one would type it.
fn repeat(command: &Command) -> String {
    let set = command.get_envs().filter_map(|(name, value)| Some((name.to_str()?, value?.to_str()?)));
    let set = set.filter(|(name, _)| !name.starts_with("CARGO_"));
    let mut words: Vec<String> = set.map(|(name, value)| format!("{name}='{value}'")).collect();
    let program = Path::new(command.get_program());
    words.extend(program.file_name().map(|name| name.to_string_lossy().into_owned()));
    words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: &str = "test b ... FAILED\ntest result: FAILED. 4 passed; 1 failed; 0 ignored;\n";

    #[test]
    fn a_skipped_step_neither_passes_nor_fails() {
        let mut outcome = Outcome::default();
        outcome += Outcome::skipped("no network".into());
        assert_eq!((outcome.count, outcome.line().as_str()), (Count::default(), "SKIPPED: no network"));
    }

    #[test]
    fn a_failed_test_is_named_with_its_command() {
        let outcome = judge(false, "cargo test", FAILED.into());
        assert_eq!((outcome.count.passed, outcome.count.failed), (4, 1));
        assert_eq!((outcome.failures[0].what.as_str(), outcome.failures.len()), ("b", 1));
        assert_eq!(outcome.line(), "FAILED, 4 passed, 1 failed");
    }

    #[test]
    fn what_does_not_build_counts_as_one_failure() {
        let outcome = judge(false, "cargo test", "error: could not compile".into());
        assert_eq!((outcome.count.failed, outcome.failures.len()), (1, 1));
    }

    #[test]
    fn a_program_that_dies_after_its_tests_passed_has_failed() {
        let outcome = judge(false, "cargo test", "test result: ok. 4 passed; 0 failed; 0 ignored;\n".into());
        assert_eq!((outcome.count.passed, outcome.count.failed), (4, 1));
    }

    #[test]
    fn a_test_that_could_not_run_is_named_with_its_reason() {
        const OUTPUT: &str = "test a ... ignored, takes a minute\ntest b  ... ignored (no mirror)\n\
                              test result: ok. 1 passed; 0 failed; 2 ignored;\n";
        let outcome = judge(true, "cargo test", OUTPUT.into());
        assert_eq!((outcome.count.passed, outcome.count.ignored), (1, 1));
        assert_eq!(outcome.line(), "ok; SKIPPED: b: no mirror");
    }

    #[test]
    fn the_command_can_be_typed_again() {
        let mut command = Command::new(env!("CARGO"));
        command.args(["doc", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings").env("CARGO_TARGET_DIR", "x");
        assert_eq!(repeat(&command), "RUSTDOCFLAGS='-D warnings' cargo doc --no-deps");
    }

    #[test]
    fn the_command_names_its_program() {
        let mut command = Command::new("rustup");
        command.args(["run", "1.95.0", "cargo", "check"]);
        assert_eq!(repeat(&command), "rustup run 1.95.0 cargo check");
    }

    #[test]
    fn only_the_end_of_a_long_output_is_shown() {
        let output: String = (0..500).map(|line| format!("{line}\n")).collect();
        let excerpt = Outcome::of_check(false, "a", "b", output).excerpt();
        assert!(excerpt.starts_with("380\n") && excerpt.ends_with("499"), "{excerpt}");
    }

    #[test]
    fn what_failed_tests_have_said_is_shown_wherever_it_is() {
        let early = "test a ... FAILED\n\nfailures:\n\n---- a stdout ----\nleft: 1\n---- b stdout ----\nno drive\n\n\nfailures:\n    a\n    b\n";
        let output = format!("{early}{}", "test c ... ok\n".repeat(500));
        let excerpt = Outcome::of_check(false, "tests", "cargo test", output).excerpt();
        assert_eq!(excerpt, "---- a stdout ----\nleft: 1\n\n---- b stdout ----\nno drive");
    }
}
