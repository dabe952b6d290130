//! Blocks of another machine: an export of an NBD server (doc/proto.md of NetworkBlockDevice/nbd).
//!
//! The sockets of the export and a timer are behind one epoll descriptor, which is the event descriptor of the medium: the loop
//! that serves the drive waits for it as for a file's. Nothing here blocks but [`NbdMedium::open`]. Steps of a job are the same
//! as for a file (`file::task`); `client` makes requests of them and knows what is safe after a server was lost; `socket` moves
//! bytes; `reconnect` says when to connect.
//!
//! Promise: a write that was acknowledged survives a server that is killed and started again, if its storage is what it
//! was at the last flush or later, since it is written again. A flush that was acknowledged was acknowledged by the server.
//!
//! Left out:
//! - TLS. WRITE ATOMIC and saved state, for which a server has no place.
//! - A name of a host is resolved once.
//! - Another client that writes to the same export: changes that are written again would undo its own.
//! - Resizing: an export whose size is another after a reconnect is not used.
//! - TRIM, since a unit promises that unmapped blocks read as zero: WRITE_ZEROES may leave holes as well.

mod address;
mod client;
mod error;
mod handshake;
mod in_flight;
mod lane;
mod reconnect;
mod slots;
mod socket;
mod terms;
mod unflushed;

pub use address::{NbdAddress, NbdServer, NotAnNbdAddress};
pub use error::{NbdError, NbdReason};

use super::file::task::Task;
use super::{CompletedJob, Geometry, Job, Medium};
use client::{Client, Loss};
use device::medium::MediumOp;
use reconnect::Reconnect;
use rustix::event::{PollFd, PollFlags, Timespec, epoll};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags};
use socket::{Connection, Place, Progress};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};
use terms::Terms;
use units::{BlockCount, BlockSize, ByteCount};
use wire::nbd::TransmissionFlags;

/// How long a connection and its negotiation may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections to a server that allows several.
const CONNECTIONS_MAX: usize = 4;
/// The shortest time that the timer is set to.
const TIMER_MIN: Duration = Duration::from_millis(1);

/// A medium on an NBD server.
#[derive(Debug)]
pub struct NbdMedium {
    address: NbdAddress,
    places: Vec<Place>,
    /// The place that is tried next.
    place: usize,
    geometry: Geometry,
    read_only: bool,
    terms: Terms,
    client: Client,
    connections: Vec<Connection>,
    /// A connection that is not agreed on, and until when it may take.
    connecting: Option<(Connection, Instant)>,
    reconnect: Reconnect,
    /// Whether the server has refused further connections.
    is_alone: bool,
    epoll: OwnedFd,
    timer: OwnedFd,
    /// Time that the timer is set to.
    alarm: Option<Instant>,
}

impl NbdMedium {
    /// Connects to the server and opens the export. Blocks until that is done, [`NbdReason::TimedOut`] at the latest.
    ///
    /// # Errors
    /// Says why it cannot be opened and what to do about it.
    pub fn open(address: &NbdAddress, block_size: BlockSize, read_only: bool) -> Result<Self, NbdError> {
        Self::open_inner(address, block_size, read_only)
            .map_err(|reason| NbdError { address: address.clone(), reason })
    }

    fn open_inner(address: &NbdAddress, block_size: BlockSize, read_only: bool) -> Result<Self, NbdReason> {
        let places = address.server.places()?;
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        let mut outcome = Err(NbdReason::TimedOut);
        for (number, place) in places.iter().enumerate() {
            outcome = wait_for_terms(place, &address.export, deadline).map(|agreed| (number, agreed));
            // Another address of the same host may have no server; one that refuses is the right one.
            if !matches!(outcome, Err(NbdReason::NotConnected(_))) {
                break;
            }
        }
        let (place, (mut connection, terms)) = outcome?;
        check(&terms, block_size)?;
        let failed = |errno: rustix::io::Errno| NbdReason::Io(errno.into());
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags).map_err(failed)?;
        epoll::add(&epoll, &timer, epoll::EventData::new_u64(0), epoll::EventFlags::IN).map_err(failed)?;
        watch(&epoll, &connection).map_err(failed)?;
        let now = Instant::now();
        let mut client = Client::new(terms, now);
        connection.serve(client.attach(terms).unwrap_or_default());
        Ok(Self {
            address: address.clone(),
            places,
            place,
            geometry: Geometry::of(ByteCount(terms.size_bytes), block_size),
            read_only: read_only || terms.can(TransmissionFlags::READ_ONLY),
            terms,
            client,
            connections: vec![connection],
            connecting: None,
            reconnect: Reconnect::new(now),
            is_alone: !terms.can(TransmissionFlags::CAN_MULTI_CONN),
            epoll,
            timer,
            alarm: None,
        })
    }

    /// Does all that can be done now.
    fn pump(&mut self) {
        self.connect();
        self.send();
        if self.client.awaits_reply() || self.connecting.is_none() {
            self.receive();
        }
        // What was received may have more to send.
        self.send();
        self.keep_time();
    }

    fn send(&mut self) {
        for connection in &mut self.connections {
            let was_congested = connection.is_congested;
            connection.send(&mut self.client);
            if connection.is_congested != was_congested {
                let _ = watch_again(&self.epoll, connection);
            }
        }
    }

    fn receive(&mut self) {
        let client = &mut self.client;
        let lost = self.connections.iter_mut().find_map(|connection| connection.receive(client).err());
        if let Some(loss) = lost {
            self.lose(loss);
        }
    }

    /// The server is lost.
    fn lose(&mut self, loss: Loss) {
        let now = Instant::now();
        // Closing a socket removes it from epoll.
        self.connections.clear();
        self.connecting = None;
        self.client.lose(loss, now);
        self.reconnect = Reconnect::new(now);
        self.is_alone = !self.terms.can(TransmissionFlags::CAN_MULTI_CONN);
        self.connect();
    }

    /// Goes on to connect, if there is need.
    fn connect(&mut self) {
        let is_enough = self.connections.len() >= if self.is_alone { 1 } else { CONNECTIONS_MAX };
        if is_enough && self.connecting.is_none() {
            return;
        }
        let now = Instant::now();
        let (mut connection, deadline) = match self.connecting.take() {
            Some(connecting) => connecting,
            None if self.connections.is_empty() && now < self.reconnect.next => return,
            None => match Connection::begin(&self.places[self.place], &self.address.export) {
                Ok(connection) if watch(&self.epoll, &connection).is_ok() => {
                    (connection, now + CONNECT_TIMEOUT)
                }
                _ => return self.give_up(now),
            },
        };
        let was_congested = connection.is_congested;
        let progress = connection.negotiate();
        if connection.is_congested != was_congested {
            let _ = watch_again(&self.epoll, &connection);
        }
        match progress {
            Ok(Progress::Pending) if now < deadline => {
                self.connecting = Some((connection, deadline));
            }
            Ok(Progress::Negotiated(terms)) => match self.client.attach(terms) {
                Some(lane) => {
                    connection.serve(lane);
                    self.connections.push(connection);
                }
                None => self.give_up(now),
            },
            Ok(Progress::Pending) | Err(_) => self.give_up(now),
        }
    }

    /// An attempt to connect has failed.
    fn give_up(&mut self, now: Instant) {
        if self.connections.is_empty() {
            self.reconnect.failed(now);
            self.place = (self.place + 1) % self.places.len().max(1);
        } else {
            self.is_alone = true;
        }
    }

    /// Ends what is due, and sets the timer for what is due next.
    fn keep_time(&mut self) {
        let now = Instant::now();
        if self.alarm.is_some_and(|alarm| now < alarm) && !self.is_earlier_due() {
            return;
        }
        // Read, so that it is not readable any more.
        let _ = rustix::io::read(&self.timer, &mut [0; 8]);
        let (due, is_silent) = self.client.expire(now);
        if is_silent {
            self.lose(Loss::Silent);
        }
        let due = [due, self.next_attempt()].into_iter().flatten().min();
        if due != self.alarm {
            self.set_timer(due, now);
        }
    }

    /// When an attempt to connect begins, or must be over.
    fn next_attempt(&self) -> Option<Instant> {
        match &self.connecting {
            Some((_, deadline)) => Some(*deadline),
            None => self.connections.is_empty().then_some(self.reconnect.next),
        }
    }

    /// Whether an attempt is due before the timer.
    fn is_earlier_due(&self) -> bool {
        match (self.next_attempt(), self.alarm) {
            (Some(attempt), Some(alarm)) => attempt < alarm,
            (attempt, _) => attempt.is_some(),
        }
    }

    fn set_timer(&mut self, due: Option<Instant>, now: Instant) {
        let left = due.map_or(Duration::ZERO, |due| due.saturating_duration_since(now).max(TIMER_MIN));
        let it_value = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let time = Itimerspec { it_interval, it_value };
        let is_set = rustix::time::timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &time);
        self.alarm = due.filter(|_| is_set.is_ok());
    }
}

/// Connects and negotiates, and waits for that.
fn wait_for_terms(place: &Place, export: &[u8], deadline: Instant) -> Result<(Connection, Terms), NbdReason> {
    let mut connection = Connection::begin(place, export).map_err(NbdReason::NotConnected)?;
    loop {
        if let Progress::Negotiated(terms) = connection.negotiate()? {
            return Ok((connection, terms));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(NbdReason::TimedOut);
        }
        let flags = if connection.is_congested { PollFlags::OUT } else { PollFlags::IN };
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let fd = connection.fd();
        // Interrupted or timed out: look again.
        let _ = rustix::event::poll(&mut [PollFd::new(&fd, flags)], Some(&left));
    }
}

/// Checks that an export can be the medium of a drive.
fn check(terms: &Terms, block_size: BlockSize) -> Result<(), NbdReason> {
    let size = ByteCount(terms.size_bytes);
    if size.0 == 0 {
        return Err(NbdReason::Empty);
    }
    if terms.block_min > block_size.bytes() {
        return Err(NbdReason::BlocksTooSmall { minimum: terms.block_min, block_size });
    }
    if !size.0.is_multiple_of(block_size.bytes().into()) {
        return Err(NbdReason::Uneven { size, block_size });
    }
    Ok(())
}

/// Events that are waited for on a connection.
fn events(connection: &Connection) -> epoll::EventFlags {
    let events = epoll::EventFlags::IN | epoll::EventFlags::RDHUP;
    if connection.is_congested { events | epoll::EventFlags::OUT } else { events }
}

fn watch(epoll: &OwnedFd, connection: &Connection) -> rustix::io::Result<()> {
    epoll::add(epoll, connection.fd(), epoll::EventData::new_u64(1), events(connection))
}

fn watch_again(epoll: &OwnedFd, connection: &Connection) -> rustix::io::Result<()> {
    epoll::modify(epoll, connection.fd(), epoll::EventData::new_u64(1), events(connection))
}

impl Medium for NbdMedium {
    fn submit(&mut self, mut job: Job) -> Option<CompletedJob> {
        if let MediumOp::WriteAtomic { fua } = job.request.op {
            // The unit does not offer it without `writes_atomically`.
            job.request.op = MediumOp::Write { fua };
        }
        let task = Task::new(job, self.geometry, self.read_only);
        self.client.submit(task, Instant::now())
    }

    fn flush_submissions(&mut self) {
        if self.client.awaits_reply() && self.connecting.is_none() && self.alarm.is_some() {
            self.send();
        } else {
            self.pump();
        }
    }

    fn poll(&mut self) -> Option<CompletedJob> {
        if let Some(finished) = self.client.poll() {
            return Some(finished);
        }
        self.pump();
        self.client.poll()
    }

    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.epoll.as_fd())
    }

    fn capacity(&self) -> BlockCount {
        self.geometry.capacity
    }

    fn block_size(&self) -> BlockSize {
        self.geometry.block_size
    }

    fn is_read_only(&self) -> bool {
        self.read_only
    }

    fn writes_atomically(&self) -> bool {
        false
    }

    fn keeps_state(&self) -> bool {
        false
    }

    fn save_state(&mut self, _state: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn load_state(&self) -> io::Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn describe(&self) -> String {
        let can = |flag, name: &'static str| self.terms.can(flag).then_some(name);
        let abilities: Vec<&str> = [
            can(TransmissionFlags::SEND_FLUSH, "flush"),
            can(TransmissionFlags::SEND_FUA, "FUA"),
            can(TransmissionFlags::SEND_WRITE_ZEROES, "zeroes"),
            self.terms.allocation.map(|_| "holes"),
            can(TransmissionFlags::CAN_MULTI_CONN, "several connections"),
        ]
        .into_iter()
        .flatten()
        .collect();
        format!("NBD at {} ({})", self.address, abilities.join(", "))
    }
}

impl Drop for NbdMedium {
    fn drop(&mut self) {
        self.connections.iter().for_each(Connection::disconnect);
    }
}

#[cfg(test)]
mod tests;
