//! Which SCSI host is which drive's, where no line says so: `scsi host0: uas` names no port.
//!
//! In order: the port that is reset while the host's error handler runs; the one that is left when all others are known; the
//! port that disconnects together with the host; the only host and the only port. Always true: where two answers are
//! possible none is given, and the host keeps the ports that it may have.

use super::portless::hosts_of_others;
use super::{AmbiguousHost, Entry, History, Session, host_of, session};
use crate::inventory::{LinkSpeed, is_storage_id};

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
        let are_announced = self.sessions.iter().any(|session| session.id.is_some());
        let is_waiting = |session: &Session| {
            session.hosts.is_empty()
                && !session.is_ended()
                && (session.id.is_some() || !are_announced && session.is_from_start)
                && session.hub_ports == 0
                && session.driver.is_none_or(|own| own == driver)
                && !(session.is_left_by_uas && driver == "uas")
        };
        let all: Vec<(usize, &Session)> =
            self.sessions.iter().enumerate().filter(|(_, session)| is_waiting(session)).collect();
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
                self.ambiguous.push(AmbiguousHost { host, sessions: likely });
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
            let Some(Entry { line, session, .. }) = self.entries.get(index).copied() else { break };
            if line.text.starts_with("uas_eh_device_reset_handler start") {
                resetting = host_of(line.source);
            } else if line.text.starts_with("uas_eh_device_reset_handler ") {
                if let (None, Some(host), Some((port, at))) = (resetting, host_of(line.source), last_reset)
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
        for index in 0..self.entries.len() {
            let Some(Entry { line, session: None, .. }) = self.entries.get(index).copied() else { continue };
            let by_host = host_of(line.source)
                .and_then(|host| self.sessions.iter().position(|session| session.hosts.contains(&host)))
                // What came before a device was plugged in is about another.
                .filter(|found| {
                    self.sessions.get(*found).is_some_and(|one| !one.is_from_start || one.first < index)
                });
            if let Some(found) = by_host {
                if let Some(session) = self.sessions.get_mut(found) {
                    session::note_unit(session, line);
                }
                self.entries[index].session = Some(found);
            }
        }
        for index in 0..self.entries.len() {
            let Some(Entry { line, session: None, .. }) = self.entries.get(index).copied() else { continue };
            let disk = line.disk_in_error().or_else(|| session::disk_of_file_system(line));
            let found =
                disk.and_then(|disk| self.sessions.iter().rposition(|session| session.has_disk(disk)));
            let found = found.or_else(|| self.of_vdev(line.vdev_in_error()?));
            self.entries[index].session = found;
        }
    }

    /// Gives a SCSI host of `uas` to a session, unless another session has it.
    fn give_host(&mut self, session: usize, host: u32) {
        if !self.sessions.iter().any(|one| one.hosts.contains(&host))
            && let Some(session) = self.sessions.get_mut(session)
        {
            session.hosts.push(host);
            session.is_storage = true;
            session.driver = session.driver.or(Some("uas"));
        }
    }

    /// One host without a session and one session without a host belong together.
    fn attribute_only_host(&mut self) {
        let hosts = self.hosts_without_session();
        let is_open = |session: &Session| {
            !session.is_from_start
                && session.hosts.is_empty()
                && session.hub_ports == 0
                && (session.number.is_some() || session.is_storage)
        };
        // A host that appears in the log is not that of a device that was there before.
        let is_new = |host: u32| {
            let mut entries = self.entries.iter().filter(|entry| host_of(entry.line.source) == Some(host));
            entries.any(|entry| entry.line.begins(&["Direct-Access", "CD-ROM", "uas"]))
        };
        let appeared: Vec<u32> = hosts.iter().copied().filter(|host| is_new(*host)).collect();
        let mut open = self
            .sessions
            .iter_mut()
            .filter(|session| is_open(session) && (session.is_storage || appeared.is_empty()));
        if let ([host], Some(session), None) = (hosts.as_slice(), open.next(), open.next()) {
            let host = *host;
            let is_uas = self
                .entries
                .iter()
                .any(|entry| host_of(entry.line.source) == Some(host) && entry.line.is_of_uas());
            session.hosts.push(host);
            session.is_storage = true;
            session.driver = session.driver.or(is_uas.then_some("uas"));
        }
    }

    /// Gives a SCSI host of which one session is left to that session, and notes the ports of the others.
    fn attribute_by_elimination(&mut self) {
        loop {
            let is_free = |at: &usize| self.sessions.get(*at).is_some_and(|session| session.hosts.is_empty());
            let is_open = |host: u32| !self.sessions.iter().any(|session| session.hosts.contains(&host));
            let found = self.ambiguous.iter().filter(|one| is_open(one.host)).find_map(|one| {
                let mut free = one.sessions.iter().filter(|at| is_free(at));
                free.next().filter(|_| free.next().is_none()).map(|at| (*at, one.host))
            });
            let Some((session, host)) = found else { break };
            self.give_host(session, host);
        }
        let hosts: Vec<u32> = self.ambiguous.iter().map(|one| one.host).collect();
        let is_given = |host: &u32| self.sessions.iter().any(|session| session.hosts.contains(host));
        let open = hosts.iter().filter(|host| !is_given(host)).count();
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
        let mut found: Vec<(usize, u32)> = Vec::new();
        for host in self.hosts_without_session() {
            let lines: Vec<&Entry<'_>> =
                self.entries.iter().filter(|entry| host_of(entry.line.source) == Some(host)).collect();
            let is_near = |session: &Session| {
                let end = session.ended.and_then(|end| self.entries.get(end));
                end.is_some_and(|end| lines.iter().any(|line| is_together(end, line)))
            };
            let is_hub = |session: &Session| {
                let start = format!("{}.", session.port);
                session.hub_ports > 0 || self.sessions.iter().any(|other| other.port.starts_with(&start))
            };
            let is_one = |session: &Session| session.hosts.is_empty() && is_near(session) && !is_hub(session);
            let mut sessions = self.sessions.iter().enumerate().filter(|(_, session)| is_one(session));
            if let (Some((at, _)), None) = (sessions.next(), sessions.next()) {
                found.push((at, host));
            }
        }
        for (at, host) in &found {
            if found.iter().filter(|(other, _)| other == at).count() > 1 {
                continue;
            }
            let is_uas = self.is_of_uas(*host);
            if let Some(session) = self.sessions.get_mut(*at) {
                session.hosts.push(*host);
                session.is_storage = true;
                session.driver = session.driver.or(is_uas.then_some("uas"));
            }
        }
    }

    /// The only disk in errors, of which the log has no host, is that of the only device that was reset.
    fn attribute_only_disk(&mut self) {
        let open = self.entries.iter().filter(|entry| entry.session.is_none());
        let mut disks: Vec<&str> = open.filter_map(|entry| entry.line.disk_in_error()).collect();
        disks.sort_unstable();
        disks.dedup();
        let has_host = self.entries.iter().any(|entry| host_of(entry.line.source).is_some());
        let is_reset = |at: usize| {
            let mut own = self.entries.iter().filter(|entry| entry.session == Some(at));
            own.any(|entry| entry.line.begins(&["reset "]))
        };
        let is_open = |session: &Session| {
            !session.is_from_start
                && session.hosts.is_empty()
                && session.hub_ports == 0
                && session.is_located()
        };
        let mut sessions =
            self.sessions.iter().enumerate().filter(|(at, session)| is_open(session) && is_reset(*at));
        let only = (sessions.next(), sessions.next());
        if let ([disk], (Some((at, _)), None), false) = (disks.as_slice(), only, has_host) {
            let unit = session::Unit { node: Some((*disk).to_owned()), ..session::Unit::default() };
            if let Some(session) = self.sessions.get_mut(at) {
                session.units.push(unit);
                session.is_storage = true;
            }
        }
    }

    /// SCSI hosts that no session has, without those of other drivers.
    fn hosts_without_session(&self) -> Vec<u32> {
        let others = hosts_of_others(self);
        let open = self.entries.iter().filter(|entry| entry.session.is_none());
        let mut hosts: Vec<u32> = open.filter_map(|entry| host_of(entry.line.source)).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts.retain(|host| {
            !others.contains(host) && !self.sessions.iter().any(|session| session.hosts.contains(host))
        });
        hosts
    }

    /// Whether `uas` prints lines of a SCSI host.
    fn is_of_uas(&self, host: u32) -> bool {
        let mut entries = self.entries.iter();
        entries.any(|entry| host_of(entry.line.source) == Some(host) && entry.line.is_of_uas())
    }
}

/// Whether two lines are about one event.
fn is_together(end: &Entry<'_>, line: &Entry<'_>) -> bool {
    let is_near = end.index.abs_diff(line.index) <= END_LINES_MAX;
    is_near && end.at.zip(line.at).is_none_or(|(end, line)| (end - line).abs() <= END_S)
}
