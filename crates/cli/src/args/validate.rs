//! Arguments of `uaskit validate`.

use super::quantity;
use clap::Args;
use std::path::PathBuf;

/// Hold simulated figures against published ones.
///
/// Each row of the published figures is decided by measurements in worlds of the parts that its article names: a figure stands beside
/// the published one with its error, a claim holds or fails, and what no run decides says why. Rows on which numbers of
/// parts were fitted are listed apart from those that check. Numbers belong to parts; no row has its own code.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uaskit validate
  uaskit validate --json | jq '.rows[] | select(.verdict == \"fails\")'
  uaskit validate --only myce
  uaskit validate --sensitivity
  uaskit validate --report page.html
  uaskit validate --parts my-parts

Bars: |error| median 8 % at most, worst 20 %; all seventeen shapes (Q1 to Q17) hold. Exit codes: 0 all bars are met, 1 not, or \
failed, 2 usage, 130 interrupted. With --only the bars are printed and not judged, since they are about all rows.")]
pub(crate) struct ValidateArguments {
    /// A folder with further parts; they take the place of others of the same name.
    #[arg(long, value_name = "DIR")]
    pub(crate) parts: Option<PathBuf>,
    /// Only rows whose id or source has this in it, whatever the case.
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    /// What each fitted number does to the errors: 10 % less, 10 % more.
    #[arg(long)]
    pub(crate) sensitivity: bool,
    /// Where random places come from.
    #[arg(long, default_value = "1")]
    pub(crate) seed: u64,
    /// Simulations that run in parallel, at most four per processor. Default: one per processor. Results do not depend on
    /// it.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = quantity::threads)]
    pub(crate) threads: Option<u16>,
    /// Write all of it as charts into one HTML file that needs nothing but a browser.
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Rejected with a reason: the rows have different units, where a saved run has rates.
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true)]
    pub(crate) save: Option<Option<PathBuf>>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
