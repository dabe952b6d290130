//! How the device is brought to let go of a command: abort task, logical unit reset, I_T nexus reset, port reset (SAM-5
//! clause 7; UAS-2 clause 6.2.7).
//!
//! One rung at a time, for one culprit at a time. Each has a deadline. A rung that fails, is refused or stays unanswered
//! is followed by the next, unless the device has answered the culprit in the meantime. A tag under which time after time nothing is
//! answered, though the device says that it has let go, has its rungs skipped that were of no use. Up to the abort other commands
//! go on; from the first reset on new ones wait. Before the port is reset every transfer is taken back and waited for;
//! afterwards the alternate setting is chosen and the streams are allocated again.
//!
//! Always true: where a task is faulty, a rung is under way or about to be, and something with a deadline is waited for.

use super::config::READY_FUNCTION_TAGS;
use super::pipes::{Place, Role};
use super::status::{ODD_STATUSES_MAX, decode};
use super::task::{Flight, Stage, Task};
use super::{Earliest, Uas, UasConfig};
use crate::{BusAnswer, BusRequest, CommandId, Deadline, DeadlineReason, Failure, Output};
use bus::{Completion, TransferStatus};
use units::{Duration, Instant};
use wire::scsi::lun::LunField;
use wire::uas::{ResponseCode, StatusIu, TaskManagementFunction, TaskManagementIu};

/// Port resets in a row, without a command answered between them, before the device is given up.
pub const PORT_RESETS_MAX: u8 = 3;

/// Functions that were given up and whose responses are waited for at most; of more the oldest is forgotten.
pub(super) const OWED_MAX: usize = 8;

/// Where the recovery is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ladder {
    /// There is none.
    Rest,
    /// A rung is to be climbed when no halt is left to be cleared, and no data in the way.
    Next(Rung, Culprit),
    /// A task management function is under way.
    Managing(Function),
    /// Transfers were taken back; when the last has completed, the port is reset.
    Draining,
    /// The port is being reset, and the device set up again.
    Resetting,
}

/// A step that the device is asked to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rung {
    AbortTask,
    LogicalUnitReset,
    NexusReset,
}

/// The task on whose account the ladder is climbed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Culprit {
    index: u16,
    id: CommandId,
    lun: LunField,
}

/// A task management function under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Function {
    rung: Rung,
    culprit: Culprit,
    iu: Flight,
    status: Flight,
    tag: u16,
    deadline: Instant,
    /// The device has it.
    is_sent: bool,
    /// It has answered.
    is_answered: bool,
    /// Responses to earlier functions that came late, so far.
    late_responses: u8,
    /// What came of it, once that is known; its transfers may still be under way.
    verdict: Option<bool>,
}

impl Ladder {
    /// Whether new commands may go to the device.
    pub(super) const fn lets_commands_pass(&self) -> bool {
        match self {
            Self::Rest => true,
            Self::Next(rung, _) | Self::Managing(Function { rung, .. }) => matches!(rung, Rung::AbortTask),
            Self::Draining | Self::Resetting => false,
        }
    }

    /// Whether IUs may still come.
    pub(super) const fn wants_statuses(&self) -> bool {
        !matches!(self, Self::Draining | Self::Resetting)
    }

    pub(super) fn deadline(&self) -> Option<Deadline> {
        match self {
            Self::Managing(function) if function.verdict.is_none() => {
                Some(Deadline { at: function.deadline, reason: function.rung.reason() })
            }
            _ => None,
        }
    }
}

impl Rung {
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

    const fn patience(self, config: &UasConfig) -> Duration {
        match self {
            Self::AbortTask => config.patience.abort_task,
            Self::LogicalUnitReset => config.patience.logical_unit_reset,
            Self::NexusReset => config.patience.nexus_reset,
        }
    }

    /// Whether the device lets go of this task when it takes the step for that culprit.
    fn is_about(self, culprit: Culprit, index: u16, task: &Task) -> bool {
        let is_meant = match self {
            Self::AbortTask => index == culprit.index && task.command.id == culprit.id,
            Self::LogicalUnitReset => task.command.lun == culprit.lun,
            Self::NexusReset => true,
        };
        is_meant && task.is_with_device()
    }

    /// The next rung; after the last comes the port.
    const fn next(self) -> Option<Self> {
        match self {
            Self::AbortTask => Some(Self::LogicalUnitReset),
            Self::LogicalUnitReset => Some(Self::NexusReset),
            Self::NexusReset => None,
        }
    }
}

impl Uas {
    /// The tag of the function under way.
    pub(super) const fn function_tag(&self) -> Option<u16> {
        match self.ladder {
            Ladder::Managing(Function { tag, .. }) => Some(tag),
            _ => None,
        }
    }

    /// A tag for the next function, from those after the tasks', in turn: the response to one that was given up may still
    /// come, and is not to be taken for the next one's.
    const fn next_function_tag(&mut self) -> u16 {
        let spare = match self.granted {
            None => READY_FUNCTION_TAGS,
            Some(granted) => granted - self.depth,
        };
        self.functions = self.functions.wrapping_add(1);
        self.depth + 1 + self.functions % spare
    }

    /// Begins to clear a halt, if there is one. Whether something is waited for.
    pub(super) fn clear_halts(&mut self, now: Instant) -> bool {
        if !self.ladder.wants_statuses() {
            return true;
        }
        let Some(endpoint) = self.pipes.halted() else { return false };
        if self.requests.deadline().is_none() {
            let request = BusRequest::ClearHalt(endpoint);
            self.requests.ask(&mut self.outputs, now, request, self.config.patience.clear_halt);
        }
        true
    }

    /// Goes on with the ladder, if there is a reason to. Whether commands may pass.
    pub(super) fn climb(&mut self, now: Instant) -> bool {
        if matches!(self.ladder, Ladder::Rest)
            && let Some(culprit) = self.culprit()
        {
            match self.first_rung(culprit) {
                Some(rung) => self.ladder = Ladder::Next(rung, culprit),
                None => {
                    self.drain_for_reset();
                    self.reset_when_drained(now);
                }
            }
        }
        if let Ladder::Next(rung, culprit) = self.ladder
            && !self.withdraw(rung, culprit)
        {
            self.ask_device(now, rung, culprit);
        }
        self.ladder.lets_commands_pass()
    }

    /// Where the ladder is begun: higher each time that a command's time is over under the same tag, with none answered between; in
    /// the end at the port.
    fn first_rung(&self, culprit: Culprit) -> Option<Rung> {
        let times =
            if self.is_timed_out(culprit) { self.let_go.get(usize::from(culprit.index)) } else { None };
        match times.copied().unwrap_or(0) {
            0 => Some(Rung::AbortTask),
            1 => Some(Rung::LogicalUnitReset),
            2 => Some(Rung::NexusReset),
            _ => None,
        }
    }

    fn is_timed_out(&self, culprit: Culprit) -> bool {
        self.fault_of(culprit) == Some(Failure::TimedOut)
    }

    /// What is wrong with a culprit, if the device has not answered it meanwhile.
    fn fault_of(&self, culprit: Culprit) -> Option<Failure> {
        let task = self.tasks.get(usize::from(culprit.index))?.as_ref()?;
        match task.stage {
            Stage::Faulty(failure) if task.command.id == culprit.id => Some(failure),
            _ => None,
        }
    }

    fn culprit(&self) -> Option<Culprit> {
        let mut tasks = (0..).zip(&self.tasks).filter_map(|(index, task)| Some((index, task.as_ref()?)));
        let (index, task) = tasks.find(|(_, task)| matches!(task.stage, Stage::Faulty(_)))?;
        Some(Culprit { index, id: task.command.id, lun: task.command.lun })
    }

    /// Prepares what a rung is going to end: whatever comes of the rung, these tasks cannot go on as before. Without
    /// streams their data are taken back first, since a device that has let go of a task would take them for those of
    /// the next. Whether some are still under way.
    fn withdraw(&mut self, rung: Rung, culprit: Culprit) -> bool {
        let has_streams = self.config.streams.is_some();
        let mut waits = false;
        self.earliest.set(Earliest::Unknown);
        for (index, task) in (0..).zip(&mut self.tasks) {
            let Some(task) = task.as_mut().filter(|task| rung.is_about(culprit, index, task)) else {
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

    fn ask_device(&mut self, now: Instant, rung: Rung, culprit: Culprit) {
        match rung {
            Rung::AbortTask => self.counters.task_aborts += 1,
            Rung::LogicalUnitReset => self.counters.unit_resets += 1,
            Rung::NexusReset => self.counters.nexus_resets += 1,
        }
        let tag = self.next_function_tag();
        self.pipes.expect_status(&mut self.outputs);
        let status = match self.config.streams {
            Some(_) => self.pipes.submit_function_status(&mut self.outputs, tag),
            None => Flight::Back,
        };
        let managed_tag = if rung == Rung::AbortTask { culprit.index + 1 } else { 0 };
        let iu = TaskManagementIu { tag, function: rung.function(), managed_tag, lun: culprit.lun.0 };
        let iu = self.pipes.submit_function(&mut self.outputs, iu);
        let deadline = now + rung.patience(&self.config);
        self.ladder = Ladder::Managing(Function {
            rung,
            culprit,
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

    /// A transfer of a function has completed.
    #[cold]
    pub(super) fn handle_ladder_completion(&mut self, place: Place, completion: Completion, bytes: &[u8]) {
        let Ladder::Managing(function) = &mut self.ladder else { return };
        let flight = match place.role {
            Role::Command => &mut function.iu,
            _ => &mut function.status,
        };
        if flight.id() != Some(completion.id) {
            return;
        }
        *flight = Flight::Back;
        let moved = matches!(completion.status, TransferStatus::Done | TransferStatus::Short);
        match place.role {
            Role::Command if moved => function.is_sent = true,
            Role::Status if moved && function.verdict.is_none() => return self.take_function_status(bytes),
            _ => {
                function.verdict.get_or_insert(false);
            }
        }
        self.conclude();
    }

    /// With streams: what came in the place of the response to a function. Before the function was taken, it is a late
    /// one of an earlier function.
    fn take_function_status(&mut self, bytes: &[u8]) {
        let Ladder::Managing(function) = &mut self.ladder else { return };
        let (tag, may_be_late) = (function.tag, function.late_responses < ODD_STATUSES_MAX);
        let is_early = function.iu != Flight::Back;
        let iu = decode(bytes);
        let is_owed = may_be_late && iu.as_ref().is_some_and(|iu| self.was_owed(iu));
        let Ladder::Managing(function) = &mut self.ladder else { return };
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
                self.conclude();
            }
        }
    }

    /// Whether a response is that to an earlier function of its tag, which was given up: a device answers them in order. That the
    /// tag overlaps is always said of the latest.
    pub(super) fn was_owed(&mut self, iu: &StatusIu<'_>) -> bool {
        let StatusIu::Response(response) = iu else { return false };
        if response.code == ResponseCode::OverlappedTag {
            return false;
        }
        let owed = self.owed.iter().position(|tag| *tag == response.tag);
        owed.map(|place| self.owed.remove(place)).is_some()
    }

    /// An IU under the tag of the function under way.
    pub(super) fn take_function_iu(&mut self, iu: &StatusIu<'_>) {
        if let Ladder::Managing(function) = &mut self.ladder {
            function.is_answered = true;
        }
        match (&mut self.ladder, iu) {
            (Ladder::Managing(function), StatusIu::Response(response)) => {
                let is_done = matches!(
                    response.code,
                    ResponseCode::TaskManagementComplete | ResponseCode::TaskManagementSucceeded
                );
                function.verdict.get_or_insert(is_done);
            }
            (Ladder::Managing(function), _) => {
                self.counters.odd_statuses += 1;
                function.verdict.get_or_insert(false);
            }
            _ => self.counters.odd_statuses += 1,
        }
        self.conclude();
    }

    pub(super) fn handle_ladder_timeout(&mut self, now: Instant) {
        if let Ladder::Managing(function) = &mut self.ladder
            && function.verdict.is_none()
            && function.deadline <= now
        {
            function.verdict = Some(false);
            self.conclude();
        }
    }

    /// Ends a function whose verdict is known, when its transfers are back.
    fn conclude(&mut self) {
        let Ladder::Managing(Function { verdict: Some(is_done), .. }) = self.ladder else { return };
        self.cancel_function();
        let Ladder::Managing(function) = &self.ladder else { return };
        if function.status.id().is_some() || function.iu.id().is_some() {
            return;
        }
        let Function { rung, culprit, tag, is_sent, is_answered, .. } = *function;
        if is_sent && !is_answered {
            if self.owed.len() == OWED_MAX {
                self.owed.remove(0);
            }
            self.owed.push(tag);
        }
        self.pipes.expect_no_status();
        self.unsettled = true;
        self.ladder = Ladder::Rest;
        if is_done {
            if self.is_timed_out(culprit)
                && let Some(times) = self.let_go.get_mut(usize::from(culprit.index))
            {
                *times = times.saturating_add(1);
            }
            self.release_after(rung, culprit);
        } else if self.fault_of(culprit).is_some() {
            match rung.next() {
                Some(next) => self.ladder = Ladder::Next(next, culprit),
                None => self.drain_for_reset(),
            }
        }
    }

    /// Waits for no function any more.
    pub(super) fn abandon_function(&mut self) {
        if matches!(self.ladder, Ladder::Managing(_)) {
            self.cancel_function();
            self.pipes.expect_no_status();
            self.ladder = Ladder::Rest;
        }
    }

    /// Takes the transfers of a function back.
    fn cancel_function(&mut self) {
        let Ladder::Managing(function) = &mut self.ladder else { return };
        for flight in [&mut function.status, &mut function.iu] {
            self.outputs.extend(flight.cancel().map(Output::Cancel));
        }
    }

    /// The device has let go of what the rung is about.
    fn release_after(&mut self, rung: Rung, culprit: Culprit) {
        for index in 0..self.tasks.len() as u16 {
            let task = self.tasks[usize::from(index)].as_ref();
            if task.is_some_and(|task| rung.is_about(culprit, index, task)) {
                self.release(index, Failure::Reset);
            }
        }
    }

    /// Takes every transfer back, for the port to be reset.
    pub(super) fn drain_for_reset(&mut self) {
        if self.port_resets == PORT_RESETS_MAX {
            return self.leave(Failure::Unrecoverable);
        }
        self.port_resets += 1;
        self.requests.forget();
        self.abandon_function();
        self.lost_statuses = 0;
        self.ladder = Ladder::Draining;
        self.earliest.set(Earliest::Unknown);
        for task in self.tasks.iter_mut().flatten() {
            for flight in [&mut task.status, &mut task.data, &mut task.iu] {
                self.outputs.extend(flight.cancel().map(Output::Cancel));
            }
        }
        self.pipes.cancel_anyones(&mut self.outputs);
    }

    /// Resets the port once no transfer is under way.
    pub(super) fn reset_when_drained(&mut self, now: Instant) {
        if matches!(self.ladder, Ladder::Draining) && self.pipes.under_way() == 0 {
            self.ladder = Ladder::Resetting;
            self.counters.port_resets += 1;
            self.ask_for_setup(now, BusRequest::ResetPort);
        }
    }

    fn ask_for_setup(&mut self, now: Instant, request: BusRequest) {
        self.requests.ask(&mut self.outputs, now, request, self.config.patience.port_reset);
    }

    /// A request was answered, or its time is over.
    pub(super) fn after_request(&mut self, now: Instant, request: BusRequest, answer: BusAnswer) {
        self.unsettled = true;
        let UasConfig { interface, alternate, .. } = self.config;
        match (request, answer) {
            (BusRequest::ClearHalt(endpoint), BusAnswer::Done) => self.pipes.forget_halt(endpoint),
            // An endpoint that stays halted is of no use to any rung before the last.
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
                    Ok(depth) => self.be_fit_again(self.depth.min(depth)),
                    Err(_) => self.leave(Failure::Unrecoverable),
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
            None => self.be_fit_again(self.depth),
            Some(wanted) => {
                let endpoints = self.config.stream_endpoints();
                self.ask_for_setup(now, BusRequest::AllocateStreams { endpoints, wanted });
            }
        }
    }

    /// The device was reset and set up again: it has no task of before.
    fn be_fit_again(&mut self, depth: u16) {
        self.pipes.forget_halts();
        self.owed.clear();
        self.let_go.fill(0);
        self.ladder = Ladder::Rest;
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
