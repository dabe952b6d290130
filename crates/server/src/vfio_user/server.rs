//! A served function: start, status, stop.
//!
//! The owner gets the drives back when the server has stopped. Left out: the work itself, which is in `serve`.

use super::Event;
use super::function::Function;
use super::serve::{Loop, Service, WAKER};
use crate::net::{Address, BindError, Controller, Listener, Shared, Snapshot};
use drive::{Drive, FlushError};
use mio::{Poll, Waker};
use std::io;
use std::panic;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// A function that is served by its own thread. Dropping it leaves the thread running.
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

/// What remains when a server has stopped.
#[derive(Debug)]
pub struct ServerExit {
    /// The drives: idle, no client.
    pub drives: Vec<Drive>,
    /// Whether everything written is durable.
    pub flushed: Result<(), FlushError>,
    /// The error that ended the loop, if it was not stopped: the system's wait failed.
    pub outcome: io::Result<()>,
}

impl Server {
    /// Listens at a Unix socket, and serves `function` from now on. `on_event` is called on the serving thread; it must not
    /// block.
    ///
    /// # Errors
    /// If the socket cannot be bound.
    pub fn start(
        path: &Path,
        function: Function,
        on_event: impl FnMut(Event) + Send + 'static,
    ) -> Result<Self, BindError> {
        let address = Address::Unix(path.into());
        let listener = Listener::bind(&address, false)?;
        let failed = |error| BindError::Io(Address::Unix(path.into()), error);
        let poll = Poll::new().map_err(failed)?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER).map_err(failed)?);
        let shared = Arc::new(Shared::new());
        let stopper = Stopper { shared: Arc::clone(&shared), waker };
        let serve = Loop::new(poll, listener, shared, Service { function, on_event: Box::new(on_event) })
            .map_err(failed)?;
        let thread =
            thread::Builder::new().name("uaskit-host".into()).spawn(|| serve.run()).map_err(failed)?;
        Ok(Self { address, stopper, thread })
    }

    /// The listening address.
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
    /// Asks the server to end: requests at the media complete, all data are flushed.
    pub fn stop(&self) {
        self.shared.stop();
        // It fails only when the loop is gone, which is what was asked for.
        let _ = self.waker.wake();
    }
}
