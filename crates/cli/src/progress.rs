//! Progress of many runs: a line on a terminal, nothing elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use study::progress::{Progress, ProgressSink};

/// A line on standard error that says how far it is and how long it takes yet.
fn of_runs(what: &'static str, runs: usize, quiet: bool) -> ProgressBar {
    let is_drawn = !quiet && std::io::stderr().is_terminal();
    let target = if is_drawn { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template("{prefix} {wide_bar} {pos} of {len} runs, {eta} left");
    let bar = ProgressBar::with_draw_target(Some(runs as u64), target).with_prefix(what);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Shows batches of runs of an experiment as lines on standard error, unless `quiet`.
pub(crate) struct ProgressLines {
    pub(crate) quiet: bool,
}

struct ProgressLine(ProgressBar);

impl ProgressSink for ProgressLines {
    fn start(&self, what: &'static str, runs: usize) -> Box<dyn Progress> {
        Box::new(ProgressLine(of_runs(what, runs, self.quiet)))
    }
}

impl Progress for ProgressLine {
    fn advance(&self) {
        self.0.inc(1);
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
