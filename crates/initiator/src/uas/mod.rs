//! USB Attached SCSI from the host's side (UAS-2; task management: SAM-5 clause 7).
//!
//! With streams, a command's status and data transfers are queued on the stream that is its tag before the COMMAND IU
//! goes out, so that the device finds everything it may want. Without, status transfers belong to nobody, and a READY
//! IU says whose data are next: a new status transfer takes the place of the one it used up, then the data are
//! queued. Commands end in any order.
//!
//! What a device must not do (statuses of nobody, twice, too long, never; stalls anywhere) ends in the `ladder`:
//! abort task, logical unit reset, I_T nexus reset, port reset, each with a deadline. Meanwhile commands that the device
//! does not have wait; they are sent when it is fit again.
//!
//! Always true: a command ends only when the device has answered or let go and none of its transfers is under way; its
//! tag is not used before.

mod config;
mod ladder;
mod pipes;
mod status;
mod task;
#[cfg(test)]
mod tests;

pub use config::{READY_DEPTH, READY_STATUSES_MAX, TASKS_MAX, TooFewStreams, UasConfig, UasEndpoints};
pub use ladder::PORT_RESETS_MAX;
pub use status::{LOST_STATUSES_MAX, ODD_STATUSES_MAX};

use crate::output::Outputs;
use crate::request::Requests;
use crate::{
    BusAnswer, Command, CommandId, Counters, Deadline, DeadlineReason, Failure, Output, Refusal, RequestId,
    Transport,
};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bus::{Completion, Front, TransferId, TransferStatus};
use core::cell::Cell;
use core::hint::cold_path;
use ladder::{Ladder, OWED_MAX};
use pipes::{Pipes, Place, Role};
use task::{Flight, Stage, Task};
use units::Instant;

/// A UAS interface.
#[derive(Debug)]
pub struct Uas {
    config: UasConfig,
    /// Commands that can be under way; tags 1 to this.
    depth: u16,
    /// Streams that there are.
    granted: Option<u16>,
    /// Counts task management functions.
    functions: u16,
    /// Tags of functions that were given up, whose responses may still come.
    owed: Vec<u16>,
    /// Task of tag n at n - 1, as far as tags were used.
    tasks: Vec<Option<Task>>,
    /// Places in `tasks` to be used next, the last first.
    free: Vec<u16>,
    /// Tasks that wait for a recovery to be over, oldest first.
    held: VecDeque<u16>,
    pipes: Pipes,
    ladder: Ladder,
    requests: Requests,
    outputs: Outputs,
    counters: Counters,
    /// Port resets since a command was last answered.
    port_resets: u8,
    /// Of each tag: how often the device let go of a command whose time was over, since one was answered under it.
    let_go: Vec<u8>,
    /// Without streams: status transfers that brought nothing of use, in a row.
    lost_statuses: u8,
    /// Something may have to be started, cleared or brought to an end: [`Self::settle`] looks.
    unsettled: bool,
    /// The first deadline of a task, while it is known: drivers ask after each transfer.
    earliest: Cell<Earliest>,
    gone: bool,
}

/// The first deadline of all tasks.
#[derive(Clone, Copy, Debug)]
enum Earliest {
    /// To be looked for.
    Unknown,
    /// The same, but there is none before this.
    NotBefore(Instant),
    Known(Option<Deadline>),
}

impl Uas {
    /// An interface at its alternate setting, with its streams allocated, and at rest.
    ///
    /// # Errors
    /// [`TooFewStreams`], with one stream or none of a pipe that has streams.
    pub fn new(config: UasConfig) -> Result<Self, TooFewStreams> {
        let depth = config.depth_for(config.streams)?;
        Ok(Self {
            depth,
            granted: config.streams,
            functions: u16::MAX,
            owed: Vec::with_capacity(OWED_MAX),
            tasks: Vec::with_capacity(depth.into()),
            free: (0..depth).rev().collect(),
            held: VecDeque::with_capacity(depth.into()),
            pipes: Pipes::new(config.endpoints, config.streams.is_some()),
            config,
            ladder: Ladder::Rest,
            requests: Requests::default(),
            outputs: Outputs::new(),
            counters: Counters::default(),
            port_resets: 0,
            let_go: alloc::vec![0; depth.into()],
            lost_statuses: 0,
            unsettled: false,
            earliest: Cell::new(Earliest::Unknown),
            gone: false,
        })
    }

    /// Whether streams match transfers with commands, else READY IUs do.
    pub const fn has_streams(&self) -> bool {
        self.config.streams.is_some()
    }

    /// Queues what a command needs that is running from here on, in the order that works: status, data, COMMAND IU.
    #[inline(always)]
    fn start(&mut self, index: u16) {
        let Some(task) = &mut self.tasks[usize::from(index)] else { return };
        self.pipes.expect_status(&mut self.outputs);
        let has_streams = self.config.streams.is_some();
        task.status = match has_streams {
            true => self.pipes.submit_status(&mut self.outputs, Place::task(index, Role::Status)),
            false => Flight::Back,
        };
        task.data = match task.command.transfer() {
            None => Flight::Back,
            Some(_) if !has_streams => Flight::Idle,
            Some(phase) => self.pipes.submit_data(&mut self.outputs, index, task.command.id, phase),
        };
        task.iu = self.pipes.submit_command(&mut self.outputs, index, &task.command);
    }

    /// The device is to be brought to let go of a task.
    fn fault(&mut self, index: u16, failure: Failure) {
        self.earliest.set(Earliest::Unknown);
        if let Some(task) = &mut self.tasks[usize::from(index)]
            && task.stage == Stage::Running
        {
            task.stage = Stage::Faulty(failure);
            self.unsettled = true;
        }
    }

    /// The device has let go of a task, or never answers again.
    fn release(&mut self, index: u16, failure: Failure) {
        self.earliest.set(Earliest::Unknown);
        let Some(task) = &mut self.tasks[usize::from(index)] else { return };
        let failure = match task.stage {
            Stage::Answered { .. } | Stage::Released(_) => return,
            Stage::Faulty(cause) if failure == Failure::Reset => cause,
            Stage::Faulty(_) | Stage::Running | Stage::Held => failure,
        };
        if task.is_with_device() {
            self.pipes.expect_no_status();
        }
        if task.stage == Stage::Held {
            self.held.retain(|&held| held != index);
        }
        task.stage = Stage::Released(failure);
        for flight in [&mut task.status, &mut task.data, &mut task.iu] {
            self.outputs.extend(flight.cancel().map(Output::Cancel));
        }
        self.finish(index);
    }

    /// Ends a task, if it can.
    #[inline]
    fn finish(&mut self, index: u16) {
        if self.tasks[usize::from(index)].as_ref().is_some_and(Task::has_ended) {
            self.end(index);
        }
    }

    #[inline(never)]
    fn end(&mut self, index: u16) {
        let slot = &mut self.tasks[usize::from(index)];
        let Some(task) = slot else { return };
        let Some(outcome) = task.take_outcome() else { return };
        let id = task.command.id;
        *slot = None;
        if index < self.depth {
            self.free.push(index);
        }
        self.outputs.push_with(|| Output::Finished(id, outcome));
    }

    /// Whether more is to be done after an input than what the input is about.
    const fn needs_settling(&self) -> bool {
        self.unsettled || matches!(self.ladder, Ladder::Draining)
    }

    /// Notes that a COMMAND IU was sent, if it is that of a task which goes on.
    #[inline(always)]
    fn note_sent(&mut self, id: TransferId) -> bool {
        let place = Place::of(id);
        let task = self.tasks.get_mut(usize::from(place.index)).and_then(Option::as_mut);
        let Some(task) = task.filter(|task| task.iu == Flight::UnderWay(id) && !task.has_ended()) else {
            return false;
        };
        task.iu = Flight::Back;
        self.pipes.note_end();
        true
    }

    fn handle_task_completion(&mut self, now: Instant, place: Place, completion: Completion, bytes: &[u8]) {
        let Some(task) = self.tasks.get_mut(usize::from(place.index)).and_then(Option::as_mut) else {
            return;
        };
        let flight = match place.role {
            Role::Command => &mut task.iu,
            Role::Status => &mut task.status,
            Role::DataIn | Role::DataOut => &mut task.data,
            Role::Anyone => return,
        };
        if flight.id() != Some(completion.id) {
            cold_path();
            return;
        }
        let was_cancelled = matches!(flight, Flight::Cancelling(_));
        *flight = Flight::Back;
        // Nothing but a status ends a task that has not ended yet.
        let (id, has_ended) = (task.command.id, task.has_ended());
        let came = matches!(completion.status, TransferStatus::Done | TransferStatus::Short);
        match place.role {
            Role::Status => {
                self.after_status(now, place.index, (completion, was_cancelled), bytes);
                return self.finish(place.index);
            }
            Role::DataIn | Role::DataOut => {
                task.moved = completion.actual;
                // A rung may have waited for it.
                self.unsettled |= matches!(self.ladder, Ladder::Next(..));
                if !came {
                    self.after_lost_data(place.index, completion, was_cancelled);
                }
            }
            Role::Command if !came => self.after_lost_command(place.index, completion, was_cancelled),
            Role::Command | Role::Anyone => {}
        }
        if has_ended {
            cold_path();
            self.forget_deadline(id);
            self.end(place.index);
        }
    }

    #[cold]
    fn after_lost_command(&mut self, index: u16, completion: Completion, was_cancelled: bool) {
        let Some(task) = &mut self.tasks[usize::from(index)] else { return };
        match completion.status {
            TransferStatus::Cancelled if was_cancelled => {}
            // The device has not taken it, so that the command cannot have begun.
            TransferStatus::Stall if !task.resent && task.stage == Stage::Running => {
                task.resent = true;
                task.iu = Flight::Idle;
                self.counters.resends += 1;
            }
            TransferStatus::Stall => self.fault(index, Failure::Stalled),
            _ => self.fault(index, Failure::Bus),
        }
    }

    #[cold]
    fn after_lost_data(&mut self, index: u16, completion: Completion, was_cancelled: bool) {
        let Some(task) = &mut self.tasks[usize::from(index)] else { return };
        match completion.status {
            TransferStatus::Cancelled if was_cancelled => {}
            // The status says what the device thinks of it.
            TransferStatus::Stall => task.data_fault = Some(Failure::Stalled),
            TransferStatus::Babble => task.data_fault = Some(Failure::Babble),
            _ => {
                task.data_fault = Some(Failure::Bus);
                self.fault(index, Failure::Bus);
            }
        }
    }

    /// The device is gone: nothing is asked of it any more, and what is under way completes by itself.
    fn leave(&mut self, failure: Failure) {
        self.gone = true;
        self.requests.forget();
        self.abandon_function();
        self.ladder = Ladder::Rest;
        for index in 0..self.tasks.len() as u16 {
            self.release(index, failure);
        }
        self.pipes.cancel_anyones(&mut self.outputs);
    }

    /// Starts, clears and brings to an end whatever is due. To be called after every input.
    fn settle(&mut self, now: Instant) {
        if !self.unsettled || self.gone {
            return;
        }
        self.unsettled = false;
        if self.clear_halts(now) || !self.climb(now) {
            return;
        }
        for index in 0..self.tasks.len() as u16 {
            self.restart(index);
        }
        while let Some(index) = self.held.pop_front() {
            if let Some(task) = &mut self.tasks[usize::from(index)] {
                task.stage = Stage::Running;
            }
            self.start(index);
        }
        self.pipes.top_up(&mut self.outputs);
    }

    /// Submits again what a halt has thrown back.
    fn restart(&mut self, index: u16) {
        let Some(task) = &mut self.tasks[usize::from(index)] else { return };
        if task.stage != Stage::Running {
            return;
        }
        if task.status == Flight::Idle {
            task.status = self.pipes.submit_status(&mut self.outputs, Place::task(index, Role::Status));
        }
        if task.iu == Flight::Idle {
            task.iu = self.pipes.submit_command(&mut self.outputs, index, &task.command);
        }
    }

    #[inline(always)]
    fn task_deadline(task: &Task) -> Option<Deadline> {
        let id = task.command.id;
        match task.stage {
            Stage::Held | Stage::Running => {
                Some(Deadline { at: task.command.deadline, reason: DeadlineReason::Command(id) })
            }
            Stage::Answered { data_by, .. }
                if [task.data, task.iu].iter().any(|flight| matches!(flight, Flight::UnderWay(_))) =>
            {
                Some(Deadline { at: data_by, reason: DeadlineReason::DataAfterStatus(id) })
            }
            Stage::Answered { .. } | Stage::Faulty(_) | Stage::Released(_) => None,
        }
    }

    /// The deadline of a task may not be what it was.
    #[inline(always)]
    fn forget_deadline(&self, id: CommandId) {
        if let Earliest::Known(Some(Deadline { at, reason })) = self.earliest.get()
            && (reason == DeadlineReason::Command(id) || reason == DeadlineReason::DataAfterStatus(id))
        {
            self.earliest.set(Earliest::NotBefore(at));
        }
    }

    /// A task has a deadline that it did not have.
    #[inline]
    fn note_deadline(&self, deadline: Deadline) {
        match self.earliest.get() {
            Earliest::Known(Some(first)) if first.at <= deadline.at => {}
            Earliest::Known(_) => self.earliest.set(Earliest::Known(Some(deadline))),
            Earliest::NotBefore(at) => self.earliest.set(Earliest::NotBefore(at.min(deadline.at))),
            Earliest::Unknown => {}
        }
    }

    /// The first deadline of all tasks.
    fn earliest_of_tasks(&self) -> Option<Deadline> {
        let look =
            || self.tasks.iter().flatten().filter_map(Self::task_deadline).min_by_key(|deadline| deadline.at);
        if let Earliest::Known(earliest) = self.earliest.get() {
            let at = |deadline: Option<Deadline>| deadline.map(|deadline| deadline.at);
            debug_assert_eq!(at(earliest), at(look()), "it is forgotten when it changes");
            return earliest;
        }
        let earliest = look();
        self.earliest.set(Earliest::Known(earliest));
        earliest
    }

    fn handle_task_timeout(&mut self, now: Instant, index: u16) {
        let Some(task) = &mut self.tasks[usize::from(index)] else { return };
        if Self::task_deadline(task).is_none_or(|deadline| deadline.at > now) {
            return;
        }
        match task.stage {
            Stage::Held => {
                self.counters.timeouts += 1;
                self.release(index, Failure::TimedOut);
            }
            Stage::Running => {
                self.counters.timeouts += 1;
                self.fault(index, Failure::TimedOut);
            }
            // The device has said GOOD and will not send the rest, nor take what it has taken.
            Stage::Answered { .. } => {
                for flight in [&mut task.data, &mut task.iu] {
                    self.outputs.extend(flight.cancel().map(Output::Cancel));
                }
            }
            Stage::Faulty(_) | Stage::Released(_) => {}
        }
    }

    fn find(&self, id: CommandId) -> Option<u16> {
        let is_it = |task: &Option<Task>| task.as_ref().is_some_and(|task| task.command.id == id);
        self.tasks.iter().position(is_it).map(|index| index as u16)
    }
}

impl Transport for Uas {
    fn submit(&mut self, _now: Instant, command: &Command) -> Result<(), Refusal> {
        if self.gone {
            cold_path();
            return Err(Refusal::Gone);
        }
        let index = self.free.pop().ok_or(Refusal::Full)?;
        if usize::from(index) == self.tasks.len() {
            cold_path();
            // Tags that were never used come in their order.
            self.tasks.push(None);
        }
        let passes = self.held.is_empty() && self.pipes.are_clear() && self.ladder.lets_commands_pass();
        let stage = if passes { Stage::Running } else { Stage::Held };
        self.tasks[usize::from(index)] = Some(Task::new(*command, stage));
        let reason = DeadlineReason::Command(command.id);
        self.note_deadline(Deadline { at: command.deadline, reason });
        if passes {
            self.start(index);
        } else {
            cold_path();
            self.held.push_back(index);
        }
        Ok(())
    }

    fn abort(&mut self, now: Instant, id: CommandId) {
        let Some(index) = self.find(id) else { return };
        match self.tasks[usize::from(index)].as_ref().map(|task| &task.stage) {
            Some(Stage::Held) => self.release(index, Failure::Aborted),
            _ => self.fault(index, Failure::Aborted),
        }
        self.settle(now);
    }

    fn handle_completion(&mut self, now: Instant, completion: Completion, bytes: &[u8]) {
        let place = self.pipes.handle_completion(&completion);
        self.counters.stalls += u32::from(completion.status == TransferStatus::Stall);
        self.unsettled |= pipes::has_halted(completion.status);
        match place {
            Place { role: Role::Anyone, .. } => self.after_anyones_status(now, completion, bytes),
            Place { index: Place::LADDER, .. } => self.handle_ladder_completion(place, completion, bytes),
            _ => self.handle_task_completion(now, place, completion, bytes),
        }
        if completion.status == TransferStatus::Disconnected && !self.gone {
            cold_path();
            self.leave(Failure::Disconnected);
        }
        if self.needs_settling() {
            cold_path();
            self.reset_when_drained(now);
            self.settle(now);
        }
    }

    #[inline(always)]
    fn handle_sent(&mut self, now: Instant, id: TransferId, bytes: u32) {
        if !self.needs_settling() && self.note_sent(id) {
            return;
        }
        cold_path();
        self.handle_completion(now, Completion { id, status: TransferStatus::Done, actual: bytes }, &[]);
    }

    fn handle_answer(&mut self, now: Instant, id: RequestId, answer: BusAnswer) {
        if let Some(request) = self.requests.take(id) {
            self.after_request(now, request, answer);
            self.settle(now);
        }
    }

    fn handle_disconnect(&mut self, _now: Instant) {
        self.leave(Failure::Disconnected);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.earliest.set(Earliest::Unknown);
        if let Some(request) = self.requests.take_expired(now) {
            self.after_request(now, request, BusAnswer::Failed);
        }
        self.handle_ladder_timeout(now);
        self.reset_when_drained(now);
        for index in 0..self.tasks.len() as u16 {
            self.handle_task_timeout(now, index);
        }
        self.settle(now);
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn next_output(&mut self) -> Option<Front<'_, Output>> {
        self.outputs.front()
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        let deadlines = self.earliest_of_tasks().into_iter().chain(self.ladder.deadline());
        deadlines.chain(self.requests.deadline()).min_by_key(|deadline| deadline.at)
    }

    fn wants_time_before(&self, at: Instant) -> bool {
        let is_before = |deadline: Deadline| deadline.at < at;
        let of_tasks = match self.earliest.get() {
            Earliest::NotBefore(first) if first >= at => false,
            _ => self.earliest_of_tasks().is_some_and(is_before),
        };
        of_tasks
            || self.ladder.deadline().is_some_and(is_before)
            || self.requests.deadline().is_some_and(is_before)
    }

    fn depth(&self) -> usize {
        if self.gone { 0 } else { self.depth.into() }
    }

    fn in_flight(&self) -> usize {
        self.tasks.iter().flatten().count()
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
