//! A disk of this machine, driven by ourselves: probe, transport, disk, joined over a [door](crate::door).
//!
//! [`Attachment::open`] takes an interface from the kernel's driver, [`Attachment::hosted`] a device of a controller that
//! is ours. Both survey the disk. Requests are [submitted](Attachment::submit), each with a slot that has its buffer, and
//! [waited](Attachment::wait) for. [`Attachment::close`] gives back what was taken, and so does dropping; a [`Hold`] keeps it.
//!
//! ```no_run
//! use uaskit_usb::attachment::{AttachConfig, Attachment};
//! use inspect::inventory::{Inventory, Scope};
//! use inspect::tree::Tree;
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
//! Always true: a request that was taken on ends once; a buffer is not given out while its request is under way; a disk
//! that the system uses is not taken; in steady state nothing is allocated per request.

mod carry;
mod error;
mod hold;
mod hosted;
mod in_use;
mod logical_unit;
mod open;
mod setup;
mod stop;
#[cfg(test)]
mod tests;

pub use error::AttachError;
pub use hold::Hold;
pub use open::driven_disks;
pub use stop::Stop;

use crate::clock::{self, Clock};
use crate::door::{BusDoor, DoorError, Readiness};
use crate::usbfs;
use carry::{Commands, Flight};
use initiator::disk::{
    AskTemperature, Counts, Disk, DiskPatience, Done, Error, Geometry, LostWrite, Operation, Request,
    RequestId, RequestRefusal, SurveyError, Temperature,
};
use initiator::turbo::{LookAhead, TRANSFER_BYTES};
use initiator::{Counters, Flights, Patience, Piece, Transport};
use setup::Cells;
use std::collections::VecDeque;
use std::fmt;
use std::time::Instant;
use units::{Duration, Extent};

/// Lost writes that are kept until somebody asks; all are counted.
pub const LOST_KEPT_MAX: usize = 64;

/// Which transport to drive a disk with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransportChoice {
    /// UAS where it works, else BOT.
    #[default]
    Best,
    /// Bulk-Only Transport.
    Bot,
    /// Bulk-Only Transport with neighbouring requests packed.
    Turbo,
    /// USB Attached SCSI.
    Uas,
}

/// How a disk is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttachConfig {
    /// With which transport.
    pub transport: TransportChoice,
    /// Which logical unit: 0 to 15 over Bulk-Only Transport.
    pub lun: u8,
    /// Commands under way at once, at most; unless told, as many as the transport takes.
    pub depth: Option<u16>,
    /// Requests under way at once, each with a buffer.
    pub slots: u16,
    /// Bytes of each buffer.
    pub slot_bytes: u32,
    /// Bytes of data in one command, at most; with Turbo, in one pack.
    pub transfer_bytes_max: u32,
    /// Turbo: how long requests wait for neighbours.
    pub look_ahead: LookAhead,
    /// How long the steps of a transport's recovery may take.
    pub patience: Patience,
    /// How often and how long the disk tries.
    pub disk_patience: DiskPatience,
    /// Whether the survey asks how warm the disk is; what it told is in [`Geometry::temperature`].
    pub ask_temperature: AskTemperature,
    /// Bulk-Only Transport: the residues of the device are known to mean nothing.
    pub ignore_residue: bool,
}

/// A request that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Its slot, which is free again.
    pub slot: u16,
    /// How it ended.
    pub result: Result<Done, Error>,
}

/// What happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttachmentCounters {
    /// Stalls, time-outs, resets: what the transport had to bear.
    pub transport: Counters,
    /// Commands, and how often they were sent again: what the disk had to bear.
    pub disk: Counts,
}

/// A disk that is driven by us, over whatever door.
pub struct Attachment<D: BusDoor = usbfs::Door> {
    disk: Disk,
    transport: Box<dyn Transport + Send>,
    door: D,
    chosen: Chosen,
    cells: Cells,
    commands: Commands,
    flights: Flights<Flight>,
    clock: Clock,
    slots: Vec<bool>,
    slot_bytes: u32,
    finished: VecDeque<Finished>,
    /// Writes that were lost, until somebody asks.
    lost: VecDeque<LostWrite>,
    /// How the last survey ended, until somebody asks.
    surveyed: Option<Result<(), SurveyError>>,
    /// The pieces of the transfer at hand.
    pieces: Vec<Piece>,
    /// What the command at hand has brought.
    answer: Vec<u8>,
    /// The transport knows that the device is gone.
    is_gone: bool,
}

/// The transport that a disk is driven with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// Bulk-Only Transport.
    Bot,
    /// Bulk-Only Transport with neighbouring requests packed.
    Turbo,
    /// USB Attached SCSI.
    Uas {
        /// How many streams there are; `None` where READY IUs take their place.
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
            patience: Patience::default(),
            disk_patience: DiskPatience::DEFAULT,
            ask_temperature: AskTemperature::Not,
            ignore_residue: false,
        }
    }
}

impl<D: BusDoor> Attachment<D> {
    /// What the disk says of itself: size, block length, model, serial number, limits.
    pub const fn geometry(&self) -> &Geometry {
        self.disk.geometry().expect("an attachment is made only of a disk whose survey went well")
    }

    /// The transport in use.
    pub const fn transport(&self) -> Chosen {
        self.chosen
    }

    /// Commands that can be under way at once.
    pub fn depth(&self) -> usize {
        self.transport.depth()
    }

    /// Whether data go without a copy between the controller and us.
    pub fn is_zero_copy(&self) -> bool {
        self.door.is_zero_copy()
    }

    /// How many slots there are.
    pub const fn slots(&self) -> u16 {
        self.slots.len() as u16
    }

    /// The buffer of a slot; `None` while its request is under way, or if there is no such slot.
    pub fn buffer(&mut self, slot: u16) -> Option<&mut [u8]> {
        match self.slots.get(usize::from(slot)) {
            Some(false) => self.door.bytes(self.cells.slots.after(slot)),
            _ => None,
        }
    }

    /// Says how many requests will be under way at once at most from now on, of all those that there are slots for: Turbo does not
    /// wait for a neighbour that cannot come ([`Transport::expect`]).
    pub fn expect(&mut self, requests: u16) {
        self.transport.expect(requests.into());
    }

    /// Takes a request on, with the buffer of a slot. It ends with one [`Finished`].
    ///
    /// # Errors
    /// Why it is not taken: [`RequestRefusal::Full`] also if the slot is in use, [`RequestRefusal::TooLong`] also if it
    /// is too small.
    pub fn submit(&mut self, slot: u16, operation: Operation, extent: Extent) -> Result<(), RequestRefusal> {
        let Some(false) = self.slots.get(usize::from(slot)) else { return Err(RequestRefusal::Full) };
        let request = Request { id: RequestId(slot.into()), operation, extent };
        let block_size = self.disk.geometry().ok_or(RequestRefusal::NotSurveyed)?.block_size;
        let bytes = request.buffer_bytes(block_size).ok_or(RequestRefusal::TooLong)?;
        if bytes > self.slot_bytes {
            return Err(RequestRefusal::TooLong);
        }
        let now = self.clock.now();
        self.disk.submit(now, request)?;
        self.slots[usize::from(slot)] = true;
        self.settle(now);
        Ok(())
    }

    /// Takes a request back. It still ends once.
    pub fn abort(&mut self, slot: u16) {
        let now = self.clock.now();
        self.disk.abort(now, RequestId(slot.into()));
        self.settle(now);
    }

    /// Waits for the next request to end. `None`: the time is over, nothing is under way, or a signal came in.
    ///
    /// # Errors
    /// If the door does not do what it must. A device that fails, or is gone, is told in the result of each request.
    pub fn wait(&mut self, until: Instant) -> Result<Option<Finished>, D::Error> {
        loop {
            if let Some(finished) = self.finished.pop_front() {
                return Ok(Some(finished));
            }
            if self.disk.in_flight() == 0 || self.turn(until)? == Turn::Rested {
                return Ok(self.finished.pop_front());
            }
        }
    }

    /// The next request that is known to have ended; nothing is asked of the kernel.
    pub fn poll(&mut self) -> Option<Finished> {
        self.finished.pop_front()
    }

    /// The next write that had ended well and was lost later (a deferred error). The next flush ends with the first of them as well.
    pub fn poll_lost(&mut self) -> Option<LostWrite> {
        self.lost.pop_front()
    }

    /// Requests that were taken on and whose end [`Self::wait`] has not told yet.
    pub fn in_flight(&self) -> usize {
        self.disk.in_flight() + self.finished.len()
    }

    /// Surveys the disk again, and asks how warm it is. `None`: it does not tell, or requests are under way.
    ///
    /// # Errors
    /// If the survey fails, or is not over in a few seconds.
    pub fn temperature(&mut self, ask: AskTemperature) -> Result<Option<Temperature>, AttachError<D::Error>> {
        if self.in_flight() > 0 {
            return Ok(None);
        }
        self.survey(ask, Instant::now() + setup::SURVEY_AGAIN_TIMEOUT, &Stop::default())?;
        Ok(self.geometry().temperature)
    }

    /// What happened so far.
    pub fn counters(&self) -> AttachmentCounters {
        AttachmentCounters { transport: self.transport.counters(), disk: self.disk.counts() }
    }

    /// Gives the interface back to where it was taken from. Requests under way are dropped.
    ///
    /// # Errors
    /// If it is not as it was before, with what to do.
    pub fn close(self) -> Result<(), D::Error> {
        self.door.close()
    }

    /// Whether nothing is under way or to be mended, so that another attachment may follow.
    fn is_at_rest(&self) -> bool {
        let is_working = self.disk.in_flight() > 0 || self.disk.commands_under_way() > 0;
        let is_waiting = self.transport.in_flight() > 0 || self.transport.poll_timeout().is_some();
        // Without depth the transport has given up.
        self.depth() > 0 && !self.is_gone && !is_working && !is_waiting
    }

    /// One look at the bus, after a wait if there is nothing to see.
    fn turn(&mut self, until: Instant) -> Result<Turn, D::Error> {
        if self.look()? {
            return Ok(Turn::Moved);
        }
        let now = self.clock.now();
        let deadlines =
            [self.transport.poll_timeout().map(|due| due.at), self.disk.poll_timeout().map(|due| due.at)];
        let due = deadlines.into_iter().flatten().min();
        if due.is_some_and(|due| due <= now) {
            self.transport.handle_timeout(now);
            self.disk.handle_timeout(now);
            self.settle(now);
            return Ok(Turn::Moved);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Turn::Rested);
        }
        let limit = due.map_or(left, |due| left.min(clock::span(due - now)));
        match self.door.wait(Some(limit))? {
            Readiness::Ready | Readiness::TimeOver => Ok(Turn::Moved),
            Readiness::Interrupted => Ok(Turn::Rested),
        }
    }

    /// Takes what the bus has brought; whether it has brought anything.
    fn look(&mut self) -> Result<bool, D::Error> {
        let seen = match self.door.reap() {
            Ok(any) => any,
            Err(error) if error.is_disconnect() => !self.is_gone,
            Err(error) => return Err(error),
        };
        if seen {
            let now = self.clock.now();
            self.settle(now);
        }
        self.door.take_fault().map_or(Ok(seen), Err)
    }
}

/// Whether there may be more to see at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Moved,
    Rested,
}

impl AttachmentCounters {
    /// Whether nothing had to be borne: no error, no retry, no reset.
    pub fn is_clean(&self) -> bool {
        let Counts { sent_again, transport_failures, lost_writes, .. } = self.disk;
        self.transport == Counters::default()
            && sent_again == 0
            && transport_failures == 0
            && lost_writes == 0
    }
}

impl<D: BusDoor + fmt::Debug> fmt::Debug for Attachment<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attachment")
            .field("chosen", &self.chosen)
            .field("door", &self.door)
            .field("in_flight", &self.disk.in_flight())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bot => f.write_str("BOT"),
            Self::Turbo => f.write_str("BOT with packed requests"),
            Self::Uas { streams: Some(streams) } => write!(f, "UAS with {streams} streams"),
            Self::Uas { streams: None } => f.write_str("UAS with READY IUs"),
        }
    }
}
