//! `--platter`: prints or writes the order of reads of [`study::compare::platter`].

use super::choice::Configuration;
use super::drawing::write;
use crate::counted::listed;
use crate::failure::Failure;
use crate::harmless::shown;
use std::path::Path;
use study::compare::platter::order_of_reads;
use study::parts::Catalogue;
use study::trial::Terms;

pub(super) fn show(
    file: Option<&Path>,
    asked: (&[Configuration], &Catalogue, &Terms),
) -> Result<(), Failure> {
    let order = order_of_reads(asked)?;
    if order.is_empty() {
        return Err(Failure::usage("this setup has no disk with a platter")
            .try_this("Choose one: --drive disk-7200, or --setup toms"));
    }
    match file {
        Some(file) => {
            write(&order.drawing().document(), file)?;
            println!(
                "Wrote {}: the order (SVG) in which four reads on one track are served, for {}.",
                shown(file),
                listed(&order.titles())
            );
            Ok(())
        }
        None => crate::stdout::print(&order.text()),
    }
}
