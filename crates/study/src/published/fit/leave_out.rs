//! Each article left out in turn: what numbers that were fitted without it say of it.
//!
//! A number all of whose rows are of that article stays at its prior, so parts that no other article has are as anybody would have
//! guessed them. Shapes are of no article; they are not asked, and nothing is fitted on them.
//!
//! Always true: a fit that leaves an article out has seen no row of it.

use super::super::decision::Decided;
use super::super::verdict::{Row, Verdict};
use super::{Fitted, Fitting, FreeNumber, Settled, tasks};
use crate::parts::PartError;
use std::collections::BTreeSet;

/// The result for an article that was left out.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut {
    /// The article.
    pub source: String,
    /// Its rows that runs decide.
    pub rows: Vec<LeftOutRow>,
    /// Numbers that no other article's rows say anything of, by name.
    pub unseen: Vec<String>,
    /// The values that were fitted without it, in the order of the plan.
    pub values: Vec<f64>,
}

/// A row of an article that was left out.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOutRow {
    /// Its id.
    pub id: String,
    /// With numbers that were fitted on all rows, and without those of the article.
    pub verdicts: [Verdict; 2],
}

impl Fitting<'_, '_> {
    /// Leaves each article out in turn.
    ///
    /// # Errors
    /// If a number cannot be what was found: a fault of ours.
    pub fn leave_out(&mut self, with_all: &Fitted) -> Result<Vec<LeftOut>, PartError> {
        let with_all = self.rows(&with_all.values)?;
        let sources = sources(self.decided);
        sources.into_iter().map(|source| self.without(source, &with_all)).collect()
    }

    fn without(&mut self, source: &str, with_all: &[Row<'_>]) -> Result<LeftOut, PartError> {
        let is_of =
            |row: &Row<'_>| row.decision.figure.as_ref().is_some_and(|figure| figure.source == source);
        let tasks =
            tasks(self.decided, |row| row.figure.as_ref().is_none_or(|figure| figure.source != source));
        let Settled { point, .. } = self.settle(&tasks);
        let values = self.values(&point);
        let without = self.rows(&values)?;
        let pairs = with_all.iter().zip(&without).filter(|(row, _)| is_of(row));
        let rows = pairs.filter(|(row, _)| !row.decision.measurements().is_empty()).map(|(all, without)| {
            LeftOutRow { id: all.decision.id.clone(), verdicts: [all.verdict, without.verdict] }
        });
        let rows = rows.collect();
        let stages = self.decided.plan.stages.iter().zip(&tasks).filter(|(_, task)| task.rows.is_empty());
        let unseen = stages.flat_map(|(stage, _)| &stage.numbers).map(FreeNumber::name).collect();
        Ok(LeftOut { source: source.into(), rows, unseen, values })
    }
}

impl LeftOut {
    /// Its errors without their signs, sorted: with all rows, and without its own.
    pub fn errors(&self) -> [Vec<f64>; 2] {
        [0, 1].map(|index| {
            let error = |row: &LeftOutRow| match row.verdicts[index] {
                Verdict::Figure { error, .. } => Some(error.abs()),
                _ => None,
            };
            let mut errors: Vec<f64> = self.rows.iter().filter_map(error).collect();
            errors.sort_by(f64::total_cmp);
            errors
        })
    }

    /// Claims that hold: with all rows, and without its own; and all claims.
    pub fn claims(&self) -> ([usize; 2], usize) {
        let is_claim = |row: &&LeftOutRow| matches!(row.verdicts[0], Verdict::Holds | Verdict::Fails);
        let claims: Vec<_> = self.rows.iter().filter(is_claim).collect();
        let hold =
            [0, 1].map(|index| claims.iter().filter(|row| row.verdicts[index] == Verdict::Holds).count());
        (hold, claims.len())
    }
}

/// The articles whose rows are in the table, in its order.
fn sources(decided: &Decided) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    let figures = decided.decisions.iter().filter_map(|decision| decision.figure.as_ref());
    figures.map(|figure| figure.source.as_str()).filter(|source| seen.insert(*source)).collect()
}
