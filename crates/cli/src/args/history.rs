//! Arguments of `uaskit history`.

use super::quantity;
use clap::Args;
use records::{Filter, Selector};
use std::path::PathBuf;

/// List saved runs, newest first, or show one run.
///
/// `uaskit bench --save` and `uaskit compare --save` save runs. Name a run by its number, by its label (the newest run that
/// has it), or as `last` or `last~N`, the Nth before the last. Reading never changes the file, even one of an older version.
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
    /// Run to show: its number, its label, `last` or `last~N`. Default: list all runs.
    pub(crate) run: Option<Selector>,
    /// List only runs whose setup name contains TEXT.
    #[arg(long, value_name = "TEXT")]
    pub(crate) setup: Option<String>,
    /// List only runs whose drive name or serial number contains TEXT.
    #[arg(long, value_name = "TEXT")]
    pub(crate) drive: Option<String>,
    /// List only runs whose label contains TEXT.
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,
    /// List at most N runs.
    #[arg(long, value_name = "N", default_value_t = 20,
          value_parser = quantity::within::<u32>(1, Filter::LIMIT_MAX))]
    pub(crate) limit: u32,
    /// Print the complete record of the run, as --json printed it when it was saved.
    #[arg(long)]
    pub(crate) export: bool,
    /// Delete the run from the file.
    #[arg(long)]
    pub(crate) delete: bool,
    /// Write an HTML page with a chart of each job over all listed runs; replaces an older page.
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// File of saved runs. Default: uaskit/runs.sqlite in your data folder.
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
