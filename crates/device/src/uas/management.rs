//! Task management functions, and what a tag that is used twice brings (UAS-2 clause 7.5, SAM-5 clauses 5.11 and 7).
//!
//! A function that aborts commands completes when the medium has released the last of them, whichever function began
//! to end it. Every function is known; what is not in the standard is answered NOT SUPPORTED. A status that the host
//! has not taken is cancelled with its command, since the tag may stand for another one next.

use super::Uas;
use super::slot::{Ends, State, Then};
use crate::command::Executor;
use crate::lun::UnitEvent;
use crate::output::{Inline, Outputs};
use wire::uas::{ResponseCode, ResponseIu, TaskManagementFunction as Function, TaskManagementIu};

impl Uas {
    #[cold]
    pub(super) fn handle_task_management(
        &mut self,
        iu: TaskManagementIu,
        executor: &mut Executor,
        outputs: &mut Outputs,
    ) {
        let slot = self.slot_for(iu.tag);
        let Some(index) = slot.filter(|&index| self.slots[index].is_free()) else {
            let code = match slot {
                Some(_) => ResponseCode::OverlappedTag,
                None => ResponseCode::TaskManagementFailed,
            };
            let answer = Inline::new(&ResponseIu::new(iu.tag, code).encode());
            return self.answer_loosely(iu.tag, answer, outputs);
        };
        self.slots[index].tag = iu.tag;
        let unit = executor.unit_at(iu.lun);
        let (function, tag) = (iu.function, iu.managed_tag);
        match (function, unit) {
            (Function::ItNexusReset, _) => self.reset(None, index, executor, outputs),
            (Function::Unknown(_), _) => {
                self.respond_with(index, ResponseCode::TaskManagementNotSupported, outputs);
            }
            (_, None) => self.respond_with(index, ResponseCode::IncorrectLun, outputs),
            (Function::QueryAsynchronousEvent, Some(unit)) => {
                self.answer_asynchronous_event(index, unit, executor, outputs);
            }
            (Function::QueryTask, Some(unit)) => {
                self.respond_with(index, self.query(Ends::Task { tag, unit }), outputs);
            }
            (Function::QueryTaskSet, Some(unit)) => {
                self.respond_with(index, self.query(Ends::Unit(unit)), outputs);
            }
            (Function::LogicalUnitReset, Some(unit)) => self.reset(Some(unit), index, executor, outputs),
            (Function::AbortTask, Some(unit)) => {
                self.end_commands(Ends::Task { tag, unit }, index, executor, outputs);
            }
            (Function::AbortTaskSet | Function::ClearTaskSet, Some(unit)) => {
                self.end_commands(Ends::Unit(unit), index, executor, outputs);
            }
            (Function::ClearAca, Some(unit)) => {
                self.end_commands(Ends::AcaOf(unit), index, executor, outputs);
                executor.clear_aca(unit);
            }
        }
    }

    /// A command has come under a tag that is in use.
    ///
    /// If a command has it, all commands of the nexus are aborted, and one status reports both (SAM-5 clause 5.11).
    /// If a function has it, the new command is refused.
    #[cold]
    pub(super) fn handle_overlap(&mut self, index: usize, executor: &mut Executor, outputs: &mut Outputs) {
        if !self.slots[index].is_command() && !matches!(self.slots[index].state, State::Aborting) {
            let tag = self.slots[index].tag;
            let answer = Inline::new(&ResponseIu::new(tag, ResponseCode::OverlappedTag).encode());
            return self.answer_loosely(tag, answer, outputs);
        }
        self.abort_meant(Ends::Everything, executor, outputs);
        let own = self.slots[index].drains();
        self.slots[index].state = State::Draining { ends: Ends::Everything, then: Then::Overlapped, own };
        self.conclude(index, outputs);
    }

    /// LOGICAL UNIT RESET of one unit, or I_T NEXUS RESET of all.
    fn reset(&mut self, unit: Option<u8>, by: usize, executor: &mut Executor, outputs: &mut Outputs) {
        let (ends, event) = match unit {
            Some(unit) => (Ends::Unit(unit), UnitEvent::LogicalUnitReset),
            None => (Ends::Everything, UnitEvent::NexusLoss),
        };
        self.end_commands(ends, by, executor, outputs);
        executor.handle_event(unit, event);
    }

    /// Ends commands for the function in slot `by`, and answers it when they have drained.
    fn end_commands(&mut self, ends: Ends, by: usize, executor: &mut Executor, outputs: &mut Outputs) {
        self.abort_meant(ends, executor, outputs);
        self.slots[by].state = State::Draining { ends, then: Then::Complete, own: false };
        self.conclude(by, outputs);
    }

    fn abort_meant(&mut self, ends: Ends, executor: &mut Executor, outputs: &mut Outputs) {
        // First empty the queues, so that no direction passes to a command that is aborted next.
        for index in 0..self.slots.len() {
            if self.is_meant(index, ends) && self.slots[index].is_command() {
                self.leave_turn_queues(index);
            }
        }
        for index in 0..self.slots.len() {
            if self.is_meant(index, ends) {
                self.abort(index, executor, outputs);
            }
        }
    }

    fn is_meant(&self, index: usize, ends: Ends) -> bool {
        let slot = &self.slots[index];
        let of_unit = |unit| slot.unit == Some(unit);
        match ends {
            Ends::Task { tag, unit } => slot.tag == tag && of_unit(unit),
            Ends::Unit(unit) => of_unit(unit),
            Ends::AcaOf(unit) => of_unit(unit) && slot.is_aca,
            Ends::Everything => true,
        }
    }

    fn query(&self, what: Ends) -> ResponseCode {
        let found = (0..self.slots.len()).any(|index| {
            self.is_meant(index, what) && matches!(self.slots[index].state, State::Running { .. })
        });
        match found {
            true => ResponseCode::TaskManagementSucceeded,
            false => ResponseCode::TaskManagementComplete,
        }
    }

    /// QUERY ASYNCHRONOUS EVENT: whether a unit attention condition stands, and which (SAM-5 clause 7.9).
    fn answer_asynchronous_event(
        &mut self,
        index: usize,
        unit: u8,
        executor: &Executor,
        outputs: &mut Outputs,
    ) {
        let tag = self.slots[index].tag;
        let pending = executor.units().get(usize::from(unit)).and_then(|unit| unit.attentions.gravest());
        let response = match pending {
            Some(attention) => ResponseIu::asynchronous_event(tag, attention.additional_sense()),
            None => ResponseIu::new(tag, ResponseCode::TaskManagementComplete),
        };
        self.respond(index, response, outputs);
    }

    /// Takes a command's transfers back, status included, and has the executor drain it.
    fn abort(&mut self, index: usize, executor: &mut Executor, outputs: &mut Outputs) {
        if !self.slots[index].is_command() {
            return;
        }
        self.slots[index].cancel_transfers(outputs);
        if self.streams {
            self.finish_streams(index, outputs);
        } else {
            self.abandon_turns(index, outputs);
        }
        self.slots[index].state = match self.slots[index].state {
            State::Running { id } => {
                executor.abort(id);
                State::Aborting
            }
            _ => State::Free,
        };
    }

    /// The command of a slot has been drained.
    #[cold]
    pub(super) fn handle_aborted(&mut self, index: usize, outputs: &mut Outputs) {
        match &mut self.slots[index].state {
            State::Draining { own, .. } => *own = false,
            state => *state = State::Free,
        }
        for index in 0..self.slots.len() {
            self.conclude(index, outputs);
        }
    }

    /// Answers what waits in a slot for commands to drain, if they have.
    fn conclude(&mut self, index: usize, outputs: &mut Outputs) {
        let State::Draining { ends, then, .. } = self.slots[index].state else { return };
        if (0..self.slots.len()).any(|other| self.slots[other].drains() && self.is_meant(other, ends)) {
            return;
        }
        match then {
            Then::Complete => self.respond_with(index, ResponseCode::TaskManagementComplete, outputs),
            Then::Overlapped => self.report(index, &super::overlapped(), outputs),
        }
    }

    fn respond_with(&mut self, index: usize, code: ResponseCode, outputs: &mut Outputs) {
        let response = ResponseIu::new(self.slots[index].tag, code);
        self.respond(index, response, outputs);
    }
}
