//! Arguments of `uaskit merge`.

use clap::Args;
use std::path::PathBuf;

/// Join the records of a sweep's shards.
///
/// What comes out is what one run without shards would have written, byte for byte. A name that ends with .csv gets a table with a head,
/// whose units are in the names of its columns.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uaskit compare --sweep 'bridge=*,depth=1..32' --shard 1/2 --out 1.jsonl
  uaskit compare --sweep 'bridge=*,depth=1..32' --shard 2/2 --out 2.jsonl
  uaskit merge 1.jsonl 2.jsonl -o all.jsonl
  uaskit merge all.jsonl -o all.csv

Exit codes: 0 ok, 1 failed, points missing among it, 2 usage, 3 refused to replace another kind of file.")]
pub(crate) struct MergeArguments {
    /// Files of records, in any order.
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// The file to write: records, or a table if its name ends with .csv. Replaces an older file of the same kind.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
}
