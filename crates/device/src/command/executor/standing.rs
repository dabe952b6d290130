//! Queries about commands. Nothing changes by them.

use super::Executor;
use crate::command::CommandId;
use crate::command::task::Phase;
use wire::uas::TaskAttribute;

impl Executor {
    /// Commands that were aborted so far, without those whose work goes on all the same.
    pub const fn aborted(&self) -> u64 {
        self.aborted
    }

    /// Whether a command has neither ended nor been aborted.
    pub fn is_live(&self, id: CommandId) -> bool {
        let task = self.tasks.get(usize::from(id.slot));
        task.is_some_and(|task| {
            let gone = task.in_background || matches!(task.phase, Phase::Free | Phase::Draining { .. });
            task.generation == id.generation && !gone
        })
    }

    /// The unit that a live command addresses.
    pub fn unit_of(&self, id: CommandId) -> Option<u8> {
        self.tasks.get(usize::from(id.slot)).filter(|task| task.generation == id.generation)?.unit
    }

    /// Whether a live command has the ACA attribute.
    pub fn is_aca(&self, id: CommandId) -> bool {
        let task = self.tasks.get(usize::from(id.slot)).filter(|task| task.generation == id.generation);
        task.is_some_and(|task| task.attribute == Some(TaskAttribute::Aca))
    }

    /// Commands in flight, those that drain included.
    pub fn depth(&self) -> usize {
        self.tasks.len() - self.free.len()
    }

    /// Whether nothing is in flight.
    pub fn is_idle(&self) -> bool {
        self.free.len() == self.tasks.len()
    }

    /// Commands that a transport may still abort on a unit, or on all.
    pub fn live(&self, unit: Option<u8>) -> impl Iterator<Item = CommandId> + '_ {
        let sets = self.sets.iter().enumerate();
        let sets = sets.filter(move |(number, _)| unit.is_none_or(|unit| usize::from(unit) == *number));
        let slots = sets.flat_map(|(_, set)| set.slots());
        slots.map(|slot| self.tasks[usize::from(slot)].id(slot)).filter(|&id| self.is_live(id))
    }
}
