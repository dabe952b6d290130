//! `cargo xtask bench`: is the drive as fast as it has to be, and are the host side ([`initiator`]), the simulated world
//! ([`simulator`]), the reading of captures ([`capture`]) and our controller over vfio-user ([`vfio`])?
//!
//! Of the drive three questions, each with a bar: how long an information unit takes in the codec ([`codec`]); how much of a
//! plain echo the drive reaches over a unix socket, everybody on one processor ([`socket`]); how it compares in a
//! guest with QEMU's own drive ([`guest`], on request). Ratios are judged, and what they are taken from is measured
//! alternately with the drive, in the same run.
//!
//! Everything is measured in release mode: a debug build of this program builds that and hands over to it.

mod arguments;
mod capture;
mod codec;
mod echo;
mod figure;
mod guest;
mod host;
mod initiator;
mod judged;
mod link;
mod load;
mod processor;
mod responder;
mod simulator;
mod socket;
mod vfio;

use anyhow::{Context, Result, ensure};
use arguments::{DriveArguments, DrivePart, HostArguments, VfioArguments};
use codec::CodecTime;
use echo::EchoKind;
use figure::Figure;
use guest::GuestFigures;
use judged::{Judged, conclude};
use serde::Serialize;
use socket::SocketFigure;
use std::process::Command;

/// The benchmark to run.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Bench {
    /// Measure `uaskit serve`, and fail if it is slower than it has to be.
    Drive(DriveArguments),
    /// Measure our initiator and drivers, and `uaskit list`, and fail if they are slower than they have to be.
    Host(HostArguments),
    /// Measure our controller over vfio-user in a guest, and fail if it is slower than it has to be.
    Vfio(VfioArguments),
    /// Measure the simulated world, and fail if it is slower, or takes more memory, than it has to.
    Sim(simulator::SimulatorArguments),
    /// Measure how fast captures are decoded, and fail if it is slower than it has to be.
    Decode(capture::DecodeArguments),
    /// The echo that a drive is held against; the socket is standard input.
    #[command(hide = true)]
    Echo(echo::EchoArguments),
}

/// Everything that was measured.
#[derive(Debug, Serialize)]
struct Report {
    codec: Option<[CodecTime; 2]>,
    socket: Option<Vec<SocketFigure>>,
    guest: Option<GuestFigures>,
}

/// Measures; whether every bar was reached.
pub(crate) fn run(bench: Bench) -> Result<bool> {
    match bench {
        Bench::Echo(arguments) => echo::run(arguments).map(|()| true),
        Bench::Drive(DriveArguments { profile: true, .. }) => {
            print!("{PROFILE}");
            Ok(true)
        }
        Bench::Host(arguments) if arguments.profiled => initiator::measure_profiled(&arguments),
        Bench::Drive(_) | Bench::Host(_) | Bench::Sim(_) | Bench::Decode(_) | Bench::Vfio(_)
            if cfg!(debug_assertions) =>
        {
            hand_over()
        }
        Bench::Drive(arguments) => measure_drive(&arguments),
        Bench::Host(arguments) => initiator::measure(&arguments),
        Bench::Vfio(arguments) => vfio::measure(&arguments),
        Bench::Sim(arguments) => simulator::measure(&arguments),
        Bench::Decode(arguments) => capture::measure(&arguments),
    }
}

fn measure_drive(arguments: &DriveArguments) -> Result<bool> {
    let wanted = |part, usually| arguments.only.map_or(usually, |only| only == part);
    let report = Report {
        codec: wanted(DrivePart::Codec, true).then(codec::measure).transpose()?,
        // Before the socket, which keeps this program on one processor from then on.
        guest: wanted(DrivePart::Guest, arguments.guest).then(|| guest::measure(arguments)).transpose()?,
        socket: wanted(DrivePart::Socket, true).then(|| socket::measure(arguments)).transpose()?,
    };
    conclude(&report, arguments.json, || report.print(arguments))
}

impl Judged for Report {
    fn passes(&self) -> bool {
        let Self { codec, socket, guest } = self;
        codec.iter().flatten().all(CodecTime::passes)
            && socket.iter().flatten().all(|figure| figure.echoes.iter().all(Figure::passes))
            && guest.iter().flat_map(|guest| guest.qemu.iter().chain(&guest.nothing)).all(Figure::passes)
    }
}

impl Report {
    fn print(&self, arguments: &DriveArguments) {
        let DriveArguments { depth, rounds, seconds, .. } = arguments;
        if let Some(codec) = &self.codec {
            println!(
                "Nanoseconds for an information unit, at most {:.0} for both ways\n{}\n",
                CodecTime::BAR_NS,
                codec::table(codec)
            );
        }
        if let Some(socket) = &self.socket {
            println!(
                "Commands per second over a socket, depth {depth}, all on one processor, {rounds} rounds of {seconds:?}"
            );
            for (nth, kind) in EchoKind::ALL.into_iter().enumerate() {
                let figures = socket.iter().map(|figure| &figure.echoes[nth]);
                println!("{}\n", figure::table([kind.name(), "drive"], figures));
            }
            println!("Microseconds of processor time for a command\n{}\n", socket::busy_table(socket));
        }
        if let Some(GuestFigures { qemu, nothing }) = &self.guest {
            let (turns, turn) = guest::turns(arguments);
            println!(
                "Commands per second in a guest, {turns} turns of {turn:?} each\n{}\n{}",
                figure::table(["QEMU usb-uas", "drive"], qemu),
                figure::table(["do nothing", "drive"], nothing)
            );
        }
    }
}

/// Builds this program and the server with the profile `dist`, and lets that do the work.
fn hand_over() -> Result<bool> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--profile", "dist", "--package", "uaskit-xtask", "--package", "uaskit"]);
    ensure!(build.status().context("start cargo")?.success(), "the optimised build failed");
    let here = std::env::current_exe().context("find this program")?;
    let target = here.ancestors().nth(2).context("this program is not in a target directory")?;
    let built = target.join("dist");
    let mut measured = Command::new(built.join("uaskit-xtask"));
    measured.args(std::env::args_os().skip(1));
    if std::env::var_os("UASKIT_BIN").is_none() {
        measured.env("UASKIT_BIN", built.join("uaskit"));
    }
    Ok(measured.status().context("start the optimised build")?.success())
}

/// Printed by `--profile`.
const PROFILE: &str = "\
In one terminal, the server under a profiler; symbols need the profile `dist` of this workspace:

  cargo build --profile dist --package uaskit
  perf record -F 9973 --call-graph dwarf,4096 -o target/drive.perf \\
      target/dist/uaskit serve --ram 256M --usbredir unix:target/bench.sock
or, where the processor counts nothing for us, exact but fifty times slower:
  valgrind --tool=callgrind --callgrind-out-file=target/drive.callgrind \\
      target/dist/uaskit serve --ram 256M --usbredir unix:target/bench.sock

In another, the load; then Ctrl-C in the first:

  cargo xtask bench drive --socket target/bench.sock --rounds 1 --seconds 5

Then one of:

  perf report -i target/drive.perf --no-children
  callgrind_annotate --auto=yes target/drive.callgrind
";
