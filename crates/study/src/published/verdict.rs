//! Decides each row by simulation.
//!
//! A runner makes each measurement once. Without a result, every row that needs it is undecided,
//! with the reason. Always true: rows are in the order of the table, then the shapes.

use super::decision::{Decided, Decision, DecisionKind, Published};
use super::facts::Facts;
use super::formula::{Claim, Values};
use super::measurement::{Measurement, Outcome};
use std::collections::BTreeMap;

/// An evaluated row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row<'a> {
    /// The row with its decision rule.
    pub decision: &'a Decision,
    /// The verdict.
    pub verdict: Verdict,
    /// The reason: claims with both sides, or what is missing; empty for a figure.
    pub reason: String,
    /// Relative distance between the sides of a claim: the least over the claims of a row that
    /// holds.
    pub margin: Option<f64>,
}

/// A claim whose sides are nearer than this holds by little, invisibly in a chart.
const LITTLE: f64 = 0.01;

/// The verdict on a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// A value beside the published one.
    Figure {
        /// Published value.
        published: Published,
        /// Simulated value.
        simulated: f64,
        /// Relative error.
        error: f64,
    },
    /// All claims hold.
    Holds,
    /// A claim fails.
    Fails,
    /// No run decides it.
    Undecided,
}

/// Numbers by name, facts and outcomes.
pub(super) struct Known<'a> {
    pub(super) names: &'a BTreeMap<String, f64>,
    pub(super) facts: Facts<'a>,
    pub(super) outcomes: BTreeMap<Measurement, Result<Outcome, String>>,
}

impl Decided {
    /// Decides every row. `measure` is asked once for each of [`Self::measurements`].
    pub fn evaluate<E: ToString>(
        &self,
        facts: Facts<'_>,
        mut measure: impl FnMut(&Measurement) -> Result<Outcome, E>,
    ) -> Vec<Row<'_>> {
        let run = |one: Measurement| {
            let outcome = measure(&one).map_err(|error| format!("{one}: {}", error.to_string()));
            (one, outcome)
        };
        let outcomes = self.measurements().into_iter().map(run).collect();
        let known = Known { names: &self.names, facts, outcomes };
        self.decisions.iter().map(|decision| decision.row(&known)).collect()
    }
}

impl Decision {
    fn row(&self, known: &Known<'_>) -> Row<'_> {
        let (verdict, reason, margin) = match &self.kind {
            DecisionKind::Figure { published, formula, .. } => match formula.value(known) {
                Ok(simulated) => {
                    let error = published.error(simulated);
                    (Verdict::Figure { published: *published, simulated, error }, String::new(), None)
                }
                Err(why) => (Verdict::Undecided, why, None),
            },
            DecisionKind::Claims(claims) => judge(claims, known),
            DecisionKind::Undecidable(why) => (Verdict::Undecided, why.clone(), None),
        };
        Row { decision: self, verdict, reason, margin }
    }
}

impl Row<'_> {
    /// Whether a comparison is reversed: the error of a ratio or difference near zero does not show
    /// it.
    pub fn is_turned(&self) -> bool {
        let DecisionKind::Figure { even: Some(even), .. } = self.decision.kind else { return false };
        let Verdict::Figure { published, simulated, .. } = self.verdict else { return false };
        published.least > even && simulated < even || published.largest < even && simulated > even
    }

    /// The margin of a claim that holds by little.
    pub fn holds_by_little(&self) -> Option<f64> {
        self.margin.filter(|margin| self.verdict == Verdict::Holds && *margin < LITTLE)
    }
}

/// All claims; the reason is the first that fails, or each with both sides. The margin is the least.
fn judge(claims: &[Claim], known: &Known<'_>) -> (Verdict, String, Option<f64>) {
    let (mut reasons, mut least) = (Vec::new(), None::<f64>);
    for claim in claims {
        let (left, right, holds) = match claim.judge(known) {
            Ok(judged) => judged,
            Err(why) => return (Verdict::Undecided, why, None),
        };
        let sides = format!("{}: {left:.3} and {right:.3}", claim.text);
        if !holds {
            return (Verdict::Fails, sides, None);
        }
        reasons.push(sides);
        least = claim.margin(left, right).into_iter().chain(least).reduce(f64::min);
    }
    (Verdict::Holds, reasons.join("; "), least)
}

impl Verdict {
    /// `figure`, `holds`, `fails` or `undecided`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Figure { .. } => "figure",
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::Undecided => "undecided",
        }
    }
}

impl Values for Known<'_> {
    fn named(&self, name: &str) -> Result<f64, String> {
        self.names.get(name).copied().ok_or_else(|| format!("no such number: `{name}`"))
    }

    fn fact(&self, fact: &str, of: &str) -> Result<f64, String> {
        self.facts.find(fact, of)
    }

    fn outcome(&self, measurement: &Measurement) -> Result<Outcome, String> {
        let outcome = self.outcomes.get(measurement).cloned();
        outcome.unwrap_or_else(|| Err(format!("{measurement} was not measured")))
    }
}
