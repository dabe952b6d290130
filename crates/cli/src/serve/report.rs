//! The output of `serve` while it runs: lines for people, a live line on a terminal, or events for
//! programs.
//!
//! The same events in three forms; JSON goes to standard output so that it can be piped, the live line to standard
//! error so that it cannot. Left out: errors, which `main` prints.

use crate::sanitize;
use device::ActiveTransport;
use drive::Counters;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use server::net::Snapshot;
use std::io::{IsTerminal, Write};
use std::time::Instant;

/// How `serve` prints events.
#[derive(Debug)]
pub(super) enum Report {
    /// Nothing but errors.
    Quiet,
    /// One JSON object a line on standard output.
    Json,
    /// Lines on standard output, and one on the terminal that is drawn again and again.
    People { live: Option<Live> },
}

/// The live line.
#[derive(Debug)]
pub(super) struct Live {
    line: ProgressBar,
    since: Instant,
    before: Counters,
}

impl Report {
    pub(super) fn new(json: bool, quiet: bool) -> Self {
        match (json, quiet) {
            (true, _) => Self::Json,
            (_, true) => Self::Quiet,
            _ => Self::People { live: std::io::stderr().is_terminal().then(Live::new) },
        }
    }

    /// Prints something once: a line for people, and its name and fields for programs.
    pub(super) fn emit(&self, line: &str, event: &str, mut fields: Value) {
        match self {
            Self::Quiet => {}
            Self::Json => {
                fields["event"] = json!(event);
                print(&sanitize::json(&fields.to_string()));
            }
            Self::People { live: Some(live) } => live.line.suspend(|| print(line)),
            Self::People { live: None } => print(line),
        }
    }

    /// Draws the live line, if there is one.
    pub(super) fn draw(&mut self, snapshot: Snapshot) {
        if let Self::People { live: Some(live) } = self {
            live.draw(snapshot);
        }
    }

    /// Whether [`Report::draw`] draws anything.
    pub(super) const fn is_live(&self) -> bool {
        matches!(self, Self::People { live: Some(_) })
    }
}

impl Live {
    fn new() -> Self {
        let line = ProgressBar::new_spinner();
        line.set_style(
            ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        Self { line, since: Instant::now(), before: Counters::default() }
    }

    fn draw(&mut self, snapshot: Snapshot) {
        let Snapshot { counters, depth, transport, .. } = snapshot;
        let seconds = self.since.elapsed().as_secs_f64().max(1e-3);
        let commands = (counters.reads + counters.writes) - (self.before.reads + self.before.writes);
        let rate = |now: u64, before: u64| (now - before) as f64 / seconds / 1e6;
        self.line.set_message(format!(
            "{}  {:.0} IOPS  read {:.1} MB/s  write {:.1} MB/s  depth {depth}",
            describe(transport),
            commands as f64 / seconds,
            rate(counters.read_bytes, self.before.read_bytes),
            rate(counters.written_bytes, self.before.written_bytes),
        ));
        self.since = Instant::now();
        self.before = counters;
    }
}

/// A transport, for people.
pub(crate) const fn describe(transport: ActiveTransport) -> &'static str {
    match transport {
        ActiveTransport::None => "no transport yet",
        ActiveTransport::Bot => "BOT",
        ActiveTransport::Cbi { interrupt: true } => "CBI with interrupts",
        ActiveTransport::Cbi { interrupt: false } => "CBI without interrupts",
        ActiveTransport::Uas { streams: true } => "UAS over streams",
        ActiveTransport::Uas { streams: false } => "UAS without streams",
    }
}

/// A reader that has gone does not stop the service.
fn print(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{}", sanitize::escape_lines(line)).and_then(|()| out.flush());
}
