//! A validation as a page: published against simulated figures, each with its source.
//!
//! Left out: the measurements behind a row. Always true: the page contains nothing that the table
//! in a terminal lacks.

use super::{BARS, Validation, doubts, fails, places, role, runs};
use crate::page;
use crate::published::{Change, Count, Decided, Role, Row, Sensitivity, Statistics, Verdict};
use report::{
    Axis, Bars, Cell, Dot, DotSeries, Fact, Figure, Group, Page, Picture, Scatter, Section, Table, number,
};

/// Builds the page; `again` repeats the command.
pub fn page(again: Fact, validation: Validation<'_>) -> Page {
    let Validation { decided, rows, statistics, sensitivities, made, seed } = validation;
    let mut trust = Section::new("Figures").lead(
            "Each dot is a figure of an article beside the simulated figure of the same parts. On the line both are equal; the zones \
             are the limits: 8 % for the median error, 20 % for the largest.",
        );
    for kind in [Unit::Rate, Unit::Times, Unit::Other] {
        trust = scatter(rows, kind).into_iter().fold(trust, Section::figure);
    }
    let trust = trust.figure(errors(rows));
    let mut page = Page::new("Published and simulated figures")
        .lead("No row is special-cased: constants belong to parts, and results follow from the simulated mechanisms.")
        .findings(findings(decided, rows, statistics))
        .section(trust)
        .section(Section::new("Claims").figure(claims(rows)));
    if !sensitivities.is_empty() {
        page = page.section(Section::new("Sensitivity to fitted constants").figure(changes(sensitivities)));
    }
    page.fact(page::version())
        .fact(Fact::pair("seed", seed.to_string()))
        .fact(Fact::pair("measurements", made.len().to_string()))
        .fact(Fact::pair("digest", runs::digest(made)))
        .fact(Fact::pair(
            "fitted constants",
            format!("{}, in {} places", statistics.fitted_numbers, places(decided)),
        ))
        .fact(again)
}

/// Groups figures that fit one axis.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// MB/s, and differences of them.
    Rate,
    /// How many times as much.
    Times,
    /// Bytes, counts.
    Other,
}

impl Unit {
    fn of(row: &Row<'_>) -> Self {
        match unit(row) {
            unit if unit.contains("MB/s") => Self::Rate,
            unit if unit.contains("percent") || unit == "ratio" => Self::Times,
            _ => Self::Other,
        }
    }

    /// Title, suffix of the axis names, and explanation.
    const fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Rate => ("Rates", ", MB/s", "Rates and differences of rates, in 10⁶ bytes per second."),
            Self::Times => ("Ratios", ", ratio", "Ratios of two figures."),
            Self::Other => ("Other figures", "", "Bytes and counts; both axes use the unit of the row."),
        }
    }
}

/// A scatter plot of figures of one unit, separated by whether numbers were fitted on them.
fn scatter(rows: &[Row<'_>], kind: Unit) -> Option<Figure> {
    let of_kind = || {
        let is_figure = |row: &&Row<'_>| matches!(row.verdict, Verdict::Figure { .. });
        rows.iter().filter(is_figure).filter(|row| Unit::of(row) == kind)
    };
    of_kind().next()?;
    let swarm = |name: &str, hue: u8, is_fitted: bool| {
        let dots = of_kind().filter(|row| matches!(row.decision.role, Role::Fit(_)) == is_fitted).filter_map(
            |row| {
                let Verdict::Figure { published, simulated, .. } = row.verdict else { return None };
                let middle = (published.least + published.largest) / 2.0;
                let name = format!("{} {}", row.decision.id, row.decision.title);
                Some(Dot { name, source: source(row), x: middle, y: simulated })
            },
        );
        DotSeries { name: name.into(), look: hue.into(), dots: dots.collect() }
    };
    let swarms = vec![swarm("checks", 0, false), swarm("fitted", 1, true)];
    let (title, unit, what) = kind.words();
    let text = format!(
        "{what} {} A published range is drawn at its middle. Values of 0 or less appear on the linear scale only.",
        far(of_kind())
    );
    let axis = |name: &str| Axis::log(format!("{name}{unit}"));
    let zones = vec![BARS.1, BARS.0];
    let scatter = Scatter { x: axis("published"), y: axis("simulated"), swarms, zones };
    Some(Figure::new(title, text, Picture::Scatter(scatter)).table(figures(of_kind())))
}

/// A fraction in percent, to a tenth.
fn percent(share: f64) -> String {
    number((share * 1000.0).round() / 10.0)
}

/// Describes how far figures are off.
fn far<'a>(rows: impl Iterator<Item = &'a Row<'a>>) -> String {
    let off = rows.filter_map(|row| match row.verdict {
        Verdict::Figure { error, .. } => Some((error.abs(), row.decision.id.as_str())),
        _ => None,
    });
    let mut off: Vec<(f64, &str)> = off.collect();
    off.sort_by(|one, other| one.0.total_cmp(&other.0));
    let Some((worst, id)) = off.last() else { return String::new() };
    let near = off.iter().filter(|(error, _)| *error <= BARS.0).count();
    format!(
        "{near} of {} are within {} %; the largest error is {id}, {} %.",
        off.len(),
        percent(BARS.0),
        percent(*worst)
    )
}

fn figures<'a>(rows: impl Iterator<Item = &'a Row<'a>>) -> Table {
    let mut table =
        Table::new(["row", "what", "published", "unit", "simulated", "error, %", "", "note", "source"]);
    for row in rows {
        let Verdict::Figure { published, simulated, error } = row.verdict else { continue };
        table = table.row([
            Cell::text(&row.decision.id),
            Cell::text(&row.decision.title),
            Cell::text(published.to_string()),
            Cell::text(if Unit::of(row) == Unit::Times { "times" } else { unit(row) }),
            Cell::Number(simulated),
            Cell::Number((error * 1000.0).round() / 10.0),
            Cell::text(role(row)),
            Cell::text(&row.decision.note),
            Cell::text(source(row)),
        ]);
    }
    table
}

/// The unit of the published value; none for a shape.
fn unit<'a>(row: &Row<'a>) -> &'a str {
    row.decision.figure.as_ref().map_or("", |figure| figure.unit.as_str())
}

fn source(row: &Row<'_>) -> String {
    row.decision
        .figure
        .as_ref()
        .map_or_else(|| "a shape common to several articles".into(), |figure| figure.source.clone())
}

/// A histogram of errors.
fn errors(rows: &[Row<'_>]) -> Figure {
    const STEPS: [(f64, &str); 6] = [
        (0.02, "up to 2 %"),
        (0.05, "2 to 5 %"),
        (0.08, "5 to 8 %"),
        (0.2, "8 to 20 %"),
        (0.5, "20 to 50 %"),
        (f64::INFINITY, "more"),
    ];
    let count = |is_fitted: bool, nth: usize| {
        let least = if nth == 0 { -1.0 } else { STEPS[nth - 1].0 };
        let far = rows.iter().filter(|row| matches!(row.decision.role, Role::Fit(_)) == is_fitted).filter(|row| {
            matches!(row.verdict, Verdict::Figure { error, .. } if error.abs() > least && error.abs() <= STEPS[nth].0)
        });
        Some(far.count() as f64)
    };
    let groups = STEPS.iter().enumerate().map(|(nth, (_, label))| Group {
        label: (*label).into(),
        values: vec![count(false, nth), count(true, nth)],
    });
    let bars = Bars {
        across: "|error|".into(),
        value: Axis::linear("figures"),
        series: vec![("checks".into(), 0.into()), ("fitted".into(), 1.into())],
        groups: groups.collect(),
        is_stacked: false,
    };
    let of = |is_fitted: bool| {
        let counts: Vec<f64> = (0..STEPS.len()).filter_map(|nth| count(is_fitted, nth)).collect();
        let near: f64 =
            STEPS.iter().zip(&counts).filter(|((most, _), _)| *most <= BARS.0).map(|(_, count)| count).sum();
        format!("{near} of {}", counts.iter().sum::<f64>())
    };
    let text = format!(
        "Number of figures by error. Within {} %: {} checks and {} fitted.",
        percent(BARS.0),
        of(false),
        of(true)
    );
    Figure::new("Errors of figures", text, Picture::Bars(bars))
}

/// Claims, failed ones first.
fn claims(rows: &[Row<'_>]) -> Figure {
    let mut others: Vec<&Row<'_>> =
        rows.iter().filter(|row| !matches!(row.verdict, Verdict::Figure { .. })).collect();
    others.sort_by_key(|row| match row.verdict {
        Verdict::Fails => 0,
        Verdict::Undecided => 1,
        Verdict::Holds | Verdict::Figure { .. } => 2,
    });
    let mut table = Table::new(["row", "what", "verdict", "why", "note", "source"]);
    for row in others {
        table = table.row([
            Cell::text(&row.decision.id),
            Cell::text(&row.decision.title),
            Cell::text(match row.holds_by_little() {
                Some(margin) => format!("{} {}", row.verdict.name(), doubts::by(margin)),
                None => row.verdict.name().into(),
            }),
            Cell::text(&row.reason),
            Cell::text(&row.decision.note),
            Cell::text(source(row)),
        ]);
    }
    let text = "Claims of articles without a figure, and shapes that their figures have in common. Failed ones come first.";
    Figure::new("Claims and shapes", text, Picture::None).table(table)
}

fn changes(sensitivities: &[Sensitivity]) -> Figure {
    let groups = sensitivities.iter().map(|Sensitivity { number, changes }| {
        let median = |change: &Option<Change>| change.as_ref().and_then(|change| change.error_median);
        let values = changes.iter().map(|change| median(change).map(|median| median * 100.0));
        Group { label: number.clone(), values: values.collect() }
    });
    let bars = Bars {
        across: "number".into(),
        value: Axis::linear("median of |error|, %"),
        series: vec![("10 % less".into(), 3.into()), ("10 % more".into(), 6.into())],
        groups: groups.collect(),
        is_stacked: false,
    };
    let text = format!(
        "Median of |error| when one fitted constant changes by 10 % in all parts that have it: {}",
        page::reach(&bars, "%")
    );
    Figure::new("Sensitivity", text, Picture::Bars(bars))
}

fn findings(decided: &Decided, rows: &[Row<'_>], statistics: &Statistics) -> Vec<String> {
    let mut all = fails::sentences(rows);
    all.extend(doubts::turned(rows));
    all.extend(doubts::by_little(rows));
    if let (Some(median), Some((worst, id))) = (statistics.error_median, &statistics.error_worst) {
        let met = |is: bool| if is { "met" } else { "not met" };
        all.push(format!(
            "Half of the simulated figures are within {} % of the published value (limit {} %, {}).",
            percent(median),
            percent(BARS.0),
            met(median <= BARS.0)
        ));
        let (far, bar) = (percent(*worst), percent(BARS.1));
        all.push(format!(
            "The largest error is {far} %, in row {id} (limit {bar} %, {}).",
            met(*worst <= BARS.1)
        ));
    }
    let shapes: Vec<_> = rows.iter().filter(|row| row.decision.is_shape()).collect();
    let held = shapes.iter().filter(|row| row.verdict == Verdict::Holds).count();
    if !shapes.is_empty() {
        all.push(format!("{held} of {} shapes hold.", shapes.len()));
    }
    for (what, count) in [("check rows", statistics.check), ("fitted rows", statistics.fit)] {
        let Count { figures, holds, fails, undecided } = count;
        all.push(format!("The {what} have {figures} figures; of their claims, {holds} hold, {fails} fail and {undecided} are undecided."));
    }
    all.push(format!(
        "{} constants, in {} places, were fitted to {} rows; the part files give the source of every other constant, or say that it was chosen.",
        statistics.fitted_numbers,
        places(decided),
        statistics.fit.all()
    ));
    all
}
