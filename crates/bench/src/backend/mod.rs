//! What jobs run on: a drive, and the ways in which requests get to it.
//!
//! A [`BenchDevice`] is one drive with its [`Route`]s; it puts up one at a time, so that transports are compared on the same
//! hardware in turns. A [`Runner`] is a route that is up: it has slots with memory, starts an access in a slot, and tells
//! when that has ended. Left out: what is asked, how fast it was, whether the data are right; that is for the modules
//! above.
//!
//! Always true: every access that was started ends exactly once, unless the runner fails as a whole; the memory of a slot
//! is the caller's while nothing is under way in it.

mod device_identity;
mod file;
mod memory;
mod port;
mod queued;
mod quirks;
mod thermometer;

pub use file::{FileDevice, FileDeviceOptions};
pub use memory::MemoryDevice;
pub use port::UsbPortDevice;

use bus::Observer;
use device::medium::MediumError;
use initiator::disk::{self, LostWrite, Temperature};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use units::{BlockCount, BlockSize};
use workload::Access;

/// How requests get to a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Whatever driver the kernel has bound.
    Kernel,
    /// Our own, Bulk-Only.
    Bot,
    /// Our own, Bulk-Only with packed requests.
    Turbo,
    /// Our own, USB Attached SCSI.
    Uas,
}

/// Makes whoever looks on at the transfers of a drive, for each time that it is put up anew.
pub trait ObserverFactory: fmt::Debug {
    /// Who looks on from now on, at a drive whose descriptors are read again.
    fn observer(&self) -> Box<dyn Observer>;
}

/// A drive and the ways to it.
pub trait BenchDevice {
    /// Has somebody look on at the transfers of routes that are put up from now on.
    ///
    /// # Errors
    /// If its transfers are not ours.
    fn watch(&mut self, factory: Box<dyn ObserverFactory>) -> Result<(), DeviceError> {
        let _ = factory;
        Err(DeviceError::new("the kernel's driver makes the transfers"))
    }

    /// Has a drive that is being put up given up when this is set, so that nobody waits for one that says nothing.
    fn set_stop_flag(&mut self, flag: Arc<AtomicBool>) {
        let _ = flag;
    }

    /// Puts a route up for accesses within `room`, and takes down the one that was up.
    ///
    /// # Errors
    /// Why there is no such way to this drive.
    fn open_route(&mut self, route: Route, room: BufferLayout) -> Result<&mut dyn Runner, DeviceError>;

    /// Takes down what is up, and gives back what was taken. Dropping a bench_device does the same, and cannot say what went wrong.
    ///
    /// # Errors
    /// What was not given back, and what to do.
    fn close(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// What is known of the drive by now.
    fn identity(&self) -> DriveInfo;

    /// Why a drive that was found in the place of the one that was agreed to was left alone, if one was.
    fn changed_device(&self) -> Option<&DeviceError> {
        None
    }

    /// How warm the drive has said to be, before the first run and, once closed, after the last; where our drivers have asked it.
    fn temperatures(&self) -> [Option<Temperature>; 2] {
        [None; 2]
    }
}

/// How much is under way at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferLayout {
    /// Accesses.
    pub slots: u16,
    /// Bytes of each.
    pub bytes: u32,
}

/// Who a drive is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DriveInfo {
    /// Vendor and product, or what it is.
    pub model: Option<String>,
    /// Its serial number.
    pub serial: Option<String>,
    /// The revision of its firmware.
    pub firmware: Option<String>,
    /// Bytes that it has.
    pub bytes: u64,
    /// Bytes of a logical block.
    pub block_bytes: u32,
    /// How requests are made: the engine, and whether they go past the page cache.
    pub engine: String,
    /// What may make its figures better or worse than they are elsewhere.
    pub notes: Vec<String>,
}

/// A route that is up.
pub trait Runner {
    /// The length of a block.
    fn block_size(&self) -> BlockSize;

    /// Blocks that there are.
    fn capacity(&self) -> BlockCount;

    /// Makes slots 0 to `depth`, each with memory of `bytes`, within the room of the route. Nothing may be under way.
    ///
    /// # Errors
    /// If there is no memory for them.
    fn prepare(&mut self, depth: u16, bytes: u32) -> Result<(), DeviceError>;

    /// The memory of a slot: what an access there has read, or will write. What it holds after a write is left over.
    fn memory(&mut self, slot: u16) -> &mut [u8];

    /// Starts an access in a slot that has none under way.
    fn start(&mut self, slot: u16, access: Access);

    /// Starts to bring what was written to the medium, in a slot that has nothing under way. It ends as an access does.
    fn start_flush(&mut self, slot: u16);

    /// Carries out what was started, and waits until an access has ended, or so long.
    ///
    /// # Errors
    /// If nothing more can come of this runner.
    fn run_once(&mut self, timeout: Duration) -> Result<(), DeviceError>;

    /// The next access that has ended.
    fn poll(&mut self) -> Option<CompletedAccess>;

    /// The next write that had ended well and was lost later, where our own initiator hears of it. [`ErrorCounters::lost_writes`] counts
    /// those as well that there was no room to keep.
    fn poll_lost(&mut self) -> Option<LostWrite> {
        None
    }

    /// The time by which runs are measured.
    fn now(&self) -> std::time::Instant {
        std::time::Instant::now()
    }

    /// How long an access may take, with all tries and what is done between them.
    fn access_max(&self) -> Duration {
        KERNEL_ACCESS_MAX
    }

    /// The same of a flush.
    fn flush_max(&self) -> Duration {
        KERNEL_FLUSH_MAX
    }

    /// What went wrong below so far, whether it was mended or not.
    fn error_counters(&self) -> ErrorCounters;

    /// What is not to be counted for a run that begins now.
    fn initial_error_counters(&mut self) -> ErrorCounters {
        self.error_counters()
    }
}

/// The kernel sends a command to a disk six times at most, gives each thirty seconds, and resets what does not answer between them.
const KERNEL_ACCESS_MAX: Duration = Duration::from_secs(300);

/// Twice as long, since a flush may have to empty the page cache of a file.
const KERNEL_FLUSH_MAX: Duration = Duration::from_secs(600);

/// The end of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletedAccess {
    /// Its slot.
    pub slot: u16,
    /// How it ended.
    pub result: Result<(), AccessError>,
}

/// Why an access failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessError {
    /// Our own initiator says so.
    Disk(disk::Error),
    /// The kernel says so.
    Medium(MediumError),
    /// Our own initiator says so of a flush.
    DiskFlush(disk::Error),
    /// The kernel says so of a flush.
    MediumFlush(MediumError),
}

/// Why a runner cannot be put up, or cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceError {
    /// What happened, and why.
    pub what: String,
    /// Nothing has failed: this drive, where it is, does not have the route that was asked for.
    pub is_not_offered: bool,
}

/// What went wrong below, counted since a runner was put up. Most of it is mended by trying again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ErrorCounters {
    /// Commands sent again.
    pub retries: u64,
    /// Commands whose deadline passed.
    pub timeouts: u64,
    /// Transfers that ended with a stall.
    pub stalls: u64,
    /// Statuses that were not what they should be.
    pub odd_statuses: u64,
    /// BUSY and TASK SET FULL.
    pub busy: u64,
    /// Errors that the drive has mended by itself.
    pub recovered: u64,
    /// Resets of a unit, an interface or a port.
    pub resets: u64,
    /// Errors that the kernel has counted for the disk.
    pub kernel_errors: u64,
    /// Deferred errors: writes that had ended well and were lost later. Nothing mends those, so that they are failures as well.
    pub lost_writes: u64,
    /// Answers of a unit that was not ready.
    pub not_ready: u64,
    /// Commands that the transport brought no answer for.
    pub transport_failures: u64,
    /// UAS: tasks aborted.
    pub task_aborts: u64,
    /// Turbo: packs that failed and were sent again in their parts.
    pub unpacked: u64,
}

impl ErrorCounters {
    /// None at all.
    pub const NONE: Self = Self {
        retries: 0,
        timeouts: 0,
        stalls: 0,
        odd_statuses: 0,
        busy: 0,
        recovered: 0,
        resets: 0,
        kernel_errors: 0,
        lost_writes: 0,
        not_ready: 0,
        transport_failures: 0,
        task_aborts: 0,
        unpacked: 0,
    };

    /// What has been added since `earlier`.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            retries: self.retries.saturating_sub(earlier.retries),
            timeouts: self.timeouts.saturating_sub(earlier.timeouts),
            stalls: self.stalls.saturating_sub(earlier.stalls),
            odd_statuses: self.odd_statuses.saturating_sub(earlier.odd_statuses),
            busy: self.busy.saturating_sub(earlier.busy),
            recovered: self.recovered.saturating_sub(earlier.recovered),
            resets: self.resets.saturating_sub(earlier.resets),
            kernel_errors: self.kernel_errors.saturating_sub(earlier.kernel_errors),
            lost_writes: self.lost_writes.saturating_sub(earlier.lost_writes),
            not_ready: self.not_ready.saturating_sub(earlier.not_ready),
            transport_failures: self.transport_failures.saturating_sub(earlier.transport_failures),
            task_aborts: self.task_aborts.saturating_sub(earlier.task_aborts),
            unpacked: self.unpacked.saturating_sub(earlier.unpacked),
        }
    }

    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            retries: self.retries.saturating_add(other.retries),
            timeouts: self.timeouts.saturating_add(other.timeouts),
            stalls: self.stalls.saturating_add(other.stalls),
            odd_statuses: self.odd_statuses.saturating_add(other.odd_statuses),
            busy: self.busy.saturating_add(other.busy),
            recovered: self.recovered.saturating_add(other.recovered),
            resets: self.resets.saturating_add(other.resets),
            kernel_errors: self.kernel_errors.saturating_add(other.kernel_errors),
            lost_writes: self.lost_writes.saturating_add(other.lost_writes),
            not_ready: self.not_ready.saturating_add(other.not_ready),
            transport_failures: self.transport_failures.saturating_add(other.transport_failures),
            task_aborts: self.task_aborts.saturating_add(other.task_aborts),
            unpacked: self.unpacked.saturating_add(other.unpacked),
        }
    }

    /// Of an initiator: what its disk and its transport have counted.
    pub const fn of(disk: disk::Counts, transport: initiator::Counters) -> Self {
        Self {
            retries: disk.sent_again + transport.resends as u64,
            timeouts: transport.timeouts as u64,
            stalls: transport.stalls as u64,
            odd_statuses: transport.odd_statuses as u64,
            busy: disk.busy,
            recovered: disk.recovered,
            resets: transport.resets() as u64,
            kernel_errors: 0,
            lost_writes: disk.lost_writes,
            not_ready: disk.not_ready,
            transport_failures: disk.transport_failures,
            task_aborts: transport.task_aborts as u64,
            unpacked: transport.unpacked as u64,
        }
    }

    /// Each kind with its name.
    pub const fn named(&self) -> [(&'static str, u64); 13] {
        [
            ("retries", self.retries),
            ("timeouts", self.timeouts),
            ("stalls", self.stalls),
            ("odd statuses", self.odd_statuses),
            ("busy", self.busy),
            ("recovered by the drive", self.recovered),
            ("resets", self.resets),
            ("errors counted by the kernel", self.kernel_errors),
            ("writes lost after they had ended well", self.lost_writes),
            ("answers that the unit was not ready", self.not_ready),
            ("commands without an answer", self.transport_failures),
            ("tasks aborted", self.task_aborts),
            ("packs sent again in parts", self.unpacked),
        ]
    }
}

impl DeviceError {
    /// Something cannot be done.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), is_not_offered: false }
    }

    /// There is no such route.
    pub fn not_offered(what: impl Into<String>) -> Self {
        Self { what: what.into(), is_not_offered: true }
    }
}

impl Route {
    /// One word, for figures and flags.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Bot => "bot",
            Self::Turbo => "turbo",
            Self::Uas => "uas",
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(error) => error.fmt(f),
            Self::DiskFlush(error) => write!(f, "the flush after writes: {error}"),
            // No block is known: it is of all of them.
            Self::MediumFlush(MediumError::Unwritable { .. }) => {
                f.write_str("the flush after writes: the kernel could not write all of them")
            }
            Self::MediumFlush(error) => write!(f, "the flush after writes: {}", Self::Medium(*error)),
            Self::Medium(MediumError::Unreadable { lba }) => write!(f, "cannot be read at {lba}"),
            Self::Medium(MediumError::Unwritable { lba }) => write!(f, "cannot be written at {lba}"),
            Self::Medium(MediumError::OutOfSpace) => f.write_str("no room left"),
            Self::Medium(MediumError::WriteProtected) => f.write_str("write protected"),
            Self::Medium(MediumError::Shrunk) => f.write_str("it has become shorter"),
            Self::Medium(error) => write!(f, "{error:?}"),
        }
    }
}

impl AccessError {
    /// Nothing more can come of the drive.
    pub const fn is_final(&self) -> bool {
        matches!(
            self,
            Self::Disk(disk::Error::Gone | disk::Error::NoMedium)
                | Self::DiskFlush(disk::Error::Gone | disk::Error::NoMedium)
                | Self::Medium(MediumError::Absent)
                | Self::MediumFlush(MediumError::Absent)
        )
    }

    /// The same, of a flush.
    #[must_use]
    pub const fn of_flush(self) -> Self {
        match self {
            Self::Disk(error) => Self::DiskFlush(error),
            Self::Medium(error) => Self::MediumFlush(error),
            flush => flush,
        }
    }
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for DeviceError {}
