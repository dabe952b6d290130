//! Commands to drives that are being served, and their protocol.
//!
//! `uaskit serve --control unix:PATH` accepts them, `uaskit control` sends them; any program can, since a command is a
//! line of JSON and so is its answer.
//!
//! ```text
//! {"status":{}}                              {"ok":{…}}
//! {"insert":{"lun":0,"image":"/disk.img"}}   {"ok":{}}
//! {"eject":{"lun":0,"force":true}}           {"error":"…"}
//! {"resize":{"lun":0}}                       {"ok":{"blocks":2048}}
//! {"attach":{"drive":"ram=1G,speed=high"}}   {"ok":{"port":1}}
//! {"detach":{"port":1}}                      {"ok":{}}
//! {"fault":{"fault":"lose-event@1"}}         {"ok":{}}
//! ```
//! A path that is not UTF-8 is a list of its bytes: `"image":[47,255]`. Where there are several drives `port` names one.
//!
//! Always true: a line has a limit; what is not one of these commands is refused as a whole.

mod receive;
mod send;
mod timed;

pub(crate) use receive::{CommandReceiver, receive};
pub(crate) use send::{run, socket_path};

use crate::args::FaultArgument;
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// Bytes of a line, in either direction. A path has 4096 at most, and each can take six in JSON.
const LINE_BYTES_MAX: usize = 64 << 10;

/// A command to a drive, at a port if there are several, or to the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ControlCommand {
    Status,
    Insert {
        port: Option<u8>,
        lun: u8,
        image: PathBuf,
    },
    Eject {
        port: Option<u8>,
        lun: u8,
        force: bool,
    },
    Resize {
        port: Option<u8>,
        lun: u8,
    },
    /// A drive, described as by `--drive`.
    Attach {
        drive: String,
    },
    Detach {
        port: Option<u8>,
    },
    Fault {
        port: Option<u8>,
        fault: FaultArgument,
    },
}

/// Why a line is not a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InvalidCommand(String);

impl ControlCommand {
    /// Parses a line.
    fn parse(line: &[u8]) -> Result<Self, InvalidCommand> {
        let wrong = |why: &str| InvalidCommand(why.to_owned());
        let value: Value = serde_json::from_slice(line).map_err(|error| InvalidCommand(error.to_string()))?;
        let Value::Object(commands) = value else { return Err(wrong("expected a JSON object")) };
        let mut commands = commands.into_iter();
        let (Some((name, Value::Object(mut fields))), None) = (commands.next(), commands.next()) else {
            return Err(wrong("expected one command with its fields, as in {\"status\":{}}"));
        };
        let command = match name.as_str() {
            "status" => Self::Status,
            "insert" => {
                let port = port(&mut fields)?;
                Self::Insert { port, lun: lun(&mut fields)?, image: image(&mut fields)? }
            }
            "eject" => {
                let port = port(&mut fields)?;
                Self::Eject { port, lun: lun(&mut fields)?, force: flag(&mut fields, "force")? }
            }
            "resize" => Self::Resize { port: port(&mut fields)?, lun: lun(&mut fields)? },
            "attach" => Self::Attach { drive: text(&mut fields, "drive")? },
            "detach" => Self::Detach { port: port(&mut fields)? },
            "fault" => {
                let parsed = text(&mut fields, "fault")?.parse();
                let fault = parsed.map_err(|error| InvalidCommand(format!("fault: {error}")))?;
                Self::Fault { port: port(&mut fields)?, fault }
            }
            _ => {
                return Err(wrong(
                    "unknown command; use status, insert, eject, resize, attach, detach or fault",
                ));
            }
        };
        match fields.keys().next() {
            None => Ok(command),
            Some(field) => Err(InvalidCommand(format!("{name} has no field {field:?}; remove it"))),
        }
    }

    /// The command as a value.
    fn encode(&self) -> Value {
        let (name, port, mut fields) = match self {
            Self::Status => ("status", None, json!({})),
            Self::Insert { port, lun, image } => {
                let bytes = || json!(image.as_os_str().as_bytes());
                let image = image.to_str().map_or_else(bytes, |text| json!(text));
                ("insert", *port, json!({ "lun": lun, "image": image }))
            }
            Self::Eject { port, lun, force } => ("eject", *port, json!({ "lun": lun, "force": force })),
            Self::Resize { port, lun } => ("resize", *port, json!({ "lun": lun })),
            Self::Attach { drive } => ("attach", None, json!({ "drive": drive })),
            Self::Detach { port } => ("detach", *port, json!({})),
            Self::Fault { port, fault } => ("fault", *port, json!({ "fault": fault.to_string() })),
        };
        if let Some(port) = port {
            fields["port"] = json!(port);
        }
        json!({ name: fields })
    }
}

fn port(fields: &mut Map<String, Value>) -> Result<Option<u8>, InvalidCommand> {
    let Some(value) = fields.remove("port") else { return Ok(None) };
    let number = value.as_u64().and_then(|number| u8::try_from(number).ok());
    number.map(Some).ok_or_else(|| InvalidCommand("port must be a number from 0 to 255".into()))
}

fn text(fields: &mut Map<String, Value>, name: &str) -> Result<String, InvalidCommand> {
    match fields.remove(name) {
        Some(Value::String(text)) => Ok(text),
        _ => Err(InvalidCommand(format!("{name} must be a string"))),
    }
}

fn lun(fields: &mut Map<String, Value>) -> Result<u8, InvalidCommand> {
    let value = fields.remove("lun").ok_or_else(|| InvalidCommand("lun is missing".into()))?;
    let number = value.as_u64().and_then(|number| u8::try_from(number).ok());
    number.ok_or_else(|| InvalidCommand("lun must be a number from 0 to 255".into()))
}

fn image(fields: &mut Map<String, Value>) -> Result<PathBuf, InvalidCommand> {
    let byte = |value: Value| value.as_u64().and_then(|byte| u8::try_from(byte).ok());
    let path = match fields.remove("image") {
        Some(Value::String(path)) => Some(path.into_bytes()),
        Some(Value::Array(bytes)) => bytes.into_iter().map(byte).collect(),
        _ => None,
    };
    let path = path.filter(|path| path.starts_with(b"/"));
    path.map(|path| OsString::from_vec(path).into()).ok_or_else(|| {
        InvalidCommand("image must be an absolute path, as a string or as a list of bytes".into())
    })
}

fn flag(fields: &mut Map<String, Value>, name: &str) -> Result<bool, InvalidCommand> {
    match fields.remove(name) {
        None => Ok(false),
        Some(Value::Bool(value)) => Ok(value),
        Some(_) => Err(InvalidCommand(format!("{name} must be true or false"))),
    }
}

impl fmt::Display for InvalidCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid command: {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_read_as_they_are_written() {
        let commands = [
            (ControlCommand::Status, r#"{"status":{}}"#),
            (
                ControlCommand::Insert { port: None, lun: 1, image: "/a b".into() },
                r#"{"insert":{"lun":1,"image":"/a b"}}"#,
            ),
            (
                ControlCommand::Insert {
                    port: Some(16),
                    lun: 0,
                    image: OsString::from_vec(b"/a\xff".to_vec()).into(),
                },
                r#"{"insert":{"lun":0,"image":[47,97,255],"port":16}}"#,
            ),
            (
                ControlCommand::Eject { port: None, lun: 0, force: true },
                r#"{"eject":{"lun":0,"force":true}}"#,
            ),
            (ControlCommand::Resize { port: Some(255), lun: 255 }, r#"{"resize":{"lun":255,"port":255}}"#),
            (ControlCommand::Attach { drive: "ram=1G".into() }, r#"{"attach":{"drive":"ram=1G"}}"#),
            (ControlCommand::Detach { port: Some(1) }, r#"{"detach":{"port":1}}"#),
            (
                ControlCommand::Fault { port: None, fault: "hse@3".parse().unwrap() },
                r#"{"fault":{"fault":"hse@3"}}"#,
            ),
        ];
        for (command, line) in commands {
            assert_eq!(ControlCommand::parse(line.as_bytes()), Ok(command.clone()));
            let value: Value = serde_json::from_str(line).unwrap();
            assert_eq!(command.encode(), value);
        }
        let without_force = ControlCommand::Eject { port: None, lun: 0, force: false };
        assert_eq!(ControlCommand::parse(br#" {"eject": {"lun": 0}} "#), Ok(without_force));
    }

    #[test]
    fn an_invalid_command_is_refused_as_a_whole() {
        let deep = "[".repeat(10_000);
        for line in [
            "",
            "eject",
            "[]",
            "{}",
            r#"{"eject":0}"#,
            r#"{"eject":{}}"#,
            r#"{"eject":{"lun":256}}"#,
            r#"{"eject":{"lun":-1}}"#,
            r#"{"eject":{"lun":0,"force":1}}"#,
            r#"{"eject":{"lun":0,"now":true}}"#,
            r#"{"eject":{"lun":0},"status":{}}"#,
            r#"{"insert":{"lun":0,"image":"relative"}}"#,
            r#"{"insert":{"lun":0,"image":[97,255]}}"#,
            r#"{"insert":{"lun":0,"image":[47,256]}}"#,
            r#"{"insert":{"lun":0,"image":[]}}"#,
            r#"{"insert":{"lun":0}}"#,
            r#"{"format":{"lun":0}}"#,
            r#"{"resize":{"lun":0,"port":256}}"#,
            r#"{"attach":{}}"#,
            r#"{"fault":{"fault":"hse"}}"#,
            &deep,
        ] {
            assert!(ControlCommand::parse(line.as_bytes()).is_err(), "{line:.40}");
        }
    }
}
