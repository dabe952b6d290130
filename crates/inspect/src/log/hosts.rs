//! Which SCSI host is which drive's, where no line says so: `scsi host0: uas` names no port.
//!
//! In order: the port that is reset while the host's error handler runs; the one that is left when all others are known; the
//! port that disconnects together with the host; the only host and the only port. Always true: where two answers are
//! possible none is given, and the host keeps the ports that it may have.

use super::portless::hosts_of_others;
use super::{AMBIGUOUS_MAX, AmbiguousHost, Entry, History, Session, session};
use crate::inventory::{LinkSpeed, is_storage_id};
use std::collections::{BTreeMap, BTreeSet};

/// Lines from the reset of a port to the end of the reset as `uas` prints it.
const RESET_LINES_MAX: usize = 12;

/// Lines between the disconnect of a port and what its SCSI host prints of it.
const END_LINES_MAX: usize = 16;

/// Seconds between them.
const END_S: f64 = 3.0;

impl History<'_> {
    /// The session that waits for a SCSI host of that driver; `None`, and remembered, if several do.
    pub(super) fn waiting_for(&mut self, host: u32, driver: &str) -> Option<usize> {
        // Some kernels of routers print no ids at all.
        let are_announced = self.sessions.are_announced();
        let is_waiting = |session: &Session| {
            (session.id.is_some() || !are_announced && session.is_from_start)
                && session.hub_ports == 0
                && session.driver.is_none_or(|own| own == driver)
                && !(session.is_left_by_uas && driver == "uas")
        };
        let all: Vec<(usize, &Session)> =
            self.sessions.free().filter(|(_, session)| is_waiting(session)).collect();
        let is_known = |session: &Session| session.is_storage || session.id.is_some_and(is_storage_id);
        let is_fast = |session: &Session| matches!(session.speed, Some(LinkSpeed::Super { .. }));
        let of = |is_one: &dyn Fn(&Session) -> bool| -> Vec<usize> {
            all.iter().filter(|(_, session)| is_one(session)).map(|(at, _)| *at).collect()
        };
        let known = of(&is_known);
        let likely = if known.is_empty() { of(&is_fast) } else { known };
        match likely.as_slice() {
            [one] => Some(*one),
            // usb-storage names the port.
            [_, _, ..] if driver == "uas" => {
                if self.ambiguous.len() < AMBIGUOUS_MAX {
                    self.ambiguous.push(AmbiguousHost { host, sessions: likely });
                }
                None
            }
            _ => all.last().map(|(at, _)| *at),
        }
    }

    /// Gives lines of SCSI hosts that were there before the log began to the session that has the host: by a reset that
    /// names host and port one after the other, or because there is one of each.
    pub(super) fn attribute_hosts(&mut self) {
        let mut resetting: Option<u32> = None;
        // A log may begin after the line that says that the reset starts.
        let mut last_reset: Option<(usize, usize)> = None;
        for index in 0..self.entries.len() {
            let Some(Entry { line, host, session, .. }) = self.entries.get(index).copied() else { break };
            if line.text.starts_with("uas_eh_device_reset_handler start") {
                resetting = host;
            } else if line.text.starts_with("uas_eh_device_reset_handler ") {
                if let (None, Some(host), Some((port, at))) = (resetting, host, last_reset)
                    && index - at <= RESET_LINES_MAX
                {
                    self.give_host(port, host);
                }
                resetting = None;
            } else if let Some(session) = session.filter(|_| line.begins(&["reset ", "device not accepting"]))
                && resetting.is_none()
            {
                last_reset = Some((session, index));
            } else if let (Some(host), Some(session)) = (resetting, session)
                && line.text.starts_with("reset ")
            {
                self.give_host(session, host);
            }
        }
        self.attribute_by_elimination();
        self.attribute_at_ends();
        self.attribute_only_host();
        self.attribute_only_disk();
        self.attribute_lines();
    }

    /// Gives lines without a session to the one that has their host or disk by now.
    fn attribute_lines(&mut self) {
        for index in 0..self.entries.len() {
            let Some(Entry { line, host: Some(host), session: None, .. }) = self.entries.get(index).copied()
            else {
                continue;
            };
            // What came before a device was plugged in is about another.
            let is_meant = |session: &Session| !session.is_from_start || session.first < index;
            let found = self.sessions.first_with_host(host);
            let found = found.filter(|at| self.sessions.get(*at).is_some_and(is_meant));
            if let Some(found) = found {
                self.sessions.note_unit(found, line);
                self.entries[index].session = Some(found);
            }
        }
        let only = self.only_drive();
        for index in 0..self.entries.len() {
            let Some(Entry { line, session: None, .. }) = self.entries.get(index).copied() else { continue };
            let disk = line.disk_in_error().or_else(|| session::disk_of_file_system(line));
            let found = disk.and_then(|disk| self.sessions.last_with_disk(disk));
            let found = found.or_else(|| self.of_vdev(line.vdev_in_error()?, only));
            self.entries[index].session = found;
        }
    }

    /// Gives a SCSI host of `uas` to a session, unless another session has it.
    fn give_host(&mut self, at: usize, host: u32) {
        if !self.sessions.has_host(host) {
            self.sessions.add_host(at, host);
            if let Some(session) = self.sessions.get_mut(at) {
                session.is_storage = true;
                session.driver = session.driver.or(Some("uas"));
            }
        }
    }

    /// One host without a session and one session without a host belong together.
    fn attribute_only_host(&mut self) {
        let hosts = self.lines_of_open_hosts();
        let is_open = |session: &Session| {
            !session.is_from_start
                && session.hosts.is_empty()
                && session.hub_ports == 0
                && (session.number.is_some() || session.is_storage)
        };
        // A host that appears in the log is not that of a device that was there before.
        let is_new = |lines: &Vec<usize>| {
            let mut entries = self.entries_at(lines);
            entries.any(|(_, entry)| entry.line.begins(&["Direct-Access", "CD-ROM", "uas"]))
        };
        let has_appeared = hosts.values().any(is_new);
        let is_meant = |session: &Session| is_open(session) && (session.is_storage || !has_appeared);
        let mut open = self.sessions.iter().enumerate().filter(|(_, session)| is_meant(session));
        let mut hosts = hosts.into_iter();
        if let (Some((host, lines)), None, Some((at, _)), None) =
            (hosts.next(), hosts.next(), open.next(), open.next())
        {
            self.give_open_host(at, host, &lines);
        }
    }

    /// Gives a SCSI host, whose lines are known, to a session; its driver is `uas` if that prints one of them.
    fn give_open_host(&mut self, at: usize, host: u32, lines: &[usize]) {
        let is_uas = self.entries_at(lines).any(|(_, entry)| entry.line.is_of_uas());
        self.sessions.add_host(at, host);
        if let Some(session) = self.sessions.get_mut(at) {
            session.is_storage = true;
            session.driver = session.driver.or(is_uas.then_some("uas"));
        }
    }

    /// Gives a SCSI host of which one session is left to that session, and notes the ports of the others.
    fn attribute_by_elimination(&mut self) {
        loop {
            let is_free = |at: &usize| self.sessions.get(*at).is_some_and(|session| session.hosts.is_empty());
            let is_open = |host: u32| !self.sessions.has_host(host);
            let found = self.ambiguous.iter().filter(|one| is_open(one.host)).find_map(|one| {
                let mut free = one.sessions.iter().filter(|at| is_free(at));
                free.next().filter(|_| free.next().is_none()).map(|at| (*at, one.host))
            });
            let Some((session, host)) = found else { break };
            self.give_host(session, host);
        }
        let hosts: Vec<u32> = self.ambiguous.iter().map(|one| one.host).collect();
        let open = hosts.iter().filter(|host| !self.sessions.has_host(**host)).count();
        let mut free: Vec<usize> = self.ambiguous.iter().flat_map(|one| one.sessions.clone()).collect();
        free.sort_unstable();
        free.dedup();
        free.retain(|at| self.sessions.get(*at).is_some_and(|session| session.hosts.is_empty()));
        // As many hosts as sessions: each of them is on UAS.
        if open == free.len() {
            for at in free {
                if let Some(session) = self.sessions.get_mut(at) {
                    session.driver = Some("uas");
                    session.is_storage = true;
                }
            }
        }
    }

    /// The ports that a SCSI host may have, unless it was given to one.
    pub(super) fn ports_of(&self, host: u32) -> Vec<String> {
        let one = self.ambiguous.iter().find(|one| one.host == host);
        let sessions = one.into_iter().flat_map(|one| &one.sessions);
        let sessions = sessions.filter_map(|at| self.sessions.get(*at));
        sessions.filter(|session| session.hosts.is_empty()).map(|session| session.port.clone()).collect()
    }

    /// Gives a SCSI host whose lines surround the disconnect of one port to that port.
    fn attribute_at_ends(&mut self) {
        let hosts = self.lines_of_open_hosts();
        let ended = self.sessions.iter().enumerate();
        let ends: BTreeMap<usize, usize> =
            ended.filter_map(|(at, session)| Some((session.ended?, at))).collect();
        let is_hub =
            |session: &Session| session.hub_ports > 0 || self.sessions.behind(&session.port).next().is_some();
        let is_one = |session: &Session| session.hosts.is_empty() && !is_hub(session);
        let near = |line: &Entry<'_>| {
            let lines = line.index.saturating_sub(END_LINES_MAX)..=line.index + END_LINES_MAX;
            let is_together = |end: usize| self.entries.get(end).is_some_and(|end| is_together(end, line));
            ends.range(lines).filter(|(end, _)| is_together(**end)).map(|(_, at)| *at).collect::<Vec<_>>()
        };
        let mut found: Vec<(usize, u32)> = Vec::new();
        for (host, lines) in &hosts {
            let sessions: BTreeSet<usize> = self.entries_at(lines).flat_map(|(_, line)| near(line)).collect();
            let mut sessions = sessions.into_iter().filter(|at| self.sessions.get(*at).is_some_and(is_one));
            if let (Some(at), None) = (sessions.next(), sessions.next()) {
                found.push((at, *host));
            }
        }
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        found.iter().for_each(|(at, _)| *counts.entry(*at).or_default() += 1);
        found.retain(|(at, _)| counts.get(at) == Some(&1));
        for (at, host) in found {
            self.give_open_host(at, host, hosts.get(&host).map_or(&[], Vec::as_slice));
        }
    }

    /// The only disk in errors, of which the log has no host, is that of the only device that was reset.
    fn attribute_only_disk(&mut self) {
        let open = self.entries.iter().filter(|entry| entry.session.is_none());
        let mut disks: Vec<&str> = open.filter_map(|entry| entry.line.disk_in_error()).collect();
        disks.sort_unstable();
        disks.dedup();
        let has_host = self.entries.iter().any(|entry| entry.host.is_some());
        let resets = self.entries.iter().filter(|entry| entry.line.begins(&["reset "]));
        let reset: BTreeSet<usize> = resets.filter_map(|entry| entry.session).collect();
        let is_open = |session: &Session| {
            !session.is_from_start
                && session.hosts.is_empty()
                && session.hub_ports == 0
                && session.is_located()
        };
        let mut sessions =
            self.sessions.iter().enumerate().filter(|(at, session)| is_open(session) && reset.contains(at));
        let only = (sessions.next(), sessions.next());
        if let ([disk], (Some((at, _)), None), false) = (disks.as_slice(), only, has_host) {
            self.sessions.add_disk(at, disk);
            if let Some(session) = self.sessions.get_mut(at) {
                session.is_storage = true;
            }
        }
    }

    /// SCSI hosts that no session has, without those of other drivers, with all of their lines.
    fn lines_of_open_hosts(&self) -> BTreeMap<u32, Vec<usize>> {
        let others = hosts_of_others(self);
        let mut hosts: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        let is_open = |host: &u32| !others.contains(host) && !self.sessions.has_host(*host);
        for (host, index) in
            self.entries.iter().filter_map(|entry| Some((entry.host.filter(is_open)?, entry.index)))
        {
            hosts.entry(host).or_default().push(index);
        }
        hosts
    }
}

/// Whether two lines are about one event.
fn is_together(end: &Entry<'_>, line: &Entry<'_>) -> bool {
    let is_near = end.index.abs_diff(line.index) <= END_LINES_MAX;
    is_near && end.at.zip(line.at).is_none_or(|(end, line)| (end - line).abs() <= END_S)
}
