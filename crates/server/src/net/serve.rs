//! The loop of the serving thread.
//!
//! It waits for the listener, the client, the media and its owner's word, and then lets each do what there is to do.
//! Always true: the only place that blocks is the wait, in which the loop may also pause (`moderation`); a
//! failure of one client ends that client, not the loop.

use super::allocator;
use super::client::{Client, INTERESTS, reject};
use super::listener::Listener;
use super::media::{CLIENT, LISTENER, PendingRequests, register_media};
use super::moderation::Moderation;
use super::shared::{ServerExit, Shared, Snapshot};
use super::{Event, Reason};
use crate::usbredir::{Limits, Session};
use device::ActiveTransport;
use drive::{Body, Drive};
use mio::{Events, Poll};
use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long after a failure a connection is tried again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long nothing happens before memory that is not needed goes back to the system.
const QUIET: Duration = Duration::from_secs(1);
/// Reads of what a client had sent before it closed the connection: more than the buffers of a socket hold.
const LAST_READS_MAX: usize = 64;
/// How long a client has to read its last answers when the server stops.
const LAST_ANSWERS_TIMEOUT: Duration = Duration::from_secs(1);

/// Everything that one drive needs to be served.
pub(super) struct Loop {
    poll: Poll,
    listener: Listener,
    /// A connection may wait to be accepted.
    accept_pending: bool,
    client: Option<Client>,
    moderation: Moderation,
    /// Whether the client's hello was reported as an event.
    greeted: bool,
    drive: Drive,
    /// The transport that was last reported as an event.
    reported: ActiveTransport,
    shared: Arc<Shared>,
    /// Requests that wait for commands to end.
    waiting: PendingRequests,
    on_event: OnEvent,
    version: String,
    limits: Limits,
    /// Whether anything has happened since memory last went back to the system.
    untrimmed: bool,
}

/// The callback for events.
pub(super) type OnEvent = Box<dyn FnMut(Event) + Send>;

/// The served drive, and the parameters of the loop.
pub(super) struct Service {
    pub(super) drive: Drive,
    pub(super) on_event: OnEvent,
    pub(super) version: String,
    pub(super) limits: Limits,
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
        let Service { drive, on_event, version, limits } = service;
        listener.register(poll.registry(), LISTENER)?;
        register_media(poll.registry(), &drive)?;
        Ok(Self {
            poll,
            listener,
            accept_pending: true,
            client: None,
            moderation: Moderation::default(),
            greeted: false,
            drive,
            reported: ActiveTransport::None,
            shared,
            waiting: PendingRequests::default(),
            on_event,
            version,
            limits,
            untrimmed: true,
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
            let pause = match (busy, self.accept_pending) {
                (true, _) => Some(Duration::ZERO),
                (false, true) => Some(ACCEPT_PAUSE),
                (false, false) => {
                    let held = self.client.as_ref().and_then(Client::pause);
                    held.or_else(|| self.untrimmed.then_some(QUIET))
                }
            };
            self.wait(&mut events, pause)?;
            self.trim_memory(events.is_empty() && pause == Some(QUIET));
            // The client first: if it has disconnected, the next one can be accepted.
            busy = self.run_once();
            if self.accept_pending {
                busy |= self.accept();
            }
            self.publish();
            busy |= self.carry_out_requests();
        }
        Ok(())
    }

    /// Gives memory that is not needed back to the system, once, when it `is_quiet`.
    fn trim_memory(&mut self, is_quiet: bool) {
        if is_quiet {
            self.drive.pool().trim();
            allocator::trim();
        }
        self.untrimmed = !is_quiet;
    }

    /// Waits for something to happen, and notes what.
    fn wait(&mut self, events: &mut Events, pause: Option<Duration>) -> io::Result<()> {
        match self.poll.poll(events, pause) {
            Err(error) if error.kind() == ErrorKind::Interrupted => events.clear(),
            outcome => outcome?,
        }
        let mut has_sent = false;
        for event in &*events {
            match (event.token(), &mut self.client) {
                (LISTENER, _) => self.accept_pending = true,
                (CLIENT, Some(client)) => {
                    client.note(event);
                    has_sent |= event.is_readable();
                }
                _ => {}
            }
        }
        if has_sent {
            self.coalesce_wait();
        }
        Ok(())
    }

    /// The client has sent something: more of it may be worth waiting for.
    fn coalesce_wait(&mut self) {
        let Some(client) = &mut self.client else { return };
        // The command of a payload cannot come before its rest.
        if client.session.is_amid_payload() {
            return;
        }
        let is_behind = client.is_behind();
        if let Some(pause) = self.moderation.pause(Instant::now(), self.drive.counters(), is_behind) {
            std::thread::sleep(pause);
        }
    }

    /// Moves what there is to move. Whether there is more to do at once.
    fn run_once(&mut self) -> bool {
        let Some(client) = &mut self.client else {
            self.drive.run_once();
            return false;
        };
        match client.run_once(&mut self.drive, self.poll.registry()) {
            Ok(busy) => {
                self.report_progress();
                busy
            }
            Err(reason) => {
                self.lose_client(reason);
                false
            }
        }
    }

    fn report_progress(&mut self) {
        let Some(session) = self.client.as_ref().map(|client| &client.session) else { return };
        if !self.greeted
            && let Some(peer) = session.peer()
        {
            self.greeted = true;
            (self.on_event)(Event::Greeted(peer.clone()));
        }
        // A guest that enumerates passes by settings that it has no use for.
        let transport = self.drive.device().transport();
        if transport != self.reported && session.is_used() {
            self.reported = transport;
            (self.on_event)(Event::Transport(transport));
        }
    }

    /// Accepts pending connections. Whether there is a new client.
    fn accept(&mut self) -> bool {
        let mut is_new = false;
        loop {
            let (mut socket, name) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => {
                        self.accept_pending = false;
                        return is_new;
                    }
                    _ => {
                        (self.on_event)(Event::AcceptFailed(error));
                        return is_new;
                    }
                },
            };
            self.end_hung_up_client();
            if self.client.is_some() {
                reject(socket, &self.drive);
                (self.on_event)(Event::Rejected { client: name });
                continue;
            }
            if let Err(error) = self.poll.registry().register(&mut socket, CLIENT, INTERESTS) {
                (self.on_event)(Event::AcceptFailed(error));
                return is_new;
            }
            let session = Session::new(self.limits, &self.version, &self.drive);
            self.client = Some(Client::new(socket, session, self.limits.hello_timeout));
            self.greeted = false;
            is_new = true;
            (self.on_event)(Event::Connected { client: name });
        }
    }

    /// Makes way for the next client if the present one has closed the connection and that has not
    /// been read yet. What it sent before is handled first, as far as that does not wait for a
    /// medium.
    fn end_hung_up_client(&mut self) {
        if !self.client.as_mut().is_some_and(Client::has_hung_up) {
            return;
        }
        for _ in 0..LAST_READS_MAX {
            if !self.run_once() {
                break;
            }
        }
        self.lose_client(Reason::Closed);
    }

    /// Ends the client: the drive loses its nexus, and answers that are not sent are dropped.
    fn lose_client(&mut self, reason: Reason) {
        let Some(mut client) = self.client.take() else { return };
        // It fails only if the socket is not registered, and closing does the same.
        let _ = self.poll.registry().deregister(&mut client.socket);
        drop(client);
        self.drive.nexus_loss();
        self.drive.run_once();
        while let Some(completion) = self.drive.poll() {
            if let Body::Buffer(buffer) = completion.body {
                self.drive.pool().put(buffer);
            }
        }
        self.reported = ActiveTransport::None;
        (self.on_event)(Event::Disconnected(reason));
    }

    fn publish(&self) {
        self.shared.publish(self.snapshot());
    }

    fn snapshot(&self) -> Snapshot {
        snapshot_of(&self.drive, self.client.is_some())
    }

    /// Carries out pending control requests. Whether there is more to do at once.
    fn carry_out_requests(&mut self) -> bool {
        let has_client = self.client.is_some();
        let snapshot = |drive: &Drive| snapshot_of(drive, has_client);
        self.waiting.carry_out(&self.shared, self.poll.registry(), &mut self.drive, snapshot)
    }

    /// Ends cleanly: what is at the media finishes, the client gets its answers, everything is
    /// flushed.
    fn end(mut self, outcome: io::Result<()>) -> ServerExit {
        (self.on_event)(Event::Stopping);
        self.shared.close_requests();
        self.waiting.clear();
        let mut events = Events::with_capacity(16);
        self.finish_media(&mut events);
        self.shut_down_client(&mut events);
        self.lose_client(Reason::Stopped);
        self.finish_media(&mut events);
        let flushed = self.drive.flush_media();
        self.publish();
        ServerExit { counters: self.drive.counters(), drives: vec![self.drive], flushed, outcome }
    }

    /// Waits until nothing is at the media. A medium that never answers is for the user to give up.
    fn finish_media(&mut self, events: &mut Events) {
        loop {
            self.drive.run_once();
            if self.drive.at_media() == 0 || self.wait(events, None).is_err() {
                return;
            }
        }
    }

    /// Sends the client its last answers and that the device goes away, if it reads them in time.
    fn shut_down_client(&mut self, events: &mut Events) {
        let deadline = Instant::now() + LAST_ANSWERS_TIMEOUT;
        let Some(client) = &mut self.client else { return };
        client.session.collect(&mut self.drive);
        client.session.disconnect();
        while let Some(client) = &mut self.client {
            let left = deadline.saturating_duration_since(Instant::now());
            let is_over = client.send(&mut self.drive, self.poll.registry()).is_err()
                || client.session.outgoing_bytes() == 0;
            if is_over || left.is_zero() || self.wait(events, Some(left)).is_err() {
                return;
            }
        }
    }
}

fn snapshot_of(drive: &Drive, has_client: bool) -> Snapshot {
    let (device, counters) = (drive.device(), drive.counters());
    Snapshot { counters, depth: device.depth(), has_client, transport: device.transport() }
}
