//! Arguments of `uaskit diff`.

use clap::Args;
use records::Selector;
use std::path::PathBuf;

/// Compare two saved runs: before and after new firmware, another cable, port or transport.
///
/// Each row is judged by the ratio of its rates, after : before, with a confidence interval from the rounds of both runs. The
/// intervals hold for all rows together with 95 % confidence. A row is "the same" if its interval is within --same of 1,
/// "better" or "worse" if its interval is on one side of 1, and "unclear" otherwise; more rounds decide it. Simulated runs
/// have five seeds in place of rounds; with one seed, as with --raw, only the ratio counts. Intervals do not cover what
/// differs from day to day, such as how full or warm a drive is.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo uaskit bench 2-1.4 --save --label 'firmware 1.1'
  sudo uaskit bench 2-1.4 --save --label 'firmware 1.2'
  uaskit diff 'firmware 1.1' 'firmware 1.2'
  uaskit diff last~1 last --same 2 --json
  uaskit diff 'firmware 1.1' 'firmware 1.2' --report firmware.html

Exit codes: 0 compared, whatever the result; 1 failed; 2 usage.")]
pub(crate) struct DiffArguments {
    /// Run before: its number, its label, `last` or `last~N`.
    pub(crate) before: Selector,
    /// Run after.
    pub(crate) after: Selector,
    /// Call a row the same if its ratio is within PERCENT of 1.
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = percent)]
    pub(crate) same: f64,
    /// File of saved runs. Default: uaskit/runs.sqlite in your data folder.
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Write an HTML page with charts; replaces an older page.
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

fn percent(text: &str) -> Result<f64, String> {
    let wrong = || format!("'{text}' is not a number of percent from 0 to 100");
    text.parse().ok().filter(|percent| (0.0..=100.0).contains(percent)).ok_or_else(wrong)
}
