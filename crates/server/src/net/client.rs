//! One client: its socket, its session, and what was read and not taken yet.
//!
//! A turn reads once, lets the session take every packet, runs the drive and sends all answers, so that a busy client
//! costs two system calls a turn however many packets there are. Left out: who the client is, and when it may come.

use super::Reason;
use super::receive::ReceiveBuffer;
use super::socket::Socket;
use crate::drive::Drive;
use crate::usbredir::{Limits, PAUSE, SLICES_MAX, Session};
use mio::event;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::time::{Duration, Instant};

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
    /// The client will send no more than what is on its way.
    ending: bool,
    /// Packets wait until more are welcome.
    withheld: bool,
    /// Since when answers are held.
    held_since: Option<Instant>,
}

impl Client {
    pub(super) fn new(socket: Socket, session: Session) -> Self {
        let received = ReceiveBuffer::new();
        Self {
            socket,
            session,
            received,
            readable: true,
            writable: true,
            ending: false,
            withheld: false,
            held_since: None,
        }
    }

    /// Notes what the system tells about the socket.
    pub(super) fn note(&mut self, event: &event::Event) {
        self.ending |= event.is_read_closed() || event.is_error();
        self.readable |= event.is_readable() || self.ending;
        self.writable |= event.is_writable() || event.is_error();
    }

    /// Reads once, takes every packet, runs the drive, sends all there is. Whether there is more to do at once.
    pub(super) fn turn(&mut self, drive: &mut Drive) -> Result<bool, Reason> {
        self.take(drive)?;
        if self.readable && self.session.may_receive(drive) {
            self.read(drive)?;
            self.take(drive)?;
        }
        self.relent();
        let was_congested = self.session.is_congested();
        if !was_congested && !self.session.is_held() {
            drive.turn();
            self.session.collect(drive);
        }
        if self.session.is_held() {
            self.held_since.get_or_insert_with(Instant::now);
        }
        self.send(drive).map_err(Reason::Lost)?;
        let has_input = self.session.may_receive(drive) && (self.readable || self.withheld);
        let is_relieved = was_congested && !self.session.is_congested();
        Ok(has_input || is_relieved)
    }

    /// How long to wait for the client at most: answers that are held go after a pause.
    pub(super) fn pause(&self) -> Option<Duration> {
        self.session.is_held().then_some(PAUSE)
    }

    /// Lets held answers go once their pause is over.
    fn relent(&mut self) {
        if !self.session.is_held() {
            self.held_since = None;
        } else if self.held_since.is_some_and(|since| since.elapsed() >= PAUSE) {
            self.session.relent();
            self.held_since = None;
        }
    }

    /// Sends what waits, as far as the client takes it.
    pub(super) fn send(&mut self, drive: &mut Drive) -> io::Result<()> {
        while self.writable && self.session.outgoing_bytes() > 0 {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let count = self.session.slices(&mut slices);
            let offered: usize = slices[..count].iter().map(|slice| slice.len()).sum();
            match self.socket.write_vectored(&slices[..count]) {
                Ok(sent) => {
                    self.session.sent(sent, drive.pool());
                    self.writable = sent == offered;
                }
                Err(error) => self.writable = is_passing(error)?,
            }
        }
        Ok(())
    }

    /// One read: of a payload that is under way straight to where it belongs, then of what follows it.
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
                // A stream that has less than was asked for is empty for now. Its end, if it was told, is not read.
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

/// Tells a newcomer that there is a client already.
pub(super) fn turn_away(mut socket: Socket, drive: &Drive) {
    let session = Session::new(Limits::default(), "uaskit: the drive has another client", drive);
    let mut slices = [IoSlice::new(&[]); SLICES_MAX];
    let count = session.slices(&mut slices);
    // Who does not listen is closed without a word.
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
