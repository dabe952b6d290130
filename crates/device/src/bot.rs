//! Bulk-Only Transport, the device's end (USB Mass Storage Class, Bulk-Only Transport 1.0, clauses 5 and 6).
//!
//! One command at a time: a command block wrapper, perhaps data, a command status wrapper. What host and device
//! disagree on is settled by the table in [`cases`]. A wrapper that is not valid, or not meaningful, wedges both
//! endpoints: they stay halted, whatever is cleared, until the host does the reset recovery.
//!
//! Always true: each meaningful CBW brings one CSW, unless a reset comes first; the residue is what the host
//! announced less what was moved.
//!
//! Data that end early are followed by a STALL, or are padded, or end with a short packet alone: see [`ShortData`].

pub mod cases;
#[cfg(test)]
mod tests;

use crate::command::{CommandId, CommandOutput, DataLocation, Executor, Intent, Outcome, Request};
use crate::output::{DeviceTransfer, Inline, Output, Outputs, Payload};
use crate::transfer_id::TransferIdAllocator;
use alloc::collections::VecDeque;
use bus::{Completion, Direction, EndpointAddress, Pipe, Speed, TransferId, TransferStatus};
pub use cases::ShortData;
use cases::{Action, Case, Expectation, PAD_BYTES_MAX};
use units::ByteRange;
use wire::bot::{Cbw, Csw, CswStatus};
use wire::scsi::Status;
use wire::scsi::lun::{Lun, LunField};
use wire::scsi::sense::{AdditionalSense, Sense, SenseKey};
use wire::uas::TaskAttribute;

/// The two endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BotEndpoints {
    /// To the host.
    pub bulk_in: EndpointAddress,
    /// From the host.
    pub bulk_out: EndpointAddress,
}

/// The highest LUN that a CBW can name.
const LUN_MAX: u8 = 15;

/// The transport while its alternate setting is selected.
#[derive(Debug)]
pub(crate) struct Bot {
    endpoints: BotEndpoints,
    packet_bytes: u32,
    short_data: ShortData,
    transfer_ids: TransferIdAllocator,
    state: State,
    /// The data phase on the wire, in order.
    pieces: VecDeque<Piece>,
}

#[derive(Debug)]
enum State {
    /// Nothing is asked of the wire.
    Idle,
    /// A CBW is waited for.
    Ready { receive: TransferId },
    /// Every command slot is taken by commands of an earlier life; the CBW waits for one.
    Holding { cbw: Cbw },
    /// A command runs.
    Running(Running),
    /// The CSW is on its way, perhaps behind a transfer that fills the host's data phase or ends it.
    Reporting { transfer: TransferId, fill: Option<TransferId> },
    /// Halted until reset recovery.
    Wedged,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    command: CommandId,
    tag: u32,
    expected: Expectation,
    /// Bytes moved so far, as the CSW counts them.
    moved: u32,
    /// Zeros sent behind them.
    padded: u32,
}

impl Running {
    /// Returns the bytes that the host expects and has not received.
    const fn missing_bytes(&self) -> u32 {
        self.expected.bytes.saturating_sub(self.moved).saturating_sub(self.padded)
    }
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    transfer: TransferId,
    direction: Direction,
    range: ByteRange,
    location: DataLocation,
}

/// Data that one transfer of the data phase moves.
#[derive(Clone, Copy, Debug)]
struct DataPiece {
    range: ByteRange,
    location: DataLocation,
    /// Zeros behind the bytes.
    padding: u32,
    /// Whether the host's transfer ends with it.
    ends: bool,
}

impl Bot {
    pub(crate) fn new(
        endpoints: BotEndpoints,
        speed: Speed,
        short_data: ShortData,
        earlier: &TransferIdAllocator,
    ) -> Self {
        Self {
            endpoints,
            packet_bytes: speed.bulk_packet_bytes(),
            short_data,
            transfer_ids: TransferIdAllocator::after(earlier, 1),
            state: State::Idle,
            pieces: VecDeque::new(),
        }
    }

    pub(crate) const fn transfer_ids(&self) -> &TransferIdAllocator {
        &self.transfer_ids
    }

    /// Whether a halt outlives CLEAR FEATURE.
    pub(crate) const fn is_wedged(&self) -> bool {
        matches!(self.state, State::Wedged)
    }

    /// Waits for the next CBW.
    pub(crate) fn receive(&mut self, outputs: &mut Outputs) {
        let id = self.transfer_ids.allocate(0);
        self.state = State::Ready { receive: id };
        outputs.push_with(|| {
            Output::Transfer(DeviceTransfer {
                id,
                pipe: Pipe::plain(self.endpoints.bulk_out),
                length: self.packet_bytes,
                ends: false,
                payload: Payload::Message,
            })
        });
    }

    /// Cancels all transfers without reporting to the host.
    pub(crate) fn stop(&mut self, executor: &mut Executor, outputs: &mut Outputs) {
        for piece in self.pieces.drain(..) {
            outputs.cancel(piece.transfer);
        }
        match core::mem::replace(&mut self.state, State::Idle) {
            State::Ready { receive: id } => outputs.cancel(id),
            State::Reporting { transfer, fill } => {
                fill.into_iter().chain([transfer]).for_each(|id| outputs.cancel(id));
            }
            State::Running(running) => executor.abort(running.command),
            State::Idle | State::Holding { .. } | State::Wedged => {}
        }
        executor.fence();
    }

    /// Bulk-Only Mass Storage Reset: ready for the next CBW; halts stay (clause 3.1).
    pub(crate) fn reset(&mut self, executor: &mut Executor, outputs: &mut Outputs) {
        self.stop(executor, outputs);
        self.receive(outputs);
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
            State::Ready { receive } if receive == completion.id && moved => {
                self.handle_cbw(bytes, executor, outputs);
            }
            State::Reporting { transfer, .. } if transfer == completion.id && moved => self.receive(outputs),
            State::Reporting { ref mut fill, .. } if *fill == Some(completion.id) => *fill = None,
            State::Running(ref mut running) if moved => {
                let Some(piece) = self.pieces.pop_front_if(|piece| piece.transfer == completion.id) else {
                    return;
                };
                let relevant = completion.actual.min(piece.range.len);
                running.moved += relevant;
                running.padded += completion.actual - relevant;
                let command = running.command;
                match (piece.direction, piece.location) {
                    (Direction::In, _) => executor.handle_data_in(command),
                    (Direction::Out, DataLocation::Parameters) => {
                        executor.handle_parameter_list(command, bytes)
                    }
                    (Direction::Out, DataLocation::Buffer) => {
                        executor.handle_data_out(command, piece.range, completion.actual);
                    }
                }
                if piece.direction == Direction::Out && completion.actual < piece.range.len {
                    for rest in self.pieces.drain(..) {
                        outputs.cancel(rest.transfer);
                    }
                }
            }
            _ => {}
        }
    }

    fn handle_cbw(&mut self, bytes: &[u8], executor: &mut Executor, outputs: &mut Outputs) {
        match Cbw::decode(bytes) {
            // A LUN that no unit has is a matter of SCSI, which says so better.
            Ok(cbw) if cbw.meaningful(LUN_MAX).is_ok() => self.start(cbw, executor),
            _ => self.wedge(outputs),
        }
    }

    /// Submits the command of a CBW, or keeps it until there is room.
    fn start(&mut self, cbw: Cbw, executor: &mut Executor) {
        let Ok(cdb) = cbw.meaningful(LUN_MAX) else { return };
        let LunField(lun) = LunField::from(Lun::Unit(cbw.lun.into()));
        let request = Request { lun, attribute: TaskAttribute::Simple, cdb, asks: true };
        let expected = Expectation { direction: cbw.direction(), bytes: cbw.transfer_len };
        self.state = match executor.submit(request) {
            Ok(command) => State::Running(Running { command, tag: cbw.tag, expected, moved: 0, padded: 0 }),
            Err(_) => State::Holding { cbw },
        };
    }

    /// Tries a CBW again that had to wait. Whether its command runs now.
    pub(crate) fn resume(&mut self, executor: &mut Executor) -> bool {
        let State::Holding { cbw } = self.state else { return false };
        self.start(cbw, executor);
        matches!(self.state, State::Running(_))
    }

    /// Halts both endpoints until reset recovery (clauses 5.3 and 6.6.1).
    fn wedge(&mut self, outputs: &mut Outputs) {
        self.state = State::Wedged;
        outputs.halt(self.endpoints.bulk_in);
        outputs.halt(self.endpoints.bulk_out);
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
                let padding = if last { self.padding(running.expected, range.end()) } else { 0 };
                // Whole packets that end early need more than this transfer to end the host's: see `end_data_in`.
                let ends = last && !(range.end() + padding).is_multiple_of(self.packet_bytes);
                let piece = DataPiece { range, location, padding, ends };
                self.transfer(Direction::In, piece, payload, outputs);
            }
            CommandOutput::DataOut { id, range, location: DataLocation::Parameters, .. }
                if id == running.command =>
            {
                // More than the host has announced will not come.
                let left = running.expected.bytes.saturating_sub(running.moved);
                if left == 0 {
                    return executor.handle_parameter_list(id, &[]);
                }
                let range = ByteRange::new(range.start, range.len.min(left));
                let piece = DataPiece { range, location: DataLocation::Parameters, padding: 0, ends: false };
                self.transfer(Direction::Out, piece, Payload::Message, outputs);
            }
            CommandOutput::DataOut { id, range, location, .. } if id == running.command => {
                let piece = DataPiece { range, location, padding: 0, ends: false };
                self.transfer(Direction::Out, piece, Payload::Buffer(id, range), outputs);
            }
            CommandOutput::Completed { id, outcome } if id == running.command => {
                self.end(running, outcome, executor, outputs);
            }
            _ => {}
        }
    }

    fn begin(&mut self, running: Running, intent: Intent, executor: &mut Executor, outputs: &mut Outputs) {
        if Case::of(running.expected, Some(intent)).action() == Action::PhaseError {
            executor.refuse(running.command);
            self.stall_data(running.expected, outputs);
            let (tag, residue) = (running.tag, running.expected.bytes);
            return self.report(Csw { tag, residue, status: CswStatus::PhaseError }, None, outputs);
        }
        executor.proceed(running.command);
    }

    fn transfer(
        &mut self,
        direction: Direction,
        DataPiece { range, location, padding, ends }: DataPiece,
        payload: Payload,
        outputs: &mut Outputs,
    ) {
        let transfer = self.transfer_ids.allocate(0);
        self.pieces.push_back(Piece { transfer, direction, range, location });
        let endpoint = match direction {
            Direction::In => self.endpoints.bulk_in,
            Direction::Out => self.endpoints.bulk_out,
        };
        let pipe = Pipe::plain(endpoint);
        outputs.push_with(|| {
            let length = range.len + padding;
            Output::Transfer(DeviceTransfer { id: transfer, pipe, length, ends, payload })
        });
    }

    fn end(&mut self, running: Running, outcome: Outcome, executor: &mut Executor, outputs: &mut Outputs) {
        let rest = Expectation { bytes: running.missing_bytes(), ..running.expected };
        let fill = match (rest.direction, rest.bytes) {
            (_, 0) => None,
            (Direction::In, _) => self.end_data_in(rest.bytes, running.moved + running.padded, outputs),
            (Direction::Out, _) => {
                self.stall_data(rest, outputs);
                None
            }
        };
        let status = if outcome.status == Status::Good || outcome.status == Status::ConditionMet {
            CswStatus::Passed
        } else {
            CswStatus::Failed
        };
        let sense = outcome.sense.map(|sense| *sense).or(sense_of(outcome.status));
        if let (Some(unit), Some(sense)) = (outcome.unit, sense)
            && let Some(unit) = executor.units_mut().get_mut(usize::from(unit))
        {
            unit.held_sense = Some(sense);
        }
        // There is no CLEAR ACA here, so a command's NACA bit does not outlive its status.
        if let Some(unit) = outcome.unit {
            executor.clear_aca(unit);
        }
        // Fill data are not relevant data, and do not count (clause 5.2, dCSWDataResidue).
        let residue = running.expected.bytes.saturating_sub(running.moved);
        self.report(Csw { tag: running.tag, residue, status }, fill, outputs);
    }

    /// How many zeros follow data for the host that end at `sent_bytes`, so that the host gets what it expects.
    fn padding(&self, expected: Expectation, sent_bytes: u32) -> u32 {
        match (self.short_data, expected.bytes.saturating_sub(sent_bytes)) {
            (ShortData::Pad, missing) if missing <= PAD_BYTES_MAX => missing,
            _ => 0,
        }
    }

    /// Ends a data phase of which the host still misses bytes (clause 6.7.2). The transfer that does it, if it is one.
    fn end_data_in(&mut self, missing: u32, sent_bytes: u32, outputs: &mut Outputs) -> Option<TransferId> {
        // A partial packet has ended the host's transfer already.
        let has_ended = !sent_bytes.is_multiple_of(self.packet_bytes);
        let length = match self.short_data {
            ShortData::Pad if !has_ended && missing <= PAD_BYTES_MAX => missing,
            ShortData::ShortPacket if has_ended => return None,
            ShortData::ShortPacket => 0,
            ShortData::Stall | ShortData::Pad => {
                outputs.halt(self.endpoints.bulk_in);
                return None;
            }
        };
        let id = self.transfer_ids.allocate(0);
        let (pipe, payload) = (Pipe::plain(self.endpoints.bulk_in), Payload::Inline(Inline::new(&[])));
        outputs.push_back(Output::Transfer(DeviceTransfer { id, pipe, length, ends: true, payload }));
        Some(id)
    }

    /// Halts the endpoint of the host's data phase, if there is one.
    fn stall_data(&mut self, expected: Expectation, outputs: &mut Outputs) {
        if expected.bytes > 0 {
            outputs.halt(match expected.direction {
                Direction::In => self.endpoints.bulk_in,
                Direction::Out => self.endpoints.bulk_out,
            });
        }
    }

    /// Sends the CSW, behind the transfer `fill` if there is one. It waits where the endpoint is halted.
    fn report(&mut self, csw: Csw, fill: Option<TransferId>, outputs: &mut Outputs) {
        let transfer = self.transfer_ids.allocate(0);
        self.state = State::Reporting { transfer, fill };
        let csw = Inline::new(&csw.encode());
        outputs.push_with(|| {
            Output::Transfer(DeviceTransfer {
                id: transfer,
                pipe: Pipe::plain(self.endpoints.bulk_in),
                length: csw.as_bytes().len() as u32,
                ends: true,
                payload: Payload::Inline(csw),
            })
        });
    }
}

/// The sense data for REQUEST SENSE after a status without sense data, which a CSW cannot carry: SPC-5 has codes for such a
/// previous status. Transient conditions are ABORTED COMMAND, which hosts retry.
const fn sense_of(status: Status) -> Option<Sense> {
    use AdditionalSense as Code;
    Some(match status {
        Status::ReservationConflict => Sense::illegal_request(Code::PREVIOUS_RESERVATION_CONFLICT_STATUS),
        Status::Busy => Sense::new(SenseKey::AbortedCommand, Code::PREVIOUS_BUSY_STATUS),
        Status::TaskSetFull => Sense::new(SenseKey::AbortedCommand, Code::PREVIOUS_TASK_SET_FULL_STATUS),
        _ => return None,
    })
}
