//! USB Attached SCSI, the device's end (UAS-2 clauses 6 and 7).
//!
//! Four pipes. With streams (SuperSpeed) the tag of a command is the stream of its status and its data, so commands
//! overlap freely. Without streams the device says READ READY or WRITE READY before a data phase, and there is one
//! data phase at a time in each direction: queued in order. One slot holds the state of a tag.
//!
//! Always true: each COMMAND IU brings one SENSE IU unless it is aborted, each TASK MANAGEMENT IU one RESPONSE IU;
//! before a status every data transfer that the host has on the command's streams is ended; the host cannot queue
//! answers without bound, since the command pipe pauses while too many wait.
//!
//! Left out: bidirectional commands, and the status qualifier. Without streams a READY IU and an abort may cross on
//! the bus; the host then has to cancel the data transfer itself, since the pipe does not say whose it is.

mod data_phase;
mod direction_queue;
mod management;
mod slot;
#[cfg(test)]
mod tests;

use crate::command::{CommandId, CommandOutput, Executor, Outcome, Request};
use crate::output::{DeviceTransfer, INLINE_BYTES_MAX, Inline, Output, Outputs, Payload};
use crate::transfer_id::TransferIdAllocator;
use alloc::vec::Vec;
use bus::{Completion, Direction, EndpointAddress, Pipe, Speed, StreamId, TransferId, TransferStatus};
use core::hint::cold_path;
use direction_queue::DirectionQueues;
use slot::{Slot, State};
use wire::scsi::Status;
use wire::scsi::sense::{AdditionalSense, Sense, SenseKey};
use wire::uas::{CommandIu, CommandPipeIu, ResponseCode, ResponseIu, SenseIu};

/// The four endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UasEndpoints {
    /// Takes COMMAND and TASK MANAGEMENT IUs.
    pub command: EndpointAddress,
    /// Gives SENSE, RESPONSE and READY IUs.
    pub status: EndpointAddress,
    /// Data to the host.
    pub data_in: EndpointAddress,
    /// Data from the host.
    pub data_out: EndpointAddress,
}

/// Answers without a slot (a full task set) that may wait on the status pipe before the command pipe rests.
const UNTAGGED_RESPONSES_MAX: usize = 16;
/// Without streams: slots beside those for commands, so that a full task set can still be managed.
const SPARE_SLOTS: u16 = 8;

/// The transport while its alternate setting is selected.
#[derive(Debug)]
pub(crate) struct Uas {
    endpoints: UasEndpoints,
    streams: bool,
    packet_bytes: u32,
    slots: Vec<Slot>,
    /// For each command slot of the executor, the slot here.
    owners: Vec<Option<(CommandId, u16)>>,
    transfer_ids: TransferIdAllocator,
    receiving: Option<TransferId>,
    /// The first packets of an IU that is longer than one.
    begun: Vec<u8>,
    /// Answers without a slot, on the status pipe.
    untagged: Vec<TransferId>,
    queues: DirectionQueues,
}

impl Uas {
    /// The transport with `streams` streams, or without streams and with a slot for each command and some to spare.
    pub(crate) fn new(
        endpoints: UasEndpoints,
        speed: Speed,
        streams: Option<u16>,
        commands: u16,
        earlier: &TransferIdAllocator,
    ) -> Self {
        let count = streams.unwrap_or(commands.saturating_add(SPARE_SLOTS));
        let mut slots = Vec::new();
        slots.resize_with(usize::from(count), Slot::default);
        Self {
            endpoints,
            streams: streams.is_some(),
            packet_bytes: speed.bulk_packet_bytes(),
            slots,
            owners: alloc::vec![None; usize::from(commands)],
            // One owner a slot, one for the command pipe, one for answers without a slot.
            transfer_ids: TransferIdAllocator::after(earlier, u64::from(count) + 2),
            receiving: None,
            begun: Vec::with_capacity(CommandIu::LEN_MAX),
            untagged: Vec::with_capacity(UNTAGGED_RESPONSES_MAX),
            queues: DirectionQueues::default(),
        }
    }

    pub(crate) const fn transfer_ids(&self) -> &TransferIdAllocator {
        &self.transfer_ids
    }

    /// Waits for the next IU on the command pipe, unless it waits already or too much is unanswered.
    pub(crate) fn receive(&mut self, outputs: &mut Outputs) {
        if self.receiving.is_some() || self.untagged.len() >= UNTAGGED_RESPONSES_MAX {
            return;
        }
        let id = self.transfer_ids.allocate(self.slots.len());
        self.receiving = Some(id);
        outputs.push_with(|| {
            Output::Transfer(DeviceTransfer {
                id,
                pipe: Pipe::plain(self.endpoints.command),
                length: self.packet_bytes,
                ends: false,
                payload: Payload::Message,
            })
        });
    }

    /// Cancels all transfers. The executor's commands end as aborted; nothing more is sent to the host.
    pub(crate) fn stop(&mut self, executor: &mut Executor, outputs: &mut Outputs) {
        if let Some(id) = self.receiving.take() {
            outputs.cancel(id);
        }
        for id in self.untagged.drain(..) {
            outputs.cancel(id);
        }
        for slot in &mut self.slots {
            slot.cancel_transfers(outputs);
            if let State::Running { id } = slot.state {
                executor.abort(id);
            }
            slot.state = State::Free;
        }
        self.owners.fill(None);
        executor.fence();
    }

    /// A transfer of ours has ended; `bytes` is what a [`Payload::Message`] has brought.
    #[inline(always)]
    pub(crate) fn handle_completion(
        &mut self,
        completion: Completion,
        bytes: &[u8],
        executor: &mut Executor,
        outputs: &mut Outputs,
    ) {
        let owner = self.transfer_ids.owner(completion.id);
        if Some(completion.id) == self.receiving {
            self.receiving = None;
            if matches!(completion.status, TransferStatus::Done | TransferStatus::Short) {
                self.handle_packets(bytes, executor, outputs);
                self.receive(outputs);
            }
        } else if owner < self.slots.len() {
            self.handle_slot_completion(owner as u16, completion, bytes, executor, outputs);
        } else if let Some(position) = self.untagged.iter().position(|&id| id == completion.id) {
            self.untagged.swap_remove(position);
            self.receive(outputs);
        }
    }

    /// The same for a transfer that can stay. Whether the command pipe waits for the next IU with it.
    #[inline(always)]
    pub(crate) fn handle_message(
        &mut self,
        completion: Completion,
        bytes: &[u8],
        executor: &mut Executor,
        outputs: &mut Outputs,
    ) -> bool {
        if Some(completion.id) != self.receiving {
            cold_path();
            self.handle_completion(completion, bytes, executor, outputs);
            return false;
        }
        self.handle_packets(bytes, executor, outputs);
        if self.untagged.len() >= UNTAGGED_RESPONSES_MAX {
            cold_path();
            self.receiving = None;
        }
        self.receiving.is_some()
    }

    /// Takes a packet of the command pipe: mostly a whole IU.
    #[inline(always)]
    fn handle_packets(&mut self, bytes: &[u8], executor: &mut Executor, outputs: &mut Outputs) {
        if self.begun.is_empty() && bytes.len() != self.packet_bytes as usize {
            return self.handle_iu(bytes, executor, outputs);
        }
        self.join_packet(bytes, executor, outputs);
    }

    /// Joins the packets of an IU. Only at full speed can an IU be longer than a packet.
    #[cold]
    fn join_packet(&mut self, bytes: &[u8], executor: &mut Executor, outputs: &mut Outputs) {
        let whole_packet = bytes.len() == self.packet_bytes as usize;
        let mut iu = core::mem::take(&mut self.begun);
        iu.extend_from_slice(bytes);
        let more = match CommandPipeIu::decode(&iu).map_err(|error| error.error) {
            Err(wire::DecodeError::Truncated { needed, .. }) => needed > iu.len(),
            _ => false,
        };
        if more && whole_packet && iu.len() < CommandIu::LEN_MAX {
            self.begun = iu;
            return;
        }
        self.handle_iu(&iu, executor, outputs);
        iu.clear();
        self.begun = iu;
    }

    #[inline(always)]
    fn handle_iu(&mut self, bytes: &[u8], executor: &mut Executor, outputs: &mut Outputs) {
        match CommandPipeIu::decode(bytes) {
            Ok(CommandPipeIu::Command(iu)) => self.handle_command_iu(iu, executor, outputs),
            Ok(CommandPipeIu::TaskManagement(iu)) => self.handle_task_management(iu, executor, outputs),
            // Without a tag there is no stream to answer on, and no tag to answer.
            Err(error) => {
                if let Some(tag) = error.tag {
                    self.refuse_iu(tag, outputs);
                }
            }
        }
    }

    #[inline(always)]
    fn handle_command_iu(&mut self, iu: CommandIu<'_>, executor: &mut Executor, outputs: &mut Outputs) {
        let Some(index) = self.slot_for(iu.tag) else {
            return self.answer_loosely(iu.tag, sense_iu(iu.tag, &full()), outputs);
        };
        if !self.slots[index].is_free() {
            return self.handle_overlap(index, executor, outputs);
        }
        self.slots[index].begin(&iu, executor.unit_at(iu.lun));
        let whole;
        let cdb = match iu.additional_cdb {
            [] => iu.cdb,
            additional => {
                cold_path();
                whole = [iu.cdb, additional].concat();
                &whole[..]
            }
        };
        match executor.submit(Request { lun: iu.lun, attribute: iu.attribute, cdb, asks: false }) {
            Ok(id) => {
                self.slots[index].state = State::Running { id };
                self.owners[usize::from(id.slot)] = Some((id, index as u16));
            }
            Err(_) => {
                cold_path();
                self.end(index, full(), outputs);
            }
        }
    }

    /// Carries out what the executor wants of a transport.
    pub(crate) fn handle_command(&mut self, output: CommandOutput, outputs: &mut Outputs) {
        match output {
            CommandOutput::DataIn { id, range, location, last } => {
                if let Some(index) = self.running(id) {
                    let piece = slot::DataSegment { direction: Direction::In, range, location, last };
                    self.move_data(index, piece, outputs);
                }
            }
            CommandOutput::DataOut { id, range, location, last } => {
                if let Some(index) = self.running(id) {
                    let piece = slot::DataSegment { direction: Direction::Out, range, location, last };
                    self.move_data(index, piece, outputs);
                }
            }
            CommandOutput::Completed { id, outcome } => match (self.running(id), self.forget(id)) {
                (Some(index), _) => self.end(index, outcome, outputs),
                // It was aborted when this was on its way.
                (None, Some(index)) => self.handle_aborted(index, outputs),
                (None, None) => {}
            },
            CommandOutput::Aborted { id } => {
                if let Some(index) = self.forget(id) {
                    self.handle_aborted(index, outputs);
                }
            }
            CommandOutput::Begin { .. } => {}
        }
    }

    /// Completes a command: ends its data phase on the bus, then sends the status.
    #[inline(always)]
    fn end(&mut self, index: usize, outcome: Outcome, outputs: &mut Outputs) {
        if self.streams {
            self.finish_streams(index, outputs);
        } else {
            self.abandon_turn(index, Direction::Out, outputs);
            if self.owes_close(index) {
                return self.close_turn(index, outcome, outputs);
            }
        }
        self.report(index, &outcome, outputs);
    }

    /// Queues the SENSE IU of a slot, its last IU.
    #[inline(always)]
    fn report(&mut self, index: usize, outcome: &Outcome, outputs: &mut Outputs) {
        let tag = self.slots[index].tag;
        let transfer = self.transfer_ids.allocate(index);
        self.slots[index].state = State::Reporting { transfer };
        outputs.push_with(|| self.status_transfer(transfer, tag, sense_iu(tag, outcome)));
    }

    /// Queues the RESPONSE IU of a slot, its last IU.
    fn respond(&mut self, index: usize, response: ResponseIu, outputs: &mut Outputs) {
        let transfer = self.transfer_ids.allocate(index);
        self.slots[index].state = State::Responding { transfer };
        let iu = Inline::new(&response.encode());
        outputs.push_with(|| self.status_transfer(transfer, response.tag, iu));
    }

    /// Answers INVALID INFORMATION UNIT under `tag`, and ends the data transfers that the host has for it.
    #[cold]
    fn refuse_iu(&mut self, tag: u16, outputs: &mut Outputs) {
        let response = ResponseIu::new(tag, ResponseCode::InvalidIu);
        match self.slot_for(tag).filter(|&index| self.slots[index].is_free()) {
            Some(index) => {
                self.slots[index].tag = tag;
                if self.streams {
                    self.finish_streams(index, outputs);
                }
                self.respond(index, response, outputs);
            }
            None => self.answer_loosely(tag, Inline::new(&response.encode()), outputs),
        }
    }

    /// Answers although no slot is free. Where the tag is no stream there is nowhere to answer.
    #[cold]
    fn answer_loosely(&mut self, tag: u16, iu: Inline, outputs: &mut Outputs) {
        if self.streams && (tag == 0 || usize::from(tag) > self.slots.len()) {
            return;
        }
        let transfer = self.transfer_ids.allocate(self.slots.len() + 1);
        self.untagged.push(transfer);
        outputs.push_with(|| self.status_transfer(transfer, tag, iu));
    }

    #[inline(always)]
    fn status_transfer(&self, id: TransferId, tag: u16, iu: Inline) -> Output {
        let pipe = self.pipe(self.endpoints.status, tag);
        let length = iu.as_bytes().len() as u32;
        Output::Transfer(DeviceTransfer { id, pipe, length, ends: true, payload: Payload::Inline(iu) })
    }

    fn pipe(&self, endpoint: EndpointAddress, tag: u16) -> Pipe {
        Pipe { endpoint, stream: StreamId::new(tag).filter(|_| self.streams) }
    }

    /// The slot that has `tag`, or a free one for it. With streams a tag has its slot; others have none.
    fn slot_for(&self, tag: u16) -> Option<usize> {
        if self.streams {
            return usize::from(tag).checked_sub(1).filter(|&index| index < self.slots.len());
        }
        let used = |slot: &Slot| !slot.is_free() && slot.tag == tag;
        self.slots.iter().position(used).or_else(|| self.slots.iter().position(Slot::is_free))
    }

    /// The slot of a command, unless it was aborted.
    fn running(&self, id: CommandId) -> Option<usize> {
        let (_, index) = (*self.owners.get(usize::from(id.slot))?)?;
        let running = |slot: &Slot| matches!(slot.state, State::Running { id: running } if running == id);
        Some(usize::from(index)).filter(|&index| running(&self.slots[index]))
    }

    /// The slot that a command had.
    fn forget(&mut self, id: CommandId) -> Option<usize> {
        let (_, index) = self.owners.get_mut(usize::from(id.slot))?.take_if(|(owner, _)| *owner == id)?;
        Some(usize::from(index))
    }
}

const FITS: &str = "the IU is as long as its header and its sense data";

/// The SENSE IU of an outcome.
#[inline(always)]
fn sense_iu(tag: u16, outcome: &Outcome) -> Inline {
    let Some(value) = &outcome.sense else {
        return Inline::status(
            SenseIu { tag, status_qualifier: 0, status: outcome.status, sense: &[] }.head(),
        );
    };
    sense_iu_with_data(tag, outcome, value)
}

#[cold]
fn sense_iu_with_data(tag: u16, outcome: &Outcome, value: &Sense) -> Inline {
    let mut sense = [0; INLINE_BYTES_MAX - SenseIu::LEN];
    let len = value.encode(outcome.format, &mut sense).expect("sense data is at most 58 bytes");
    let sense = &sense[..len];
    let mut iu = [0; INLINE_BYTES_MAX];
    let value = SenseIu { tag, status_qualifier: 0, status: outcome.status, sense };
    let len = value.encode(&mut iu).expect(FITS);
    Inline::new(&iu[..len])
}

const fn full() -> Outcome {
    Outcome::of_status(None, Status::TaskSetFull)
}

fn overlapped() -> Outcome {
    let sense = Sense::new(SenseKey::AbortedCommand, AdditionalSense::OVERLAPPED_COMMANDS_ATTEMPTED);
    Outcome::of_sense(None, sense)
}
