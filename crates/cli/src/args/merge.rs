//! Arguments of `uaskit merge`.

use clap::Args;
use std::path::PathBuf;

/// Merge the records of a sweep's shards.
///
/// The result equals, byte for byte, the file of one run without shards. If its name ends in .csv, it is a table whose
/// column names contain the units.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uaskit compare --sweep 'bridge=*,depth=1..32' --shard 1/2 --out 1.jsonl
  uaskit compare --sweep 'bridge=*,depth=1..32' --shard 2/2 --out 2.jsonl
  uaskit merge 1.jsonl 2.jsonl -o all.jsonl
  uaskit merge all.jsonl -o all.csv

Exit codes: 0 ok; 1 failed, also if points are missing; 2 usage; 3 refused to replace another kind of file.")]
pub(crate) struct MergeArguments {
    /// Record files of the shards, in any order.
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// File to write: records, or a table if its name ends in .csv. Replaces an older file of the same kind.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
}
