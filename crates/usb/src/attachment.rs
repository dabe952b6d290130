//! A disk driven in user space: probe, transport and disk, joined over a [host bus](crate::host_bus).
//!
//! [`Attachment::open`] claims an interface from the kernel driver, [`Attachment::hosted`] uses a device
//! of a controller driven by this crate. Both identify the disk. Each request has a slot, which owns its
//! buffer. [`Attachment::close`] and dropping reattach the kernel driver; a [`ClaimedInterface`] keeps
//! the interface for the next attachment.
//!
//! ```no_run
//! use uaskit_usb::attachment::{AttachConfig, Attachment};
//! use inspect::{inventory::{Inventory, Scope}, tree::Tree};
//! use initiator::disk::Operation;
//! use std::time::{Duration, Instant};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let tree = Tree::running();
//! let inventory = Inventory::read(&tree, Scope::Brief);
//! let drive = *inventory.find("2-1").first().ok_or("there is no such port")?;
//! let mut disk = Attachment::open(&tree, drive, &AttachConfig::default())?;
//! println!("{} bytes", disk.geometry().bytes());
//! disk.submit(0, Operation::Read { fua: false, dpo: false, may_be_short: false }, units::Extent::new(0, 8))?;
//! while let Some(finished) = disk.wait(Instant::now() + Duration::from_secs(1))? {
//!     println!("{:?}: {:?}", finished.result, disk.buffer(finished.slot).map(|bytes| bytes[0]));
//! }
//! disk.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! Always true: an accepted request ends once; a buffer is not accessible while its request is in
//! flight; a disk that the system uses is not claimed; requests allocate nothing in steady state.

mod bare;
mod claimed;
mod error;
mod hosted;
mod in_use;
mod logical_unit;
mod open;
mod setup;
mod stop;
#[cfg(test)]
mod tests;

pub use bare::BareInterface;
pub use claimed::ClaimedInterface;
pub use error::AttachError;
pub use initiator::session::FinishedRequest;
pub use open::driven_disks;
pub use stop::Stop;

use crate::clock::{self, Clock};
use crate::host_bus::{HardwareBus, HostBusError, Readiness};
use crate::usbfs;
use initiator::disk::{
    AskTemperature, Counts, Geometry, LostWrite, Operation, RequestRefusal, RetryLimits, Temperature,
};
use initiator::session::Session;
use initiator::turbo::{LookAhead, TRANSFER_BYTES};
use initiator::{Counters, Timeouts, Transport};
use std::fmt;
use std::time::Instant;
use units::{Duration, Extent};

/// Timeout of identification of a disk that was identified before and has worked since.
const IDENTIFY_AGAIN_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// The transport to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransportChoice {
    /// UAS where it works, else BOT.
    #[default]
    Best,
    /// Bulk-Only Transport.
    Bot,
    /// Bulk-Only Transport with merged neighbouring requests.
    Turbo,
    /// USB Attached SCSI.
    Uas,
}

/// Parameters of an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttachConfig {
    /// The transport.
    pub transport: TransportChoice,
    /// The logical unit: 0 to 15 over Bulk-Only Transport.
    pub lun: u8,
    /// Maximum queue depth; the transport's by default.
    pub depth: Option<u16>,
    /// Requests in flight at once, each with a buffer.
    pub slots: u16,
    /// Bytes of each buffer.
    pub slot_bytes: u32,
    /// Maximum data of one command; with Turbo, of one merged command.
    pub transfer_bytes_max: u32,
    /// Turbo: how long requests wait for neighbours.
    pub look_ahead: LookAhead,
    /// Timeouts of the recovery steps of the transport.
    pub timeouts: Timeouts,
    /// Limits of retries of the disk.
    pub retry_limits: RetryLimits,
    /// Whether identification reads the temperature; the result is in [`Geometry::temperature`].
    pub ask_temperature: AskTemperature,
    /// Bulk-Only Transport: the residues of the device are known to be meaningless.
    pub ignore_residue: bool,
}

/// Counts since the attachment was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttachmentCounters {
    /// Stalls, timeouts, resets.
    pub transport: Counters,
    /// Commands and retries.
    pub disk: Counts,
}

/// A disk driven in user space over a host bus.
pub struct Attachment<D: HardwareBus = usbfs::UsbInterface> {
    session: Session<D>,
    chosen: Chosen,
    clock: Clock,
}

/// The transport in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// Bulk-Only Transport.
    Bot,
    /// Bulk-Only Transport with merged neighbouring requests.
    Turbo,
    /// USB Attached SCSI.
    Uas {
        /// Number of streams; `None` where READY IUs are used.
        streams: Option<u16>,
    },
}

impl Default for AttachConfig {
    fn default() -> Self {
        Self {
            transport: TransportChoice::default(),
            lun: 0,
            depth: None,
            slots: 32,
            slot_bytes: 64 << 10,
            transfer_bytes_max: TRANSFER_BYTES,
            look_ahead: LookAhead::AfterNeighbour(Duration::from_us(100)),
            timeouts: Timeouts::default(),
            retry_limits: RetryLimits::DEFAULT,
            ask_temperature: AskTemperature::Not,
            ignore_residue: false,
        }
    }
}

impl<D: HardwareBus> Attachment<D> {
    /// Returns what the disk reports: size, block length, model, serial number, limits.
    pub const fn geometry(&self) -> &Geometry {
        self.session.disk().geometry().expect("an attachment is made only of a disk that was identified")
    }

    /// Returns the transport in use.
    pub const fn transport(&self) -> Chosen {
        self.chosen
    }

    /// Returns the queue depth.
    pub fn depth(&self) -> usize {
        self.session.transport().depth()
    }

    /// Returns whether the controller accesses the buffers directly.
    pub fn is_zero_copy(&self) -> bool {
        self.session.bus().is_zero_copy()
    }

    /// Returns the number of slots.
    pub const fn slots(&self) -> u16 {
        self.session.slots()
    }

    /// Returns the buffer of a slot; `None` while its request is in flight, or if there is no such
    /// slot.
    pub fn buffer(&mut self, slot: u16) -> Option<&mut [u8]> {
        self.session.buffer(slot)
    }

    /// Announces the maximum of requests in flight from now on, so that Turbo does not wait for a
    /// neighbour that cannot arrive ([`Transport::expect`]).
    pub fn expect(&mut self, requests: u16) {
        self.session.expect(requests);
    }

    /// Accepts a request that uses the buffer of a slot. It ends with one [`FinishedRequest`].
    ///
    /// # Errors
    ///
    /// Why it is rejected: [`RequestRefusal::Full`] also if the slot is in use,
    /// [`RequestRefusal::TooLong`] also if it is too small.
    pub fn submit(&mut self, slot: u16, operation: Operation, extent: Extent) -> Result<(), RequestRefusal> {
        let now = self.clock.now();
        self.session.submit(now, slot, operation, extent)?;
        self.session.settle(now);
        Ok(())
    }

    /// Aborts a request. It still ends once.
    pub fn abort(&mut self, slot: u16) {
        let now = self.clock.now();
        self.session.abort(now, slot);
        self.session.settle(now);
    }

    /// Waits for the next request to end. `None`: the time limit passed, nothing is in flight, or a
    /// signal arrived.
    ///
    /// # Errors
    ///
    /// If the host bus fails. Failures and disconnects of the device are in the result of each
    /// request.
    pub fn wait(&mut self, until: Instant) -> Result<Option<FinishedRequest>, D::Error> {
        loop {
            if let Some(finished) = self.session.poll() {
                return Ok(Some(finished));
            }
            if self.session.in_flight() == 0 || self.run_once(until)? == Poll::Idle {
                return Ok(self.session.poll());
            }
        }
    }

    /// Returns the next request known to have ended, without a system call.
    pub fn poll(&mut self) -> Option<FinishedRequest> {
        self.session.poll()
    }

    /// Returns the next acknowledged write that was lost later (deferred error). The next flush
    /// fails with the first of them as well.
    pub fn poll_lost(&mut self) -> Option<LostWrite> {
        self.session.poll_lost()
    }

    /// Returns the number of requests not returned by [`Self::wait`] yet.
    pub fn in_flight(&self) -> usize {
        self.session.in_flight()
    }

    /// Identifies the disk again and reads its temperature. `None`: not reported, or requests are
    /// in flight.
    ///
    /// # Errors
    ///
    /// If identification fails or takes longer than a few seconds.
    pub fn temperature(&mut self, ask: AskTemperature) -> Result<Option<Temperature>, AttachError<D::Error>> {
        if self.in_flight() > 0 {
            return Ok(None);
        }
        self.identify(ask, Instant::now() + IDENTIFY_AGAIN_TIMEOUT, &Stop::default())?;
        Ok(self.geometry().temperature)
    }

    /// Returns the counts since opening.
    pub fn counters(&self) -> AttachmentCounters {
        AttachmentCounters {
            transport: self.session.transport().counters(),
            disk: self.session.disk().counts(),
        }
    }

    /// Reattaches the kernel driver. Requests in flight are dropped.
    ///
    /// # Errors
    ///
    /// If the interface is not in its previous state, with what to do.
    pub fn close(self) -> Result<(), D::Error> {
        self.session.into_bus().close()
    }

    /// Polls the bus once, after a wait if there is nothing to do.
    fn run_once(&mut self, until: Instant) -> Result<Poll, D::Error> {
        if self.look()? {
            return Ok(Poll::Progress);
        }
        let now = self.clock.now();
        let due = self.session.poll_timeout();
        if due.is_some_and(|due| due <= now) {
            self.session.handle_timeout(now);
            self.session.settle(now);
            return Ok(Poll::Progress);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Poll::Idle);
        }
        let limit = due.map_or(left, |due| left.min(clock::span(due - now)));
        match self.session.bus_mut().wait(Some(limit))? {
            Readiness::Ready | Readiness::TimeOver => Ok(Poll::Progress),
            Readiness::Interrupted => Ok(Poll::Idle),
        }
    }

    /// Handles completions; returns whether there were any.
    fn look(&mut self) -> Result<bool, D::Error> {
        let seen = match self.session.bus_mut().reap() {
            Ok(any) => any,
            Err(error) if error.is_disconnect() => !self.session.is_gone(),
            Err(error) => return Err(error),
        };
        if seen {
            self.session.settle(self.clock.now());
        }
        self.session.bus_mut().take_fault().map_or(Ok(seen), Err)
    }
}

/// Whether polling again may find more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Poll {
    Progress,
    Idle,
}

impl AttachmentCounters {
    /// Returns whether there was no error, no retry and no reset.
    pub fn is_clean(&self) -> bool {
        let Counts { sent_again, transport_failures, lost_writes, .. } = self.disk;
        self.transport == Counters::default()
            && sent_again == 0
            && transport_failures == 0
            && lost_writes == 0
    }
}

impl<D: HardwareBus + fmt::Debug> fmt::Debug for Attachment<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attachment")
            .field("chosen", &self.chosen)
            .field("bus", self.session.bus())
            .field("in_flight", &self.session.disk().in_flight())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bot => f.write_str("BOT"),
            Self::Turbo => f.write_str("BOT with merged requests"),
            Self::Uas { streams: Some(streams) } => write!(f, "UAS with {streams} streams"),
            Self::Uas { streams: None } => f.write_str("UAS, no streams"),
        }
    }
}
