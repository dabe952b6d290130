//! The serving side: takes orders at a socket and has them carried out.
//!
//! A thread of its own opens images and waits, so that the drive never does. One connection at a time, one order after the
//! other; a connection that says nothing is closed. The socket is its owner's alone (mode 0600). Left out: what an order
//! does, which is the server's.
//!
//! Always true: a connection holds one line at most.

use super::{LINE_BYTES_MAX, Order};
use drive::medium::{FileMedium, FileOptions};
use serde_json::{Value, json};
use server::net::{Controller, State, UnitState};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

/// How long a connection may say nothing.
const SILENCE: Duration = Duration::from_secs(10);
/// How long after a failure a connection is tried again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How images are opened that are inserted: as the first ones were.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opener {
    pub(crate) options: FileOptions,
}

/// Takes orders until the process ends.
pub(crate) fn receive(listener: UnixListener, opener: Opener, controller: Controller) {
    let serve = move || {
        loop {
            match listener.accept() {
                // Whoever breaks the connection has lost interest in the answer.
                Ok((stream, _)) => drop(attend(&stream, opener, &controller)),
                Err(_) => thread::sleep(ACCEPT_PAUSE),
            }
        }
    };
    thread::spawn(serve);
}

/// Carries out the orders of one connection.
fn attend(stream: &UnixStream, opener: Opener, controller: &Controller) -> io::Result<()> {
    stream.set_read_timeout(Some(SILENCE))?;
    stream.set_write_timeout(Some(SILENCE))?;
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader.by_ref().take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        let is_whole = line.ends_with(b"\n") || read < LINE_BYTES_MAX;
        let answer = match is_whole {
            true => carry_out(&line, opener, controller),
            false => Err(format!("a line has {LINE_BYTES_MAX} bytes at most")),
        };
        let answer = match answer {
            Ok(value) => json!({ "ok": value }),
            Err(why) => json!({ "error": why }),
        };
        let mut text = answer.to_string();
        text.push('\n');
        (&*stream).write_all(text.as_bytes())?;
        if !is_whole {
            return Ok(());
        }
    }
}

fn carry_out(line: &[u8], opener: Opener, controller: &Controller) -> Result<Value, String> {
    match Order::parse(line).map_err(|error| error.to_string())? {
        Order::Status => controller.describe().map(|state| describe(&state)),
        Order::Insert { lun, image } => {
            let medium = opener.open(&image)?;
            controller.insert(lun, Box::new(medium)).map(|()| json!({}))
        }
        Order::Eject { lun, force } => controller.eject(lun, force).map(|()| json!({})),
        Order::Resize { lun } => controller.measure(lun).map(|blocks| json!({ "blocks": blocks.0 })),
    }
    .map_err(|error| error.to_string())
}

impl Opener {
    fn open(self, image: &Path) -> Result<FileMedium, String> {
        FileMedium::open(image, &self.options).map_err(|error| error.to_string())
    }
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
    })
}
