//! Arguments of sweeps.

use super::records::Shard;
use crate::failure::Failure;
use crate::output_file;
use clap::Args;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(next_help_heading = "Sweeps")]
pub(in crate::compare) struct GridArguments {
    /// Run a grid: `bridge=*,depth=1..32,block=4K..2M`. Each item is a name and its values: a|b|c, a range by doubling, or * for all parts
    /// that fit.
    #[arg(long, value_name = "GRID", conflicts_with_all = ["raw", "workload", "trace", "capture", "timeline", "platter", "explain", "against"])]
    pub(in crate::compare) sweep: Option<String>,
    /// Append records to this file, one JSON object a line; an interrupted sweep continues.
    #[arg(long, value_name = "FILE.jsonl", requires = "sweep")]
    pub(super) out: Option<PathBuf>,
    /// Write a table of all records when the sweep is complete; replaces an older table.
    #[arg(long, value_name = "FILE.csv", requires = "out")]
    pub(super) csv: Option<PathBuf>,
    /// Run only every nth point from the ith on, 1/n to n/n, as a separate job; `uaskit merge` joins them.
    #[arg(long, value_name = "I/N", requires = "out", default_value = "1/1")]
    pub(super) shard: Shard,
}

impl GridArguments {
    /// Checks that the files of a sweep can be written, before anything runs.
    pub(in crate::compare) fn check_files(&self) -> Result<(), Failure> {
        self.out.as_deref().map_or(Ok(()), output_file::check_writable)?;
        self.csv
            .as_deref()
            .map_or(Ok(()), |file| output_file::check_replaceable(file, output_file::Kind::Table))
    }

    /// The files that it writes, by option.
    pub(in crate::compare) fn files(&self) -> [(&'static str, Option<&Path>); 2] {
        [("--out", self.out.as_deref()), ("--csv", self.csv.as_deref())]
    }
}
