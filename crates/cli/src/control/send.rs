//! `uaskit control`: sends one command to a server, and prints the answer.
//!
//! An answer for programs is printed as it came; one for people is a sentence for each drive and each logical unit. Left out:
//! what a command does. Always true: an answer that is not one to the command is an error.

use super::timed::TimedStream;
use super::{ControlCommand, LINE_BYTES_MAX};
use crate::args::{ControlArguments, ControlCommandArgument};
use crate::failure::Failure;
use crate::sanitize::{self, shown};
use crate::stdout::Output;
use serde_json::{Map, Value};
use server::net::Address;
use std::fmt::Display;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use study::plural::counted;
use units::ByteCount;

/// How long an answer may take: the server waits 30 s for the host's commands, and then flushes.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Sends the command of the arguments.
pub(crate) fn run(arguments: &ControlArguments, out: &mut Output<'_>) -> Result<(), Failure> {
    let path = socket_path(&arguments.address)?;
    let command = match &arguments.command {
        ControlCommandArgument::Status => ControlCommand::Status,
        ControlCommandArgument::Insert { image, lun, port } => {
            let image = std::path::absolute(image).unwrap_or_else(|_| image.clone());
            ControlCommand::Insert { port: *port, lun: *lun, image }
        }
        ControlCommandArgument::Eject { lun, port, force } => {
            ControlCommand::Eject { port: *port, lun: *lun, force: *force }
        }
        ControlCommandArgument::Resize { lun, port } => ControlCommand::Resize { port: *port, lun: *lun },
        ControlCommandArgument::Attach { drive } => ControlCommand::Attach { drive: drive.clone() },
        ControlCommandArgument::Detach { port } => ControlCommand::Detach { port: *port },
        ControlCommandArgument::Fault { fault, port } => ControlCommand::Fault { port: *port, fault: *fault },
    };
    let answer = exchange(&path, &command.encode().to_string())?;
    match (answer.get("ok"), answer.get("error")) {
        (Some(_), _) if arguments.json => writeln!(out, "{}", sanitize::json(&answer.to_string()))?,
        (Some(Value::Object(fields)), _) => {
            let text = sentences(&command, fields).ok_or_else(|| malformed(&answer))?;
            writeln!(out, "{}", sanitize::escape_lines(&text))?;
        }
        (_, Some(Value::String(why))) => return Err(Failure::new(why.clone())),
        _ => return Err(malformed(&answer)),
    }
    Ok(())
}

/// The path of a Unix address, the only kind that accepts commands.
pub(crate) fn socket_path(address: &str) -> Result<std::path::PathBuf, Failure> {
    match address.parse() {
        Ok(Address::Unix(path)) => Ok(path),
        _ => Err(Failure::usage(format!("invalid control address \"{address}\": it must be a Unix socket"))
            .try_this("Write unix:PATH.")),
    }
}

/// Sends a line and reads the line that answers it.
fn exchange(path: &Path, command: &str) -> Result<Value, Failure> {
    let stream = UnixStream::connect(path).map_err(|error| {
        Failure::new(format!("cannot connect to the control socket {}", shown(path)))
            .because(error)
            .try_this("Check the path, and that the drive is served with --control and this address.")
    })?;
    let failed = |error| {
        Failure::new(format!("no answer from the drive at {}", shown(path)))
            .because(error)
            .try_this("Try again; if it still does not answer, the disk of an image may hang.")
    };
    let mut stream = TimedStream::new(&stream, TIMEOUT);
    stream.write_all(format!("{command}\n").as_bytes()).map_err(failed)?;
    let mut line = Vec::new();
    BufReader::new(stream).take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line).map_err(failed)?;
    serde_json::from_slice(&line).map_err(|_| {
        Failure::new(format!("{} is not a control socket", shown(path)))
            .because("it does not answer in JSON")
            .try_this("Use the address of --control, not that of --usbredir or --vfio-user.")
    })
}

fn malformed(why: impl Display) -> Failure {
    Failure::new("malformed reply from the drive")
        .because(why)
        .try_this("Check that the address is that of a `uaskit serve` of this version.")
}

/// The answer for people; `None` if it is not one to that command.
fn sentences(command: &ControlCommand, fields: &Map<String, Value>) -> Option<String> {
    Some(match command {
        ControlCommand::Status => status(fields)?,
        ControlCommand::Insert { lun, image, .. } => format!("Inserted {} into LUN {lun}.", shown(image)),
        ControlCommand::Eject { lun, .. } => {
            format!("Ejected the medium of LUN {lun}; all of its data is flushed.")
        }
        ControlCommand::Resize { lun, .. } => {
            format!("LUN {lun} now has {}.", counted(number(fields, "blocks")?, "block"))
        }
        ControlCommand::Attach { .. } => {
            format!("Attached the drive at port {}.", number(fields, "port")?)
        }
        ControlCommand::Detach { .. } => "Detached the drive; all of its data is flushed.".to_owned(),
        ControlCommand::Fault { fault, .. } => format!("Planned {fault}."),
    })
}

fn status(fields: &Map<String, Value>) -> Option<String> {
    let bytes = |name| Some(ByteCount(number(fields, name)?));
    let client = match (fields.get("client")?.as_bool()?, fields.get("transport")?.as_str()?) {
        (false, _) => "No client is connected.".to_owned(),
        (true, "no transport yet") => "A client is connected; its guest uses no transport yet.".to_owned(),
        (true, transport) => format!(
            "A client is connected; its guest uses {transport}, with {} in flight.",
            counted(number(fields, "depth")?, "command")
        ),
    };
    let done = format!(
        "{} ({}), {} ({}), {}.",
        counted(number(fields, "reads")?, "read"),
        bytes("read_bytes")?,
        counted(number(fields, "writes")?, "write"),
        bytes("written_bytes")?,
        counted(number(fields, "failures")?, "failure"),
    );
    let drives = fields.get("drives")?.as_array()?.iter();
    let drives = drives.map(|drive| drive_status(drive.as_object()?));
    Some(format!("{client} {done}{}", drives.collect::<Option<String>>()?))
}

/// A drive: a line if it is at a port, and a line for each unit.
fn drive_status(drive: &Map<String, Value>) -> Option<String> {
    let word = |name| drive.get(name)?.as_str();
    let port = match number(drive, "port")? {
        0 => String::new(),
        port => format!(
            "\nPort {port}: serial {}, {}, {}, {} in flight.",
            word("serial")?,
            word("speed")?,
            word("transport")?,
            counted(number(drive, "depth")?, "command")
        ),
    };
    let units = drive.get("units")?.as_array()?.iter().enumerate();
    let units = units.map(|(lun, unit)| Some(format!("\nLUN {lun}: {}.", unit_status(unit.as_object()?)?)));
    Some(port + &units.collect::<Option<String>>()?)
}

fn unit_status(unit: &Map<String, Value>) -> Option<String> {
    let is = |name| unit.get(name).and_then(Value::as_bool);
    let Some(bytes) = unit.get("bytes")?.as_u64() else { return Some("no medium".to_owned()) };
    let image = unit.get("image").and_then(Value::as_str).map(|image| format!("{image}, "));
    let mut text = format!(
        "{}{} in blocks of {} bytes, {}",
        image.unwrap_or_default(),
        ByteCount(bytes),
        number(unit, "block_bytes")?,
        if is("read_only")? { "read-only" } else { "read-write" },
    );
    match (is("removable")?, is("removal_prevented")?) {
        (false, _) => {}
        (true, false) => text += ", removable",
        (true, true) => text += ", removable, but the host prevents removal",
    }
    Some(format!("{text}; {}", unit.get("medium")?.as_str()?))
}

fn number(fields: &Map<String, Value>, name: &str) -> Option<u64> {
    fields.get(name)?.as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn text(command: &ControlCommand, fields: &Value) -> String {
        sentences(command, fields.as_object().unwrap()).unwrap()
    }

    #[test]
    fn answers_are_sentences() {
        let image = "/a b.img".into();
        assert_eq!(
            text(&ControlCommand::Insert { port: None, lun: 1, image }, &json!({})),
            "Inserted /a b.img into LUN 1."
        );
        assert_eq!(
            text(&ControlCommand::Eject { port: None, lun: 0, force: true }, &json!({})),
            "Ejected the medium of LUN 0; all of its data is flushed."
        );
        assert_eq!(
            text(&ControlCommand::Resize { port: None, lun: 0 }, &json!({ "blocks": 1 })),
            "LUN 0 now has 1 block."
        );
        assert_eq!(sentences(&ControlCommand::Resize { port: None, lun: 0 }, &Map::new()), None);
    }

    #[test]
    fn the_status_is_a_sentence_for_the_drive_and_one_for_each_unit() {
        let mut state = json!({
            "client": false, "transport": "no transport yet", "depth": 0, "reads": 1, "writes": 2,
            "read_bytes": 512, "written_bytes": 1024, "failures": 0,
            "drives": [{ "port": 0, "serial": "A", "speed": "super speed", "transport": "BOT", "depth": 1, "units": [
                { "bytes": 1_048_576, "block_bytes": 512, "read_only": false, "removable": true,
                  "removal_prevented": true, "medium": "io_uring", "image": "/first.img" },
                { "bytes": null, "block_bytes": 512, "read_only": true, "removable": true,
                  "removal_prevented": false, "medium": "no medium", "image": null },
                { "bytes": 4096, "block_bytes": 4096, "read_only": true, "removable": false,
                  "removal_prevented": false, "medium": "RAM", "image": null },
            ] }],
        });
        let lines = "1 read (512 B), 2 writes (1 KiB), 0 failures.\n\
            LUN 0: /first.img, 1 MiB in blocks of 512 bytes, read-write, removable, but the host prevents removal; io_uring.\n\
            LUN 1: no medium.\n\
            LUN 2: 4 KiB in blocks of 4096 bytes, read-only; RAM.";
        assert_eq!(text(&ControlCommand::Status, &state), format!("No client is connected. {lines}"));
        state["client"] = json!(true);
        state["transport"] = json!("BOT");
        state["depth"] = json!(1);
        let client = "A client is connected; its guest uses BOT, with 1 command in flight.";
        assert_eq!(text(&ControlCommand::Status, &state), format!("{client} {lines}"));
        state["drives"][0]["port"] = json!(16);
        let port = "failures.\nPort 16: serial A, super speed, BOT, 1 command in flight.\nLUN 0";
        assert!(text(&ControlCommand::Status, &state).contains(port));
    }
}
