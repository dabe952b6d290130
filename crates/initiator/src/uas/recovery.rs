//! Error recovery: abort task, logical unit reset, I_T nexus reset, port reset (SAM-5 clause 7;
//! UAS-2 clause 6.2.7).
//!
//! One step at a time, for one failed task at a time, each with a timeout. A step that fails, is
//! rejected or times out is followed by the next, unless the device has answered the failed task by
//! then. When commands under the same tag time out repeatedly, steps that did not help are skipped.
//! Other commands continue up to the abort; from the first reset on new ones are held. Before a
//! port reset all transfers are cancelled and awaited; afterwards the alternate setting is selected
//! and the streams are allocated again.
//!
//! Always true: while a task is faulty, a step is running or about to, and something with a
//! deadline is outstanding.

use super::config::{ODD_STATUSES_MAX, READY_FUNCTION_TAGS};
use super::pipes::Role;
use super::status_iu::decode;
use super::task::{Stage, Task, TransferState};
use super::{Earliest, Uas, UasConfig};
use crate::{BusAnswer, BusRequest, CommandId, Deadline, DeadlineReason, Failure, Output};
use bus::{Completion, TransferStatus};
use units::{Duration, Instant};
use wire::scsi::lun::LunField;
use wire::uas::{ResponseCode, StatusIu, TaskManagementFunction, TaskManagementIu};

/// Port resets in a row, without an answered command between them, before the device is given up.
pub const PORT_RESETS_MAX: u8 = 3;

/// Abandoned functions whose responses are tracked; beyond it the oldest is forgotten.
pub(super) const UNANSWERED_MAX: usize = 8;

/// The state of error recovery.
#[derive(Clone, Copy, Debug)]
pub(super) enum ErrorRecovery {
    /// No recovery.
    Idle,
    /// The next step starts when all halts are cleared and no data transfer is in the way.
    Next(RecoveryStep, FailedTask),
    /// A task management function is outstanding.
    TaskManagement(Function),
    /// All transfers are cancelled; the port is reset after the last completes.
    Draining,
    /// The port is being reset and the device set up again.
    Resetting,
}

/// A recovery step that is a task management function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecoveryStep {
    AbortTask,
    LogicalUnitReset,
    NexusReset,
}

/// The task that error recovery is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct FailedTask {
    index: u16,
    id: CommandId,
    lun: LunField,
}

/// An outstanding task management function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Function {
    step: RecoveryStep,
    failed_task: FailedTask,
    iu: TransferState,
    status: TransferState,
    tag: u16,
    deadline: Instant,
    /// The device has received it.
    is_sent: bool,
    /// The device has answered it.
    is_answered: bool,
    /// Late responses to earlier functions so far.
    late_responses: u8,
    /// Its result, once known; its transfers may still be in flight.
    verdict: Option<bool>,
}

impl ErrorRecovery {
    /// Returns whether new commands may be sent.
    pub(super) const fn allows_commands(&self) -> bool {
        match self {
            Self::Idle => true,
            Self::Next(step, _) | Self::TaskManagement(Function { step, .. }) => {
                matches!(step, RecoveryStep::AbortTask)
            }
            Self::Draining | Self::Resetting => false,
        }
    }

    /// Returns whether IUs may still arrive.
    pub(super) const fn accepts_statuses(&self) -> bool {
        !matches!(self, Self::Draining | Self::Resetting)
    }

    pub(super) fn deadline(&self) -> Option<Deadline> {
        match self {
            Self::TaskManagement(function) if function.verdict.is_none() => {
                Some(Deadline { at: function.deadline, reason: function.step.reason() })
            }
            _ => None,
        }
    }
}

impl RecoveryStep {
    const fn reason(self) -> DeadlineReason {
        match self {
            Self::AbortTask => DeadlineReason::AbortTask,
            Self::LogicalUnitReset => DeadlineReason::LogicalUnitReset,
            Self::NexusReset => DeadlineReason::NexusReset,
        }
    }

    const fn function(self) -> TaskManagementFunction {
        match self {
            Self::AbortTask => TaskManagementFunction::AbortTask,
            Self::LogicalUnitReset => TaskManagementFunction::LogicalUnitReset,
            Self::NexusReset => TaskManagementFunction::ItNexusReset,
        }
    }

    const fn timeout(self, config: &UasConfig) -> Duration {
        match self {
            Self::AbortTask => config.timeouts.abort_task,
            Self::LogicalUnitReset => config.timeouts.logical_unit_reset,
            Self::NexusReset => config.timeouts.nexus_reset,
        }
    }

    /// Returns whether the step makes the device release this task.
    fn affects(self, failed_task: FailedTask, index: u16, task: &Task) -> bool {
        let is_meant = match self {
            Self::AbortTask => index == failed_task.index && task.command.id == failed_task.id,
            Self::LogicalUnitReset => task.command.lun == failed_task.lun,
            Self::NexusReset => true,
        };
        is_meant && task.is_with_device()
    }

    /// Returns the next step; `None` stands for the port reset.
    const fn next(self) -> Option<Self> {
        match self {
            Self::AbortTask => Some(Self::LogicalUnitReset),
            Self::LogicalUnitReset => Some(Self::NexusReset),
            Self::NexusReset => None,
        }
    }
}

impl Uas {
    /// Returns the tag of the outstanding function.
    pub(super) const fn function_tag(&self) -> Option<u16> {
        match self.recovery {
            ErrorRecovery::TaskManagement(Function { tag, .. }) => Some(tag),
            _ => None,
        }
    }

    /// Returns the tag of the next function. Tags behind those of tasks are used in turn, so that a
    /// late response to an abandoned function is not taken for the next one's.
    const fn next_function_tag(&mut self) -> u16 {
        let spare = match self.granted {
            None => READY_FUNCTION_TAGS,
            Some(granted) => granted - self.depth,
        };
        self.functions = self.functions.wrapping_add(1);
        self.depth + 1 + self.functions % spare
    }

    /// Starts to clear a halt, if any. Returns whether one is outstanding.
    pub(super) fn clear_halts(&mut self, now: Instant) -> bool {
        if !self.recovery.accepts_statuses() {
            return true;
        }
        let Some(endpoint) = self.pipes.halted() else { return false };
        if self.requests.deadline().is_none() {
            let request = BusRequest::ClearHalt(endpoint);
            self.requests.ask(&mut self.outputs, now, request, self.config.timeouts.clear_halt);
        }
        true
    }

    /// Starts or continues error recovery if needed. Returns whether commands may be sent.
    pub(super) fn advance_recovery(&mut self, now: Instant) -> bool {
        if matches!(self.recovery, ErrorRecovery::Idle)
            && let Some(failed_task) = self.failed_task()
        {
            match self.first_step(failed_task) {
                Some(step) => self.recovery = ErrorRecovery::Next(step, failed_task),
                None => {
                    self.drain_for_reset();
                    self.reset_when_drained(now);
                }
            }
        }
        if let ErrorRecovery::Next(step, failed_task) = self.recovery
            && !self.prepare(step, failed_task)
        {
            self.send_function(now, step, failed_task);
        }
        self.recovery.allows_commands()
    }

    /// Returns the first step: a later one for each consecutive timeout under the same tag; `None`
    /// stands for the port reset.
    fn first_step(&self, failed_task: FailedTask) -> Option<RecoveryStep> {
        let times = if self.is_timed_out(failed_task) {
            self.timeouts_in_a_row.get(usize::from(failed_task.index))
        } else {
            None
        };
        match times.copied().unwrap_or(0) {
            0 => Some(RecoveryStep::AbortTask),
            1 => Some(RecoveryStep::LogicalUnitReset),
            2 => Some(RecoveryStep::NexusReset),
            _ => None,
        }
    }

    fn is_timed_out(&self, failed_task: FailedTask) -> bool {
        self.fault_of(failed_task) == Some(Failure::TimedOut)
    }

    /// Returns the fault of a failed task, unless the device has answered it.
    fn fault_of(&self, failed_task: FailedTask) -> Option<Failure> {
        let task = self.tasks.get(usize::from(failed_task.index))?.as_ref()?;
        match task.stage {
            Stage::Faulty(failure) if task.command.id == failed_task.id => Some(failure),
            _ => None,
        }
    }

    fn failed_task(&self) -> Option<FailedTask> {
        let mut tasks = (0..).zip(&self.tasks).filter_map(|(index, task)| Some((index, task.as_ref()?)));
        let (index, task) = tasks.find(|(_, task)| matches!(task.stage, Stage::Faulty(_)))?;
        Some(FailedTask { index, id: task.command.id, lun: task.command.lun })
    }

    /// Prepares the tasks that a step ends. Without streams their data transfers are cancelled
    /// first, since a device that released a task would use them for the next. Returns whether some
    /// are still in flight.
    fn prepare(&mut self, step: RecoveryStep, failed_task: FailedTask) -> bool {
        let has_streams = self.config.streams.is_some();
        let mut waits = false;
        self.earliest.set(Earliest::Unknown);
        for (index, task) in (0..).zip(&mut self.tasks) {
            let Some(task) = task.as_mut().filter(|task| step.affects(failed_task, index, task)) else {
                continue;
            };
            if task.stage == Stage::Running {
                task.stage = Stage::Faulty(Failure::Reset);
            }
            if !has_streams {
                self.outputs.extend(task.data.cancel().map(Output::Cancel));
                waits |= task.data.id().is_some();
            }
        }
        waits
    }

    fn send_function(&mut self, now: Instant, step: RecoveryStep, failed_task: FailedTask) {
        match step {
            RecoveryStep::AbortTask => self.counters.task_aborts += 1,
            RecoveryStep::LogicalUnitReset => self.counters.unit_resets += 1,
            RecoveryStep::NexusReset => self.counters.nexus_resets += 1,
        }
        let tag = self.next_function_tag();
        self.pipes.expect_status(&mut self.outputs);
        let status = match self.config.streams {
            Some(_) => self.pipes.submit_function_status(&mut self.outputs, tag),
            None => TransferState::Completed,
        };
        let managed_tag = if step == RecoveryStep::AbortTask { failed_task.index + 1 } else { 0 };
        let iu = TaskManagementIu { tag, function: step.function(), managed_tag, lun: failed_task.lun.0 };
        let iu = self.pipes.submit_function(&mut self.outputs, iu);
        let deadline = now + step.timeout(&self.config);
        self.recovery = ErrorRecovery::TaskManagement(Function {
            step,
            failed_task,
            iu,
            status,
            tag,
            deadline,
            is_sent: false,
            is_answered: false,
            late_responses: 0,
            verdict: None,
        });
    }

    /// Handles the completion of a transfer of a function.
    #[cold]
    pub(super) fn handle_function_completion(&mut self, role: Role, completion: Completion, bytes: &[u8]) {
        let ErrorRecovery::TaskManagement(function) = &mut self.recovery else { return };
        let transfer = match role {
            Role::Command => &mut function.iu,
            _ => &mut function.status,
        };
        if transfer.id() != Some(completion.id) {
            return;
        }
        *transfer = TransferState::Completed;
        let moved = matches!(completion.status, TransferStatus::Done | TransferStatus::Short);
        match role {
            Role::Command if moved => function.is_sent = true,
            Role::Status if moved && function.verdict.is_none() => return self.take_function_status(bytes),
            _ => {
                function.verdict.get_or_insert(false);
            }
        }
        self.finish_function();
    }

    /// With streams: handles an IU received instead of the response to a function. Before the
    /// function is sent, it is a late response to an earlier one.
    fn take_function_status(&mut self, bytes: &[u8]) {
        let ErrorRecovery::TaskManagement(function) = &mut self.recovery else { return };
        let (tag, may_be_late) = (function.tag, function.late_responses < ODD_STATUSES_MAX);
        let is_early = function.iu != TransferState::Completed;
        let iu = decode(bytes);
        let is_owed = may_be_late && iu.as_ref().is_some_and(|iu| self.is_late_response(iu));
        let ErrorRecovery::TaskManagement(function) = &mut self.recovery else { return };
        match iu {
            _ if is_owed || is_early && may_be_late => {
                function.late_responses += 1;
                self.counters.odd_statuses += 1;
                function.status = self.pipes.submit_function_status(&mut self.outputs, tag);
            }
            Some(iu) if iu.tag() == tag => self.take_function_iu(&iu),
            _ => {
                function.verdict = Some(false);
                self.counters.odd_statuses += 1;
                self.finish_function();
            }
        }
    }

    /// Returns whether a response belongs to an earlier, abandoned function with its tag: a device
    /// answers in order. OVERLAPPED TAG always concerns the latest.
    pub(super) fn is_late_response(&mut self, iu: &StatusIu<'_>) -> bool {
        let StatusIu::Response(response) = iu else { return false };
        if response.code == ResponseCode::OverlappedTag {
            return false;
        }
        let owed = self.unanswered.iter().position(|tag| *tag == response.tag);
        owed.map(|at| self.unanswered.remove(at)).is_some()
    }

    /// Handles an IU with the tag of the outstanding function.
    pub(super) fn take_function_iu(&mut self, iu: &StatusIu<'_>) {
        if let ErrorRecovery::TaskManagement(function) = &mut self.recovery {
            function.is_answered = true;
        }
        match (&mut self.recovery, iu) {
            (ErrorRecovery::TaskManagement(function), StatusIu::Response(response)) => {
                let is_done = matches!(
                    response.code,
                    ResponseCode::TaskManagementComplete | ResponseCode::TaskManagementSucceeded
                );
                function.verdict.get_or_insert(is_done);
            }
            (ErrorRecovery::TaskManagement(function), _) => {
                self.counters.odd_statuses += 1;
                function.verdict.get_or_insert(false);
            }
            _ => self.counters.odd_statuses += 1,
        }
        self.finish_function();
    }

    pub(super) fn handle_function_timeout(&mut self, now: Instant) {
        if let ErrorRecovery::TaskManagement(function) = &mut self.recovery
            && function.verdict.is_none()
            && function.deadline <= now
        {
            function.verdict = Some(false);
            self.finish_function();
        }
    }

    /// Ends a function whose result is known once its transfers have completed.
    fn finish_function(&mut self) {
        let ErrorRecovery::TaskManagement(Function { verdict: Some(is_done), .. }) = self.recovery else {
            return;
        };
        self.cancel_function();
        let ErrorRecovery::TaskManagement(function) = &self.recovery else { return };
        if function.status.id().is_some() || function.iu.id().is_some() {
            return;
        }
        let Function { step, failed_task, tag, is_sent, is_answered, .. } = *function;
        if is_sent && !is_answered {
            if self.unanswered.len() == UNANSWERED_MAX {
                self.unanswered.remove(0);
            }
            self.unanswered.push(tag);
        }
        self.pipes.expect_no_status();
        self.unsettled = true;
        self.recovery = ErrorRecovery::Idle;
        if is_done {
            if self.is_timed_out(failed_task)
                && let Some(times) = self.timeouts_in_a_row.get_mut(usize::from(failed_task.index))
            {
                *times = times.saturating_add(1);
            }
            self.release_after(step, failed_task);
        } else if self.fault_of(failed_task).is_some() {
            match step.next() {
                Some(next) => self.recovery = ErrorRecovery::Next(next, failed_task),
                None => self.drain_for_reset(),
            }
        }
    }

    /// Abandons the outstanding function.
    pub(super) fn abandon_function(&mut self) {
        if matches!(self.recovery, ErrorRecovery::TaskManagement(_)) {
            self.cancel_function();
            self.pipes.expect_no_status();
            self.recovery = ErrorRecovery::Idle;
        }
    }

    /// Cancels the transfers of a function.
    fn cancel_function(&mut self) {
        let ErrorRecovery::TaskManagement(function) = &mut self.recovery else { return };
        for transfer in [&mut function.status, &mut function.iu] {
            self.outputs.extend(transfer.cancel().map(Output::Cancel));
        }
    }

    /// Ends the tasks that a successful step made the device release.
    fn release_after(&mut self, step: RecoveryStep, failed_task: FailedTask) {
        for index in 0..self.tasks.len() as u16 {
            let task = self.tasks[usize::from(index)].as_ref();
            if task.is_some_and(|task| step.affects(failed_task, index, task)) {
                self.release(index, Failure::Reset);
            }
        }
    }

    /// Cancels all transfers before a port reset.
    pub(super) fn drain_for_reset(&mut self) {
        if self.port_resets == PORT_RESETS_MAX {
            return self.shut_down(Failure::Unrecoverable);
        }
        self.port_resets += 1;
        self.requests.forget();
        self.abandon_function();
        self.lost_statuses = 0;
        self.recovery = ErrorRecovery::Draining;
        self.earliest.set(Earliest::Unknown);
        for task in self.tasks.iter_mut().flatten() {
            for transfer in [&mut task.status, &mut task.data, &mut task.iu] {
                self.outputs.extend(transfer.cancel().map(Output::Cancel));
            }
        }
        self.pipes.cancel_shared_statuses(&mut self.outputs);
    }

    /// Resets the port once no transfer is in flight.
    pub(super) fn reset_when_drained(&mut self, now: Instant) {
        if matches!(self.recovery, ErrorRecovery::Draining) && self.pipes.in_flight() == 0 {
            self.recovery = ErrorRecovery::Resetting;
            self.counters.port_resets += 1;
            self.ask_for_setup(now, BusRequest::ResetPort);
        }
    }

    fn ask_for_setup(&mut self, now: Instant, request: BusRequest) {
        self.requests.ask(&mut self.outputs, now, request, self.config.timeouts.port_reset);
    }

    /// Handles the answer to a request, or its timeout.
    pub(super) fn after_request(&mut self, now: Instant, request: BusRequest, answer: BusAnswer) {
        self.unsettled = true;
        let UasConfig { interface, alternate, .. } = self.config;
        match (request, answer) {
            (BusRequest::ClearHalt(endpoint), BusAnswer::Done) => self.pipes.clear_halt(endpoint),
            // Only a port reset helps an endpoint whose halt cannot be cleared.
            (BusRequest::ClearHalt(_), _) => {
                self.drain_for_reset();
                self.reset_when_drained(now);
            }
            (BusRequest::ResetPort, BusAnswer::Done) if alternate != 0 => {
                self.ask_for_setup(now, BusRequest::SelectAlternate { interface, alternate });
            }
            (BusRequest::ResetPort | BusRequest::SelectAlternate { .. }, BusAnswer::Done) => {
                self.allocate_streams(now);
            }
            (BusRequest::AllocateStreams { .. }, BusAnswer::Streams(granted)) => {
                self.granted = Some(granted);
                match self.config.depth_for(Some(granted)) {
                    Ok(depth) => self.resume(self.depth.min(depth)),
                    Err(_) => self.shut_down(Failure::Unrecoverable),
                }
            }
            _ => {
                self.drain_for_reset();
                self.reset_when_drained(now);
            }
        }
    }

    fn allocate_streams(&mut self, now: Instant) {
        match self.config.streams {
            None => self.resume(self.depth),
            Some(wanted) => {
                let endpoints = self.config.stream_endpoints();
                self.ask_for_setup(now, BusRequest::AllocateStreams { endpoints, wanted });
            }
        }
    }

    /// Resumes after a reset and set-up: the device has no earlier task.
    fn resume(&mut self, depth: u16) {
        self.pipes.clear_all_halts();
        self.unanswered.clear();
        self.timeouts_in_a_row.fill(0);
        self.recovery = ErrorRecovery::Idle;
        self.depth = depth;
        self.free.retain(|&index| index < depth);
        for index in 0..self.tasks.len() as u16 {
            let has_tag = index < depth;
            if self.tasks[usize::from(index)].as_ref().is_some_and(|task| task.is_with_device() || !has_tag) {
                self.release(index, Failure::Reset);
            }
        }
    }
}
