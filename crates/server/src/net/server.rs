//! A served drive: start, status, stop.
//!
//! The owner gets the drive back when the server has stopped. The threads share [`Shared`] and a waker. Left out: the
//! work itself, which is in `serve`.

use super::control::Controller;
use super::listener::Listener;
use super::serve::{Loop, Service, WAKER};
use super::shared::{ServerExit, Shared, Snapshot};
use super::{Address, BindError, Event};
use crate::usbredir::Limits;
use drive::Drive;
use mio::{Poll, Waker};
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

/// A drive that is served by its own thread. Dropping it leaves the thread running.
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
        let failed = |error| BindError::Io(config.address.clone(), error);
        let address = listener.address().map_err(failed)?;
        let poll = Poll::new().map_err(failed)?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER).map_err(failed)?);
        let shared = Arc::new(Shared::new());
        let stopper = Stopper { shared: Arc::clone(&shared), waker };
        let (version, limits) = (config.version.clone(), config.limits);
        let service = Service { drive, on_event: Box::new(on_event), version, limits };
        let serve = Loop::new(poll, listener, shared, service).map_err(failed)?;
        let thread =
            thread::Builder::new().name("uaskit-drive".into()).spawn(|| serve.run()).map_err(failed)?;
        Ok(Self { address, stopper, thread })
    }

    /// The listening address; a requested port 0 is the assigned port here.
    pub const fn address(&self) -> &Address {
        &self.address
    }

    /// A handle that stops it.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// A handle that changes media while it serves.
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
