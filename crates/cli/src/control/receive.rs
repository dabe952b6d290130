//! The serving side: reads commands from a socket and carries them out.
//!
//! A thread opens images and waits, so that the drive never does. It serves one connection at a
//! time, one command after the other. The socket is its owner's alone (mode 0600). Left out: what a
//! command does, which is the server's.
//!
//! Always true: a line has a limit in bytes and a deadline, whatever a peer sends, so that no
//! connection keeps the next one out for longer.

use super::timed::TimedStream;
use super::{ControlCommand, LINE_BYTES_MAX};
use crate::in_use;
use crate::sanitize::shown;
use drive::SlotError;
use drive::medium::{FileMedium, FileOptions};
use inspect::block::is_same_file;
use inspect::tree::Tree;
use serde_json::{Value, json};
use server::net::{ControlError, Controller, State, UnitState};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

/// How long a line may take to arrive, and its answer to be read.
const LINE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long after a failure a connection is tried again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How images are opened that are inserted: as the first ones were.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opener {
    pub(crate) options: FileOptions,
}

/// Carries out commands until the process ends.
pub(crate) fn receive(listener: UnixListener, opener: Opener, controller: Controller) {
    let serve = move || {
        loop {
            match listener.accept() {
                // A peer that breaks the connection does not want the answer.
                Ok((stream, _)) => {
                    drop(answer_all(&stream, LINE_TIMEOUT, |line| carry_out(line, opener, &controller)));
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
    carry_out: impl Fn(&[u8]) -> Result<Value, String>,
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

fn carry_out(line: &[u8], opener: Opener, controller: &Controller) -> Result<Value, String> {
    match ControlCommand::parse(line).map_err(|error| error.to_string())? {
        ControlCommand::Status => match controller.describe() {
            Ok(state) => Ok(describe(&state)),
            Err(error) => Err(format!("cannot read the status: {error}")),
        },
        ControlCommand::Insert { lun, image } => insert(lun, &image, opener, controller)
            .map_err(|why| format!("cannot insert {} into LUN {lun}: {why}", shown(&image))),
        ControlCommand::Eject { lun, force } => match controller.eject(lun, force) {
            Ok(()) => Ok(json!({})),
            // The medium is out, and the error says so.
            Err(error @ ControlError::Flush(_)) => Err(format!("LUN {lun}: {error}")),
            Err(error) => Err(format!("cannot eject LUN {lun}: {error}")),
        },
        ControlCommand::Resize { lun } => match controller.measure(lun) {
            Ok(blocks) => Ok(json!({ "blocks": blocks.0 })),
            Err(error) => Err(format!("cannot resize LUN {lun}: {error}")),
        },
    }
}

fn insert(lun: u8, image: &Path, opener: Opener, controller: &Controller) -> Result<Value, String> {
    let state = controller.describe().map_err(|error| error.to_string())?;
    // Before the image is opened: one that this process has open already is locked.
    check_slot(&state, lun, image)?;
    if !opener.options.read_only {
        if let Some(other) = unit_with(&state, image) {
            return Err(format!("it is the medium of LUN {other}; eject it there first"));
        }
        if let Some(why) = in_use::why_not_served(image, &Tree::running()) {
            return Err(format!("it is in use, and writing to it would destroy data: {why}"));
        }
    }
    let medium = FileMedium::open(image, &opener.options).map_err(|error| error.reason.to_string())?;
    controller.insert(lun, Box::new(medium)).map_err(|error| error.to_string())?;
    Ok(json!({}))
}

/// Whether a unit can take a medium, as far as that can be known before the image is opened.
fn check_slot(state: &State, lun: u8, image: &Path) -> Result<(), String> {
    let Some(unit) = state.units.get(usize::from(lun)) else { return Err(SlotError::NoUnit.to_string()) };
    if unit_with(state, image) == Some(usize::from(lun)) {
        return Err("it is the medium of that LUN already; there is nothing to do".into());
    }
    if !unit.removable {
        return Err(SlotError::Fixed.to_string());
    }
    if unit.capacity.is_some() { Err(SlotError::Occupied.to_string()) } else { Ok(()) }
}

/// The unit that has this image as its medium.
fn unit_with(state: &State, image: &Path) -> Option<usize> {
    let has = |unit: &UnitState| unit.image.as_ref().is_some_and(|open| is_same_file(open, image));
    state.units.iter().position(has)
}

fn describe(state: &State) -> Value {
    let snapshot = state.snapshot;
    let units: Vec<Value> = state.units.iter().map(describe_unit).collect();
    json!({
        "client": snapshot.has_client,
        "transport": crate::serve::transport_name(snapshot.transport),
        "depth": snapshot.depth,
        "reads": snapshot.counters.reads,
        "writes": snapshot.counters.writes,
        "read_bytes": snapshot.counters.read_bytes,
        "written_bytes": snapshot.counters.written_bytes,
        "failures": snapshot.counters.failures,
        "units": units,
    })
}

fn describe_unit(unit: &UnitState) -> Value {
    json!({
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
