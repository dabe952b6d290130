//! A disk: block requests become SCSI commands, and outcomes become results (SBC-4, SPC-5, SAM-5).
//!
//! [`Disk`] works over any [`Transport`](crate::Transport). [`Disk::start`] identifies the logical
//! unit; then requests are accepted, split into commands, retried where that may help, and end once
//! each with a typed result. The driver carries out each [`Output`], passes each outcome to
//! [`Disk::handle_outcome`], and calls [`Disk::handle_timeout`] at [`Disk::poll_timeout`].
//!
//! Always true: every accepted request ends exactly once, when none of its commands is in flight;
//! the limits of [`DiskConfig`] and [`RetryLimits`] hold whatever the unit answers; requests
//! allocate nothing in steady state. No block data is held: commands name ranges of the requests'
//! buffers. A busy unit gets no commands for a while, and after TASK SET FULL the queue depth is
//! reduced for a while.
//!
//! Left out: protection information, zoned disks, atomic writes, reservations, ordering between
//! requests (a flush covers writes that had ended before it was submitted).

mod config;
mod geometry;
mod identify;
mod merged_unmaps;
mod part;
mod request;
mod requests;
mod run;
mod send;
mod slots;
mod temperature;
#[cfg(test)]
mod tests;
mod verdict;

pub use config::{DiskConfig, RetryLimits};
pub use geometry::{DOUBTS_MAX, Doubt, Geometry, Identity, UnmapMethod};
pub use identify::{ANSWER_BYTES_MAX, IdentifyError, IdentifyStep};
pub use part::{LIST_BYTES_MAX, PARAMETER_BYTES_MAX};
pub use request::{Done, Error, Field, LostWrite, Operation, Request, RequestId, RequestRefusal};
pub use slots::WaitReason;
pub use temperature::{AskTemperature, Temperature, TemperatureSource};

use crate::{Command, CommandId, Outcome, Refusal};
use alloc::vec::Vec;
use bus::{Fifo, Front};
use core::fmt;
use identify::Identify;
use part::LearnedQuirks;
use requests::Requests;
use slots::{Slots, Work};
use units::Instant;
use wire::scsi::lun::LunField;

/// Zeroes to write: one block of any supported size, or many where the unit lacks WRITE SAME.
static ZEROES: [u8; PARAMETER_BYTES_MAX as usize] = [0; PARAMETER_BYTES_MAX as usize];

/// One disk on a transport.
#[derive(Debug)]
pub struct Disk {
    config: DiskConfig,
    state: State,
    geometry: Option<Geometry>,
    luns: Vec<LunField>,
    learned: LearnedQuirks,
    identify: Option<IdentifyRun>,
    slots: Slots,
    requests: Requests,
    lost: Option<LostWrite>,
    counts: Counts,
    outputs: Fifo<Output>,
}

/// An action for the driver, to be carried out in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Submit this command. Answered by [`Disk::handle_outcome`], or by [`Disk::handle_refusal`] if
    /// the transport rejects it.
    Submit(Command, Memory),
    /// Abort this command. Its outcome still arrives.
    Abort(CommandId),
    /// The identify sequence ended; see [`Disk::geometry`]. A unit attention may have started it.
    Identified(Result<(), IdentifyError>),
    /// A request ended. Its buffer is the caller's again.
    Finished(RequestId, Result<Done, Error>),
    /// An acknowledged write was lost (deferred error). The next flush fails with it as well.
    Lost(LostWrite),
}

/// The memory of the data phase of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// No data phase.
    None,
    /// The request's buffer.
    Request(RequestId),
    /// In: memory of the driver, at most [`ANSWER_BYTES_MAX`] bytes, passed in with the outcome.
    Answer,
    /// Out: the bytes of [`Disk::parameters`], at most [`PARAMETER_BYTES_MAX`].
    Parameters,
}

/// When [`Disk::handle_timeout`] must be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskDeadline {
    /// The time.
    pub at: Instant,
    /// The reason for it.
    pub reason: WaitReason,
}

/// Counts since creation; each saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Commands sent, including those of identify sequences and retries.
    pub commands: u64,
    /// Retries, for any reason.
    pub sent_again: u64,
    /// Unit attentions.
    pub attentions: u64,
    /// BUSY and TASK SET FULL.
    pub busy: u64,
    /// NOT READY.
    pub not_ready: u64,
    /// RECOVERED ERROR.
    pub recovered: u64,
    /// Commands without an answer.
    pub transport_failures: u64,
    /// Deferred errors.
    pub lost_writes: u64,
    /// Identify sequences started.
    pub identify_runs: u64,
}

/// Whether requests are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not identified, or the last identify sequence failed.
    Unknown,
    /// Requests are accepted.
    Identified,
    /// Permanently.
    Gone,
}

#[derive(Debug)]
struct IdentifyRun {
    identify: Identify,
    /// Whether the unit has changed since the start of the sequence.
    stale: bool,
    /// Restarts for that reason.
    restarts: u8,
}

impl Disk {
    /// Creates a disk that is not identified yet.
    pub fn new(config: DiskConfig) -> Self {
        Self {
            config,
            state: State::Unknown,
            geometry: None,
            luns: Vec::new(),
            learned: LearnedQuirks::default(),
            identify: None,
            slots: Slots::new(config.depth.max(1)),
            requests: Requests::new(config.requests_max.max(1)),
            lost: None,
            counts: Counts::default(),
            outputs: Fifo::new(),
        }
    }

    /// Starts the identify sequence: initially, after a failed one, or to refresh. No effect while
    /// one is in progress or if the unit is gone. Ends with one [`Output::Identified`].
    pub fn start(&mut self, now: Instant) {
        self.start_asking(now, AskTemperature::Not);
    }

    /// Like [`Self::start`], and also reads the temperature: [`Geometry::temperature`]. A unit that
    /// rejects the command is identified all the same; one that does not answer may need a reset.
    /// Identify sequences started by a unit attention do not read it.
    pub fn start_asking(&mut self, now: Instant, ask: AskTemperature) {
        if self.state != State::Gone && self.identify.is_none() {
            self.begin_identify(0, ask);
            self.advance(now);
        }
    }

    /// Accepts a request. It ends with one [`Output::Finished`].
    ///
    /// # Errors
    ///
    /// A [`RequestRefusal`]; the request is not in flight then.
    #[inline(always)]
    pub fn submit(&mut self, now: Instant, request: Request) -> Result<(), RequestRefusal> {
        let geometry = match (self.state, &self.geometry) {
            (State::Identified, Some(geometry)) => geometry,
            (State::Gone, _) => return Err(RequestRefusal::Gone),
            _ => return Err(RequestRefusal::NotIdentified),
        };
        if request.operation != Operation::Flush && !request.extent.fits(geometry.capacity) {
            return Err(RequestRefusal::OutOfRange);
        }
        let total = request.buffer_bytes(geometry.block_size).ok_or(RequestRefusal::TooLong)?;
        if !self.requests.add(request, geometry.block_size, total) {
            return Err(RequestRefusal::Full);
        }
        self.advance(now);
        Ok(())
    }

    /// Aborts a request. It still ends once, as [`Error::Aborted`] or with its actual result. No
    /// effect if it has ended.
    pub fn abort(&mut self, now: Instant, id: RequestId) {
        if let Some(at) = self.requests.find(id) {
            self.stop_request(at);
            for (_, command, stage) in self.slots.of_request(Some(at)) {
                if stage == slots::Stage::InFlight {
                    self.outputs.push_back(Output::Abort(command));
                }
            }
            self.drop_unsent(at);
            self.settle(at);
            self.advance(now);
        }
    }

    /// Handles the end of a command. `answer` is the data it received if its memory is
    /// [`Memory::Answer`]; else empty.
    #[inline(always)]
    pub fn handle_outcome(&mut self, now: Instant, id: CommandId, outcome: &Outcome, answer: &[u8]) {
        let Some(task) = self.slots.complete(id) else { return };
        match task.work {
            Work::Identify => self.end_step(now, outcome, answer),
            Work::Blocks { .. } | Work::Flush { .. } => self.end_command(now, id.slot, outcome),
        }
        self.advance(now);
    }

    /// Handles a command that the transport rejected.
    pub fn handle_refusal(&mut self, now: Instant, id: CommandId, refusal: Refusal) {
        let Some(&task) = self.slots.complete(id) else { return };
        self.refuse(now, id.slot, task, refusal);
        self.advance(now);
    }

    /// Handles a deadline of [`Self::poll_timeout`]. Calling it early or late is harmless.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.slots.wake(now);
        self.advance(now);
    }

    /// Returns the next output, to be looked at and taken or discarded: it is first again otherwise.
    pub fn poll_output(&mut self) -> Option<Front<'_, Output>> {
        self.outputs.front_entry()
    }

    /// Returns when to call [`Self::handle_timeout`] at the latest.
    pub fn poll_timeout(&self) -> Option<DiskDeadline> {
        self.slots.next_wake(self.requests.first().is_some()).map(|(at, reason)| DiskDeadline { at, reason })
    }

    /// Returns the bytes that a command with [`Memory::Parameters`] sends: a parameter list of at
    /// most [`LIST_BYTES_MAX`] bytes, or zeroes, which are longer; its data phase names a range of
    /// them. Valid until its outcome is handed in.
    pub fn parameters(&self, id: CommandId) -> &[u8] {
        match self.slots.task(id.slot).map(|task| &task.work) {
            Some(Work::Blocks { share, .. }) if share.sends_list() => self.slots.list(id.slot).unwrap_or(&[]),
            _ => &ZEROES,
        }
    }

    /// Returns the result of the last successful identify sequence.
    pub const fn geometry(&self) -> Option<&Geometry> {
        self.geometry.as_ref()
    }

    /// Returns the logical units of the device, if the last identify sequence asked for them
    /// ([`DiskConfig::report_luns`]), successful or not: at most as many as one answer holds.
    pub fn luns(&self) -> &[LunField] {
        &self.luns
    }

    /// Returns the number of requests in flight.
    pub fn in_flight(&self) -> usize {
        self.requests.len()
    }

    /// Returns the number of commands in flight.
    pub const fn commands_in_flight(&self) -> u16 {
        self.slots.in_flight()
    }

    /// Returns the counts since creation.
    pub const fn counts(&self) -> Counts {
        self.counts
    }
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "a busy unit",
            Self::NotReady => "a unit that is becoming ready",
            Self::Transport => "room in the transport",
        })
    }
}
