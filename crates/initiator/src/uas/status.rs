//! IUs of the status pipe and their effect on tasks (UAS-2 clauses 6.2.3 to 6.2.6).
//!
//! With streams the stream identifies the task; an IU with another tag is a fault of that stream's
//! task. Without streams only the tag in the IU does; an IU with an unknown tag is counted and
//! dropped, and its status transfer replaced.
//!
//! With streams a status that arrives before its COMMAND IU was acknowledged belongs to an earlier
//! command; it is dropped and the transfer submitted again. If data of the command have moved, the
//! device has the IU, whose acknowledgement is lost or late: completions on two pipes are not
//! ordered.

use super::Uas;
use super::config::ODD_STATUSES_MAX;
use super::status_iu::decode;
use super::task::{Stage, TransferState};
use crate::{Answer, Failure, Output, SenseBytes};
use bus::{Completion, Direction, TransferStatus};
use core::hint::cold_path;
use units::Instant;
use wire::scsi::Status;
use wire::uas::{ReadyIu, ResponseIu, SenseIu, StatusIu};

/// Without streams: useless status transfers in a row (IUs with unknown tags, stalls, babble,
/// errors) tolerated before a port reset.
pub const LOST_STATUSES_MAX: u8 = 16;

impl Uas {
    /// With streams: handles the completion of a status transfer of a task.
    #[inline(always)]
    pub(super) fn after_status(
        &mut self,
        now: Instant,
        index: u16,
        completion: Completion,
        was_cancelled: bool,
        bytes: &[u8],
    ) {
        if !matches!(completion.status, TransferStatus::Done | TransferStatus::Short) {
            return self.after_lost_status(index, completion, was_cancelled);
        }
        match decode(bytes) {
            Some(iu) if iu.tag() == index + 1 => self.take_iu(now, index, &iu),
            _ if bytes.is_empty() => self.wait_again(index),
            _ => {
                cold_path();
                self.counters.odd_statuses += 1;
                self.fault(index, Failure::BadStatus);
            }
        }
    }

    #[cold]
    fn after_lost_status(&mut self, index: u16, completion: Completion, was_cancelled: bool) {
        match completion.status {
            TransferStatus::Stall => self.wait_again(index),
            TransferStatus::Cancelled if was_cancelled => {}
            TransferStatus::Babble => {
                self.counters.odd_statuses += 1;
                self.fault(index, Failure::Babble);
            }
            _ => self.fault(index, Failure::Bus),
        }
    }

    /// Without streams: handles the completion of a status transfer.
    #[inline(never)]
    pub(super) fn after_shared_status(&mut self, now: Instant, completion: Completion, bytes: &[u8]) {
        self.pipes.forget_shared_status(completion.id);
        // What comes back from a device that is gone, or was given up, says nothing about it.
        if self.gone || !self.recovery.accepts_statuses() || completion.status == TransferStatus::Disconnected
        {
            return;
        }
        let came = matches!(completion.status, TransferStatus::Done | TransferStatus::Short);
        match decode(bytes).filter(|_| came) {
            Some(iu) if self.function_tag() == Some(iu.tag()) && !self.is_late_response(&iu) => {
                self.take_function_iu(&iu);
            }
            Some(iu) if self.is_with_device(iu.tag()) => {
                self.lost_statuses = 0;
                if matches!(iu, StatusIu::Ready(_)) {
                    self.pipes.top_up(&mut self.outputs);
                }
                let index = iu.tag() - 1;
                self.take_iu(now, index, &iu);
                self.finish(index);
            }
            _ => {
                self.counters.odd_statuses += 1;
                self.lost_statuses += 1;
                if self.lost_statuses > LOST_STATUSES_MAX {
                    return self.drain_for_reset();
                }
            }
        }
        self.pipes.top_up(&mut self.outputs);
    }

    fn is_with_device(&self, tag: u16) -> bool {
        let index = usize::from(tag).checked_sub(1);
        index.and_then(|index| self.tasks.get(index)?.as_ref()).is_some_and(|task| task.is_with_device())
    }

    /// Handles an IU for a task that the device may have.
    #[inline(always)]
    fn take_iu(&mut self, now: Instant, index: u16, iu: &StatusIu<'_>) {
        let Some(task) = &self.tasks[usize::from(index)] else { return };
        if !task.is_with_device() {
            cold_path();
            self.counters.odd_statuses += 1;
            return;
        }
        let is_late =
            self.config.streams.is_some() && task.iu != TransferState::Completed && !task.proves_its_iu();
        match *iu {
            _ if is_late => self.wait_again(index),
            StatusIu::Sense(ref iu) => self.answer(now, index, iu),
            StatusIu::Response(ResponseIu { code, .. }) => {
                cold_path();
                if let Some(task) = &mut self.tasks[usize::from(index)] {
                    // What the device has refused it does not have, whatever was wrong with it
                    // before.
                    task.stage = Stage::Running;
                }
                self.release(index, Failure::Refused(code));
            }
            StatusIu::Ready(ReadyIu { direction, .. }) => self.be_ready(index, direction),
        }
    }

    /// Handles a SENSE IU. Data that an unsuccessful command has not moved will not arrive.
    #[inline(always)]
    fn answer(&mut self, now: Instant, index: u16, iu: &SenseIu<'_>) {
        let Some(task) = &mut self.tasks[usize::from(index)] else { return };
        let SenseIu { status, status_qualifier, sense, .. } = *iu;
        let answer = Answer { status, status_qualifier, moved: 0, sense: SenseBytes::new(sense) };
        task.stage = Stage::Answered { answer, data_by: now + self.config.timeouts.data_after_status };
        self.pipes.expect_no_status();
        self.port_resets = 0;
        if let Some(times @ 1..) = self.timeouts_in_a_row.get_mut(usize::from(index)) {
            cold_path();
            *times = 0;
        }
        if !task.proves_its_iu()
            && let Some(iu) = task.iu.cancel()
        {
            cold_path();
            // A device that answers what it has not taken would leave it there for ever.
            self.outputs.push_back(Output::Cancel(iu));
        }
        if status != Status::Good
            && status != Status::ConditionMet
            && let Some(data) = task.data.cancel()
        {
            cold_path();
            self.outputs.push_back(Output::Cancel(data));
        }
        let (id, deadline) = (task.command.id, Self::task_deadline(task));
        self.forget_deadline(id);
        if let Some(deadline) = deadline {
            cold_path();
            self.note_deadline(deadline);
        }
    }

    /// Handles READ READY or WRITE READY: data of this task are next.
    fn be_ready(&mut self, index: u16, direction: Direction) {
        let Some(task) = &mut self.tasks[usize::from(index)] else { return };
        if self.config.streams.is_some() {
            return self.wait_again(index);
        }
        if task.stage != Stage::Running {
            // It is to be brought to an end; its data would be taken for another's once the device
            // has released it.
            return;
        }
        match task.command.transfer() {
            Some(phase) if phase.direction == direction && task.data == TransferState::Idle => {
                task.data = self.pipes.submit_data(&mut self.outputs, index, task.command.id, phase);
            }
            // The device is about to move data that this command does not have.
            _ => {
                self.counters.odd_statuses += 1;
                self.fault(index, Failure::BadStatus);
            }
        }
    }

    /// With streams: submits the status transfer of a task again after an unexpected status, up to
    /// a limit.
    #[cold]
    fn wait_again(&mut self, index: u16) {
        self.counters.odd_statuses += 1;
        let Some(task) = &mut self.tasks[usize::from(index)] else { return };
        if task.stage != Stage::Running {
            return;
        }
        task.odd_statuses += 1;
        if task.odd_statuses > ODD_STATUSES_MAX {
            self.fault(index, Failure::BadStatus);
        } else if self.recovery.accepts_statuses() {
            task.status = TransferState::Idle;
            self.unsettled = true;
        }
    }
}
