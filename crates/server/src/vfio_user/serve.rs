//! The loop of the serving thread.
//!
//! It waits for the listener, the client, the media, deadlines of the controller and its owner, and then lets each do
//! what there is to do. Replies are sent before the controller works, since a processor of the guest waits for them.
//!
//! Always true: the only place that blocks is the wait; a failure of one client ends that client, not the loop.

use super::alarm::Alarm;
use super::connection::Connection;
use super::fault::Fault;
use super::function::Function;
use super::server::ServerExit;
use super::session::Session;
use super::{Event, Reason};
use crate::net::{Change, ControlRequest, Listener, Shared, Snapshot, Socket};
use crate::usbredir::HELLO_TIMEOUT;
use device::ActiveTransport;
use drive::medium::Medium;
use drive::{Counters, Drive};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

const LISTENER: Token = Token(0);
const CLIENT: Token = Token(1);
pub(super) const WAKER: Token = Token(2);
/// The media, which need not be distinguished.
const MEDIUM: Token = Token(3);
const ALARM: Token = Token(4);

/// How long after a failure a connection is tried again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Receptions in one iteration, before the controller works.
const RECEPTIONS_MAX: usize = 16;

/// Everything that is needed to serve a function.
pub(super) struct Loop {
    poll: Poll,
    alarm: Alarm,
    listener: Listener,
    /// A connection may wait to be accepted.
    accept_pending: bool,
    client: Option<Client>,
    function: Function,
    /// The transports that were last reported as events, by root port.
    reported: BTreeMap<u8, ActiveTransport>,
    shared: Arc<Shared>,
    /// Requests that wait for commands to end.
    waiting: Vec<ControlRequest>,
    on_event: OnEvent,
}

/// What the loop serves, and who gets its events.
pub(super) struct Service {
    pub(super) function: Function,
    pub(super) on_event: OnEvent,
}

/// The callback for events.
pub(super) type OnEvent = Box<dyn FnMut(Event) + Send>;

/// A connected client.
struct Client {
    connection: Connection,
    session: Session,
    /// There may be something to read.
    readable: bool,
    /// When its first message must have arrived.
    version_deadline: Instant,
}

impl fmt::Debug for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loop").field("listener", &self.listener).finish_non_exhaustive()
    }
}

impl Loop {
    pub(super) fn new(
        poll: Poll,
        mut listener: Listener,
        shared: Arc<Shared>,
        service: Service,
    ) -> io::Result<Self> {
        listener.register(poll.registry(), LISTENER)?;
        let Service { function, on_event } = service;
        let alarm = Alarm::new(poll.registry(), ALARM)?;
        for (_, drive) in function.host().drives() {
            for event in drive.event_fds() {
                poll.registry().register(&mut SourceFd(&event.as_raw_fd()), MEDIUM, Interest::READABLE)?;
            }
        }
        Ok(Self {
            poll,
            alarm,
            listener,
            accept_pending: true,
            client: None,
            function,
            reported: BTreeMap::new(),
            shared,
            waiting: Vec::new(),
            on_event,
        })
    }

    /// Serves until it is stopped.
    pub(super) fn run(mut self) -> ServerExit {
        if let Ok(address) = self.listener.address() {
            (self.on_event)(Event::Listening(address));
        }
        let outcome = self.serve();
        self.end(outcome)
    }

    fn serve(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(16);
        let mut busy = true;
        while !self.shared.is_stopped() {
            let timeout = if busy { Some(Duration::ZERO) } else { self.timeout() };
            self.wait(&mut events, timeout)?;
            busy = self.serve_client();
            self.function.run();
            self.report_transports();
            if self.accept_pending {
                self.accept();
            }
            self.shared.publish(self.snapshot());
            busy |= self.carry_out_requests();
        }
        Ok(())
    }

    /// How long to wait at most.
    fn timeout(&self) -> Option<Duration> {
        let version = self.client.as_ref().and_then(Client::version_left);
        let accept = self.accept_pending.then_some(ACCEPT_PAUSE);
        [self.function.timeout(), version, accept].into_iter().flatten().min()
    }

    /// Waits for something to happen, and notes what.
    fn wait(&mut self, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
        // epoll counts milliseconds; moderation of interrupts is a matter of microseconds.
        let is_exact = timeout.filter(|left| !left.is_zero());
        if let Some(left) = is_exact {
            self.alarm.set(left)?;
        }
        let timeout = timeout.filter(Duration::is_zero);
        match self.poll.poll(events, timeout) {
            Err(error) if error.kind() == ErrorKind::Interrupted => events.clear(),
            outcome => outcome?,
        }
        for event in &*events {
            match (event.token(), &mut self.client) {
                (LISTENER, _) => self.accept_pending = true,
                (CLIENT, Some(client)) => client.readable = true,
                (ALARM, _) => self.alarm.clear(),
                _ => {}
            }
        }
        Ok(())
    }

    /// Receives and answers messages. Whether there is more to do at once.
    fn serve_client(&mut self) -> bool {
        let Some(client) = &mut self.client else { return false };
        match client.run_once(&mut self.function) {
            Ok(busy) => busy,
            Err(reason) => {
                self.lose_client(reason);
                false
            }
        }
    }

    fn report_transports(&mut self) {
        let host = self.function.host();
        for (port, _) in host.drives() {
            let transport = host.transport(port);
            let before = self.reported.insert(port, transport).unwrap_or(ActiveTransport::None);
            if transport != before && transport != ActiveTransport::None {
                (self.on_event)(Event::Transport { port, transport });
            }
        }
    }

    /// Accepts pending connections: one client at a time.
    fn accept(&mut self) {
        loop {
            let (socket, name) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => {
                        self.accept_pending = false;
                        return;
                    }
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted => continue,
                    _ => {
                        (self.on_event)(Event::AcceptFailed(error));
                        return;
                    }
                },
            };
            let Socket::Unix(mut socket) = socket else { continue };
            // A client that has gone never keeps the next one out.
            if self.client.as_ref().is_some_and(Client::has_hung_up) {
                self.lose_client(Reason::Closed);
            }
            if self.client.is_some() {
                (self.on_event)(Event::Rejected { client: name });
                continue;
            }
            let interests = Interest::READABLE.add(Interest::WRITABLE);
            if let Err(error) = self.poll.registry().register(&mut socket, CLIENT, interests) {
                (self.on_event)(Event::AcceptFailed(error));
                return;
            }
            let version_deadline = Instant::now() + HELLO_TIMEOUT;
            let (connection, session) = (Connection::new(socket), Session::new());
            self.client = Some(Client { connection, session, readable: true, version_deadline });
            (self.on_event)(Event::Connected { client: name });
        }
    }

    /// Ends the client: its memory is unmapped and the controller is reset.
    fn lose_client(&mut self, reason: Reason) {
        let Some(mut client) = self.client.take() else { return };
        // It fails only if the socket is not registered, and closing does the same.
        let _ = self.poll.registry().deregister(&mut client.connection.socket);
        drop(client);
        self.function.disconnect();
        self.reported.clear();
        (self.on_event)(Event::Disconnected(reason));
    }

    fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot {
            counters: Counters::default(),
            depth: 0,
            has_client: self.client.is_some(),
            transport: ActiveTransport::None,
        };
        for (port, drive) in self.function.host().drives() {
            snapshot.counters = snapshot.counters.plus(drive.counters());
            snapshot.depth += drive.device().depth();
            if snapshot.transport == ActiveTransport::None {
                snapshot.transport = self.function.host().transport(port);
            }
        }
        snapshot
    }

    /// Carries out pending control requests. Whether there is more to do at once.
    fn carry_out_requests(&mut self) -> bool {
        let mut requests = std::mem::take(&mut self.waiting);
        requests.extend(self.shared.take_requests());
        if requests.is_empty() {
            return false;
        }
        let snapshot = self.snapshot();
        let mut has_inserted = false;
        let Some(port) = self.function.host().drives().map(|(port, _)| port).next() else { return false };
        for request in requests {
            let Some(drive) = self.function.host_mut().drive_mut(port) else { continue };
            let registry = self.poll.registry();
            let leave = |medium: &dyn Medium| {
                if let Some(event) = medium.event_fd() {
                    // It fails only if the descriptor is not registered, and then there is nothing to undo.
                    let _ = registry.deregister(&mut SourceFd(&event.as_raw_fd()));
                }
            };
            match request.carry_out(drive, snapshot, leave) {
                Change::None => {}
                Change::Waits(request) => self.waiting.push(request),
                Change::Inserted(unit) => {
                    has_inserted = true;
                    let medium = drive.media().get(usize::from(unit));
                    if let Some(event) = medium.and_then(|medium| medium.event_fd()) {
                        let mut source = SourceFd(&event.as_raw_fd());
                        // Without it the medium is looked at whenever anything else happens.
                        let _ = registry.register(&mut source, MEDIUM, Interest::READABLE);
                    }
                }
            }
        }
        has_inserted
    }

    /// Ends cleanly: what is at the media finishes, everything is flushed.
    fn end(mut self, outcome: io::Result<()>) -> ServerExit {
        (self.on_event)(Event::Stopping);
        self.shared.close_requests();
        self.waiting.clear();
        self.lose_client(Reason::Stopped);
        let mut events = Events::with_capacity(16);
        while self.function.host().drives().any(|(_, drive)| drive.at_media() > 0) {
            self.function.run();
            if self.wait(&mut events, Some(ACCEPT_PAUSE)).is_err() {
                break;
            }
        }
        self.shared.publish(self.snapshot());
        let mut drives: Vec<Drive> = self.function.into_drives();
        let flushed = drives.iter_mut().map(Drive::flush_media).fold(Ok(()), Result::and);
        ServerExit { drives, flushed, outcome }
    }
}

impl Client {
    /// Receives, carries out and answers what has come. Whether there is more to do at once.
    fn run_once(&mut self, function: &mut Function) -> Result<bool, Reason> {
        for _ in 0..RECEPTIONS_MAX {
            let room = self.session.room();
            if !self.readable || room == 0 {
                break;
            }
            let Some(received) = self.connection.receive(room).map_err(Reason::Lost)? else {
                self.readable = false;
                break;
            };
            if received.is_truncated {
                return Err(Reason::Fault(Fault::TooManyDescriptors));
            }
            if received.bytes.is_empty() {
                return Err(Reason::Closed);
            }
            // A stream that has less than was asked for may still have a message with descriptors behind it.
            self.session.receive(received.bytes, received.fds, function).map_err(Reason::Fault)?;
            self.send()?;
        }
        self.send()?;
        if function.memory.is_lost() {
            return Err(Reason::Fault(Fault::MemoryShrunk));
        }
        if self.version_left().is_some_and(|left| left.is_zero()) {
            return Err(Reason::VersionTimeout);
        }
        Ok(self.readable && self.session.room() > 0)
    }

    fn send(&mut self) -> Result<(), Reason> {
        while !self.session.outgoing().is_empty() {
            let sent = self.connection.send(self.session.outgoing()).map_err(Reason::Lost)?;
            if sent == 0 {
                break;
            }
            self.session.sent(sent);
        }
        Ok(())
    }

    /// The time left for its first message, until that has arrived.
    fn version_left(&self) -> Option<Duration> {
        let is_missing = !self.session.has_version();
        is_missing.then(|| self.version_deadline.saturating_duration_since(Instant::now()))
    }

    /// Whether it has closed the connection.
    fn has_hung_up(&self) -> bool {
        let mut sockets = [PollFd::new(&self.connection.socket, PollFlags::RDHUP)];
        poll(&mut sockets, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }
}
