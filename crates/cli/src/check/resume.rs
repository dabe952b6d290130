//! The file of a pass over all blocks that is continued later (`--resume`): one JSON object, replaced as a whole.
//!
//! Left out: whether the run is one of this drive, which the test checks. Always true: a file of another kind is not replaced; a
//! file that was saved is complete.

use crate::failure::Failure;
use crate::output_file::{self, Kind};
use crate::sanitize::shown;
use crate::text_file;
use atomic_file::AtomicFile;
use conformance::{DriveIdentity, RepeatedBlock, RunStore, WholeRun, WrongBlocks};
use serde_json::{Value, json};
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The version of the file.
const VERSION: u64 = 1;

/// Bytes of the longest file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Permissions of the file.
const MODE: u32 = 0o644;

/// The file, and the run in it.
#[derive(Debug)]
pub(super) struct ResumeFile {
    path: PathBuf,
    run: Option<WholeRun>,
    probe_fault: Option<String>,
}

impl ResumeFile {
    /// Reads the file, if it exists.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        output_file::check_replaceable(path, Kind::SavedRun)?;
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        if !path.try_exists().map_err(|error| Failure::unreadable(&path, &error))? {
            return Ok(Self { path, run: None, probe_fault: None });
        }
        let text = text_file::read(&path, "run of uaskit check", FILE_BYTES_MAX)?;
        let parsed = parse(&text).map_err(|why| {
            Failure::new(format!("cannot continue the run in {}", shown(&path)))
                .because(why)
                .try_this("Remove the file to begin again.")
        })?;
        Ok(Self { path, run: Some(parsed), probe_fault: None })
    }

    /// Returns whether a run was saved that is not complete.
    pub(super) const fn has_run(&self) -> bool {
        self.run.is_some()
    }

    fn write(&self, run: &WholeRun) -> io::Result<()> {
        let file = AtomicFile::create(&self.path, MODE)?;
        writeln!(file.file(), "{:#}", document(run))?;
        file.commit_durably()
    }
}

impl RunStore for ResumeFile {
    fn saved(&self) -> Option<&WholeRun> {
        self.run.as_ref()
    }

    fn save(&mut self, run: Option<&WholeRun>) -> Result<(), String> {
        let saved = match run {
            Some(run) => self.write(run),
            None => match fs::remove_file(&self.path) {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                removed => removed,
            },
        };
        self.run = run.cloned();
        saved.map_err(|error| format!("{}: {error}", shown(&self.path)))
    }

    fn keep_probe_fault(&mut self, fault: Option<String>) {
        self.probe_fault = fault;
    }

    fn probe_fault(&self) -> Option<String> {
        self.probe_fault.clone()
    }
}

fn document(run: &WholeRun) -> Value {
    let WholeRun { drive, session, probe_fault, written, read, wrong, repeated } = run;
    let blocks = |of: &WrongBlocks| json!({ "kind": of.kind, "count": of.count, "first": of.first, "holds": of.holds });
    json!({
        "check_run": VERSION,
        "drive": {
            "ids": drive.ids,
            "serial": drive.serial,
            "blocks": drive.blocks,
            "block_bytes": drive.block_bytes,
        },
        "session": session,
        "probe_fault": probe_fault,
        "written": written,
        "read": read,
        "wrong": wrong.iter().map(blocks).collect::<Vec<_>>(),
        "repeated": repeated.as_ref().map(|repeated| {
            json!({ "wrong": blocks(&repeated.wrong), "content": repeated.content })
        }),
    })
}

fn parse(text: &str) -> Result<WholeRun, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    match value["check_run"].as_u64() {
        Some(VERSION) => {}
        Some(other) => return Err(format!("version {other} is not supported; this is for {VERSION}")),
        None => return Err("it has no field `check_run`".into()),
    }
    let drive = &value["drive"];
    let ids = drive["ids"].as_array().map(Vec::as_slice).unwrap_or_default();
    let [vendor, product, release] = ids else { return Err("`drive.ids` are three numbers".into()) };
    let id = |id: &Value| small(id, "drive.ids");
    Ok(WholeRun {
        drive: DriveIdentity {
            ids: [id(vendor)?, id(product)?, id(release)?],
            serial: text_of(drive, "serial")?,
            blocks: number(drive, "blocks")?,
            block_bytes: small(&drive["block_bytes"], "drive.block_bytes")?,
        },
        session: small(&value["session"], "session")?,
        probe_fault: value["probe_fault"].as_str().map(str::to_owned),
        written: number(&value, "written")?,
        read: number(&value, "read")?,
        wrong: value["wrong"]
            .as_array()
            .ok_or("`wrong` is a list")?
            .iter()
            .map(wrong_blocks)
            .collect::<Result<_, _>>()?,
        repeated: match &value["repeated"] {
            Value::Null => None,
            repeated => Some(RepeatedBlock {
                wrong: wrong_blocks(&repeated["wrong"])?,
                content: repeated["content"]
                    .as_array()
                    .ok_or("`repeated.content` is a list of bytes")?
                    .iter()
                    .map(|byte| small(byte, "repeated.content"))
                    .collect::<Result<_, _>>()?,
            }),
        },
    })
}

fn wrong_blocks(value: &Value) -> Result<WrongBlocks, String> {
    Ok(WrongBlocks {
        kind: text_of(value, "kind")?,
        count: number(value, "count")?,
        first: number(value, "first")?,
        holds: number(value, "holds")?,
    })
}

fn number(value: &Value, field: &str) -> Result<u64, String> {
    value[field].as_u64().ok_or_else(|| format!("`{field}` is a number"))
}

fn small<N: TryFrom<u64>>(value: &Value, field: &str) -> Result<N, String> {
    let small = value.as_u64().and_then(|number| N::try_from(number).ok());
    small.ok_or_else(|| format!("`{field}` is a number that fits"))
}

fn text_of(value: &Value, field: &str) -> Result<String, String> {
    value[field].as_str().map(str::to_owned).ok_or_else(|| format!("`{field}` is a text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> WholeRun {
        let wrong = WrongBlocks { kind: "wrapped".into(), count: u64::MAX, first: 3, holds: 1 << 60 };
        WholeRun {
            drive: DriveIdentity {
                ids: [0x1209, 1, 0x100],
                serial: "A\"1".into(),
                blocks: 1 << 40,
                block_bytes: 4096,
            },
            session: u32::MAX,
            probe_fault: Some("LBA 7 is damaged".into()),
            written: 1 << 40,
            read: 12,
            wrong: vec![wrong.clone()],
            repeated: Some(RepeatedBlock { wrong, content: vec![0, 255] }),
        }
    }

    #[test]
    fn a_run_is_read_as_it_was_written() {
        let whole = run();
        assert_eq!(parse(&document(&whole).to_string()), Ok(whole));
        let bare = WholeRun { probe_fault: None, wrong: Vec::new(), repeated: None, ..run() };
        assert_eq!(parse(&document(&bare).to_string()), Ok(bare));
    }

    #[test]
    fn whatever_is_missing_or_wrong_is_an_error() {
        for field in ["drive", "session", "written", "read", "wrong"] {
            let mut value = document(&run());
            value[field] = Value::Null;
            assert!(parse(&value.to_string()).is_err(), "{field}");
            value[field] = json!(-1);
            assert!(parse(&value.to_string()).is_err(), "{field}");
        }
        assert!(parse("{}").unwrap_err().contains("check_run"));
        assert!(parse("{\"check_run\": 2}").unwrap_err().contains("version 2"));
        assert!(parse("[").is_err());
    }
}
