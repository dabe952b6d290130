//! How each row is decided, as `decisions.toml` says it.
//!
//! ```toml
//! [P021]
//! figure = "mbps(myce/uasp 512K sequential write qd2)"
//!
//! [P028]
//! claims = ["mbps(…) > mbps(…)"]
//!
//! [P039]
//! undecidable = "a habit of users"
//! ```
//!
//! A figure's published value is that of its row. With `as = "ratio"` a gain in percent is compared as the ratio that it states,
//! since the error of a difference from nothing has no meaning. The [`Plan`] lists the rows that numbers were fitted on; all others
//! check. Shapes, which have no row, have a `text`.

use super::facts::Facts;
use super::figure::{Figure, figures};
use super::formula::{Claim, Formula};
use super::measurement::Measurement;
use super::plan::{FreeNumber, Plan};
use crate::parts::PartError;
use crate::parts::schema::{self, Fault};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A row with its decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Of its row, or of a shape: `P021`, `Q1`.
    pub id: String,
    /// The published figure; none for a shape.
    pub figure: Option<Figure>,
    /// Its statement, in a line.
    pub title: String,
    /// How it is decided.
    pub kind: DecisionKind,
    /// Its role.
    pub role: Role,
    /// Why so, where that is not plain.
    pub note: String,
}

/// How a row is decided.
#[derive(Clone, Debug, PartialEq)]
pub enum DecisionKind {
    /// A value stands beside the published one.
    Figure {
        /// The published value.
        published: Published,
        /// The simulated one.
        formula: Formula,
        /// The value at which neither of two has more: 1 of a ratio, 0 of a difference. None if it compares nothing.
        even: Option<f64>,
    },
    /// All claims hold.
    Claims(Vec<Claim>),
    /// No run decides it, and why.
    Undecidable(String),
}

/// The role of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// These numbers of the plan were fitted on it: `controllers/asm1042 memory.outward`.
    Fit(Vec<String>),
    /// It checks what was fitted on others.
    Check,
}

/// A published value: one number, or a range of which both ends belong to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// The least.
    pub least: f64,
    /// The largest.
    pub largest: f64,
}

/// All rows with their decisions, the names of numbers, and what is fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    /// In the order of the table, then the shapes.
    pub decisions: Vec<Decision>,
    /// Numbers with names: what is called flat, and so on.
    pub names: BTreeMap<String, f64>,
    /// The plan of which numbers are fitted, and on which rows.
    pub plan: Plan,
}

#[derive(Deserialize)]
struct DecisionFile {
    names: BTreeMap<String, f64>,
    #[serde(flatten)]
    rows: BTreeMap<String, RowTable>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RowTable {
    text: Option<String>,
    figure: Option<String>,
    #[serde(rename = "as", default)]
    stated: Stated,
    claims: Option<Vec<String>>,
    undecidable: Option<String>,
    #[serde(default)]
    note: String,
}

/// The quantity that a published number states.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Stated {
    /// The value.
    #[default]
    Value,
    /// A gain in percent, which states a ratio.
    Ratio,
}

const FILE: &str = "published/decisions.toml";
const DECISIONS: &str = include_str!("../../published/decisions.toml");

impl Decided {
    /// Reads the decisions that come with the project.
    ///
    /// # Errors
    /// If a row has no decision, or a decision cannot be read: a fault of ours, which a test looks for.
    pub fn built_in() -> Result<Self, PartError> {
        let figures = figures().map_err(|line| PartError {
            file: "published/figures.csv".into(),
            line: Some(line),
            what: "expected 15 fields".into(),
        })?;
        Self::read(figures, DECISIONS, Plan::built_in()?)
    }

    /// The same rows, and another plan.
    #[must_use]
    pub fn with_plan(mut self, plan: Plan) -> Self {
        for decision in &mut self.decisions {
            decision.role = Role::of(&decision.id, &plan);
        }
        Self { plan, ..self }
    }

    /// Joins rows with the text of their decisions, and with what is fitted on them.
    pub(super) fn read(figures: Vec<Figure>, text: &str, plan: Plan) -> Result<Self, PartError> {
        let fault = |Fault { line, what }| PartError { file: FILE.into(), line, what };
        let DecisionFile { names, mut rows } = schema::parse(text).map_err(fault)?;
        let at = |id: &str, what: String| fault(Fault { line: schema::line_of_table(text, id), what });
        let mut decisions = Vec::new();
        for figure in figures {
            let id = figure.id.clone();
            let row = rows.remove(&id).ok_or_else(|| at(&id, format!("{id} has no decision")))?;
            decisions.push(row.decision(&id, Some(figure), &plan).map_err(|what| at(&id, what))?);
        }
        let mut shapes: Vec<_> = rows.into_iter().collect();
        shapes.sort_by_key(|(id, _)| schema::line_of_table(text, id));
        for (id, row) in shapes {
            decisions.push(row.decision(&id, None, &plan).map_err(|what| at(&id, what))?);
        }
        Ok(Self { decisions, names, plan })
    }

    /// The measurements that all decisions need, each once.
    pub fn measurements(&self) -> BTreeSet<Measurement> {
        self.decisions.iter().flat_map(Decision::measurements).collect()
    }

    /// Keeps the decisions whose id or source has `words` in it, whatever the case.
    pub fn keep(&mut self, words: &str) {
        let words = words.to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&words);
        self.decisions.retain(|decision| {
            has(&decision.id) || decision.figure.as_ref().is_some_and(|figure| has(&figure.source))
        });
    }

    /// The numbers of the plan that were fitted on rows that are here.
    pub fn fitted(&self) -> Vec<&FreeNumber> {
        let is_here = |row: &String| self.decisions.iter().any(|decision| decision.id == *row);
        let stages = self.plan.stages.iter().filter(|stage| stage.rows.iter().any(is_here));
        stages.flat_map(|stage| &stage.numbers).collect()
    }
}

impl Decision {
    /// The measurements that it needs.
    pub fn measurements(&self) -> Vec<Measurement> {
        let mut all = Vec::new();
        match &self.kind {
            DecisionKind::Figure { formula, .. } => formula.measurements(&mut all),
            DecisionKind::Claims(claims) => {
                for Claim { left, right, .. } in claims {
                    left.measurements(&mut all);
                    right.measurements(&mut all);
                }
            }
            DecisionKind::Undecidable(_) => {}
        }
        all
    }

    /// Whether it is a shape, which no single row has published.
    pub const fn is_shape(&self) -> bool {
        self.figure.is_none()
    }
}

impl RowTable {
    fn decision(self, id: &str, figure: Option<Figure>, plan: &Plan) -> Result<Decision, String> {
        let kind = match (&self.figure, &self.claims, &self.undecidable) {
            (Some(formula), None, None) => self.figure(formula, figure.as_ref())?,
            (None, Some(claims), None) if !claims.is_empty() => {
                let read = |text: &String| Claim::read(text).map_err(|error| format!("`{text}`: {error}"));
                DecisionKind::Claims(claims.iter().map(read).collect::<Result<_, _>>()?)
            }
            (None, None, Some(why)) if !why.is_empty() => DecisionKind::Undecidable(why.clone()),
            _ => return Err("expected one of `figure`, `claims` and `undecidable`".into()),
        };
        let title = match (self.text, &figure) {
            (Some(text), _) => text,
            (None, Some(figure)) => figure.title(),
            (None, None) => return Err(format!("{id} is not in the table and needs a `text`")),
        };
        let role = Role::of(id, plan);
        Ok(Decision { id: id.into(), figure, title, kind, role, note: self.note })
    }

    fn figure(&self, formula: &str, figure: Option<&Figure>) -> Result<DecisionKind, String> {
        let value = figure.map(|figure| figure.value.as_str()).ok_or("a shape has no published value")?;
        let published =
            Published::read(value).ok_or_else(|| format!("`{value}` is neither a number nor a range"))?;
        let published = match self.stated {
            Stated::Value => published,
            Stated::Ratio => published.of_percent(),
        };
        let formula = Formula::read(formula).map_err(|error| format!("`{formula}`: {error}"))?;
        let even = match self.stated {
            Stated::Ratio => Some(1.0),
            Stated::Value if formula.is_difference() => Some(0.0),
            Stated::Value => None,
        };
        Ok(DecisionKind::Figure { published, formula, even })
    }
}

impl fmt::Display for Published {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.least == self.largest {
            true => write!(f, "{}", self.least),
            false => write!(f, "{} to {}", self.least, self.largest),
        }
    }
}

impl Published {
    /// `12.5`, or a range `20..25`.
    fn read(text: &str) -> Option<Self> {
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        let ends: [f64; 2] = [first.parse().ok()?, last.parse().ok()?];
        let [least, largest] = [ends[0].min(ends[1]), ends[0].max(ends[1])];
        (least.is_finite() && largest.is_finite()).then_some(Self { least, largest })
    }

    fn of_percent(self) -> Self {
        Self { least: 1.0 + self.least / 100.0, largest: 1.0 + self.largest / 100.0 }
    }

    /// How far a value is off, as a share of the nearest end; none within.
    pub fn error(&self, value: f64) -> f64 {
        let nearest = value.clamp(self.least, self.largest);
        let off = value - nearest;
        if off == 0.0 { 0.0 } else { off / nearest.abs() }
    }
}

impl Role {
    fn of(id: &str, plan: &Plan) -> Self {
        let fitted = plan.fitted_on(id);
        if fitted.is_empty() { Self::Check } else { Self::Fit(fitted) }
    }
}

impl Facts<'_> {
    /// Measurements of setups that are not there: faults of the decisions.
    pub fn unknown_in(&self, decided: &Decided) -> Vec<String> {
        let is_unknown = |one: &Measurement| self.variant(&one.setup, &one.variant).is_none();
        decided.measurements().into_iter().filter(is_unknown).map(|one| one.to_string()).collect()
    }
}
