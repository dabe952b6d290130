//! The task set of one unit: which command may run when (SAM-6 clause 8).
//!
//! Commands are queued in order of arrival. Simple ones run beside each other; an ordered one waits for all
//! older ones and holds up all younger ones; head of queue runs at once. A command that must be alone (see
//! [`crate::lun::row::Needs`]) orders itself like an ordered one, and also keeps head of queue waiting while it
//! runs. While an auto contingent allegiance stands, only commands with the ACA attribute start.

use super::task::Task;
use alloc::collections::VecDeque;
use core::hint::cold_path;
use wire::uas::TaskAttribute;

/// The commands of one unit, by age.
#[derive(Debug, Default)]
pub(super) struct TaskSet {
    /// Slots, oldest first.
    slots: VecDeque<u16>,
    /// Those that have not been started, oldest first.
    waiting: VecDeque<u16>,
    /// How many order others. Mostly none does, and the oldest that waits is the next.
    barriers: u16,
    /// Some command may drain that others wait for.
    pub(super) fenced: bool,
    /// An auto contingent allegiance stands (SAM-6 clause 5.10).
    pub(super) aca: bool,
}

impl TaskSet {
    /// A command has come; `barrier` as [`Task::is_barrier`] says.
    pub(super) fn add(&mut self, slot: u16, barrier: bool) {
        self.slots.push_back(slot);
        self.waiting.push_back(slot);
        self.barriers += u16::from(barrier);
    }

    /// It goes; nothing happens if it has gone before.
    pub(super) fn remove(&mut self, slot: u16, barrier: bool) {
        match self.slots.front() {
            // Mostly the oldest has come to its end.
            Some(&oldest) if oldest == slot => drop(self.slots.pop_front()),
            _ => {
                cold_path();
                let Some(position) = self.slots.iter().position(|&own| own == slot) else { return };
                self.slots.remove(position);
            }
        }
        self.barriers -= u16::from(barrier);
    }

    /// It orders no other command any more.
    pub(super) fn relax(&mut self, slot: u16) {
        self.barriers -= u16::from(self.slots.contains(&slot));
    }

    /// One that waited waits no longer: it runs, or is gone.
    pub(super) fn count_start(&mut self, slot: u16) {
        match self.waiting.front() {
            Some(&first) if first == slot => drop(self.waiting.pop_front()),
            _ => {
                cold_path();
                self.waiting.retain(|&waiting| waiting != slot);
            }
        }
    }

    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = u16> {
        self.slots.iter().copied()
    }

    /// The oldest command that waits and may start.
    pub(super) fn next(&self, tasks: &[Task]) -> Option<u16> {
        let first = *self.waiting.front()?;
        if self.barriers == 0 && !self.aca && !self.fenced {
            return Some(first);
        }
        cold_path();
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
