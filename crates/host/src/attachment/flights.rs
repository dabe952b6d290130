//! The transport's transfers under way, each under a small number that the door is told.

use crate::usbfs::CellId;
use bus::{Direction, TransferId};
use initiator::Payload;

/// Transfers by number; a number is used again when its transfer is over.
#[derive(Debug, Default)]
pub(super) struct Flights {
    entries: Vec<Option<Flight>>,
    free: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    /// As the transport names it.
    pub(super) id: TransferId,
    pub(super) payload: Payload,
    pub(super) direction: Direction,
    /// Where its bytes are.
    pub(super) cell: CellId,
    /// The cell was taken for it alone.
    pub(super) is_message: bool,
}

impl Flights {
    pub(super) fn insert(&mut self, flight: Flight) -> TransferId {
        let number = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() as u32 - 1
        });
        self.entries[number as usize] = Some(flight);
        TransferId(number.into())
    }

    pub(super) fn remove(&mut self, number: TransferId) -> Option<Flight> {
        let flight = self.entries.get_mut(usize::try_from(number.0).ok()?)?.take()?;
        self.free.push(number.0 as u32);
        Some(flight)
    }

    /// The number of a transfer. Looks at all of them: for cancels, which are rare.
    pub(super) fn find(&self, id: TransferId) -> Option<TransferId> {
        let found = self.entries.iter().position(|entry| entry.is_some_and(|entry| entry.id == id));
        found.map(|number| TransferId(number as u64))
    }
}
