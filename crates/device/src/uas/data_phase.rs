//! Data phases: concurrent on streams, one at a time per direction without streams.
//!
//! Without streams nothing on the data pipes says whose bytes they are, so a READY IU on the status pipe does, and
//! one slot at a time has the turn in each direction (UAS-2 clause 7.3). With streams the stream says it.
//! Always true: a turn is passed on exactly once, whether its phase ended or was given up.

use super::Uas;
use super::slot::{DataSegment, State};
use crate::command::{DataLocation, Executor, Outcome};
use crate::output::{DeviceTransfer, Inline, Output, Outputs, Payload};
use bus::{Completion, Direction, TransferId, TransferStatus};
use core::hint::cold_path;
use wire::uas::ReadyIu;

impl Uas {
    /// Submits a segment, or queues it for its direction.
    #[inline]
    pub(super) fn move_data(&mut self, index: usize, piece: DataSegment, outputs: &mut Outputs) {
        self.slots[index].pieces.push_with(|| (piece, None));
        if !self.streams && !self.has_turn(index, piece.direction, outputs) {
            return;
        }
        self.send_pieces(index, outputs);
    }

    /// Whether the slot holds the turn, or takes it now; else it waits for it.
    fn has_turn(&mut self, index: usize, direction: Direction, outputs: &mut Outputs) -> bool {
        let slot = index as u16;
        let turn = self.queues.of(direction);
        match turn.holder {
            Some(holder) if holder == slot => true,
            Some(_) => {
                if !turn.waiting.contains(&slot) {
                    turn.waiting.push_back(slot);
                }
                false
            }
            None => {
                turn.holder = Some(slot);
                self.send_ready(index, direction, outputs);
                true
            }
        }
    }

    /// READ READY or WRITE READY. Its completion carries no information.
    fn send_ready(&mut self, index: usize, direction: Direction, outputs: &mut Outputs) {
        let tag = self.slots[index].tag;
        let id = self.transfer_ids.allocate(index);
        self.slots[index].ready = Some(id);
        let iu = Inline::new(&ReadyIu { direction, tag }.encode());
        outputs.push_with(|| self.status_transfer(id, tag, iu));
    }

    /// Puts on the wire whatever of a slot is not there yet.
    #[inline(always)]
    fn send_pieces(&mut self, index: usize, outputs: &mut Outputs) {
        let State::Running { id: command } = self.slots[index].state else { return };
        let tag = self.slots[index].tag;
        for position in 0..self.slots[index].pieces.len() {
            let Some((piece, transfer @ None)) = self.slots[index].pieces.get_mut(position) else { continue };
            let (piece, id) = (*piece, self.transfer_ids.allocate(index));
            *transfer = Some(id);
            let (endpoint, payload) = match (piece.direction, piece.location) {
                (Direction::In, DataLocation::Parameters) => {
                    (self.endpoints.data_in, Payload::Reply(command))
                }
                (Direction::In, DataLocation::Buffer) => {
                    (self.endpoints.data_in, Payload::Buffer(command, piece.range))
                }
                (Direction::Out, DataLocation::Parameters) => (self.endpoints.data_out, Payload::Message),
                (Direction::Out, DataLocation::Buffer) => {
                    (self.endpoints.data_out, Payload::Buffer(command, piece.range))
                }
            };
            let (pipe, length) = (self.pipe(endpoint, tag), piece.range.len);
            let ends = piece.direction == Direction::In && piece.last;
            outputs.push_with(|| Output::Transfer(DeviceTransfer { id, pipe, length, ends, payload }));
        }
    }

    /// A transfer of a slot has ended: a piece of data, the closing of a turn, or the slot's answer.
    #[inline(always)]
    pub(super) fn handle_slot_completion(
        &mut self,
        index: u16,
        completion: Completion,
        bytes: &[u8],
        executor: &mut Executor,
        outputs: &mut Outputs,
    ) {
        let index = usize::from(index);
        let slot = &mut self.slots[index];
        if slot.ready == Some(completion.id) {
            slot.ready = None;
            return;
        }
        match &slot.state {
            State::Reporting { transfer } | State::Responding { transfer } if *transfer == completion.id => {
                slot.state = State::Free;
            }
            State::Closing { transfer, outcome } if *transfer == completion.id => {
                cold_path();
                let outcome = outcome.clone();
                self.release_turn(index, Direction::In, outputs);
                self.report(index, &outcome, outputs);
            }
            State::Running { .. } => self.handle_piece(index, completion, bytes, executor, outputs),
            _ => {}
        }
    }

    #[inline(always)]
    fn handle_piece(
        &mut self,
        index: usize,
        completion: Completion,
        bytes: &[u8],
        executor: &mut Executor,
        outputs: &mut Outputs,
    ) {
        let slot = &mut self.slots[index];
        let State::Running { id } = slot.state else { return };
        // Pipes complete in order, so a piece that ends is the oldest.
        let Some(&(piece, Some(transfer))) = slot.pieces.front() else { return };
        let moved = matches!(
            completion.status,
            TransferStatus::Done | TransferStatus::Short | TransferStatus::Babble
        );
        if transfer != completion.id || !moved {
            cold_path();
            return;
        }
        slot.pieces.drop_front();
        let is_short = piece.direction == Direction::Out && completion.actual < piece.range.len;
        if is_short {
            cold_path();
            // The host has ended the phase; nothing will come for the rest.
            slot.cancel_pieces(outputs);
        }
        if slot.pieces.is_empty() && (piece.last || is_short) {
            self.release_turn(index, piece.direction, outputs);
        }
        match (piece.direction, piece.location) {
            (Direction::In, _) => executor.handle_data_in(id),
            (Direction::Out, DataLocation::Parameters) => executor.handle_parameter_list(id, bytes),
            (Direction::Out, DataLocation::Buffer) => {
                executor.handle_data_out(id, piece.range, completion.actual)
            }
        }
    }

    /// With streams: ends what the host still has on the command's data streams, so that it waits for nothing.
    pub(super) fn finish_streams(&mut self, index: usize, outputs: &mut Outputs) {
        let tag = self.slots[index].tag;
        let [data_in, data_out] =
            [self.endpoints.data_in, self.endpoints.data_out].map(|at| self.pipe(at, tag));
        outputs.push_with(|| Output::FinishBoth(data_in, data_out));
    }

    /// Without streams: whether a READ READY whose data ended early has made the host queue a transfer, which must end
    /// before the status is sent.
    pub(super) fn owes_close(&self, index: usize) -> bool {
        self.queues.inward.holder == Some(index as u16)
    }

    /// Without streams: ends that transfer with an empty packet. The status comes after it.
    pub(super) fn close_turn(&mut self, index: usize, outcome: Outcome, outputs: &mut Outputs) {
        let transfer = self.transfer_ids.allocate(index);
        self.slots[index].state = State::Closing { transfer, outcome };
        outputs.push_with(|| self.closing_transfer(transfer, index));
    }

    fn closing_transfer(&self, id: TransferId, index: usize) -> Output {
        let pipe = self.pipe(self.endpoints.data_in, self.slots[index].tag);
        let payload = Payload::Inline(Inline::new(&[]));
        Output::Transfer(DeviceTransfer { id, pipe, length: 0, ends: true, payload })
    }

    /// Without streams: a command waits no longer for its turn.
    pub(super) fn leave_turn_queues(&mut self, index: usize) {
        for direction in [Direction::In, Direction::Out] {
            self.queues.of(direction).waiting.retain(|&slot| usize::from(slot) != index);
        }
    }

    /// Without streams, for a command that is aborted: what the host has queued for it is ended.
    pub(super) fn abandon_turns(&mut self, index: usize, outputs: &mut Outputs) {
        for direction in [Direction::In, Direction::Out] {
            self.abandon_turn(index, direction, outputs);
        }
    }

    /// The same for one direction, if the slot has the turn.
    pub(super) fn abandon_turn(&mut self, index: usize, direction: Direction, outputs: &mut Outputs) {
        if self.queues.of(direction).holder == Some(index as u16) {
            let endpoint = match direction {
                Direction::In => self.endpoints.data_in,
                Direction::Out => self.endpoints.data_out,
            };
            outputs.push_with(|| Output::Finish(self.pipe(endpoint, 0)));
            self.release_turn(index, direction, outputs);
        }
    }

    /// Passes the turn on, if the slot has it.
    #[inline(always)]
    fn release_turn(&mut self, index: usize, direction: Direction, outputs: &mut Outputs) {
        let turn = self.queues.of(direction);
        if turn.holder != Some(index as u16) {
            return;
        }
        turn.holder = turn.waiting.pop_front();
        if let Some(next) = turn.holder {
            self.send_ready(usize::from(next), direction, outputs);
            self.send_pieces(usize::from(next), outputs);
        }
    }
}
