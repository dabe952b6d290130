//! How far many runs are: a line on a terminal, and nothing where nobody sees it.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

/// A line on standard error that says how far it is and how long it takes yet.
pub(crate) fn of_runs(what: &'static str, runs: usize) -> ProgressBar {
    let seen = std::io::stderr().is_terminal();
    let target = if seen { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template("{prefix} {wide_bar} {pos} of {len} runs, {eta} left");
    let bar = ProgressBar::with_draw_target(Some(runs as u64), target).with_prefix(what);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
