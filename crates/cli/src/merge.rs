//! `uaskit merge`: shards of a sweep become the whole.
//!
//! The lines come out in the order of the plan, so that the union of all shards is, byte for byte, what one run would have
//! written. Always true: nothing is written unless all points are there.

use crate::compare::sweep;
use crate::failure::Failure;
use crate::output_file;
use crate::sanitize::shown;
use crate::stdout::Output;
use clap::Args;
use std::path::PathBuf;
use study::plural::counted_len;

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
    files: Vec<PathBuf>,
    /// The file to write: records, or a table if its name ends with .csv. Replaces an older file of the same kind.
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

pub(crate) fn run(arguments: &MergeArguments, out: &mut Output<'_>) -> Result<(), Failure> {
    let output = &arguments.output;
    let is_table = output.extension().is_some_and(|end| end == "csv");
    let kind = if is_table { output_file::Kind::Table } else { output_file::Kind::Records };
    output_file::check_replaceable(output, kind)?;
    let lines = sweep::merge(&arguments.files)?;
    if is_table {
        sweep::write_csv(output, lines.iter().skip(1).map(String::as_str))?;
    } else {
        output_file::write(output, kind, (lines.join("\n") + "\n").as_bytes())?;
    }
    writeln!(out, "Wrote {} to {}.", counted_len(lines.len() - 1, "point"), shown(output))
}
