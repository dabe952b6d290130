//! The texts that people paste of a machine: gathered in a guest, and given to `uaskit why --from` on the host.

use std::{fs, path::PathBuf, process::Command};

use serde_json::Value;

use super::uaskit;
use crate::{Error, Result, child, drive, guest::Guest, scratch::Scratch};

/// A text's name, and the command that prints it.
const TEXTS: &[(&str, &str)] = &[
    ("dmesg", "dmesg"),
    ("lsusb", "lsusb"),
    ("lsusb-t", "lsusb -t"),
    ("lsusb-v", "lsusb -v"),
    ("lspci-nn", "lspci -nn"),
    ("lspci-k", "lspci -k"),
    ("usb-devices", "cat /sys/kernel/debug/usb/devices"),
    ("uname", "uname -a"),
    ("lsmod", "lsmod"),
    ("cmdline", "cat /proc/cmdline"),
];

/// Checks that each text of the guest alone gives `why` the verdict that it gives in the guest, or unknown and the name of a
/// text that is missing; and that all texts together give the same verdicts.
pub fn assert_same_verdicts(guest: &mut Guest) -> Result<()> {
    let place = Scratch::new()?;
    let (mut live, mut files) = (uaskit::ask(guest, "why")?, gather(guest, &place)?);
    for _ in 0..ROUNDS_MAX {
        // What the kernel logs meanwhile belongs to both or to neither.
        let later = uaskit::ask(guest, "why")?;
        if later["absent"] == live["absent"] {
            break;
        }
        (live, files) = (later, gather(guest, &place)?);
    }
    for file in &files {
        assert_agrees(&live, &Answer::of(std::slice::from_ref(file))?)?;
    }
    let complete = Answer::of(&files)?;
    assert_agrees(&live, &complete)?;
    let verdicts =
        |answer: &Value| -> Vec<[String; 3]> { diagnoses(answer).map(uaskit::verdict_of).collect() };
    assert_eq!(verdicts(&complete.value), verdicts(&live), "{:#}", complete.value);
    Ok(())
}

/// How often the texts are gathered until nothing changes meanwhile.
const ROUNDS_MAX: usize = 5;

/// Writes the texts of the guest to files.
fn gather(guest: &mut Guest, place: &Scratch) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for (name, command) in TEXTS {
        // lsusb fails for a device that goes away meanwhile; what it prints of the others counts.
        let text = guest.run(command)?.stdout;
        assert!(!text.is_empty(), "`{command}` prints nothing");
        let path = place.path(&format!("{name}.txt"));
        fs::write(&path, text).map_err(Error::io(format!("write {}", path.display())))?;
        files.push(path);
    }
    Ok(files)
}

/// The JSON output of `why --from` for some texts.
struct Answer<'a> {
    files: &'a [PathBuf],
    value: Value,
}

impl<'a> Answer<'a> {
    fn of(files: &'a [PathBuf]) -> Result<Self> {
        let (printed, _) = why(files, &["--json"])?;
        let value = serde_json::from_str(&printed).map_err(|error| {
            Error::unexpected(format!("why --from {files:?}"), format!("{error}: {printed}"))
        })?;
        Ok(Self { files, value })
    }

    /// The commands whose output is missing to say more of a drive, or of all without one.
    fn missing(&self, drive: Option<&str>) -> Result<String> {
        let (printed, errors) = why(self.files, drive.as_slice())?;
        let missing = printed.split_once("Missing from the report").map_or("", |(_, missing)| missing);
        Ok(format!("{missing}{errors}"))
    }
}

/// Runs `uaskit why --from FILES WORDS` on the host, and returns what it prints on standard output and error.
fn why(files: &[PathBuf], words: &[&str]) -> Result<(String, String)> {
    /// The evidence is not enough.
    const UNKNOWN: i32 = 4;
    let mut command = Command::new(drive::binary()?);
    command.arg("why").arg("--from").args(files).args(words);
    let report = child::report_of(&mut command)?;
    let [printed, errors] =
        [report.stdout, report.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    match report.end.code() {
        Some(0 | UNKNOWN) => Ok((printed, errors)),
        _ => Err(Error::unexpected(format!("why --from {files:?}"), format!("{}: {errors}", report.end))),
    }
}

/// Every diagnosis of an answer, in the order of its drives.
fn diagnoses(answer: &Value) -> impl Iterator<Item = &Value> {
    let drives = answer["drives"].as_array().into_iter().flatten();
    drives.flat_map(|drive| drive["diagnoses"].as_array().into_iter().flatten())
}

/// The names of causes, which only the kernel's log shows.
fn causes(diagnosis: &Value) -> Vec<&str> {
    let causes = diagnosis["causes"].as_array().into_iter().flatten();
    causes.filter_map(|cause| cause["cause"].as_str()).collect()
}

/// Checks each drive of the texts against the live answer, and that a drive which they do not show is named as missing.
fn assert_agrees(live: &Value, answer: &Answer<'_>) -> Result<()> {
    let drives = |answer: &Value| answer["drives"].as_array().cloned().unwrap_or_default();
    let (there, found) = (drives(live), drives(&answer.value));
    for drive in &found {
        let like_it = |field: &str| -> Vec<&Value> {
            let is_alike = |one: &&Value| one["device"][field] == drive["device"][field];
            there.iter().filter(is_alike).map(|one| &one["diagnoses"][0]).collect()
        };
        // Some texts have no ports, some no ids.
        let by_port = like_it("port");
        let candidates = if by_port.is_empty() { like_it("id") } else { by_port };
        let missing = answer.missing(drive["device"]["port"].as_str())?;
        assert_verdict(&candidates, &drive["diagnoses"][0], &missing, answer.files);
    }
    let absent = |answer: &Value| -> Vec<[String; 2]> {
        let all = answer["absent"].as_array().into_iter().flatten();
        all.map(|one| ["place", "kind"].map(|field| one[field].as_str().unwrap_or("-").to_owned())).collect()
    };
    let (gone, found_gone) = (absent(live), absent(&answer.value));
    assert!(found_gone.iter().all(|one| gone.contains(one)), "{:?}: {found_gone:?}", answer.files);
    if (found.len(), found_gone.len()) != (there.len(), gone.len()) {
        let missing = answer.missing(None)?;
        assert!(!missing.is_empty(), "{:?} show {} of {} drives", answer.files, found.len(), there.len());
    }
    Ok(())
}

/// Checks one verdict: the same as one of these live ones, or unknown with the name of a text that is missing.
fn assert_verdict(candidates: &[&Value], diagnosis: &Value, missing: &str, files: &[PathBuf]) {
    let [transport, decision, rule] = uaskit::verdict_of(diagnosis);
    let is_same = |live: &&&Value| {
        let [live_transport, live_decision, live_rule] = uaskit::verdict_of(live);
        let is_transport_open = transport == "unknown" && !missing.is_empty();
        (live_transport == transport || is_transport_open)
            && (live_decision, live_rule) == (decision.clone(), rule.clone())
    };
    let Some(same) = candidates.iter().find(is_same) else {
        let is_open = ["supposed", "not-shown"].contains(&decision.as_str()) && !missing.is_empty();
        assert!(is_open, "{files:?}: {diagnosis:#}\ninstead of {candidates:#?}\nmissing: {missing}");
        return;
    };
    let (causes, live) = (causes(diagnosis), causes(same));
    let is_open = causes.is_empty() && missing.contains("dmesg");
    assert!(causes == live || is_open, "{files:?}: {causes:?} instead of {live:?}, missing: {missing}");
}
