//! The command slots: each command and whether it is in flight, waiting, or to be sent.
//!
//! There is one slot more than the queue depth: the last is for identification. After BUSY nothing
//! is sent for a time; after TASK SET FULL the depth is reduced, and grows by one for each
//! [`WIDEN_AFTER`] successful commands. Always true: no more commands in flight than the depth; an
//! outcome matches its command only while that is in flight, since each submission has its own
//! generation.

use super::part::{self, LIST_BYTES_MAX, RUNS_MAX, Share};
use super::verdict::RetryCounts;
use crate::CommandId;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::hint::cold_path;
use units::{Extent, Instant};

/// The purpose of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// A step of the identify sequence.
    Identify,
    /// Blocks of a request.
    Blocks {
        request: u16,
        /// The blocks that are not yet done, the part in flight included.
        rest: Extent,
        /// Where its data begin in the request's buffer.
        offset: u32,
        /// The part that was sent last.
        share: Share,
    },
    /// SYNCHRONIZE CACHE, asked for or after a write that should have been forced.
    Flush { request: u16 },
}

/// Where a command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// To be sent.
    Ready,
    /// The transport has it.
    InFlight,
    /// The transport has given it back: it is about to be kept or released.
    Completed,
    /// To be sent at a time.
    Waiting { until: Instant, reason: WaitReason },
}

/// The reason why a disk waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// A busy unit, or one whose task set is full.
    Busy,
    /// A unit that is becoming ready.
    NotReady,
    /// Room in the transport.
    Transport,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Task {
    pub(super) work: Work,
    pub(super) stage: Stage,
    pub(super) retries: RetryCounts,
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    task: Option<Task>,
    /// The parameter list of an UNMAP.
    list: [u8; LIST_BYTES_MAX],
    list_bytes: usize,
    /// Requests that come along.
    merged: Vec<u16>,
}

/// Commands that go well before a unit whose task set was full gets one more at a time.
const WIDEN_AFTER: u16 = 32;

#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u16>,
    ready: VecDeque<u16>,
    in_flight: u16,
    waiting: u16,
    /// Commands that the unit takes at once, as far as it has reported.
    width: u16,
    /// Commands that went well since that changed.
    well: u16,
    /// Nothing is sent before that.
    held_until: Option<Instant>,
}

impl Work {
    pub(super) const fn request(&self) -> Option<u16> {
        match self {
            Self::Identify => None,
            Self::Blocks { request, .. } | Self::Flush { request } => Some(*request),
        }
    }
}

impl Task {
    pub(super) fn new(work: Work) -> Self {
        Self { work, stage: Stage::Ready, retries: RetryCounts::default() }
    }
}

impl Slots {
    pub(super) fn new(depth: u16) -> Self {
        let slot = |_| Slot {
            generation: 0,
            task: None,
            list: [0; LIST_BYTES_MAX],
            list_bytes: 0,
            merged: Vec::with_capacity(RUNS_MAX - 1),
        };
        Self {
            slots: (0..=depth).map(slot).collect(),
            free: (0..depth).rev().collect(),
            ready: VecDeque::with_capacity(depth.into()),
            in_flight: 0,
            waiting: 0,
            width: depth,
            well: 0,
            held_until: None,
        }
    }

    /// The identify sequence's place.
    pub(super) const fn identify_slot(&self) -> u16 {
        (self.slots.len() - 1) as u16
    }

    /// Whether another command may go in flight.
    pub(super) fn has_room(&self, now: Instant) -> bool {
        self.in_flight < self.width && self.held_until.is_none_or(|until| until <= now)
    }

    /// Sends nothing until then: the unit is busy.
    pub(super) fn hold(&mut self, until: Instant) {
        self.held_until = Some(self.held_until.map_or(until, |held| held.max(until)));
    }

    /// Limits the depth to what is in flight: the task set is full.
    pub(super) fn narrow(&mut self) {
        self.width = self.in_flight.clamp(1, self.width);
        self.well = 0;
    }

    /// Records a successful command.
    pub(super) fn widen(&mut self) {
        // The identify sequence's place is none of the depth.
        if usize::from(self.width) == self.slots.len() - 1 {
            return;
        }
        cold_path();
        self.well += 1;
        if self.well == WIDEN_AFTER {
            self.well = 0;
            self.width += 1;
        }
    }

    fn identify_is_ready(&self) -> bool {
        self.task(self.identify_slot()).is_some_and(|task| task.stage == Stage::Ready)
    }

    /// Returns the command of the identify sequence in flight.
    pub(super) fn identify_command(&self) -> Option<CommandId> {
        let slot = self.slots.last()?;
        let is_in_flight = slot.task.as_ref().is_some_and(|task| task.stage == Stage::InFlight);
        is_in_flight.then_some(CommandId { slot: self.identify_slot(), generation: slot.generation })
    }

    pub(super) fn take_free(&mut self) -> Option<u16> {
        self.free.pop()
    }

    pub(super) fn fill(&mut self, at: u16, task: Task) {
        self.slots[usize::from(at)].task = Some(task);
    }

    /// Whether a command is to be sent again.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The next command to send again.
    pub(super) fn take_ready(&mut self) -> Option<u16> {
        self.ready.pop_front()
    }

    pub(super) fn task(&self, at: u16) -> Option<&Task> {
        self.slots.get(usize::from(at))?.task.as_ref()
    }

    /// Puts a command in flight, as `work`, and names it. It counts on where it was sent before.
    pub(super) fn send(&mut self, at: u16, work: Work) -> CommandId {
        let slot = &mut self.slots[usize::from(at)];
        slot.generation = slot.generation.wrapping_add(1);
        match &mut slot.task {
            Some(task) => (task.work, task.stage) = (work, Stage::InFlight),
            none => *none = Some(Task { stage: Stage::InFlight, ..Task::new(work) }),
        }
        self.in_flight += 1;
        CommandId { slot: at, generation: slot.generation }
    }

    /// Records the completion of a command and returns its task, if it was in flight.
    pub(super) fn complete(&mut self, id: CommandId) -> Option<&Task> {
        let slot = self.slots.get_mut(usize::from(id.slot))?;
        let task = slot.task.as_mut()?;
        if slot.generation != id.generation || task.stage != Stage::InFlight {
            cold_path();
            return None;
        }
        task.stage = Stage::Completed;
        self.in_flight -= 1;
        Some(task)
    }

    /// Keeps a completed task, to be sent again when there is room or at a time.
    pub(super) fn keep(&mut self, at: u16, task: Task) {
        match task.stage {
            Stage::Ready if at != self.identify_slot() => self.ready.push_back(at),
            Stage::Waiting { .. } => self.waiting += 1,
            Stage::Ready | Stage::InFlight | Stage::Completed => {}
        }
        self.fill(at, task);
    }

    /// Frees the slot of a command that is not in flight.
    #[inline(always)]
    pub(super) fn release(&mut self, at: u16) {
        let identify_slot = self.identify_slot();
        let place = &mut self.slots[usize::from(at)].task;
        let Some(task) = place else { return };
        match task.stage {
            Stage::Completed => {}
            Stage::Waiting { .. } => self.waiting -= 1,
            Stage::Ready => {
                cold_path();
                self.ready.retain(|&ready| ready != at);
            }
            Stage::InFlight => self.in_flight -= 1,
        }
        *place = None;
        if at != identify_slot {
            self.free.push(at);
        }
    }

    /// Marks tasks ready whose time has come.
    pub(super) fn wake(&mut self, now: Instant) {
        self.held_until = self.held_until.filter(|&until| until > now);
        if self.waiting == 0 {
            return;
        }
        let identify_slot = self.identify_slot();
        for (at, slot) in (0u16..).zip(&mut self.slots) {
            let Some(task) = &mut slot.task else { continue };
            if matches!(task.stage, Stage::Waiting { until, .. } if until <= now) {
                task.stage = Stage::Ready;
                self.waiting -= 1;
                if at != identify_slot {
                    self.ready.push_back(at);
                }
            }
        }
    }

    /// The earliest time at which [`Self::wake`] has something to do; `sends` says that there is
    /// something to begin.
    pub(super) fn next_wake(&self, sends: bool) -> Option<(Instant, WaitReason)> {
        let sends = sends || !self.ready.is_empty() || self.identify_is_ready();
        let held = self.held_until.filter(|_| sends).map(|until| (until, WaitReason::Busy));
        if self.waiting == 0 {
            return held;
        }
        let waits = self.slots.iter().filter_map(|slot| match slot.task.as_ref()?.stage {
            Stage::Waiting { until, reason } => Some((until, reason)),
            Stage::Ready | Stage::InFlight | Stage::Completed => None,
        });
        waits.chain(held).min_by_key(|&(until, _)| until)
    }

    /// Places and names of the commands of a request, or of all requests.
    pub(super) fn of_request(&self, request: Option<u16>) -> Vec<(u16, CommandId, Stage)> {
        let slots = (0u16..).zip(&self.slots);
        let tasks = slots.filter_map(|(at, slot)| slot.task.as_ref().map(|task| (at, slot.generation, task)));
        tasks
            .filter(|(_, _, task)| match request {
                Some(request) => task.work.request() == Some(request),
                None => task.work.request().is_some(),
            })
            .map(|(at, generation, task)| (at, CommandId { slot: at, generation }, task.stage))
            .collect()
    }

    pub(super) fn set_list(&mut self, at: u16, runs: &[Extent]) {
        let slot = &mut self.slots[usize::from(at)];
        slot.list_bytes = part::unmap_list(runs, &mut slot.list);
    }

    /// Returns the requests merged into a command.
    pub(super) fn merged(&self, at: u16) -> &[u16] {
        &self.slots[usize::from(at)].merged
    }

    pub(super) fn add_merged(&mut self, at: u16, request: u16) {
        self.slots[usize::from(at)].merged.push(request);
    }

    pub(super) fn pop_merged(&mut self, at: u16) -> Option<u16> {
        self.slots[usize::from(at)].merged.pop()
    }

    /// The parameter list of a command.
    pub(super) fn list(&self, at: u16) -> Option<&[u8]> {
        let slot = self.slots.get(usize::from(at))?;
        slot.list.get(..slot.list_bytes)
    }

    pub(super) const fn in_flight(&self) -> u16 {
        self.in_flight
    }
}
