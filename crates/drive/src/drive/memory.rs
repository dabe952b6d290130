//! The owner of payload memory: a host's transfer, a command, the medium, or the pool.
//!
//! Bytes go from one owner to the other by moving the memory where one transfer covers one command, else by a copy.
//! Buffers of commands are stored by the command's slot, with the full command id, so that a late answer finds nothing.
//! Left out: which transfers meet. Always true: memory has one owner; what a host has sent is counted until a command
//! has it.

use super::buffer::Pool;
use super::host_transfer::Body;
use bus::rendezvous::CopyRange;
use bus::{Direction, TransferId};
use device::command::CommandId;
use device::{Device, Payload};
use std::hint::cold_path;

/// Memory of a host's transfer.
#[derive(Debug)]
pub(super) struct HostEntry {
    pub(super) id: u64,
    /// Out: the bytes, until a command takes the memory as its buffer. In: what has come so far.
    pub(super) body: Body,
}

/// Memory of a device's transfer.
#[derive(Debug)]
pub(super) struct DeviceEntry {
    pub(super) id: TransferId,
    pub(super) payload: Payload,
}

/// All memory of a drive.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) pool: Pool,
    pub(super) buffers: Buffers,
    /// Bytes of memory that hosts' transfers out have.
    pub(super) payload_bytes: usize,
    /// Parts received for a [`Payload::Message`], by the device's transfer: seldom.
    parts: Vec<(TransferId, Vec<u8>)>,
}

impl Memory {
    /// The bytes of a host's transfer are needed no longer.
    #[inline]
    pub(super) fn discard(&mut self, body: Body) {
        if let Body::Buffer(payload) = body {
            self.payload_bytes -= payload.len();
            self.pool.put(payload);
        }
    }

    /// Removes and returns the parts received for a transfer of the device that is over.
    #[inline]
    pub(super) fn take_parts(&mut self, id: TransferId) -> Option<Vec<u8>> {
        if self.parts.is_empty() {
            return None;
        }
        cold_path();
        let place = self.parts.iter().position(|(own, _)| *own == id)?;
        Some(self.parts.swap_remove(place).1)
    }

    /// Carries bytes from one transfer to the other.
    #[inline(always)]
    pub(super) fn carry(
        &mut self,
        copy: CopyRange,
        host: &mut HostEntry,
        offered: &DeviceEntry,
        device: &Device,
    ) {
        match copy.direction {
            Direction::In => self.carry_in(&copy, host, offered, device),
            Direction::Out => self.carry_out(&copy, host, offered),
        }
    }

    #[inline(always)]
    fn carry_in(&mut self, copy: &CopyRange, host: &mut HostEntry, offered: &DeviceEntry, device: &Device) {
        let whole = copy.host_offset == 0 && copy.device_offset == 0;
        match &offered.payload {
            Payload::Inline(inline) if whole && copy.bytes as usize == inline.as_bytes().len() => {
                host.body = Body::Inline(inline.clone());
            }
            Payload::Inline(inline) => gather(&mut host.body, &mut self.pool, copy, inline.as_bytes()),
            &Payload::Reply(id) => gather(&mut host.body, &mut self.pool, copy, device.reply(id)),
            &Payload::Buffer(id, range) => {
                let Some((buffer_bytes, buffer)) = self.buffers.get_mut(id) else { return };
                match buffer {
                    // All of the command's data in one transfer: the memory itself goes to the host, since a command
                    // that sends data has no use for it afterwards.
                    Buffer::Present(memory) if whole && range.start == 0 && copy.bytes == buffer_bytes => {
                        host.body = Body::Buffer(std::mem::take(memory));
                        *buffer = Buffer::Away;
                    }
                    Buffer::Present(memory) => {
                        gather(&mut host.body, &mut self.pool, copy, &memory[range.as_usize()]);
                    }
                    // Zeros behind data that have gone already.
                    _ if copy.device_offset >= range.len => {
                        gather(&mut host.body, &mut self.pool, copy, &[]);
                    }
                    _ => {}
                }
            }
            Payload::Message | Payload::Nowhere => {}
        }
    }

    #[inline(always)]
    fn carry_out(&mut self, copy: &CopyRange, host: &mut HostEntry, offered: &DeviceEntry) {
        let Body::Buffer(payload) = &mut host.body else { return };
        let (from, bytes) = (copy.host_offset as usize, copy.bytes as usize);
        let part = &payload[from..from + bytes];
        match &offered.payload {
            // It is passed on in place.
            Payload::Message if copy.is_all() => {}
            Payload::Message => match self.parts.iter_mut().find(|(id, _)| *id == offered.id) {
                Some((_, message)) => message.extend_from_slice(part),
                None => self.parts.push((offered.id, part.to_vec())),
            },
            &Payload::Buffer(id, range) => {
                let Some((all, buffer)) = self.buffers.get_mut(id) else { return };
                let at = (range.start + copy.device_offset) as usize;
                match buffer {
                    // The payload is the whole of the command's data: its memory becomes the command's buffer.
                    Buffer::Reserved if copy.is_all() && copy.bytes == all => {
                        self.payload_bytes -= payload.len();
                        *buffer = Buffer::Present(std::mem::take(payload));
                        host.body = Body::Empty;
                    }
                    Buffer::Reserved => {
                        let mut memory = self.pool.take(all as usize);
                        memory[at..at + bytes].copy_from_slice(part);
                        *buffer = Buffer::Present(memory);
                    }
                    Buffer::Present(memory) => memory[at..at + bytes].copy_from_slice(part),
                    Buffer::Away => {}
                }
            }
            Payload::Inline(_) | Payload::Reply(_) | Payload::Nowhere => {}
        }
    }
}

impl Body {
    /// The bytes.
    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Empty => &[],
            Self::Inline(inline) => inline.as_bytes(),
            Self::Buffer(memory) => memory,
        }
    }
}

/// Copies the bytes of a passage into what a host's transfer gathers: those of `payload`, and zeros behind its end. Memory grows with
/// what comes, not with what the host asks for.
#[cold]
fn gather(body: &mut Body, pool: &mut Pool, copy: &CopyRange, payload: &[u8]) {
    let rest = payload.get(copy.device_offset as usize..).unwrap_or_default();
    let bytes = &rest[..rest.len().min(copy.bytes as usize)];
    let at = copy.host_offset as usize;
    let end = at + copy.bytes as usize;
    let mut memory = match std::mem::replace(body, Body::Empty) {
        Body::Buffer(memory) if memory.len() >= end => memory,
        earlier => {
            let mut memory = pool.take(end);
            memory[..at].copy_from_slice(&earlier.as_bytes()[..at]);
            if let Body::Buffer(old) = earlier {
                pool.put(old);
            }
            memory
        }
    };
    memory[at..at + bytes.len()].copy_from_slice(bytes);
    memory[at + bytes.len()..end].fill(0);
    *body = Body::Buffer(memory);
}

/// The buffers of commands, by slot.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    slots: Vec<Option<Reservation>>,
}

#[derive(Debug)]
struct Reservation {
    owner: CommandId,
    bytes: u32,
    buffer: Buffer,
}

/// A command's buffer.
#[derive(Debug)]
pub(super) enum Buffer {
    /// Nothing was put in it yet: memory comes with the first payload.
    Reserved,
    /// Here.
    Present(Vec<u8>),
    /// With the medium, or gone to the host.
    Away,
}

impl Buffers {
    #[inline]
    pub(super) fn reserve(&mut self, owner: CommandId, bytes: u32) {
        let slot = usize::from(owner.slot);
        if slot >= self.slots.len() {
            self.slots.resize_with(slot + 1, || None);
        }
        self.slots[slot] = Some(Reservation { owner, bytes, buffer: Buffer::Reserved });
    }

    /// The buffer of a command, and how long it is to be.
    pub(super) fn get_mut(&mut self, id: CommandId) -> Option<(u32, &mut Buffer)> {
        let reservation = self.slots.get_mut(usize::from(id.slot))?.as_mut()?;
        (reservation.owner == id).then_some((reservation.bytes, &mut reservation.buffer))
    }

    /// Changes one bit of the byte at this place, if it is here.
    #[cold]
    pub(super) fn change_bit(&mut self, id: CommandId, at: u32) {
        if let Some((_, Buffer::Present(bytes))) = self.get_mut(id)
            && let Some(byte) = bytes.get_mut(at as usize)
        {
            *byte ^= 1;
        }
    }

    pub(super) fn release(&mut self, id: CommandId) -> Option<Buffer> {
        let reservation = self.slots.get_mut(usize::from(id.slot))?;
        reservation.take_if(|reservation| reservation.owner == id).map(|reservation| reservation.buffer)
    }
}
