//! Progress of many runs: a line on a terminal, nothing elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use study::progress::{Progress, ProgressSink};

/// A line on standard error, if that is a terminal, that says how much of `count` is done and how long it takes yet.
pub(crate) fn bar(template: &str, count: usize, quiet: bool) -> ProgressBar {
    let is_drawn = !quiet && std::io::stderr().is_terminal();
    let target = if is_drawn { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(count as u64), target).with_style(style)
}

/// Shows batches of runs of an experiment as lines on standard error, unless `quiet`.
pub(crate) struct ProgressLines {
    pub(crate) quiet: bool,
}

struct ProgressLine(ProgressBar);

impl ProgressSink for ProgressLines {
    fn start(&self, what: &'static str, runs: usize) -> Box<dyn Progress> {
        let bar = bar("{prefix} {wide_bar} {pos} of {len} runs, {eta} left", runs, self.quiet);
        Box::new(ProgressLine(bar.with_prefix(what)))
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
