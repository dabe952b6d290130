//! A disk: requests for blocks become SCSI commands, and their ends become results (SBC-4, SPC-5, SAM-5).
//!
//! [`Disk`] stands on any [`Transport`](crate::Transport) and does not know which. [`Disk::start`] surveys the unit;
//! then requests are taken on, cut into commands, sent again where that may help, and end once each with a typed
//! result. The driver carries out each [`Output`], hands each outcome back with [`Disk::handle_outcome`], and calls
//! [`Disk::handle_timeout`] when [`Disk::poll_timeout`] says so.
//!
//! Always true: every request that was taken on ends exactly once, when none of its commands is under way; the limits
//! of [`DiskConfig`] and [`DiskPatience`] hold whatever the unit answers; nothing is allocated for a request in steady
//! state. No block data is held: commands name ranges of the requests' buffers. A unit that is busy is left alone with
//! all commands, and one whose task set is full gets fewer at once for a while.
//!
//! Left out: protection information, zoned disks, atomic writes, reservations of our own, ordering between requests
//! (a flush is of writes that had ended before it was submitted).

mod config;
mod geometry;
mod part;
mod request;
mod requests;
mod riders;
mod run;
mod send;
mod slots;
mod survey;
mod temperature;
#[cfg(test)]
mod tests;
mod verdict;

pub use config::{DiskConfig, DiskPatience};
pub use geometry::{DOUBTS_MAX, Doubt, Geometry, Identity, UnmapMethod};
pub use part::{LIST_BYTES_MAX, PARAMETER_BYTES_MAX};
pub use request::{Done, Error, Field, LostWrite, Operation, Request, RequestId, RequestRefusal};
pub use slots::WaitReason;
pub use survey::{ANSWER_BYTES_MAX, Step, SurveyError};
pub use temperature::{AskTemperature, Temperature, TemperatureSource};

use crate::{Command, CommandId, Outcome, Refusal};
use alloc::vec::Vec;
use bus::{Fifo, Front};
use core::fmt;
use part::Habits;
use requests::Requests;
use slots::{Slots, Work};
use survey::Survey;
use units::Instant;
use wire::scsi::lun::LunField;

/// Zeroes to write: one block of any size that is served, or many where a unit cannot repeat one.
static ZEROES: [u8; PARAMETER_BYTES_MAX as usize] = [0; PARAMETER_BYTES_MAX as usize];

/// One disk on a transport.
#[derive(Debug)]
pub struct Disk {
    config: DiskConfig,
    state: State,
    geometry: Option<Geometry>,
    luns: Vec<LunField>,
    habits: Habits,
    survey: Option<UnderSurvey>,
    slots: Slots,
    requests: Requests,
    lost: Option<LostWrite>,
    counts: Counts,
    outputs: Fifo<Output>,
}

/// Something for the driver to do, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Submit this command. Answered by [`Disk::handle_outcome`], or by [`Disk::handle_refusal`] if the transport does
    /// not take it.
    Submit(Command, Memory),
    /// Abort this command. Its outcome still comes.
    Abort(CommandId),
    /// A survey has ended; [`Disk::geometry`] tells what it found. It may have been one that a unit attention asked for.
    Surveyed(Result<(), SurveyError>),
    /// A request has ended. Its buffer is the caller's again.
    Finished(RequestId, Result<Done, Error>),
    /// A write that had ended well was lost. The next flush ends with it as well.
    Lost(LostWrite),
}

/// Whose bytes the data phase of a command names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// There is no data phase.
    None,
    /// Those of the request's buffer.
    Request(RequestId),
    /// In: room of the driver's, [`ANSWER_BYTES_MAX`] bytes at most, whose bytes come with the outcome.
    Answer,
    /// Out: those of [`Disk::parameters`], [`PARAMETER_BYTES_MAX`] bytes at most.
    Parameters,
}

/// When [`Disk::handle_timeout`] has something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskDeadline {
    /// The time.
    pub at: Instant,
    /// What is waited for.
    pub reason: WaitReason,
}

/// What has happened so far. Each count saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Commands sent, those of surveys and those sent again included.
    pub commands: u64,
    /// Commands sent again, for any reason.
    pub sent_again: u64,
    /// Unit attentions.
    pub attentions: u64,
    /// BUSY and TASK SET FULL.
    pub busy: u64,
    /// NOT READY.
    pub not_ready: u64,
    /// RECOVERED ERROR.
    pub recovered: u64,
    /// Commands that the transport brought no answer for.
    pub transport_failures: u64,
    /// Deferred errors.
    pub lost_writes: u64,
    /// Surveys begun.
    pub surveys: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No survey has succeeded since the last that failed.
    Unknown,
    /// Requests are taken on.
    Surveyed,
    /// For good.
    Gone,
}

#[derive(Debug)]
struct UnderSurvey {
    survey: Survey,
    /// The unit has changed in the meantime.
    stale: bool,
    /// Times begun anew on that account.
    restarts: u8,
}

impl Disk {
    /// A disk that was not asked anything yet.
    pub fn new(config: DiskConfig) -> Self {
        Self {
            config,
            state: State::Unknown,
            geometry: None,
            luns: Vec::new(),
            habits: Habits::default(),
            survey: None,
            slots: Slots::new(config.depth.max(1)),
            requests: Requests::new(config.requests_max.max(1)),
            lost: None,
            counts: Counts::default(),
            outputs: Fifo::new(),
        }
    }

    /// Surveys the unit: at the beginning, after a survey that failed, or to look again. Nothing happens while a survey
    /// is under way, or if the unit is gone. Ends with one [`Output::Surveyed`].
    pub fn start(&mut self, now: Instant) {
        self.start_asking(now, AskTemperature::Not);
    }

    /// The same, and asks how warm the unit is: [`Geometry::temperature`]. A unit that does not tell, or refuses, is surveyed
    /// all the same; one that does not answer may have to be reset. Surveys that a unit attention asks for do not ask.
    pub fn start_asking(&mut self, now: Instant, ask: AskTemperature) {
        if self.state != State::Gone && self.survey.is_none() {
            self.begin_survey(0, ask);
            self.advance(now);
        }
    }

    /// Takes a request on. It ends with one [`Output::Finished`].
    ///
    /// # Errors
    /// A [`RequestRefusal`]; the request is not under way then.
    #[inline(always)]
    pub fn submit(&mut self, now: Instant, request: Request) -> Result<(), RequestRefusal> {
        let geometry = match (self.state, &self.geometry) {
            (State::Surveyed, Some(geometry)) => geometry,
            (State::Gone, _) => return Err(RequestRefusal::Gone),
            _ => return Err(RequestRefusal::NotSurveyed),
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

    /// Takes a request back. It still ends once, as [`Error::Aborted`] or as what it has become in the meantime.
    /// Nothing happens if it has ended.
    pub fn abort(&mut self, now: Instant, id: RequestId) {
        if let Some(at) = self.requests.find(id) {
            self.stop_request(at);
            for (_, command, stage) in self.slots.of_request(Some(at)) {
                if stage == slots::Stage::UnderWay {
                    self.outputs.push_back(Output::Abort(command));
                }
            }
            self.drop_unsent(at);
            self.settle(at);
            self.advance(now);
        }
    }

    /// A command has ended. `answer` is what it brought, where its memory was [`Memory::Answer`]; else empty.
    #[inline(always)]
    pub fn handle_outcome(&mut self, now: Instant, id: CommandId, outcome: &Outcome, answer: &[u8]) {
        let Some(task) = self.slots.take_back(id) else { return };
        match task.work {
            Work::Survey => self.end_step(now, outcome, answer),
            Work::Blocks { .. } | Work::Flush { .. } => self.end_command(now, id.slot, outcome),
        }
        self.advance(now);
    }

    /// The transport did not take a command.
    pub fn handle_refusal(&mut self, now: Instant, id: CommandId, refusal: Refusal) {
        let Some(&task) = self.slots.take_back(id) else { return };
        self.refuse(now, id.slot, task, refusal);
        self.advance(now);
    }

    /// A time has come that [`Self::poll_timeout`] told. Called early or late, it does no harm.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.slots.wake(now);
        self.advance(now);
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The same where it lies.
    pub fn next_output(&mut self) -> Option<Front<'_, Output>> {
        self.outputs.front()
    }

    /// When to call [`Self::handle_timeout`] at the latest.
    pub fn poll_timeout(&self) -> Option<DiskDeadline> {
        self.slots.next_wake(self.requests.first().is_some()).map(|(at, reason)| DiskDeadline { at, reason })
    }

    /// The bytes that a command with [`Memory::Parameters`] sends, a list of [`LIST_BYTES_MAX`] bytes at most or zeroes,
    /// which are more; its data phase names a range of them. Valid until
    /// its outcome is handed in.
    pub fn parameters(&self, id: CommandId) -> &[u8] {
        match self.slots.task(id.slot).map(|task| &task.work) {
            Some(Work::Blocks { share, .. }) if share.sends_list() => self.slots.list(id.slot).unwrap_or(&[]),
            _ => &ZEROES,
        }
    }

    /// What the last survey that succeeded has found.
    pub const fn geometry(&self) -> Option<&Geometry> {
        self.geometry.as_ref()
    }

    /// The units behind the device, where the last survey asked for them ([`DiskConfig::report_luns`]), whether it went well or not: as many as
    /// one answer holds at most.
    pub fn luns(&self) -> &[LunField] {
        &self.luns
    }

    /// Requests under way.
    pub fn in_flight(&self) -> usize {
        self.requests.len()
    }

    /// Commands under way.
    pub const fn commands_under_way(&self) -> u16 {
        self.slots.under_way()
    }

    /// What has happened so far.
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
