//! What is outstanding: the host's transfers and the device's, each under a small number that the bus uses.
//!
//! Numbers are small and used again, so that looking one up is an index. Buffers of commands are kept beside, by the
//! command's slot, with the owner's whole name, so that a late answer finds nothing. Left out: who fills them.

use super::Body;
use bus::{Pipe, TransferId};
use target::command::CommandId;
use target::{Inline, Payload};

/// Entries by number; a number is used again when its entry is gone.
#[derive(Debug)]
pub(super) struct Ledger<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

/// A host's transfer.
#[derive(Debug)]
pub(super) struct HostEntry {
    pub(super) id: u64,
    pub(super) pipe: Pipe,
    pub(super) length: u32,
    /// Out: the bytes, until a command takes the memory as its buffer.
    pub(super) payload: Vec<u8>,
    /// In: what has come so far.
    pub(super) gathered: Gathered,
}

/// What has come so far of an In transfer.
#[derive(Debug, Default)]
pub(super) enum Gathered {
    /// Nothing.
    #[default]
    Nothing,
    /// All of a small message.
    Inline(Inline),
    /// Bytes from the front of this memory.
    Buffer(Vec<u8>),
}

/// A device's transfer.
#[derive(Debug)]
pub(super) struct DeviceEntry {
    pub(super) id: TransferId,
    pub(super) payload: Payload,
    /// What a [`Payload::Message`] has brought.
    pub(super) message: Vec<u8>,
}

impl<T> Ledger<T> {
    pub(super) const fn new() -> Self {
        Self { entries: Vec::new(), free: Vec::new() }
    }

    pub(super) fn insert(&mut self, entry: T) -> TransferId {
        let number = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() as u32 - 1
        });
        self.entries[number as usize] = Some(entry);
        TransferId(number.into())
    }

    pub(super) fn get_mut(&mut self, number: TransferId) -> Option<&mut T> {
        self.entries.get_mut(usize::try_from(number.0).ok()?)?.as_mut()
    }

    pub(super) fn remove(&mut self, number: TransferId) -> Option<T> {
        let entry = self.entries.get_mut(usize::try_from(number.0).ok()?)?.take()?;
        self.free.push(number.0 as u32);
        Some(entry)
    }

    /// The number of an entry. Looks at all of them: for what is rare, such as a cancel.
    pub(super) fn find(&self, is_it: impl Fn(&T) -> bool) -> Option<TransferId> {
        let found = self.entries.iter().position(|entry| entry.as_ref().is_some_and(&is_it));
        found.map(|number| TransferId(number as u64))
    }
}

impl Gathered {
    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Nothing => &[],
            Self::Inline(inline) => inline.as_bytes(),
            Self::Buffer(memory) => memory,
        }
    }

    pub(super) fn into_body(self) -> Body {
        match self {
            Self::Nothing => Body::Empty,
            Self::Inline(inline) => Body::Inline(inline),
            Self::Buffer(buffer) => Body::Buffer(buffer),
        }
    }
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

    pub(super) fn release(&mut self, id: CommandId) -> Option<Buffer> {
        self.get_mut(id)?;
        self.slots.get_mut(usize::from(id.slot))?.take().map(|reservation| reservation.buffer)
    }
}
