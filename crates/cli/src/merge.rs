//! `uaskit merge`: shards of a sweep become the whole.
//!
//! The lines come out in the order of the plan, so that the union of all shards is, byte for byte, what one run would have
//! written. Always true: nothing is written unless all points are there.

use crate::args::MergeArguments;
use crate::compare::sweep;
use crate::failure::Failure;
use crate::output_file;
use crate::sanitize::shown;
use crate::stdout::Output;
use study::plural::counted_len;

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
