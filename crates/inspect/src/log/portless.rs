//! SCSI hosts and disks of which a log has lines, and not the port: excerpts begin after the drive was plugged in.
//!
//! Each gets a session with a name in place of a port, so that its lines are judged as those of any other drive. Always true: a
//! host that the log gives to another driver than `uas` and `usb-storage` gets none; lines of `uas` show that it is a USB drive.

use super::{Entry, History, Session, session};
use std::collections::{BTreeMap, BTreeSet};

/// Adds sessions for lines that no session has.
pub(super) fn add(history: &mut History<'_>) {
    let others = hosts_of_others(history);
    let mut by_host: BTreeMap<u32, usize> = BTreeMap::new();
    for index in 0..history.entries.len() {
        let Some(entry) = history.entries.get(index).copied().filter(|entry| entry.session.is_none()) else {
            continue;
        };
        let Some(host) = entry.host.filter(|host| !others.contains(host)) else { continue };
        let at = *by_host.entry(host).or_insert_with(|| {
            let mut new = Session::of_host(host, index, entry.at);
            new.one_of = history.ports_of(host);
            history.sessions.add(new)
        });
        history.sessions.note_unit(at, entry.line);
        if let Some(own) = history.sessions.get_mut(at).filter(|_| entry.line.is_of_uas()) {
            own.driver = Some("uas");
            own.is_storage = true;
        }
        history.entries[index].session = Some(at);
    }
    let of_others = |entry: &Entry<'_>| entry.host.is_some_and(|host| others.contains(&host));
    let disks = history.entries.iter().filter(|entry| of_others(entry));
    let disks: BTreeSet<&str> = disks.filter_map(|entry| session::node_of(entry.line)).collect();
    add_disks(history, &disks);
}

/// Hosts that the log gives to another driver: `scsi host0: ahci`.
pub(super) fn hosts_of_others(history: &History<'_>) -> BTreeSet<u32> {
    let is_other = |text: &str| !text.is_empty() && !text.contains([' ', ':']) && !text.starts_with("uas");
    let entries = history.entries.iter().filter(|entry| entry.line.source.starts_with("scsi host"));
    entries.filter(|entry| is_other(entry.line.text.trim())).filter_map(|entry| entry.host).collect()
}

/// Disks of which the block layer or a file system alone prints a line.
fn add_disks(history: &mut History<'_>, others: &BTreeSet<&str>) {
    for index in 0..history.entries.len() {
        let Some(entry) = history.entries.get(index).copied().filter(|entry| entry.session.is_none()) else {
            continue;
        };
        let disk = entry.line.disk_in_error().or_else(|| session::disk_of_file_system(entry.line));
        let Some(disk) = disk.filter(|disk| is_scsi_disk(disk) && !others.contains(disk)) else { continue };
        let known = history.sessions.last_with_disk(disk);
        let at = known.unwrap_or_else(|| history.sessions.add(Session::of_disk(disk, index, entry.at)));
        history.entries[index].session = Some(at);
    }
}

/// `sda` and its like: what USB drives are called.
fn is_scsi_disk(disk: &str) -> bool {
    disk.len() <= 5
        && disk
            .strip_prefix("sd")
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|sign| sign.is_ascii_lowercase()))
}
