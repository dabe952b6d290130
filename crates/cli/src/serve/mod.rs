//! `uaskit serve`: a disk image as a USB drive for a virtual machine.
//!
//! The drive runs on a thread of its own; the main thread tells what happens and waits for Ctrl-C. The first one ends
//! the service and makes everything durable, the second one leaves at once. Left out: what the drive does.

mod assemble;
mod report;

use crate::args::{ServeArguments, SpeedArgument};
use crate::control::{self, Opener};
use crate::counted::counted;
use crate::failure::Failure;
use crate::harmless::shown;
use crate::recorder::{self, Capture};
use bench::record::Captured;
use drive::Drive;
use report::Report;
pub(crate) use report::describe as transport_name;
use serde_json::json;
use server::net::{Address, BindError, Config, Ended, Event, PrivateSocket, Server};
use server::usbredir::Limits;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;
use std::{process, thread};

/// How often the live line is drawn.
const DRAW_INTERVAL: Duration = Duration::from_millis(500);
/// The exit code of a process that SIGINT has ended.
const INTERRUPTED: i32 = 130;
/// Payload of the client that may wait for the device before the client is read no further.
const PAYLOAD_BYTES_SOFT: usize = 8 << 20;

/// Something that the main thread is told.
enum Notice {
    /// By the serving thread.
    Event(Event),
    /// Ctrl-C, or a polite kill.
    Interrupted,
    /// The serving thread tells nothing any more.
    Ended,
}

/// The serving thread's way to tell; says so when it is gone.
struct Teller(Sender<Notice>);

/// Serves until Ctrl-C.
pub(crate) fn run(arguments: &ServeArguments) -> Result<(), Failure> {
    let address: Address = arguments.usbredir.parse().map_err(|error| Failure::usage(format!("{error}")))?;
    let orders = arguments.control.as_deref().map(listen_for_orders).transpose()?;
    let (mut drive, created) = assemble::drive(arguments)?;
    let capture = begin_capture(arguments, &mut drive)?;
    let mut report = Report::new(arguments.json, arguments.quiet);
    introduce(&report, &drive);
    if let Some((told, fields)) = arguments.capture.announcement() {
        report.tell(&format!("Capturing into {told}"), "capturing", fields);
    }
    let config = Config {
        address,
        allow_remote: arguments.allow_remote,
        version: concat!("uaskit ", env!("CARGO_PKG_VERSION")).into(),
        limits: Limits { payload_bytes_soft: PAYLOAD_BYTES_SOFT, ..Limits::default() },
    };
    let (sender, notices) = mpsc::channel();
    let teller = Teller(sender.clone());
    let server =
        Server::start(config, drive, move |event| teller.tell(Notice::Event(event))).map_err(unbound)?;
    created.keep();
    if let Some(orders) = &orders {
        let listener =
            orders.listener().map_err(|error| Failure::new("cannot take orders").because(error))?;
        let opener = Opener { options: assemble::options(arguments) };
        control::receive(listener, opener, server.controller());
    }
    catch_signals(sender)?;
    say_how_to_plug(&report, server.address(), arguments.speed);
    watch(&server, &notices, &mut report);
    let mut ended = server.join();
    ended.drive.stop_observing();
    let captured = capture.map(Capture::finish).transpose();
    farewell(&report, ended)?;
    if let Some(captured) = captured? {
        let line = format!("Captured: {}.", recorder::told(captured));
        let Captured { files, records, dropped } = captured;
        let fields = json!({ "files": files, "records": records, "dropped": dropped });
        report.tell(&line, "captured", fields);
    }
    Ok(())
}

/// Begins to write down what the host does, if that is wanted.
fn begin_capture(arguments: &ServeArguments, drive: &mut Drive) -> Result<Option<Capture>, Failure> {
    let description = format!("uaskit serve, {}", drive.device().config().speed);
    let Some((capture, recorder)) = arguments.capture.start(description)? else { return Ok(None) };
    drive.observe(Box::new(recorder));
    Ok(Some(capture))
}

/// A socket for orders. Its name goes with it.
fn listen_for_orders(address: &str) -> Result<PrivateSocket, Failure> {
    PrivateSocket::bind(&control::socket_path(address)?).map_err(unbound)
}

fn unbound(error: BindError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        BindError::NotLoopback(_) => failure.try_this("The flag for that is --allow-remote."),
        _ => failure,
    }
}

impl Teller {
    fn tell(&self, notice: Notice) {
        // It fails only when the main thread has left, and then nobody wants to know.
        let _ = self.0.send(notice);
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.tell(Notice::Ended);
    }
}

/// Signals become notices; a second one ends the process where it stands.
fn catch_signals(sender: Sender<Notice>) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| Failure::new("cannot watch for Ctrl-C").because(error))?;
    thread::spawn(move || {
        let mut pending = signals.forever();
        if pending.next().is_some() {
            let _ = sender.send(Notice::Interrupted);
        }
        if pending.next().is_some() {
            process::exit(INTERRUPTED);
        }
    });
    Ok(())
}

/// Tells what happens until the serving thread has ended.
fn watch(server: &Server, notices: &Receiver<Notice>, report: &mut Report) {
    loop {
        let notice = match report.is_live() {
            true => notices.recv_timeout(DRAW_INTERVAL),
            false => notices.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match notice {
            Ok(Notice::Event(event)) => tell_event(report, &event),
            Ok(Notice::Interrupted) => {
                report.tell("Writing everything down; Ctrl-C again leaves at once.", "stopping", json!({}));
                server.stopper().stop();
            }
            Ok(Notice::Ended) | Err(RecvTimeoutError::Disconnected) => return,
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
            "LUN {number}: {bytes} in blocks of {}{access}, {}",
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
        report.tell(&line, "unit", fields);
        if unit.reservations.are_lost() {
            let line = format!(
                "LUN {number}: its kept reservations cannot be read. Nothing is read or written until a host replaces \
                 them (sg_persist --out --replace-lost), or the .state file beside the image is removed."
            );
            report.tell(&line, "reservations_lost", json!({ "lun": number }));
        }
    }
    let line = format!("Serial {}, {}", config.serial, config.speed);
    let fields =
        json!({ "serial": config.serial, "speed": config.speed.to_string(), "streams": config.streams });
    report.tell(&line, "device", fields);
}

/// The QEMU arguments to paste.
fn say_how_to_plug(report: &Report, address: &Address, speed: SpeedArgument) {
    let chardev = match address {
        Address::Unix(path) => {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            // QEMU doubles the commas of a value.
            format!("socket,id=uaskit,path={}", shown(path).replace(',', ",,"))
        }
        Address::Tcp(place) => {
            let (host, port) = place.rsplit_once(':').unwrap_or((place, ""));
            format!("socket,id=uaskit,host={},port={port}", host.trim_matches(['[', ']']))
        }
    };
    // An xHCI takes every speed; an older guest may know only EHCI.
    let controller = "-device qemu-xhci,id=xhci";
    let plug = "-device usb-redir,chardev=uaskit,bus=xhci.0";
    let line = format!(
        "Listening at {address}. Add this to QEMU's arguments:\n  {controller} \\\n  -chardev '{chardev}' \\\n  {plug}"
    );
    let arguments = json!([controller, format!("-chardev {chardev}"), plug]);
    let fields = json!({ "address": address.to_string(), "qemu": arguments, "super_speed": speed == SpeedArgument::Super });
    report.tell(&line, "listening", fields);
}

fn tell_event(report: &Report, event: &Event) {
    let line = event.to_string();
    let name = match event {
        // Told with QEMU's arguments.
        Event::Listening(_) => return,
        Event::Connected { .. } => "connected",
        Event::Greeted(_) => "greeted",
        Event::Rejected { .. } => "turned_away",
        Event::Transport(_) => "transport",
        Event::Disconnected(_) => "disconnected",
        Event::AcceptFailed(_) => "accept_failed",
        // Told when Ctrl-C came.
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
    report.tell(&format!("{sentence}."), name, fields);
}

fn farewell(report: &Report, ended: Ended) -> Result<(), Failure> {
    let counters = ended.drive.counters();
    ended.outcome.map_err(|error| Failure::new("the server could not go on").because(error))?;
    ended.flushed.map_err(|error| {
        Failure::new("not everything written is on the disk")
            .because(error)
            .try_this("Check the space and the health of the disk that holds the image.")
    })?;
    let (reads, writes) = (counted(counters.reads, "read"), counted(counters.writes, "write"));
    let line = format!("Everything is written. {reads}, {writes}.");
    let fields = json!({
        "flushed": true,
        "reads": counters.reads,
        "writes": counters.writes,
        "read_bytes": counters.read_bytes,
        "written_bytes": counters.written_bytes,
        "failures": counters.failures,
    });
    report.tell(&line, "ended", fields);
    Ok(())
}
