//! The runs behind rows, on all processors, with how far they are on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rayon::prelude::*;
use sim::published::fit::{Run, Runner};
use sim::published::{Facts, Measurement, Outcome};
use sim::setups::Setup;
use sim::trial::{self, Terms};
use std::io::IsTerminal;

/// Makes runs on the threads of the pool that it is called in.
pub(super) struct Processors<'a> {
    pub(super) setups: &'a [Setup],
    pub(super) terms: Terms,
    /// What the runs are for, in a word.
    pub(super) what: &'static str,
}

impl Processors<'_> {
    /// One run.
    fn make(&self, facts: Facts<'_>, one: &Measurement) -> Result<Outcome, String> {
        trial::outcome(facts, one, &self.terms).map_err(|error| error.to_string())
    }

    /// A line that says how far it is and how long it takes yet, where somebody sees it.
    fn progress(&self, runs: usize) -> ProgressBar {
        let seen = std::io::stderr().is_terminal();
        let target = if seen { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let style = ProgressStyle::with_template("{prefix} {wide_bar} {pos} of {len} runs, {eta} left");
        let bar = ProgressBar::with_draw_target(Some(runs as u64), target).with_prefix(self.what);
        bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    }
}

impl Runner for Processors<'_> {
    fn outcomes(&mut self, runs: &[Run]) -> Vec<Result<Outcome, String>> {
        let bar = self.progress(runs.len());
        let make = |run: &Run| {
            let facts = Facts { catalogue: &run.catalogue, setups: self.setups };
            let outcome = self.make(facts, &run.measurement);
            bar.inc(1);
            outcome
        };
        let outcomes = runs.par_iter().map(make).collect();
        bar.finish_and_clear();
        outcomes
    }
}
