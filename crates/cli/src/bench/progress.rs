//! Progress of a benchmark: one line on a terminal, redrawn in place.
//!
//! Ctrl-C arrives here as well: the first one ends the current run and keeps what was measured.

use crate::failure::Failure;
use bench::backend::Route;
use bench::measure::{CampaignObserver, Progress, ProgressSink};
use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::SIGQUIT;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use workload::Job;

/// Steps of the bar: a run is a thousand of them.
const STEPS: u64 = 1000;

/// Shows progress, and stops the benchmark at a signal.
#[derive(Debug)]
pub(super) struct View {
    bar: Option<ProgressBar>,
    run: String,
    stopped: Arc<AtomicBool>,
}

impl View {
    /// Draws on a terminal only, and not if `quiet`.
    pub(super) fn new(quiet: bool) -> Result<Self, Failure> {
        let stopped = crate::signals::stop_flag(&[SIGQUIT])?;
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let style = ProgressStyle::with_template("{prefix} {wide_bar} {msg}");
            ProgressBar::new(STEPS).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        Ok(Self { bar, run: String::new(), stopped })
    }

    /// The flag that Ctrl-C sets.
    pub(super) fn stopped(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stopped)
    }

    /// Clears the line.
    pub(super) fn close(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl ProgressSink for View {
    fn tick(&mut self, progress: Progress) -> bool {
        if let Some(bar) = &self.bar {
            let Progress { elapsed, whole, ios, bytes, failures } = progress;
            let seconds = elapsed.as_secs_f64().max(1e-3);
            let part = if whole.is_zero() { 1.0 } else { seconds / whole.as_secs_f64() };
            bar.set_position((part * STEPS as f64) as u64);
            let failed = if failures > 0 { format!(", {failures} failed") } else { String::new() };
            let what = if whole.is_zero() { "reading back" } else { "" };
            bar.set_message(format!("{what} {ios} I/Os {:.1} MB{failed}", bytes as f64 / 1e6));
        }
        !self.is_over()
    }
}

impl CampaignObserver for View {
    fn begin(&mut self, job: &Job, route: Route, round: u32) {
        self.run = format!("{}, {route}, depth {}, round {round}", job.label, job.depth);
        if let Some(bar) = &self.bar {
            bar.set_prefix(self.run.clone());
            bar.set_position(0);
        }
    }

    fn is_over(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}
