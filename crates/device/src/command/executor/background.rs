//! Work that continues although no host waits for it: after GOOD was sent (IMMED), after an abort that cannot stop it,
//! after a power loss that cut it off.
//!
//! A failure is reported by a later command, as a deferred error (SPC-4 clause 4.5.5), if GOOD was sent; a host that
//! aborted a command, or lost power, expects no outcome. Always true: a command is reported to the transport once.

use super::Executor;
use crate::command::task::{Cdb, Phase, Task};
use crate::command::{CommandId, CommandOutput};
use crate::lun::{self, InsertedMedium};
use wire::scsi::Status;
use wire::scsi::sense::Sense;

impl Executor {
    /// Completes the command with GOOD for the transport while its work continues.
    pub(super) fn detach(&mut self, id: CommandId) {
        let outcome = self.outcome(id, Status::Good, None);
        if let Some(task) = self.task(id)
            && !core::mem::replace(&mut task.in_background, true)
        {
            task.answered = true;
            self.outputs.push_back(CommandOutput::Completed { id, outcome });
            self.leave_set(id);
        }
    }

    /// Lets others start beside a command, and keeps aborts from it.
    pub(super) fn make_lasting(&mut self, id: CommandId) {
        let Some(task) = self.task(id) else { return };
        let (unit, ordered) = (task.unit, task.is_barrier());
        task.long_running = true;
        self.dirty = true;
        if let Some(unit) = unit.filter(|_| ordered) {
            self.sets[usize::from(unit)].relax(id.slot);
        }
    }

    /// Stores the sense data of a command that failed after GOOD was sent.
    pub(super) fn defer(&mut self, id: CommandId, sense: Option<Sense>) {
        let Some(task) = self.tasks.get(usize::from(id.slot)).filter(|task| task.answered) else { return };
        let unit = task.unit.and_then(|unit| self.units.get_mut(usize::from(unit)));
        if let (Some(unit), Some(sense)) = (unit, sense) {
            unit.deferred = Some(Sense { deferred: true, ..sense });
        }
    }

    /// Resumes what a power loss interrupted at a unit's medium; no command waits for it.
    pub(super) fn resume(&mut self, unit: u8) {
        let Some(record) = self.units.get(usize::from(unit)).and_then(|state| state.unfinished()) else {
            return;
        };
        let Some(slot) = self.free.pop() else { return };
        let task = &mut self.tasks[usize::from(slot)];
        task.unit = Some(unit);
        task.cdb = Cdb::new(&record.cdb);
        task.row = self.index.find(None, &record.cdb).ok();
        task.list.extend_from_slice(&record.list);
        task.in_background = true;
        let id = task.id(slot);
        let plan = self.consult(id, |_, context, _, list| lun::resume_sanitize(context, list));
        self.carry_out_later(id, plan);
    }

    /// A medium was put into a unit; see [`crate::lun::LogicalUnit::insert_medium`].
    pub fn insert_medium(&mut self, unit: u8, medium: InsertedMedium) {
        if let Some(state) = self.units.get_mut(usize::from(unit)) {
            state.insert_medium(medium);
            self.resume(unit);
        }
    }

    /// Whether a command of a unit is in flight that uses its medium: one that was let through, or that
    /// goes on unseen.
    pub fn uses_medium(&self, unit: u8) -> bool {
        let is_there = |task: &Task| matches!(task.phase, Phase::Moving(_) | Phase::Draining { .. });
        let mut tasks = self.tasks.iter().filter(|task| task.unit == Some(unit) && task.is_started());
        tasks.any(|task| task.needs_medium() || is_there(task))
    }
}
