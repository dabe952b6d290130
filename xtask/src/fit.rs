//! `cargo xtask fit`: the numbers of parts that published rows determine, found again from nothing.
//!
//! `crates/study/published/fit.toml` says what is fitted, on which rows, and from where; `study::published::fit` does so, and here its
//! runs are made on all processors. What is found is printed beside what the files of parts hold; status 0 says that they hold it.
//! `--write` puts it there. `--leave-out` fits without each article in turn, and says how far its rows are off then.
//!
//! Always true: one plan and one seed find the same numbers on any number of processors.

mod report;
mod write;

use crate::release;
use crate::workspace;
use anyhow::{Context, Result, anyhow};
use rayon::prelude::*;
use std::fs;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Instant;
use study::parts::{Catalogue, PartKind};
use study::published::fit::{Fitted, Fitting, Run, Runner};
use study::published::{Decided, Facts, Outcome, Plan};
use study::setups::Setup;
use study::trial::{self, Terms};

/// Options of `cargo xtask fit`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Put what is found into the files of parts
    #[arg(long)]
    write: bool,
    /// Leave each article out in turn, and say how far its rows are off then
    #[arg(long, conflicts_with = "write")]
    leave_out: bool,
    /// Say of each number whether its rows determine it, which takes longer than the fit
    #[arg(long)]
    sure: bool,
    /// Another plan than that of the tree, to see what it makes
    #[arg(long, value_name = "FILE", conflicts_with = "write")]
    plan: Option<PathBuf>,
    /// Where random places come from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads; one for each processor if not said
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
}

/// Path of the plan, which lists the numbers to fit.
const PLAN: &str = "crates/study/published/fit.toml";
/// Parts by kind.
const PARTS: &str = "crates/study/parts";

/// Makes runs on all processors, and prints the progress.
struct Processors<'a> {
    setups: &'a [Setup],
    terms: Terms,
    began: Instant,
    made: usize,
    on_terminal: bool,
}

/// Runs what was asked for; whether the files hold what was found.
pub(crate) fn run(options: &Options) -> Result<bool> {
    if cfg!(debug_assertions) {
        return release::hand_over();
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.jobs.unwrap_or(0)).build()?;
    pool.install(|| fit(options))
}

fn fit(options: &Options) -> Result<bool> {
    let catalogue = catalogue()?;
    let setups = Setup::built_in(&catalogue).map_err(|error| anyhow!(error))?;
    let plan = options.plan.clone().unwrap_or_else(|| workspace::root().join(PLAN));
    let text = fs::read_to_string(&plan).with_context(|| format!("read {}", plan.display()))?;
    let plan = Plan::read(&text).map_err(|error| anyhow!(error))?;
    let decided = Decided::built_in().map_err(|error| anyhow!(error))?.with_plan(plan);
    let facts = Facts { catalogue: &catalogue, setups: &setups };
    let terms = Terms { seed: options.seed, ..Terms::USUAL };
    let on_terminal = std::io::stderr().is_terminal();
    let mut processors = Processors { setups: &setups, terms, began: Instant::now(), made: 0, on_terminal };
    let mut fitting = Fitting::new(facts, &decided, &mut processors).map_err(|error| anyhow!(error))?;
    let before = fitting.rows_of_files();
    let fitted = fitting.fit();
    let after = fitting.rows(&fitted.values).map_err(|error| anyhow!(error))?;
    let identified = options.sure.then(|| fitting.identified(&fitted));
    println!("{}", report::numbers(&decided, &catalogue, &fitted, identified.as_deref()));
    println!("{}", report::rows(&before, &after));
    println!("{}", report::summary(&before, &after));
    // Prints what was found before it leaves out articles, which takes as long again for each.
    if options.leave_out {
        let left_out = fitting.leave_out(&fitted).map_err(|error| anyhow!(error))?;
        println!("{}", report::left_out(&left_out));
    }
    processors.end();
    let odds = decided.plan.at_odds_with(&catalogue);
    odds.iter().for_each(|odds| println!("{odds}"));
    if options.write {
        write::write(&decided.plan, &fitted)?;
    }
    Ok(ended(&decided, &catalogue, &fitted, options.write) && (odds.is_empty() || options.write))
}

/// The parts of the tree, which may be newer than those that this program was built with.
fn catalogue() -> Result<Catalogue> {
    let mut catalogue = Catalogue::built_in().map_err(|error| anyhow!(error))?;
    for kind in PartKind::ALL {
        let folder = workspace::root().join(PARTS).join(kind.folder());
        for entry in fs::read_dir(&folder).with_context(|| format!("read {}", folder.display()))? {
            let path = entry?.path();
            let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let file = format!("{}/{name}.toml", kind.folder());
            catalogue.add(kind, &name, &file, &text).map_err(|error| anyhow!(error))?;
        }
    }
    Ok(catalogue)
}

/// The last line; whether the files hold what was found.
fn ended(decided: &Decided, catalogue: &Catalogue, fitted: &Fitted, written: bool) -> bool {
    let numbers = decided.plan.numbers().zip(&fitted.values);
    let others = numbers.filter(|(number, value)| !number.is(**value, catalogue)).count();
    let passes = fitted.passes;
    match (fitted.settled, others) {
        (false, _) => {
            println!("{passes} passes, and numbers still change: the stages pull against each other")
        }
        (true, 0) => println!("{passes} passes; the files hold what was found"),
        (true, _) if written => println!("{passes} passes; {others} numbers were written into the files"),
        (true, _) => println!("{passes} passes; {others} numbers of the files are others"),
    }
    fitted.settled && (others == 0 || written)
}

impl Processors<'_> {
    fn print_progress(&self, what: &str) {
        let (seconds, runs) = (self.began.elapsed().as_secs_f64(), self.made);
        if self.on_terminal {
            eprint!("\r\x1b[K{seconds:.0} s, {runs} runs: {what}");
            // Progress that cannot be printed is no error.
            let _ = std::io::stderr().flush();
        } else {
            eprintln!("{seconds:.0} s, {runs} runs: {what}");
        }
    }

    fn end(&self) {
        if self.on_terminal {
            eprint!("\r\x1b[K");
        }
        eprintln!("{} runs in {:.0} s", self.made, self.began.elapsed().as_secs_f64());
    }
}

impl Runner for Processors<'_> {
    fn outcomes(&mut self, runs: &[Run]) -> Vec<Result<Outcome, String>> {
        let (setups, terms) = (self.setups, self.terms);
        let make = |run: &Run| {
            let facts = Facts { catalogue: &run.catalogue, setups };
            trial::outcome(facts, &run.measurement, &terms).map_err(|error| error.to_string())
        };
        self.made += runs.len();
        runs.par_iter().map(make).collect()
    }

    fn begin(&mut self, what: &str) {
        self.print_progress(what);
    }
}
