//! Devices that jobs run on, and the routes by which requests reach them.
//!
//! A [`BenchDevice`] is one drive with its [`Route`]s; it opens one route at a time, so that
//! transports are compared on the same hardware. A [`Runner`] is an open route: it has slots with
//! buffers, starts an access in a slot, and reports its completion. Left out: what to access,
//! timing, and data verification, which the modules above do.
//!
//! Always true: every started access completes exactly once, unless the runner fails as a whole;
//! the buffer of a slot belongs to the caller while nothing is in flight in it.

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
use initiator::session::FinishedRequest;
use serde::Serialize;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use units::{BlockCount, BlockSize};
use workload::Access;

/// How requests reach a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The driver that the kernel has bound.
    Kernel,
    /// Our driver, Bulk-Only Transport.
    Bot,
    /// Our driver, Bulk-Only Transport with packed requests.
    Turbo,
    /// Our driver, USB Attached SCSI.
    Uas,
}

/// Creates a transfer observer for each time that a route is opened.
pub trait ObserverFactory: fmt::Debug {
    /// Returns an observer for a drive that is attached now.
    fn observer(&self) -> Box<dyn Observer>;
}

/// A drive and its routes.
pub trait BenchDevice {
    /// Observes the transfers of all routes opened from now on.
    ///
    /// # Errors
    ///
    /// If the kernel's driver makes the transfers.
    fn watch(&mut self, factory: Box<dyn ObserverFactory>) -> Result<(), DeviceError> {
        let _ = factory;
        Err(DeviceError::new("the kernel's driver makes the transfers"))
    }

    /// Sets a flag that, once true, ends attempts to open an unresponsive drive.
    fn set_stop_flag(&mut self, flag: Arc<AtomicBool>) {
        let _ = flag;
    }

    /// Opens a route with buffers of this layout, and closes the open one.
    ///
    /// # Errors
    ///
    /// Why the drive does not have this route, or why opening failed.
    fn open_route(&mut self, route: Route, room: BufferLayout) -> Result<&mut dyn Runner, DeviceError>;

    /// Closes the open route and releases the device. Dropping does the same but cannot report
    /// errors.
    ///
    /// # Errors
    ///
    /// The error names the resource that could not be released, and the remedy.
    fn close(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Returns what is known of the drive so far.
    fn identity(&self) -> DriveInfo;

    /// Returns why a drive was rejected, if it is not the one that the user confirmed.
    fn changed_device(&self) -> Option<&DeviceError> {
        None
    }

    /// Returns the drive's temperature before the first run and, once closed, after the last, if
    /// our drivers have read it.
    fn temperatures(&self) -> [Option<Temperature>; 2] {
        [None; 2]
    }
}

/// Buffers of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferLayout {
    /// Number of slots, one per access in flight.
    pub slots: u16,
    /// Bytes of each buffer.
    pub bytes: u32,
}

/// Description of a drive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DriveInfo {
    /// Vendor and product, or another description.
    pub model: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
    /// Capacity in bytes.
    pub bytes: u64,
    /// Logical block size in bytes.
    pub block_bytes: u32,
    /// How requests are made: the engine, and whether they bypass the page cache.
    pub engine: String,
    /// Notes on conditions that distort the figures.
    pub notes: Vec<String>,
}

/// An open route.
pub trait Runner {
    /// Returns the block size.
    fn block_size(&self) -> BlockSize;

    /// Returns the capacity in blocks.
    fn capacity(&self) -> BlockCount;

    /// Allocates slots 0 to `depth`, each with a buffer of `bytes`, within the route's layout.
    /// Nothing may be in flight.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated.
    fn prepare(&mut self, depth: u16, bytes: u32) -> Result<(), DeviceError>;

    /// Returns the buffer of a slot: data to write, or data that was read. Its content after a
    /// write is unspecified.
    fn memory(&mut self, slot: u16) -> &mut [u8];

    /// Starts an access in an idle slot.
    fn start(&mut self, slot: u16, access: Access);

    /// Starts a flush in an idle slot. It completes like an access.
    fn start_flush(&mut self, slot: u16);

    /// Submits started accesses and waits until one completes, or until the timeout.
    ///
    /// # Errors
    ///
    /// If the runner is no longer usable.
    fn run_once(&mut self, timeout: Duration) -> Result<(), DeviceError>;

    /// Returns the next completed access.
    fn poll(&mut self) -> Option<CompletedAccess>;

    /// Returns the next acknowledged write that was lost later, if our initiator learns of it.
    /// [`ErrorCounters::lost_writes`] also counts those that exceeded the list.
    fn poll_lost(&mut self) -> Option<LostWrite> {
        None
    }

    /// Returns the time by which runs are measured.
    fn now(&self) -> std::time::Instant {
        std::time::Instant::now()
    }

    /// Returns the longest time that an access may take, all retries and recovery included.
    fn access_max(&self) -> Duration {
        KERNEL_ACCESS_MAX
    }

    /// Returns the same for a flush.
    fn flush_max(&self) -> Duration {
        KERNEL_FLUSH_MAX
    }

    /// Returns all errors so far, recovered or not.
    fn error_counters(&self) -> ErrorCounters;

    /// Returns the counters to subtract for a run that begins now.
    fn initial_error_counters(&mut self) -> ErrorCounters {
        self.error_counters()
    }
}

/// The kernel sends a command up to six times with a timeout of thirty seconds each, and resets the
/// device in between.
const KERNEL_ACCESS_MAX: Duration = Duration::from_secs(300);

/// Twice that, since a flush may write out a file's page cache.
const KERNEL_FLUSH_MAX: Duration = Duration::from_secs(600);

/// A completed access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletedAccess {
    /// Slot of the access.
    pub slot: u16,
    /// Result of the access.
    pub result: Result<(), AccessError>,
}

impl From<FinishedRequest> for CompletedAccess {
    fn from(finished: FinishedRequest) -> Self {
        let FinishedRequest { slot, result } = finished;
        Self { slot, result: result.map(|_| ()).map_err(AccessError::Disk) }
    }
}

/// Why an access failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessError {
    /// An error of our initiator.
    Disk(disk::Error),
    /// An error of the kernel.
    Medium(MediumError),
    /// A flush error of our initiator.
    DiskFlush(disk::Error),
    /// A flush error of the kernel.
    MediumFlush(MediumError),
}

/// Why a route cannot be opened, or why a runner failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceError {
    /// The failure and its cause.
    pub what: String,
    /// Not a failure: this drive does not have the requested route.
    pub is_not_offered: bool,
}

/// Low-level errors since the route was opened. Retries recover most of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ErrorCounters {
    /// Retried commands.
    pub retries: u64,
    /// Commands that timed out.
    pub timeouts: u64,
    /// Transfers that ended with a STALL.
    pub stalls: u64,
    /// Unexpected statuses.
    pub odd_statuses: u64,
    /// Statuses BUSY and TASK SET FULL.
    pub busy: u64,
    /// Recovered errors that the drive reported.
    pub recovered: u64,
    /// Resets of a logical unit, an interface or a port.
    pub resets: u64,
    /// Errors that the kernel counted for the disk.
    pub kernel_errors: u64,
    /// Deferred errors: acknowledged writes that were lost later. They cannot be recovered, so they
    /// are failures as well.
    pub lost_writes: u64,
    /// Commands answered with NOT READY.
    pub not_ready: u64,
    /// Commands without a response from the transport.
    pub transport_failures: u64,
    /// UAS: aborted tasks.
    pub task_aborts: u64,
    /// Turbo: packs that failed and were resent as single requests.
    pub unpacked: u64,
}

impl ErrorCounters {
    /// All zero.
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

    /// Subtracts an earlier reading.
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

    /// Adds two readings.
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

    /// Combines the counters of an initiator's disk and transport.
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

    /// Names each counter.
    pub const fn named(&self) -> [(&'static str, u64); 13] {
        [
            ("retries", self.retries),
            ("timeouts", self.timeouts),
            ("stalls", self.stalls),
            ("unexpected statuses", self.odd_statuses),
            ("busy", self.busy),
            ("recovered errors", self.recovered),
            ("resets", self.resets),
            ("kernel-counted errors", self.kernel_errors),
            ("acknowledged writes lost later", self.lost_writes),
            ("NOT READY responses", self.not_ready),
            ("commands without a response", self.transport_failures),
            ("aborted tasks", self.task_aborts),
            ("packs resent as single requests", self.unpacked),
        ]
    }
}

impl DeviceError {
    /// Creates an error.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), is_not_offered: false }
    }

    /// Creates an error for a route that the drive does not have.
    pub fn not_offered(what: impl Into<String>) -> Self {
        Self { what: what.into(), is_not_offered: true }
    }
}

impl Route {
    /// Returns the name for output and flags.
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
            Self::DiskFlush(error) => write!(f, "flush after writes: {error}"),
            // The kernel names no block for a failed flush.
            Self::MediumFlush(MediumError::Unwritable { .. }) => {
                f.write_str("flush after writes: the kernel could not write all data")
            }
            Self::MediumFlush(error) => write!(f, "flush after writes: {}", Self::Medium(*error)),
            Self::Medium(MediumError::Unreadable { lba }) => write!(f, "read error at {lba}"),
            Self::Medium(MediumError::Unwritable { lba }) => write!(f, "write error at {lba}"),
            Self::Medium(MediumError::OutOfSpace) => f.write_str("no space left"),
            Self::Medium(MediumError::WriteProtected) => f.write_str("write protected"),
            Self::Medium(MediumError::Shrunk) => f.write_str("the medium shrank"),
            Self::Medium(error) => write!(f, "{error:?}"),
        }
    }
}

impl AccessError {
    /// Whether the drive is no longer usable.
    pub const fn is_final(&self) -> bool {
        matches!(
            self,
            Self::Disk(disk::Error::Gone | disk::Error::NoMedium)
                | Self::DiskFlush(disk::Error::Gone | disk::Error::NoMedium)
                | Self::Medium(MediumError::Absent)
                | Self::MediumFlush(MediumError::Absent)
        )
    }

    /// Turns the error into that of a flush.
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
