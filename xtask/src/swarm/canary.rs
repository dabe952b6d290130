//! Known bugs, injected one at a time: a check that finds none of them checks nothing.

use rayon::prelude::*;
use sim::check::Invariant;
use sim::fault::SeededBug;
use std::collections::BTreeMap;
use std::ops::Range;
use study::swarm::{self, Case};

/// Which seeds found a seeded bug, and by which law.
#[derive(Debug)]
pub(crate) struct Caught {
    pub(crate) bug: SeededBug,
    /// Seeds that found it.
    pub(crate) red: usize,
    /// The first of them.
    pub(crate) first: Option<u64>,
    /// By which law, and how often, in words.
    pub(crate) laws: String,
}

/// Injects each bug into the simulations of all seeds, on all threads of the current pool.
pub(crate) fn canary(seeds: Range<u64>) -> Vec<Caught> {
    let of = |bug| {
        let seeds = seeds.clone().into_par_iter();
        let found = seeds.filter_map(|seed| {
            let violation = swarm::run(&Case::of_seed(seed), Some(bug)).verdict.err()?;
            Some((seed, violation.invariant))
        });
        let found: Vec<(u64, Invariant)> = found.collect();
        let mut laws = BTreeMap::<Invariant, usize>::new();
        found.iter().for_each(|(_, invariant)| *laws.entry(*invariant).or_default() += 1);
        let laws: Vec<String> =
            laws.iter().map(|(invariant, count)| format!("{invariant} ({count})")).collect();
        Caught { bug, red: found.len(), first: found.first().map(|(seed, _)| *seed), laws: laws.join(", ") }
    };
    SeededBug::ALL.into_iter().map(of).collect()
}
