//! A red case made smaller: what is left is what it takes.
//!
//! Faults are left out in halves, quarters and so on, then one by one; there are fewer requests, and less of everything else.
//! Each try is a run of its own. What counts is that the same law is broken, by whatever. Always true: the result is red, and
//! the number of runs is bounded.

use super::case::Translated;
use super::{Case, Report, run};
use crate::check::Law;
use crate::fault::{Bug, Script};

/// Runs at most.
const RUNS_MAX: u32 = 600;

/// The smallest case that was found.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The case.
    pub case: Case,
    /// What comes of it.
    pub report: Report,
    /// Runs that it took.
    pub runs: u32,
}

/// Makes a red case smaller. `None` if it is not red.
pub fn shrink(case: &Case, bug: Option<Bug>) -> Option<Shrunk> {
    let report = run(case, bug);
    let law = report.verdict.err()?.law;
    let scripted = case.clone().with_faults(report.struck.clone());
    let mut search = Search { bug, law, best: Shrunk { case: case.clone(), report, runs: 1 } };
    // The script is what the dice did, so this is as red; unless it was lost in a panic.
    search.tries(scripted);
    loop {
        let before = search.best.case.clone();
        search.fewer_requests();
        search.fewer_faults();
        search.less_of_all();
        if search.best.case == before || search.best.runs >= RUNS_MAX {
            return Some(search.best);
        }
    }
}

struct Search {
    bug: Option<Bug>,
    law: Law,
    best: Shrunk,
}

impl Search {
    /// Tries a case; keeps it if it is as red.
    fn tries(&mut self, case: Case) -> bool {
        if self.best.runs >= RUNS_MAX {
            return false;
        }
        self.best.runs += 1;
        let report = run(&case, self.bug);
        let is_red = report.verdict.is_err_and(|violation| violation.law == self.law);
        if is_red {
            self.best.case = case;
            self.best.report = report;
        }
        is_red
    }

    fn fewer_requests(&mut self) {
        let mut cut = self.best.case.requests / 2;
        while cut > 0 {
            let requests = self.best.case.requests.saturating_sub(cut);
            if requests == 0 || !self.tries(Case { requests, ..self.best.case.clone() }) {
                cut /= 2;
            }
        }
    }

    fn fewer_faults(&mut self) {
        let mut chunk = self.faults().len();
        while chunk > 0 {
            let mut start = 0;
            while start < self.faults().len() {
                let fewer = self.faults().without(start, start + chunk);
                if !self.tries(self.best.case.clone().with_faults(fewer)) {
                    start += chunk;
                }
            }
            chunk /= 2;
        }
    }

    fn less_of_all(&mut self) {
        let case = self.best.case.clone();
        let mix = case.mix;
        for smaller in [
            Case { depth: 1, ..case.clone() },
            Case { depth: case.depth.div_ceil(2), ..case.clone() },
            Case { longest: 1, ..case.clone() },
            Case { hubs: 0, ..case.clone() },
            Case { drives: 1, ..case.clone() },
            Case { translated: Translated::None, ..case.clone() },
            Case { at_once: 1, ..case.clone() },
            Case { blocks: case.longest.max(4), ..case.clone() },
            Case { mix: super::Mix { aborts: 0, ..mix }, ..case.clone() },
            Case { mix: super::Mix { zeroes: 0, ..mix }, ..case.clone() },
            Case { mix: super::Mix { again: 0, ..mix }, ..case.clone() },
            Case { mix: super::Mix { flushes: 0, ..mix }, ..case.clone() },
            Case { is_cached: false, ..case.clone() },
        ] {
            if smaller != self.best.case && self.best.case == case {
                self.tries(smaller);
            }
        }
    }

    fn faults(&self) -> Script {
        self.best.case.faults.clone().unwrap_or_default()
    }
}
