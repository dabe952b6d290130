//! A connection to a server: its socket, which never blocks, and what was read and not taken yet.
//!
//! Left out: what the bytes mean ([`super::handshake`], [`super::client`]). Always true: no more is read than the buffer holds.

use super::NbdServer;
use super::client::{Client, Loss};
use super::error::NbdReason;
use super::handshake::Handshake;
use super::terms::Terms;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, sendmsg,
    socket_with, sockopt,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Bytes that are read at once beside the payload of one read.
const RECEIVE_BYTES: usize = 256 << 10;
/// Payload that is shorter is read together with what follows it, and copied.
const DIRECT_BYTES_MIN: usize = 16 << 10;
/// Reads in one go: others have their turn then.
const READS_MAX: u32 = 64;

/// Where a server can be reached.
#[derive(Clone, Debug)]
pub(super) enum Place {
    Tcp(SocketAddr),
    Unix(SocketAddrUnix),
}

impl NbdServer {
    /// The places of a server. Blocks while a name is resolved.
    pub(super) fn places(&self) -> Result<Vec<Place>, NbdReason> {
        match self {
            Self::Unix(path) => match SocketAddrUnix::new(path) {
                Ok(place) => Ok(vec![Place::Unix(place)]),
                Err(errno) => Err(NbdReason::NotConnected(errno.into())),
            },
            Self::Tcp(host, port) => {
                let places = (host.as_str(), *port).to_socket_addrs().map_err(NbdReason::Unresolved)?;
                let places: Vec<Place> = places.map(Place::Tcp).collect();
                match places.is_empty() {
                    true => Err(NbdReason::Unresolved(io::ErrorKind::NotFound.into())),
                    false => Ok(places),
                }
            }
        }
    }
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    fd: OwnedFd,
    stage: ConnectionStage,
    buffer: Vec<u8>,
    /// The bytes of the buffer that were read and not taken.
    taken: usize,
    filled: usize,
    /// The socket had no room for what was to be sent.
    pub(super) is_congested: bool,
}

/// How far a connection is.
#[derive(Debug)]
pub(super) enum ConnectionStage {
    Connecting(Handshake),
    Negotiating(Handshake),
    /// With the number of its lane.
    Serving(usize),
}

/// Progress of a connection.
#[derive(Debug)]
pub(super) enum Progress {
    /// It goes on.
    Pending,
    /// Everything is agreed.
    Negotiated(Terms),
}

impl Connection {
    /// Begins to connect.
    ///
    /// # Errors
    /// Of the system call, among them that no server listens.
    pub(super) fn begin(place: &Place, export: &[u8]) -> io::Result<Self> {
        let family = match place {
            Place::Tcp(SocketAddr::V4(_)) => AddressFamily::INET,
            Place::Tcp(SocketAddr::V6(_)) => AddressFamily::INET6,
            Place::Unix(_) => AddressFamily::UNIX,
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(family, SocketType::STREAM, flags, None)?;
        let begun = match place {
            Place::Tcp(address) => {
                sockopt::set_tcp_nodelay(&fd, true)?;
                sockopt::set_socket_keepalive(&fd, true)?;
                connect(&fd, address)
            }
            Place::Unix(address) => connect(&fd, address),
        };
        match begun {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(errno) => return Err(errno.into()),
        }
        let stage = ConnectionStage::Connecting(Handshake::new(export));
        Ok(Self { fd, stage, buffer: vec![0; RECEIVE_BYTES], taken: 0, filled: 0, is_congested: true })
    }

    /// Its socket.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Commands go by this lane from now on.
    pub(super) fn serve(&mut self, lane: usize) {
        self.stage = ConnectionStage::Serving(lane);
    }

    /// Goes on with the negotiation, as far as that is possible now.
    ///
    /// # Errors
    /// Why the export cannot be used.
    pub(super) fn negotiate(&mut self) -> Result<Progress, NbdReason> {
        if let ConnectionStage::Connecting(_) = self.stage {
            if !self.is_established()? {
                return Ok(Progress::Pending);
            }
            let stage = std::mem::replace(&mut self.stage, ConnectionStage::Serving(0));
            if let ConnectionStage::Connecting(handshake) = stage {
                self.stage = ConnectionStage::Negotiating(handshake);
            }
        }
        loop {
            self.take_negotiation()?;
            let ConnectionStage::Negotiating(handshake) = &mut self.stage else {
                return Ok(Progress::Pending);
            };
            if let Some(terms) = handshake.terms() {
                return Ok(Progress::Negotiated(terms));
            }
            let outgoing = handshake.outgoing();
            if !outgoing.is_empty() {
                let sent = write(&self.fd, &[IoSlice::new(outgoing)]).map_err(lost)?;
                outgoing.drain(..sent.unwrap_or_default());
            }
            self.is_congested = !outgoing.is_empty();
            match self.read(None).map_err(lost)? {
                Some(0) => return Err(NbdReason::Closed),
                Some(_) => {}
                None => return Ok(Progress::Pending),
            }
        }
    }

    /// Whether the connection is made.
    fn is_established(&self) -> Result<bool, NbdReason> {
        sockopt::socket_error(&self.fd)
            .and_then(|outcome| outcome)
            .map_err(|errno| NbdReason::NotConnected(errno.into()))?;
        match rustix::net::getpeername(&self.fd) {
            Ok(_) => Ok(true),
            Err(Errno::NOTCONN) => Ok(false),
            Err(errno) => Err(NbdReason::NotConnected(errno.into())),
        }
    }

    /// Passes what was read to the negotiation.
    fn take_negotiation(&mut self) -> Result<(), NbdReason> {
        let ConnectionStage::Negotiating(handshake) = &mut self.stage else { return Ok(()) };
        loop {
            let taken = handshake.receive(&self.buffer[self.taken..self.filled])?;
            self.taken += taken;
            if taken == 0 {
                return Ok(());
            }
        }
    }

    /// Sends requests, as far as the socket has room.
    pub(super) fn send(&mut self, client: &mut Client) {
        let ConnectionStage::Serving(lane) = self.stage else { return };
        let fd = &self.fd;
        let is_sent = client.send(lane, |slices| write(fd, slices));
        // A server that is lost is noticed where its replies are read: some may still be there.
        self.is_congested = !is_sent.unwrap_or(true);
    }

    /// Reads replies, as far as there are some.
    ///
    /// # Errors
    /// How the server was lost. One that breaks the protocol, or says that it ends, may still carry out what it has.
    pub(super) fn receive(&mut self, client: &mut Client) -> Result<(), Loss> {
        let ConnectionStage::Serving(lane) = self.stage else { return Ok(()) };
        let mut reads = 0;
        // Bytes that are left would not be announced again, so it stops early only with something to show.
        while reads < READS_MAX || !client.has_finished() {
            reads += 1;
            // First what the negotiation has left.
            let taken =
                client.receive(lane, &self.buffer[self.taken..self.filled]).map_err(|_| Loss::Silent)?;
            self.taken += taken;
            let room = client.room(lane).filter(|room| room.len() >= DIRECT_BYTES_MIN);
            let direct = room.as_ref().map_or(0, |room| room.len());
            let asked = self.space_len() + direct;
            match self.read(room) {
                Ok(Some(0)) => return Err(Loss::Closed),
                Ok(Some(count)) => {
                    client.filled(lane, count.min(direct)).map_err(|_| Loss::Silent)?;
                    let taken = client
                        .receive(lane, &self.buffer[self.taken..self.filled])
                        .map_err(|_| Loss::Silent)?;
                    self.taken += taken;
                    // A stream that has less than was asked for is empty for now.
                    if count < asked {
                        return Ok(());
                    }
                }
                Ok(None) => return Ok(()),
                Err(error) => return Err(loss_by(&error)),
            }
        }
        Ok(())
    }

    /// Bytes of the buffer that the next read may fill.
    const fn space_len(&self) -> usize {
        self.buffer.len() - (self.filled - self.taken)
    }

    /// One read: into `room`, which is filled first, and into the buffer. `None`: there is nothing.
    fn read(&mut self, room: Option<&mut [u8]>) -> io::Result<Option<usize>> {
        if self.taken > 0 {
            self.buffer.copy_within(self.taken..self.filled, 0);
            (self.taken, self.filled) = (0, self.filled - self.taken);
        }
        let (room, space) = (room.unwrap_or_default(), &mut self.buffer[self.filled..]);
        let direct = room.len();
        let read = match direct {
            0 => rustix::io::read(&self.fd, space),
            _ => rustix::io::readv(&self.fd, &mut [IoSliceMut::new(room), IoSliceMut::new(space)]),
        };
        match read {
            Ok(count) => {
                self.filled += count.saturating_sub(direct);
                Ok(Some(count))
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Takes leave, if the socket has room for that.
    pub(super) fn disconnect(&self) {
        use wire::nbd::{Command, CommandFlags, Request};
        if let ConnectionStage::Serving(_) = self.stage
            && !self.is_congested
        {
            let flags = CommandFlags::EMPTY;
            let request = Request { flags, command: Command::Disconnect, cookie: 0, offset: 0, length: 0 };
            // A server that is gone already needs no goodbye.
            let _ = write(&self.fd, &[IoSlice::new(&request.encode())]);
        }
    }
}

/// One write. `None`: the socket has no room.
fn write(fd: &OwnedFd, slices: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
    match sendmsg(fd, slices, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL) {
        Ok(sent) => Ok(Some(sent)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

fn lost(error: io::Error) -> NbdReason {
    match loss_by(&error) {
        Loss::Closed => NbdReason::Closed,
        Loss::Silent => NbdReason::Io(error),
    }
}

/// Whether an error says that the server's end is closed. A timeout of the system's own does not.
fn loss_by(error: &io::Error) -> Loss {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Loss::Closed,
        _ => Loss::Silent,
    }
}
