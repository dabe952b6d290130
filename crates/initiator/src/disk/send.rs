//! Selection of the next command (SAM-5 clause 5).
//!
//! Retries first, then the request at the head of the queue. During identification nothing else is
//! started. Always true: no more is sent than the queue depth. Left out: priorities among requests.

use super::part::{self, Rules};
use super::request::{Error, Operation, Request};
use super::requests::Active;
use super::slots::{Stage, Task, Work};
use super::{Disk, Geometry, Memory, Output};
use crate::{Command, CommandBlock, CommandId, DataPhase};
use bus::Direction;
use core::hint::cold_path;
use units::{ByteRange, Extent, Instant, Lba};
use wire::uas::TaskAttribute;

impl Disk {
    /// Sends what there is to send and room for.
    #[inline]
    pub(super) fn advance(&mut self, now: Instant) {
        if self.identify.is_some() || self.slots.has_ready() || self.requests.first().is_some() {
            self.send_all(now);
        }
    }

    fn send_all(&mut self, now: Instant) {
        while self.slots.has_room(now) {
            if self.identify.is_some() {
                cold_path();
                // Nothing else is begun until it is known what the unit is.
                self.send_step(now);
                return;
            }
            match self.slots.take_ready() {
                Some(at) => self.send_again(now, at),
                None if self.send_first(now) => {}
                None => return,
            }
        }
    }

    fn send_step(&mut self, now: Instant) {
        let at = self.slots.identify_slot();
        let Some(run) = &self.identify else { return };
        if self.slots.task(at).is_none_or(|task| task.stage != Stage::Ready) {
            return;
        }
        let (cdb, bytes) = run.identify.command();
        let lun = run.identify.unit(self.config.lun);
        let timeout = run.identify.timeout(self.config.retry_limits.command_timeout);
        let data_phase =
            (bytes > 0).then(|| DataPhase { direction: Direction::In, range: ByteRange::new(0, bytes) });
        let memory = if bytes > 0 { Memory::Answer } else { Memory::None };
        let id = self.slots.send(at, Work::Identify);
        let (attribute, deadline) = (TaskAttribute::Simple, now + timeout);
        self.push_command(Command { id, lun, attribute, cdb, data_phase, deadline }, memory);
    }

    /// Sends the next command of the request at the head of the line. `false`: there is none, or no
    /// place for it.
    fn send_first(&mut self, now: Instant) -> bool {
        let Some(request) = self.requests.first() else { return false };
        let (Some(active), Some(geometry)) = (self.requests.get_mut(request), &self.geometry) else {
            return false;
        };
        if let Some(error) = objection(active, geometry) {
            self.fail_request(request, Lba(0), error);
            return true;
        }
        if active.rest.is_empty() && !active.flush_due {
            cold_path();
            self.requests.drop_first();
            self.settle(request);
            return true;
        }
        let Some(at) = self.slots.take_free() else { return false };
        active.commands += 1;
        if active.flush_due {
            cold_path();
            active.flush_due = false;
            self.requests.drop_first();
            self.slots.fill(at, Task::new(Work::Flush { request }));
            self.send_flush(now, at, request);
            return true;
        }
        self.send_blocks(now, at, request, None);
        true
    }

    /// Sends a command once more, or the rest of what it was to do; the unit may have changed in
    /// the meantime.
    #[cold]
    fn send_again(&mut self, now: Instant, at: u16) {
        let Some(&task) = self.slots.task(at) else { return };
        self.counts.sent_again = self.counts.sent_again.saturating_add(1);
        match task.work {
            Work::Identify => {}
            Work::Flush { request } => self.send_flush(now, at, request),
            Work::Blocks { request, rest, offset, .. } => {
                let beyond = self.geometry.as_ref().is_some_and(|geometry| !rest.fits(geometry.capacity));
                if let Some(error) = self.objection(request).or(beyond.then_some(Error::OutOfRange)) {
                    return self.end_with(at, request, rest.lba, error);
                }
                self.send_blocks(now, at, request, Some((rest, offset)));
            }
        }
    }

    /// Why nothing of a request can be sent as things are now.
    pub(super) fn objection(&self, request: u16) -> Option<Error> {
        objection(self.requests.get(request)?, self.geometry.as_ref()?)
    }

    /// Sends a command for the front of what is left of a request, or `again` for what an earlier
    /// one was to do: blocks, and where their data begin.
    fn send_blocks(&mut self, now: Instant, at: u16, request: u16, again: Option<(Extent, u32)>) {
        let (Some(active), Some(geometry)) = (self.requests.get_mut(request), &self.geometry) else { return };
        let Request { id, operation, .. } = active.request;
        let (mut rest, offset) = again.unwrap_or((active.rest, active.offset));
        let rules = Rules { transfer_bytes_max: self.config.transfer_bytes_max, learned: self.learned };
        let mut part = part::first_part(operation, rest, offset, geometry, rules);
        if again.is_some() {
            part = self.keep_merged(at, rest, part);
        } else {
            active.advance(part.extent.blocks.0, part.data.len);
            if active.rest.is_empty() {
                self.requests.drop_first();
            }
            if part.sends_list() {
                part = self.merge_unmaps(at, request, part);
            }
            rest = part.extent;
        }
        let retry_limits = &self.config.retry_limits;
        let (direction, memory, timeout) = match operation {
            Operation::Read { .. } => (Direction::In, Memory::Request(id), retry_limits.command_timeout),
            Operation::Write { .. } => (Direction::Out, Memory::Request(id), retry_limits.command_timeout),
            Operation::WriteSame => (Direction::Out, Memory::Request(id), retry_limits.long_timeout),
            Operation::Unmap | Operation::Zero { .. } | Operation::Flush => {
                (Direction::Out, Memory::Parameters, retry_limits.long_timeout)
            }
        };
        if part.sends_list() {
            self.set_runs(at, part.extent);
        }
        let id = self.slots.send(at, Work::Blocks { request, rest, offset, share: part.share() });
        self.push(id, part.cdb, Some(DataPhase { direction, range: part.data }), memory, now + timeout);
    }

    fn send_flush(&mut self, now: Instant, at: u16, request: u16) {
        let cached = self.geometry.as_ref().and_then(|geometry| geometry.write_cache);
        if cached == Some(false) || self.learned.no_flush {
            // There is nothing to flush, or nothing to do it with.
            let result = if cached == Some(true) { Err(Error::Unsupported) } else { Ok(()) };
            return self.end_flush(at, request, result);
        }
        let id = self.slots.send(at, Work::Flush { request });
        let timeout = self.config.retry_limits.long_timeout;
        self.push(id, part::flush_block(), None, Memory::None, now + timeout);
    }

    #[inline]
    fn push(
        &mut self,
        id: CommandId,
        cdb: CommandBlock,
        data_phase: Option<DataPhase>,
        memory: Memory,
        deadline: Instant,
    ) {
        let attribute = TaskAttribute::Simple;
        self.push_command(Command { id, lun: self.config.lun, attribute, cdb, data_phase, deadline }, memory);
    }

    #[inline]
    fn push_command(&mut self, command: Command, memory: Memory) {
        self.counts.commands = self.counts.commands.saturating_add(1);
        self.outputs.push_with(|| Output::Submit(command, memory));
    }
}

/// Why nothing of a request can be sent to such a unit.
#[inline]
fn objection(active: &Active, geometry: &Geometry) -> Option<Error> {
    let operation = active.request.operation;
    if operation == Operation::Flush {
        return None;
    }
    if active.block_size != geometry.block_size || !active.request.extent.fits(geometry.capacity) {
        return Some(Error::OutOfRange);
    }
    if operation.changes_blocks() && geometry.write_protected {
        return Some(Error::WriteProtected);
    }
    (!part::is_supported(operation, geometry)).then_some(Error::Unsupported)
}
