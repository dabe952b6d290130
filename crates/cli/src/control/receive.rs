//! The serving side: reads commands from a socket and carries them out.
//!
//! A thread opens images and waits, so that the drives never do. It serves one connection at a
//! time, one command after the other. The socket is its owner's alone (mode 0600). Left out: what a
//! command does, which is the server's.
//!
//! Always true: a line has a limit in bytes and a deadline, whatever a peer sends, so that no
//! connection keeps the next one out for longer.

use super::timed::TimedStream;
use super::{ControlCommand, LINE_BYTES_MAX};
use crate::args::{DriveArguments, FaultArgument, drive_description};
use crate::failure::Failure;
use crate::in_use;
use crate::sanitize::shown;
use crate::serve::{CreatedImage, options_of_insert, transport_name};
use device::lun::UnitType;
use drive::medium::{FileMedium, FileOptions};
use drive::{Drive, SlotError};
use inspect::block::is_same_file;
use inspect::tree::Tree;
use serde_json::{Value, json};
use server::net::{ControlError, Controller, DriveState, State, UnitState};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::Duration;
use wire::ufi::DiskFormat;

/// How long a line may take to arrive, and its answer to be read.
const LINE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long after a failure a connection is tried again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Makes a drive of its description, with the image that was created for it.
type Assemble = Box<dyn FnMut(&DriveArguments) -> Result<(Drive, CreatedImage), Failure> + Send>;

/// Carries out commands.
pub(crate) struct CommandReceiver {
    pub(crate) controller: Controller,
    /// How images are opened that are inserted, by serial number of the drive: as the first ones were.
    pub(crate) options: Vec<(String, FileOptions)>,
    pub(crate) assemble: Assemble,
}

/// Carries out commands until the process ends.
pub(crate) fn receive(listener: UnixListener, mut receiver: CommandReceiver) {
    let serve = move || {
        loop {
            match listener.accept() {
                // A peer that breaks the connection does not want the answer.
                Ok((stream, _)) => {
                    drop(answer_all(&stream, LINE_TIMEOUT, |line| receiver.carry_out(line)));
                }
                Err(_) => thread::sleep(ACCEPT_PAUSE),
            }
        }
    };
    thread::spawn(serve);
}

/// Answers the lines of one connection. Each must arrive within `timeout`.
fn answer_all(
    stream: &UnixStream,
    timeout: Duration,
    mut carry_out: impl FnMut(&[u8]) -> Result<Value, String>,
) -> io::Result<()> {
    let mut reader = BufReader::new(TimedStream::new(stream, timeout));
    let mut line = Vec::new();
    loop {
        line.clear();
        reader.get_mut().restart(timeout);
        let read = reader.by_ref().take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line);
        let is_whole = line.ends_with(b"\n") || line.len() < LINE_BYTES_MAX;
        let is_last = read.is_err() || !is_whole;
        let answer = match read {
            Ok(0) => return Ok(()),
            Ok(_) if is_whole => carry_out(&line),
            Ok(_) => Err(format!("line too long (maximum {LINE_BYTES_MAX} bytes)")),
            Err(error) if error.kind() == ErrorKind::TimedOut && !line.is_empty() => {
                Err(format!("timed out: the line did not end within {} s", timeout.as_secs_f32()))
            }
            Err(error) => return Err(error),
        };
        let answer = match answer {
            Ok(value) => json!({ "ok": value }),
            Err(why) => json!({ "error": why }),
        };
        reader.get_mut().restart(timeout);
        reader.get_mut().write_all(format!("{answer}\n").as_bytes())?;
        if is_last {
            return Ok(());
        }
    }
}

impl CommandReceiver {
    fn carry_out(&mut self, line: &[u8]) -> Result<Value, String> {
        let controller = &self.controller;
        match ControlCommand::parse(line).map_err(|error| error.to_string())? {
            ControlCommand::Status => match controller.describe() {
                Ok(state) => Ok(describe(&state)),
                Err(error) => Err(format!("cannot read the status: {error}")),
            },
            ControlCommand::Insert { port, lun, image } => self
                .insert(port, lun, &image)
                .map_err(|why| format!("cannot insert {} into LUN {lun}: {why}", shown(&image))),
            ControlCommand::Eject { port, lun, force } => match controller.eject(port, lun, force) {
                Ok(()) => Ok(json!({})),
                // The medium is out, and the error says so.
                Err(error @ ControlError::Flush(_)) => Err(format!("LUN {lun}: {error}")),
                Err(error) => Err(format!("cannot eject LUN {lun}: {error}")),
            },
            ControlCommand::Resize { port, lun } => match controller.measure(port, lun) {
                Ok(blocks) => Ok(json!({ "blocks": blocks.0 })),
                Err(error) => Err(format!("cannot resize LUN {lun}: {error}")),
            },
            ControlCommand::Attach { drive } => {
                self.attach(&drive).map_err(|why| format!("cannot attach the drive: {why}"))
            }
            ControlCommand::Detach { port } => match controller.detach(port) {
                Ok(()) => Ok(json!({})),
                Err(error @ ControlError::Flush(_)) => Err(error.to_string()),
                Err(error) => Err(format!("cannot detach the drive: {error}")),
            },
            ControlCommand::Fault { port, fault } => {
                let planned = match fault {
                    FaultArgument::Drive(fault) => controller.plan_fault(port, fault),
                    FaultArgument::Controller(fault) => controller.plan_controller_fault(fault),
                };
                planned.map(|()| json!({})).map_err(|error| format!("cannot plan {fault}: {error}"))
            }
        }
    }

    fn insert(&self, port: Option<u8>, lun: u8, image: &Path) -> Result<Value, String> {
        let state = self.controller.describe().map_err(|error| error.to_string())?;
        let drive = drive_at(&state, port)?;
        // Before the image is opened: one that this process has open already is locked.
        check_slot(drive, lun, image)?;
        let options = self.options.iter().find(|(serial, _)| *serial == drive.serial);
        let options = options.map(|(_, options)| *options).unwrap_or_default();
        let options = match drive.units.get(usize::from(lun)).map(|unit| unit.unit_type) {
            Some(UnitType::Optical) => FileOptions::of_disc(),
            Some(UnitType::Floppy) => {
                check_floppy(image)?;
                options
            }
            _ => options,
        };
        if !options.read_only {
            if let Some(place) = place_of(&state, image) {
                return Err(format!("it is the medium of {place}; eject it there first"));
            }
            if let Some(why) = in_use::why_not_served(image, &Tree::running()) {
                return Err(format!("writing to it would destroy data: {why}"));
            }
        }
        let medium = FileMedium::open(image, &options).map_err(|error| error.reason.to_string())?;
        self.controller.insert(port, lun, Box::new(medium)).map_err(|error| error.to_string())?;
        Ok(json!({}))
    }

    fn attach(&mut self, description: &str) -> Result<Value, String> {
        let arguments = drive_description(description)?;
        let (drive, created) = (self.assemble)(&arguments).map_err(|failure| failure.to_string())?;
        let serial = drive.device().config().serial.clone();
        let port = self.controller.attach(drive).map_err(|error| error.to_string())?;
        created.keep();
        let state = self.controller.describe().map_err(|error| error.to_string())?;
        self.options.retain(|(serial, _)| state.drives.iter().any(|drive| drive.serial == *serial));
        self.options.push((serial, options_of_insert(&arguments)));
        Ok(json!({ "port": port }))
    }
}

/// Checks that an image is a disk of a floppy drive.
fn check_floppy(image: &Path) -> Result<(), String> {
    match std::fs::metadata(image) {
        Ok(metadata) if DiskFormat::of_size(metadata.len()).is_none() => {
            Err(format!("it is not a floppy disk: it has {} bytes", metadata.len()))
        }
        // Whatever is wrong with it is reported when it is opened.
        _ => Ok(()),
    }
}

/// The drive that a command names.
fn drive_at(state: &State, port: Option<u8>) -> Result<&DriveState, String> {
    let ports = || state.drives.iter().map(|drive| drive.port).collect();
    match (port, &state.drives[..]) {
        (None, [only]) => Ok(only),
        (None, _) => Err(ControlError::WhichDrive(ports()).to_string()),
        (Some(port), drives) => {
            let found = drives.iter().find(|drive| drive.port == port);
            found.ok_or_else(|| ControlError::NoDrive(port).to_string())
        }
    }
}

/// Whether a unit can take a medium, as far as that can be known before the image is opened.
fn check_slot(drive: &DriveState, lun: u8, image: &Path) -> Result<(), String> {
    let Some(unit) = drive.units.get(usize::from(lun)) else { return Err(SlotError::NoUnit.to_string()) };
    if has_medium(unit, image) {
        return Err("it is the medium of that LUN already; there is nothing to do".into());
    }
    if !unit.removable {
        return Err(SlotError::Fixed.to_string());
    }
    if unit.capacity.is_some() { Err(SlotError::Occupied.to_string()) } else { Ok(()) }
}

/// The unit that has this image as its medium, and its port if it has one.
fn place_of(state: &State, image: &Path) -> Option<String> {
    state.drives.iter().find_map(|drive| {
        let lun = drive.units.iter().position(|unit| has_medium(unit, image))?;
        Some(match drive.port {
            0 => format!("LUN {lun}"),
            port => format!("LUN {lun} at port {port}"),
        })
    })
}

fn has_medium(unit: &UnitState, image: &Path) -> bool {
    unit.image.as_ref().is_some_and(|open| is_same_file(open, image))
}

fn describe(state: &State) -> Value {
    let snapshot = state.snapshot;
    let drives: Vec<Value> = state.drives.iter().map(describe_drive).collect();
    // Programs of earlier versions know one drive.
    let units: Vec<Value> = match &state.drives[..] {
        [only] => only.units.iter().map(describe_unit).collect(),
        _ => Vec::new(),
    };
    json!({
        "client": snapshot.has_client,
        "transport": transport_name(snapshot.transport),
        "depth": snapshot.depth,
        "reads": snapshot.counters.reads,
        "writes": snapshot.counters.writes,
        "read_bytes": snapshot.counters.read_bytes,
        "written_bytes": snapshot.counters.written_bytes,
        "failures": snapshot.counters.failures,
        "drives": drives,
        "units": units,
    })
}

fn describe_drive(drive: &DriveState) -> Value {
    let units: Vec<Value> = drive.units.iter().map(describe_unit).collect();
    json!({
        "port": drive.port,
        "serial": drive.serial,
        "speed": drive.speed.to_string(),
        "transport": transport_name(drive.transport),
        "depth": drive.depth,
        "units": units,
    })
}

fn describe_unit(unit: &UnitState) -> Value {
    json!({
        "type": unit.unit_type.to_string(),
        "bytes": unit.capacity.map(|capacity| capacity.0),
        "block_bytes": unit.block_size.bytes(),
        "read_only": unit.read_only,
        "removable": unit.removable,
        "removal_prevented": unit.removal_prevented,
        "medium": unit.medium,
        "image": unit.image.as_ref().map(shown),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    const TIMEOUT: Duration = Duration::from_millis(200);

    /// Serves one connection with a short timeout while `peer` uses the other end; returns what it
    /// received.
    fn answered(peer: impl FnOnce(&UnixStream)) -> String {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let served = thread::spawn(move || drop(answer_all(&ours, TIMEOUT, |line| Ok(json!(line.len())))));
        peer(&theirs);
        let mut text = String::new();
        let _ = (&theirs).read_to_string(&mut text);
        served.join().unwrap();
        text
    }

    #[test]
    fn bytes_that_trickle_in_do_not_extend_the_deadline() {
        let begins = Instant::now();
        let text = answered(|mut peer| {
            while peer.write_all(b" ").is_ok() {
                thread::sleep(TIMEOUT / 8)
            }
        });
        assert_eq!(text, "{\"error\":\"timed out: the line did not end within 0.2 s\"}\n");
        assert!(begins.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn a_connection_that_sends_nothing_is_closed() {
        assert_eq!(answered(|_| {}), "");
    }

    #[test]
    fn each_line_has_its_own_deadline() {
        let text = answered(|mut peer| {
            for _ in 0..3 {
                peer.write_all(b"12345\n").unwrap();
                thread::sleep(TIMEOUT / 2);
            }
        });
        assert_eq!(text, "{\"ok\":6}\n".repeat(3));
    }

    #[test]
    fn a_line_of_64_kib_is_the_longest() {
        let line = |len: usize| [&vec![b'x'; len - 1][..], b"\n"].concat();
        let text = answered(|mut peer| peer.write_all(&line(64 << 10)).unwrap());
        assert_eq!(text, "{\"ok\":65536}\n");
        let text = answered(|mut peer| drop(peer.write_all(&line((64 << 10) + 1))));
        assert_eq!(text, "{\"error\":\"line too long (maximum 65536 bytes)\"}\n");
    }
}
