//! Control/Bulk/Interrupt Transport, the device's end (USB Mass Storage Class, CBI Transport 1.1).
//!
//! One command at a time: a command block on endpoint 0, perhaps data on a bulk endpoint, and with protocol 00h two
//! bytes from the interrupt endpoint. Nothing but the command block says how long the data phase is, so a data phase
//! of a command that fails is ended: data for the host with a short or zero-length packet where the interrupt reports
//! the failure, with a STALL where nothing else does; data of the host are thrown away, or end with a STALL.
//!
//! A new command block ends a command whose data phase the host has left; it waits for one that has none, since the
//! device cannot delay the status stage of endpoint 0.
//!
//! Always true: each accepted command brings one status block, unless a reset or a new command comes first. Left out:
//! command sets other than UFI, and persistent failures.

#[cfg(test)]
mod tests;

use crate::command::{CommandId, CommandOutput, DataLocation, Executor, Intent, Outcome, Request};
use crate::output::{DeviceTransfer, Inline, Output, Outputs, Payload};
use crate::transfer_id::TransferIdAllocator;
use alloc::collections::VecDeque;
use bus::{Completion, Direction, EndpointAddress, Pipe, Speed, TransferId, TransferStatus};
use units::ByteRange;
use wire::cbi::{BLOCK_BYTES_MAX, CommandStatus, is_reset};
use wire::scsi::Status;
use wire::scsi::lun::{Lun, LunField};
use wire::scsi::sense::{AdditionalSense, Sense, SenseKey};
use wire::uas::TaskAttribute;
use wire::ufi::{self, DataStage};

/// The endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CbiEndpoints {
    /// To the host.
    pub bulk_in: EndpointAddress,
    /// From the host.
    pub bulk_out: EndpointAddress,
    /// Status blocks; none with protocol 01h.
    pub interrupt: Option<EndpointAddress>,
}

/// The transport while its interface is configured.
#[derive(Debug)]
pub(crate) struct Cbi {
    endpoints: CbiEndpoints,
    packet_bytes: u32,
    transfer_ids: TransferIdAllocator,
    state: State,
    /// A command block that waits for the command before it, or for a free slot.
    held: Option<Block>,
    /// The data phase on the wire, in order.
    pieces: VecDeque<Piece>,
}

#[derive(Debug)]
enum State {
    /// A command block is waited for.
    Ready,
    /// A command runs.
    Running(Running),
    /// The rest of the data phase ends, then the status block follows.
    Ending { transfer: TransferId, status: [u8; 2] },
    /// The status block waits for the host.
    Reporting { transfer: TransferId },
}

/// A command block.
#[derive(Clone, Copy, Debug)]
struct Block {
    bytes: [u8; BLOCK_BYTES_MAX],
    len: usize,
    data: DataStage,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    command: CommandId,
    data: DataStage,
    /// Bytes of the data phase that were moved.
    moved: u32,
    /// Whether the host's data transfer has ended.
    is_ended: bool,
}

impl Running {
    /// Returns the bytes that the command block announces and that were not moved.
    const fn missing_bytes(&self) -> u32 {
        match self.data {
            DataStage::None => 0,
            DataStage::In { bytes } | DataStage::Out { bytes } => bytes.saturating_sub(self.moved),
        }
    }
}

/// Data that one transfer of the data phase moves.
#[derive(Clone, Copy, Debug)]
struct DataPart {
    direction: Direction,
    range: ByteRange,
    location: DataLocation,
    /// Whether the host's transfer ends with it.
    ends: bool,
}

/// End of the data phase of a command that moves less than its block announces.
#[derive(Debug)]
struct RestOfData {
    endpoint: EndpointAddress,
    bytes: u32,
    payload: Payload,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    transfer: TransferId,
    part: DataPart,
}

impl Cbi {
    pub(crate) fn new(endpoints: CbiEndpoints, speed: Speed, earlier: &TransferIdAllocator) -> Self {
        Self {
            endpoints,
            packet_bytes: speed.bulk_packet_bytes(),
            transfer_ids: TransferIdAllocator::after(earlier, 1),
            state: State::Ready,
            held: None,
            pieces: VecDeque::new(),
        }
    }

    pub(crate) const fn transfer_ids(&self) -> &TransferIdAllocator {
        &self.transfer_ids
    }

    /// Whether completion is reported by interrupt.
    pub(crate) const fn has_interrupt(&self) -> bool {
        self.endpoints.interrupt.is_some()
    }

    /// Cancels all transfers and the command without reporting to the host.
    pub(crate) fn stop(&mut self, executor: &mut Executor, outputs: &mut Outputs) {
        self.held = None;
        for piece in self.pieces.drain(..) {
            outputs.cancel(piece.transfer);
        }
        match core::mem::replace(&mut self.state, State::Ready) {
            State::Ending { transfer, .. } | State::Reporting { transfer } => outputs.cancel(transfer),
            State::Running(running) => executor.abort(running.command),
            State::Ready => {}
        }
        executor.fence();
    }

    /// A command block has come. `false`: the device has no such command, and endpoint 0 stalls.
    pub(crate) fn accept(&mut self, block: &[u8], executor: &mut Executor, outputs: &mut Outputs) -> bool {
        if is_reset(block) {
            self.stop(executor, outputs);
            return true;
        }
        let has_data = matches!(&self.state, State::Running(running) if running.data != DataStage::None);
        if has_data
            || self.held.is_some()
            || matches!(self.state, State::Ending { .. } | State::Reporting { .. })
        {
            self.stop(executor, outputs);
        }
        let block_bytes = executor.units().first().map_or(0, |unit| unit.config.block_size.bytes());
        let mut bytes = [0; BLOCK_BYTES_MAX];
        let data = match (ufi::data_stage(block, block_bytes), bytes.get_mut(..block.len())) {
            (Some(data), Some(room)) => {
                room.copy_from_slice(block);
                data
            }
            _ => {
                if let Some(unit) = executor.units_mut().first_mut() {
                    let code = AdditionalSense::INVALID_COMMAND_OPERATION_CODE;
                    unit.held_sense = Some(Sense::illegal_request(code));
                }
                return false;
            }
        };
        self.held = Some(Block { bytes, len: block.len(), data });
        self.resume(executor);
        true
    }

    /// Starts the command block that waits, if it may. Whether it runs now.
    pub(crate) fn resume(&mut self, executor: &mut Executor) -> bool {
        let (State::Ready, Some(block)) = (&self.state, self.held) else { return false };
        let cdb = block.bytes.get(..block.len).unwrap_or_default();
        let LunField(lun) = LunField::from(Lun::Unit(ufi::lun(cdb).into()));
        let request = Request { lun, attribute: TaskAttribute::Simple, cdb, asks: true };
        let Ok(command) = executor.submit(request) else { return false };
        self.held = None;
        self.state = State::Running(Running { command, data: block.data, moved: 0, is_ended: false });
        true
    }

    /// A transfer of ours has ended; `bytes` is what a [`Payload::Message`] has brought.
    pub(crate) fn handle_completion(
        &mut self,
        completion: Completion,
        bytes: &[u8],
        executor: &mut Executor,
        outputs: &mut Outputs,
    ) {
        let moved = matches!(
            completion.status,
            TransferStatus::Done | TransferStatus::Short | TransferStatus::Babble
        );
        match self.state {
            State::Ending { transfer, status } if transfer == completion.id => self.report(status, outputs),
            State::Reporting { transfer } if transfer == completion.id => self.state = State::Ready,
            State::Running(ref mut running) if moved => {
                let Some(piece) = self.pieces.pop_front_if(|piece| piece.transfer == completion.id) else {
                    return;
                };
                running.moved += completion.actual.min(piece.part.range.len);
                let is_short = completion.actual < piece.part.range.len;
                running.is_ended |= piece.part.ends || is_short;
                let command = running.command;
                match (piece.part.direction, piece.part.location) {
                    (Direction::In, _) => executor.handle_data_in(command),
                    (Direction::Out, DataLocation::Parameters) => {
                        executor.handle_parameter_list(command, bytes);
                    }
                    (Direction::Out, DataLocation::Buffer) => {
                        executor.handle_data_out(command, piece.part.range, completion.actual);
                    }
                }
                if piece.part.direction == Direction::Out && is_short {
                    for rest in self.pieces.drain(..) {
                        outputs.cancel(rest.transfer);
                    }
                }
            }
            _ => {}
        }
    }

    /// Carries out what the executor wants of a transport.
    pub(crate) fn handle_command(
        &mut self,
        output: CommandOutput,
        executor: &mut Executor,
        outputs: &mut Outputs,
    ) {
        let State::Running(running) = self.state else { return };
        match output {
            CommandOutput::Begin { id, intent } if id == running.command => {
                self.begin(running, intent, executor, outputs);
            }
            CommandOutput::DataIn { id, range, location, last } if id == running.command => {
                let payload = match location {
                    DataLocation::Parameters => Payload::Reply(id),
                    DataLocation::Buffer => Payload::Buffer(id, range),
                };
                let part = DataPart { direction: Direction::In, range, location, ends: last };
                self.transfer(part, payload, outputs);
            }
            CommandOutput::DataOut { id, range, location: DataLocation::Parameters, .. }
                if id == running.command =>
            {
                let left = running.missing_bytes();
                if left == 0 {
                    return executor.handle_parameter_list(id, &[]);
                }
                let range = ByteRange::new(range.start, range.len.min(left));
                let location = DataLocation::Parameters;
                let part = DataPart { direction: Direction::Out, range, location, ends: false };
                self.transfer(part, Payload::Message, outputs);
            }
            CommandOutput::DataOut { id, range, location, .. } if id == running.command => {
                let part = DataPart { direction: Direction::Out, range, location, ends: false };
                self.transfer(part, Payload::Buffer(id, range), outputs);
            }
            CommandOutput::Completed { id, outcome } if id == running.command => {
                self.end(running, &outcome, executor, outputs);
            }
            _ => {}
        }
    }

    fn begin(&mut self, running: Running, intent: Intent, executor: &mut Executor, outputs: &mut Outputs) {
        let fits = match running.data {
            DataStage::None => false,
            DataStage::In { .. } => intent.direction == Direction::In,
            DataStage::Out { .. } => intent.direction == Direction::Out,
        };
        if fits {
            return executor.proceed(running.command);
        }
        // A command whose data UFI does not have (VERIFY with BYTCHK).
        executor.refuse(running.command);
        let sense = Sense::illegal_request(AdditionalSense::INVALID_FIELD_IN_CDB);
        if let Some(unit) = executor.units_mut().first_mut() {
            unit.held_sense = Some(sense);
        }
        self.end_data(running, Some(sense), outputs);
    }

    fn transfer(&mut self, part: DataPart, payload: Payload, outputs: &mut Outputs) {
        let transfer = self.transfer_ids.allocate(0);
        self.pieces.push_back(Piece { transfer, part });
        let endpoint = match part.direction {
            Direction::In => self.endpoints.bulk_in,
            Direction::Out => self.endpoints.bulk_out,
        };
        let (pipe, length, ends) = (Pipe::plain(endpoint), part.range.len, part.ends);
        outputs.push_with(|| Output::Transfer(DeviceTransfer { id: transfer, pipe, length, ends, payload }));
    }

    fn end(&mut self, running: Running, outcome: &Outcome, executor: &mut Executor, outputs: &mut Outputs) {
        let sense = match outcome.status {
            Status::Good | Status::ConditionMet => None,
            // No other status has a place in two bytes.
            _ => Some(outcome.sense.as_deref().copied().unwrap_or(NO_SENSE_DATA)),
        };
        if let Some(unit) = outcome.unit {
            // There is no CLEAR ACA here.
            executor.clear_aca(unit);
        }
        // Sense data of a logical unit that does not exist is asked for at the one that does.
        let unit = executor.units_mut().get_mut(usize::from(outcome.unit.unwrap_or_default()));
        if let (Some(unit), Some(sense)) = (unit, sense) {
            unit.held_sense = Some(sense);
        }
        self.end_data(running, sense, outputs);
    }

    /// Ends the data phase, then reports.
    fn end_data(&mut self, running: Running, sense: Option<Sense>, outputs: &mut Outputs) {
        let status = match sense {
            Some(Sense { additional: AdditionalSense { asc, ascq }, .. }) => CommandStatus::Ufi { asc, ascq },
            None => CommandStatus::Ufi { asc: 0, ascq: 0 },
        };
        let status = status.encode();
        let missing = running.missing_bytes();
        if missing == 0 || running.is_ended {
            return self.report(status, outputs);
        }
        let stalls = sense.is_some() && self.endpoints.interrupt.is_none();
        match running.data {
            DataStage::None => self.report(status, outputs),
            DataStage::In { .. } if stalls => {
                outputs.halt(self.endpoints.bulk_in);
                self.report(status, outputs);
            }
            // A partial packet has ended the host's transfer already.
            DataStage::In { .. } if !running.moved.is_multiple_of(self.packet_bytes) => {
                self.report(status, outputs);
            }
            DataStage::In { .. } => {
                let payload = Payload::Inline(Inline::new(&[]));
                self.finish(
                    RestOfData { endpoint: self.endpoints.bulk_in, bytes: 0, payload },
                    status,
                    outputs,
                );
            }
            DataStage::Out { .. } if stalls => {
                outputs.halt(self.endpoints.bulk_out);
                self.report(status, outputs);
            }
            DataStage::Out { .. } => {
                let (endpoint, payload) = (self.endpoints.bulk_out, Payload::Nowhere);
                self.finish(RestOfData { endpoint, bytes: missing, payload }, status, outputs);
            }
        }
    }

    /// Ends the host's data transfer; the status block follows.
    fn finish(&mut self, rest: RestOfData, status: [u8; 2], outputs: &mut Outputs) {
        let RestOfData { endpoint, bytes: length, payload } = rest;
        let transfer = self.transfer_ids.allocate(0);
        self.state = State::Ending { transfer, status };
        let pipe = Pipe::plain(endpoint);
        outputs.push_with(|| {
            Output::Transfer(DeviceTransfer { id: transfer, pipe, length, ends: true, payload })
        });
    }

    /// Sends the status block, if there is an endpoint for it.
    fn report(&mut self, status: [u8; 2], outputs: &mut Outputs) {
        let Some(interrupt) = self.endpoints.interrupt else {
            self.state = State::Ready;
            return;
        };
        let transfer = self.transfer_ids.allocate(0);
        self.state = State::Reporting { transfer };
        let status = Inline::new(&status);
        outputs.push_with(|| {
            Output::Transfer(DeviceTransfer {
                id: transfer,
                pipe: Pipe::plain(interrupt),
                length: status.as_bytes().len() as u32,
                ends: true,
                payload: Payload::Inline(status),
            })
        });
    }
}

/// Stands for a status without sense data: busy, task set full, reservation conflict.
const NO_SENSE_DATA: Sense = Sense::new(SenseKey::AbortedCommand, AdditionalSense::INTERNAL_TARGET_FAILURE);
