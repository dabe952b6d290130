//! How many tests passed, read from what the test programs print.

use std::ops::AddAssign;

/// Tests by what came of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) ignored: usize,
}

impl Count {
    /// Sums up the `test result:` lines of any number of test programs.
    pub(super) fn of_output(output: &str) -> Self {
        let mut count = Self::default();
        for line in output.lines() {
            let Some((_, results)) = line.split_once("test result: ") else { continue };
            let number = |word: &str| {
                let mut words = results.split([' ', ';', '.']).filter(|word| !word.is_empty()).peekable();
                while let Some(before) = words.next() {
                    if words.peek() == Some(&word) {
                        return before.parse().unwrap_or(0);
                    }
                }
                0
            };
            count += Self { passed: number("passed"), failed: number("failed"), ignored: number("ignored") };
        }
        count
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }
}

/// The names of the tests that failed, as the test programs print them.
pub(super) fn failed_tests(output: &str) -> Vec<&str> {
    let names =
        output.lines().filter_map(|line| line.trim().strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    names.map(str::trim_end).collect()
}

/// Tests that could not run where they are, with their reasons. The reasons of those that are slow follow a comma.
pub(super) fn skipped_tests(output: &str) -> Vec<String> {
    let tests =
        output.lines().filter_map(|line| line.trim().strip_prefix("test ")?.split_once(" ... ignored ("));
    tests.map(|(name, reason)| format!("{}: {}", name.trim_end(), reason.trim_end_matches(')'))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
running 3 tests
test a ... ok
test b::c ... FAILED
test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
   Doc-tests wire
test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s
";

    #[test]
    fn several_programs_are_summed_up() {
        assert_eq!(Count::of_output(OUTPUT), Count { passed: 13, failed: 1, ignored: 1 });
    }

    #[test]
    fn what_is_no_result_counts_nothing() {
        assert_eq!(Count::of_output("error: could not compile\n3 passed\n"), Count::default());
    }

    #[test]
    fn failed_tests_are_named() {
        assert_eq!(failed_tests(OUTPUT), ["b::c"]);
    }
}
