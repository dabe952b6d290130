//! Changes that a server has acknowledged or is about to, and that no flush has covered: kept for a server that is lost.
//!
//! A server that is killed may lose what it has acknowledged (metadata of a qcow2 image, its own cache), and so may its
//! machine. Its host is not to notice: what is kept here is written again after a reconnect, before anything else. Payload lies
//! in a ring of [`RING_BYTES`]; when half of it is used, the client flushes by itself, and a write for which there is no room
//! waits for that.
//!
//! Always true: changes that overlap are never in flight at once (see `client`), so that their order here is the order in which
//! the server carried them out.

use std::collections::VecDeque;

/// Bytes of payload that are kept at most.
pub(super) const RING_BYTES: usize = 8 << 20;
/// Changes that are kept at most.
pub(super) const ENTRIES_MAX: usize = 4096;

/// Names a change.
pub(super) type ChangeId = u64;

/// The changes that no flush has covered.
#[derive(Debug)]
pub(super) struct Unflushed {
    ring: Vec<u8>,
    /// Bytes put into the ring and removed from it, with those left out at its end.
    put: u64,
    removed: u64,
    entries: VecDeque<Change>,
    /// Id of the first entry.
    first: ChangeId,
    /// Entries that are acknowledged.
    acknowledged: usize,
    /// Flushes that have begun.
    flushes: u64,
}

/// A change of the export.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    /// First byte.
    pub(super) offset: u64,
    /// Number of bytes.
    pub(super) len: u32,
    pub(super) content: Content,
    pub(super) state: ChangeState,
    /// Where the ring ends behind it.
    end: u64,
}

/// Content that the bytes get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Bytes in the ring, from here on.
    Data(usize),
    /// Zeroes; without `keeps_space` they may become a hole.
    Zeroes { keeps_space: bool },
}

/// How far a change is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChangeState {
    /// Not acknowledged.
    Pending,
    /// Acknowledged after so many flushes had begun.
    Acknowledged(u64),
    /// Durable, or failed: to be forgotten.
    Over,
}

impl Unflushed {
    /// Nothing is kept. Memory is taken with the first change.
    pub(super) fn new() -> Self {
        Self {
            ring: Vec::new(),
            put: 0,
            removed: 0,
            entries: VecDeque::with_capacity(ENTRIES_MAX),
            first: 0,
            acknowledged: 0,
            flushes: 0,
        }
    }

    /// Where `len` bytes would begin, and the ring end behind them, if there is room.
    fn place(&self, len: usize) -> Option<(usize, u64)> {
        let start = (self.put % RING_BYTES as u64) as usize;
        // What does not fit before the end begins at the start.
        let left_out = if start + len > RING_BYTES { RING_BYTES - start } else { 0 };
        let end = self.put + (left_out + len) as u64;
        let has_room = self.entries.len() < ENTRIES_MAX && end - self.removed <= RING_BYTES as u64;
        has_room.then_some(((start + left_out) % RING_BYTES, end))
    }

    /// Whether so much is kept that a flush is due.
    pub(super) fn is_half_full(&self) -> bool {
        self.put - self.removed > RING_BYTES as u64 / 2 || self.entries.len() > ENTRIES_MAX / 2
    }

    /// Keeps a write. `None`: there is no room.
    pub(super) fn keep_data(&mut self, offset: u64, bytes: &[u8]) -> Option<ChangeId> {
        let (start, end) = self.place(bytes.len())?;
        if self.ring.is_empty() {
            // Pages that are never written take no memory.
            self.ring = vec![0; RING_BYTES];
        }
        self.ring.get_mut(start..start + bytes.len())?.copy_from_slice(bytes);
        Some(self.push(offset, bytes.len() as u32, Content::Data(start), end))
    }

    /// Keeps zeroes. `None`: there is no room.
    pub(super) fn keep_zeroes(&mut self, offset: u64, len: u32, keeps_space: bool) -> Option<ChangeId> {
        let (_, end) = self.place(0)?;
        Some(self.push(offset, len, Content::Zeroes { keeps_space }, end))
    }

    fn push(&mut self, offset: u64, len: u32, content: Content, end: u64) -> ChangeId {
        self.put = end;
        self.entries.push_back(Change { offset, len, content, state: ChangeState::Pending, end });
        self.first + self.entries.len() as u64 - 1
    }

    /// A change that is kept.
    pub(super) fn get(&self, id: ChangeId) -> Option<&Change> {
        self.entries.get(usize::try_from(id.checked_sub(self.first)?).ok()?)
    }

    /// The payload of a change.
    pub(super) fn payload(&self, change: &Change) -> &[u8] {
        match change.content {
            Content::Data(start) => self.ring.get(start..start + change.len as usize).unwrap_or_default(),
            Content::Zeroes { .. } => &[],
        }
    }

    /// Ids of the changes that are kept.
    pub(super) fn ids(&self) -> std::ops::Range<ChangeId> {
        self.first..self.first + self.entries.len() as u64
    }

    /// The server has acknowledged a change.
    pub(super) fn acknowledge(&mut self, id: ChangeId) {
        let state = ChangeState::Acknowledged(self.flushes);
        self.set(id, state);
    }

    /// The change has failed, and its request has ended.
    pub(super) fn fail(&mut self, id: ChangeId) {
        self.set(id, ChangeState::Over);
        self.forget();
    }

    fn set(&mut self, id: ChangeId, state: ChangeState) {
        let index = id.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
        if let Some(change) = index.and_then(|index| self.entries.get_mut(index)) {
            self.acknowledged -= usize::from(matches!(change.state, ChangeState::Acknowledged(_)));
            self.acknowledged += usize::from(matches!(state, ChangeState::Acknowledged(_)));
            change.state = state;
        }
    }

    /// Whether a flush would cover anything.
    pub(super) const fn has_acknowledged(&self) -> bool {
        self.acknowledged > 0
    }

    /// A flush begins, which covers what is acknowledged. Returns its number.
    pub(super) const fn begin_flush(&mut self) -> u64 {
        self.flushes += 1;
        self.flushes
    }

    /// The flush of this number is over: what it covers is durable, or its loss is reported.
    pub(super) fn end_flush(&mut self, number: u64) {
        for change in &mut self.entries {
            if matches!(change.state, ChangeState::Acknowledged(after) if after < number) {
                change.state = ChangeState::Over;
                self.acknowledged -= 1;
            }
        }
        self.forget();
    }

    fn forget(&mut self) {
        while let Some(change) = self.entries.front().filter(|change| change.state == ChangeState::Over) {
            self.removed = change.end;
            self.entries.pop_front();
            self.first += 1;
        }
    }

    /// Whether a change that is acknowledged and not durable overlaps these bytes.
    pub(super) fn overlaps(&self, offset: u64, len: u64) -> bool {
        self.entries.iter().any(|change| {
            change.state != ChangeState::Over
                && change.offset < offset + len
                && offset < change.offset + u64::from(change.len)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_covers_what_was_acknowledged_before_it_began() {
        let mut unflushed = Unflushed::new();
        let first = unflushed.keep_data(0, &[1; 512]).unwrap();
        let second = unflushed.keep_zeroes(512, 512, false).unwrap();
        unflushed.acknowledge(first);
        let flush = unflushed.begin_flush();
        unflushed.acknowledge(second);
        unflushed.end_flush(flush);
        assert_eq!(unflushed.ids(), second..second + 1);
        let flush = unflushed.begin_flush();
        unflushed.end_flush(flush);
        assert!(unflushed.ids().is_empty());
    }

    #[test]
    fn a_change_that_failed_is_forgotten_and_a_pending_one_stays() {
        let mut unflushed = Unflushed::new();
        let (first, second) = (unflushed.keep_data(0, &[1]).unwrap(), unflushed.keep_data(9, &[2]).unwrap());
        let flush = unflushed.begin_flush();
        unflushed.end_flush(flush);
        assert_eq!(unflushed.ids(), first..second + 1);
        unflushed.fail(first);
        assert_eq!(unflushed.ids(), second..second + 1);
        assert_eq!(unflushed.payload(unflushed.get(second).unwrap()), [2]);
        assert!(unflushed.get(first).is_none() && unflushed.get(second + 1).is_none());
        assert!(unflushed.overlaps(0, 10) && !unflushed.overlaps(0, 9) && !unflushed.overlaps(10, 5));
    }

    #[test]
    fn payload_goes_round_the_ring_in_one_piece() {
        const LEN: usize = 3 << 20;
        let mut unflushed = Unflushed::new();
        for round in 0..9_u8 {
            while let Some(id) = unflushed.keep_data(0, &vec![round; LEN]) {
                unflushed.acknowledge(id);
            }
            assert!(unflushed.is_half_full());
            let last = unflushed.ids().end - 1;
            let change = *unflushed.get(last).unwrap();
            assert!(
                unflushed.payload(&change).len() == LEN
                    && unflushed.payload(&change).iter().all(|&byte| byte == round)
            );
            let flush = unflushed.begin_flush();
            unflushed.end_flush(flush);
            assert!(unflushed.ids().is_empty() && !unflushed.is_half_full());
        }
    }

    #[test]
    fn changes_without_payload_are_bounded_as_well() {
        let mut unflushed = Unflushed::new();
        while unflushed.keep_zeroes(0, 512, true).is_some() {}
        assert_eq!(unflushed.ids().end, ENTRIES_MAX as u64);
        assert!(unflushed.keep_data(0, &[0]).is_none() && unflushed.is_half_full());
    }
}
