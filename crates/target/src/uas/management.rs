//! Task management functions (UAS-2 clause 7.5, SAM-5 clause 7).
//!
//! A function that ends commands answers when the medium has let go of the last of them. Every function is known;
//! what is not in the standard is answered NOT SUPPORTED.

use super::Uas;
use super::slot::{After, State};
use crate::command::Executor;
use crate::output::{Inline, Outputs};
use crate::unit::UnitEvent;
use wire::uas::{ResponseCode, ResponseIu, TaskManagementFunction as Function, TaskManagementIu};

/// Which commands a function ends.
#[derive(Clone, Copy)]
enum Ends {
    Tag(u16),
    Unit(u8),
    AcaOf(u8),
    Everything,
}

impl Uas {
    pub(super) fn handle_task_management(
        &mut self,
        iu: TaskManagementIu,
        executor: &mut Executor,
        outputs: &mut Outputs,
    ) {
        let slot = self.slot_for(iu.tag);
        let Some(index) = slot.filter(|&index| matches!(self.slots[index].state, State::Free)) else {
            let code = match slot {
                Some(_) => ResponseCode::OverlappedTag,
                None => ResponseCode::TaskManagementFailed,
            };
            let answer = Inline::new(&ResponseIu::new(iu.tag, code).encode());
            return self.answer_loosely(iu.tag, &answer, outputs);
        };
        self.slots[index].tag = iu.tag;
        let unit = executor.unit_at(iu.lun);
        let code = match (iu.function, unit) {
            (Function::ItNexusReset, _) => self.reset(None, executor, outputs, index),
            (Function::Unknown(_), _) => Some(ResponseCode::TaskManagementNotSupported),
            (_, None) => Some(ResponseCode::IncorrectLun),
            (Function::QueryAsynchronousEvent, Some(unit)) => {
                return self.answer_asynchronous_event(index, unit, executor, outputs);
            }
            (Function::QueryTask, Some(unit)) => Some(self.query(Ends::Tag(iu.managed_tag), unit, executor)),
            (Function::QueryTaskSet, Some(unit)) => Some(self.query(Ends::Unit(unit), unit, executor)),
            (Function::LogicalUnitReset, Some(unit)) => self.reset(Some(unit), executor, outputs, index),
            (Function::AbortTask, _) => {
                self.end_commands(Ends::Tag(iu.managed_tag), index, executor, outputs)
            }
            (Function::AbortTaskSet | Function::ClearTaskSet, Some(unit)) => {
                self.end_commands(Ends::Unit(unit), index, executor, outputs)
            }
            (Function::ClearAca, Some(unit)) => {
                let code = self.end_commands(Ends::AcaOf(unit), index, executor, outputs);
                executor.clear_aca(unit);
                code
            }
        };
        if let Some(code) = code {
            self.answer_management(index, code, outputs);
        }
    }

    /// LOGICAL UNIT RESET of one unit, or I_T NEXUS RESET of all.
    fn reset(
        &mut self,
        unit: Option<u8>,
        executor: &mut Executor,
        outputs: &mut Outputs,
        index: usize,
    ) -> Option<ResponseCode> {
        let (ends, event) = match unit {
            Some(unit) => (Ends::Unit(unit), UnitEvent::LogicalUnitReset),
            None => (Ends::Everything, UnitEvent::NexusLoss),
        };
        let code = self.end_commands(ends, index, executor, outputs);
        executor.handle_event(unit, event);
        code
    }

    /// Begins to end commands. `None` while some drain; their end answers the function.
    fn end_commands(
        &mut self,
        ends: Ends,
        by: usize,
        executor: &mut Executor,
        outputs: &mut Outputs,
    ) -> Option<ResponseCode> {
        self.slots[by].state = State::Managing { left: 0, code: ResponseCode::TaskManagementComplete };
        let mut left = 0;
        for index in 0..self.slots.len() {
            if self.is_meant(index, ends, executor) {
                left += 1;
                self.abort(index, After::Managed { by: by as u16 }, executor, outputs);
            }
        }
        self.slots[by].state = State::Managing { left, code: ResponseCode::TaskManagementComplete };
        (left == 0).then_some(ResponseCode::TaskManagementComplete)
    }

    fn is_meant(&self, index: usize, ends: Ends, executor: &Executor) -> bool {
        let State::Running { id } = self.slots[index].state else { return false };
        match ends {
            Ends::Tag(tag) => self.slots[index].tag == tag,
            Ends::Unit(unit) => executor.unit_of(id) == Some(unit),
            Ends::AcaOf(unit) => executor.unit_of(id) == Some(unit) && executor.is_aca(id),
            Ends::Everything => true,
        }
    }

    fn query(&self, what: Ends, unit: u8, executor: &Executor) -> ResponseCode {
        let found = (0..self.slots.len()).any(|index| {
            self.is_meant(index, what, executor) && self.is_meant(index, Ends::Unit(unit), executor)
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
        self.answer_with(index, Inline::new(&response.encode()), outputs);
    }

    /// Takes a command's transfers back and has the executor drain it.
    pub(super) fn abort(
        &mut self,
        index: usize,
        after: After,
        executor: &mut Executor,
        outputs: &mut Outputs,
    ) {
        let State::Running { id } = self.slots[index].state else { return };
        self.slots[index].cancel_transfers(outputs);
        self.slots[index].last = false;
        if self.streams {
            self.finish_streams(index, outputs);
        } else {
            self.abandon_turns(index, outputs);
        }
        self.slots[index].state = State::Aborting { after };
        executor.abort(id);
    }

    /// One more command of the function in slot `by` has drained.
    pub(super) fn count_drained(&mut self, by: u16, outputs: &mut Outputs) {
        let by = usize::from(by);
        let State::Managing { left, code } = self.slots[by].state else { return };
        if left > 1 {
            self.slots[by].state = State::Managing { left: left - 1, code };
        } else {
            self.answer_management(by, code, outputs);
        }
    }

    fn answer_management(&mut self, index: usize, code: ResponseCode, outputs: &mut Outputs) {
        let response = ResponseIu::new(self.slots[index].tag, code);
        self.answer_with(index, Inline::new(&response.encode()), outputs);
    }
}
