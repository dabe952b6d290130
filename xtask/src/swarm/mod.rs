//! `cargo xtask swarm`: random worlds, in which random things go wrong, on all processors.
//!
//! A seed makes a case, a case is run by `sim::swarm`, and a case that breaks a law is made smaller and printed as one line that
//! runs it again: `cargo xtask swarm --replay '…'`. `--canary` plants known bugs, one at a time, and fails if one is not
//! found. Each world has a thread to itself while it runs, and no thread knows of another; so what comes out does not depend
//! on how many there are, which the digest over all of them shows.
//!
//! Left out: judging; what must hold is `sim::check`.

mod canary;

use crate::release;
use anyhow::Result;
use rayon::prelude::*;
use sim::engine::{Digest, Entry, Trace};
use sim::fault::Bug;
use sim::swarm::{self, Case, Shrunk, Toll};
use std::time::Instant;

pub(crate) use canary::{Caught, canary};

/// What `cargo xtask swarm` takes.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many seeds
    #[arg(long, value_name = "N", default_value_t = 1000)]
    seeds: u64,
    /// The first seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    from: u64,
    /// Threads; one for each processor if not said
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Runs this case, as a red seed has printed it, and tells what comes of it
    #[arg(long, value_name = "CASE", conflicts_with_all = ["seeds", "from", "canary"])]
    replay: Option<String>,
    /// Plants known bugs, one at a time, and counts the seeds that find each
    #[arg(long)]
    canary: bool,
    /// The planted bug of a replay
    #[arg(long, value_name = "BUG", requires = "replay", value_parser = bug_of_name)]
    bug: Option<Bug>,
    /// Prints every packet of a replay
    #[arg(long, requires = "replay")]
    trace: bool,
}

/// Prints notes as they come.
struct Printer;

impl Trace for Printer {
    fn record(&mut self, entry: Entry<'_>) {
        println!("{entry}");
    }
}

/// What came of many seeds.
#[derive(Debug)]
pub(crate) struct Verdicts {
    /// Seeds that were run.
    pub(crate) seeds: u64,
    /// What was done in all worlds.
    pub(crate) toll: Toll,
    /// The digest over all worlds, in the order of their seeds.
    pub(crate) digest: u64,
    /// Cases that break a law, as small as they could be made.
    pub(crate) red: Vec<Shrunk>,
}

/// Seeds above which an unoptimised build is not worth waiting for.
const PATIENCE_SEEDS: u64 = 2_000;
/// Red cases that are made smaller; the others are as red.
const SHRUNK_MAX: usize = 8;

/// Runs what was asked for; whether all held.
pub(crate) fn run(options: &Options) -> Result<bool> {
    if cfg!(debug_assertions) && options.seeds > PATIENCE_SEEDS {
        return release::hand_over();
    }
    if let Some(line) = &options.replay {
        return replay(line, options.bug, options.trace);
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.jobs.unwrap_or(0)).build()?;
    pool.install(|| if options.canary { canary_table(options) } else { Ok(survey(options)) })
}

/// Runs seeds, on all threads of the pool at hand.
pub(crate) fn hunt(from: u64, seeds: u64) -> Verdicts {
    let reports: Vec<_> = (from..from.saturating_add(seeds))
        .into_par_iter()
        .map(|seed| {
            let case = Case::of_seed(seed);
            let report = swarm::run(&case, None);
            (case, report)
        })
        .collect();
    let mut digest = Digest::new();
    let mut toll = Toll::default();
    for (_, report) in &reports {
        digest.mix(report.digest);
        toll = toll.and(report.toll);
    }
    let red: Vec<&Case> =
        reports.iter().filter(|(_, report)| report.verdict.is_err()).map(|(case, _)| case).collect();
    let red = red.into_par_iter().take(SHRUNK_MAX).filter_map(|case| swarm::shrink(case, None)).collect();
    Verdicts { seeds, toll, digest: digest.value(), red }
}

/// A red case in two lines: what was broken, and how to see it again.
pub(crate) fn told(red: &Shrunk) -> String {
    let what = red.report.verdict.err().map(|violation| violation.to_string()).unwrap_or_default();
    format!("{what}\n    {}", replay_command(&red.case))
}

/// The command that runs a case.
pub(crate) fn replay_command(case: &Case) -> String {
    format!("cargo xtask swarm --replay '{case}'")
}

fn survey(options: &Options) -> bool {
    let began = Instant::now();
    let verdicts = hunt(options.from, options.seeds);
    let Verdicts { seeds, toll, digest, red } = &verdicts;
    red.iter().for_each(|red| println!("{}", told(red)));
    println!(
        "{seeds} seeds in {:.1} s: {} requests in {} lives, {} failed; {} commands, {} of them again; {} time-outs, {} resets; \
         {:.1} hours of virtual time, {} events, digest {digest:016x}",
        began.elapsed().as_secs_f64(),
        toll.requests,
        toll.lives,
        toll.failed,
        toll.commands,
        toll.sent_again,
        toll.timeouts,
        toll.resets,
        toll.virtual_ms as f64 / 3.6e6,
        toll.events,
    );
    match red.len() {
        0 => println!("every law held"),
        few => println!("{few} seeds broke a law{}", if few == SHRUNK_MAX { ", or more" } else { "" }),
    }
    red.is_empty()
}

fn replay(line: &str, bug: Option<Bug>, trace: bool) -> Result<bool> {
    let case: Case = line.parse()?;
    let make: swarm::MakeTrace<'_> = &|| {
        println!("a life of the device begins");
        Box::new(Printer)
    };
    let report = swarm::run_with(&case, bug, trace.then_some(make));
    println!("struck: {}", report.struck);
    println!("{:?}, digest {:016x}", report.toll, report.digest);
    match report.verdict {
        Ok(()) => println!("every law held"),
        Err(violation) => println!("{violation}"),
    }
    Ok(report.verdict.is_ok())
}

fn canary_table(options: &Options) -> Result<bool> {
    let caught = canary(options.from, options.seeds);
    for Caught { bug, red, first, laws } in &caught {
        let first = first.map_or_else(|| "no seed".to_owned(), |first| format!("first by seed {first}"));
        println!("{bug:<20} {red:>5} of {} seeds, {first}: {laws}", options.seeds);
    }
    Ok(caught.iter().all(|caught| caught.first.is_some()))
}

fn bug_of_name(name: &str) -> Result<Bug, String> {
    let known = Bug::ALL.map(Bug::name);
    let bug = Bug::ALL.into_iter().find(|bug| bug.name() == name);
    bug.ok_or_else(|| format!("there are {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_threads(threads: usize) -> Verdicts {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| hunt(0, 24))
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let (alone, four) = (on_threads(1), on_threads(4));
        assert_eq!((alone.digest, alone.toll), (four.digest, four.toll));
    }

    #[test]
    fn what_is_printed_runs_the_case_again() {
        let case = Case::of_seed(3).with_faults("slow@1".parse().unwrap());
        let command = replay_command(&case);
        let line =
            command.strip_prefix("cargo xtask swarm --replay '").and_then(|rest| rest.strip_suffix('\''));
        assert_eq!(line.unwrap().parse(), Ok(case));
    }
}
