//! The initiator's transfers under way, each under a small number that the drive is told.

use bus::TransferId;
use initiator::Payload;

/// Transfers by number; a number is used again when its transfer is over.
#[derive(Debug, Default)]
pub(crate) struct Transfers {
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) id: TransferId,
    pub(crate) payload: Payload,
}

impl Transfers {
    pub(crate) fn insert(&mut self, entry: Entry) -> u64 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() as u32 - 1
        });
        self.entries[number as usize] = Some(entry);
        number.into()
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<Entry> {
        let entry = self.entries.get_mut(usize::try_from(number).ok()?)?.take()?;
        self.free.push(number as u32);
        Some(entry)
    }

    /// The number of a transfer. Looks at all of them: for cancels, which are rare.
    pub(crate) fn find(&self, id: TransferId) -> Option<u64> {
        let found = self.entries.iter().position(|entry| entry.is_some_and(|entry| entry.id == id));
        found.map(|number| number as u64)
    }
}
