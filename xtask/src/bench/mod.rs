//! `cargo xtask bench drive`: is the drive as fast as it has to be?
//!
//! Three questions, each with a bar: how much of a bare socket echo the drive reaches with 4 KiB commands over a
//! unix socket, everybody on one processor ([`socket`]); how long an information unit takes in the codec
//! ([`codec`]). Only ratios are judged, and what they are taken from is measured in turns with the drive in the
//! same run. Before and after each load every block is read and compared, so that no figure is of a broken drive.
//!
//! Everything is measured in release mode: a debug build of this program builds that and hands over to it.

mod codec;
mod echo;
mod figure;
mod host;
mod link;
mod load;
mod processor;
mod socket;

use anyhow::{Context, Result, ensure};
use codec::CodecTime;
use figure::{Figure, Spread};
use serde::Serialize;
use socket::SocketFigure;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// What to measure.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Bench {
    /// Measure `uaskit serve`, and fail if it is slower than it has to be.
    Drive(DriveArguments),
    /// The echo that a drive is held against; the socket is standard input.
    #[command(hide = true)]
    Echo(echo::EchoArguments),
}

/// How to measure the drive.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DriveArguments {
    /// Length of each measurement; a fraction is fine.
    #[arg(long, default_value = "1", value_parser = seconds)]
    seconds: Duration,
    /// How often the drive and what it is held against are measured, in turns.
    #[arg(long, default_value_t = 7)]
    rounds: u32,
    /// Commands in flight.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=255))]
    depth: u16,
    /// Print everything as JSON.
    #[arg(long)]
    json: bool,
    /// Drive the server that listens there, instead of one started for this; no bar then.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Print how to profile the server under this load, and do nothing else.
    #[arg(long)]
    profile: bool,
}

/// Everything that was measured.
#[derive(Debug, Serialize)]
struct Report {
    socket: Vec<SocketFigure>,
    codec: Vec<CodecTime>,
}

/// Measures; whether every bar was reached.
pub(crate) fn run(bench: Bench) -> Result<bool> {
    match bench {
        Bench::Echo(arguments) => echo::run(arguments).map(|()| true),
        Bench::Drive(DriveArguments { profile: true, .. }) => {
            print!("{PROFILE}");
            Ok(true)
        }
        Bench::Drive(_) if cfg!(debug_assertions) => hand_over(),
        Bench::Drive(arguments) => measure(&arguments),
    }
}

fn measure(arguments: &DriveArguments) -> Result<bool> {
    let codec = codec::measure()?.to_vec();
    let socket = socket::measure(arguments)?;
    let passes = codec.iter().all(CodecTime::passes) && socket.iter().all(|figure| figure.rates.passes());
    let report = Report { socket, codec };
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print(&report, arguments);
    }
    Ok(passes)
}

fn print(report: &Report, arguments: &DriveArguments) {
    let DriveArguments { depth, rounds, seconds, .. } = arguments;
    println!(
        "Commands per second at depth {depth}, medians of {rounds} rounds of {seconds:?}, one processor for all"
    );
    println!("{}", Figure::heading("bare echo", "drive"));
    for SocketFigure { rates, .. } in &report.socket {
        println!("{rates}");
    }
    println!("\nMicroseconds of processor time that echo and drive spend on a command");
    for SocketFigure { rates, echo_busy_ns, drive_busy_ns } in &report.socket {
        let median = |ns: &[f64]| Spread::of(ns.to_vec()).median / 1000.0;
        println!("{:36} {:12.2} {:12.2}", rates.what, median(echo_busy_ns), median(drive_busy_ns));
    }
    println!("\nNanoseconds per information unit, at most {:.0} for both ways", CodecTime::BAR_NS);
    for time in &report.codec {
        let CodecTime { iu, decode_ns, encode_ns } = time;
        let (both_ns, verdict) = (time.both_ns(), if time.passes() { "" } else { "   TOO SLOW" });
        println!("{iu:8} decode {decode_ns:5.1}   encode {encode_ns:5.1}   both {both_ns:5.1}{verdict}");
    }
}

/// Builds this program and the server in release mode, and lets that do the work.
fn hand_over() -> Result<bool> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--release", "--package", "uaskit-xtask", "--package", "uaskit"]);
    ensure!(build.status().context("start cargo")?.success(), "the release build failed");
    let here = std::env::current_exe().context("find this program")?;
    let target = here.ancestors().nth(2).context("this program is not in a target directory")?;
    let release = target.join("release");
    let mut measured = Command::new(release.join("uaskit-xtask"));
    measured.args(std::env::args_os().skip(1)).env("UASKIT_BIN", release.join("uaskit"));
    Ok(measured.status().context("start the release build")?.success())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number")?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// Printed by `--profile`.
const PROFILE: &str = "\
In one terminal, the server under a profiler; symbols need the release profile of this workspace:

  cargo build --release --package uaskit
  perf record -F 9973 --call-graph dwarf,4096 -o target/drive.perf \\
      target/release/uaskit serve --ram 256M --usbredir unix:target/bench.sock
or, where the processor counts nothing for us, exact but fifty times slower:
  valgrind --tool=callgrind --callgrind-out-file=target/drive.callgrind \\
      target/release/uaskit serve --ram 256M --usbredir unix:target/bench.sock

In another, the load; then Ctrl-C in the first:

  cargo xtask bench drive --socket target/bench.sock --rounds 1 --seconds 5

Then one of:

  perf report -i target/drive.perf --no-children
  callgrind_annotate --auto=yes target/drive.callgrind
";
