//! QEMU's monitor protocol: a JSON value on each line, commands there, answers and events back.

use std::{
    io::{BufRead, BufReader, ErrorKind, Write},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{Error, Result, wait, wait::Deadline};

/// A connection to the monitor.
#[derive(Debug)]
pub struct Qmp {
    stream: BufReader<UnixStream>,
    /// A line that has not arrived whole.
    half: Vec<u8>,
    /// Events that have arrived and were not asked for yet.
    events: Vec<Value>,
}

impl Qmp {
    pub(super) fn connect(socket: &Path) -> Result<Self> {
        let stream =
            wait::until("QEMU's monitor", LIMIT, String::new, || Ok(UnixStream::connect(socket).ok()))?;
        let mut qmp = Self { stream: BufReader::new(stream), half: Vec::new(), events: Vec::new() };
        qmp.receive("QEMU's greeting", Deadline::after(LIMIT))?;
        qmp.execute("qmp_capabilities", json!({}))?;
        Ok(qmp)
    }

    /// Runs a command and returns its answer. A refusal is an error.
    pub fn execute(&mut self, command: &str, arguments: Value) -> Result<Value> {
        let line = json!({ "execute": command, "arguments": arguments }).to_string() + "\n";
        let stream = self.stream.get_mut();
        stream.write_all(line.as_bytes()).map_err(Error::io(format!("send {command} to QEMU")))?;
        let deadline = Deadline::after(LIMIT);
        loop {
            let mut message = self.receive(command, deadline)?;
            if message.get("event").is_some() {
                self.events.push(message);
            } else if let Some(answer) = message.get_mut("return") {
                return Ok(answer.take());
            } else {
                return Err(Error::unexpected(format!("QEMU on {}", line.trim_end()), message.to_string()));
            }
        }
    }

    /// Waits for an event of that name whose data `wanted` accepts. Other events are kept.
    pub fn await_event(
        &mut self,
        name: &str,
        limit: Duration,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let deadline = Deadline::after(limit);
        let fits = |event: &Value| {
            event.get("event").and_then(Value::as_str) == Some(name)
                && wanted(event.get("data").unwrap_or(&NULL))
        };
        loop {
            if let Some(index) = self.events.iter().position(fits) {
                return Ok(self.events.remove(index));
            }
            let message = self.receive(name, deadline)?;
            self.events.push(message);
        }
    }

    fn receive(&mut self, what: &str, deadline: Deadline) -> Result<Value> {
        let late = || Error::Timeout {
            what: format!("QEMU: {what}"),
            limit: deadline.limit(),
            evidence: String::from("the monitor is silent"),
        };
        loop {
            let remaining = deadline.remaining().ok_or_else(late)?;
            let stream = self.stream.get_mut();
            stream.set_read_timeout(Some(remaining)).map_err(Error::io("wait for QEMU"))?;
            match self.stream.read_until(b'\n', &mut self.half) {
                Ok(0) => return Err(Error::unexpected(what, "QEMU has closed its monitor")),
                Ok(_) => {
                    let line = std::mem::take(&mut self.half);
                    let nonsense = |_| Error::unexpected(what, String::from_utf8_lossy(&line));
                    return serde_json::from_slice(&line).map_err(nonsense);
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => return Err(late()),
                    ErrorKind::Interrupted => {}
                    _ => return Err(Error::Io { what: what.into(), source: error }),
                },
            }
        }
    }
}

/// For QEMU itself to answer; it does not wait for the guest.
const LIMIT: Duration = Duration::from_secs(60);

static NULL: Value = Value::Null;
