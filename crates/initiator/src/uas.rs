//! USB Attached SCSI, host side (UAS-2; task management: SAM-5 clause 7).
//!
//! With streams, a command's status and data transfers are queued on the stream of its tag before
//! the COMMAND IU is sent, so that the device finds all it may need. Without streams, status
//! transfers belong to no particular task, and a READY IU names the task whose data come next: a
//! new status transfer replaces the used one, then the data transfer is queued. Commands complete
//! in any order.
//!
//! Protocol violations (statuses with unknown tags, duplicates, overlong or missing statuses,
//! stalls) start error recovery (`recovery`): ABORT TASK, LOGICAL UNIT RESET, I_T NEXUS RESET, port
//! reset, each with a timeout. Commands that the device does not have wait until recovery is over.
//!
//! Always true: a command ends only when the device has answered or released it and none of its
//! transfers is in flight; its tag is not reused before.

mod config;
mod pipes;
mod recovery;
mod status;
mod status_iu;
mod task;
#[cfg(test)]
mod tests;

pub use config::{
    ODD_STATUSES_MAX, READY_DEPTH, READY_STATUSES_MAX, TASKS_MAX, TooFewStreams, UasConfig, UasEndpoints,
};
pub use pipes::transfers_max;
pub use recovery::PORT_RESETS_MAX;
pub use status::LOST_STATUSES_MAX;

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
use pipes::{Pipes, Role, TransferOwner};
use recovery::{ErrorRecovery, UNANSWERED_MAX};
use task::{Stage, Task, TransferState};
use units::Instant;

/// A UAS interface.
#[derive(Debug)]
pub struct Uas {
    config: UasConfig,
    /// Queue depth; tags 1 to this.
    depth: u16,
    /// Streams granted.
    granted: Option<u16>,
    /// Task management functions sent so far.
    functions: u16,
    /// Tags of abandoned functions whose responses may still arrive.
    unanswered: Vec<u16>,
    /// The task of tag n is at n - 1, up to the highest tag used.
    tasks: Vec<Option<Task>>,
    /// Free indices of `tasks`, used last first.
    free: Vec<u16>,
    /// Tasks held until recovery is over, oldest first.
    held: VecDeque<u16>,
    pipes: Pipes,
    recovery: ErrorRecovery,
    requests: Requests,
    outputs: Outputs,
    counters: Counters,
    /// Port resets since the last answered command.
    port_resets: u8,
    /// By tag, for all that were ever granted: timed-out commands that the device released since one was answered.
    timeouts_in_a_row: Vec<u8>,
    /// Without streams: useless status transfers in a row.
    lost_statuses: u8,
    /// Whether [`Self::settle`] has work.
    unsettled: bool,
    /// Cached first deadline of all tasks: drivers ask after each transfer.
    earliest: Cell<Earliest>,
    gone: bool,
}

/// The first deadline of all tasks, cached.
#[derive(Clone, Copy, Debug)]
enum Earliest {
    /// Must be computed.
    Unknown,
    /// Must be computed; not before this.
    NotBefore(Instant),
    Known(Option<Deadline>),
}

impl Uas {
    /// Creates the machine for an idle interface at its alternate setting, with its streams
    /// allocated.
    ///
    /// # Errors
    /// [`TooFewStreams`], with one stream or none of a pipe that has streams.
    pub fn new(config: UasConfig) -> Result<Self, TooFewStreams> {
        let depth = config.depth_for(config.streams)?;
        Ok(Self {
            depth,
            granted: config.streams,
            functions: u16::MAX,
            unanswered: Vec::with_capacity(UNANSWERED_MAX),
            tasks: Vec::with_capacity(depth.into()),
            free: (0..depth).rev().collect(),
            held: VecDeque::with_capacity(depth.into()),
            pipes: Pipes::new(config.endpoints, config.streams.is_some()),
            config,
            recovery: ErrorRecovery::Idle,
            requests: Requests::default(),
            outputs: Outputs::new(),
            counters: Counters::default(),
            port_resets: 0,
            timeouts_in_a_row: alloc::vec![0; depth.into()],
            lost_statuses: 0,
            unsettled: false,
            earliest: Cell::new(Earliest::Unknown),
            gone: false,
        })
    }

    /// Returns whether streams match transfers with commands; else READY IUs do.
    pub const fn has_streams(&self) -> bool {
        self.config.streams.is_some()
    }

    /// Queues the transfers of a running task in the required order: status, data, COMMAND IU.
    #[inline(always)]
    fn start(&mut self, index: u16) {
        let Some(task) = &mut self.tasks[usize::from(index)] else { return };
        self.pipes.expect_status(&mut self.outputs);
        let has_streams = self.config.streams.is_some();
        task.status = match has_streams {
            true => self.pipes.submit_status(&mut self.outputs, index),
            false => TransferState::Completed,
        };
        task.data = match task.command.transfer() {
            None => TransferState::Completed,
            Some(_) if !has_streams => TransferState::Idle,
            Some(phase) => self.pipes.submit_data(&mut self.outputs, index, task.command.id, phase),
        };
        task.iu = self.pipes.submit_command(&mut self.outputs, index, &task.command);
    }

    /// Starts error recovery for a task.
    fn fault(&mut self, index: u16, failure: Failure) {
        self.earliest.set(Earliest::Unknown);
        if let Some(task) = &mut self.tasks[usize::from(index)]
            && task.stage == Stage::Running
        {
            task.stage = Stage::Faulty(failure);
            self.unsettled = true;
        }
    }

    /// Ends a task that the device has released or will never answer.
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
        for transfer in [&mut task.status, &mut task.data, &mut task.iu] {
            self.outputs.extend(transfer.cancel().map(Output::Cancel));
        }
        self.finish(index);
    }

    /// Ends a task if it is complete.
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

    /// Returns whether an input needs more work than its direct effect.
    const fn needs_settling(&self) -> bool {
        self.unsettled || matches!(self.recovery, ErrorRecovery::Draining)
    }

    /// Records a sent COMMAND IU, if its task goes on.
    #[inline(always)]
    fn record_sent(&mut self, id: TransferId) -> bool {
        let TransferOwner::Task(index, _) = TransferOwner::of(id) else { return false };
        let task = self.tasks.get_mut(usize::from(index)).and_then(Option::as_mut);
        let Some(task) = task.filter(|task| task.iu == TransferState::InFlight(id) && !task.has_ended())
        else {
            return false;
        };
        task.iu = TransferState::Completed;
        self.pipes.record_completion();
        true
    }

    fn handle_task_completion(
        &mut self,
        now: Instant,
        index: u16,
        role: Role,
        completion: Completion,
        bytes: &[u8],
    ) {
        let Some(task) = self.tasks.get_mut(usize::from(index)).and_then(Option::as_mut) else { return };
        let transfer = match role {
            Role::Command => &mut task.iu,
            Role::Status => &mut task.status,
            Role::DataIn | Role::DataOut => &mut task.data,
        };
        if transfer.id() != Some(completion.id) {
            return cold_path();
        }
        let was_cancelled = matches!(transfer, TransferState::Cancelling(_));
        *transfer = TransferState::Completed;
        // Nothing but a status ends a task that has not ended yet.
        let (id, has_ended) = (task.command.id, task.has_ended());
        let came = matches!(completion.status, TransferStatus::Done | TransferStatus::Short);
        match role {
            Role::Status => {
                self.after_status(now, index, completion, was_cancelled, bytes);
                return self.finish(index);
            }
            Role::DataIn | Role::DataOut => {
                task.moved = completion.actual;
                // A recovery step may have waited for it.
                self.unsettled |= matches!(self.recovery, ErrorRecovery::Next(..));
                if !came {
                    self.after_lost_data(index, completion, was_cancelled);
                }
            }
            Role::Command if !came => self.after_lost_command(index, completion, was_cancelled),
            Role::Command => {}
        }
        if has_ended {
            cold_path();
            self.forget_deadline(id);
            self.end(index);
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
                task.iu = TransferState::Idle;
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

    /// Handles a device that is gone: outstanding transfers complete without further requests.
    fn shut_down(&mut self, failure: Failure) {
        self.gone = true;
        self.requests.forget();
        self.abandon_function();
        self.recovery = ErrorRecovery::Idle;
        for index in 0..self.tasks.len() as u16 {
            self.release(index, failure);
        }
        self.pipes.cancel_shared_statuses(&mut self.outputs);
    }

    /// Starts, clears and ends all that is due. Called after every input.
    fn settle(&mut self, now: Instant) {
        if !self.unsettled || self.gone {
            return;
        }
        self.unsettled = false;
        if self.clear_halts(now) || !self.advance_recovery(now) {
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

    /// Submits again the transfers that a halt ended.
    fn restart(&mut self, index: u16) {
        let Some(task) = &mut self.tasks[usize::from(index)] else { return };
        if task.stage != Stage::Running {
            return;
        }
        if task.status == TransferState::Idle {
            task.status = self.pipes.submit_status(&mut self.outputs, index);
        }
        if task.iu == TransferState::Idle {
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
                if [task.data, task.iu]
                    .iter()
                    .any(|transfer| matches!(transfer, TransferState::InFlight(_))) =>
            {
                Some(Deadline { at: data_by, reason: DeadlineReason::DataAfterStatus(id) })
            }
            Stage::Answered { .. } | Stage::Faulty(_) | Stage::Released(_) => None,
        }
    }

    /// Invalidates the cached deadline if it is that of this command.
    #[inline(always)]
    fn forget_deadline(&self, id: CommandId) {
        if let Earliest::Known(Some(Deadline { at, reason })) = self.earliest.get()
            && (reason == DeadlineReason::Command(id) || reason == DeadlineReason::DataAfterStatus(id))
        {
            self.earliest.set(Earliest::NotBefore(at));
        }
    }

    /// Updates the cached deadline for a new deadline.
    #[inline]
    fn note_deadline(&self, deadline: Deadline) {
        match self.earliest.get() {
            Earliest::Known(Some(first)) if first.at <= deadline.at => {}
            Earliest::Known(_) => self.earliest.set(Earliest::Known(Some(deadline))),
            Earliest::NotBefore(at) => self.earliest.set(Earliest::NotBefore(at.min(deadline.at))),
            Earliest::Unknown => {}
        }
    }

    /// Returns the first deadline of all tasks.
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
                for transfer in [&mut task.data, &mut task.iu] {
                    self.outputs.extend(transfer.cancel().map(Output::Cancel));
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
        let passes = self.held.is_empty() && self.pipes.are_clear() && self.recovery.allows_commands();
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
        let owner = self.pipes.handle_completion(&completion);
        self.counters.stalls += u32::from(completion.status == TransferStatus::Stall);
        self.unsettled |= pipes::has_halted(completion.status);
        match owner {
            TransferOwner::SharedStatus(_) => self.after_shared_status(now, completion, bytes),
            TransferOwner::TaskManagement(role) => self.handle_function_completion(role, completion, bytes),
            TransferOwner::Task(index, role) => {
                self.handle_task_completion(now, index, role, completion, bytes)
            }
        }
        if completion.status == TransferStatus::Disconnected && !self.gone {
            cold_path();
            self.shut_down(Failure::Disconnected);
        }
        if self.needs_settling() {
            cold_path();
            self.reset_when_drained(now);
            self.settle(now);
        }
    }

    #[inline(always)]
    fn handle_sent(&mut self, now: Instant, id: TransferId, bytes: u32) {
        if !self.needs_settling() && self.record_sent(id) {
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
        self.shut_down(Failure::Disconnected);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.earliest.set(Earliest::Unknown);
        if let Some(request) = self.requests.take_expired(now) {
            self.after_request(now, request, BusAnswer::Failed);
        }
        self.handle_function_timeout(now);
        self.reset_when_drained(now);
        for index in 0..self.tasks.len() as u16 {
            self.handle_task_timeout(now, index);
        }
        self.settle(now);
    }

    fn poll_output(&mut self) -> Option<Front<'_, Output>> {
        self.outputs.front_entry()
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        let deadlines = self.earliest_of_tasks().into_iter().chain(self.recovery.deadline());
        deadlines.chain(self.requests.deadline()).min_by_key(|deadline| deadline.at)
    }

    fn wants_time_before(&self, at: Instant) -> bool {
        let is_before = |deadline: Deadline| deadline.at < at;
        let of_tasks = match self.earliest.get() {
            Earliest::NotBefore(first) if first >= at => false,
            _ => self.earliest_of_tasks().is_some_and(is_before),
        };
        of_tasks
            || self.recovery.deadline().is_some_and(is_before)
            || self.requests.deadline().is_some_and(is_before)
    }

    fn transfers_max(&self) -> usize {
        pipes::transfers_max(self.timeouts_in_a_row.len())
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
