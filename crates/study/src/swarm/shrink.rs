//! Shrinks a failing case to what is needed to fail.
//!
//! Faults are removed in halves, quarters and so on, then one by one; requests and everything else
//! are reduced. Each attempt is a separate run and counts if the same invariant is violated. Always
//! true: the result fails, and the number of runs is bounded.

use super::case::FullSpeedDrives;
use super::{Case, Parts, Report, run};
use sim::check::Invariant;
use sim::fault::{FaultScript, SeededBug};

/// Maximum runs.
const RUNS_MAX: u32 = 600;

/// The smallest failing case found.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The case.
    pub case: Case,
    /// Its results.
    pub report: Report,
    /// Runs needed.
    pub runs: u32,
}

/// Shrinks a failing case. `None` if it does not fail.
pub fn shrink(case: &Case, bug: Option<SeededBug>) -> Option<Shrunk> {
    shrink_while(case, run(case, bug), bug, &|| true)
}

/// Shrinks a case with known results while `wanted` allows, which is asked before each run.
pub fn shrink_while(
    case: &Case,
    report: Report,
    bug: Option<SeededBug>,
    has_time: &dyn Fn() -> bool,
) -> Option<Shrunk> {
    let invariant = report.verdict.err()?.invariant;
    let scripted = case.clone().with_faults(report.struck.clone());
    let best = Shrunk { case: case.clone(), report, runs: 1 };
    let mut search = Search { bug, invariant, best, has_time, is_over: false };
    // The script repeats the random faults, so it fails as well, unless a panic at the end of a
    // session lost the last of them.
    search.tries(scripted);
    loop {
        let before = search.best.case.clone();
        search.fewer_requests();
        search.fewer_faults();
        search.less_of_all();
        if search.best.case == before || search.is_over {
            return Some(search.best);
        }
    }
}

struct Search<'a> {
    bug: Option<SeededBug>,
    invariant: Invariant,
    best: Shrunk,
    has_time: &'a dyn Fn() -> bool,
    /// Whether it ran out of runs or time.
    is_over: bool,
}

impl Search<'_> {
    /// Tries a case; keeps it if it fails alike.
    fn tries(&mut self, case: Case) -> bool {
        self.is_over |= self.best.runs >= RUNS_MAX || !(self.has_time)();
        if self.is_over {
            return false;
        }
        self.best.runs += 1;
        let report = run(&case, self.bug);
        let is_red = report.verdict.is_err_and(|violation| violation.invariant == self.invariant);
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
            Case { is_early: false, ..case.clone() },
            Case { parts: Parts::Plain, ..case.clone() },
            Case { is_costing: false, ..case.clone() },
            Case { is_stacked: false, ..case.clone() },
            Case { commands: None, ..case.clone() },
            Case { translated: FullSpeedDrives::None, ..case.clone() },
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

    fn faults(&self) -> FaultScript {
        self.best.case.faults.clone().unwrap_or_default()
    }
}
