//! `uaskit list`, `why` and `bench` in a guest: what they print for programs, checked against the kernel.

use serde_json::Value;

use crate::{Error, Result, guest::Guest};

/// Transport, decision and rule of a drive on UAS that meets every rule.
pub const MET: [&str; 3] = ["uas", "all-met", "-"];

/// The same of a drive on BOT because it does not meet this rule.
pub const fn refused(rule: &str) -> [&str; 3] {
    ["bot", "decided", rule]
}

/// Returns what `uaskit WORDS --json` prints in the guest.
pub fn ask(guest: &mut Guest, words: &str) -> Result<Value> {
    let line = format!("uaskit {words} --json");
    let printed = guest.stdout_of(&line)?;
    serde_json::from_str(&printed).map_err(|error| Error::unexpected(line, format!("{error}: {printed}")))
}

/// Returns the port of the device with that serial number, by `uaskit list`.
pub fn port_of(guest: &mut Guest, serial: &str) -> Result<String> {
    let listed = ask(guest, "list")?;
    let mut devices = listed["devices"].as_array().into_iter().flatten();
    let port = devices.find(|device| device["serial"] == serial).and_then(|device| device["port"].as_str());
    port.map(str::to_owned).ok_or_else(|| Error::unexpected(format!("find {serial}"), format!("{listed:#}")))
}

/// Returns the one diagnosis of the drive with that serial number, after checking that `list`, `why` and the kernel
/// agree about driver, transport and depth.
pub fn diagnosis(guest: &mut Guest, serial: &str) -> Result<Value> {
    let port = port_of(guest, serial)?;
    let answer = ask(guest, &format!("why {port}"))?;
    let drive = &answer["drives"][0];
    let (diagnosis, interface) = (&drive["diagnoses"][0], &drive["device"]["interfaces"][0]);
    let bound =
        guest.stdout_of(&format!("basename $(readlink /sys/bus/usb/devices/{port}:1.0/driver) || true"))?;
    let transport = match bound.trim() {
        "uas" => "uas",
        "usb-storage" => "bot",
        _ => "none",
    };
    assert_eq!(diagnosis["transport"], transport, "{serial}: {diagnosis:#}");
    assert_eq!(interface["transport"], transport, "{serial}: {drive:#}");
    if let Some(disk) = guest.disks()?.into_iter().find(|disk| disk.port == port) {
        assert_eq!(interface["disks"][0]["node"], disk.path(), "{drive:#}");
        assert_eq!(interface["disks"][0]["queue_depth"], disk.queue_depth, "{drive:#}");
        assert_eq!(interface["disks"][0]["bytes"], disk.bytes, "{drive:#}");
    }
    Ok(diagnosis.clone())
}

/// Returns transport, decision and rule (`-` without one) of a drive; the kernel must have done what the rules say.
pub fn verdict(guest: &mut Guest, serial: &str) -> Result<[String; 3]> {
    let diagnosis = diagnosis(guest, serial)?;
    assert_eq!(diagnosis["agrees"], true, "{serial}: {diagnosis:#}");
    Ok(verdict_of(&diagnosis))
}

/// Returns transport, decision and rule (`-` without one) of a diagnosis.
pub fn verdict_of(diagnosis: &Value) -> [String; 3] {
    ["transport", "decision", "rule"].map(|field| diagnosis[field].as_str().unwrap_or("-").to_owned())
}

/// Checks that a record of `bench --verify` has a row for each of these transports, in which every stamp came back.
#[track_caller]
pub fn assert_verified(record: &Value, transports: &[&str]) {
    let rows: Vec<&Value> = record["rows"].as_array().into_iter().flatten().collect();
    assert_eq!(rows.iter().map(|row| &row["transport"]).collect::<Vec<_>>(), transports, "{record:#}");
    for row in rows {
        let (ios, findings) = (row["ios"].as_u64(), &row["verify"]);
        assert!(ios > Some(0) && findings["checked"].as_u64() > Some(0), "{row}");
        assert_eq!((&row["errors"], &findings["wrong"]), (&0.into(), &0.into()), "{row}");
        assert_eq!(
            (&findings["to_read_back"], &findings["not_read_back"]),
            (&findings["read_back"], &0.into())
        );
    }
}
