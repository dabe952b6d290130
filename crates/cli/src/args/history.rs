//! Arguments of `uaskit history`.

use clap::Args;
use records::{Filter, Selector};
use std::path::PathBuf;

/// Show the runs that were saved, the newest first, or one of them.
///
/// `uaskit bench --save` and `uaskit compare --save` add to them. A run is called by its number, by its label (of several the newest), or
/// from the end: `last`, `last~1`. Reading changes nothing, whatever the version of the file.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uaskit bench --virtual --save --label before
  uaskit history
  uaskit history --drive 'Portable SSD' --limit 5 --json
  uaskit history last
  uaskit history --drive 'Portable SSD' --report runs.html
  uaskit history before --export > record.json
  uaskit history 12 --delete

Exit codes: 0 ok, 1 failed, 2 usage.")]
pub(crate) struct HistoryArguments {
    /// Which run: its number, its label, `last` or `last~N`; all of them unless given.
    pub(crate) run: Option<Selector>,
    /// Runs of setups whose name has this in it.
    #[arg(long, value_name = "TEXT", conflicts_with = "run")]
    pub(crate) setup: Option<String>,
    /// Runs of drives whose name or serial number has this in it.
    #[arg(long, value_name = "TEXT", conflicts_with = "run")]
    pub(crate) drive: Option<String>,
    /// Runs whose label has this in it.
    #[arg(long, value_name = "TEXT", conflicts_with = "run")]
    pub(crate) label: Option<String>,
    /// So many at most.
    #[arg(long, value_name = "N", default_value_t = 20, conflicts_with = "run",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(Filter::LIMIT_MAX)))]
    pub(crate) limit: u32,
    /// Print the run as it was printed by --json then, with everything that was known.
    #[arg(long, requires = "run", conflicts_with = "json")]
    pub(crate) export: bool,
    /// Take the run out of the file for good.
    #[arg(long, requires = "run", conflicts_with_all = ["json", "export"])]
    pub(crate) delete: bool,
    /// Write a page with a chart of each job, run by run, into this file; an older one is replaced.
    #[arg(long, value_name = "FILE.html", conflicts_with_all = ["run", "json"])]
    pub(crate) report: Option<PathBuf>,
    /// Another file of runs than that in your data folder.
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
