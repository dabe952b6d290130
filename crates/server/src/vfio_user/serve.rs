//! The loop of the serving thread.
//!
//! It waits for the listener, the client, the media, deadlines of the controller and its owner, and then lets each do
//! what there is to do. Replies are sent before the controller works, since a processor of the guest waits for them.
//!
//! Always true: the only place that blocks is the wait; a failure of one client ends that client, not the loop.

use super::alarm::Alarm;
use super::connection::Connection;
use super::fault::Fault;
use super::function::{Function, Polling};
use super::registers::SharedRegisters;
use super::session::Session;
use super::{Event, Reason};
use crate::net::{
    ALARM, Address, BindError, CLIENT, LISTENER, Listener, PendingRequests, Server, ServerExit, Shared,
    Snapshot, Socket, register_media,
};
use crate::usbredir::HELLO_TIMEOUT;
use device::ActiveTransport;
use drive::Drive;
use mio::{Events, Interest, Poll};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long after a failure a connection is tried again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Receptions in one iteration, before the controller works.
const RECEPTIONS_MAX: usize = 16;

/// Listens at a Unix socket, and serves `function` from now on. `on_event` is called on the serving thread; it must not block.
///
/// # Errors
/// If the socket cannot be bound.
pub fn serve(
    path: &Path,
    function: Function,
    on_event: impl FnMut(Event) + Send + 'static,
) -> Result<Server, BindError> {
    let address = Address::Unix(path.into());
    let listener = Listener::bind(&address, false)?;
    Server::spawn("uaskit-host", &address, listener, |poll, listener, shared| {
        let serve = Loop::new(poll, listener, shared, function, Box::new(on_event))?;
        Ok(|| serve.run())
    })
}

/// Everything that is needed to serve a function.
struct Loop {
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
    waiting: PendingRequests,
    on_event: OnEvent,
}

/// The callback for events.
type OnEvent = Box<dyn FnMut(Event) + Send>;

/// A connected client.
struct Client {
    connection: Connection,
    session: Session,
    /// There may be something to read.
    readable: bool,
    /// When its first message must have arrived.
    version_deadline: Instant,
}

impl Loop {
    fn new(
        poll: Poll,
        mut listener: Listener,
        shared: Arc<Shared>,
        function: Function,
        on_event: OnEvent,
    ) -> io::Result<Self> {
        listener.register(poll.registry(), LISTENER)?;
        let alarm = Alarm::new(poll.registry(), ALARM)?;
        for (_, drive) in function.host().drives() {
            register_media(poll.registry(), drive)?;
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
            waiting: PendingRequests::default(),
            on_event,
        })
    }

    /// Serves until it is stopped.
    fn run(mut self) -> ServerExit {
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
            let polling = if busy { Polling::Continuous } else { self.function.polling() };
            if !busy && polling == Polling::Continuous {
                // The hypervisor's threads come first where processors are few.
                std::thread::yield_now();
            }
            self.wait(&mut events, polling)?;
            busy = self.serve_client();
            self.function.run();
            self.report_transports();
            if self.accept_pending {
                self.accept();
            }
            let snapshot = self.snapshot();
            self.shared.publish(snapshot);
            busy |= self.carry_out_requests(snapshot);
        }
        Ok(())
    }

    /// How long to wait at most.
    fn timeout(&self) -> Option<Duration> {
        let version = self.client.as_ref().and_then(Client::version_left);
        let accept = self.accept_pending.then_some(ACCEPT_PAUSE);
        [self.function.timeout(), version, accept].into_iter().flatten().min()
    }

    /// Waits for something to happen, and notes what. Registers in memory are nothing that happens: it waits no longer than
    /// they may.
    fn wait(&mut self, events: &mut Events, polling: Polling) -> io::Result<()> {
        let most = match polling {
            Polling::Off => None,
            Polling::Continuous => Some(Duration::ZERO),
            Polling::Every(most) => Some(most),
        };
        let timeout = self.timeout();
        // epoll counts milliseconds; moderation of interrupts is a matter of microseconds.
        let is_exact = timeout.filter(|left| !left.is_zero() && most.is_none_or(|most| *left < most));
        if let Some(left) = is_exact {
            self.alarm.set(left)?;
        }
        let timeout = timeout.filter(Duration::is_zero).or(most);
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
                (self.on_event)(Event::PortTransport { port, transport });
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
            counters: self.function.detached(),
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
    fn carry_out_requests(&mut self, snapshot: Snapshot) -> bool {
        self.waiting.carry_out(&self.shared, self.poll.registry(), &mut self.function, |_| snapshot)
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
            if self.wait(&mut events, Polling::Every(ACCEPT_PAUSE)).is_err() {
                break;
            }
        }
        let snapshot = self.snapshot();
        self.shared.publish(snapshot);
        let mut drives: Vec<Drive> = self.function.into_drives();
        let flushed = drives.iter_mut().map(Drive::flush_media).fold(Ok(()), Result::and);
        ServerExit { drives, counters: snapshot.counters, flushed, outcome }
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
            self.send(function)?;
        }
        self.send(function)?;
        if function.memory.is_lost() {
            return Err(Reason::Fault(Fault::MemoryShrunk));
        }
        if self.version_left().is_some_and(|left| left.is_zero()) {
            return Err(Reason::Fault(Fault::VersionTimeout));
        }
        Ok(self.readable && self.session.room() > 0)
    }

    fn send(&mut self, function: &Function) -> Result<(), Reason> {
        while !self.session.outgoing().is_empty() {
            let (bytes, brings_file) = self.session.next_outgoing();
            let registers = function.memory.registers.as_ref().filter(|_| brings_file);
            let file = registers.map(SharedRegisters::file);
            let sent = self.connection.send(bytes, file).map_err(Reason::Lost)?;
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
