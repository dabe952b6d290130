//! Traces and captures of simulations with parts: one run after the other, so that their output is in order.
//!
//! Invariants: an observer changes nothing except how long is measured; a drive on a SATA cable has no USB transfers to
//! capture.

use super::CompareArguments;
use super::choice::Configuration;
use super::raw::Printed;
use super::raw::capture::{Capture, DEVICES_MAX, ObservedRun};
use crate::failure::Failure;
use crate::messages::message;
use crate::sanitize::shown;
use crate::stdout::Output;
use crate::{output_file, page};
use sim::engine::Trace;
use std::rc::Rc;
use study::ceiling::Protocol;
use study::compare::Comparison;
use study::compare::runs::{self, JobRuns};
use study::compare::short;
use study::parts::Carried;
use study::plural::counted;
use study::trial::TrialObservers;
use workload::Job;

/// Requests of a captured run by default.
const REQUESTS: u32 = 100;

/// Measures with the requested observers; `None` without any.
pub(super) fn measure(
    arguments: &CompareArguments,
    jobs: &[Job],
    comparison: Comparison<'_>,
    out: &mut Output<'_>,
) -> Result<Option<Vec<JobRuns>>, Failure> {
    if arguments.trace.is_none() && arguments.capture.is_none() {
        return Ok(None);
    }
    let Comparison { columns, catalogue, terms } = comparison;
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
            let what = format!("{}, {}, depth {}", column.name, job.label, job.depth);
            if arguments.trace.is_some() {
                writeln!(out, "{what}")?;
            }
            let observers = arguments.observers(column, job, &what, capture.as_mut())?;
            let latencies = arguments.keeping.is_asked().then(Rc::default);
            let observers = TrialObservers { latencies, ..observers };
            of.push(runs::look(column, job, catalogue, &terms, observers)?);
        }
        rows.push(JobRuns { job: job.clone(), of });
    }
    if let (Some(capture), Some(file)) = (capture, &arguments.capture) {
        message!("{}: {}", shown(file), counted(capture.finish()?, "record"));
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
        output_file::check_distinct(&[&self.grid.files()[..], &others].concat())?;
        page::has_room(self.report.as_deref())?;
        for file in pictures.into_iter().flatten() {
            output_file::check_replaceable(file, output_file::Kind::Picture)?;
        }
        self.capture
            .as_deref()
            .map_or(Ok(()), |file| output_file::check_replaceable(file, output_file::Kind::Capture))?;
        self.grid.check_files()
    }

    fn start_parts_capture(&self, runs: usize) -> Result<Option<Capture>, Failure> {
        let Some(path) = &self.capture else { return Ok(None) };
        if runs > DEVICES_MAX {
            let what = format!("too many runs for one capture: {runs} (maximum {DEVICES_MAX})");
            return Err(
                Failure::usage(what).try_this("select fewer with --block and --depth, or --transport")
            );
        }
        Capture::create(path, self.capture_as, self.snap.unwrap_or(u32::MAX)).map(Some)
    }

    fn observers(
        &self,
        column: &Configuration,
        job: &Job,
        what: &str,
        capture: Option<&mut Capture>,
    ) -> Result<TrialObservers, Failure> {
        let trace = self.trace.map(|requests| (Box::new(Printed) as Box<dyn Trace>, requests));
        let protocol = match column.activation.transport {
            Carried::Sata => return Ok(TrialObservers { trace, ..TrialObservers::default() }),
            Carried::Uas(_) => Protocol::Uas,
            Carried::Bot | Carried::Turbo => Protocol::Bot,
        };
        let name = format!("{} {}", column.name, job.depth);
        let run = ObservedRun { protocol, name: &name, what, drives: 1 };
        let observers = capture.map(|capture| capture.next_run(&run)).transpose()?;
        let observer = observers.and_then(|mut observers| observers.pop());
        Ok(TrialObservers { observer, trace, ..TrialObservers::default() })
    }
}
