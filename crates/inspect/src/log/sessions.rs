//! All sessions of a log, found by port, SCSI host or disk without a search.
//!
//! Always true: the indices have every port, host and disk of every session, so whatever changes one of them goes through a
//! method here; a log of n lines needs a number of steps of the order of n log n. Left out: which line is about which session.

use super::{LogLine, Session, session};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

/// Sessions that are looked at for a SCSI host whose line names no port, the last ones: those that have none and were not
/// disconnected. Devices that are no drives are among them.
const WAITING_MAX: usize = 256;

/// The sessions, in the order of their first lines, with indices.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    all: Vec<Session>,
    by_port: BTreeMap<String, Vec<usize>>,
    by_host: BTreeMap<u32, Vec<usize>>,
    by_disk: BTreeMap<String, Vec<usize>>,
    /// Sessions without a SCSI host that were not disconnected.
    free: BTreeSet<usize>,
    are_announced: bool,
}

impl Deref for Sessions {
    type Target = [Session];

    fn deref(&self) -> &[Session] {
        &self.all
    }
}

impl Sessions {
    /// Adds a session and returns its place.
    pub(super) fn add(&mut self, session: Session) -> usize {
        let at = self.all.len();
        self.by_port.entry(session.port.clone()).or_default().push(at);
        for host in &session.hosts {
            self.by_host.entry(*host).or_default().push(at);
        }
        for node in session.units.iter().filter_map(|unit| unit.node.as_ref()) {
            self.by_disk.entry(node.clone()).or_default().push(at);
        }
        if session.hosts.is_empty() && !session.is_ended() {
            self.free.insert(at);
        }
        self.all.push(session);
        at
    }

    /// All of them.
    #[cfg(test)]
    pub(super) fn as_slice(&self) -> &[Session] {
        &self.all
    }

    /// The session at a place, to change what no index has: not its port, hosts, units or end.
    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut Session> {
        self.all.get_mut(at)
    }

    /// The sessions of a port, in order.
    pub(crate) fn at_port(&self, port: &str) -> &[usize] {
        self.by_port.get(port).map_or(&[], Vec::as_slice)
    }

    /// Every port that has sessions, sorted.
    pub(crate) fn ports(&self) -> impl Iterator<Item = &str> {
        self.by_port.keys().map(String::as_str)
    }

    /// The sessions of ports behind a hub.
    pub(crate) fn behind(&self, hub: &str) -> impl Iterator<Item = &Session> {
        let start = format!("{hub}.");
        let ports = self.by_port.range(start.clone()..).take_while(move |(port, _)| port.starts_with(&start));
        ports.flat_map(|(_, own)| own).filter_map(|at| self.all.get(*at))
    }

    pub(super) fn last_at(&self, port: &str) -> Option<usize> {
        self.at_port(port).last().copied()
    }

    pub(super) fn has_host(&self, host: u32) -> bool {
        self.by_host.contains_key(&host)
    }

    pub(super) fn first_with_host(&self, host: u32) -> Option<usize> {
        self.by_host.get(&host)?.iter().min().copied()
    }

    pub(super) fn last_with_host(&self, host: u32) -> Option<usize> {
        self.by_host.get(&host)?.iter().max().copied()
    }

    pub(super) fn last_with_disk(&self, disk: &str) -> Option<usize> {
        self.by_disk.get(disk)?.iter().max().copied()
    }

    /// Whether a session has ids: some kernels of routers print none at all.
    pub(super) const fn are_announced(&self) -> bool {
        self.are_announced
    }

    /// The last [`WAITING_MAX`] sessions without a SCSI host that were not disconnected, in order.
    pub(super) fn free(&self) -> impl Iterator<Item = (usize, &Session)> {
        let from = self.free.iter().rev().nth(WAITING_MAX - 1).copied().unwrap_or(0);
        self.free.range(from..).filter_map(|at| Some((*at, self.all.get(*at)?)))
    }

    /// Gives a session a SCSI host.
    pub(super) fn add_host(&mut self, at: usize, host: u32) {
        let Some(session) = self.all.get_mut(at) else { return };
        session.hosts.push(host);
        self.by_host.entry(host).or_default().push(at);
        self.free.remove(&at);
    }

    /// Gives a session a unit of which only the disk is known.
    pub(super) fn add_disk(&mut self, at: usize, node: &str) {
        let Some(session) = self.all.get_mut(at) else { return };
        session.units.push(session::Unit { node: Some(node.to_owned()), ..session::Unit::default() });
        self.by_disk.entry(node.to_owned()).or_default().push(at);
    }

    /// Adds what a line of the USB core says of the device.
    pub(super) fn note(&mut self, at: usize, index: usize, raw: &str, line: LogLine<'_>) {
        let Some(session) = self.all.get_mut(at) else { return };
        session::note(session, index, raw, line);
        self.are_announced |= session.id.is_some();
        if session.is_ended() {
            self.free.remove(&at);
        }
    }

    /// Adds what a line says of a SCSI host or a unit of it.
    pub(super) fn note_unit(&mut self, at: usize, line: LogLine<'_>) {
        let Some(session) = self.all.get_mut(at) else { return };
        if let Some(node) = session::note_unit(session, line) {
            self.by_disk.entry(node).or_default().push(at);
        }
    }
}
