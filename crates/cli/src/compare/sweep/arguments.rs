//! Arguments of sweeps.

use super::records::Shard;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(next_help_heading = "Sweeps")]
pub(in crate::compare) struct GridArguments {
    /// Run a grid: `bridge=*,depth=1..32,block=4K..2M`. Each item is a name and its values: a|b|c, a range by doubling, or * for all parts
    /// that fit.
    #[arg(long, value_name = "GRID", conflicts_with_all = ["raw", "workload", "trace", "capture", "timeline", "platter", "explain", "against"])]
    pub(in crate::compare) sweep: Option<String>,
    /// Append records to this file, a line of JSON each. One that was interrupted is continued.
    #[arg(long, value_name = "FILE.jsonl", requires = "sweep")]
    pub(super) out: Option<PathBuf>,
    /// Write a table of all records, when the sweep is complete.
    #[arg(long, value_name = "FILE.csv", requires = "out")]
    pub(super) csv: Option<PathBuf>,
    /// Run only every nth point from the ith on, 1/n to n/n: each is a job of its own, and `uaskit merge` joins them.
    #[arg(long, value_name = "I/N", requires = "out", default_value = "1/1")]
    pub(super) shard: Shard,
}
