//! One step of the checks: a program that is run, what it printed, what failed and how to repeat it.

use super::count::{Count, failed_tests, skipped_tests};
use crate::workspace;
use anyhow::{Context, Result};
use std::{ffi::OsString, ops::AddAssign, path::Path, process::Command, time::Duration};
use uaskit_interop::supervised::{self, End, Limits};

/// Lines of a failed step's output that are shown.
const TAIL_LINES: usize = 120;

/// Lines that are shown of what one failed test has said.
const TEST_LINES: usize = 60;

/// The limits of a step. The slowest test takes some three minutes on two quiet cores, the slowest step twenty.
const LIMITS: Limits = Limits { total: Duration::from_secs(3_000), silence: Duration::from_secs(720) };

/// Failed tests that are run once more. When more have failed, it is no matter of load.
const REPEATED_MAX: usize = 5;

/// Something that failed.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) what: String,
    /// The command that shows it again.
    pub(super) repeat: String,
}

/// Outcome of a step.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) count: Count,
    pub(super) failures: Vec<Failure>,
    /// Why the step, or a part of it, was not run, if it was not; that does not count as passed.
    pub(super) skipped: Option<String>,
    /// Tests that failed and passed when they were run once more by themselves.
    pub(super) unsteady: Vec<Failure>,
    /// Output of the failed parts.
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

    /// Whether something has failed.
    pub(super) fn is_failed(&self) -> bool {
        !self.failures.is_empty()
    }

    /// Formats the outcome in a few words.
    pub(super) fn line(&self) -> String {
        let Count { passed, failed, .. } = self.count;
        let mut judged = match (passed, failed) {
            (1, 0) => "ok".to_owned(),
            (_, 0) => format!("ok, {passed} passed"),
            _ => format!("FAILED, {passed} passed, {failed} failed"),
        };
        if !self.unsteady.is_empty() {
            judged.push_str(&format!(", {} UNSTEADY", self.unsteady.len()));
        }
        match &self.skipped {
            None => judged,
            Some(reason) if passed + failed == 0 => format!("SKIPPED: {reason}"),
            Some(reason) => format!("{judged}; SKIPPED: {reason}"),
        }
    }

    /// Whether each failure is that of a test with a name.
    fn is_of_tests(&self) -> bool {
        self.failures.iter().all(|failure| failure.what != failure.repeat)
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
        self.unsteady.extend(other.unsteady);
        self.output.push_str(&other.output);
    }
}

fn last_lines(text: &str, most: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(most)..].join("\n")
}

/// Returns the end of each failed test's output: test programs print it under the test's name,
/// before they name all that failed.
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
    let run = run(&mut command)?;
    let repeat = repeat(&command);
    Ok(Outcome::of_check(run.success, &repeat, &repeat, run.text))
}

/// Runs test programs and counts their tests. A failure that no test owns (it does not build) counts as one.
pub(super) fn tests(mut command: Command) -> Result<Outcome> {
    let run = run(&mut command)?;
    Ok(judge(run, &repeat(&command)))
}

/// As [`tests`], for tests whose waits depend on what else the machine does, such as guests in emulation. A test that fails
/// is run once more by itself: if it passes then, it is listed as unsteady with what it printed, and the step has not failed.
pub(super) fn tests_under_load(command: Command) -> Result<Outcome> {
    let alone = Alone::of(&command);
    let outcome = tests(command)?;
    if outcome.failures.is_empty() || outcome.failures.len() > REPEATED_MAX || !outcome.is_of_tests() {
        return Ok(outcome);
    }
    repeated(outcome, |name| {
        let run = run(&mut alone.command(name))?;
        Ok(run.success && Count::of_output(&run.text).passed > 0)
    })
}

/// Runs each failed test again, by `passes`.
fn repeated(outcome: Outcome, mut passes: impl FnMut(&str) -> Result<bool>) -> Result<Outcome> {
    let Outcome { mut count, failures, skipped, mut unsteady, output } = outcome;
    let mut still = Vec::new();
    for failure in failures {
        if passes(&failure.what)? {
            count += Count { passed: 1, ..Count::default() };
            count.failed = count.failed.saturating_sub(1);
            unsteady.push(failure);
        } else {
            still.push(failure);
        }
    }
    Ok(Outcome { count, failures: still, skipped, unsteady, output })
}

/// Makes the command of one test from that of many.
struct Alone {
    program: OsString,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
}

impl Alone {
    fn of(command: &Command) -> Self {
        let set = command.get_envs().filter_map(|(name, value)| Some((name.into(), value?.into())));
        Self {
            program: command.get_program().into(),
            arguments: command.get_args().map(Into::into).collect(),
            environment: set.collect(),
        }
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).envs(self.environment.iter().cloned());
        if !self.arguments.iter().any(|word| word == "--") {
            command.arg("--");
        }
        command.args(["--exact", name]);
        command
    }
}

fn judge(run: Run, repeat: &str) -> Outcome {
    let Run { success, was_killed, text } = run;
    let mut count = Count::of_output(&text);
    let failed =
        failed_tests(&text).into_iter().map(|name| Failure { what: name.into(), repeat: repeat.into() });
    let mut failures: Vec<Failure> = failed.collect();
    if was_killed || failures.is_empty() && (!success || count.failed > 0) {
        failures.push(Failure { what: repeat.into(), repeat: repeat.into() });
    }
    if !success {
        // What did not build, and a program that was killed with its tests, printed no result.
        count.failed = count.failed.max(failures.len());
    }
    let skipped = skipped_tests(&text);
    count.ignored = count.ignored.saturating_sub(skipped.len());
    let skipped = Some(skipped.join("; ")).filter(|reasons| !reasons.is_empty());
    let output = if success { String::new() } else { text };
    Outcome { count, failures, skipped, output, ..Outcome::default() }
}

/// Result of a program.
struct Run {
    success: bool,
    /// It passed a limit.
    was_killed: bool,
    /// Its output.
    text: String,
}

/// Runs a program within the limits of a step.
fn run(command: &mut Command) -> Result<Run> {
    if command.get_current_dir().is_none() {
        command.current_dir(workspace::root());
    }
    let report = supervised::run(command, LIMITS).with_context(|| format!("run {}", repeat(command)))?;
    let mut text = [&report.stdout[..], &report.stderr].map(String::from_utf8_lossy).concat();
    let was_killed = matches!(report.end, End::Killed { .. });
    if was_killed {
        text.push_str(&format!("\n{}: {}", repeat(command), report.end));
    }
    Ok(Run { success: report.end.is_success(), was_killed, text })
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

    fn judged(success: bool, text: impl Into<String>) -> Outcome {
        judge(Run { success, was_killed: false, text: text.into() }, "cargo test")
    }

    #[test]
    fn a_program_that_was_killed_has_failed_whatever_its_tests_did() {
        let run = Run { success: false, was_killed: true, text: "test a ... FAILED\n".into() };
        let outcome = judge(run, "cargo test");
        assert_eq!((outcome.count.failed, outcome.failures.len(), outcome.is_of_tests()), (2, 2, false));
    }

    fn failed(names: &[&str]) -> Outcome {
        let lines: String = names.iter().map(|name| format!("test {name} ... FAILED\n")).collect();
        let result = format!("test result: FAILED. 4 passed; {} failed; 0 ignored;\n", names.len());
        judged(false, lines + &result)
    }

    #[test]
    fn a_test_that_passes_by_itself_is_unsteady_and_one_that_fails_again_has_failed() {
        let outcome = repeated(failed(&["a", "b"]), |name| Ok(name == "a")).expect("run");
        assert_eq!((outcome.count.passed, outcome.count.failed), (5, 1));
        assert_eq!((outcome.unsteady.len(), outcome.failures.len()), (1, 1));
        assert_eq!((outcome.unsteady[0].what.as_str(), outcome.failures[0].what.as_str()), ("a", "b"));
        assert_eq!(outcome.line(), "FAILED, 5 passed, 1 failed, 1 UNSTEADY");
    }

    #[test]
    fn what_does_not_build_is_no_test_to_be_run_again() {
        assert!(!judged(false, "error: could not compile").is_of_tests());
        assert!(failed(&["a"]).is_of_tests());
    }

    #[test]
    fn one_test_is_run_with_the_command_of_all() {
        let mut command = Command::new("cargo");
        command.args(["test", "--no-fail-fast", "--", "--include-ignored"]).env("UASKIT_BIN", "x");
        let alone = Alone::of(&command);
        assert_eq!(
            repeat(&alone.command("a::b")),
            "UASKIT_BIN='x' cargo test --no-fail-fast -- --include-ignored --exact a::b"
        );
    }

    const FAILED: &str = "test b ... FAILED\ntest result: FAILED. 4 passed; 1 failed; 0 ignored;\n";

    #[test]
    fn a_skipped_step_neither_passes_nor_fails() {
        let mut outcome = Outcome::default();
        outcome += Outcome::skipped("no network".into());
        assert_eq!((outcome.count, outcome.line().as_str()), (Count::default(), "SKIPPED: no network"));
    }

    #[test]
    fn a_failed_test_is_named_with_its_command() {
        let outcome = judged(false, FAILED);
        assert_eq!((outcome.count.passed, outcome.count.failed), (4, 1));
        assert_eq!((outcome.failures[0].what.as_str(), outcome.failures.len()), ("b", 1));
        assert_eq!(outcome.line(), "FAILED, 4 passed, 1 failed");
    }

    #[test]
    fn what_does_not_build_counts_as_one_failure() {
        let outcome = judged(false, "error: could not compile");
        assert_eq!((outcome.count.failed, outcome.failures.len()), (1, 1));
    }

    #[test]
    fn a_program_that_dies_after_its_tests_passed_has_failed() {
        let outcome = judged(false, "test result: ok. 4 passed; 0 failed; 0 ignored;\n");
        assert_eq!((outcome.count.passed, outcome.count.failed), (4, 1));
    }

    #[test]
    fn a_test_that_could_not_run_is_named_with_its_reason() {
        const OUTPUT: &str = "test a ... ignored, takes a minute\ntest b  ... ignored (no mirror)\n\
                              test result: ok. 1 passed; 0 failed; 2 ignored;\n";
        let outcome = judged(true, OUTPUT);
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
