//! A ring that the driver fills: transfer rings and the command ring (xHCI 1.2 clause 4.9.2).
//!
//! Segments are joined by link TRBs, the last of which goes back to the first and toggles the cycle
//! bit. Places are counted without the links. A TD is written behind its first TRB, whose cycle bit
//! is turned last, so that the controller sees all of it or nothing.
//!
//! Always true: `used` places lie behind the enqueue place and are never overwritten before they
//! are given back.

use crate::hardware::{DmaLayout, DmaMemory};
use alloc::boxed::Box;
use alloc::vec::Vec;
use wire::xhci::{TRB_BYTES, TransferTrb, TrbFlags};

/// A place in a ring, and the cycle bit that belongs there when it is filled next or was filled
/// last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) index: u32,
    pub(crate) cycle: bool,
}

/// How a ring is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RingShape {
    pub(crate) segments: u16,
    /// Of a segment, the link counted; 4096 at most, since a segment lies within 64 KiB.
    pub(crate) trbs: u16,
    /// Every link has its chain bit set ([`crate::Quirks::chained_links`]).
    pub(crate) chained_links: bool,
}

#[derive(Debug)]
pub(crate) struct ProducerRing {
    segments: Box<[u64]>,
    /// The first of them, which is mostly the only one.
    first: u64,
    /// TRBs of a segment, and places, which are the same without the link.
    trbs: u16,
    usable: u16,
    chained_links: bool,
    enqueue: u32,
    cycle: bool,
    used: u32,
}

impl ProducerRing {
    /// A ring without anything in it. `None` if there is no memory; nothing is kept then.
    pub(crate) fn allocate(hw: &mut impl DmaMemory, shape: RingShape) -> Option<Self> {
        let mut segments = Vec::new();
        for _ in 0..shape.segments {
            match hw.allocate(shape.segment()) {
                Some(segment) => segments.push(segment),
                None => {
                    segments.into_iter().for_each(|segment| hw.release(segment, shape.segment()));
                    return None;
                }
            }
        }
        let first = segments.first().copied().unwrap_or_default();
        let RingShape { trbs, chained_links, .. } = shape;
        let (segments, usable) = (segments.into(), trbs.saturating_sub(1).max(1));
        Some(Self { segments, first, trbs, usable, chained_links, enqueue: 0, cycle: true, used: 0 })
    }

    /// Gives the memory back.
    pub(crate) fn release(&mut self, hw: &mut impl DmaMemory) {
        for segment in core::mem::take(&mut self.segments) {
            hw.release(segment, segment_layout(self.trbs));
        }
        self.used = 0;
    }

    /// Empties the ring, as if it were new; the controller must have released it.
    pub(crate) fn clear(&mut self, hw: &mut impl DmaMemory) {
        for segment in &self.segments {
            for index in 0..u64::from(self.trbs) {
                hw.write_bytes(segment + index * TRB_BYTES as u64, &[0; TRB_BYTES]);
            }
        }
        (self.enqueue, self.cycle, self.used) = (0, true, 0);
    }

    /// Places, links not counted.
    pub(crate) fn capacity(&self) -> u32 {
        self.per_segment() * self.segments.len() as u32
    }

    /// Places that may be filled. One stays empty: a controller that waits at the last link would
    /// else never see that link in the form that it waits for.
    pub(crate) fn room(&self) -> u32 {
        self.capacity() - 1 - self.used
    }

    /// Where the next TRB goes.
    pub(crate) fn enqueue(&self) -> Position {
        Position { index: self.enqueue, cycle: self.cycle }
    }

    /// Places from `index` up to the next link, itself counted.
    pub(crate) fn until_link(&self, index: u32) -> u32 {
        self.per_segment() - index % self.per_segment()
    }

    /// Places of a segment.
    #[inline]
    pub(crate) fn per_segment(&self) -> u32 {
        self.usable.into()
    }

    /// The bus address of a place.
    #[inline]
    pub(crate) fn address(&self, index: u32) -> u64 {
        if index < self.per_segment() {
            return self.first + u64::from(index) * TRB_BYTES as u64;
        }
        let (segment, within) = (index / self.per_segment(), index % self.per_segment());
        let base = self.segments.get(segment as usize).copied().unwrap_or_default();
        base + u64::from(within) * TRB_BYTES as u64
    }

    /// The place at a bus address; `None` if it is none of this ring's, or a link.
    #[inline]
    pub(crate) fn index_of(&self, address: u64) -> Option<u32> {
        let place = address.wrapping_sub(self.first) / TRB_BYTES as u64;
        if place < u64::from(self.per_segment()) && address.is_multiple_of(TRB_BYTES as u64) {
            return Some(place as u32);
        }
        self.index_in_others(address)
    }

    #[cold]
    fn index_in_others(&self, address: u64) -> Option<u32> {
        self.segments.iter().zip(0u32..).find_map(|(base, number)| {
            let offset = address.checked_sub(*base)?;
            let within = u32::try_from(offset / TRB_BYTES as u64).ok()?;
            let fits = offset % TRB_BYTES as u64 == 0 && within < self.per_segment();
            fits.then(|| number * self.per_segment() + within)
        })
    }

    /// The place of a pointer to go on from; a link stands for what it leads to.
    pub(crate) fn landing(&self, address: u64) -> Option<u32> {
        let link = u64::from(self.per_segment()) * TRB_BYTES as u64;
        let at_link = self.segments.iter().zip(1u32..).find(|(base, _)| **base + link == address);
        match at_link {
            Some((_, next)) => Some(next * self.per_segment() % self.capacity()),
            None => self.index_of(address),
        }
    }

    /// The bases of its segments.
    pub(crate) fn segments(&self) -> &[u64] {
        &self.segments
    }

    /// Places from one to another, going forward.
    #[inline]
    pub(crate) fn distance(&self, from: u32, to: u32) -> u32 {
        if to >= from { to - from } else { to + self.capacity() - from }
    }

    /// The place `count` after this one, its cycle bit turned where the ring goes round.
    pub(crate) fn after(&self, from: Position, count: u32) -> Position {
        let sum = from.index + count;
        let rounds = sum / self.capacity();
        Position { index: sum % self.capacity(), cycle: from.cycle ^ !rounds.is_multiple_of(2) }
    }

    /// Writes a TRB at the enqueue place, and the link after it if it was the last before one. A
    /// `held` TRB has the wrong cycle bit until it is [`published`](Self::publish). There must be
    /// room.
    #[inline]
    pub(crate) fn put(
        &mut self,
        hw: &mut impl DmaMemory,
        encode: impl Fn(bool) -> [u8; TRB_BYTES],
        put: Put,
    ) {
        debug_assert!(self.room() > 0, "the caller has asked for room");
        let at = self.address(self.enqueue);
        hw.write_trb(at, &encode(self.cycle ^ put.held));
        self.used += 1;
        self.enqueue += 1;
        let usable = self.per_segment();
        if self.enqueue >= usable && self.enqueue.is_multiple_of(usable) {
            self.put_link(hw, at + TRB_BYTES as u64, put.chained);
        }
    }

    /// Writes the link behind the last place of a segment.
    #[cold]
    fn put_link(&mut self, hw: &mut impl DmaMemory, at: u64, is_chained: bool) {
        let round = self.enqueue == self.capacity();
        self.enqueue %= self.capacity();
        let flags = if is_chained || self.chained_links { TrbFlags::CHAIN } else { TrbFlags::EMPTY };
        let segment = self.address(self.enqueue);
        let link = TransferTrb::Link { segment, toggle_cycle: round, interrupter: 0, flags };
        hw.write_trb(at, &link.encode(self.cycle));
        self.cycle ^= round;
    }

    /// Turns the cycle bit of a held TRB: the controller may have it now.
    pub(crate) fn publish(
        &self,
        hw: &mut impl DmaMemory,
        at: Position,
        encode: impl Fn(bool) -> [u8; TRB_BYTES],
    ) {
        write_control(hw, self.address(at.index), encode(at.cycle));
    }

    /// Writes another TRB over one that is still the ring's.
    pub(crate) fn overwrite(&self, hw: &mut impl DmaMemory, at: Position, trb: TransferTrb) {
        hw.write_trb(self.address(at.index), &trb.encode(at.cycle));
    }

    /// Gives back the oldest `count` places.
    pub(crate) fn give_back(&mut self, count: u32) {
        self.used = self.used.saturating_sub(count);
    }
}

/// How a TRB is put.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Put {
    /// The TD goes on after it.
    pub(crate) chained: bool,
    /// Not to be seen yet.
    pub(crate) held: bool,
}

impl RingShape {
    const fn segment(self) -> DmaLayout {
        segment_layout(self.trbs)
    }
}

const fn segment_layout(trbs: u16) -> DmaLayout {
    DmaLayout::within_64k(trbs as u32 * TRB_BYTES as u32, 64)
}

fn write_control(hw: &mut impl DmaMemory, at: u64, trb: [u8; TRB_BYTES]) {
    let [.., a, b, c, d] = trb;
    hw.write_u32(at + 12, u32::from_le_bytes([a, b, c, d]));
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::script::Memory;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::vec;
    use wire::xhci::cycle_of;

    fn shape(segments: u16, trbs: u16) -> RingShape {
        RingShape { segments, trbs, chained_links: false }
    }

    fn event(token: u64) -> impl Fn(bool) -> [u8; 16] {
        move |cycle| TransferTrb::EventData { token, interrupter: 0, flags: TrbFlags::EMPTY }.encode(cycle)
    }

    /// The controller's side: follows links, stops at a wrong cycle bit.
    struct Reader {
        at: u64,
        cycle: bool,
    }

    impl Reader {
        fn next(&mut self, memory: &mut Memory) -> Option<u64> {
            loop {
                let mut trb = [0; 16];
                memory.read_bytes(self.at, &mut trb);
                if cycle_of(&trb) != self.cycle {
                    return None;
                }
                match TransferTrb::decode(&trb).unwrap().0 {
                    TransferTrb::Link { segment, toggle_cycle, .. } => {
                        self.at = segment;
                        self.cycle ^= toggle_cycle;
                    }
                    TransferTrb::EventData { token, .. } => {
                        self.at += 16;
                        return Some(token);
                    }
                    other => panic!("{other}"),
                }
            }
        }
    }

    #[test]
    fn a_held_trb_hides_what_is_behind_it() {
        let mut memory = Memory::default();
        let mut ring = ProducerRing::allocate(&mut memory, shape(1, 8)).unwrap();
        let mut reader = Reader { at: ring.address(0), cycle: true };
        let first = ring.enqueue();
        ring.put(&mut memory, event(1), Put { chained: true, held: true });
        ring.put(&mut memory, event(2), Put::default());
        assert_eq!(reader.next(&mut memory), None);
        ring.publish(&mut memory, first, event(1));
        assert_eq!([reader.next(&mut memory), reader.next(&mut memory)], [Some(1), Some(2)]);
    }

    #[test]
    fn a_link_within_a_td_is_chained_and_the_last_one_toggles() {
        let mut memory = Memory::default();
        let mut ring = ProducerRing::allocate(&mut memory, shape(2, 4)).unwrap();
        for token in 0..6 {
            ring.put(&mut memory, event(token), Put { chained: token == 2, held: false });
            ring.give_back(1);
        }
        let mut links = vec![];
        for segment in ring.segments().to_vec() {
            let mut trb = [0; 16];
            memory.read_bytes(segment + 48, &mut trb);
            links.push(TransferTrb::decode(&trb).unwrap());
        }
        let link =
            |segment, toggle_cycle, flags| TransferTrb::Link { segment, toggle_cycle, interrupter: 0, flags };
        let [first, second] = [ring.segments()[0], ring.segments()[1]];
        let expected =
            [(link(second, false, TrbFlags::CHAIN), true), (link(first, true, TrbFlags::EMPTY), true)];
        assert_eq!(links, expected);
        assert_eq!(ring.enqueue(), Position { index: 0, cycle: false });
    }

    #[test]
    fn a_link_stands_for_what_it_leads_to_and_is_no_place() {
        let mut memory = Memory::default();
        let ring = ProducerRing::allocate(&mut memory, shape(2, 4)).unwrap();
        let [first, second] = [ring.segments()[0], ring.segments()[1]];
        assert_eq!((ring.index_of(first + 48), ring.landing(first + 48)), (None, Some(3)));
        assert_eq!((ring.index_of(second + 48), ring.landing(second + 48)), (None, Some(0)));
        assert_eq!(ring.index_of(second + 16), Some(4));
        assert_eq!([first + 8, second + 64, 0, u64::MAX].map(|at| ring.index_of(at)), [None; 4]);
    }

    #[test]
    fn one_place_stays_empty() {
        let mut memory = Memory::default();
        let mut ring = ProducerRing::allocate(&mut memory, shape(1, 4)).unwrap();
        assert_eq!((ring.capacity(), ring.room()), (3, 2));
        ring.put(&mut memory, event(0), Put::default());
        ring.put(&mut memory, event(1), Put::default());
        assert_eq!(ring.room(), 0);
    }

    #[test]
    fn memory_that_ends_is_given_back() {
        let mut memory = Memory::with_pieces(1);
        assert!(ProducerRing::allocate(&mut memory, shape(2, 4)).is_none());
        assert_eq!(memory.pieces_out(), 0);
    }

    proptest! {
        #[test]
        fn what_is_put_is_read_once_and_in_order(
            segments in 1u16..4, trbs in 3u16..9, steps in prop::collection::vec(any::<bool>(), 1..200)
        ) {
            let mut memory = Memory::default();
            let mut ring = ProducerRing::allocate(&mut memory, shape(segments, trbs)).unwrap();
            let mut reader = Reader { at: ring.address(0), cycle: true };
            let (mut model, mut next) = (VecDeque::new(), 0);
            for put in steps {
                if put && ring.room() > 0 {
                    ring.put(&mut memory, event(next), Put::default());
                    model.push_back(next);
                    next += 1;
                } else {
                    let read = reader.next(&mut memory);
                    prop_assert_eq!(read, model.pop_front());
                    ring.give_back(u32::from(read.is_some()));
                }
                prop_assert_eq!(ring.room() as usize, ring.capacity() as usize - 1 - model.len());
            }
        }

        #[test]
        fn places_and_addresses_are_the_same(segments in 1u16..4, trbs in 2u16..9, index in 0u32..30) {
            let mut memory = Memory::default();
            let ring = ProducerRing::allocate(&mut memory, shape(segments, trbs)).unwrap();
            let index = index % ring.capacity();
            prop_assert_eq!(ring.index_of(ring.address(index)), Some(index));
            prop_assert_eq!(ring.landing(ring.address(index)), Some(index));
        }
    }
}
