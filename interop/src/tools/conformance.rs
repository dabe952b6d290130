//! iscsi-test-cu, the SCSI conformance suite of libiscsi, on a disk of the guest.
//!
//! It tests through a device node, prints one line per test and `[SKIPPED]` lines where the disk says it
//! lacks a command. Its exit status says nothing more than that something failed.
//!
//! Tests come in families: ALL has each of the 230 tests once, SCSI leaves out those for iSCSI alone, LINUX
//! those that Linux never sends. Without a name the suite runs all families, 615 tests with repetitions.

use std::{fmt, time::Duration};

use crate::{Error, Result, guest::Guest};

/// Results of the tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Tests without a failed assertion, as `Suite.Test`.
    pub passed: Vec<String>,
    /// Tests with one, and what was printed meanwhile.
    pub failed: Vec<Failure>,
    /// Lines that say what was not tested, with their test. One test may print several.
    pub skips: Vec<Skip>,
}

/// A failed test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// `Suite.Test`.
    pub test: String,
    /// Its output.
    pub printed: String,
}

/// Something that was not tested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skip {
    /// `Suite.Test`; empty for what the suite finds out before its first test.
    pub test: String,
    /// Why, in the suite's words.
    pub reason: String,
}

/// Which tests, and what they may do to the device.
#[derive(Clone, Debug)]
pub struct Suite {
    tests: String,
    flags: String,
}

impl Suite {
    /// Every test of every family, without any that writes.
    pub fn new() -> Self {
        Self { tests: String::new(), flags: "-v".into() }
    }

    /// The tests of these names, with commas in between and the wildcards of a shell, such as `ALL`,
    /// `SCSI.Read10` or `ALL.Prin*,ALL.Prout*`.
    #[must_use]
    pub fn tests(mut self, tests: &str) -> Self {
        self.tests = format!("-t '{tests}' ");
        self
    }

    /// Allows to write to the device.
    #[must_use]
    pub fn writes(mut self) -> Self {
        self.flags.push_str(" -d");
        self
    }

    /// Allows to wipe the device as a whole.
    #[must_use]
    pub fn sanitizes(mut self) -> Self {
        self.flags.push_str(" -S");
        self
    }

    /// Runs the tests. On QEMU's own drive, writing: `ALL` 12 seconds, everything 40 seconds.
    pub fn run(&self, guest: &mut Guest, device: &str) -> Result<Verdict> {
        const LIMIT: Duration = Duration::from_secs(300);
        let Self { tests, flags } = self;
        let output = guest.run_within(LIMIT, &format!("iscsi-test-cu {flags} {tests}{device} 2>&1"))?;
        Verdict::parse(&output.stdout)
    }
}

impl Default for Suite {
    fn default() -> Self {
        Self::new()
    }
}

impl Verdict {
    /// Reads what the suite printed in its verbose mode, and checks the count against the suite's own.
    pub fn parse(printed: &str) -> Result<Self> {
        let mut reading = Reading::default();
        printed.lines().for_each(|line| reading.line(line));
        reading.end_of_test(false);
        let verdict = reading.verdict;
        if summary(printed) == Some((verdict.passed.len(), verdict.failed.len())) {
            return Ok(verdict);
        }
        let start = printed.lines().count().saturating_sub(10);
        let last: Vec<&str> = printed.lines().skip(start).collect();
        let what = format!("count {} passed, {} failed", verdict.passed.len(), verdict.failed.len());
        Err(Error::unexpected(what, format!("iscsi-test-cu ends with\n{}", last.join("\n"))))
    }

    /// The failures of the device. A test that needs to write and was not allowed to counts as failed in the
    /// suite's own eyes, though it has sent nothing.
    pub fn failures(&self) -> impl Iterator<Item = &Failure> {
        self.failed.iter().filter(|failure| !failure.printed.contains("--dataloss flag is not set"))
    }

    /// The reasons to skip, each once, with the number of lines that give it; most frequent first.
    pub fn skip_reasons(&self) -> Vec<(&str, usize)> {
        let mut reasons: Vec<(&str, usize)> = Vec::new();
        for skip in &self.skips {
            match reasons.iter_mut().find(|(reason, _)| *reason == skip.reason) {
                Some((_, count)) => *count += 1,
                None => reasons.push((&skip.reason, 1)),
            }
        }
        reasons.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        reasons
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, failed, skips } = self;
        writeln!(f, "{} passed, {} failed, {} skip lines", passed.len(), failed.len(), skips.len())?;
        for Failure { test, printed } in failed {
            writeln!(f, "FAILED {test}\n{printed}")?;
        }
        self.skip_reasons().iter().try_for_each(|(reason, count)| writeln!(f, "{count:>4} x {reason}"))
    }
}

/// Passed and failed tests of the suite's last table; `None` when it did not get that far.
fn summary(printed: &str) -> Option<(usize, usize)> {
    let (_, table) = printed.split_once("Run Summary:")?;
    let tests = table.lines().map(str::trim).find_map(|line| line.strip_prefix("tests"))?;
    let mut counts = tests.split_whitespace().skip(2).map(str::parse);
    Some((counts.next()?.ok()?, counts.next()?.ok()?))
}

/// Where in the output we are.
#[derive(Default)]
struct Reading {
    suite: String,
    test: Option<String>,
    printed: String,
    verdict: Verdict,
}

impl Reading {
    fn line(&mut self, line: &str) {
        if let Some(suite) = line.strip_prefix("Suite: ") {
            self.end_of_test(false);
            self.suite = suite.trim().into();
        } else if let Some((name, rest)) =
            line.strip_prefix("  Test: ").and_then(|test| test.split_once(" ..."))
        {
            self.end_of_test(false);
            self.test = Some(format!("{}.{}", self.suite, name.trim()));
            self.content(rest);
        } else {
            self.content(line);
        }
    }

    /// The rest of a test's line, or a separate line: the verdict may be alone or behind other words.
    fn content(&mut self, line: &str) {
        if let Some((_, reason)) = line.split_once("[SKIPPED]") {
            let test = self.test.clone().unwrap_or_default();
            let reason = reason.strip_suffix("passed").unwrap_or(reason).trim().into();
            self.verdict.skips.push(Skip { test, reason });
        }
        if self.test.is_none() {
            return;
        }
        if line.ends_with("passed") {
            self.end_of_test(true);
        } else if line != "FAILED" {
            self.printed.push_str(line);
            self.printed.push('\n');
        }
    }

    /// A test without the word `passed` has failed: its assertions follow the word `FAILED`.
    fn end_of_test(&mut self, passed: bool) {
        let printed = std::mem::take(&mut self.printed);
        match self.test.take() {
            Some(test) if passed => self.verdict.passed.push(test),
            Some(test) => self.verdict.failed.push(Failure { test, printed: printed.trim_end().into() }),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces of a real run.
    const PRINTED: &str = "    [SKIPPED] PERSISTENT RESERVE IN is not implemented.

Suite: Inquiry
  Test: Standard ...    [WARNING] Bad additional length returned.
passed
  Test: Mandatory ...passed
  Test: BlockLimits ...    [WARNING] SBC-3 pagelength returned.
FAILED
    1. test_inquiry_block_limits.c:72  - CU_ASSERT_EQUAL(size,4)
Suite: GetLBAStatus
  Test: Simple ...    [SKIPPED] GET_LBA_STATUS is not implemented.
    [SKIPPED] GETLBASTATUS is not implemented.
passed

Run Summary:    Type  Total    Ran Passed Failed Inactive
              suites      2      2    n/a      0        0
               tests      4      4      3      1        0
             asserts      9      9      8      1      n/a
";

    #[test]
    fn tests_are_named_with_their_suite() {
        let verdict = Verdict::parse(PRINTED).expect("whole");
        assert_eq!(verdict.passed, ["Inquiry.Standard", "Inquiry.Mandatory", "GetLBAStatus.Simple"]);
    }

    #[test]
    fn a_failed_test_brings_what_it_printed() {
        let verdict = Verdict::parse(PRINTED).expect("whole");
        let [failure] = &verdict.failed[..] else { panic!("{verdict}") };
        assert_eq!(failure.test, "Inquiry.BlockLimits");
        assert_eq!(
            failure.printed,
            "    [WARNING] SBC-3 pagelength returned.\n    1. test_inquiry_block_limits.c:72  - CU_ASSERT_EQUAL(size,4)"
        );
    }

    #[test]
    fn a_skip_belongs_to_its_test() {
        let verdict = Verdict::parse(PRINTED).expect("whole");
        let skips: Vec<(&str, &str)> =
            verdict.skips.iter().map(|s| (s.test.as_str(), s.reason.as_str())).collect();
        assert_eq!(
            skips,
            [
                ("", "PERSISTENT RESERVE IN is not implemented."),
                ("GetLBAStatus.Simple", "GET_LBA_STATUS is not implemented."),
                ("GetLBAStatus.Simple", "GETLBASTATUS is not implemented."),
            ]
        );
    }

    #[test]
    fn a_test_that_was_not_allowed_to_write_says_nothing_about_the_device() {
        let verdict =
            Verdict::parse(&PRINTED.replace("[WARNING] SBC-3", "--dataloss flag is not set in. SBC-3"));
        let verdict = verdict.expect("whole");
        assert_eq!((verdict.failed.len(), verdict.failures().count()), (1, 0));
    }

    #[test]
    fn a_run_that_did_not_reach_its_end_is_an_error() {
        let early = PRINTED.split_once("Run Summary").expect("has one").0;
        assert!(Verdict::parse(early).is_err());
    }

    #[test]
    fn a_count_unlike_the_suites_own_is_an_error() {
        assert!(Verdict::parse(&PRINTED.replace("  4      3      1", "  4      4      0")).is_err());
    }
}
