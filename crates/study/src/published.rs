//! Figures that others have published, and what a simulated world makes of each.
//!
//! `crates/study/published` has three files. `figures.csv` has what was published, a row each, with its source.
//! `decisions.toml` says how each row is decided, in formulas over measurements ([`Formula`]): a figure is one formula, whose value
//! stands beside the published one; orders, ratios and shapes are claims, which hold or fail; what no run can decide has a
//! reason. It has the seventeen shapes as well, which are of no single row. `fit.toml` says which numbers of parts are fitted on
//! which rows ([`Plan`]), and [`fit`] does so.
//!
//! ```text
//! figures.csv ─┐
//! decisions.toml ─┴─ Decided: measurements() ──> a runner ──> evaluate() ──> a verdict for each row, statistics
//! ```
//!
//! Nothing runs here: the caller that evaluates or fits supplies measurements by setup, workload and depth.
//!
//! Always true: every row has a decision; rows differ in their data alone; no row has its own code.

mod decision;
mod facts;
mod figure;
pub mod fit;
mod formula;
mod measurement;
mod parameter;
mod plan;
mod seen;
mod sensitivity;
mod statistics;
mod verdict;

pub use decision::{Decided, Decision, DecisionKind, Published, Role};
pub use facts::Facts;
pub use figure::{Figure, figures};
pub use formula::{Claim, Comparison, Formula, FormulaError, Metric};
pub use measurement::{AccessPattern, Measurement, MeasurementError, Outcome, PayloadDirection, Workload};
pub use parameter::ParameterPath;
pub use plan::{FitStage, FreeNumber, Grid, Plan};
pub use sensitivity::{CHANGE, Change, Made, Sensitivity};
pub use statistics::{Count, Statistics};
pub use verdict::{Row, Verdict};

#[cfg(test)]
mod tests;
