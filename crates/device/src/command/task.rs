//! The state of one command.
//!
//! A slot is filled, goes through its phases, and is emptied; its memory for parameters stays for the next command.
//! Always true: the generation changes when a slot is emptied, so no name leads to the next command.

use super::CommandId;
use super::movement::Movement;
use crate::lun::access::Access;
use crate::lun::row::Row;
use crate::lun::{MediumPlan, Plan, Reply};
use alloc::vec::Vec;
use core::mem;
use wire::uas::TaskAttribute;

/// The longest CDB that any row has; longer ones are cut, and refused by their operation code.
pub(super) const CDB_BYTES_MAX: usize = 32;

/// One slot.
#[derive(Debug, Default)]
pub(super) struct Task {
    pub(super) generation: u16,
    pub(super) phase: Phase,
    /// `None` when the logical unit number names no unit.
    pub(super) unit: Option<u8>,
    pub(super) attribute: Option<TaskAttribute>,
    pub(super) cdb: Cdb,
    pub(super) row: Option<&'static Row>,
    pub(super) reply: Reply,
    pub(super) list: Vec<u8>,
    pub(super) step: u32,
    /// Counts medium requests, so that a late completion of an earlier step is distinguished from a current one.
    pub(super) parts: u16,
    /// Bytes of the buffer held, zero for none.
    pub(super) buffer_bytes: u32,
    /// Its work continues even if the command is aborted (see [`Plan::LongRunning`]).
    pub(super) long_running: bool,
    /// The transport is notified of the data phase before it begins.
    pub(super) asks: bool,
    /// The outcome was sent to the transport already (IMMED), or the command was aborted.
    pub(super) in_background: bool,
    /// GOOD was sent before the work was done (IMMED).
    pub(super) answered: bool,
    /// It drains, and others wait for that before they touch the medium (see [`super::Executor::fence`]).
    pub(super) fences: bool,
}

/// Where a command stands.
#[derive(Debug, Default)]
pub(super) enum Phase {
    /// The slot is empty.
    #[default]
    Free,
    /// The task set does not let it run yet.
    Waiting,
    /// It may run; the unit is asked for a plan.
    Starting,
    /// The intent was reported to the transport.
    Offered(Plan),
    /// The parameter list is on its way.
    List,
    /// The reply is on its way.
    Replying {
        /// How the command ends then.
        then: Plan,
    },
    /// It needs memory for its data phase.
    Memory(MediumPlan),
    /// Blocks move.
    Moving(Movement),
    /// Aborted, but the medium still works on so many of its requests.
    Draining { outstanding: u16 },
}

/// The bytes of a command descriptor block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cdb {
    bytes: [u8; CDB_BYTES_MAX],
    len: u8,
}

impl Cdb {
    pub(super) fn new(cdb: &[u8]) -> Self {
        // A COMMAND IU has 16 bytes of it, which are two words when that is known.
        let Some(whole) = cdb.as_array::<16>() else { return Self::of_odd_length(cdb) };
        let mut bytes = [0; CDB_BYTES_MAX];
        bytes[..whole.len()].copy_from_slice(whole);
        Self { bytes, len: whole.len() as u8 }
    }

    #[cold]
    fn of_odd_length(cdb: &[u8]) -> Self {
        let mut bytes = [0; CDB_BYTES_MAX];
        let len = cdb.len().min(CDB_BYTES_MAX);
        bytes[..len].copy_from_slice(&cdb[..len]);
        Self { bytes, len: len as u8 }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl Task {
    /// Whether it counts as enabled in the task set.
    pub(super) const fn is_started(&self) -> bool {
        !matches!(self.phase, Phase::Free | Phase::Waiting)
    }

    /// Whether it orders others: ordered, or alone in the enabled state.
    pub(super) fn is_barrier(&self) -> bool {
        self.is_exclusive() || self.attribute == Some(TaskAttribute::Ordered) && !self.long_running
    }

    /// Whether nothing else may be enabled beside it.
    pub(super) fn is_exclusive(&self) -> bool {
        self.row.is_some_and(|row| row.needs.exclusive) && !self.long_running
    }

    /// Whether it is for the medium.
    pub(super) fn needs_medium(&self) -> bool {
        self.row.is_some_and(|row| row.needs.ready || row.needs.access == Access::Write)
    }

    pub(super) fn id(&self, slot: u16) -> CommandId {
        CommandId { slot, generation: self.generation }
    }

    /// Goes on to a phase, which is made where it is to lie: see [`bus::Fifo`].
    #[inline(always)]
    pub(super) fn enter(&mut self, phase: impl FnOnce() -> Phase) {
        self.phase = Phase::Free;
        mem::forget(mem::replace(&mut self.phase, phase()));
    }

    /// Empties the slot, and keeps the memory of its vectors.
    pub(super) fn clear(&mut self) {
        self.phase = Phase::Free;
        self.row = None;
        self.unit = None;
        self.attribute = None;
        self.list.clear();
        self.step = 0;
        self.parts = 0;
        self.buffer_bytes = 0;
        self.long_running = false;
        self.in_background = false;
        self.answered = false;
        self.fences = false;
        self.generation = self.generation.wrapping_add(1);
    }
}
