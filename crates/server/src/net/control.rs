//! Control of a drive that is served: media in and out, a new size, the status.
//!
//! Requests are queued for the serving thread, which carries them out between two iterations of its
//! loop and answers each once, on a channel. The caller waits; the serving thread never does. What
//! takes long (opening an image, flushing one that was ejected) is done by the caller.
//!
//! Always true: a request whose caller has gone is carried out all the same; a request that must
//! wait for commands to end keeps no other waiting.

use super::shared::{Shared, Snapshot};
use device::medium::MediumError;
use drive::medium::{self, Medium};
use drive::{Drive, SlotError};
use mio::Waker;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;
use units::{BlockCount, BlockSize, ByteCount};

/// Requests that may be pending at once.
pub const CONTROL_REQUESTS_MAX: usize = 16;

/// How long a caller waits: longer than commands in flight take, unless the medium itself hangs.
const CALLER_TIMEOUT: Duration = Duration::from_secs(30);

/// Sends requests to a served drive, from any thread.
#[derive(Clone, Debug)]
pub struct Controller {
    shared: Arc<Shared>,
    waker: Arc<Waker>,
}

/// Why a request failed.
#[derive(Debug, PartialEq, Eq)]
pub enum ControlError {
    /// The slot of the unit.
    Slot(SlotError),
    /// Not all data of the ejected medium could be flushed.
    Flush(MediumError),
    /// Too many requests are pending.
    Full,
    /// The server has ended.
    Stopped,
    /// It is still being carried out: commands of the host do not end.
    StillWaiting,
}

/// The status of a drive and its logical units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The drive.
    pub snapshot: Snapshot,
    /// Its units, by number.
    pub units: Vec<UnitState>,
}

/// The status of a logical unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitState {
    /// Bytes of its medium, if it has one.
    pub capacity: Option<ByteCount>,
    /// The length of its blocks.
    pub block_size: BlockSize,
    /// Whether writes are refused.
    pub read_only: bool,
    /// Whether its medium can be ejected.
    pub removable: bool,
    /// Whether the host prevents that.
    pub removal_prevented: bool,
    /// The medium, for people.
    pub medium: String,
    /// The path of its image, if it is a file or a block device.
    pub image: Option<PathBuf>,
}

type Answer<T> = SyncSender<Result<T, ControlError>>;

/// A request to the serving thread.
#[derive(Debug)]
pub(super) enum ControlRequest {
    Insert {
        unit: u8,
        medium: Box<dyn Medium + Send>,
        answer: Answer<()>,
    },
    /// `begun` once the unit has lost its medium.
    Eject {
        unit: u8,
        force: bool,
        begun: bool,
        answer: Answer<Box<dyn Medium + Send>>,
    },
    Measure {
        unit: u8,
        answer: Answer<BlockCount>,
    },
    Describe {
        answer: Answer<State>,
    },
}

impl Controller {
    pub(super) const fn new(shared: Arc<Shared>, waker: Arc<Waker>) -> Self {
        Self { shared, waker }
    }

    /// Inserts a medium into a unit that has none.
    ///
    /// # Errors
    /// The unit cannot take it.
    pub fn insert(&self, unit: u8, medium: Box<dyn Medium + Send>) -> Result<(), ControlError> {
        self.ask(|answer| ControlRequest::Insert { unit, medium, answer })
    }

    /// Ejects the medium of a unit and flushes it, with `force` even if the host prevents removal.
    ///
    /// # Errors
    /// The medium cannot be ejected, or the flush failed; the medium is out then.
    pub fn eject(&self, unit: u8, force: bool) -> Result<(), ControlError> {
        let mut medium = self.ask(|answer| ControlRequest::Eject { unit, force, begun: false, answer })?;
        medium::flush(&mut *medium, drop).map_err(ControlError::Flush)
    }

    /// Reads the size of a unit's medium again, in blocks.
    ///
    /// # Errors
    /// The size cannot be read.
    pub fn measure(&self, unit: u8) -> Result<BlockCount, ControlError> {
        self.ask(|answer| ControlRequest::Measure { unit, answer })
    }

    /// Returns the status.
    ///
    /// # Errors
    /// The server has ended, or does not answer.
    pub fn describe(&self) -> Result<State, ControlError> {
        self.ask(|answer| ControlRequest::Describe { answer })
    }

    fn ask<T>(&self, request: impl FnOnce(Answer<T>) -> ControlRequest) -> Result<T, ControlError> {
        let (answer, answered) = sync_channel(1);
        self.shared.give(request(answer))?;
        self.waker.wake().map_err(|_| ControlError::Stopped)?;
        match answered.recv_timeout(CALLER_TIMEOUT) {
            Ok(outcome) => outcome,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => Err(ControlError::StillWaiting),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => Err(ControlError::Stopped),
        }
    }
}

/// What a request changes in the events that the loop waits for.
#[derive(Debug)]
pub(super) enum Change {
    None,
    /// The medium of this unit is new.
    Inserted(u8),
    /// It must wait for commands to end.
    Waits(ControlRequest),
}

impl ControlRequest {
    /// Carries out the request if that is possible now. `leave` is called with a medium before it
    /// is removed.
    pub(super) fn carry_out(
        self,
        drive: &mut Drive,
        snapshot: Snapshot,
        leave: impl FnOnce(&dyn Medium),
    ) -> Change {
        match self {
            Self::Insert { unit, medium, answer } => {
                let outcome = drive.insert_medium(unit, medium);
                let is_in = outcome.is_ok();
                reply(&answer, outcome.map_err(|(error, _)| ControlError::Slot(error)));
                if is_in { Change::Inserted(unit) } else { Change::None }
            }
            Self::Eject { unit, force, begun, answer } => {
                if !begun && let Err(error) = drive.eject_medium(unit, force) {
                    reply(&answer, Err(ControlError::Slot(error)));
                    return Change::None;
                }
                match drive.take_medium(unit) {
                    Some(medium) => {
                        leave(&*medium);
                        reply(&answer, Ok(medium));
                        Change::None
                    }
                    None => Change::Waits(Self::Eject { unit, force, begun: true, answer }),
                }
            }
            Self::Measure { unit, answer } => {
                reply(&answer, drive.measure_medium(unit).map_err(ControlError::Slot));
                Change::None
            }
            Self::Describe { answer } => {
                reply(&answer, Ok(State { snapshot, units: unit_states(drive) }));
                Change::None
            }
        }
    }
}

/// A caller that has gone gets no answer.
fn reply<T>(answer: &Answer<T>, outcome: Result<T, ControlError>) {
    let _ = answer.try_send(outcome);
}

fn unit_states(drive: &Drive) -> Vec<UnitState> {
    let units = drive.device().units().iter().zip(drive.media());
    let states = units.map(|(unit, medium)| UnitState {
        capacity: medium.block_size().bytes_in(medium.capacity()).filter(|bytes| bytes.0 > 0),
        block_size: unit.config.block_size,
        read_only: unit.config.read_only,
        removable: unit.config.removable,
        removal_prevented: unit.removal_prevented,
        medium: medium.describe(),
        image: medium.path().map(Path::to_path_buf),
    });
    states.collect()
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slot(error) => error.fmt(f),
            Self::Flush(error) => {
                write!(f, "the medium was ejected, but not all of its data could be flushed: {error:?}")
            }
            Self::Full => {
                write!(f, "{CONTROL_REQUESTS_MAX} commands are pending, the maximum; try again later")
            }
            Self::Stopped => f.write_str("the server has stopped"),
            Self::StillWaiting => write!(
                f,
                "timed out after {} s, because commands of the host are still in flight; it completes when they do",
                CALLER_TIMEOUT.as_secs()
            ),
        }
    }
}

impl std::error::Error for ControlError {}
