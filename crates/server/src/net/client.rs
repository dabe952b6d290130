//! One client: its socket, its session, and what was read and not taken yet.
//!
//! A turn reads once, lets the session take every packet, runs the drive and sends all answers, so that a busy client
//! costs two system calls a turn however many packets there are. Left out: who the client is, and when it may come.

use super::Reason;
use super::listener::SEND_BUFFER_BYTES;
use super::media::CLIENT;
use super::receive::ReceiveBuffer;
use super::socket::Socket;
use crate::usbredir::{Limits, PAUSE, SLICES_MAX, Session};
use drive::Drive;
use mio::{Interest, Registry, event};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::time::{Duration, Instant};

/// Events that are always of interest.
pub(super) const INTERESTS: Interest = Interest::READABLE;

/// A client that was sent less than this is not behind. The system says so of some more: it has room while no more than a quarter
/// of what it may hold is there (`unix_writable` of Linux).
const BEHIND_BYTES: usize = SEND_BUFFER_BYTES / 4;

/// A connected client.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) socket: Socket,
    pub(super) session: Session,
    received: ReceiveBuffer,
    /// There may be something to read.
    readable: bool,
    /// There may be room to write.
    writable: bool,
    /// Registered for the event that there is room to write.
    awaits_room: bool,
    /// The client will send no more than what is on its way.
    ending: bool,
    /// Packets wait until more are welcome.
    withheld: bool,
    /// Since when answers are held.
    held_since: Option<Instant>,
    /// When its hello must have arrived. What it sends before does not extend that.
    hello_deadline: Instant,
    /// Bytes sent since the client was last seen to keep up with them.
    sent_since: usize,
}

impl Client {
    /// A client that has just connected and sends its hello within `hello_timeout`.
    pub(super) fn new(socket: Socket, session: Session, hello_timeout: Duration) -> Self {
        let received = ReceiveBuffer::new();
        let hello_deadline = Instant::now() + hello_timeout;
        Self {
            socket,
            session,
            received,
            readable: true,
            writable: true,
            awaits_room: false,
            ending: false,
            withheld: false,
            held_since: None,
            hello_deadline,
            sent_since: 0,
        }
    }

    /// Notes an event of the socket.
    pub(super) fn note(&mut self, event: &event::Event) {
        self.ending |= event.is_read_closed() || event.is_error();
        self.readable |= event.is_readable() || self.ending;
        self.writable |= event.is_writable() || event.is_error();
    }

    /// Reads once, takes every packet, runs the drive, sends all there is. Whether there is more to do at once.
    pub(super) fn run_once(&mut self, drive: &mut Drive, registry: &Registry) -> Result<bool, Reason> {
        self.take(drive)?;
        if self.readable && self.session.may_receive(drive) {
            self.read(drive)?;
            self.take(drive)?;
        }
        if self.hello_left().is_some_and(|left| left.is_zero()) {
            return Err(Reason::HelloTimeout);
        }
        self.release_held();
        let was_congested = self.session.is_congested();
        if !was_congested && !self.session.is_held() {
            drive.run_once();
            self.session.collect(drive);
        }
        if self.session.is_held() {
            self.held_since.get_or_insert_with(Instant::now);
        }
        self.send(drive, registry).map_err(Reason::Lost)?;
        let has_input = self.session.may_receive(drive) && (self.readable || self.withheld);
        let is_relieved = was_congested && !self.session.is_congested();
        Ok(has_input || is_relieved)
    }

    /// How long to wait for the client at most: held answers are released after a pause, and its
    /// hello has a deadline.
    pub(super) fn pause(&self) -> Option<Duration> {
        let held = self.session.is_held().then_some(PAUSE);
        held.into_iter().chain(self.hello_left()).min()
    }

    /// The time left for its hello, until that has arrived.
    fn hello_left(&self) -> Option<Duration> {
        let is_missing = self.session.peer().is_none();
        is_missing.then(|| self.hello_deadline.saturating_duration_since(Instant::now()))
    }

    /// Whether the client has closed the connection. Then everything that it sent before can be
    /// read without waiting.
    pub(super) fn has_hung_up(&mut self) -> bool {
        self.ending |= self.socket.is_hung_up();
        self.readable |= self.ending;
        self.ending
    }

    /// Whether the client has much to read still, so that it loses nothing if what it asks for next waits for a moment.
    pub(super) fn is_behind(&mut self) -> bool {
        // The system is not asked about every small answer.
        if self.sent_since < BEHIND_BYTES {
            return false;
        }
        let is_behind = !self.socket.has_room();
        if !is_behind {
            self.sent_since = 0;
        }
        is_behind
    }

    /// Releases held answers once their pause is over.
    fn release_held(&mut self) {
        if !self.session.is_held() {
            self.held_since = None;
        } else if self.held_since.is_some_and(|since| since.elapsed() >= PAUSE) {
            self.session.release_held();
            self.held_since = None;
        }
    }

    /// Sends what waits, as far as the client takes it.
    pub(super) fn send(&mut self, drive: &mut Drive, registry: &Registry) -> io::Result<()> {
        while self.writable && self.session.outgoing_bytes() > 0 {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let count = self.session.slices(&mut slices);
            let offered: usize = slices[..count].iter().map(|slice| slice.len()).sum();
            match self.socket.write_vectored(&slices[..count]) {
                Ok(sent) => {
                    self.sent_since = self.sent_since.saturating_add(sent);
                    self.session.sent(sent, drive.pool());
                    self.writable = sent == offered;
                }
                Err(error) => self.writable = is_passing(error)?,
            }
        }
        self.await_room(registry)
    }

    /// Registers for room to write while some is missing, and only then: each answer that the
    /// client reads makes room, and would wake the loop for nothing.
    fn await_room(&mut self, registry: &Registry) -> io::Result<()> {
        let is_missing = !self.writable;
        if is_missing != self.awaits_room {
            self.awaits_room = is_missing;
            let interests = if is_missing { INTERESTS.add(Interest::WRITABLE) } else { INTERESTS };
            registry.reregister(&mut self.socket, CLIENT, interests)?;
        }
        Ok(())
    }

    /// One read: of a payload that is arriving straight to where it belongs, then of what follows
    /// it.
    fn read(&mut self, drive: &mut Drive) -> Result<(), Reason> {
        let space = self.received.space();
        let (read, room, wanted) = match self.session.payload_room() {
            Some(room) => {
                let (room_len, wanted) = (room.len(), room.len() + space.len());
                let mut slices = [IoSliceMut::new(room), IoSliceMut::new(space)];
                (self.socket.read_vectored(&mut slices), room_len, wanted)
            }
            None => {
                let wanted = space.len();
                (self.socket.read(space), 0, wanted)
            }
        };
        match read {
            Ok(0) => return Err(Reason::Closed),
            Ok(count) => {
                // A stream that has less than was asked for is empty for now. Its end, if an event
                // has reported it, is not read.
                self.readable = count == wanted || self.ending;
                self.received.filled(count.saturating_sub(room));
                if room > 0 {
                    self.session.payload_filled(count.min(room), drive).map_err(Reason::Fault)?;
                }
            }
            Err(error) => self.readable = is_passing(error).map_err(Reason::Lost)?,
        }
        Ok(())
    }

    fn take(&mut self, drive: &mut Drive) -> Result<(), Reason> {
        if !self.received.bytes().is_empty() {
            let taken = self.session.receive(self.received.bytes(), drive).map_err(Reason::Fault)?;
            self.received.taken(taken);
        }
        self.withheld = !self.received.bytes().is_empty() && !self.session.may_receive(drive);
        Ok(())
    }
}

/// Answers a second client with a hello that says why it is rejected.
pub(super) fn reject(mut socket: Socket, drive: &Drive) {
    let session = Session::new(Limits::default(), "uaskit: rejected, another client is connected", drive);
    let mut slices = [IoSlice::new(&[]); SLICES_MAX];
    let count = session.slices(&mut slices);
    // A peer that does not read it is closed all the same.
    let _ = socket.write_vectored(&slices[..count]);
}

/// Whether to try again at once; `false`: later. Other errors end the connection.
fn is_passing(error: io::Error) -> io::Result<bool> {
    match error.kind() {
        ErrorKind::WouldBlock => Ok(false),
        ErrorKind::Interrupted => Ok(true),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::tests;
    use crate::usbredir::HELLO_TIMEOUT;
    use mio::net::UnixStream;
    use mio::{Events, Poll};

    #[test]
    fn room_to_write_wakes_the_loop_only_while_it_is_missed() {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let mut clutter = 0;
        while let Ok(count) = ours.write(&[0; 4096]) {
            clutter += count;
        }
        let (mut poll, mut events) = (Poll::new().unwrap(), Events::with_capacity(4));
        let mut socket = Socket::Unix(ours);
        poll.registry().register(&mut socket, CLIENT, INTERESTS).unwrap();
        let mut drive = tests::drive();
        let mut client = Client::new(socket, Session::new(Limits::default(), "test", &drive), HELLO_TIMEOUT);
        let registry = poll.registry().try_clone().unwrap();
        let mut is_woken = || {
            poll.poll(&mut events, Some(Duration::from_millis(20))).unwrap();
            events.iter().next().cloned()
        };

        // Our hello does not fit.
        client.send(&mut drive, &registry).unwrap();
        assert!(client.session.outgoing_bytes() > 0 && is_woken().is_none());
        while clutter > 0 {
            clutter -= theirs.read(&mut [0; 4096]).unwrap();
        }
        client.note(&is_woken().expect("there is room"));
        client.send(&mut drive, &registry).unwrap();
        assert_eq!(client.session.outgoing_bytes(), 0);

        // What is read now makes room that the client does not wait for.
        assert!(theirs.read(&mut [0; 4096]).unwrap() > 0);
        assert!(is_woken().is_none());
    }
}
