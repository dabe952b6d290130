//! Nothing below the drivers knows a clock, thread, socket, file, environment or hash order.
//!
//! The crates below them are `no_std`, which rules all of that out at once; this rule sees that they stay so, and
//! that `std` comes back for tests only. `sim` and `study` need `std` and must be as deterministic, so there the names
//! are looked for.

use super::tokens::lines_of;
use crate::tidy::{
    finding::{Finding, Rule},
    source::Source,
};

/// Crates without `std`.
const WITHOUT_STD: &[&str] =
    &["units", "wire", "bus", "device", "initiator", "quirks", "xhci-driver", "xhci-controller"];
/// Crates with `std` whose runs repeat from a seed.
const REPEATABLE: &[&str] = &["sim", "study"];

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let without_std = WITHOUT_STD.contains(&source.member());
    if !source.is_library() || !(without_std || REPEATABLE.contains(&source.member())) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let is_root = source.path.ends_with("/src/lib.rs");
    if without_std && is_root && lines_of(source, &["#", "!", "[", "no_std", "]"]).next().is_none() {
        let advice = format!("{} has no clock, thread, file: say `#![no_std]`", source.member());
        findings.push(Finding::new(&source.path, 1, Rule::Ambient, advice));
    }
    let forbidden = if without_std { NEEDS_STD } else { NOT_REPEATABLE };
    for (pattern, what) in forbidden {
        let hits = lines_of(source, pattern).filter(|line| !source.is_test_line(*line));
        let advice = format!("{what} does not belong in {}; take it as an input", source.member());
        findings.extend(hits.map(|line| Finding::new(&source.path, line, Rule::Ambient, advice.as_str())));
    }
    findings
}

const NEEDS_STD: &[(&[&str], &str)] = &[(&["extern", "crate", "std"], "std"), (&["std", ":", ":"], "std")];

const NOT_REPEATABLE: &[(&[&str], &str)] = &[
    (&["std", ":", ":", "time"], "a clock"),
    (&["Instant", ":", ":", "now"], "a clock"),
    (&["SystemTime"], "a clock"),
    (&["std", ":", ":", "thread"], "a thread"),
    (&["std", ":", ":", "fs"], "a file"),
    (&["std", ":", ":", "net"], "a socket"),
    (&["std", ":", ":", "env"], "the environment"),
    (&["HashMap"], "hash order"),
    (&["HashSet"], "hash order"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rules::findings_of;

    #[test]
    fn a_core_crate_must_say_no_std() {
        assert_eq!(findings_of(check, "crates/bus/src/lib.rs", "//! Bus.\n").len(), 1);
        assert_eq!(findings_of(check, "crates/bus/src/lib.rs", "//! Bus.\n#![no_std]\n"), [""; 0]);
        assert_eq!(findings_of(check, "crates/server/src/lib.rs", "//! Server.\n"), [""; 0]);
    }

    #[test]
    fn std_comes_back_for_tests_only() {
        let path = "crates/bus/src/a.rs";
        assert_eq!(findings_of(check, path, "use std::time::Instant;").len(), 1);
        assert_eq!(findings_of(check, path, "#[cfg(test)]\nmod tests { use std::time::Instant; }"), [""; 0]);
    }

    #[test]
    fn a_simulation_does_not_read_a_clock() {
        let text = "use std::vec::Vec;\nfn a() { Instant::now(); }\ntype A = HashMap<u8, u8>;";
        assert_eq!(findings_of(check, "crates/sim/src/a.rs", text).len(), 2);
    }
}
