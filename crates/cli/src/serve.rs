//! `uaskit serve`: a disk image as a USB drive for a virtual machine.
//!
//! The drive runs on its own thread; the main thread prints events and waits for a signal. SIGINT
//! (Ctrl-C), SIGTERM and SIGHUP stop the service and flush; a second SIGINT or SIGTERM exits
//! immediately. Left out: what the drive does.

mod assemble;
mod disc;
mod floppy;
mod recorded;
mod report;
mod served;

use crate::args::{CaptureArguments, DriveArguments, ServeArguments};
use crate::command_line::word;
use crate::control::{self, CommandReceiver};
use crate::failure::Failure;
use crate::interrupt;
use crate::output_file;
use study::plural::counted;

use crate::recorder::{self, Capture, Recorder};
use crate::signals;
pub(crate) use assemble::{CreatedImage, options_of_insert};
use bench::record::CaptureSummary;
use bus::Speed;
use device::Transports;
use device::lun::UnitType;
use device::lun::mmc::disc::profile_of;
use drive::Drive;
use report::Report;
pub(crate) use report::describe as transport_name;
use serde_json::json;
use served::Line;
use server::net::{Address, BindError, PrivateSocket, Server, ServerExit};
use signal_hook::consts::SIGHUP;
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{process, thread};

/// How often the live line is drawn.
const DRAW_INTERVAL: Duration = Duration::from_millis(500);
/// Input of the main thread.
enum Notice {
    /// From the serving thread.
    Event(Line),
    /// A signal to stop.
    Interrupted,
    /// The serving thread has ended.
    Stopped,
}

/// Sends events of the serving thread to the main thread, and its end when it is dropped.
struct EventSender(Sender<Notice>);

/// Serves until a signal ends it.
pub(crate) fn run(arguments: &ServeArguments) -> Result<(), Failure> {
    let export = Export::parse(arguments)?;
    let control = arguments.control.as_deref().map(control::socket_path).transpose()?;
    output_file::check_distinct(&[export.socket(), ("--control", control.as_deref())])?;
    let control = control.map(|path| PrivateSocket::bind(&path).map_err(unbound)).transpose()?;
    let mut report = Report::new(arguments.json, arguments.quiet);
    let descriptions = served::descriptions(&arguments.drive, &arguments.drives)?;
    let faults = served::controller_faults(arguments)?;
    let (mut drives, mut created, mut options) = (Vec::new(), Vec::new(), Vec::new());
    let name = export.names();
    for (number, description) in descriptions.iter().enumerate() {
        let (drive, image) = assemble::drive(description, &name(number))?;
        options.push((drive.device().config().serial.clone(), assemble::options_of_insert(description)));
        drives.push(drive);
        created.push(image);
    }
    let (capture, recorder) = begin_capture(arguments, &mut drives)?.unzip();
    // The capture ends when all recorders are dropped; the thread that accepts commands does not end.
    let recorder = Arc::new(Mutex::new(recorder));
    let speed = drives.first().map(|drive| drive.device().config().speed);
    let introductions = introductions(&drives, &arguments.capture);
    let (sender, notices) = mpsc::channel();
    let events = EventSender(sender.clone());
    catch_signals(sender)?;
    let on_event = move |line| events.send(Notice::Event(line));
    let server = match export {
        Export::VfioUser(path) => served::vfio_user(&path, drives, arguments.doorbells, &faults, on_event)?,
        Export::Usbredir(address) => {
            let drive = drives.into_iter().next().ok_or_else(|| Failure::usage("no drive is described"))?;
            served::usbredir(address, arguments.allow_remote, drive, on_event)?
        }
    };
    created.into_iter().for_each(CreatedImage::keep);
    introductions.iter().for_each(|line| report.emit(&line.text, line.name, line.fields.clone()));
    if let Some(control) = &control {
        let listener = control
            .listener()
            .map_err(|error| Failure::new("cannot accept control commands").because(error))?;
        let (mut next, recorder) = (descriptions.len(), Arc::clone(&recorder));
        let assemble = Box::new(move |description: &DriveArguments| {
            served::check_faults(&description.faults)?;
            let (mut drive, image) = assemble::drive(description, &name(next))?;
            if let Some(recorder) = &*recorder.lock().unwrap_or_else(PoisonError::into_inner) {
                drive.observe(recorder.of_drive(next));
            }
            next += 1;
            Ok((drive, image))
        });
        let controller = server.controller();
        control::receive(listener, CommandReceiver { controller, options, assemble });
    }
    match arguments.vfio_user {
        None => print_qemu_arguments(&report, server.address(), speed),
        Some(_) => print_vfio_user_arguments(&report, server.address()),
    }
    run_until_ended(&server, &notices, &mut report);
    let mut ended = server.join();
    ended.drives.iter_mut().for_each(Drive::stop_observing);
    *recorder.lock().unwrap_or_else(PoisonError::into_inner) = None;
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

/// How drives are exported, and where.
enum Export {
    Usbredir(Address),
    VfioUser(PathBuf),
}

impl Export {
    fn parse(arguments: &ServeArguments) -> Result<Self, Failure> {
        let address = arguments.vfio_user.as_deref().or(arguments.usbredir.as_deref()).unwrap_or_default();
        let address: Address = address.parse().map_err(|error| Failure::usage(format!("{error}")))?;
        match (address, &arguments.vfio_user) {
            (address, None) => Ok(Self::Usbredir(address)),
            (Address::Unix(path), Some(_)) => Ok(Self::VfioUser(path)),
            (Address::Tcp(_), Some(_)) => Err(Failure::usage("vfio-user needs a Unix socket")
                .because("the hypervisor passes its memory as file descriptors")
                .try_this("Use --vfio-user unix:PATH.")),
        }
    }

    /// The option that names the Unix socket, and its path.
    fn socket(&self) -> (&'static str, Option<&Path>) {
        match self {
            Self::Usbredir(Address::Unix(path)) => ("--usbredir", Some(path)),
            Self::Usbredir(Address::Tcp(_)) => ("--usbredir", None),
            Self::VfioUser(path) => ("--vfio-user", Some(path)),
        }
    }

    /// Names for drives in memory, which have no path, by number.
    fn names(&self) -> impl Fn(usize) -> String + Send + use<> {
        let address = match self {
            Self::Usbredir(address) => address.to_string(),
            Self::VfioUser(path) => format!("unix:{}", path.display()),
        };
        move |number| if number == 0 { address.clone() } else { format!("{address}#{number}") }
    }
}

/// Starts to capture the transfers of all drives, if requested.
fn begin_capture(
    arguments: &ServeArguments,
    drives: &mut [Drive],
) -> Result<Option<(Capture, Recorder)>, Failure> {
    let description = match &*drives {
        [drive] => format!("uaskit serve, {}", drive.device().config().speed),
        all => format!("uaskit serve, {}", counted(all.len() as u64, "drive")),
    };
    let has_interrupt = |drive: &Drive| drive.device().config().transports == Transports::Cbi;
    let interrupt = drives.iter().any(has_interrupt).then_some(device::device::STATUS);
    let Some((capture, recorder)) = arguments.capture.start(description, interrupt)? else { return Ok(None) };
    for (number, drive) in drives.iter_mut().enumerate() {
        drive.observe(recorder.of_drive(number));
    }
    Ok(Some((capture, recorder)))
}

fn unbound(error: BindError) -> Failure {
    match error {
        BindError::NotLoopback(_) => Failure::refused(error.to_string())
            .try_this("Use a loopback address, or add --allow-remote to allow remote clients."),
        _ => Failure::new(error.to_string()),
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
                process::exit(interrupt::EXIT_CODE.into());
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
            Ok(Notice::Event(line)) => print_event(report, line),
            Ok(Notice::Interrupted) => {
                report.emit(
                    "Stopping: the media are flushed. Press Ctrl-C again to quit immediately.",
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

/// Returns the lines about the drives and the capture, printed when the server listens.
fn introductions(drives: &[Drive], capture: &CaptureArguments) -> Vec<Line> {
    let capturing = capture.announcement().map(|(what, fields)| {
        let text = format!("Capturing to {what}");
        Line { text, name: "capturing", fields }
    });
    drives.iter().flat_map(introduce).chain(capturing).collect()
}

/// The units and their media.
fn introduce(drive: &Drive) -> Vec<Line> {
    let mut lines = Vec::new();
    let config = drive.device().config();
    for (number, (unit, medium)) in drive.device().units().iter().zip(drive.media()).enumerate() {
        let bytes = assemble::capacity(unit);
        let access = if unit.config.read_only { ", read-only" } else { "" };
        let blocks = format!("{bytes} in blocks of {} bytes", unit.config.block_size.bytes());
        let medium_text = medium.describe();
        let text = match unit.config.unit_type {
            UnitType::Disk => format!("LUN {number}: {blocks}{access}, {medium_text}"),
            UnitType::Floppy if bytes.0 == 0 => format!("LUN {number}: floppy drive without a disk"),
            UnitType::Floppy => {
                format!("LUN {number}: floppy drive with a disk of {blocks}{access}, {medium_text}")
            }
            UnitType::Optical if bytes.0 == 0 => format!("LUN {number}: optical drive without a disc"),
            UnitType::Optical => {
                let profile = profile_of(unit.config.capacity);
                format!("LUN {number}: optical drive with a {profile} of {blocks}, {medium_text}")
            }
        };
        let fields = json!({
            "lun": number,
            "type": unit.config.unit_type.to_string(),
            "bytes": bytes.0,
            "block_bytes": unit.config.block_size.bytes(),
            "read_only": unit.config.read_only,
            "medium": medium_text,
            "serial": unit.config.serial,
        });
        lines.push(Line { text, name: "unit", fields });
        if unit.reservations.are_lost() {
            let text = format!(
                "LUN {number}: cannot read the saved persistent reservations. Reads and writes are refused until a host \
                 replaces them (sg_persist --out --replace-lost), or the .state file beside the image is removed."
            );
            lines.push(Line { text, name: "reservations_lost", fields: json!({ "lun": number }) });
        }
    }
    let text = format!("Serial {}, {}", config.serial, config.speed);
    let fields =
        json!({ "serial": config.serial, "speed": config.speed.to_string(), "streams": config.streams });
    lines.push(Line { text, name: "device", fields });
    lines
}

/// The QEMU arguments to paste.
fn print_qemu_arguments(report: &Report, address: &Address, speed: Option<Speed>) {
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
    let fields = json!({ "address": address.to_string(), "qemu": arguments, "super_speed": speed == Some(Speed::Super) });
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

/// The QEMU arguments to paste: memory that is shared, and the device.
fn print_vfio_user_arguments(report: &Report, address: &Address) {
    let Address::Unix(path) = address else { return };
    let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
    let socket = json!({ "type": "unix", "path": path.to_string_lossy() });
    let device = json!({ "driver": "vfio-user-pci", "socket": socket }).to_string();
    let memory = "-m 1G -object memory-backend-memfd,id=mem,size=1G,share=on";
    let machine = "-machine q35,memory-backend=mem";
    let plug = format!("-device {}", word(device));
    let line = format!(
        "Listening on {address}. Add these arguments to QEMU 10.1 or newer, with the memory that the machine has:\n  \
         {memory} \\\n  {machine} \\\n  {plug}"
    );
    let fields = json!({ "address": address.to_string(), "qemu": [memory, machine, plug] });
    report.emit(&line, "listening", fields);
}

fn print_event(report: &Report, line: Line) {
    let Line { mut text, name, fields } = line;
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    report.emit(&format!("{text}."), name, fields);
}

fn print_end(report: &Report, ended: ServerExit) -> Result<(), Failure> {
    let counters = ended.counters;
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
