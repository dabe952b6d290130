//! Arguments of `uaskit validate`.

use super::quantity;
use clap::Args;
use std::path::PathBuf;

/// Compare simulated with published figures.
///
/// Simulates the parts that each article names and judges each of its rows: a figure gets an error, a claim holds or fails,
/// and a row that no simulation can decide gets a reason. Rows to which constants of parts were fitted are listed apart from
/// rows that check the model. Constants belong to parts; no row is special-cased.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uaskit validate
  uaskit validate --json | jq '.rows[] | select(.verdict == \"fails\")'
  uaskit validate --only myce
  uaskit validate --sensitivity
  uaskit validate --report page.html
  uaskit validate --parts my-parts

Limits: the median |error| is at most 8 %, the largest 20 %, and all seventeen shapes (Q1 to Q17, in docs/MODEL.md) hold. With \
--only the limits are printed but not judged, since they apply to all rows.

Exit codes: 0 all limits are met; 1 a limit is not met, or failed; 2 usage; 130 interrupted.")]
pub(crate) struct ValidateArguments {
    /// Folder of additional parts; they replace built-in parts of the same name.
    #[arg(long, value_name = "DIR")]
    pub(crate) parts: Option<PathBuf>,
    /// Judge only rows whose id or source contains TEXT, ignoring case.
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    /// Show how a change of each fitted constant by ±10 % changes the errors.
    #[arg(long)]
    pub(crate) sensitivity: bool,
    /// Random seed for LBAs.
    #[arg(long, default_value = "1")]
    pub(crate) seed: u64,
    /// Simulations that run in parallel, at most four per processor. Default: one per processor. Results do not depend on
    /// it.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = quantity::threads)]
    pub(crate) threads: Option<u16>,
    /// Write charts and tables into one self-contained HTML file.
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Rejected with a reason: the rows have different units, where a saved run has rates.
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true)]
    pub(crate) save: Option<Option<PathBuf>>,
    /// Show no progress.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
