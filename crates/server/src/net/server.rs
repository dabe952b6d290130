//! A served drive, as its owner holds it.
//!
//! The owner starts it, looks at it, stops it and gets the drive back. What goes between the two threads is a flag, a
//! snapshot and a waker. Left out: the work itself, which is the loop's.

use super::control::{CONTROL_REQUESTS_MAX, ControlError, ControlRequest, Controller};
use super::listener::Listener;
use super::serve::{Loop, Service, WAKER};
use super::{Address, BindError, Event};
use crate::usbredir::Limits;
use device::ActiveTransport;
use drive::{Counters, Drive, FlushError};
use mio::{Poll, Waker};
use std::io;
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// How a drive is served.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where.
    pub address: Address,
    /// Whether a TCP address outside of loopback is meant so.
    pub allow_remote: bool,
    /// The version text of our hello, at most 63 bytes.
    pub version: String,
    /// How much a client may make us hold.
    pub limits: Limits,
}

/// A drive that is served by its own thread. Dropping it leaves the thread running.
#[derive(Debug)]
pub struct Server {
    address: Address,
    stopper: Stopper,
    thread: JoinHandle<ServerExit>,
}

/// Stops a server, from wherever that is decided.
#[derive(Clone, Debug)]
pub struct Stopper {
    shared: Arc<Shared>,
    waker: Arc<Waker>,
}

/// A drive that is not served any more.
#[derive(Debug)]
pub struct ServerExit {
    /// The drive: idle, no client.
    pub drive: Drive,
    /// Whether everything written is durable.
    pub flushed: Result<(), FlushError>,
    /// What ended the loop if it was not asked to: the system's wait failed.
    pub outcome: io::Result<()>,
}

/// How things are, as of the last turn of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// What the drive has done.
    pub counters: Counters,
    /// Commands in flight.
    pub depth: usize,
    /// Whether a client is there.
    pub has_client: bool,
    /// The transport that is on.
    pub transport: ActiveTransport,
}

/// What the loop and its owner share.
#[derive(Debug)]
pub(super) struct Shared {
    stop: AtomicBool,
    snapshot: Mutex<Snapshot>,
    /// `None` once the loop has ended.
    requests: Mutex<Option<Vec<ControlRequest>>>,
}

impl Server {
    /// Listens, and serves `drive` from now on. `on_event` is called on the serving thread; it must not block.
    ///
    /// # Errors
    /// The address cannot be listened at.
    pub fn start(
        config: Config,
        drive: Drive,
        on_event: impl FnMut(Event) + Send + 'static,
    ) -> Result<Self, BindError> {
        let listener = Listener::bind(&config.address, config.allow_remote)?;
        let failed = |error| BindError::Io(config.address.clone(), error);
        let address = listener.address().map_err(failed)?;
        let poll = Poll::new().map_err(failed)?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER).map_err(failed)?);
        let snapshot = Snapshot {
            counters: Counters::default(),
            depth: 0,
            has_client: false,
            transport: ActiveTransport::None,
        };
        let (stop, snapshot) = (AtomicBool::new(false), Mutex::new(snapshot));
        let shared = Arc::new(Shared { stop, snapshot, requests: Mutex::new(Some(Vec::new())) });
        let stopper = Stopper { shared: Arc::clone(&shared), waker };
        let (version, limits) = (config.version.clone(), config.limits);
        let service = Service { drive, on_event: Box::new(on_event), version, limits };
        let serve = Loop::new(poll, listener, shared, service).map_err(failed)?;
        let thread =
            thread::Builder::new().name("uaskit-drive".into()).spawn(|| serve.run()).map_err(failed)?;
        Ok(Self { address, stopper, thread })
    }

    /// Where it listens; a port 0 that was asked for is the real one here.
    pub const fn address(&self) -> &Address {
        &self.address
    }

    /// What stops it.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// What changes media while it serves.
    pub fn controller(&self) -> Controller {
        Controller::new(Arc::clone(&self.stopper.shared), Arc::clone(&self.stopper.waker))
    }

    /// How things are.
    pub fn snapshot(&self) -> Snapshot {
        self.stopper.shared.snapshot()
    }

    /// Waits until it has ended, which [`Stopper::stop`] makes it do.
    pub fn join(self) -> ServerExit {
        match self.thread.join() {
            Ok(ended) => ended,
            Err(payload) => panic::resume_unwind(payload),
        }
    }
}

impl Stopper {
    /// Asks the server to end: requests at the media complete, the client gets a disconnect, all
    /// data are flushed.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Release);
        // It fails only when the loop is gone, which is what was asked for.
        let _ = self.waker.wake();
    }
}

impl Shared {
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    pub(super) fn publish(&self, snapshot: Snapshot) {
        *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }

    /// Queues a request for the loop.
    pub(super) fn give(&self, request: ControlRequest) -> Result<(), ControlError> {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let requests = requests.as_mut().ok_or(ControlError::Stopped)?;
        if requests.len() >= CONTROL_REQUESTS_MAX {
            return Err(ControlError::Full);
        }
        requests.push(request);
        Ok(())
    }

    /// Takes the pending requests.
    pub(super) fn take_requests(&self) -> Vec<ControlRequest> {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Refuses further requests; the channel of each pending one ends.
    pub(super) fn close_requests(&self) {
        drop(self.requests.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn snapshot(&self) -> Snapshot {
        *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
