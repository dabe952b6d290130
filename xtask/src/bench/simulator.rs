//! `cargo xtask bench sim`: how many commands the simulator completes per second of one processor.
//!
//! 4 KiB random reads over UAS with streams, 32 in flight on each drive, over driver, controller and SuperSpeed links, TRB by
//! TRB and packet by packet. A simulation has 1, 8 or 32 drives at one controller, each at its own root port. The bar is that of one drive; with more drives,
//! and with four times as many commands, an event is to cost what it does there, so that the time grows as they do. A command has
//! more events where many drives share the controller, since each has less to do at a time and says so. Another has all parts of a machine: driver costs, controller, link that may sleep, bridge, SATA and
//! a solid-state drive. What counts is the time that this process has on a processor, so that others on the machine
//! disturb little; the median of the rounds is held against the bar.

use super::figure::{self, Spread};
use super::judged::{Judged, conclude};
use anyhow::{Context, Result};
use comfy_table::{Table, presets};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use sim::link::superspeed::Rate;
use sim::machine::xhci::Host;
use sim::xhc::Part;
use std::fs;
use study::ceiling::{Drives, Figures, Load, Measurement};
use study::measure::Stretch;
use study::parts::Catalogue;
use study::setups::Setup;
use study::trial::{self, DATA_SET_BYTES, Terms};
use units::Duration;
use workload::{AccessSpec, Job};
use xhci_controller::Model;

/// How to measure the simulator.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SimulatorArguments {
    /// Commands of each measurement, over all drives.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    commands: u32,
    /// How often each is measured, alternately.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Print everything as JSON.
    #[arg(long)]
    json: bool,
}

/// Everything that was measured.
#[derive(Debug, Serialize)]
struct Report {
    /// For each number of devices.
    speeds: Vec<Speed>,
    /// The most memory that this process had resident when it had measured those.
    resident_bytes: u64,
    /// With all parts.
    parts: Speed,
    /// The most memory in the end.
    resident_with_parts_bytes: u64,
}

/// The speed of a simulation.
#[derive(Debug, Serialize)]
struct Speed {
    world: Simulated,
    /// Commands per second of processor time, one for each round.
    rates: Vec<f64>,
    events_per_command: f64,
    /// Nanoseconds of processor time for an event: the median of the rounds.
    event_ns: f64,
}

/// The simulated machine.
#[derive(Clone, Copy, Debug, Serialize)]
enum Simulated {
    /// So many plain drives.
    Devices(u8),
    /// One plain drive, and [`LONGER`] times as many commands.
    Longer,
    /// One drive that is made of parts, on a machine that is.
    Parts,
}

/// How many times as many commands show whether the cost of one grows with them.
const LONGER: u32 = 4;
/// The maximum cost of an event with more devices or more commands, relative to the cost with one
/// device: caches that miss are within it, also where others use the far ones; a search among all
/// is not.
const GROWTH_BAR: f64 = 2.0;
/// Events that a command may have with more devices or more commands, of what it has with one device: those of drives that have less to do
/// at a time, and say so. The number does not depend on the machine.
const EVENTS_BAR: f64 = 1.5;
/// Commands per second of processor time, with one device.
const BAR: f64 = 300_000.0;
/// The same with all parts.
const BAR_PARTS: f64 = 150_000.0;
/// The most memory, and the most with all parts.
const RESIDENT_BAR_BYTES: u64 = 64 << 20;
const RESIDENT_PARTS_BAR_BYTES: u64 = 128 << 20;
/// The parts, as `uaskit compare` names them.
const PARTS: (&str, &str) = ("myce", "uasp");
const DEVICES: [u8; 3] = [1, 8, 32];
const DEPTH: u16 = 32;
/// Bytes of a command.
const BLOCK_BYTES: u32 = 4096;

/// Measures; whether the bar was reached.
pub(super) fn measure(arguments: &SimulatorArguments) -> Result<bool> {
    let worlds = DEVICES.into_iter().map(Simulated::Devices).chain([Simulated::Longer]);
    let mut speeds: Vec<Speed> = worlds.map(Speed::new).collect();
    for _ in 0..arguments.rounds {
        for speed in &mut speeds {
            speed.measure(arguments.commands)?;
        }
    }
    let resident_bytes = most_resident()?;
    let mut parts = Speed::new(Simulated::Parts);
    for _ in 0..arguments.rounds {
        parts.measure(arguments.commands)?;
    }
    let resident_with_parts_bytes = most_resident()?;
    let report = Report { speeds, resident_bytes, parts, resident_with_parts_bytes };
    conclude(&report, arguments.json, || {
        println!(
            "Simulated commands per CPU-second, with 1 device at least {BAR:.0}, of parts {BAR_PARTS:.0}; {} rounds",
            arguments.rounds
        );
        println!("{}", report.table());
        println!(
            "An event costs {:.2} of what it does with 1 device at most, of {GROWTH_BAR:.1} allowed; a command has {:.2} of its \
             events, of {EVENTS_BAR:.1} allowed, and costs {:.2}",
            report.growth(|speed| speed.event_ns),
            report.growth(|speed| speed.events_per_command),
            report.growth(|speed| speed.rate().median.recip())
        );
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        println!(
            "{:.1} MiB resident at most, of {:.0} allowed; with parts {:.1} of {:.0}",
            mib(report.resident_bytes),
            mib(RESIDENT_BAR_BYTES),
            mib(report.resident_with_parts_bytes),
            mib(RESIDENT_PARTS_BAR_BYTES)
        );
    })
}

impl Speed {
    const fn new(world: Simulated) -> Self {
        Self { world, rates: Vec::new(), events_per_command: 0.0, event_ns: 0.0 }
    }

    /// One round.
    fn measure(&mut self, commands: u32) -> Result<()> {
        let (rate, events_per_command) = match self.world {
            Simulated::Devices(devices) => Self::measure_devices(devices, commands)?,
            Simulated::Longer => Self::measure_devices(1, commands.saturating_mul(LONGER))?,
            Simulated::Parts => Self::measure_parts(commands)?,
        };
        self.rates.push(rate);
        self.events_per_command = events_per_command;
        self.event_ns = 1e9 / (self.rate().median * events_per_command);
        Ok(())
    }

    /// Commands in a second of processor time, and events for a command.
    fn measure_devices(devices: u8, commands: u32) -> Result<(f64, f64)> {
        // A controller with a port and with room for each of the drives.
        let model = Model { ports_usb3: devices.max(2), endpoints_max: 254, ..Model::CHIPSET };
        let part = Part { model, ..Part::CHIPSET };
        let drives = Drives { count: devices, hubs: 0 };
        let mut world = Measurement::uas(&Load { drives, ..load() }, Host::with(part))?;
        let before = processor_time();
        world.go_on(commands)?;
        let busy = processor_time() - before;
        let Figures { commands: done, events, .. } = world.figures();
        Ok((done as f64 / busy, events as f64 / done as f64))
    }

    /// The same with all parts. What it takes to power them on counts as well.
    fn measure_parts(commands: u32) -> Result<(f64, f64)> {
        let catalogue = Catalogue::built_in()?;
        let setups = Setup::built_in(&catalogue)?;
        let (setup, variant) = PARTS;
        let found = setups.iter().find(|known| known.name == setup);
        let of = found.and_then(|setup| setup.variant(variant)).context("a setup that comes with it")?;
        let share = AccessSpec::all(BLOCK_BYTES, 100, 100);
        let job = Job { span_bytes: Some(DATA_SET_BYTES), ..Job::of(share, DEPTH) };
        let stretch = Stretch { span: Duration::ZERO, requests: commands, bytes: u64::MAX, ..Stretch::USUAL };
        let before = processor_time();
        let run = trial::run(&of.assembly, &catalogue, &job, &Terms { stretch, ..Terms::USUAL })?;
        let busy = processor_time() - before;
        // What was dropped at the beginning was simulated all the same.
        let done = run.measured.requests as f64;
        Ok((done / busy, run.events as f64 / done))
    }

    /// Returns the minimum rate, if there is one; otherwise the cost of an event has a maximum.
    const fn bar(&self) -> Option<f64> {
        match self.world {
            Simulated::Devices(1) | Simulated::Longer => Some(BAR),
            Simulated::Devices(_) => None,
            Simulated::Parts => Some(BAR_PARTS),
        }
    }

    fn is_too_slow(&self) -> bool {
        self.bar().is_some_and(|bar| self.rate().median < bar)
    }

    fn rate(&self) -> Spread {
        Spread::of(self.rates.clone())
    }
}

impl Judged for Report {
    fn passes(&self) -> bool {
        self.resident_bytes <= RESIDENT_BAR_BYTES
            && self.resident_with_parts_bytes <= RESIDENT_PARTS_BAR_BYTES
            && self.growth(|speed| speed.event_ns) <= GROWTH_BAR
            && self.growth(|speed| speed.events_per_command) <= EVENTS_BAR
            && !self.speeds.iter().chain([&self.parts]).any(Speed::is_too_slow)
    }
}

impl Report {
    /// The most that something costs of what it does with one device, whatever the number of devices and of commands.
    fn growth(&self, cost: impl Fn(&Speed) -> f64) -> f64 {
        let costs = || self.speeds.iter().map(&cost);
        costs().fold(0.0, f64::max) / costs().next().unwrap_or(f64::NAN)
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::UTF8_HORIZONTAL_ONLY);
        table.set_header([
            "devices",
            "commands per CPU-second",
            "min",
            "max",
            "events for a command",
            "ns for an event",
            "",
        ]);
        for speed in self.speeds.iter().chain([&self.parts]) {
            let Spread { min, median, max } = speed.rate();
            let [min, rate, max] = [min, median, max].map(|rate| format!("{rate:.0}"));
            let (events, ns) = (speed.events_per_command, speed.event_ns);
            let verdict = if speed.is_too_slow() { "TOO SLOW" } else { "" };
            let devices = match speed.world {
                Simulated::Devices(devices) => devices.to_string(),
                Simulated::Longer => format!("1, {LONGER} times as many commands"),
                Simulated::Parts => "1, of parts".into(),
            };
            table.add_row([
                &devices,
                &rate,
                &min,
                &max,
                &format!("{events:.1}"),
                &format!("{ns:.1}"),
                verdict,
            ]);
        }
        figure::align(&mut table);
        table
    }
}

fn load() -> Load {
    Load {
        host: None,
        connection: Rate::Gen1.into(),
        writes: false,
        bytes: BLOCK_BYTES,
        drives: Drives::ONE,
        depth: DEPTH,
        // As many as are asked for.
        commands: 1,
        latency: Duration::from_us(60),
        at_once: DEPTH,
        seed: 1,
    }
}

/// Seconds that this process has had on processors.
fn processor_time() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// `VmHWM` of `/proc/self/status`, which counts in kB and means KiB.
fn most_resident() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status").context("read /proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()).and_then(|word| word.parse::<u64>().ok());
    kib.map(|kib| kib << 10).context("/proc/self/status does not say VmHWM")
}
