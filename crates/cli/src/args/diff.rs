//! Arguments of `uaskit diff`.

use clap::Args;
use records::Selector;
use std::path::PathBuf;

/// Hold a run against one before it: after new firmware, on another cable, port or transport.
///
/// Rows are compared by the ratio of their rates, after : before. Its interval is made of the rounds of both runs, and so wide that all
/// rows lie within theirs together 95 times of a hundred. A row is the same if its whole interval is within --same of 1, better or worse
/// if it is on one side of 1, and unclear otherwise: measure more rounds. Simulated runs are saved
/// with five seeds, which are their rounds; where one has a single seed, as links and protocols alone, the ratio alone decides. What differs from day to day, such as
/// how full and how warm a drive is, no interval knows.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo uaskit bench 2-1.4 --save --label 'firmware 1.1'
  sudo uaskit bench 2-1.4 --save --label 'firmware 1.2'
  uaskit diff 'firmware 1.1' 'firmware 1.2'
  uaskit diff last~1 last --same 2 --json
  uaskit diff 'firmware 1.1' 'firmware 1.2' --report firmware.html

Exit codes: 0 ok, whatever came out; 1 failed, 2 usage.")]
pub(crate) struct DiffArguments {
    /// The run before: its number, its label, `last` or `last~N`.
    pub(crate) before: Selector,
    /// The run after.
    pub(crate) after: Selector,
    /// A ratio so near to 1 is called the same.
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = percent)]
    pub(crate) same: f64,
    /// Another file of runs than that in your data folder.
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Write a page with charts into this file, to keep and to share; an older one is replaced.
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
