//! State that the serving thread shares with its owner: a stop flag, a snapshot and control
//! requests.

use super::control::{CONTROL_REQUESTS_MAX, ControlError, ControlRequest};
use device::ActiveTransport;
use drive::{Counters, Drive, FlushError};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The result of a server that has stopped.
#[derive(Debug)]
pub struct ServerExit {
    /// The drives: idle, no client.
    pub drives: Vec<Drive>,
    /// Counters of these drives, and of those that were detached.
    pub counters: Counters,
    /// Whether everything written is durable.
    pub flushed: Result<(), FlushError>,
    /// The error that ended the loop, if it was not stopped: the system's wait failed.
    pub outcome: io::Result<()>,
}

/// The state of a served drive, as of the last iteration of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Counters of the drive.
    pub counters: Counters,
    /// Commands in flight.
    pub depth: usize,
    /// Whether a client is connected.
    pub has_client: bool,
    /// The active transport.
    pub transport: ActiveTransport,
}

/// State that the loop and its owner share.
#[derive(Debug)]
pub(crate) struct Shared {
    stop: AtomicBool,
    snapshot: Mutex<Snapshot>,
    /// `None` once the loop has ended.
    requests: Mutex<Option<Vec<ControlRequest>>>,
}

impl Shared {
    /// State without a client or commands.
    pub(crate) fn new() -> Self {
        let snapshot = Snapshot {
            counters: Counters::default(),
            depth: 0,
            has_client: false,
            transport: ActiveTransport::None,
        };
        Self {
            stop: AtomicBool::new(false),
            snapshot: Mutex::new(snapshot),
            requests: Mutex::new(Some(Vec::new())),
        }
    }

    /// Asks the loop to end.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    pub(crate) fn publish(&self, snapshot: Snapshot) {
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
    pub(crate) fn close_requests(&self) {
        drop(self.requests.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// The state as of the last iteration of the loop.
    pub(crate) fn snapshot(&self) -> Snapshot {
        *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
