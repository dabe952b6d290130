//! Traces and captures of worlds of parts: one run after the other, since somebody looks on.
//!
//! Always true: who looks on changes nothing but for how long is measured; a drive on a cable has no USB, and nothing is told of it.

use super::CompareArguments;
use super::choice::Configuration;
use super::raw::Printed;
use super::raw::capture::{Capture, DEVICES_MAX, Looked};
use crate::counted::counted;
use crate::failure::Failure;
use crate::harmless::shown;
use crate::unprinted::aside;
use crate::{outlet, page};
use sim::engine::Trace;
use study::ceiling::Protocol;
use study::compare::runs::{self, JobRuns};
use study::compare::short;
use study::parts::{Carried, Catalogue};
use study::trial::{Terms, TrialObservers};
use workload::Job;

/// Requests of a run that is captured, unless it is told.
const REQUESTS: u32 = 100;

/// Measures with those looking on that are asked for; none is, if nobody.
pub(super) fn measure(
    arguments: &CompareArguments,
    (columns, jobs): (&[Configuration], &[Job]),
    (catalogue, terms): (&Catalogue, &Terms),
) -> Result<Option<Vec<JobRuns>>, Failure> {
    if arguments.trace.is_none() && arguments.capture.is_none() {
        return Ok(None);
    }
    let usb = columns.iter().filter(|column| column.activation.transport != Carried::Sata).count();
    let mut capture = arguments.start_parts_capture(usb * jobs.len())?;
    let terms = match capture {
        Some(_) => short(terms, arguments.commands.unwrap_or(REQUESTS)),
        None => *terms,
    };
    let mut rows = Vec::new();
    for job in jobs {
        let mut of = Vec::new();
        for column in columns {
            let watch = arguments.watch(column, job, capture.as_mut())?;
            of.push(runs::look(column, job, (catalogue, &terms), (watch, arguments.keeping.is_asked()))?);
        }
        rows.push(JobRuns { job: job.clone(), of });
    }
    if let (Some(capture), Some(file)) = (capture, &arguments.capture) {
        aside!("{}: {}", shown(file), counted(capture.finish()?, "record"));
    }
    Ok(Some(rows))
}

impl CompareArguments {
    /// Checks that every file that is to be written can be, before anything runs.
    pub(super) fn check_outputs(&self) -> Result<(), Failure> {
        let pictures = [&self.timeline, &self.platter].map(|file| file.as_ref()?.as_deref());
        let [timeline, platter] = pictures;
        let others = [
            ("--report", self.report.as_deref()),
            ("--timeline", timeline),
            ("--platter", platter),
            ("--capture", self.capture.as_deref()),
            ("--save", self.keeping.file()),
        ];
        outlet::are_apart(&[&self.grid.files()[..], &others].concat())?;
        page::has_room(self.report.as_deref())?;
        for file in pictures.into_iter().flatten() {
            outlet::is_free(file, outlet::Kind::Picture)?;
        }
        self.capture.as_deref().map_or(Ok(()), |file| outlet::is_free(file, outlet::Kind::Capture))?;
        self.grid.check_files()
    }

    fn start_parts_capture(&self, runs: usize) -> Result<Option<Capture>, Failure> {
        let Some(path) = &self.capture else { return Ok(None) };
        if runs > DEVICES_MAX {
            let what = format!("a capture has room for {DEVICES_MAX} runs, and these are {runs}");
            return Err(Failure::usage(what).try_this("name a --block and a --depth, or a --transport"));
        }
        Capture::create(path, self.capture_as, self.snap.unwrap_or(u32::MAX)).map(Some)
    }

    fn watch(
        &self,
        column: &Configuration,
        job: &Job,
        capture: Option<&mut Capture>,
    ) -> Result<TrialObservers, Failure> {
        let what = format!("{}, {}, depth {}", column.name, job.label, job.depth);
        if self.trace.is_some() {
            println!("{what}");
        }
        let trace = self.trace.map(|requests| (Box::new(Printed) as Box<dyn Trace>, requests));
        let protocol = match column.activation.transport {
            Carried::Sata => return Ok(TrialObservers { trace, ..TrialObservers::default() }),
            Carried::Uas(_) => Protocol::Uas,
            Carried::Bot | Carried::Turbo => Protocol::Bot,
        };
        let name = format!("{} {}", column.name, job.depth);
        let run = Looked { protocol, name: &name, what: &what, drives: 1 };
        let observers = capture.map(|capture| capture.next_run(&run)).transpose()?;
        let observer = observers.and_then(|mut observers| observers.pop());
        Ok(TrialObservers { observer, trace, ..TrialObservers::default() })
    }
}
