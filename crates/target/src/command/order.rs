//! The task set of one unit: which command may run when (SAM-6 clause 8).
//!
//! Commands stand in the order of their arrival. Simple ones run beside each other; an ordered one waits for all
//! older ones and holds up all younger ones; head of queue runs at once. A command that must be alone (see
//! [`crate::unit::table::Needs`]) orders itself like an ordered one, and also keeps head of queue waiting while it
//! runs. While an auto contingent allegiance stands, only commands with the ACA attribute start.

use super::task::Task;
use alloc::vec::Vec;
use wire::uas::TaskAttribute;

/// The commands of one unit, by age.
#[derive(Debug, Default)]
pub(super) struct TaskSet {
    /// Slots, oldest first.
    slots: Vec<u16>,
    /// How many of them have not been started.
    waiting: u16,
    /// An auto contingent allegiance stands (SAM-6 clause 5.10).
    pub(super) aca: bool,
}

impl TaskSet {
    pub(super) fn add(&mut self, slot: u16) {
        self.slots.push(slot);
        self.waiting += 1;
    }

    pub(super) fn remove(&mut self, slot: u16) {
        if let Some(position) = self.slots.iter().position(|&s| s == slot) {
            self.slots.remove(position);
        }
    }

    /// One that waited waits no longer: it runs, or is gone.
    pub(super) fn count_start(&mut self) {
        self.waiting -= 1;
    }

    pub(super) const fn has_waiting(&self) -> bool {
        self.waiting > 0
    }

    pub(super) fn slots(&self) -> &[u16] {
        &self.slots
    }

    /// The oldest command that waits and may start.
    pub(super) fn next(&self, tasks: &[Task]) -> Option<u16> {
        if !self.has_waiting() {
            return None;
        }
        let task = |slot: &u16| &tasks[usize::from(*slot)];
        let (mut any_started, mut alone, mut fenced) = (false, false, false);
        for task in self.slots.iter().map(task).filter(|task| task.is_started()) {
            any_started = true;
            alone |= task.is_exclusive();
            fenced |= task.fences;
        }
        let mut barrier = false;
        for (age, slot) in self.slots.iter().enumerate() {
            let candidate = task(slot);
            if !candidate.is_started() {
                let by_attribute = match candidate.attribute {
                    Some(TaskAttribute::Aca) => true,
                    _ if self.aca => false,
                    Some(TaskAttribute::HeadOfQueue) => true,
                    Some(TaskAttribute::Ordered) => age == 0,
                    _ => !barrier,
                };
                let in_the_way =
                    alone || candidate.is_exclusive() && any_started || candidate.needs_medium() && fenced;
                if by_attribute && !in_the_way {
                    return Some(*slot);
                }
            }
            barrier |= candidate.is_barrier();
        }
        None
    }
}
