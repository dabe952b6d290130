//! The drive's side of a world: a device, its transfers on offer, its buffers, and where blocks lie.

use super::host::HostSide;
use super::plain::Plain;
use super::plug::PACKET_BYTES;
use crate::link::bulk::{DevicePort, Piece, Progress, Transfer as Bulk};
use bus::{Completion, Pipe, TransferId, TransferStatus};
use initiator::{Flights, Transport};
use std::collections::BTreeMap;
use target::command::CommandId;
use target::{Device, DeviceTransfer, Payload};
use wire::usb::Direction;

#[derive(Debug)]
pub(super) struct DriveSide {
    pub(super) device: Device,
    pub(super) plain: Plain,
    offers: Flights<Offer>,
    buffers: BTreeMap<CommandId, Vec<u8>>,
}

/// A transfer on offer.
#[derive(Debug)]
struct Offer {
    payload: Payload,
    length: u32,
    direction: Direction,
    /// What has come, where the device is handed it with the completion.
    message: Vec<u8>,
}

/// The transfer of an empty packet, which nobody has asked for and nobody waits for.
const NOBODY: TransferId = TransferId(u64::MAX);

impl DriveSide {
    pub(super) fn new(device: Device, plain: Plain) -> Self {
        Self { device, plain, offers: Flights::new(), buffers: BTreeMap::new() }
    }

    /// Queues a transfer of the device. `expected` is what the host's transfer on the pipe waits for, which a real drive
    /// knows from the command: one that ends short of it with a full packet needs an empty one.
    pub(super) fn offer(&mut self, port: &mut DevicePort, transfer: DeviceTransfer, expected: Option<u32>) {
        let DeviceTransfer { id, pipe, length, ends, payload } = transfer;
        let direction = pipe.endpoint.direction();
        let number = self.offers.insert(id, Offer { payload, length, direction, message: Vec::new() });
        let queued = port.queue(pipe, Bulk { id: number, bytes: length });
        debug_assert!(queued.is_ok(), "a device uses the endpoints that it has");
        let is_cut = ends && length > 0 && length.is_multiple_of(PACKET_BYTES.into());
        if is_cut && direction == Direction::In && expected.is_some_and(|expected| expected > length) {
            end(port, pipe);
        }
    }

    pub(super) fn acquire(&mut self, id: CommandId, bytes: u32) {
        self.buffers.insert(id, vec![0; bytes as usize]);
    }

    pub(super) fn release(&mut self, id: CommandId) {
        self.buffers.remove(&id);
    }

    /// The medium has done its oldest request.
    pub(super) fn store(&mut self) {
        let Some(request) = self.plain.next() else { return };
        let empty = &mut Vec::new();
        let buffer = self.buffers.get_mut(&request.id.command).unwrap_or(empty);
        let completion = self.plain.perform(&request, buffer);
        self.device.handle_medium(completion);
    }

    /// Something of a transfer has moved.
    pub(super) fn progress<T: Transport>(&mut self, progress: Progress, host: &HostSide<T>) {
        let Progress { id: number, moved, ended, piece } = progress;
        if let (Some(piece), Some((_, offer))) = (piece, self.offers.get_mut(number)) {
            let bytes = host.bytes(piece);
            let start = moved as usize - bytes.len().min(moved as usize);
            match offer.payload {
                Payload::Buffer(command, range) => {
                    let at = range.start as usize + start;
                    if let Some(memory) = self.buffers.get_mut(&command) {
                        memory[at..at + bytes.len()].copy_from_slice(bytes);
                    }
                }
                Payload::Message => offer.message.extend_from_slice(bytes),
                Payload::Inline(_) | Payload::Reply(_) | Payload::Nowhere => {}
            }
        }
        if ended.is_none() {
            return;
        }
        let Some((id, offer)) = self.offers.remove(number) else { return };
        let is_all = moved == offer.length || offer.direction == Direction::In;
        let status = if is_all { TransferStatus::Done } else { TransferStatus::Short };
        self.device.handle_completion(Completion { id, status, actual: moved }, &offer.message);
    }

    /// The bytes of a piece that the device sends.
    pub(super) fn bytes(&self, piece: Piece) -> &[u8] {
        let Some((_, offer)) = self.offers.get(piece.transfer) else { return &[] };
        let (at, len) = (piece.offset as usize, usize::from(piece.bytes));
        match &offer.payload {
            Payload::Inline(inline) => &inline.as_bytes()[at..at + len],
            Payload::Reply(command) => &self.device.reply(*command)[at..at + len],
            Payload::Buffer(command, range) => {
                let start = range.start as usize + at;
                self.buffers.get(command).map_or(&[], |memory| &memory[start..start + len])
            }
            Payload::Message | Payload::Nowhere => &[],
        }
    }
}

/// Sends an empty packet.
pub(super) fn end(port: &mut DevicePort, pipe: Pipe) {
    let queued = port.queue(pipe, Bulk { id: NOBODY, bytes: 0 });
    debug_assert!(queued.is_ok(), "a device uses the endpoints that it has");
}
