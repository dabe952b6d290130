//! `--timeline`: prints or writes the timeline of [`study::compare::timeline`].

use super::choice::Configuration;
use super::drawing::write;
use super::{CompareArguments, request};
use crate::counted::listed;
use crate::failure::Failure;
use crate::harmless::shown;
use std::path::Path;
use study::compare::timeline::timeline;
use study::parts::Catalogue;
use study::trial::Terms;

pub(super) fn show(
    arguments: &CompareArguments,
    file: Option<&Path>,
    asked: (&[Configuration], &Catalogue, &Terms),
) -> Result<(), Failure> {
    let jobs = request::jobs(arguments)?;
    let Some(job) = jobs.first() else { return Err(Failure::usage("the workload has no job")) };
    let timeline = timeline(job, asked)?;
    if timeline.is_empty() {
        return Err(Failure::usage("this setup has no USB drive to draw a timeline for")
            .because("a timeline shows two commands of a drive behind SuperSpeed"));
    }
    match file {
        Some(file) => {
            write(&timeline.drawing().document(), file)?;
            println!(
                "Wrote {}: a timeline (SVG) of two overlapping requests, {} at QD{}, over {}.",
                shown(file),
                job.label,
                job.depth,
                listed(&timeline.titles())
            );
            Ok(())
        }
        None => crate::stdout::print(&timeline.text()),
    }
}
