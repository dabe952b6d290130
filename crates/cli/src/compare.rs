//! `uaskit compare`: BOT and UAS side by side in a world of packets.
//!
//! So far only `--raw`: link and protocols on a plain drive, without the costs of a host, a controller or a bridge. The
//! figures are in virtual time, and the same on every machine.

use crate::failure::Failure;
use crate::quantity;
use clap::{Args, ValueEnum};
use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Value, json};
use sim::link::superspeed::Rate;
use sim::raw::{self, Figures, Load, RawError};
use units::{ByteCount, Duration};

/// Compare BOT and UAS in a simulated world, packet by packet.
///
/// So far with --raw alone: both transports across a SuperSpeed link to a plain drive, one that takes the same time for each
/// command. Host and controller take no time, so the figures are what link and protocol allow at most. They come out
/// of packets, in virtual time, and are the same on every machine.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uaskit compare --raw
  uaskit compare --raw --block 64K --depth 1,4 --link gen2
  uaskit compare --raw --write --latency 20 --json

Exit codes: 0 ok, 1 failed, 2 usage.")]
pub(crate) struct CompareArguments {
    /// The link and the protocols alone.
    #[arg(long, required = true)]
    raw: bool,
    /// Commands under way, one or several numbers up to 30, which is what 32 streams carry. BOT takes one at a time whatever
    /// is asked.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,2,4,8,16,30",
          value_parser = clap::value_parser!(u16).range(1..=30))]
    depth: Vec<u16>,
    /// Bytes of a command, a multiple of 512.
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = quantity::size)]
    block: ByteCount,
    /// Write instead of reading.
    #[arg(long)]
    write: bool,
    /// The link.
    #[arg(long, value_enum, default_value_t = LinkArgument::Gen1)]
    link: LinkArgument,
    /// Microseconds that the drive takes for a command.
    #[arg(long, value_name = "MICROSECONDS", default_value = "60", value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    latency: u32,
    /// Commands that the drive serves at once.
    #[arg(long, value_name = "N", default_value = "32", value_parser = clap::value_parser!(u16).range(1..))]
    at_once: u16,
    /// Commands of each run.
    #[arg(long, value_name = "N", default_value = "2000", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    commands: u32,
    /// Where the random places come from.
    #[arg(long, default_value = "1")]
    seed: u64,
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
}

/// Both transports at one depth.
struct Row {
    depth: u16,
    bot: Figures,
    uas: Figures,
}

pub(crate) fn run(arguments: &CompareArguments) -> Result<(), Failure> {
    let row = |&depth: &u16| {
        let load = arguments.load(depth)?;
        let measured = raw::bot(&load).and_then(|bot| Ok(Row { depth, bot, uas: raw::uas(&load)? }));
        measured.map_err(|error| match error {
            RawError::Load => {
                Failure::usage(format!("no drive takes a command of {}", arguments.block)).because(error)
            }
            _ => Failure::new("the simulated world came to nothing").because(error),
        })
    };
    let rows = arguments.depth.iter().map(row).collect::<Result<Vec<_>, _>>()?;
    if arguments.json {
        println!("{:#}", record(arguments, &rows));
        return Ok(());
    }
    println!("{}\n{}", arguments.title(), table(&rows));
    Ok(())
}

impl CompareArguments {
    fn load(&self, depth: u16) -> Result<Load, Failure> {
        let too_large = || Failure::usage(format!("a command of {} is too large", self.block));
        Ok(Load {
            rate: self.link.rate(),
            writes: self.write,
            bytes: u32::try_from(self.block.0).map_err(|_| too_large())?,
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
        format!(
            "Random {direction} of {}, {link}, a drive that takes {latency} us and serves {at_once} at once; no host, no bridge",
            self.block
        )
    }
}

impl LinkArgument {
    const fn rate(self) -> Rate {
        match self {
            Self::Gen1 => Rate::Gen1,
            Self::Gen2 => Rate::Gen2,
            Self::Gen2x2 => Rate::Gen2x2,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Gen1 => "5 Gb/s",
            Self::Gen2 => "10 Gb/s",
            Self::Gen2x2 => "20 Gb/s",
        }
    }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(["depth", "BOT IOPS", "MB/s", "mean us", "UAS IOPS", "MB/s", "mean us", "UAS : BOT"]);
    for Row { depth, bot, uas } in rows {
        let of = |figures: &Figures| {
            let mean = figures.mean.as_ps() as f64 / 1e6;
            [
                format!("{:.0}", figures.iops()),
                format!("{:.1}", figures.megabytes_per_second()),
                format!("{mean:.1}"),
            ]
        };
        let ratio = format!("{:.2}", uas.iops() / bot.iops());
        let cells = [vec![depth.to_string()], of(bot).to_vec(), of(uas).to_vec(), vec![ratio]].concat();
        table.add_row(cells);
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn record(arguments: &CompareArguments, rows: &[Row]) -> Value {
    let of = |figures: &Figures| {
        json!({
            "iops": figures.iops(),
            "megabytes_per_second": figures.megabytes_per_second(),
            "mean_ns": figures.mean.as_ps() as f64 / 1e3,
            "commands": figures.commands,
            "elapsed_ns": figures.elapsed.as_ps() as f64 / 1e3,
            "commands_under_way": figures.depth,
            "events": figures.events,
            "digest": format!("{:016x}", figures.digest),
        })
    };
    let rows: Vec<_> = rows
        .iter()
        .map(|row| json!({ "depth": row.depth, "bot": of(&row.bot), "uas": of(&row.uas) }))
        .collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "setup": {
            "link": arguments.link.name(),
            "bytes": arguments.block.0,
            "writes": arguments.write,
            "latency_us": arguments.latency,
            "at_once": arguments.at_once,
            "seed": arguments.seed,
        },
        "rows": rows,
    })
}
