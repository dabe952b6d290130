//! The data phase of a command for the medium: memory, segments, host and medium in turn.
//!
//! A plan for the medium waits for memory, then becomes a [`Movement`]; In, the medium is asked first and the host gets
//! what it brings; Out, the other way round. Left out: which segments there are, see [`super::super::movement`].

use super::Executor;
use crate::command::movement::Movement;
use crate::command::task::{Phase, Task};
use crate::command::{CommandId, CommandOutput, DataLocation};
use crate::lun::{DataPhase, MediumPlan, Plan};
use crate::medium::{MediumRequest, MediumRequestId};
use crate::output::Output;
use core::hint::cold_path;
use units::ByteRange;

impl Executor {
    #[inline(always)]
    pub(super) fn await_memory(&mut self, id: CommandId, plan: MediumPlan) {
        let Some(task) = self.tasks.get_mut(usize::from(id.slot)).filter(|it| it.generation == id.generation)
        else {
            return;
        };
        if self.memory.take(plan.bytes) {
            task.buffer_bytes = plan.bytes;
            self.wants.push_with(|| Output::Acquire(id, plan.bytes));
            return self.start_movement(id, plan);
        }
        cold_path();
        task.phase = Phase::Memory(plan);
        self.memory.ask(id, plan.bytes);
    }

    /// Gives buffers to those who wait for one, while there is room.
    pub(super) fn grant_memory(&mut self) {
        while let Some((id, bytes)) = self.memory.grant() {
            cold_path();
            let Some(Task { phase: Phase::Memory(plan), buffer_bytes, .. }) = self.task(id) else { return };
            *buffer_bytes = bytes;
            let plan = *plan;
            self.wants.push_with(|| Output::Acquire(id, bytes));
            self.start_movement(id, plan);
        }
    }

    #[inline]
    pub(super) fn start_movement(&mut self, id: CommandId, plan: MediumPlan) {
        let segment_bytes = self.limits.segment_bytes;
        let Some(task) = self.tasks.get_mut(usize::from(id.slot)) else { return };
        let unit = task.unit.and_then(|unit| self.units.get(usize::from(unit)));
        let block_bytes = unit.map_or(512, |unit| unit.config.block_size.bytes());
        let first = task.parts;
        task.enter(|| Phase::Moving(Movement::new(plan, segment_bytes, block_bytes, first)));
        let Phase::Moving(movement) = &task.phase else { return };
        let segments = movement.segments();
        task.parts = first.wrapping_add(segments as u16);
        for segment in 0..segments {
            match plan.data {
                DataPhase::Out => self.ask_host(id, segment),
                DataPhase::In | DataPhase::None | DataPhase::Own => self.ask_medium(id, segment),
            }
        }
    }

    fn ask_host(&mut self, id: CommandId, segment: u32) {
        let Some(Task { phase: Phase::Moving(movement), .. }) = self.task(id) else { return };
        movement.handed += 1;
        let (range, last) = (movement.range(segment), segment + 1 == movement.segments());
        self.outputs.push_with(|| CommandOutput::DataOut { id, range, location: DataLocation::Buffer, last });
    }

    pub(super) fn fetch_list(&mut self, id: CommandId, range: ByteRange, last: bool) {
        self.outputs.push_with(|| CommandOutput::DataOut {
            id,
            range,
            location: DataLocation::Parameters,
            last,
        });
    }

    #[inline(always)]
    pub(super) fn ask_medium(&mut self, id: CommandId, segment: u32) {
        let Some(task) = self.task(id) else { return };
        let Phase::Moving(movement) = &mut task.phase else { return };
        movement.outstanding += 1;
        let request = MediumRequest {
            id: MediumRequestId { command: id, part: movement.part(segment) },
            unit: task.unit.unwrap_or_default(),
            op: movement.plan.op,
            extent: movement.extent(segment),
            location: if movement.plan.data == DataPhase::Own {
                DataLocation::Parameters
            } else {
                DataLocation::Buffer
            },
            range: movement.range(segment),
        };
        self.wants.push_with(|| Output::Medium(request));
    }

    /// Sends the host the data that the medium has read, in order.
    pub(super) fn hand_over(&mut self, id: CommandId) {
        while let Some(Task { phase: Phase::Moving(movement), .. }) = self.task(id) {
            if movement.plan.data != DataPhase::In {
                return;
            }
            let Some(segment) = movement.next_in() else { return };
            let (range, last) = (movement.range(segment), segment + 1 == movement.segments());
            self.outputs.push_with(|| CommandOutput::DataIn {
                id,
                range,
                location: DataLocation::Buffer,
                last,
            });
        }
    }

    /// Goes on to the next step if the present movement is over.
    #[inline(always)]
    pub(super) fn conclude(&mut self, id: CommandId) {
        let Some(Task { phase: Phase::Moving(movement), .. }) = self.task(id) else { return };
        if !movement.is_over() {
            return;
        }
        let (done, failure) = (movement.done, movement.failure.take());
        let plan = failure.map(|plan| *plan).unwrap_or_else(|| {
            self.consult(id, |row, context, cdb, list| match row.on_medium {
                Some(on_medium) => on_medium(context, cdb, list, done),
                None => Plan::Good,
            })
        });
        match plan {
            // A command whose answer comes from the medium, without a data phase before.
            Plan::Reply if self.task(id).is_some_and(|task| task.buffer_bytes == 0) => {
                cold_path();
                self.carry_out(id, Plan::Reply)
            }
            plan => self.carry_out_later(id, plan),
        }
    }
}
