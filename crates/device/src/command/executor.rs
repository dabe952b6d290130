//! Executes plans: starts commands, connects data phase and medium, completes each command once.
//!
//! A plan goes through phases: offered to the transport, waiting for memory, moving, ended. Each call here takes one
//! command one phase further; what others may do because of it happens in [`Executor::poll_output`], so that a long
//! queue is no deep recursion. Left out: order ([`super::order`]) and segments ([`super::movement`]). Always true: a
//! command in a slot is in exactly one phase; late answers to an earlier holder of a slot are dropped.

mod background;
mod standing;
mod transfer;

use super::memory::Memory;
use super::order::TaskSet;
use super::task::{Cdb, Phase, Task};
use super::{CommandId, CommandOutput, DataLocation, Intent, Limits, Outcome, Request, TaskSetFull};
use crate::lun::registry::Index;
use crate::lun::row::Row;
use crate::lun::{
    Context, DataPhase, LIST_HEAD_BYTES, LogicalUnit, MediumPlan, Plan, UnitEvent, absent_unit,
    medium_failure, precheck,
};
use crate::medium::MediumCompletion;
use crate::output::Output;
use alloc::boxed::Box;
use alloc::vec::Vec;
use bus::{Direction, Fifo, Front};
use core::hint::cold_path;
use units::ByteRange;
use wire::scsi::Status;
use wire::scsi::lun::{Lun, LunField};
use wire::scsi::sense::{AdditionalSense, Sense, SenseFormat, SenseKey};
use wire::uas::TaskAttribute;

/// The commands of one device, and its units.
#[derive(Debug)]
pub struct Executor {
    units: Vec<LogicalUnit>,
    sets: Vec<TaskSet>,
    index: Index,
    tasks: Vec<Task>,
    free: Vec<u16>,
    limits: Limits,
    memory: Memory,
    /// A command was added or removed since the task sets were last evaluated.
    dirty: bool,
    /// Commands that were aborted so far.
    aborted: u64,
    outputs: Fifo<CommandOutput>,
    /// Outputs for the driver: buffers and media.
    wants: Fifo<Output>,
}

impl Executor {
    /// Creates an executor for `units`, numbered in their order. Operations that a power loss interrupted resume.
    pub fn new(units: Vec<LogicalUnit>, limits: Limits) -> Self {
        let mut tasks = Vec::new();
        tasks.resize_with(usize::from(limits.commands), Task::default);
        let mut executor = Self {
            sets: units.iter().map(|_| TaskSet::default()).collect(),
            units,
            index: Index::default(),
            tasks,
            free: (0..limits.commands).rev().collect(),
            limits,
            memory: Memory::new(limits.buffer_bytes),
            dirty: false,
            aborted: 0,
            outputs: Fifo::new(),
            wants: Fifo::new(),
        };
        for unit in 0..executor.units.len() as u8 {
            executor.resume(unit);
        }
        executor
    }

    /// The units.
    pub fn units(&self) -> &[LogicalUnit] {
        &self.units
    }

    /// The units, for what their owner changes (medium inserted, capacity).
    pub fn units_mut(&mut self) -> &mut [LogicalUnit] {
        &mut self.units
    }

    /// The number of the unit that a logical unit number field names.
    pub fn unit_at(&self, lun: [u8; 8]) -> Option<u8> {
        let Some(Lun::Unit(number)) = LunField(lun).lun() else { return None };
        let unit = u8::try_from(number).ok()?;
        (usize::from(unit) < self.units.len()).then_some(unit)
    }

    /// Accepts a command. It starts at once if the task set allows.
    pub fn submit(&mut self, request: Request<'_>) -> Result<CommandId, TaskSetFull> {
        let slot = self.free.pop().ok_or(TaskSetFull)?;
        let unit = self.unit_at(request.lun);
        let row = self.index.find(unit.map(|unit| &self.units[usize::from(unit)]), request.cdb);
        let task = &mut self.tasks[usize::from(slot)];
        task.unit = unit;
        task.attribute = Some(request.attribute);
        task.asks = request.asks;
        task.cdb = Cdb::new(request.cdb);
        task.row = row.ok();
        task.phase = Phase::Waiting;
        let id = task.id(slot);
        match unit {
            Some(unit) => {
                self.sets[usize::from(unit)].add(slot, task.is_barrier());
                self.admit(id, unit, request);
            }
            None => {
                let plan = absent_unit::without_unit(
                    LunField(request.lun),
                    request.cdb,
                    &mut task.reply,
                    self.units.len() as u8,
                );
                self.carry_out(id, plan);
            }
        }
        Ok(id)
    }

    /// Checks a new command against an auto contingent allegiance before it is queued.
    fn admit(&mut self, id: CommandId, unit: u8, request: Request<'_>) {
        let set = &self.sets[usize::from(unit)];
        let is_aca = |slot: &u16| self.tasks[usize::from(*slot)].attribute == Some(TaskAttribute::Aca);
        // The new command is in the set already; beside it there may be no other ACA command.
        let is_taken = || set.slots().filter(is_aca).count() > 1;
        match (set.aca, request.attribute == TaskAttribute::Aca) {
            (true, false) => self.end(id, Status::AcaActive, None),
            (true, true) if is_taken() => self.end(id, Status::AcaActive, None),
            (false, true) => {
                let code = AdditionalSense::INVALID_MESSAGE_ERROR;
                self.end(id, Status::CheckCondition, Some(Sense::illegal_request(code)));
            }
            _ => self.dirty = true,
        }
    }

    /// The transport accepts the reported intent.
    pub fn proceed(&mut self, id: CommandId) {
        let Some(task) = self.task(id) else { return };
        if let &Phase::Offered(plan) = &task.phase {
            self.begin_data_phase(id, plan);
        }
    }

    /// Begins the data phase of a plan that has one.
    #[inline(always)]
    fn begin_data_phase(&mut self, id: CommandId, plan: Plan) {
        let Some(task) = self.task(id) else { return };
        match plan {
            Plan::Reply | Plan::ReplyThen(_) => {
                task.phase = Phase::Replying { then: plan.after_reply() };
                let range = ByteRange::new(0, task.reply.as_bytes().len() as u32);
                let location = DataLocation::Parameters;
                self.outputs.push_with(|| CommandOutput::DataIn { id, range, location, last: true });
            }
            Plan::List { bytes } => {
                task.phase = Phase::List;
                self.fetch_list(id, ByteRange::new(0, bytes), true);
            }
            Plan::ListHead { .. } => {
                task.phase = Phase::List;
                self.fetch_list(id, ByteRange::new(0, LIST_HEAD_BYTES), false);
            }
            Plan::Medium(plan) => self.await_memory(id, plan),
            // These have none.
            Plan::Good
            | Plan::Check(_)
            | Plan::Status(_)
            | Plan::ListRest { .. }
            | Plan::LongRunning(_)
            | Plan::Background(_) => {}
        }
    }

    /// The transport cannot carry the intent: the command is dropped without an outcome.
    pub fn refuse(&mut self, id: CommandId) {
        if matches!(self.task(id), Some(Task { phase: Phase::Offered(_), .. })) {
            self.free_slot(id);
        }
    }

    /// Parameter data on its way to the host.
    pub fn reply(&self, id: CommandId) -> &[u8] {
        let task = self.tasks.get(usize::from(id.slot)).filter(|task| task.generation == id.generation);
        task.map_or(&[], |task| task.reply.as_bytes())
    }

    /// The command descriptor block of a command; empty if there is no such command.
    pub fn cdb(&self, id: CommandId) -> &[u8] {
        let task = self.tasks.get(usize::from(id.slot)).filter(|task| task.generation == id.generation);
        task.map_or(&[], |task| task.cdb.as_bytes())
    }

    /// The host has taken the bytes of a [`CommandOutput::DataIn`].
    pub fn handle_data_in(&mut self, id: CommandId) {
        let Some(task) = self.task(id) else { return };
        match &mut task.phase {
            &mut Phase::Replying { then } => {
                cold_path();
                self.carry_out_later(id, then);
            }
            Phase::Moving(movement) => {
                movement.crossed += 1;
                self.conclude(id);
            }
            _ => {}
        }
    }

    /// The parameter list of a [`CommandOutput::DataOut`] has come, perhaps shorter than asked for.
    #[cold]
    pub fn handle_parameter_list(&mut self, id: CommandId, list: &[u8]) {
        let Some(task) = self.task(id) else { return };
        if !matches!(task.phase, Phase::List) {
            return;
        }
        task.list.extend_from_slice(list);
        self.interpret_list(id);
    }

    /// Block data of a [`CommandOutput::DataOut`] has come: `actual` bytes of `range`.
    #[inline(always)]
    pub fn handle_data_out(&mut self, id: CommandId, range: ByteRange, actual: u32) {
        let Some(task) = self.task(id) else { return };
        let Phase::Moving(movement) = &mut task.phase else { return };
        let segment = movement.segment_at(range.start);
        movement.crossed += 1;
        if actual < range.len {
            cold_path();
            // The host has less than the CDB says; nothing more will come.
            movement.crossed = movement.segments();
            let sense = Sense::new(SenseKey::AbortedCommand, AdditionalSense::DATA_PHASE_ERROR);
            movement.failure.get_or_insert_with(|| Box::new(Plan::Check(sense)));
        }
        if movement.failure.is_none() {
            self.ask_medium(id, segment);
        }
        self.conclude(id);
    }

    /// The medium has answered.
    #[inline(always)]
    pub fn handle_medium(&mut self, completion: MediumCompletion) {
        let id = completion.id.command;
        let Some(task) = self.tasks.get_mut(usize::from(id.slot)) else { return };
        if task.generation != id.generation {
            cold_path();
            return;
        }
        match &mut task.phase {
            Phase::Draining { outstanding } => {
                cold_path();
                *outstanding -= 1;
                if *outstanding == 0 {
                    self.free_aborted(id);
                }
            }
            Phase::Moving(movement) => {
                let Some(segment) = movement.segment_of(completion.id.part) else { return };
                movement.finish(segment);
                match completion.result {
                    Ok(done) => movement.done = done,
                    Err(error) => {
                        cold_path();
                        let unit = task.unit.and_then(|unit| self.units.get_mut(usize::from(unit)));
                        let error = error.after(movement.range(segment).start);
                        let plan =
                            medium_failure::medium_failure(unit, task.row, error, movement.extent(segment));
                        movement.failure.get_or_insert_with(|| Box::new(plan));
                    }
                }
                self.hand_over(id);
                self.conclude(id);
            }
            _ => {}
        }
    }

    /// Aborts one command. Answered by [`CommandOutput::Aborted`], at once or when the medium has released it.
    /// The transport has cancelled its transfers before.
    pub fn abort(&mut self, id: CommandId) {
        let Some(task) = self.task(id) else { return };
        if task.long_running {
            if !core::mem::replace(&mut task.in_background, true) {
                self.outputs.push_with(|| CommandOutput::Aborted { id });
                self.leave_set(id);
            }
            return;
        }
        let outstanding = match &task.phase {
            Phase::Draining { .. } | Phase::Free => return,
            Phase::Moving(movement) => movement.outstanding,
            _ => 0,
        };
        let waited = matches!(task.phase, Phase::Waiting).then_some(task.unit).flatten();
        task.phase = Phase::Draining { outstanding };
        self.aborted += 1;
        if let Some(unit) = waited {
            self.sets[usize::from(unit)].count_start(id.slot);
        }
        if outstanding == 0 {
            self.free_aborted(id);
        }
    }

    /// Holds commands for the medium until it has released all that were aborted so far.
    ///
    /// For a transport that stops: no host waits for its commands to drain, and their writes must not reach the medium after
    /// writes that the host sends later.
    pub fn fence(&mut self) {
        for task in &mut self.tasks {
            task.fences = matches!(task.phase, Phase::Draining { .. });
        }
        for set in &mut self.sets {
            let is_fenced = set.slots().any(|slot| self.tasks[usize::from(slot)].fences);
            set.fenced = is_fenced;
        }
    }

    /// Reports an event to a unit, or to all; an auto contingent allegiance ends with it. Commands are not affected.
    pub fn handle_event(&mut self, unit: Option<u8>, event: UnitEvent) {
        for (number, (state, set)) in self.units.iter_mut().zip(&mut self.sets).enumerate() {
            if unit.is_none_or(|unit| usize::from(unit) == number) {
                state.handle_event(event);
                set.aca = false;
                self.dirty = true;
            }
        }
    }

    /// Ends the auto contingent allegiance of a unit (CLEAR ACA). Whether there was one.
    pub fn clear_aca(&mut self, unit: u8) -> bool {
        let Some(set) = self.sets.get_mut(usize::from(unit)) else { return false };
        self.dirty = true;
        core::mem::take(&mut set.aca)
    }

    /// The next output for the driver of the device; the transport does not see it.
    #[inline(always)]
    pub fn poll_want(&mut self) -> Option<Front<'_, Output>> {
        self.wants.front_entry()
    }

    /// Whether there is an output for the driver.
    #[inline]
    pub fn wants(&self) -> bool {
        !self.wants.is_empty()
    }

    /// Whether [`Self::poll_output`] may return anything.
    #[inline]
    pub(crate) fn may_have_outputs(&self) -> bool {
        self.dirty || !self.outputs.is_empty()
    }

    /// The next output for the transport.
    pub fn poll_output(&mut self) -> Option<CommandOutput> {
        // Commands start here and not where others end, so that a long queue is no deep recursion.
        if self.outputs.is_empty() && core::mem::take(&mut self.dirty) {
            for unit in 0..self.units.len() as u8 {
                if self.sets[usize::from(unit)].has_waiting() {
                    self.start_ready(unit);
                }
            }
        }
        self.outputs.pop_front()
    }

    fn task(&mut self, id: CommandId) -> Option<&mut Task> {
        self.tasks.get_mut(usize::from(id.slot)).filter(|task| task.generation == id.generation)
    }

    /// Starts every command of a unit that may start.
    #[inline(never)]
    fn start_ready(&mut self, unit: u8) {
        while let Some(slot) = self.sets[usize::from(unit)].next(&self.tasks) {
            self.sets[usize::from(unit)].count_start(slot);
            let task = &mut self.tasks[usize::from(slot)];
            task.phase = Phase::Starting;
            let id = task.id(slot);
            let units = self.units.len() as u8;
            let state = &mut self.units[usize::from(unit)];
            let mut context = Context { unit: state, reply: &mut task.reply, step: &mut task.step, units };
            let row = task.row.map_or_else(|| self.index.find(Some(context.unit), task.cdb.as_bytes()), Ok);
            let plan = match precheck::admit(context.unit, row, task.cdb.as_bytes()) {
                Ok(row) => precheck::begin(row, &mut context, task.cdb.as_bytes()),
                Err(plan) => plan,
            };
            self.carry_out(id, plan);
        }
    }

    /// Takes the first step of a plan.
    fn carry_out(&mut self, id: CommandId, plan: Plan) {
        let Some(task) = self.task(id) else { return };
        let intent = match plan {
            Plan::Good => return self.end(id, Status::Good, None),
            Plan::Check(sense) => {
                cold_path();
                return self.end(id, Status::CheckCondition, Some(sense));
            }
            Plan::Status(status) => {
                cold_path();
                return self.end(id, status, None);
            }
            Plan::Reply if task.reply.as_bytes().is_empty() => return self.end(id, Status::Good, None),
            Plan::List { bytes: 0 } => {
                cold_path();
                task.list.clear();
                return self.interpret_list(id);
            }
            Plan::Reply | Plan::ReplyThen(_) => (Direction::In, task.reply.as_bytes().len() as u32),
            Plan::List { bytes } | Plan::ListHead { least: bytes } => (Direction::Out, bytes),
            Plan::Medium(MediumPlan { data: DataPhase::In, bytes, .. }) => (Direction::In, bytes),
            Plan::Medium(MediumPlan { data: DataPhase::Out, bytes, .. }) => (Direction::Out, bytes),
            Plan::Medium(plan) => return self.start_movement(id, plan),
            Plan::LongRunning(_) | Plan::Background(_) | Plan::ListRest { .. } => {
                return self.carry_out_later(id, plan);
            }
        };
        if !task.asks {
            return self.begin_data_phase(id, plan);
        }
        task.phase = Phase::Offered(plan);
        let (direction, bytes) = intent;
        self.outputs.push_with(|| CommandOutput::Begin { id, intent: Intent { direction, bytes } });
    }

    /// Takes a command out of its task set.
    fn leave_set(&mut self, id: CommandId) {
        let barrier = self.task(id).is_some_and(|task| task.is_barrier());
        if let Some(unit) = self.unit_of(id) {
            self.sets[usize::from(unit)].remove(id.slot, barrier);
            self.dirty = true;
        }
    }

    fn interpret_list(&mut self, id: CommandId) {
        let plan = self.consult(id, |row, context, cdb, list| match row.on_list {
            Some(on_list) => on_list(context, cdb, list),
            None => Plan::Good,
        });
        self.carry_out_later(id, plan);
    }

    /// Asks the unit what comes next, with everything it may look at.
    #[inline(always)]
    fn consult(
        &mut self,
        id: CommandId,
        ask: impl FnOnce(&'static Row, &mut Context<'_>, &[u8], &[u8]) -> Plan,
    ) -> Plan {
        let units = self.units.len() as u8;
        let Some(task) = self.tasks.get_mut(usize::from(id.slot)) else { return Plan::Good };
        let unit = task.unit.and_then(|unit| self.units.get_mut(usize::from(unit)));
        let (Some(row), Some(unit)) = (task.row, unit) else { return Plan::Good };
        let mut context = Context { unit, reply: &mut task.reply, step: &mut task.step, units };
        ask(row, &mut context, task.cdb.as_bytes(), &task.list)
    }

    /// Takes a later step of a plan. The data phase is over, so a step has none, or is the last.
    fn carry_out_later(&mut self, id: CommandId, plan: Plan) {
        match plan {
            Plan::Medium(MediumPlan { data: DataPhase::In | DataPhase::Out, .. }) => {
                cold_path();
                let fault = AdditionalSense::INTERNAL_TARGET_FAILURE;
                self.end(id, Status::CheckCondition, Some(Sense::new(SenseKey::HardwareError, fault)));
            }
            Plan::Medium(plan) => self.start_movement(id, plan),
            Plan::LongRunning(plan) => {
                cold_path();
                self.make_lasting(id);
                self.start_movement(id, plan);
            }
            Plan::Background(plan) => {
                cold_path();
                self.make_lasting(id);
                self.detach(id);
                self.start_movement(id, plan);
            }
            Plan::ListRest { bytes } => {
                cold_path();
                let Some(task) = self.task(id) else { return };
                task.phase = Phase::List;
                let range = ByteRange::new(task.list.len() as u32, bytes);
                self.fetch_list(id, range, true);
            }
            Plan::Good | Plan::Reply | Plan::List { .. } | Plan::ListHead { .. } => {
                self.end(id, Status::Good, None);
            }
            Plan::Check(sense) | Plan::ReplyThen(sense) => {
                cold_path();
                self.end(id, Status::CheckCondition, Some(sense));
            }
            Plan::Status(status) => {
                cold_path();
                self.end(id, status, None);
            }
        }
    }

    fn outcome(&self, id: CommandId, status: Status, sense: Option<Sense>) -> Outcome {
        let unit = self.unit_of(id);
        let state = unit.and_then(|unit| self.units.get(usize::from(unit)));
        let format = state.map_or(SenseFormat::Fixed, |unit| unit.sense_format(sense.as_ref()));
        Outcome { unit, status, sense: sense.map(Box::new), format }
    }

    #[inline(always)]
    fn end(&mut self, id: CommandId, status: Status, sense: Option<Sense>) {
        let outcome = self.outcome(id, status, sense);
        let Some(task) = self.task(id) else { return };
        let (in_background, naca) =
            (task.in_background, task.row.is_some_and(|row| row.has_naca(task.cdb.as_bytes())));
        if status == Status::CheckCondition
            && naca
            && !in_background
            && let Some(set) = outcome.unit.and_then(|unit| self.sets.get_mut(usize::from(unit)))
        {
            set.aca = true;
        }
        if in_background {
            cold_path();
            self.defer(id, sense);
        } else {
            self.outputs.push_with(|| CommandOutput::Completed { id, outcome });
        }
        self.free_slot(id);
    }

    fn free_aborted(&mut self, id: CommandId) {
        if let Some(task) = self.task(id)
            && !task.in_background
        {
            self.outputs.push_with(|| CommandOutput::Aborted { id });
        }
        self.free_slot(id);
    }

    /// Empties a slot, gives its buffer back, and lets others go on.
    #[inline(always)]
    fn free_slot(&mut self, id: CommandId) {
        let Some(task) = self.task(id) else { return };
        let (unit, bytes) = (task.unit, task.buffer_bytes);
        let (waited, barrier) = (matches!(task.phase, Phase::Waiting), task.is_barrier());
        task.clear();
        self.free.push(id.slot);
        if bytes > 0 {
            self.memory.give_back(bytes);
            self.wants.push_with(|| Output::Release(id));
        } else {
            // Who has none may be waiting for some.
            self.memory.forget(id);
        }
        self.grant_memory();
        if let Some(unit) = unit {
            let set = &mut self.sets[usize::from(unit)];
            set.remove(id.slot, barrier);
            if waited {
                cold_path();
                set.count_start(id.slot);
            }
            if set.fenced {
                cold_path();
                let is_fenced = set.slots().any(|slot| self.tasks[usize::from(slot)].fences);
                set.fenced = is_fenced;
            }
            self.dirty = true;
        }
    }
}
