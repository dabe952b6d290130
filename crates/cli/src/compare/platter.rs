//! `--platter`: prints or writes the order of reads of [`study::compare::platter`].

use super::drawing::write;
use crate::failure::Failure;
use crate::sanitize::shown;
use crate::stdout::Output;
use std::path::Path;
use study::compare::Comparison;
use study::compare::platter::order_of_reads;
use study::plural::listed;

pub(super) fn show(
    file: Option<&Path>,
    comparison: Comparison<'_>,
    out: &mut Output<'_>,
) -> Result<(), Failure> {
    let order = order_of_reads(comparison)?;
    if order.is_empty() {
        return Err(Failure::usage("this setup has no hard disk")
            .try_this("Select one: --drive disk-7200, or --setup toms"));
    }
    match file {
        Some(file) => {
            write(&order.drawing().document(), file)?;
            writeln!(
                out,
                "Wrote {}: the order in which the disk serves four reads on one track (SVG), for {}.",
                shown(file),
                listed(&order.titles())
            )
        }
        None => out.print(&order.text()),
    }
}
