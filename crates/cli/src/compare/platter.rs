//! `--platter`: prints or writes the order of reads of [`study::compare::platter`].

use super::choice::Column;
use super::drawing::write;
use crate::failure::Failure;
use std::path::Path;
use study::compare::platter::order_of_reads;
use study::parts::Catalogue;
use study::trial::Terms;

pub(super) fn show(file: Option<&Path>, asked: (&[Column], &Catalogue, &Terms)) -> Result<(), Failure> {
    let order = order_of_reads(asked)?;
    if order.is_empty() {
        return Err(Failure::usage("nothing of this setup has a platter")
            .try_this("take a disk: --drive disk-7200, or --setup toms"));
    }
    match file {
        Some(file) => write(&order.drawing().document(), file),
        None => crate::stdout::print(&order.text()),
    }
}
