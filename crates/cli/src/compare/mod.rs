//! `uaskit compare`: BOT and UAS side by side in a world of packets.
//!
//! So far only `--raw`: link and protocols on a plain drive, without the costs of a host, a controller or a bridge. The
//! figures are in virtual time, and the same on every machine. Here simulation and captures meet, which do not know each other
//! ([`capture`]).

mod capture;
mod parts;
mod power;
mod report;

use crate::failure::Failure;
use crate::quantity;
use capture::{Capture, CaptureKind, RUNS_MAX};
use clap::{Args, ValueEnum};
use rayon::prelude::*;
use sim::engine::{Entry, Trace};
use sim::link::superspeed::Rate;
use sim::link::{Connection, usb2};
use sim::raw::{self, Drives, Load, Protocol, RawError, Run, Watch};
use sim::world::driven::{Host, PowerOnError};
use sim::xhci::Part;
use std::path::PathBuf;
use units::{ByteCount, Duration};

/// Compare BOT and UAS in a simulated world, packet by packet.
///
/// So far with --raw alone: both transports over a host controller and a SuperSpeed link to a plain drive, one that takes the
/// same time for each command. The controller runs the TRBs that its driver wrote, from power-on; driver and drivers
/// above it take no time. With --controller none there is neither, and the figures are what link and protocol allow at
/// most. So it is at high and full speed, where there are no streams, and UAS goes in turns. The figures come out of packets,
/// in virtual time, and are the same on every machine.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uaskit compare --raw
  uaskit compare --raw --block 64K --depth 1,4 --link gen2
  uaskit compare --raw --speed high --block 64K
  uaskit compare --raw --write --latency 20 --json
  uaskit compare --raw --controller card
  uaskit compare --raw --controller none
  uaskit compare --raw --drives 2 --hubs 1 --block 64K --depth 8
  uaskit compare --raw --depth 1,30 --explain
  uaskit compare --raw --depth 1 --power-states
  uaskit compare --raw --depth 4 --commands 20 --trace 3
  uaskit compare --raw --depth 4 --commands 100 --capture both.pcapng
  uaskit compare --list-parts

Drives behind hubs share the link of one root port; without hubs each has a root port of its own, of which the controllers have
two. Figures are of all drives together, and then of each; --explain and captures are about the first one.

A capture has all runs of the comparison, one after the other, for tshark and Wireshark: BOT on bus 1, UAS on bus 2, and for each
run a device of its own, whose address is the number of the run, with the requests that configure it. The stream of each record is
its comment. Runs begin with TEST UNIT READY and as many commands as are under way, which are not measured, and end with that
many under way.

Exit codes: 0 ok, 1 failed, 2 usage.")]
pub(crate) struct CompareArguments {
    /// The link and the protocols alone.
    #[arg(long, required_unless_present = "list_parts")]
    raw: bool,
    /// Say which parts are in the catalogue, and with --json all of their numbers. Comparisons do not use them yet.
    #[arg(long, conflicts_with = "raw")]
    list_parts: bool,
    /// A folder with further parts, as `ssd/NAME.toml` and `hdd/NAME.toml`; they take the place of others of the same name.
    #[arg(long, value_name = "DIR", requires = "list_parts")]
    parts: Option<PathBuf>,
    /// Commands under way, one or several numbers up to 62: 32 streams carry 30, and where more are asked for the drive has 64.
    /// BOT takes one at a time whatever is asked.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,2,4,8,16,30",
          value_parser = clap::value_parser!(u16).range(1..=i64::from(raw::DEPTH_MAX)))]
    depth: Vec<u16>,
    /// Bytes of a command, a multiple of 512.
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = quantity::size)]
    block: ByteCount,
    /// Write instead of reading.
    #[arg(long)]
    write: bool,
    /// The link: one of SuperSpeed, or the bus of USB 2.0.
    #[arg(long, visible_alias = "speed", value_enum, default_value_t = LinkArgument::Gen1)]
    link: LinkArgument,
    /// The host controller; that of a chipset unless told. At high and full speed there is none so far.
    #[arg(long, value_enum)]
    controller: Option<ControllerArgument>,
    /// Drives, each with as many commands under way.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u8).range(1..=15))]
    drives: u8,
    /// Hubs in a row between a root port and the drives, which are all at the last one.
    #[arg(long, value_name = "N", default_value = "0", value_parser = clap::value_parser!(u8).range(0..=5))]
    hubs: u8,
    /// Microseconds that the drive takes for a command.
    #[arg(long, value_name = "MICROSECONDS", default_value = "60", value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    latency: u32,
    /// Commands that the drive serves at once.
    #[arg(long, value_name = "N", default_value = "32", value_parser = clap::value_parser!(u16).range(1..))]
    at_once: u16,
    /// Commands of each run, over all drives.
    #[arg(long, value_name = "N", default_value = "2000", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    commands: u32,
    /// Where the random places come from.
    #[arg(long, default_value = "1")]
    seed: u64,
    /// Say where the time of a command goes: on the link, in the drive, waiting. The parts add up to its latency.
    #[arg(long)]
    explain: bool,
    /// Print what happens, packet by packet, until N commands of each run have ended.
    #[arg(long, value_name = "N", conflicts_with = "json", value_parser = clap::value_parser!(u32).range(1..))]
    trace: Option<u32>,
    /// Say as well what a link that sleeps between commands costs them and saves: U1 and U2 as Linux has them, reads of 4 KiB
    /// one at a time without a controller, at pauses of several lengths.
    #[arg(long)]
    power_states: bool,
    /// Write a pcapng file of all runs. An older file of that name is replaced.
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// What the capture tells.
    #[arg(long, value_enum, requires = "capture", default_value_t = CaptureKind::Transfers)]
    capture_as: CaptureKind,
    /// Bytes of each transfer that the capture keeps; all of them unless told. Packets are never cut.
    #[arg(long, value_name = "SIZE", requires = "capture", value_parser = quantity::size)]
    snap: Option<ByteCount>,
    /// Worlds that run at once; as many as there are processors unless told. What comes out does not depend on it.
    #[arg(long, value_name = "N", conflicts_with_all = ["trace", "capture"], value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// A link.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum LinkArgument {
    /// 5 Gb/s.
    Gen1,
    /// 10 Gb/s.
    Gen2,
    /// 20 Gb/s on two lanes.
    Gen2x2,
    /// 480 Mb/s, the bus of USB 2.0.
    High,
    /// 12 Mb/s.
    Full,
}

/// A host controller.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ControllerArgument {
    /// Within a chipset: four lanes to memory, streams.
    Chipset,
    /// A card in a slot of one lane: 410 MB/s at most, and every access is a long way.
    Card,
    /// None, and no driver: what link and protocols allow at most.
    None,
}

/// Both transports at one depth.
struct Row {
    depth: u16,
    bot: Run,
    uas: Run,
}

/// Prints notes as they come.
struct Printed;

pub(crate) fn run(arguments: &CompareArguments) -> Result<(), Failure> {
    if arguments.list_parts {
        return parts::list(arguments.parts.as_deref(), arguments.json);
    }
    let mut capture = arguments.start_capture()?;
    let rows = if arguments.trace.is_some() || capture.is_some() {
        arguments.measure_in_turn(capture.as_mut())?
    } else {
        arguments.measure_at_once()?
    };
    let records = capture.map(Capture::finish).transpose()?;
    let pauses = arguments.think()?;
    if arguments.json {
        let mut record = report::record(arguments, &rows, records);
        if let Some(pauses) = &pauses {
            record["power_states"] = power::record(pauses);
        }
        println!("{record:#}");
        return Ok(());
    }
    println!("{}\n{}", arguments.title(), report::table(&rows));
    if arguments.drives > 1 {
        println!("Each drive\n{}", report::each_drive(&rows));
    }
    if arguments.explain {
        println!("Where a command's time goes on average; the parts add up\n{}", report::explained(&rows));
    }
    if let Some(pauses) = &pauses {
        println!(
            "Reads of 4 KiB one at a time, on a link that never sleeps and on one that does\n{}",
            power::table(pauses)
        );
    }
    if let (Some(file), Some(records)) = (&arguments.capture, records) {
        println!("{}: {records} records", file.display());
    }
    Ok(())
}

impl Trace for Printed {
    fn record(&mut self, entry: Entry<'_>) {
        println!("{entry}");
    }
}

impl CompareArguments {
    /// The host controller. Those that there are have ports of SuperSpeed.
    fn controller(&self) -> ControllerArgument {
        self.controller.unwrap_or(match self.link {
            LinkArgument::High | LinkArgument::Full => ControllerArgument::None,
            _ => ControllerArgument::Chipset,
        })
    }

    /// What pauses cost on a link that sleeps, if that is asked for.
    fn think(&self) -> Result<Option<Vec<power::Pause>>, Failure> {
        let Connection::SuperSpeed(rate) = self.link.connection() else {
            return match self.power_states {
                true => Err(Failure::usage(format!(
                    "--power-states are of SuperSpeed, not of {}",
                    self.link.name()
                ))),
                false => Ok(None),
            };
        };
        let latency = Duration::from_us(self.latency.into());
        self.power_states.then(|| power::measure(rate, latency)).transpose()
    }

    fn start_capture(&self) -> Result<Option<Capture>, Failure> {
        let Some(path) = &self.capture else { return Ok(None) };
        if 2 * self.depth.len() > RUNS_MAX {
            let most = RUNS_MAX / 2;
            return Err(Failure::usage(format!(
                "a capture has room for {most} depths, {} were given",
                self.depth.len()
            )));
        }
        let snap = self.snap.map_or(u32::MAX, |snap| u32::try_from(snap.0).unwrap_or(u32::MAX));
        Capture::create(path, self.capture_as, snap).map(Some)
    }

    /// One world after the other, since somebody looks on.
    fn measure_in_turn(&self, mut capture: Option<&mut Capture>) -> Result<Vec<Row>, Failure> {
        let mut rows = Vec::new();
        for &depth in &self.depth {
            let bot = self.measure(depth, Protocol::Bot, capture.as_deref_mut())?;
            let uas = self.measure(depth, Protocol::Uas, capture.as_deref_mut())?;
            rows.push(Row { depth, bot, uas });
        }
        Ok(rows)
    }

    /// Each world on a thread of its own: worlds share nothing, so that it does not matter how many there are.
    fn measure_at_once(&self) -> Result<Vec<Row>, Failure> {
        let threads = self.threads.map_or(0, usize::from);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|error| Failure::new("no threads for the worlds").because(error))?;
        let row = |&depth: &u16| {
            let of = |protocol| self.measure(depth, protocol, None);
            let (bot, uas) = rayon::join(|| of(Protocol::Bot), || of(Protocol::Uas));
            Ok(Row { depth, bot: bot?, uas: uas? })
        };
        pool.install(|| self.depth.par_iter().map(row).collect())
    }

    fn measure(&self, depth: u16, protocol: Protocol, capture: Option<&mut Capture>) -> Result<Run, Failure> {
        let observer = capture.map(|capture| capture.next_run(protocol, depth)).transpose()?;
        let trace = self.trace.map(|commands| (Box::new(Printed) as Box<dyn Trace>, commands));
        if trace.is_some() {
            println!("{protocol} at depth {depth}");
        }
        let watch = Watch { observer, trace, explain: self.explain };
        raw::measure(&self.load(depth)?, protocol, watch).map_err(|error| match error {
            RawError::Load => {
                Failure::usage(format!("no drive takes a command of {}", self.block)).because(error)
            }
            RawError::OneDrive => Failure::usage("these drives cannot be plugged in").because(error),
            RawError::PowerOn(PowerOnError::Setup(_)) => {
                Failure::usage("these drives cannot be plugged in; --hubs puts them behind one port")
                    .because(error)
            }
            _ => Failure::new("the simulated world came to nothing").because(error),
        })
    }

    fn load(&self, depth: u16) -> Result<Load, Failure> {
        let too_large = || Failure::usage(format!("a command of {} is too large", self.block));
        Ok(Load {
            host: self.controller().host(),
            connection: self.link.connection(),
            writes: self.write,
            bytes: u32::try_from(self.block.0).map_err(|_| too_large())?,
            drives: Drives { count: self.drives, hubs: self.hubs },
            depth,
            commands: self.commands,
            latency: Duration::from_us(self.latency.into()),
            at_once: self.at_once,
            seed: self.seed,
        })
    }

    fn title(&self) -> String {
        let direction = if self.write { "writes" } else { "reads" };
        let (link, latency, at_once) = (self.link.name(), self.latency, self.at_once);
        let drives = match self.drives {
            1 => "a drive that takes".to_owned(),
            count => format!("{count} drives that take"),
        };
        let serves = if self.drives == 1 { "serves" } else { "serve" };
        let hubs = match (self.hubs, self.drives) {
            (0, 1) => String::new(),
            (0, _) => ", a port each".to_owned(),
            (1, _) => ", behind a hub".to_owned(),
            (hubs, _) => format!(", behind {hubs} hubs in a row"),
        };
        format!(
            "Random {direction} of {}, {}, {link}, {drives} {latency} us and {serves} {at_once} at once{hubs}; no bridge",
            self.block,
            self.controller().name(),
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

    const fn name(self) -> &'static str {
        match self {
            Self::Gen1 => "5 Gb/s",
            Self::Gen2 => "10 Gb/s",
            Self::Gen2x2 => "20 Gb/s",
            Self::High => "480 Mb/s",
            Self::Full => "12 Mb/s",
        }
    }
}
