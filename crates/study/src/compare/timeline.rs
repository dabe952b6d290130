//! `--timeline`: two requests in flight together, on the four pipes.
//!
//! Drawn from the events that [`crate::explain`] recorded: driver work, packets with payload on
//! each pipe, firmware work of the bridge, the drive. BOT has two endpoints; its wrappers are drawn
//! on the pipes that UAS uses for the same purpose. Left out: packets without payload, such as
//! acknowledgements, and native SATA, which has no pipes.

use super::{Comparison, Configuration, one, short};
use crate::error::StudyError;
use crate::explain::{CommandTrace, Explain, Span};
use crate::parts::{Carried, Catalogue};
use crate::trial::{Terms, TrialObservers};
use rayon::prelude::*;
use report::drawing::{Drawing, rounded, text};
use sim::engine::LatencyStage;
use std::cell::RefCell;
use std::fmt::Write;
use std::rc::Rc;
use svg::node::element::{Group, Line, Rectangle};
use units::Instant;
use wire::uas::PipeUsage;
use workload::Job;

/// Commands of a run, and how many of the first are skipped as start-up.
const COMMANDS: usize = 40;
const BEGINNING: usize = 8;

/// A line of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    InFlight,
    Driver,
    Pipe(PipeUsage),
    Bridge,
    Drive,
}

/// The request of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    First,
    Second,
    Other,
}

/// An activity for a request, in nanoseconds from the start of the first command.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bar {
    row: Row,
    whose: Whose,
    from: f64,
    to: f64,
}

/// One transport.
struct Panel {
    title: String,
    bars: Vec<Bar>,
    /// When the second request ended.
    ends: f64,
}

const ROWS: [(Row, &str); 8] = [
    (Row::InFlight, "in flight"),
    (Row::Driver, "driver"),
    (Row::Pipe(PipeUsage::Command), "command pipe"),
    (Row::Pipe(PipeUsage::DataOut), "data-out pipe"),
    (Row::Pipe(PipeUsage::DataIn), "data-in pipe"),
    (Row::Pipe(PipeUsage::Status), "status pipe"),
    (Row::Bridge, "bridge"),
    (Row::Drive, "drive"),
];

/// Two requests in flight together, on each configuration with USB.
pub struct RequestTimeline {
    title: String,
    panels: Vec<Panel>,
}

/// Runs the job and finds the requests; empty if no drive has pipes.
///
/// # Errors
///
/// If a run fails.
pub fn timeline(job: &Job, comparison: Comparison<'_>) -> Result<RequestTimeline, StudyError> {
    let Comparison { columns, catalogue, terms } = comparison;
    let usb: Vec<_> = columns.iter().filter(|column| column.activation.transport != Carried::Sata).collect();
    let panels = usb.par_iter().map(|column| panel(column, job, catalogue, terms));
    let panels: Vec<Panel> = panels.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    let title = format!("Two requests in flight together: {}, QD{}", job.label, job.depth);
    Ok(RequestTimeline { title, panels })
}

impl RequestTimeline {
    /// Whether no configuration has two requests on pipes.
    pub fn is_empty(&self) -> bool {
        self.panels.is_empty()
    }

    /// As a picture.
    pub fn drawing(&self) -> Drawing {
        picture(&self.title, &self.panels)
    }

    /// The titles of its columns.
    pub fn titles(&self) -> Vec<&str> {
        self.panels.iter().map(|panel| panel.title.as_str()).collect()
    }

    /// As text for a terminal.
    pub fn text(&self) -> String {
        printed(&self.title, &self.panels)
    }
}

/// One transport; none without two commands.
fn panel(
    column: &Configuration,
    job: &Job,
    catalogue: &Catalogue,
    terms: &Terms,
) -> Result<Option<Panel>, StudyError> {
    let explain = Rc::new(RefCell::new(Explain::with_traces(COMMANDS)));
    let watch =
        TrialObservers { late_observer: Some(Box::new(Rc::clone(&explain))), ..TrialObservers::default() };
    let terms = short(terms, COMMANDS as u32);
    one(column, job, catalogue, &terms, watch)?;
    let mut traces = explain.borrow_mut().take_traces();
    let unowned = explain.borrow_mut().take_unowned();
    traces.sort_by_key(|command| command.began);
    let Some([first, second]) = pair(&traces) else { return Ok(None) };
    let title = format!("{}: {}", column.name, column.activation.transport);
    Ok(Some(Panel::new(title, &traces, &unowned, first, second)))
}

/// Two consecutive commands, overlapping if any do.
fn pair(traces: &[CommandTrace]) -> Option<[&CommandTrace; 2]> {
    let late = traces.get(BEGINNING.min(traces.len().saturating_sub(2))..)?;
    let mut pairs = late.windows(2).filter_map(|two| <&[CommandTrace; 2]>::try_from(two).ok());
    let overlap = pairs.clone().find(|[one, next]| next.began < one.ended);
    overlap.or_else(|| pairs.next()).map(|[one, next]| [one, next])
}

impl Panel {
    fn new(
        title: String,
        traces: &[CommandTrace],
        unowned: &[Span],
        first: &CommandTrace,
        second: &CommandTrace,
    ) -> Self {
        let (begins, end) = (first.began, first.ended.max(second.ended));
        let ns = |at: Instant| (at.clamp(begins, end) - begins).as_ps() as f64 / 1e3;
        let drawn = |spans: &[Span], whose| {
            let seen = spans.iter().filter(|span| span.from < end && span.to > begins);
            let rows = seen.filter_map(|span| Some((Row::of(span)?, span)));
            rows.map(|(row, span)| Bar { row, whose, from: ns(span.from), to: ns(span.to) })
                .collect::<Vec<_>>()
        };
        let mut bars = drawn(unowned, Whose::Other);
        for command in traces.iter().filter(|command| command.began < end && command.ended > begins) {
            let whose = match command.command {
                id if id == first.command && command.began == first.began => Whose::First,
                id if id == second.command && command.began == second.began => Whose::Second,
                _ => Whose::Other,
            };
            if whose != Whose::Other {
                bars.push(Bar { row: Row::InFlight, whose, from: ns(command.began), to: ns(command.ended) });
            }
            bars.extend(drawn(&command.spans, whose));
        }
        Self { title, bars: joined(bars, ns(end)), ends: ns(end) }
    }
}

impl Row {
    const fn of(span: &Span) -> Option<Self> {
        match (span.stage, span.pipe) {
            (_, Some(pipe)) => Some(Self::Pipe(pipe)),
            (LatencyStage::Driver, _) => Some(Self::Driver),
            (LatencyStage::Bridge, _) => Some(Self::Bridge),
            (LatencyStage::Drive, _) => Some(Self::Drive),
            _ => None,
        }
    }
}

/// Merges bars of one command that nearly touch.
fn joined(mut bars: Vec<Bar>, whole: f64) -> Vec<Bar> {
    let place = |row: Row| ROWS.iter().position(|(known, _)| *known == row).unwrap_or(ROWS.len());
    bars.sort_by(|one, other| {
        let of = |bar: &Bar| (place(bar.row), bar.whose as u8);
        of(one).cmp(&of(other)).then(one.from.total_cmp(&other.from))
    });
    let mut all: Vec<Bar> = Vec::new();
    for bar in bars {
        match all.last_mut() {
            Some(last)
                if (last.row, last.whose) == (bar.row, bar.whose) && bar.from <= last.to + whole / 500.0 =>
            {
                last.to = last.to.max(bar.to);
            }
            _ => all.push(bar),
        }
    }
    // Other requests are drawn below.
    all.sort_by_key(|bar| bar.whose != Whose::Other);
    all
}

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 120.0;
const RIGHT: f64 = 20.0;
const ROW: f64 = 20.0;
const PANEL_HEAD: f64 = 30.0;
const HEAD: f64 = 66.0;
const AXIS: f64 = 30.0;

fn picture(title: &str, panels: &[Panel]) -> Drawing {
    let whole = panels.iter().map(|panel| panel.ends).fold(1.0, f64::max);
    let panel_height = PANEL_HEAD + ROWS.len() as f64 * ROW + AXIS;
    let height = HEAD + panels.len() as f64 * panel_height;
    let description: String = panels.iter().map(|panel| described(panel) + " ").collect();
    let mut drawing = Drawing::new(WIDTH, height, title, description.trim());
    drawing = drawing.with(text(title, 16.0, 26.0, "head"));
    for (x, class, name) in [
        (16.0, "first", "request 1"),
        (120.0, "second", "request 2"),
        (236.0, "other", "other requests, or unknown"),
    ] {
        let sample = Rectangle::new().set("class", class).set("x", x).set("y", 40).set("width", 14);
        drawing = drawing.with(sample.set("height", 12).set("rx", 2)).with(text(name, x + 20.0, 51.0, ""));
    }
    for (number, panel) in panels.iter().enumerate() {
        drawing = drawing.with(drawn(panel, HEAD + number as f64 * panel_height, whole));
    }
    drawing
}

fn described(panel: &Panel) -> String {
    let of = |whose| {
        let bar = panel.bars.iter().find(|bar| bar.row == Row::InFlight && bar.whose == whose);
        bar.map_or((0.0, 0.0), |bar| (bar.from / 1e3, bar.to / 1e3))
    };
    let ((_, first), (begins, second)) = (of(Whose::First), of(Whose::Second));
    format!(
        "{}: request 1 completes after {first:.1} microseconds; request 2 starts at {begins:.1} and completes at {second:.1}.",
        panel.title
    )
}

fn drawn(panel: &Panel, top: f64, whole: f64) -> Group {
    let scale = (WIDTH - LEFT - RIGHT) / whole;
    let mut group = Group::new().add(text(&panel.title, 16.0, top + 18.0, "head"));
    let bottom = top + PANEL_HEAD + ROWS.len() as f64 * ROW;
    let step = tick(whole);
    for nth in 0..=(whole / step) as u32 {
        let x = rounded(LEFT + f64::from(nth) * step * scale);
        let rule = Line::new().set("class", "rule").set("x1", x).set("x2", x);
        group = group.add(rule.set("y1", top + PANEL_HEAD).set("y2", bottom + 4.0));
        let unit = if nth == 0 { " us" } else { "" };
        let label = format!("{}{unit}", f64::from(nth) * step / 1e3);
        group = group.add(text(label, x, bottom + 17.0, "small").set("text-anchor", "middle"));
    }
    for (number, (row, name)) in ROWS.iter().enumerate() {
        let y = top + PANEL_HEAD + number as f64 * ROW;
        group = group.add(text(*name, LEFT - 10.0, y + 14.0, "").set("text-anchor", "end"));
        for bar in panel.bars.iter().filter(|bar| bar.row == *row) {
            // Two in flight together are side by side.
            let (y, height) = match (bar.row, bar.whose) {
                (Row::InFlight, Whose::Second) => (y + 10.0, 7.0),
                (Row::InFlight, _) => (y + 2.0, 7.0),
                _ => (y + 3.0, ROW - 6.0),
            };
            let class = match bar.whose {
                Whose::First => "first",
                Whose::Second => "second",
                Whose::Other => "other",
            };
            let width = ((bar.to - bar.from) * scale).max(1.5);
            let place = Rectangle::new().set("x", rounded(LEFT + bar.from * scale)).set("y", rounded(y));
            group = group.add(
                place.set("width", rounded(width)).set("height", height).set("rx", 1.5).set("class", class),
            );
        }
    }
    group
}

/// A round tick distance for about ten ticks, in nanoseconds.
fn tick(whole: f64) -> f64 {
    let power = 10_f64.powf((whole / 10.0).log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|of| of * power).into_iter().find(|step| whole / step <= 12.0).unwrap_or(whole)
}

/// Columns of the picture in a terminal.
const COLUMNS: usize = 96;

fn printed(title: &str, panels: &[Panel]) -> String {
    let whole = panels.iter().map(|panel| panel.ends).fold(1.0, f64::max);
    let mut out = format!(
        "{title}\n1 request 1, 2 request 2, # both, . other requests or unknown; one column is {:.2} us\n",
        whole / 1e3 / COLUMNS as f64
    );
    for panel in panels {
        let _ = writeln!(out, "\n{}", panel.title);
        for (row, name) in ROWS {
            let mut cells = [b' '; COLUMNS];
            for bar in panel.bars.iter().filter(|bar| bar.row == row) {
                let column = |at: f64| (at / whole * COLUMNS as f64) as usize;
                let first = column(bar.from).min(COLUMNS - 1);
                let last = column(bar.to).clamp(first + 1, COLUMNS) - 1;
                for cell in &mut cells[first..=last] {
                    *cell = match (bar.whose, *cell) {
                        (Whose::First, b'2') | (Whose::Second, b'1' | b'#') => b'#',
                        (Whose::First, _) => b'1',
                        (Whose::Second, _) => b'2',
                        (Whose::Other, old) => {
                            if old == b' ' {
                                b'.'
                            } else {
                                old
                            }
                        }
                    };
                }
            }
            let _ = writeln!(out, "{name:>13} |{}|", String::from_utf8_lossy(&cells));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn bar(row: Row, whose: Whose, from: f64, to: f64) -> Bar {
        Bar { row, whose, from, to }
    }

    #[test]
    fn packets_that_follow_each_other_are_one_bar_and_others_lie_below() {
        let data = Row::Pipe(PipeUsage::DataIn);
        let bars = vec![
            bar(data, Whose::First, 0.0, 10.0),
            bar(data, Whose::First, 10.5, 20.0),
            bar(data, Whose::First, 50.0, 60.0),
            bar(data, Whose::Other, 20.0, 30.0),
        ];
        let all = joined(bars, 1000.0);
        assert_eq!(
            all.iter().map(|bar| (bar.from, bar.to)).collect::<Vec<_>>(),
            [(20.0, 30.0), (0.0, 20.0), (50.0, 60.0)]
        );
    }

    #[test]
    fn a_picture_escapes_what_it_is_given_and_says_what_it_shows() {
        let panel = Panel {
            title: "a<b & \"c\"".into(),
            bars: vec![bar(Row::InFlight, Whose::First, 0.0, 500.0)],
            ends: 500.0,
        };
        let picture = picture("1 < 2", &[panel]).document().to_string();
        assert!(picture.contains("a&lt;b &amp;") && picture.contains("1 &lt; 2"), "{picture}");
        assert!(!picture.contains("a<b"), "{picture}");
        for expected in
            ["<title", "<desc", "prefers-color-scheme", "request 1 completes after 0.5 microseconds"]
        {
            assert!(picture.contains(expected), "{expected}: {picture}");
        }
    }

    #[test]
    fn a_terminal_shows_who_is_where() {
        let bars = vec![
            bar(Row::Drive, Whose::First, 0.0, 500.0),
            bar(Row::Drive, Whose::Second, 500.0, 1000.0),
            bar(Row::Bridge, Whose::Other, 0.0, 1000.0),
        ];
        let out = printed("two", &[Panel { title: "uasp".into(), bars, ends: 1000.0 }]);
        assert!(out.contains(&format!("        drive |{}{}|", "1".repeat(48), "2".repeat(48))), "{out}");
        assert!(out.contains(&format!("       bridge |{}|", ".".repeat(96))), "{out}");
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!([950.0, 12_000.0, 230_000.0].map(tick), [100.0, 1_000.0, 20_000.0]);
    }
}
