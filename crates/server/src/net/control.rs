//! Control of drives that are served: media in and out, a new size, drives at a controller's ports, faults, the status.
//!
//! A drive is named by the root port of its controller; a request without a port means the only drive. Requests are queued for the serving thread, which carries them out between two iterations of its
//! loop and answers each once, on a channel. The caller waits; the serving thread never does. What
//! takes long (opening an image, flushing one that was ejected) is done by the caller.
//!
//! Always true: a request whose caller has gone is carried out all the same; a request that must
//! wait for commands to end keeps no other waiting.

use super::shared::{Shared, Snapshot};
use bus::Speed;
use device::ActiveTransport;
use device::lun::UnitType;
use device::medium::MediumError;
use drive::medium::{self, Medium};
use drive::{Drive, Fault, SlotError};
use mio::Waker;
use std::fmt;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};
use units::{BlockCount, BlockSize, ByteCount};
use xhci_controller::PlannedFault;

/// Requests that may be pending at once.
pub const CONTROL_REQUESTS_MAX: usize = 16;

/// How long a caller waits: longer than commands in flight take, unless the medium itself hangs.
const CALLER_TIMEOUT: Duration = Duration::from_secs(30);
/// How often the media of a detached drive are looked at.
const MEDIA_PAUSE: Duration = Duration::from_millis(1);

/// Sends requests to served drives, from any thread.
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
    /// Not all data of the medium that was removed could be flushed.
    Flush(MediumError),
    /// No drive is at this port.
    NoDrive(u8),
    /// No port is named, and there are drives at these.
    WhichDrive(Vec<u8>),
    /// No port of the drive's speed is free.
    NoPort,
    /// The drive is exported without a controller.
    NoController,
    /// Too many faults are planned.
    TooManyFaults,
    /// Too many requests are pending.
    Full,
    /// The server has ended.
    Stopped,
    /// It is still being carried out: commands of the host do not end.
    StillWaiting,
}

/// The status of a server and its drives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// All drives together.
    pub snapshot: Snapshot,
    /// Each drive, by port.
    pub drives: Vec<DriveState>,
}

/// The status of a drive and its logical units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveState {
    /// Its root port; 0 over usbredir.
    pub port: u8,
    /// Its serial number.
    pub serial: String,
    /// The speed of its link.
    pub speed: Speed,
    /// The transport that its driver uses.
    pub transport: ActiveTransport,
    /// Commands in flight.
    pub depth: usize,
    /// Its units, by number.
    pub units: Vec<UnitState>,
}

/// The status of a logical unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitState {
    /// Its type.
    pub unit_type: UnitType,
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
    /// A request to one drive; `None` addresses the only one.
    At(Option<u8>, DriveRequest),
    Describe(Answer<State>),
    Attach(Box<Drive>, Answer<u8>),
    Detach(Option<u8>, Answer<Box<Drive>>),
    ControllerFault(PlannedFault, Answer<()>),
}

/// A request to a drive.
#[derive(Debug)]
pub(super) enum DriveRequest {
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
    Fault(Fault, Answer<()>),
}

/// The drives of a loop.
pub(crate) trait DriveSet {
    /// Their ports, in order.
    fn ports(&self) -> Vec<u8>;
    /// The drive at a port.
    fn drive(&self, port: u8) -> Option<&Drive>;
    /// The same, to change it.
    fn drive_mut(&mut self, port: u8) -> Option<&mut Drive>;
    /// The transport that is used at a port.
    fn transport(&self, port: u8) -> ActiveTransport;
    /// Puts a drive at a free port, which is returned.
    fn attach(&mut self, drive: Drive) -> Result<u8, ControlError>;
    /// Removes a drive from its port.
    fn detach(&mut self, port: u8) -> Result<Drive, ControlError>;
    /// Plans a fault of the controller.
    fn plan_fault(&mut self, fault: PlannedFault) -> Result<(), ControlError>;
}

/// The only drive of usbredir.
impl DriveSet for Drive {
    fn ports(&self) -> Vec<u8> {
        vec![0]
    }

    fn drive(&self, _: u8) -> Option<&Drive> {
        Some(self)
    }

    fn drive_mut(&mut self, _: u8) -> Option<&mut Drive> {
        Some(self)
    }

    fn transport(&self, _: u8) -> ActiveTransport {
        self.device().transport()
    }

    fn attach(&mut self, _: Drive) -> Result<u8, ControlError> {
        Err(ControlError::NoController)
    }

    fn detach(&mut self, _: u8) -> Result<Drive, ControlError> {
        Err(ControlError::NoController)
    }

    fn plan_fault(&mut self, _: PlannedFault) -> Result<(), ControlError> {
        Err(ControlError::NoController)
    }
}

impl Controller {
    pub(super) const fn new(shared: Arc<Shared>, waker: Arc<Waker>) -> Self {
        Self { shared, waker }
    }

    /// Inserts a medium into a unit that has none.
    ///
    /// # Errors
    /// The unit cannot take it.
    pub fn insert(
        &self,
        port: Option<u8>,
        unit: u8,
        medium: Box<dyn Medium + Send>,
    ) -> Result<(), ControlError> {
        self.ask(|answer| ControlRequest::At(port, DriveRequest::Insert { unit, medium, answer }))
    }

    /// Ejects the medium of a unit and flushes it, with `force` even if the host prevents removal.
    ///
    /// # Errors
    /// The medium cannot be ejected, or the flush failed; the medium is out then.
    pub fn eject(&self, port: Option<u8>, unit: u8, force: bool) -> Result<(), ControlError> {
        let eject = |answer| DriveRequest::Eject { unit, force, begun: false, answer };
        let mut medium = self.ask(|answer| ControlRequest::At(port, eject(answer)))?;
        medium::flush(&mut *medium, drop).map_err(ControlError::Flush)
    }

    /// Reads the size of a unit's medium again, in blocks.
    ///
    /// # Errors
    /// The size cannot be read.
    pub fn measure(&self, port: Option<u8>, unit: u8) -> Result<BlockCount, ControlError> {
        self.ask(|answer| ControlRequest::At(port, DriveRequest::Measure { unit, answer }))
    }

    /// Plans a fault of a drive, which counts from now on.
    ///
    /// # Errors
    /// Too many faults are planned.
    pub fn plan_fault(&self, port: Option<u8>, fault: Fault) -> Result<(), ControlError> {
        self.ask(|answer| ControlRequest::At(port, DriveRequest::Fault(fault, answer)))
    }

    /// Plans a fault of the controller, which counts from now on.
    ///
    /// # Errors
    /// Too many faults are planned, or there is no controller.
    pub fn plan_controller_fault(&self, fault: PlannedFault) -> Result<(), ControlError> {
        self.ask(|answer| ControlRequest::ControllerFault(fault, answer))
    }

    /// Puts a drive at a free port of the controller, which is returned.
    ///
    /// # Errors
    /// No port is free, or there is no controller.
    pub fn attach(&self, drive: Drive) -> Result<u8, ControlError> {
        self.ask(|answer| ControlRequest::Attach(Box::new(drive), answer))
    }

    /// Detaches a drive, as if it was pulled out, and flushes it.
    ///
    /// # Errors
    /// There is no such drive, or the flush failed; the drive is detached then.
    pub fn detach(&self, port: Option<u8>) -> Result<(), ControlError> {
        let mut drive = self.ask(|answer| ControlRequest::Detach(port, answer))?;
        drive.stop_observing();
        let deadline = Instant::now() + CALLER_TIMEOUT;
        // What was let through to the media ends there.
        while drive.at_media() > 0 {
            drive.run_once();
            while drive.poll_with(|_| {}) {}
            if Instant::now() > deadline {
                return Err(ControlError::StillWaiting);
            }
            thread::sleep(MEDIA_PAUSE);
        }
        drive.flush_media().map_err(|error| ControlError::Flush(error.error))
    }

    /// Returns the status.
    ///
    /// # Errors
    /// The server has ended, or does not answer.
    pub fn describe(&self) -> Result<State, ControlError> {
        self.ask(ControlRequest::Describe)
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

/// The change that a request makes to the events that the loop waits for.
#[derive(Debug)]
pub(super) enum Change {
    None,
    /// The medium of this unit is new.
    Inserted(u8, u8),
    /// The drive at this port is new.
    Attached(u8),
    /// It must wait for commands to end.
    Waits(ControlRequest),
}

impl ControlRequest {
    /// Carries out the request if that is possible now. `leave` is called with the descriptor of a medium before that is removed.
    pub(super) fn carry_out(
        self,
        drives: &mut impl DriveSet,
        snapshot: Snapshot,
        leave: impl Fn(BorrowedFd<'_>),
    ) -> Change {
        match self {
            Self::At(port, request) => {
                let found = select(drives, port).and_then(|port| {
                    let drive = drives.drive_mut(port).ok_or(ControlError::NoDrive(port))?;
                    Ok((port, drive))
                });
                match found {
                    Ok((port, drive)) => return request.carry_out(port, drive, leave),
                    Err(error) => request.refuse(error),
                }
            }
            Self::Describe(answer) => {
                let drives =
                    drives.ports().into_iter().filter_map(|port| drive_state(drives, port)).collect();
                reply(&answer, Ok(State { snapshot, drives }));
            }
            Self::Attach(drive, answer) => {
                let attached = drives.attach(*drive);
                let change = attached.as_ref().map_or(Change::None, |port| Change::Attached(*port));
                reply(&answer, attached);
                return change;
            }
            Self::Detach(port, answer) => {
                let detached = select(drives, port).and_then(|port| {
                    if let Some(drive) = drives.drive(port) {
                        drive.event_fds().for_each(leave);
                    }
                    drives.detach(port)
                });
                reply(&answer, detached.map(Box::new));
            }
            Self::ControllerFault(fault, answer) => reply(&answer, drives.plan_fault(fault)),
        }
        Change::None
    }
}

impl DriveRequest {
    fn carry_out(self, port: u8, drive: &mut Drive, leave: impl Fn(BorrowedFd<'_>)) -> Change {
        match self {
            Self::Insert { unit, medium, answer } => {
                let outcome = drive.insert_medium(unit, medium);
                let is_in = outcome.is_ok();
                reply(&answer, outcome.map_err(|(error, _)| ControlError::Slot(error)));
                if is_in { Change::Inserted(port, unit) } else { Change::None }
            }
            Self::Eject { unit, force, begun, answer } => {
                if !begun && let Err(error) = drive.eject_medium(unit, force) {
                    reply(&answer, Err(ControlError::Slot(error)));
                    return Change::None;
                }
                match drive.take_medium(unit) {
                    Some(medium) => {
                        medium.event_fd().into_iter().for_each(leave);
                        reply(&answer, Ok(medium));
                        Change::None
                    }
                    None => {
                        let eject = Self::Eject { unit, force, begun: true, answer };
                        Change::Waits(ControlRequest::At(Some(port), eject))
                    }
                }
            }
            Self::Measure { unit, answer } => {
                reply(&answer, drive.measure_medium(unit).map_err(ControlError::Slot));
                Change::None
            }
            Self::Fault(fault, answer) => {
                let has_room = drive.plan_fault(fault);
                reply(&answer, has_room.then_some(()).ok_or(ControlError::TooManyFaults));
                Change::None
            }
        }
    }

    fn refuse(self, error: ControlError) {
        match self {
            Self::Insert { answer, .. } | Self::Fault(_, answer) => reply(&answer, Err(error)),
            Self::Eject { answer, .. } => reply(&answer, Err(error)),
            Self::Measure { answer, .. } => reply(&answer, Err(error)),
        }
    }
}

/// The port that a request names; without one, that of the only drive.
fn select(drives: &impl DriveSet, port: Option<u8>) -> Result<u8, ControlError> {
    let ports = drives.ports();
    match (port, &ports[..]) {
        (Some(port), _) if ports.contains(&port) => Ok(port),
        (Some(port), _) => Err(ControlError::NoDrive(port)),
        (None, [only]) => Ok(*only),
        (None, _) => Err(ControlError::WhichDrive(ports)),
    }
}

/// A caller that has gone gets no answer.
fn reply<T>(answer: &Answer<T>, outcome: Result<T, ControlError>) {
    let _ = answer.try_send(outcome);
}

fn drive_state(drives: &impl DriveSet, port: u8) -> Option<DriveState> {
    let drive = drives.drive(port)?;
    let config = drive.device().config();
    Some(DriveState {
        port,
        serial: config.serial.clone(),
        speed: config.speed,
        transport: drives.transport(port),
        depth: drive.device().depth(),
        units: unit_states(drive),
    })
}

fn unit_states(drive: &Drive) -> Vec<UnitState> {
    let units = drive.device().units().iter().zip(drive.media());
    let states = units.map(|(unit, medium)| UnitState {
        unit_type: unit.config.unit_type,
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
                write!(f, "the medium was removed, but not all of its data could be flushed: {error:?}")
            }
            Self::NoDrive(port) => write!(f, "no drive at port {port}"),
            Self::WhichDrive(ports) if ports.is_empty() => f.write_str("no drive is attached"),
            Self::WhichDrive(ports) => {
                let ports: Vec<String> = ports.iter().map(u8::to_string).collect();
                write!(f, "there are drives at ports {}; name one with --port", ports.join(", "))
            }
            Self::NoPort => {
                f.write_str("no port of that speed is free: there are 15 of USB 2.0 and 15 of USB 3")
            }
            Self::NoController => {
                f.write_str("usbredir exports one drive, without a controller; use --vfio-user")
            }
            Self::TooManyFaults => f.write_str("too many faults are planned"),
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
