//! The drive against a bare echo of the same message sizes, over a unix socket, everybody on one processor.
//!
//! One processor, so that the work of all three counts: load, kernel, drive. The load is the same code against both.
//! Media are memory, and a file that stays in the page cache. A round is one measurement of each, in changing order.

use super::DriveArguments;
use super::echo::Echo;
use super::figure::{self, Figure, Spread};
use super::host::Host;
use super::link::Link;
use super::load::{BLOCK_BYTES, Load, Random, Sweep};
use super::processor::{self, busy_time};
use anyhow::{Context, Result, ensure};
use comfy_table::{Table, presets};
use serde::Serialize;
use std::fs::File;
use std::path::Path;
use std::time::Duration;
use uaskit_interop::drive::Drive;
use wire::usb::Direction;

/// What the drive must reach of the echo, with a medium in memory and in a file.
const RAM_BAR: f64 = 0.7;
const FILE_BAR: f64 = 0.5;

/// Bytes of the media.
const MEDIUM_BYTES: u64 = 256 << 20;

/// Reads or writes of one medium.
#[derive(Debug, Serialize)]
pub(super) struct SocketFigure {
    /// Commands per second.
    #[serde(flatten)]
    pub(super) rates: Figure,
    /// Processor time that the load spent on a command, against the echo.
    pub(super) load_busy_ns: Vec<f64>,
    /// Processor time that the echo spent on a command, in nanoseconds, one for each round.
    pub(super) echo_busy_ns: Vec<f64>,
    /// Processor time that the drive spent on a command; nothing where its process is not known.
    pub(super) drive_busy_ns: Vec<f64>,
}

/// What a command costs on each side.
pub(super) fn busy_table(figures: &[SocketFigure]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["", "load", "bare echo", "drive"]);
    for SocketFigure { rates, load_busy_ns, echo_busy_ns, drive_busy_ns } in figures {
        let median = |ns: &[f64]| format!("{:.2}", Spread::of(ns.to_vec()).median / 1000.0);
        table.add_row([&rates.what, &median(load_busy_ns), &median(echo_busy_ns), &median(drive_busy_ns)]);
    }
    figure::align(&mut table);
    table
}

/// Both media, or the one drive that is there already.
pub(super) fn measure(arguments: &DriveArguments) -> Result<Vec<SocketFigure>> {
    processor::pin()?;
    if let Some(socket) = &arguments.socket {
        return Bench::connect(arguments, socket, None)?.figures("drive", 0.0);
    }
    let size = MEDIUM_BYTES.to_string();
    let ram = Drive::serve("bench-ram", &["--ram", &size])?;
    let mut figures = Bench::connect(arguments, ram.socket(), Some(ram.pid()))?.figures("RAM", RAM_BAR)?;
    drop(ram);

    let place = std::env::current_exe().context("find this program")?;
    let place = place.parent().context("this program is nowhere")?;
    let place = tempfile::tempdir_in(place).context("make a directory for the image")?;
    let image = place.path().join("image");
    File::create(&image).and_then(|file| file.set_len(MEDIUM_BYTES)).context("make an image")?;
    let file = Drive::serve("bench-file", &[&*image.to_string_lossy()])?;
    figures.extend(Bench::connect(arguments, file.socket(), Some(file.pid()))?.figures("file", FILE_BAR)?);
    Ok(figures)
}

/// A drive that is ready to be measured.
struct Bench<'a> {
    arguments: &'a DriveArguments,
    host: Host,
    /// The process of the drive, if it is known.
    pid: Option<u32>,
    /// Blocks of the drive, in [`BLOCK_BYTES`].
    blocks: u32,
    reads: Load,
    writes: Load,
}

impl<'a> Bench<'a> {
    /// Stamps all blocks of a drive.
    fn connect(arguments: &'a DriveArguments, socket: &Path, pid: Option<u32>) -> Result<Self> {
        let mut host = Host::connect(socket)?;
        let depth = arguments.depth;
        ensure!(depth <= host.streams, "depth {depth} on {} streams", host.streams);
        let blocks = u32::try_from(host.capacity_bytes / BLOCK_BYTES as u64).unwrap_or(u32::MAX);
        let reads = Load::new(&host, Direction::In, depth)?;
        let mut writes = Load::new(&host, Direction::Out, depth)?;
        writes.run(&mut host.link, &mut Sweep::new(blocks)).context("stamp all blocks")?;
        Ok(Self { arguments, host, pid, blocks, reads, writes })
    }

    /// Reads and writes. All blocks are compared after each.
    fn figures(mut self, medium: &str, bar: f64) -> Result<Vec<SocketFigure>> {
        let mut figures = Vec::new();
        for (direction, verb) in [(Direction::In, "read"), (Direction::Out, "write")] {
            figures.push(self.figure(direction, Figure::new(format!("{medium}, 4K random {verb}"), bar))?);
            let mut sweep = Sweep::new(self.blocks);
            self.reads.run(&mut self.host.link, &mut sweep).context("compare all blocks")?;
        }
        Ok(figures)
    }

    fn figure(&mut self, direction: Direction, rates: Figure) -> Result<SocketFigure> {
        /// Fills caches and branch predictors, and does not count.
        const WARM_UP: Duration = Duration::from_millis(100);
        let load = match direction {
            Direction::In => &mut self.reads,
            Direction::Out => &mut self.writes,
        };
        let mut echo = Echo::start(load, self.host.link.capabilities)?;
        let mut figure =
            SocketFigure { rates, load_busy_ns: vec![], echo_busy_ns: vec![], drive_busy_ns: vec![] };
        for round in 0..=u64::from(self.arguments.rounds) {
            let length = if round == 0 { WARM_UP } else { self.arguments.seconds };
            let mut sample =
                |link: &mut Link, pid| sample(load, link, pid, &mut Random::new(self.blocks, length, round));
            let (echoed, driven);
            if round % 2 == 0 {
                echoed = sample(&mut echo.link, Some(echo.pid))?;
                driven = sample(&mut self.host.link, self.pid)?;
            } else {
                driven = sample(&mut self.host.link, self.pid)?;
                echoed = sample(&mut echo.link, Some(echo.pid))?;
            }
            if round > 0 {
                figure.rates.push(echoed.rate, driven.rate);
                figure.load_busy_ns.push(echoed.load_busy_ns);
                figure.echo_busy_ns.extend(echoed.busy_ns);
                figure.drive_busy_ns.extend(driven.busy_ns);
            }
        }
        Ok(figure)
    }
}

/// One measurement of one side.
struct Sample {
    /// Commands per second.
    rate: f64,
    /// Processor time of the load for each command, in nanoseconds.
    load_busy_ns: f64,
    /// Processor time of the answering process for each command, in nanoseconds.
    busy_ns: Option<f64>,
}

fn sample(load: &mut Load, link: &mut Link, pid: Option<u32>, course: &mut Random) -> Result<Sample> {
    let load_pid = std::process::id();
    let (load_before, before) = (busy_time(load_pid)?, pid.map(busy_time).transpose()?);
    let (commands, took) = load.run(link, course)?;
    let (load_after, after) = (busy_time(load_pid)?, pid.map(busy_time).transpose()?);
    let each_ns = |before, after: Duration| after.saturating_sub(before).as_nanos() as f64 / commands as f64;
    Ok(Sample {
        rate: commands as f64 / took.as_secs_f64(),
        load_busy_ns: each_ns(load_before, load_after),
        busy_ns: before.zip(after).map(|(before, after)| each_ns(before, after)),
    })
}
