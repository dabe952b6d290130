//! `--timeline`: prints or writes the timeline of [`study::compare::timeline`].

use super::choice::Column;
use super::drawing::write;
use super::{CompareArguments, request};
use crate::failure::Failure;
use std::path::Path;
use study::compare::timeline::timeline;
use study::parts::Catalogue;
use study::trial::Terms;

pub(super) fn show(
    arguments: &CompareArguments,
    file: Option<&Path>,
    asked: (&[Column], &Catalogue, &Terms),
) -> Result<(), Failure> {
    let jobs = request::jobs(arguments)?;
    let Some(job) = jobs.first() else { return Err(Failure::usage("the workload has no job")) };
    let timeline = timeline(job, asked)?;
    if timeline.is_empty() {
        return Err(Failure::usage("nothing of this setup can be drawn")
            .because("it has no drive behind SuperSpeed, or none that is asked for twice"));
    }
    match file {
        Some(file) => write(&timeline.drawing().document(), file),
        None => crate::stdout::print(&timeline.text()),
    }
}
