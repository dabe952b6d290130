//! `--timeline`: prints or writes the timeline of [`study::compare::timeline`].

use super::CompareArguments;
use super::drawing::write;
use super::request;
use crate::failure::Failure;
use crate::sanitize::shown;
use crate::stdout::Output;
use std::path::Path;
use study::compare::Comparison;
use study::compare::timeline::timeline;
use study::plural::listed;

pub(super) fn show(
    arguments: &CompareArguments,
    file: Option<&Path>,
    comparison: Comparison<'_>,
    out: &mut Output<'_>,
) -> Result<(), Failure> {
    if let [_, _, ..] = arguments.depths().unwrap_or_default()[..] {
        return Err(Failure::usage("--timeline draws one queue depth, and --depth names several")
            .try_this("Name one, as in --depth 2."));
    }
    let jobs = request::jobs(arguments)?;
    let Some(job) = jobs.first() else { return Err(Failure::usage("the workload has no job")) };
    let timeline = timeline(job, comparison)?;
    if timeline.is_empty() {
        return Err(Failure::usage("this setup has no USB drive to draw a timeline for")
            .because("a timeline shows two commands of a drive at SuperSpeed"));
    }
    match file {
        Some(file) => {
            write(&timeline.drawing().document(), file)?;
            writeln!(
                out,
                "Wrote {}: a timeline (SVG) of two overlapping requests, {} at QD{}, over {}.",
                shown(file),
                job.label,
                job.depth,
                listed(&timeline.titles())
            )
        }
        None => out.print(&timeline.text()),
    }
}
