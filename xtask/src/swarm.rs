//! `cargo xtask swarm`: random simulations with random faults, on all processors.
//!
//! A seed makes a case, a case is run by `study::swarm`, and a case that breaks a law is made smaller and printed as one line that
//! runs it again: `cargo xtask swarm --replay '…'`, which fails as well if not all faults of the line strike. As it was, it is printed as
//! soon as it is red, since to make it smaller takes many runs, and time for that is limited. `--show` prints the line of a seed. `--canary` injects known bugs, one at a time, and fails if one is not
//! found. Each world has a thread to itself while it runs, and no thread knows of another; so what comes out does not depend
//! on how many there are, which the digest over all of them shows.
//!
//! Left out: judging; what must hold is `sim::check`.

mod canary;
mod jobs;

use crate::release;
use anyhow::{Context, Result};
use rayon::prelude::*;
use sim::engine::{Digest, Trace, TraceEntry};
use sim::fault::{FaultScript, SeededBug};
use std::ops::Range;
use std::time::{Duration, Instant};
use study::swarm::{self, Case, FaultStats, Report, Shrunk};

pub(crate) use canary::{Caught, canary};

/// Options of `cargo xtask swarm`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many seeds
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// The first seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    from: u64,
    /// Threads; one for each processor if not said, and four for each at most
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Prints the case of a seed, as --replay takes it
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "from", "canary", "replay"])]
    show: Option<u64>,
    /// Runs this case, as a red seed or --show has printed it, and prints the verdict. What it does not say is as in any case, and
    /// not as its seed has it
    #[arg(long, value_name = "CASE", conflicts_with_all = ["seeds", "from", "canary"])]
    replay: Option<String>,
    /// Injects known bugs, one at a time, and counts the seeds that find each
    #[arg(long)]
    canary: bool,
    /// The seeded bug of a replay
    #[arg(long, value_name = "BUG", requires = "replay", value_parser = bug_of_name)]
    bug: Option<SeededBug>,
    /// Prints every packet of a replay
    #[arg(long, requires = "replay")]
    trace: bool,
}

/// Prints notes as they come.
struct Printer;

impl Trace for Printer {
    fn record(&mut self, entry: TraceEntry<'_>) {
        println!("{entry}");
    }
}

/// Results of many seeds.
#[derive(Debug)]
pub(crate) struct Verdicts {
    /// Seeds that were run.
    pub(crate) seeds: u64,
    /// Fault statistics over all worlds.
    pub(crate) stats: FaultStats,
    /// The digest over all worlds, in the order of their seeds.
    pub(crate) digest: u64,
    /// Cases that break a law, as small as they could be made.
    pub(crate) red: Vec<Shrunk>,
}

/// Seeds above which an unoptimised build is not worth waiting for.
const DEBUG_SEEDS_MAX: u64 = 2_000;
/// Red cases that are made smaller; the others are as red.
const SHRUNK_MAX: usize = 8;
/// Time for making red cases smaller, all of them together.
const SHRINKING_MAX: Duration = Duration::from_secs(60);

/// Runs what was asked for; whether all held.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let seeds = seeds(options.from, options.seeds)?;
    let threads = jobs::threads(options.jobs)?;
    if let Some(seed) = options.show {
        println!("{}", Case::of_seed(seed));
        return Ok(true);
    }
    if cfg!(debug_assertions) && options.seeds > DEBUG_SEEDS_MAX {
        return release::hand_over();
    }
    if let Some(line) = &options.replay {
        return replay(line, options.bug, options.trace);
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    pool.install(|| if options.canary { canary_table(seeds) } else { Ok(report(seeds)) })
}

/// So many seeds from one on, all of which there are.
fn seeds(from: u64, seeds: u64) -> Result<Range<u64>> {
    let end = from.checked_add(seeds);
    let end = end.with_context(|| format!("there are no {seeds} seeds from {from} on: seeds end at 2^64"))?;
    Ok(from..end)
}

/// Runs seeds, on all threads of the pool at hand. A red one is printed as soon as it is found.
pub(crate) fn hunt(seeds: Range<u64>) -> Verdicts {
    let of_seed = |seed| {
        let case = Case::of_seed(seed);
        let report = swarm::run(&case, None);
        if let Err(violation) = report.verdict {
            println!("seed {seed} is red: {violation}\n    {}", replay_command(&case));
        }
        (case, report)
    };
    let count = seeds.end - seeds.start;
    let reports: Vec<_> = seeds.into_par_iter().map(of_seed).collect();
    let mut digest = Digest::new();
    let mut stats = FaultStats::default();
    for (_, report) in &reports {
        digest.mix(report.digest);
        stats = stats.and(report.stats);
    }
    let red: Vec<_> = reports.into_iter().filter(|(_, report)| report.verdict.is_err()).collect();
    Verdicts { seeds: count, stats, digest: digest.value(), red: smaller(red) }
}

/// Red cases made smaller, as far as there is time.
fn smaller(mut red: Vec<(Case, Report)>) -> Vec<Shrunk> {
    red.truncate(SHRUNK_MAX);
    if !red.is_empty() {
        let (cases, seconds) = (red.len(), SHRINKING_MAX.as_secs());
        println!("making {cases} of the red cases smaller, for {seconds} s at most");
    }
    let began = Instant::now();
    let has_time = || began.elapsed() < SHRINKING_MAX;
    red.into_par_iter()
        .filter_map(|(case, report)| swarm::shrink_while(&case, report, None, &has_time))
        .collect()
}

/// A red case in two lines: what was broken, and how to see it again.
pub(crate) fn summary(red: &Shrunk) -> String {
    let what = red.report.verdict.err().map(|violation| violation.to_string()).unwrap_or_default();
    format!("{what}\n    {}", replay_command(&red.case))
}

/// The command that runs a case.
pub(crate) fn replay_command(case: &Case) -> String {
    format!("cargo xtask swarm --replay '{case}'")
}

fn report(seeds: Range<u64>) -> bool {
    let began = Instant::now();
    let verdicts = hunt(seeds);
    let Verdicts { seeds, stats, digest, red } = &verdicts;
    red.iter().for_each(|red| println!("{}", summary(red)));
    println!(
        "{seeds} seeds in {:.1} s: {} requests in {} sessions, {} failed; {} commands, {} of them again; {} time-outs, {} resets; \
         {:.1} hours of virtual time, {} events, digest {digest:016x}",
        began.elapsed().as_secs_f64(),
        stats.requests,
        stats.sessions,
        stats.failed,
        stats.commands,
        stats.sent_again,
        stats.timeouts,
        stats.resets,
        stats.virtual_ms as f64 / 3.6e6,
        stats.events,
    );
    match red.len() {
        0 => println!("every law held"),
        few => println!("{few} seeds broke a law{}", if few == SHRUNK_MAX { ", or more" } else { "" }),
    }
    red.is_empty()
}

fn replay(line: &str, bug: Option<SeededBug>, trace: bool) -> Result<bool> {
    let case: Case = line.parse()?;
    let make: swarm::TraceFactory<'_> = &|| {
        println!("a session of the device begins");
        Box::new(Printer)
    };
    let report = swarm::run_with(&case, bug, trace.then_some(make));
    println!("struck: {}", report.struck);
    println!("{:?}, digest {:016x}", report.stats, report.digest);
    let missed = report.missed(&case);
    println!("{}", verdict(&report, &missed));
    Ok(report.verdict.is_ok() && missed.is_empty())
}

/// Formats the result of a case, in a line or two. A script that did not strike wholly has not
/// tried what it was written for.
fn verdict(report: &Report, missed: &FaultScript) -> String {
    let held = match report.verdict {
        Ok(()) => "every law held".to_owned(),
        Err(violation) => violation.to_string(),
    };
    if missed.is_empty() { held } else { format!("{held}, but this did not strike: {missed}") }
}

fn canary_table(seeds: Range<u64>) -> Result<bool> {
    let count = seeds.end - seeds.start;
    let caught = canary(seeds);
    for Caught { bug, red, first, laws } in &caught {
        let first = first.map_or_else(|| "no seed".to_owned(), |first| format!("first by seed {first}"));
        println!("{bug:<20} {red:>5} of {count} seeds, {first}: {laws}");
    }
    Ok(caught.iter().all(|caught| caught.first.is_some()))
}

fn bug_of_name(name: &str) -> Result<SeededBug, String> {
    let known = SeededBug::ALL.map(SeededBug::name);
    let bug = SeededBug::ALL.into_iter().find(|bug| bug.name() == name);
    bug.ok_or_else(|| format!("there are {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_threads(threads: usize) -> Verdicts {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| hunt(0..24))
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let (alone, four) = (on_threads(1), on_threads(4));
        assert_eq!((alone.digest, alone.stats), (four.digest, four.stats));
    }

    #[test]
    fn seeds_that_are_not_there_are_not_counted() {
        assert_eq!(seeds(7, 3).unwrap(), 7..10);
        assert_eq!(seeds(u64::MAX - 3, 3).unwrap(), u64::MAX - 3..u64::MAX);
        let refusal = seeds(7, u64::MAX - 6).unwrap_err().to_string();
        assert_eq!(refusal, "there are no 18446744073709551609 seeds from 7 on: seeds end at 2^64");
    }

    #[test]
    fn no_seeds_at_all_are_refused() {
        use clap::Parser;
        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            options: Options,
        }
        let seeds = |count| Line::try_parse_from(["swarm", "--seeds", count]).map(|line| line.options.seeds);
        assert_eq!(seeds("1").unwrap(), 1);
        assert_eq!(seeds("0").map_err(|error| error.kind()), Err(clap::error::ErrorKind::ValueValidation));
    }

    #[test]
    fn a_replay_whose_faults_did_not_strike_says_so_and_fails() {
        let line = "wire=uas controller=none requests=5 aborts=0 faults=";
        assert!(replay(&format!("{line}medium-error@1"), None, false).unwrap());
        assert!(!replay(&format!("{line}medium-error@1,unplug@999999999"), None, false).unwrap());
        let case: Case = format!("{line}medium-error@1,unplug@999999999").parse().unwrap();
        let report = swarm::run(&case, None);
        let verdict = verdict(&report, &report.missed(&case));
        assert_eq!(verdict, "every law held, but this did not strike: unplug@999999999");
    }

    #[test]
    fn the_line_of_a_seed_is_its_case_and_its_number_alone_is_not() {
        let case = Case::of_seed(3);
        assert_eq!(case.to_string().parse(), Ok(case.clone()));
        assert_ne!("seed=3".parse(), Ok(case));
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
