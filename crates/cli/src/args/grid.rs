//! Arguments of a sweep of `uaskit compare`.
//!
//! Left out: the grid itself, which is parsed with the parts that it names.

use clap::Args;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

#[derive(Debug, Args)]
#[command(next_help_heading = "Sweeps")]
pub(crate) struct GridArguments {
    /// Run a grid: `bridge=*,depth=1..32,block=4K..2M`. Each item is a name and its values: a|b|c, a range by doubling, or * for all parts
    /// that fit.
    #[arg(long, value_name = "GRID", conflicts_with_all = ["raw", "workload", "trace", "capture", "timeline", "platter", "explain", "against"])]
    pub(crate) sweep: Option<String>,
    /// Append records to this file, one JSON object a line; an interrupted sweep continues.
    #[arg(long, value_name = "FILE.jsonl", requires = "sweep")]
    pub(crate) out: Option<PathBuf>,
    /// Write a table of all records when the sweep is complete; replaces an older table.
    #[arg(long, value_name = "FILE.csv", requires = "out")]
    pub(crate) csv: Option<PathBuf>,
    /// Run only every nth point from the ith on, 1/n to n/n, as a separate job; `uaskit merge` joins them.
    #[arg(long, value_name = "I/N", requires = "out", default_value = "1/1")]
    pub(crate) shard: Shard,
}

impl GridArguments {
    /// The files that it writes, by option.
    pub(crate) fn files(&self) -> [(&'static str, Option<&Path>); 2] {
        [("--out", self.out.as_deref()), ("--csv", self.csv.as_deref())]
    }
}

/// Shards of a sweep at most.
const SHARDS_MAX: usize = 100_000;

/// Every `of`th point, from the `number`th on; from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    pub(crate) number: usize,
    pub(crate) of: usize,
}

impl Shard {
    /// All of it.
    pub(crate) const WHOLE: Self = Self { number: 1, of: 1 };

    /// Whether a point, from 0, is its own.
    pub(crate) const fn has(self, point: usize) -> bool {
        point % self.of == self.number - 1
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no shard; write I/N, from 1/N to N/N");
        let (number, of) = text.split_once('/').ok_or_else(wrong)?;
        let (number, of) = (number.parse().map_err(|_| wrong())?, of.parse().map_err(|_| wrong())?);
        if (1..=of).contains(&number) && of <= SHARDS_MAX { Ok(Self { number, of }) } else { Err(wrong()) }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}
