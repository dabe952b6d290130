//! `--raw`: link and protocols on a plain drive, without the costs of a driver or a bridge.
//!
//! The figures are in virtual time, and the same on every machine. Here simulation and captures meet, which do not know each
//! other ([`capture`]).

pub(super) mod capture;
mod page;
mod power;
mod report;
mod row;
mod saved;

use super::table::fitted;
use super::{CompareArguments, ControllerArgument, LinkArgument, print_findings};
use crate::failure::Failure;
use crate::sanitize::{self, shown};
use crate::stdout::Output;
use crate::threads;
use capture::{Capture, DEVICES_MAX, ObservedRun};
use clap::ValueEnum;
use rayon::prelude::*;
use row::Row;
use sim::engine::{Trace, TraceEntry};
use sim::link::superspeed::Rate;
use sim::link::{Connection, usb2};
use sim::machine::xhci::{Host, PowerOnError};
use sim::xhc::Part;
use std::io::Write;
use study::ceiling::{self, CeilingError, Drives, Load, LoadObservers, Protocol, Run};
use study::plural::counted;
use units::{ByteCount, Duration};

/// Commands of a run by default.
const COMMANDS: u32 = 2000;

/// Prints notes as they come.
pub(super) struct Printed;

pub(super) fn run(arguments: &CompareArguments, out: &mut Output<'_>) -> Result<(), Failure> {
    if let Some(depth) = arguments.raw_depths().into_iter().find(|depth| *depth > ceiling::DEPTH_MAX) {
        return Err(Failure::usage(format!(
            "--depth {depth} is too large for --raw (maximum {})",
            ceiling::DEPTH_MAX
        ))
        .because("all commands are in flight, and the drives have at most 64 streams")
        .try_this("leave --raw out: with parts, the driver queues commands that it does not send"));
    }
    arguments.check_pauses()?;
    arguments.check_outputs()?;
    let keeper = arguments.keeping.keeper()?;
    let mut capture = arguments.start_capture()?;
    let rows = if arguments.trace.is_some() || capture.is_some() {
        arguments.measure_in_turn(capture.as_mut(), out)?
    } else {
        arguments.measure_at_once()?
    };
    let records = capture.map(Capture::finish).transpose()?;
    let pauses = arguments.think()?;
    if let Some(file) = &arguments.report {
        page::write(arguments, &rows, file)?;
    }
    let mut record = report::record(arguments, &rows, records);
    if let Some(pauses) = &pauses {
        record["power_states"] = power::record(pauses);
    }
    if arguments.json {
        writeln!(out, "{}", sanitize::json(&format!("{record:#}")))?;
    } else {
        show(arguments, &rows, pauses.as_deref(), records, out)?;
    }
    keeper.map_or(Ok(()), |keeper| keeper.keep(&saved::run(arguments, &rows, &record)))
}

/// Everything, for people.
fn show(
    arguments: &CompareArguments,
    rows: &[Row],
    pauses: Option<&[power::Pause]>,
    records: Option<u64>,
    out: &mut Output<'_>,
) -> Result<(), Failure> {
    writeln!(out, "{}\n", arguments.title())?;
    print_findings(out, &page::findings(rows), arguments.findings)?;
    writeln!(out, "{}", fitted(&report::table(rows)))?;
    if arguments.drives > 1 {
        writeln!(out, "Each drive\n{}", fitted(&report::each_drive(rows)))?;
    }
    if arguments.explain {
        let whose = if arguments.drives > 1 { " of the first drive" } else { "" };
        writeln!(
            out,
            "Mean time of a command{whose} in each stage, ns; stages add up to the total\n{}",
            fitted(&report::explained(rows))
        )?;
        writeln!(out, "The slowest command\n{}", fitted(&report::slowest(rows)))?;
    }
    if arguments.components {
        writeln!(out, "Load of the components\n{}", fitted(&report::components(rows)))?;
    }
    if let Some(pauses) = pauses {
        writeln!(
            out,
            "Single 4 KiB reads over UAS after pauses, with link power states off (\"awake\") and on (\"asleep\"); leaving U1 or U2 \
             delays the first packets\n{}",
            fitted(&power::table(pauses))
        )?;
    }
    if let (Some(file), Some(records)) = (&arguments.capture, records) {
        writeln!(out, "{}: {}", shown(file), counted(records, "record"))?;
    }
    Ok(())
}

fn title_of_run(protocol: Protocol, depth: u16) -> String {
    format!("{protocol} at QD{depth}")
}

impl Trace for Printed {
    fn record(&mut self, entry: TraceEntry<'_>) {
        // A closed pipe is reported by the next line of the command itself.
        let _ = writeln!(std::io::stdout(), "{entry}");
    }
}

impl CompareArguments {
    /// The host controller. On USB 2.0 it is left out unless requested, since its numbers there are assumptions.
    fn controller(&self) -> Result<ControllerArgument, Failure> {
        let Some(name) = &self.controller else {
            return Ok(match self.link() {
                LinkArgument::High | LinkArgument::Full => ControllerArgument::None,
                _ => ControllerArgument::Chipset,
            });
        };
        ControllerArgument::from_str(name, false).map_err(|_| {
            Failure::usage(format!("--raw has no controller `{name}`"))
                .try_this("use chipset, card or none; or leave --raw out for controllers by name")
        })
    }

    /// It was looked at before anything was measured.
    fn controller_name(&self) -> &'static str {
        self.controller().map_or("no controller", ControllerArgument::name)
    }

    fn link(&self) -> LinkArgument {
        self.link.unwrap_or(LinkArgument::Gen1)
    }

    fn raw_depths(&self) -> Vec<u16> {
        self.depths().unwrap_or_else(|| vec![1, 2, 4, 8, 16, 30])
    }

    fn commands(&self) -> u32 {
        self.commands.unwrap_or(COMMANDS)
    }

    fn block(&self) -> ByteCount {
        self.block.unwrap_or(ByteCount(4096))
    }

    /// Pauses are tried with reads of 4 KiB of one drive, one at a time, and nothing else.
    fn check_pauses(&self) -> Result<(), Failure> {
        let is_otherwise = [
            (self.block().0 != 4096, "--block"),
            (self.write, "--write"),
            (self.drives > 1, "--drives"),
            (self.hubs > 0, "--hubs"),
        ];
        match is_otherwise.into_iter().find(|(is, _)| *is) {
            Some((_, option)) if self.power_states => {
                Err(Failure::usage(format!("--raw --power-states cannot be combined with {option}"))
                    .because("pauses are measured with 4 KiB reads of one drive without hubs")
                    .try_this("run uaskit compare twice, once with each option"))
            }
            _ => Ok(()),
        }
    }

    /// Measures the cost of pauses on a link that sleeps, if `--power-states` asks for it.
    fn think(&self) -> Result<Option<Vec<power::Pause>>, Failure> {
        let Connection::SuperSpeed(rate) = self.link().connection() else {
            return match self.power_states {
                true => Err(Failure::usage(format!(
                    "--power-states needs SuperSpeed, not {}",
                    self.link().name()
                ))),
                false => Ok(None),
            };
        };
        let latency = Duration::from_us(self.latency.into());
        let host = self.controller()?.host();
        self.power_states.then(|| power::measure(host, rate, latency)).transpose()
    }

    fn start_capture(&self) -> Result<Option<Capture>, Failure> {
        let Some(path) = &self.capture else { return Ok(None) };
        let devices_at_depth = 2 * usize::from(self.drives);
        if devices_at_depth * self.raw_depths().len() > DEVICES_MAX {
            let (most, given) = (DEVICES_MAX / devices_at_depth, self.raw_depths().len());
            let of = counted(self.drives.into(), "drive");
            return Err(Failure::usage(format!(
                "too many queue depths for one capture of {of}: {given} (maximum {most})"
            )));
        }
        Capture::create(path, self.capture_as, self.snap.unwrap_or(u32::MAX)).map(Some)
    }

    /// Simulates one run after the other, so that traces and captures are in order.
    fn measure_in_turn(
        &self,
        mut capture: Option<&mut Capture>,
        out: &mut Output<'_>,
    ) -> Result<Vec<Row>, Failure> {
        let mut rows = Vec::new();
        for depth in self.raw_depths() {
            let mut measured = |protocol| {
                if self.trace.is_some() {
                    writeln!(out, "{}", title_of_run(protocol, depth))?;
                }
                self.measure(depth, protocol, capture.as_deref_mut())
            };
            let (bot, uas) = (measured(Protocol::Bot)?, measured(Protocol::Uas)?);
            rows.push(Row { depth, bot, uas });
        }
        Ok(rows)
    }

    /// Simulates in parallel. Simulations share nothing, so that the number of threads does not change the results.
    fn measure_at_once(&self) -> Result<Vec<Row>, Failure> {
        let pool = threads::pool(self.threads)?;
        let row = |&depth: &u16| {
            let of = |protocol| self.measure(depth, protocol, None);
            let (bot, uas) = rayon::join(|| of(Protocol::Bot), || of(Protocol::Uas));
            Ok(Row { depth, bot: bot?, uas: uas? })
        };
        pool.install(|| self.raw_depths().par_iter().map(row).collect())
    }

    fn measure(&self, depth: u16, protocol: Protocol, capture: Option<&mut Capture>) -> Result<Run, Failure> {
        let (name, what) = (format!("{protocol} {depth}"), title_of_run(protocol, depth));
        let run = ObservedRun { protocol, name: &name, what: &what, drives: self.drives };
        let observers = capture.map(|capture| capture.next_run(&run)).transpose()?.unwrap_or_default();
        let trace = self.trace.map(|commands| (Box::new(Printed) as Box<dyn Trace>, commands));
        let watch = LoadObservers { observers, trace, explain: self.explain || self.report.is_some() };
        ceiling::measure(&self.load(depth)?, protocol, watch).map_err(|error| match error {
            CeilingError::Load => {
                Failure::usage(format!("a command of {} is not possible", self.block())).because(error)
            }
            CeilingError::TooLong(_) => {
                Failure::usage(format!("a command of {} is too large", self.block())).because(error)
            }
            CeilingError::TooFew(_) => Failure::usage(format!("--commands {} is too few", self.commands()))
                .because(error)
                .try_this("increase --commands, or leave it out"),
            CeilingError::OneDrive => Failure::usage("these drives cannot be attached")
                .because(error)
                .try_this("add --controller chipset, or leave --drives and --hubs out"),
            CeilingError::PowerOn(PowerOnError::Endpoints(_)) => {
                Failure::usage("too many drives for this controller")
                    .because(error)
                    .try_this("use fewer --drives or --hubs; each hub needs an endpoint, too")
            }
            CeilingError::PowerOn(PowerOnError::Setup(_)) => {
                Failure::usage("these drives cannot be attached; --hubs puts them behind one port")
                    .because(error)
            }
            _ => Failure::new("simulation failed").because(error),
        })
    }

    fn load(&self, depth: u16) -> Result<Load, Failure> {
        let too_large = || Failure::usage(format!("a command of {} is too large", self.block()));
        Ok(Load {
            host: self.controller()?.host(),
            connection: self.link().connection(),
            writes: self.write,
            bytes: u32::try_from(self.block().0).map_err(|_| too_large())?,
            drives: Drives { count: self.drives, hubs: self.hubs },
            depth,
            commands: self.commands(),
            latency: Duration::from_us(self.latency.into()),
            at_once: self.at_once,
            seed: self.seed,
        })
    }

    fn title(&self) -> String {
        let direction = if self.write { "writes" } else { "reads" };
        let (link, latency, at_once) = (self.link().name(), self.latency, self.at_once);
        let drives = match self.drives {
            1 => "one drive".to_owned(),
            count => format!("{count} drives"),
        };
        let hubs = match (self.hubs, self.drives) {
            (0, 1) => String::new(),
            (0, _) => " at separate ports".to_owned(),
            (1, _) => " behind a hub".to_owned(),
            (hubs, _) => format!(" behind {hubs} hubs in series"),
        };
        format!(
            "Random {direction} of {}, {}, {link}, {drives}{hubs} with {latency} us per command and {at_once} commands in parallel; no bridge",
            self.block(),
            self.controller_name(),
        )
    }
}

impl ControllerArgument {
    fn host(self) -> Option<Host> {
        let part = match self {
            Self::Chipset => Part::CHIPSET,
            Self::Card => Part::CARD,
            Self::None => return None,
        };
        Some(Host::with(part))
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Chipset => "a controller in a chipset",
            Self::Card => "a controller on a card with one lane",
            Self::None => "no controller",
        }
    }
}

impl LinkArgument {
    fn connection(self) -> Connection {
        match self {
            Self::Gen1 => Rate::Gen1.into(),
            Self::Gen2 => Rate::Gen2.into(),
            Self::Gen2x2 => Rate::Gen2x2.into(),
            Self::High => usb2::Rate::High.into(),
            Self::Full => usb2::Rate::Full.into(),
        }
    }

    fn name(self) -> &'static str {
        match self.connection() {
            Connection::SuperSpeed(rate) => rate.bit_rate(),
            Connection::Usb2 { rate, .. } => rate.bit_rate(),
        }
    }
}
