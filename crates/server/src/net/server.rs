//! A served drive: start, status, stop.
//!
//! The owner gets the drives back when the server has stopped. The threads share [`Shared`] and a waker. Left out: the
//! work itself, which is in `serve`.

use super::control::Controller;
use super::listener::Listener;
use super::media::WAKER;
use super::serve::{Loop, Service};
use super::shared::{ServerExit, Shared, Snapshot};
use super::{Address, BindError, Event};
use crate::usbredir::Limits;
use drive::Drive;
use mio::{Poll, Waker};
use std::io;
use std::panic;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// How a drive is served.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address to listen at.
    pub address: Address,
    /// Whether a TCP address other than loopback is allowed.
    pub allow_remote: bool,
    /// The version text of our hello, at most 63 bytes.
    pub version: String,
    /// Limits of what a client may make the server hold.
    pub limits: Limits,
}

/// A drive, or a controller with drives, that is served by its own thread. Dropping it leaves the thread running.
#[derive(Debug)]
pub struct Server {
    address: Address,
    stopper: Stopper,
    thread: JoinHandle<ServerExit>,
}

/// Stops a server, from any thread.
#[derive(Clone, Debug)]
pub struct Stopper {
    shared: Arc<Shared>,
    waker: Arc<Waker>,
}

impl Server {
    /// Listens, and serves `drive` from now on. `on_event` is called on the serving thread; it must not block.
    ///
    /// # Errors
    /// If the address cannot be bound.
    pub fn start(
        config: Config,
        drive: Drive,
        on_event: impl FnMut(Event) + Send + 'static,
    ) -> Result<Self, BindError> {
        let listener = Listener::bind(&config.address, config.allow_remote)?;
        let Config { address, version, limits, .. } = config;
        let service = Service { drive, on_event: Box::new(on_event), version, limits };
        Self::spawn("uaskit-drive", &address, listener, |poll, listener, shared| {
            let serve = Loop::new(poll, listener, shared, service)?;
            Ok(|| serve.run())
        })
    }

    /// Starts the thread `name` of a loop, which `prepare` makes, at a listener that `address` has named.
    pub(crate) fn spawn<F: FnOnce() -> ServerExit + Send + 'static>(
        name: &str,
        address: &Address,
        listener: Listener,
        prepare: impl FnOnce(Poll, Listener, Arc<Shared>) -> io::Result<F>,
    ) -> Result<Self, BindError> {
        let failed = |error| BindError::Io(address.clone(), error);
        let bound = listener.address().map_err(failed)?;
        let poll = Poll::new().map_err(failed)?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER).map_err(failed)?);
        let shared = Arc::new(Shared::new());
        let stopper = Stopper { shared: Arc::clone(&shared), waker };
        let serve = prepare(poll, listener, shared).map_err(failed)?;
        let thread = thread::Builder::new().name(name.into()).spawn(serve).map_err(failed)?;
        Ok(Self { address: bound, stopper, thread })
    }

    /// The listening address; a requested port 0 is the assigned port here.
    pub const fn address(&self) -> &Address {
        &self.address
    }

    /// A handle that stops it.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// A handle that changes media of the first drive while it serves.
    pub fn controller(&self) -> Controller {
        Controller::new(Arc::clone(&self.stopper.shared), Arc::clone(&self.stopper.waker))
    }

    /// The present state.
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
        self.shared.stop();
        // It fails only when the loop is gone, which is what was asked for.
        let _ = self.waker.wake();
    }
}
