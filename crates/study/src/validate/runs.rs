//! Runs of a validation on all processors, with progress on a terminal.

use crate::progress::ProgressSink;
use crate::published::fit::{Run, Runner};
use crate::published::{Facts, Made, Measurement, Outcome};
use crate::setups::Setup;
use crate::trial::{self, Terms};
use rayon::prelude::*;
use sim::engine::Digest;

/// Makes runs on the current thread pool.
pub struct Processors<'a> {
    /// Setups that measurements name.
    pub setups: &'a [Setup],
    /// Seed and length of each run.
    pub terms: Terms,
    /// The purpose of the runs, in a word.
    pub what: &'static str,
    /// Displays completed runs.
    pub progress: &'a dyn ProgressSink,
}

/// A digest of all measurements in order: equal for programs that agree.
pub fn digest(made: &Made) -> String {
    let mut digest = Digest::default();
    for outcome in made.values() {
        let Ok(outcome) = outcome else {
            digest.mix(u64::MAX);
            continue;
        };
        let Outcome {
            bytes_per_second,
            requests_per_second,
            latency_ns,
            watts_peak,
            unit_bytes,
            ready_units,
            order,
        } = *outcome;
        let always = [bytes_per_second, requests_per_second, latency_ns].map(Some);
        for value in always.into_iter().chain([watts_peak, unit_bytes, ready_units, order.map(f64::from)]) {
            digest.mix(value.map_or(u64::MAX, f64::to_bits));
        }
    }
    format!("{:016x}", digest.value())
}

impl Processors<'_> {
    /// One run.
    fn make(&self, facts: Facts<'_>, one: &Measurement) -> Result<Outcome, String> {
        trial::outcome(facts, one, &self.terms).map_err(|error| error.to_string())
    }
}

impl Runner for Processors<'_> {
    fn outcomes(&mut self, runs: &[Run]) -> Vec<Result<Outcome, String>> {
        let progress = self.progress.start(self.what, runs.len());
        let make = |run: &Run| {
            let facts = Facts { catalogue: &run.catalogue, setups: self.setups };
            let outcome = self.make(facts, &run.measurement);
            progress.advance();
            outcome
        };
        runs.par_iter().map(make).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_of_every_figure() {
        let name = Measurement::all("myce/bot 4K random read qd1").expect("a measurement").remove(0);
        let of = |outcome: Result<Outcome, String>| digest(&[(name.clone(), outcome)].into());
        let outcome = Outcome { bytes_per_second: 1.5e8, ..Outcome::default() };
        let digests = [
            of(Ok(outcome)),
            of(Ok(Outcome { latency_ns: 1.0, ..outcome })),
            of(Ok(Outcome { order: Some(3241), ..outcome })),
            of(Err("it was not made".into())),
        ];
        assert!((1..4).all(|nth| !digests[..nth].contains(&digests[nth])), "{digests:?}");
        assert_eq!((digests[0].len(), &digests[0]), (16, &of(Ok(outcome))));
    }
}
