//! The drive against an echo of the same message sizes, over a unix socket, everybody on one processor.
//!
//! One processor, so that the work of all three counts: load, kernel, drive. The load is the same code against all.
//! Media are memory, and a file that stays in the page cache. A round is one measurement of each, in changing order.
//!
//! There are three echoes ([`echo`](super::echo)). What is judged is the drive against the plain one; the ratios to the
//! two that batch are printed, since the drive batches as well.

use super::arguments::DriveArguments;
use super::echo::{Echo, EchoKind};
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

/// The minimum ratio of the drive's rate to the echo's, with a medium in memory and in a file.
const RAM_BAR: f64 = 0.7;
const FILE_BAR: f64 = 0.5;

/// Bytes of the media.
const MEDIUM_BYTES: u64 = 256 << 20;

/// Reads or writes of one medium. Vectors have an entry for each round.
#[derive(Debug, Serialize)]
pub(super) struct SocketFigure {
    /// Commands per second of the drive and of each echo, in the order of [`EchoKind::ALL`]. The first is judged.
    pub(super) echoes: [Figure; 3],
    /// Processor time that each spends on a command, in nanoseconds: the load with the plain echo, the echoes, the drive.
    pub(super) busy_ns: [Vec<f64>; 5],
}

/// Builds the table of the processor time for a command on each side.
pub(super) fn busy_table(figures: &[SocketFigure]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    let [plain, batching, with_memory] = EchoKind::ALL.map(EchoKind::name);
    table.set_header(["", "load", plain, batching, with_memory, "drive"]);
    for SocketFigure { echoes: [plain, ..], busy_ns } in figures {
        let medians = busy_ns.each_ref().map(|ns| format!("{:.2}", Spread::of(ns.clone()).median / 1000.0));
        table.add_row([std::slice::from_ref(&plain.what), &medians[..]].concat());
    }
    figure::align(&mut table);
    table
}

/// Both media, or the one drive that is there already.
pub(super) fn measure(arguments: &DriveArguments) -> Result<Vec<SocketFigure>> {
    processor::pin()?;
    if let Some(socket) = &arguments.socket {
        return Bench::connect(arguments, socket)?.figures("drive", 0.0);
    }
    let size = MEDIUM_BYTES.to_string();
    let ram = Drive::serve("bench-ram", &["--ram", &size])?;
    let mut figures = Bench::connect(arguments, ram.socket())?.figures("RAM", RAM_BAR)?;
    drop(ram);

    let place = std::env::current_exe().context("find this program")?;
    let place = place.parent().context("this program is nowhere")?;
    let place = tempfile::tempdir_in(place).context("make a directory for the image")?;
    let image = place.path().join("image");
    File::create(&image).and_then(|file| file.set_len(MEDIUM_BYTES)).context("make an image")?;
    let file = Drive::serve("bench-file", &[&*image.to_string_lossy()])?;
    figures.extend(Bench::connect(arguments, file.socket())?.figures("file", FILE_BAR)?);
    Ok(figures)
}

/// A drive that is ready to be measured.
struct Bench<'a> {
    arguments: &'a DriveArguments,
    host: Host,
    /// The process of the drive.
    pid: u32,
    /// Blocks of the drive, in [`BLOCK_BYTES`].
    blocks: u32,
    reads: Load,
    writes: Load,
}

impl<'a> Bench<'a> {
    /// Stamps all blocks of a drive.
    fn connect(arguments: &'a DriveArguments, socket: &Path) -> Result<Self> {
        let mut host = Host::connect(socket)?;
        let depth = arguments.depth;
        ensure!(depth <= host.streams, "depth {depth} on {} streams", host.streams);
        let pid = host.link.peer_pid().context("the process of the drive is not known")?;
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
            figures.push(self.figure(direction, format!("{medium}, 4K random {verb}"), bar)?);
            let mut sweep = Sweep::new(self.blocks);
            self.reads.run(&mut self.host.link, &mut sweep).context("compare all blocks")?;
        }
        Ok(figures)
    }

    fn figure(&mut self, direction: Direction, what: String, bar: f64) -> Result<SocketFigure> {
        /// Fills caches and branch predictors, and does not count.
        const WARM_UP: Duration = Duration::from_millis(100);
        let load = match direction {
            Direction::In => &mut self.reads,
            Direction::Out => &mut self.writes,
        };
        let capabilities = self.host.link.capabilities;
        let start = |kind| Echo::start(kind, load, capabilities, self.blocks);
        let [plain, batching, with_memory] = EchoKind::ALL.map(start);
        let (mut plain, mut batching, mut with_memory) = (plain?, batching?, with_memory?);
        let bars = [bar, 0.0, 0.0];
        let mut figure = SocketFigure {
            echoes: bars.map(|bar| Figure::new(what.clone(), bar)),
            busy_ns: Default::default(),
        };
        let mut sides = [
            (&mut plain.link, plain.pid),
            (&mut batching.link, batching.pid),
            (&mut with_memory.link, with_memory.pid),
            (&mut self.host.link, self.pid),
        ];
        for round in 0..=u64::from(self.arguments.rounds) {
            let length = if round == 0 { WARM_UP } else { self.arguments.seconds };
            let mut samples = [Sample::default(); 4];
            for turn in 0..samples.len() {
                // Another one goes first in each round.
                let side = (round as usize + turn) % samples.len();
                let (link, pid) = &mut sides[side];
                samples[side] = sample(load, link, *pid, &mut Random::new(self.blocks, length, round))?;
            }
            if round > 0 {
                figure.push(samples);
            }
        }
        Ok(figure)
    }
}

impl SocketFigure {
    /// Adds a round: the echoes, then the drive.
    fn push(&mut self, samples: [Sample; 4]) {
        let [plain, batching, with_memory, drive] = samples;
        for (figure, echo) in self.echoes.iter_mut().zip([plain, batching, with_memory]) {
            figure.push(echo.rate, drive.rate);
        }
        let busy = [plain.load_busy_ns, plain.busy_ns, batching.busy_ns, with_memory.busy_ns, drive.busy_ns];
        self.busy_ns.iter_mut().zip(busy).for_each(|(all, ns)| all.push(ns));
    }
}

/// One measurement of one side.
#[derive(Clone, Copy, Default)]
struct Sample {
    /// Commands per second.
    rate: f64,
    /// Processor time of the load for each command, in nanoseconds.
    load_busy_ns: f64,
    /// Processor time of the answering process for each command, in nanoseconds.
    busy_ns: f64,
}

fn sample(load: &mut Load, link: &mut Link, pid: u32, course: &mut Random) -> Result<Sample> {
    let pids = [std::process::id(), pid];
    let before = pids.map(busy_time);
    let (commands, took) = load.run(link, course)?;
    let after = pids.map(busy_time);
    let mut busy_ns = [0.0; 2];
    for ((before, after), busy_ns) in before.into_iter().zip(after).zip(&mut busy_ns) {
        *busy_ns = after?.saturating_sub(before?).as_nanos() as f64 / commands as f64;
    }
    let [load_busy_ns, busy_ns] = busy_ns;
    Ok(Sample { rate: commands as f64 / took.as_secs_f64(), load_busy_ns, busy_ns })
}
