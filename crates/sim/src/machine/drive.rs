//! The device end of a machine: a device, its queued transfers, its command buffers and its medium.
//!
//! Terminators of host transfers are queued here too: an empty packet, or room for data that is
//! discarded. A buffer filled by a read references the blocks instead of copying them until one is
//! written, since memory bandwidth dominates with many drives. Invariants: each device transfer
//! completes once; a buffer holds what the blocks held when they were read.

use super::fault_injector::FaultInjector;
use super::fixed_latency::{BlockRef, FixedLatencyDrive};
use super::in_flight::InFlight;
use super::seeded_bugs::{is_response, is_status};
use super::xhci::{Done, Enclosure};
use crate::check::Ledger;
use crate::link::DevicePort;
use crate::link::bulk::{End, PacketPayload, Progress, Transfer as Bulk};
use crate::vec_pool::VecPool;
use bus::{Completion, Pipe, StreamId, TransferId, TransferStatus};
use device::command::CommandId;
use device::medium::{MediumCompletion, MediumDone, MediumOp, MediumRequest};
use device::{Device, DeviceTransfer, Payload};
use std::ops::Range;
use units::{ByteRange, Extent, Instant};
use wire::scsi::cdb;
use wire::uas::CommandIu;
use wire::usb::Direction;

#[derive(Debug)]
pub(super) struct DriveSide {
    pub(super) device: Device,
    /// Contents, and latency if there is no enclosure.
    pub(super) plain: FixedLatencyDrive,
    /// Timing of a device in an enclosure.
    pub(super) enclosure: Option<Box<Enclosure>>,
    offers: InFlight<Offer>,
    buffers: Buffers,
    /// Bytes of data-in phases so far, by pipe.
    phases: Vec<(Pipe, u32)>,
    /// Next id in [`DISCARDED_IDS`].
    next_discarded_id: u64,
    /// Buffers of messages that the device has received.
    spare: VecPool<u8>,
    /// Scratch space for blocks that are generated on access.
    scratch: Vec<u8>,
}

/// A transfer that the device has queued.
#[derive(Debug)]
struct Offer {
    payload: Payload,
    pipe: Pipe,
    length: u32,
    /// Received bytes, if the device gets them with the completion.
    message: Vec<u8>,
    /// Bytes moved.
    moved: u32,
}

/// An event of an enclosure.
#[derive(Debug)]
pub(super) enum EnclosureEvent {
    /// The device has received a message that arrived at a time; with the stream of its command, if
    /// known.
    Heard(Instant, Option<StreamId>),
    /// A status is sent that was ready at a time.
    Status(Instant, DeviceTransfer),
    /// A medium request that arrived at a time is done.
    Stored(Instant, MediumRequest),
}

/// Command buffers by slot.
#[derive(Debug, Default)]
struct Buffers {
    slots: Vec<Buffer>,
    /// Number of buffers that reference blocks.
    referencing: usize,
}

/// The buffer of a slot. It is reused by the next command with stale contents, as in a real drive.
#[derive(Debug, Default)]
struct Buffer {
    owner: Option<CommandId>,
    bytes: Vec<u8>,
    /// The blocks that the whole buffer references, if not copied yet.
    block_ref: Option<BlockRef>,
}

impl Buffer {
    fn copy_blocks(&mut self, plain: &FixedLatencyDrive) {
        if let Some(block_ref) = self.block_ref.take() {
            plain.copy_blocks(block_ref, &mut self.bytes);
        }
    }
}

/// Size up to which a buffer without an owner keeps its memory.
const KEPT_BYTES_MAX: usize = 128 << 10;

/// Ids of transfers that terminate a host transfer and whose completion is discarded.
const DISCARDED_IDS: std::ops::RangeFrom<u64> = 1 << 63..;

impl DriveSide {
    pub(super) fn new(device: Device, plain: FixedLatencyDrive) -> Self {
        Self {
            device,
            plain,
            enclosure: None,
            offers: InFlight::new(),
            buffers: Buffers::default(),
            phases: Vec::new(),
            next_discarded_id: DISCARDED_IDS.start,
            spare: VecPool::new(),
            scratch: Vec::new(),
        }
    }

    /// Adds an enclosure.
    pub(super) fn with(self, enclosure: Option<Box<Enclosure>>) -> Self {
        Self { enclosure, ..self }
    }

    /// Queues a device transfer. `expected` is the length of the host's transfer on the pipe, which
    /// a real drive knows from the command: a phase that ends short of it with a full packet needs
    /// an empty packet. Returns the id of that empty packet.
    pub(super) fn offer(
        &mut self,
        port: &mut DevicePort,
        transfer: DeviceTransfer,
        expected: Option<u32>,
    ) -> Option<TransferId> {
        let DeviceTransfer { id, pipe, length, ends, payload } = transfer;
        let message = if matches!(payload, Payload::Message) { self.spare.take() } else { Vec::new() };
        let number = self.offers.insert(id, Offer { payload, pipe, length, message, moved: 0 });
        let queued = port.queue(pipe, Bulk { id: number, bytes: length });
        debug_assert!(queued.is_ok(), "a device uses the endpoints that it has");
        if pipe.endpoint.direction() == Direction::Out {
            return None;
        }
        let phase_bytes = self.pass_phase(pipe, length, ends);
        let is_cut =
            ends && length > 0 && length.is_multiple_of(self.device.config().speed.bulk_packet_bytes());
        (is_cut && expected.is_some_and(|expected| expected > phase_bytes)).then(|| self.end(port, pipe, 0))
    }

    /// Adds a piece of a data phase; returns the bytes of the phase so far.
    fn pass_phase(&mut self, pipe: Pipe, length: u32, ends: bool) -> u32 {
        let before = self.phases.iter().position(|(of, _)| *of == pipe);
        let bytes = length + before.map_or(0, |place| self.phases.swap_remove(place).1);
        if !ends {
            self.phases.push((pipe, bytes));
        }
        bytes
    }

    /// Queues a terminator of a host transfer: an empty packet, or room for `length` discarded
    /// bytes.
    pub(super) fn end(&mut self, port: &mut DevicePort, pipe: Pipe, length: u32) -> TransferId {
        let id = self.discarded_id();
        let transfer = DeviceTransfer { id, pipe, length, ends: true, payload: Payload::Nowhere };
        self.offer(port, transfer, None);
        id
    }

    fn discarded_id(&mut self) -> TransferId {
        self.next_discarded_id += 1;
        TransferId(self.next_discarded_id)
    }

    /// Withdraws the terminator of a host transfer that has completed otherwise.
    pub(super) fn withdraw(&mut self, port: &mut DevicePort, pipe: Pipe, ending: TransferId) {
        // If it is no longer queued, its completion is pending.
        if let Some(number) = self.offers.find(ending) {
            port.withdraw(pipe, number);
        }
    }

    /// Cancels a device transfer. It completes once no packet of it is in flight.
    pub(super) fn cancel(&mut self, now: Instant, port: &mut DevicePort, id: TransferId) {
        let Some(number) = self.offers.find(id) else { return };
        let Some(pipe) = self.offers.get(number).map(|(_, offer)| offer.pipe) else { return };
        self.phases.retain(|(of, _)| *of != pipe);
        if !port.withdraw(pipe, number) {
            self.complete(now, number, TransferStatus::Cancelled, 0);
        }
    }

    /// Drops queued transfers: the device has their completions, or never wants them.
    pub(super) fn forget_offers(&mut self, now: Instant) {
        self.offers = InFlight::new();
        self.phases.clear();
        if let Some(enclosure) = &mut self.enclosure {
            enclosure.forget(now);
        }
    }

    /// Allocates the buffer of an accepted command. `is_misplaced`: the drive gets a write of other
    /// blocks.
    pub(super) fn acquire(&mut self, now: Instant, id: CommandId, bytes: u32, is_misplaced: bool) {
        self.buffers.acquire(id, bytes as usize);
        let Some(enclosure) = &mut self.enclosure else { return };
        let mut write = write_of(self.device.cdb(id));
        if let Some((_, extent)) = write.as_mut().filter(|_| is_misplaced) {
            extent.lba.0 += extent.blocks.0;
        }
        enclosure.announce(now, id, bytes, write);
    }

    pub(super) fn release(&mut self, now: Instant, id: CommandId) {
        self.buffers.release(id);
        if let Some(enclosure) = &mut self.enclosure {
            enclosure.release(now, id);
        }
    }

    /// Executes the medium request that is due.
    pub(super) fn store(&mut self, now: Instant, injector: &mut FaultInjector) {
        if let Some(request) = self.plain.next(now) {
            self.perform(&request, injector);
        }
    }

    /// Executes a request and notifies the device. Returns whether it succeeded.
    fn perform(&mut self, request: &MediumRequest, injector: &mut FaultInjector) -> bool {
        if injector.faults.are_none() && self.reference_blocks(request) {
            let done = MediumCompletion { id: request.id, result: Ok(MediumDone::Done) };
            self.device.handle_medium(done);
            return true;
        }
        self.buffers.copy_blocks(&self.plain);
        let empty = &mut Vec::new();
        let buffer = self.buffers.get_mut(request.id.command, &self.plain).unwrap_or(empty);
        let completion = injector.medium.perform(&mut self.plain, request, buffer, &mut injector.faults);
        let is_done = completion.result.is_ok();
        self.device.handle_medium(completion);
        is_done
    }

    /// Lets a buffer that a read fills completely reference its blocks. Returns whether it does.
    fn reference_blocks(&mut self, request: &MediumRequest) -> bool {
        let MediumOp::Read = request.op else { return false };
        let (Some((block_ref, len)), Some(buffer)) =
            (self.plain.block_ref(request.extent), self.buffers.owned(request.id.command))
        else {
            return false;
        };
        let is_whole = request.range.as_usize() == (0..len) && len == buffer.bytes.len();
        if is_whole {
            self.buffers.name(request.id.command, block_ref);
        }
        is_whole
    }

    /// Returns whether the medium is busy.
    pub(super) fn is_busy(&self) -> bool {
        self.plain.is_busy() || self.enclosure.as_ref().is_some_and(|enclosure| enclosure.is_busy())
    }

    /// Checks the queue statistics.
    pub(super) fn audit(&self, now: Instant, ledger: &mut Ledger) {
        self.plain.audit(now, ledger);
        if let Some(enclosure) = &self.enclosure {
            enclosure.audit(now, ledger);
        }
    }

    /// Defers a status until the firmware has processed it. Returns other transfers.
    pub(super) fn defer_status(&mut self, now: Instant, transfer: DeviceTransfer) -> Option<DeviceTransfer> {
        match (&mut self.enclosure, &transfer.payload) {
            (Some(enclosure), Payload::Inline(inline)) if is_status(inline) => {
                enclosure.send_status(now, transfer);
                None
            }
            _ => Some(transfer),
        }
    }

    /// Withdraws a transfer from the firmware's queue. Returns whether it was there.
    pub(super) fn withdraw_queued(&mut self, now: Instant, id: TransferId) -> bool {
        self.enclosure.as_mut().is_some_and(|enclosure| enclosure.withdraw(now, id))
    }

    /// Returns the next event of the enclosure up to now.
    pub(super) fn poll_enclosure(
        &mut self,
        now: Instant,
        injector: &mut FaultInjector,
    ) -> Option<EnclosureEvent> {
        let enclosure = self.enclosure.as_mut()?;
        enclosure.abandon_dead(now, &self.device);
        Some(match enclosure.poll_done(now)? {
            Done::Heard(since, completion, message) => {
                self.device.handle_completion(completion, &message);
                let tag = CommandIu::decode(&message).ok().map(|command| command.tag);
                self.spare.give(message);
                EnclosureEvent::Heard(since, tag.and_then(StreamId::new))
            }
            Done::Status(since, transfer) => EnclosureEvent::Status(since, transfer),
            Done::Request(since, request) => {
                if !self.perform(&request, injector)
                    && let Some(enclosure) = &mut self.enclosure
                {
                    enclosure.abandon(now, request.id.command);
                }
                EnclosureEvent::Stored(since, request)
            }
        })
    }

    /// Copies a transfer with a discarded id.
    pub(super) fn stray(&mut self, transfer: &DeviceTransfer) -> DeviceTransfer {
        DeviceTransfer { id: self.discarded_id(), ..transfer.clone() }
    }

    /// Cancels a transfer before it was queued.
    pub(super) fn cancel_unsent(&mut self, id: TransferId) {
        self.device.handle_completion(Completion { id, status: TransferStatus::Cancelled, actual: 0 }, &[]);
    }

    /// Completes a transfer without sending it.
    pub(super) fn forget(&mut self, transfer: DeviceTransfer) {
        let completion =
            Completion { id: transfer.id, status: TransferStatus::Done, actual: transfer.length };
        self.device.handle_completion(completion, &[]);
    }

    /// Returns another command whose buffer covers this range.
    pub(super) fn another_buffer(&self, command: CommandId, range: ByteRange) -> Option<CommandId> {
        let fits = |buffer: &Buffer| buffer.bytes.len() >= range.as_usize().end;
        let mut owners = self.buffers.slots.iter().filter(|buffer| fits(buffer)).filter_map(|it| it.owner);
        owners.find(|owner| *owner != command)
    }

    /// Returns whether a transfer is in flight.
    pub(super) fn is_in_flight(&self, number: TransferId) -> bool {
        self.offers.get(number).is_some()
    }

    /// Returns the pipes of the transfers in flight, except those that may wait forever: duplicate
    /// statuses; responses to task management that the host has given up, each of which waits for
    /// the next one of its tag; and, if packets were lost (`has_lost`), statuses without an
    /// acknowledgement, which the host has.
    pub(super) fn offered(&self, has_lost: bool) -> impl Iterator<Item = Pipe> {
        self.offers.iter().filter_map(move |(_, (id, offer))| match &offer.payload {
            Payload::Inline(inline) if DISCARDED_IDS.contains(&id.0) || is_response(inline) => None,
            Payload::Inline(inline) if has_lost && is_status(inline) => None,
            _ => Some(offer.pipe),
        })
    }

    /// Handles progress of a transfer; `bytes` came from the host. Returns whether the device or
    /// its enclosure may have new outputs.
    pub(super) fn progress(&mut self, now: Instant, progress: Progress, bytes: &[u8]) -> bool {
        let Progress { id: number, moved, ended, piece } = progress;
        let has_given = self.enclosure.is_some() && self.give_room(now, number, moved);
        if let (Some(_), Some((_, offer))) = (piece, self.offers.get_mut(number)) {
            let start = moved as usize - bytes.len().min(moved as usize);
            match offer.payload {
                Payload::Buffer(command, range) => {
                    let at = range.start as usize + start;
                    if let Some(memory) = self.buffers.get_mut(command, &self.plain) {
                        memory[at..at + bytes.len()].copy_from_slice(bytes);
                    }
                }
                Payload::Message => offer.message.extend_from_slice(bytes),
                Payload::Inline(_) | Payload::Reply(_) | Payload::Nowhere => {}
            }
        }
        let Some(end) = ended else { return has_given };
        let Some((_, offer)) = self.offers.get(number) else { return has_given };
        let status = match end {
            End::Withdrawn => TransferStatus::Cancelled,
            _ if moved == offer.length || offer.pipe.endpoint.direction() == Direction::In => {
                TransferStatus::Done
            }
            _ => TransferStatus::Short,
        };
        self.complete(now, number, status, moved);
        true
    }

    /// Frees bridge buffer space of sent data. Returns whether that had any effect.
    fn give_room(&mut self, now: Instant, number: TransferId, moved: u32) -> bool {
        let Some(enclosure) = &mut self.enclosure else { return false };
        let Some((_, offer)) = self.offers.get_mut(number) else { return false };
        let before = std::mem::replace(&mut offer.moved, moved);
        if let Payload::Buffer(command, _) = offer.payload
            && offer.pipe.endpoint.direction() == Direction::In
        {
            return enclosure.give(now, command, moved, before);
        }
        false
    }

    fn complete(&mut self, now: Instant, number: TransferId, status: TransferStatus, actual: u32) {
        let Some((id, offer)) = self.offers.remove(number) else { return };
        if DISCARDED_IDS.contains(&id.0) {
            return;
        }
        let completion = Completion { id, status, actual };
        if let (Payload::Buffer(command, _), Some(enclosure)) = (&offer.payload, &mut self.enclosure)
            && actual < offer.length
        {
            match offer.pipe.endpoint.direction() {
                // The rest of the data is not sent.
                Direction::In => {
                    enclosure.give(now, *command, offer.length, offer.moved);
                }
                // The host sends less than the command announces.
                Direction::Out => enclosure.abandon(now, *command),
            }
        }
        match &mut self.enclosure {
            Some(enclosure)
                if matches!(offer.payload, Payload::Message) && status != TransferStatus::Cancelled =>
            {
                enclosure.receive_message(now, completion, offer.message);
            }
            _ => {
                self.device.handle_completion(completion, &offer.message);
                self.spare.give(offer.message);
            }
        }
    }

    /// Returns the bytes of a piece that the device sends.
    pub(super) fn bytes(&mut self, piece: PacketPayload) -> &[u8] {
        let Some((_, offer)) = self.offers.get(piece.transfer) else { return &[] };
        let (at, len) = (piece.offset as usize, usize::from(piece.bytes));
        match &offer.payload {
            Payload::Inline(inline) => &inline.as_bytes()[at..at + len],
            Payload::Reply(command) => self.device.reply(*command).get(at..at + len).unwrap_or(&[]),
            Payload::Buffer(command, range) => {
                let start = range.start as usize + at;
                self.buffers.get(*command, start..start + len, &self.plain, &mut self.scratch)
            }
            Payload::Message | Payload::Nowhere => &[],
        }
    }
}

/// Returns the blocks of a WRITE command.
fn write_of(cdb: &[u8]) -> Option<(MediumOp, Extent)> {
    let Ok(cdb::Command::Write(write)) = cdb::Command::decode(cdb) else { return None };
    Some((MediumOp::Write { fua: write.fua }, Extent::new(write.lba, write.blocks.into())))
}

impl Buffers {
    fn acquire(&mut self, id: CommandId, bytes: usize) {
        let slot = usize::from(id.slot);
        if slot >= self.slots.len() {
            self.slots.resize_with(slot + 1, Buffer::default);
        }
        let buffer = &mut self.slots[slot];
        self.referencing -= usize::from(buffer.block_ref.take().is_some());
        buffer.owner = Some(id);
        buffer.bytes.resize(bytes, 0);
    }

    fn release(&mut self, id: CommandId) {
        let Some(buffer) = self.slots.get_mut(usize::from(id.slot)) else { return };
        self.referencing -= usize::from(buffer.block_ref.take_if(|_| buffer.owner == Some(id)).is_some());
        if buffer.owner.take_if(|owner| *owner == id).is_some() && buffer.bytes.len() > KEPT_BYTES_MAX {
            buffer.bytes = Vec::new();
        }
    }

    fn get<'a>(
        &'a self,
        id: CommandId,
        range: Range<usize>,
        plain: &'a FixedLatencyDrive,
        scratch: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        let Some(buffer) = self.slots.get(usize::from(id.slot)).filter(|buffer| buffer.owner == Some(id))
        else {
            return &[];
        };
        match buffer.block_ref {
            Some(block_ref) => plain.borrowed(block_ref, range, scratch),
            None => &buffer.bytes[range],
        }
    }

    /// Like [`Self::get`], mutable: referenced blocks are copied first.
    fn get_mut(&mut self, id: CommandId, plain: &FixedLatencyDrive) -> Option<&mut Vec<u8>> {
        let slot = self.slots.get_mut(usize::from(id.slot));
        let buffer = slot.filter(|buffer| buffer.owner == Some(id))?;
        if buffer.block_ref.is_some() {
            buffer.copy_blocks(plain);
            self.referencing -= 1;
        }
        Some(&mut buffer.bytes)
    }

    fn owned(&mut self, id: CommandId) -> Option<&mut Buffer> {
        self.slots.get_mut(usize::from(id.slot)).filter(|buffer| buffer.owner == Some(id))
    }

    /// Makes the buffer of a command reference blocks.
    fn name(&mut self, id: CommandId, block_ref: BlockRef) {
        if let Some(buffer) = self.owned(id) {
            let before = buffer.block_ref.replace(block_ref);
            self.referencing += usize::from(before.is_none());
        }
    }

    /// Copies all referenced blocks, if the medium may change.
    fn copy_blocks(&mut self, plain: &FixedLatencyDrive) {
        if plain.changes() && std::mem::take(&mut self.referencing) > 0 {
            self.slots.iter_mut().for_each(|buffer| buffer.copy_blocks(plain));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::numbers;
    use super::*;
    use crate::fault::Faults;
    use device::command::DataLocation;
    use device::medium::MediumRequestId;
    use units::{BlockCount, BlockSize, Duration, Lba};

    const COMMAND: CommandId = CommandId { slot: 1, generation: 0 };

    fn write(plain: &mut FixedLatencyDrive, byte: u8) {
        let id = MediumRequestId { command: CommandId { slot: 0, generation: 0 }, part: 0 };
        let (extent, range) = (Extent::new(2, 1), ByteRange::new(0, 512));
        let op = MediumOp::Write { fua: false };
        let request = MediumRequest { id, unit: 0, op, extent, location: DataLocation::Buffer, range };
        assert_eq!(
            plain.perform(&request, &mut [byte; 512], &mut Faults::never()).result,
            Ok(MediumDone::Done)
        );
    }

    #[test]
    fn a_buffer_that_names_its_blocks_holds_what_they_held_when_they_were_read() {
        let mut plain = FixedLatencyDrive::new(8, BlockSize::B512, Duration::ZERO, 1);
        write(&mut plain, 7);
        let (mut buffers, scratch) = (Buffers::default(), &mut Vec::new());
        buffers.acquire(COMMAND, 512);
        assert_eq!(buffers.get(COMMAND, 0..512, &plain, scratch), [0; 512]);
        buffers.name(COMMAND, BlockRef::Bytes(2 * 512));
        assert_eq!(buffers.get(COMMAND, 510..512, &plain, scratch), [7, 7]);
        buffers.copy_blocks(&plain);
        write(&mut plain, 8);
        assert_eq!(buffers.get(COMMAND, 0..512, &plain, scratch), [7; 512]);
        assert_eq!(buffers.referencing, 0);
    }

    #[test]
    fn blocks_that_hold_their_numbers_are_made_where_they_are_looked_at() {
        let plain = FixedLatencyDrive::numbered(BlockCount(100), BlockSize::B512);
        let (mut buffers, scratch) = (Buffers::default(), &mut vec![0xff; 3000]);
        buffers.acquire(COMMAND, 4 * 512);
        let (block_ref, len) = plain.block_ref(Extent::new(50, 4)).expect("there are such blocks");
        assert_eq!(len, 4 * 512);
        buffers.name(COMMAND, block_ref);
        let mut whole = vec![0; 4 * 512];
        numbers::put(Lba(50), &mut whole, BlockSize::B512);
        for range in [0..2048, 0..1024, 1024..2048, 500..530, 511..512, 1..511, 512 + 7..1024 + 9] {
            assert_eq!(
                buffers.get(COMMAND, range.clone(), &plain, scratch),
                &whole[range.clone()],
                "{range:?}"
            );
        }
        // A write changes none of them.
        buffers.copy_blocks(&plain);
        assert_eq!(buffers.referencing, 1);
        assert_eq!(buffers.get_mut(COMMAND, &plain), Some(&mut whole));
        assert_eq!(buffers.referencing, 0);
        assert!(
            plain.block_ref(Extent::new(97, 4)).is_none()
                && plain.block_ref(Extent::new(u64::MAX, 4)).is_none()
        );
    }

    #[test]
    fn a_buffer_that_is_given_back_names_nothing() {
        let plain = FixedLatencyDrive::new(8, BlockSize::B512, Duration::ZERO, 1);
        let mut buffers = Buffers::default();
        buffers.acquire(COMMAND, 512);
        buffers.name(COMMAND, BlockRef::Bytes(0));
        buffers.name(COMMAND, BlockRef::Bytes(512));
        assert_eq!(buffers.referencing, 1);
        buffers.release(COMMAND);
        assert_eq!(buffers.referencing, 0);
        assert!(buffers.get(COMMAND, 0..512, &plain, &mut Vec::new()).is_empty());
    }
}
