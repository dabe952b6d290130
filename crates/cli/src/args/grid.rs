//! Arguments of a sweep of `uaskit compare`.
//!
//! Left out: the grid itself, which is parsed with the parts that it names.

use clap::Args;
use std::path::{Path, PathBuf};
use study::sweep::records::Shard;

#[derive(Debug, Args)]
#[command(next_help_heading = "Sweeps")]
pub(crate) struct GridArguments {
    /// Simulate every combination of a grid, as in `bridge=*,depth=1..32,block=4K..2M`; see Sweeps below.
    #[arg(long, value_name = "GRID")]
    pub(crate) sweep: Option<String>,
    /// Append records to this file, one JSON object per line; repeat the command to continue an interrupted sweep.
    #[arg(long, value_name = "FILE.jsonl")]
    pub(crate) out: Option<PathBuf>,
    /// Also write a CSV table when the sweep is complete; replaces an older table.
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) csv: Option<PathBuf>,
    /// Run one of N equal parts of the grid, 1/N to N/N; `uaskit merge` joins their records.
    #[arg(long, value_name = "I/N", default_value = "1/1")]
    pub(crate) shard: Shard,
}

impl GridArguments {
    /// The files that it writes, by option.
    pub(crate) fn files(&self) -> [(&'static str, Option<&Path>); 2] {
        [("--out", self.out.as_deref()), ("--csv", self.csv.as_deref())]
    }
}
