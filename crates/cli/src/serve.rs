//! `uaskit serve`: a disk image as a USB drive for a virtual machine.
//!
//! The drive runs on its own thread; the main thread prints events and waits for a signal. SIGINT
//! (Ctrl-C), SIGTERM and SIGHUP stop the service and flush; a second SIGINT or SIGTERM exits
//! immediately. Left out: what the drive does.

mod assemble;
mod report;

use crate::args::{ServeArguments, SpeedArgument};
use crate::command_line::word;
use crate::control::{self, Opener};
use crate::failure::Failure;
use study::plural::counted;

use crate::recorder::{self, Capture};
use crate::signals;
use bench::record::CaptureSummary;
use drive::Drive;
use report::Report;
pub(crate) use report::describe as transport_name;
use serde_json::json;
use server::net::{Address, BindError, Config, Event, PrivateSocket, Server, ServerExit};
use server::usbredir::Limits;
use signal_hook::consts::SIGHUP;
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;
use std::{process, thread};

/// How often the live line is drawn.
const DRAW_INTERVAL: Duration = Duration::from_millis(500);
/// The exit code of a process that SIGINT has ended.
const INTERRUPTED: i32 = 130;
/// Payload of the client that may wait for the device before the client is read no further.
const PAYLOAD_BYTES_SOFT: usize = 8 << 20;

/// Input of the main thread.
enum Notice {
    /// From the serving thread.
    Event(Event),
    /// A signal to stop.
    Interrupted,
    /// The serving thread has ended.
    Stopped,
}

/// Sends events of the serving thread to the main thread, and its end when it is dropped.
struct EventSender(Sender<Notice>);

/// Serves until a signal ends it.
pub(crate) fn run(arguments: &ServeArguments) -> Result<(), Failure> {
    let address: Address = arguments.usbredir.parse().map_err(|error| Failure::usage(format!("{error}")))?;
    let control = arguments.control.as_deref().map(bind_control_socket).transpose()?;
    let (mut drive, created) = assemble::drive(arguments)?;
    let capture = begin_capture(arguments, &mut drive)?;
    let mut report = Report::new(arguments.json, arguments.quiet);
    introduce(&report, &drive);
    if let Some((what, fields)) = arguments.capture.announcement() {
        report.emit(&format!("Capturing to {what}"), "capturing", fields);
    }
    let config = Config {
        address,
        allow_remote: arguments.allow_remote,
        version: concat!("uaskit ", env!("CARGO_PKG_VERSION")).into(),
        limits: Limits { payload_bytes_soft: PAYLOAD_BYTES_SOFT, ..Limits::default() },
    };
    let (sender, notices) = mpsc::channel();
    let events = EventSender(sender.clone());
    catch_signals(sender)?;
    let server =
        Server::start(config, drive, move |event| events.send(Notice::Event(event))).map_err(unbound)?;
    created.keep();
    if let Some(control) = &control {
        let listener = control
            .listener()
            .map_err(|error| Failure::new("cannot accept control commands").because(error))?;
        let opener = Opener { options: assemble::options(arguments) };
        control::receive(listener, opener, server.controller());
    }
    print_qemu_arguments(&report, server.address(), arguments.speed);
    run_until_ended(&server, &notices, &mut report);
    let mut ended = server.join();
    ended.drive.stop_observing();
    let captured = capture.map(Capture::finish).transpose();
    print_end(&report, ended)?;
    if let Some(captured) = captured? {
        let line = format!("Captured: {}.", recorder::summary(captured));
        let CaptureSummary { files, records, dropped } = captured;
        let fields = json!({ "files": files, "records": records, "dropped": dropped });
        report.emit(&line, "captured", fields);
    }
    Ok(())
}

/// Starts to capture the host's transfers, if requested.
fn begin_capture(arguments: &ServeArguments, drive: &mut Drive) -> Result<Option<Capture>, Failure> {
    let description = format!("uaskit serve, {}", drive.device().config().speed);
    let Some((capture, recorder)) = arguments.capture.start(description)? else { return Ok(None) };
    drive.observe(Box::new(recorder));
    Ok(Some(capture))
}

/// The socket for control commands. It is removed when this is dropped.
fn bind_control_socket(address: &str) -> Result<PrivateSocket, Failure> {
    PrivateSocket::bind(&control::socket_path(address)?).map_err(unbound)
}

fn unbound(error: BindError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        BindError::NotLoopback(_) => failure.try_this("To allow remote clients, add --allow-remote."),
        _ => failure,
    }
}

impl EventSender {
    fn send(&self, notice: Notice) {
        // It fails only when the main thread has left, which needs no events.
        let _ = self.0.send(notice);
    }
}

impl Drop for EventSender {
    fn drop(&mut self) {
        self.send(Notice::Stopped);
    }
}

/// Turns the first signal into a notice. A second SIGINT or SIGTERM ends the process where it
/// stands. SIGHUP does not count: a terminal that goes away may cause several, and a supervisor may
/// send one with its SIGTERM.
fn catch_signals(sender: Sender<Notice>) -> Result<(), Failure> {
    let mut signals = Signals::new(signals::that_end())
        .map_err(|error| Failure::new("cannot install signal handlers").because(error))?;
    thread::spawn(move || {
        let (mut is_stopping, mut is_requested) = (false, false);
        // Pending signals come by number, not in the order in which they were sent.
        for signal in signals.forever() {
            if signal != SIGHUP && std::mem::replace(&mut is_requested, true) {
                process::exit(INTERRUPTED);
            }
            if !std::mem::replace(&mut is_stopping, true) {
                let _ = sender.send(Notice::Interrupted);
            }
        }
    });
    Ok(())
}

/// Prints events until the serving thread has ended, and stops it at a signal.
fn run_until_ended(server: &Server, notices: &Receiver<Notice>, report: &mut Report) {
    loop {
        let notice = match report.is_live() {
            true => notices.recv_timeout(DRAW_INTERVAL),
            false => notices.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match notice {
            Ok(Notice::Event(event)) => print_event(report, &event),
            Ok(Notice::Interrupted) => {
                report.emit(
                    "Flushing to disk; press Ctrl-C again to quit immediately.",
                    "stopping",
                    json!({}),
                );
                server.stopper().stop();
            }
            Ok(Notice::Stopped) | Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => report.draw(server.snapshot()),
        }
    }
}

/// The units and their media.
fn introduce(report: &Report, drive: &Drive) {
    let config = drive.device().config();
    for (number, (unit, medium)) in drive.device().units().iter().zip(drive.media()).enumerate() {
        let bytes = assemble::capacity(unit);
        let access = if unit.config.read_only { ", read-only" } else { "" };
        let line = format!(
            "LUN {number}: {bytes} in blocks of {} bytes{access}, {}",
            unit.config.block_size.bytes(),
            medium.describe()
        );
        let fields = json!({
            "lun": number,
            "bytes": bytes.0,
            "block_bytes": unit.config.block_size.bytes(),
            "read_only": unit.config.read_only,
            "medium": medium.describe(),
            "serial": unit.config.serial,
        });
        report.emit(&line, "unit", fields);
        if unit.reservations.are_lost() {
            let line = format!(
                "LUN {number}: cannot read the saved persistent reservations. Reads and writes are refused until a host \
                 replaces them (sg_persist --out --replace-lost), or the .state file beside the image is removed."
            );
            report.emit(&line, "reservations_lost", json!({ "lun": number }));
        }
    }
    let line = format!("Serial {}, {}", config.serial, config.speed);
    let fields =
        json!({ "serial": config.serial, "speed": config.speed.to_string(), "streams": config.streams });
    report.emit(&line, "device", fields);
}

/// The QEMU arguments to paste.
fn print_qemu_arguments(report: &Report, address: &Address, speed: SpeedArgument) {
    let chardev = match address {
        Address::Unix(path) => {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            unix_chardev(&path)
        }
        Address::Tcp(place) => {
            let (host, port) = place.rsplit_once(':').unwrap_or((place, ""));
            format!("socket,id=uaskit,host={},port={port}", host.trim_matches(['[', ']'])).into()
        }
    };
    // An xHCI takes every speed; an older guest may know only EHCI.
    let controller = "-device qemu-xhci,id=xhci";
    let plug = "-device usb-redir,chardev=uaskit,bus=xhci.0";
    // As a shell reads it, whatever is in the path.
    let chardev = format!("-chardev {}", word(chardev));
    let line = format!(
        "Listening on {address}. Add these arguments to QEMU:\n  {controller} \\\n  {chardev} \\\n  {plug}"
    );
    let arguments = json!([controller, chardev, plug]);
    let fields = json!({ "address": address.to_string(), "qemu": arguments, "super_speed": speed == SpeedArgument::Super });
    report.emit(&line, "listening", fields);
}

/// The value of QEMU's `-chardev` for a Unix socket: a comma within a value is doubled.
fn unix_chardev(path: &Path) -> OsString {
    let mut chardev = b"socket,id=uaskit,path=".to_vec();
    for byte in path.as_os_str().as_bytes() {
        chardev.push(*byte);
        if *byte == b',' {
            chardev.push(b',');
        }
    }
    OsString::from_vec(chardev)
}

fn print_event(report: &Report, event: &Event) {
    let line = event.to_string();
    let name = match event {
        // Printed with QEMU's arguments.
        Event::Listening(_) => return,
        Event::Connected { .. } => "connected",
        Event::Greeted(_) => "greeted",
        Event::Rejected { .. } => "turned_away",
        Event::Transport(_) => "transport",
        Event::Disconnected(_) => "disconnected",
        Event::AcceptFailed(_) => "accept_failed",
        // Printed when the signal arrived.
        Event::Stopping => return,
    };
    let mut sentence = line.clone();
    if let Some(first) = sentence.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let fields = match event {
        Event::Transport(transport) => json!({ "transport": report::describe(*transport) }),
        _ => json!({ "message": line }),
    };
    report.emit(&format!("{sentence}."), name, fields);
}

fn print_end(report: &Report, ended: ServerExit) -> Result<(), Failure> {
    let counters = ended.drive.counters();
    ended.outcome.map_err(|error| Failure::new("server stopped unexpectedly").because(error))?;
    ended.flushed.map_err(|error| {
        Failure::new("cannot flush all written data")
            .because(error)
            .try_this("Check the free space and the health of the disk that holds the image.")
    })?;
    let (reads, writes) = (counted(counters.reads, "read"), counted(counters.writes, "write"));
    let line = format!("All data flushed: {reads}, {writes}.");
    let fields = json!({
        "flushed": true,
        "reads": counters.reads,
        "writes": counters.writes,
        "read_bytes": counters.read_bytes,
        "written_bytes": counters.written_bytes,
        "failures": counters.failures,
    });
    report.emit(&line, "ended", fields);
    Ok(())
}
