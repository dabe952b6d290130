//! The event ring, which the controller fills (xHCI 1.2 clause 4.9.4).
//!
//! There are no links: the segment table says where it goes on, and the cycle bit turns after the
//! last segment. Always true: one event is taken per call, and an event with the wrong cycle bit is
//! not there.

use crate::hardware::{DmaLayout, DmaMemory};
use alloc::vec::Vec;
use wire::xhci::{EventRingDequeue, EventRingSegment, TRB_BYTES, cycle_of};

#[derive(Debug)]
pub(crate) struct EventRing {
    segments: Vec<u64>,
    trbs: u16,
    table: u64,
    entries: u16,
    segment: usize,
    index: u16,
    cycle: bool,
}

impl EventRing {
    /// An empty ring and its segment table. `None` if there is no memory; nothing is kept then.
    pub(crate) fn allocate(hw: &mut impl DmaMemory, segments: u16, trbs: u16) -> Option<Self> {
        let table = hw.allocate(table_layout(segments))?;
        let mut ring =
            Self { segments: Vec::new(), trbs, table, entries: segments, segment: 0, index: 0, cycle: true };
        for number in 0..u64::from(segments) {
            let Some(base) = hw.allocate(ring.layout()) else {
                ring.release(hw);
                return None;
            };
            ring.segments.push(base);
            let entry = EventRingSegment { base, trbs };
            hw.write_bytes(table + number * EventRingSegment::LEN as u64, &entry.encode());
        }
        Some(ring)
    }

    /// Gives the memory back.
    pub(crate) fn release(&mut self, hw: &mut impl DmaMemory) {
        for base in self.segments.drain(..) {
            hw.release(base, DmaLayout::within_64k(u32::from(self.trbs) * TRB_BYTES as u32, 64));
        }
        hw.release(self.table, table_layout(self.entries));
    }

    /// Where the table is, and how many entries it has.
    pub(crate) fn table(&self) -> (u64, u32) {
        (self.table, self.segments.len() as u32)
    }

    /// The next event, if there is one. Not inlined: a TRB stays in one piece where it is handed
    /// over in memory.
    #[inline(never)]
    pub(crate) fn take(&mut self, hw: &mut impl DmaMemory) -> Option<[u8; TRB_BYTES]> {
        let at = self.dequeue()?;
        let trb = hw.read_trb(at);
        if cycle_of(&trb) != self.cycle {
            return None;
        }
        self.index += 1;
        if self.index == self.trbs {
            (self.index, self.segment) = (0, self.segment + 1);
            if self.segment == self.segments.len() {
                (self.segment, self.cycle) = (0, !self.cycle);
            }
        }
        Some(trb)
    }

    /// Returns the register value to write when events were taken.
    pub(crate) fn acknowledgement(&self) -> EventRingDequeue {
        let address = self.dequeue().unwrap_or_default();
        EventRingDequeue { address, segment: self.segment as u8, handler_busy: true }
    }

    fn dequeue(&self) -> Option<u64> {
        self.segments.get(self.segment).map(|base| base + u64::from(self.index) * TRB_BYTES as u64)
    }

    fn layout(&self) -> DmaLayout {
        DmaLayout::within_64k(u32::from(self.trbs) * TRB_BYTES as u32, 64)
    }
}

fn table_layout(segments: u16) -> DmaLayout {
    DmaLayout::within_64k(u32::from(segments) * EventRingSegment::LEN as u32, 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Memory;
    use proptest::prelude::*;

    #[test]
    fn the_table_says_where_the_segments_are() {
        let mut memory = Memory::default();
        let ring = EventRing::allocate(&mut memory, 2, 16).unwrap();
        let (table, entries) = ring.table();
        assert_eq!(entries, 2);
        let mut bytes = [0; 32];
        memory.read_bytes(table, &mut bytes);
        let second = EventRingSegment::decode(&bytes[16..]).unwrap();
        assert_eq!((second.base, second.trbs), (ring.segments[1], 16));
    }

    #[test]
    fn an_event_that_comes_while_it_is_read_is_not_torn() {
        /// Memory in which an event appears between the first twelve bytes that are read and the
        /// rest.
        struct Meanwhile(Memory, Option<(u64, [u8; 16])>);
        impl DmaMemory for Meanwhile {
            fn allocate(&mut self, layout: DmaLayout) -> Option<u64> {
                self.0.allocate(layout)
            }
            fn release(&mut self, address: u64, layout: DmaLayout) {
                self.0.release(address, layout);
            }
            fn read_bytes(&mut self, address: u64, into: &mut [u8]) {
                let (before, after) = into.split_at_mut(12.min(into.len()));
                self.0.read_bytes(address, before);
                if let Some((at, event)) = self.1.take() {
                    self.0.write_bytes(at, &event);
                }
                self.0.read_bytes(address + 12, after);
            }
            fn write_bytes(&mut self, address: u64, bytes: &[u8]) {
                self.0.write_bytes(address, bytes);
            }
        }
        let mut memory = Meanwhile(Memory::default(), None);
        let mut ring = EventRing::allocate(&mut memory, 1, 16).unwrap();
        let event = [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 1, 0x80, 0, 0];
        memory.1 = Some((ring.segments[0], event));
        assert!([ring.take(&mut memory), ring.take(&mut memory)].contains(&Some(event)));
    }

    #[test]
    fn memory_that_ends_is_given_back() {
        let mut memory = Memory::with_pieces(2);
        assert!(EventRing::allocate(&mut memory, 2, 16).is_none());
        assert_eq!(memory.pieces_out(), 0);
    }

    proptest! {
        #[test]
        fn what_the_controller_writes_is_taken_once_and_in_order(
            segments in 1u16..4, steps in prop::collection::vec(any::<bool>(), 1..300)
        ) {
            let mut memory = Memory::default();
            let mut ring = EventRing::allocate(&mut memory, segments, 16).unwrap();
            let capacity = u64::from(segments) * 16;
            let (mut written, mut taken) = (0u64, 0u64);
            for write in steps {
                if write && written - taken < capacity {
                    let (lap, place) = (written / capacity, written % capacity);
                    let base = ring.segments[(place / 16) as usize];
                    let mut trb = [0; 16];
                    trb[..8].copy_from_slice(&written.to_le_bytes());
                    trb[12] = u8::from(lap % 2 == 0);
                    memory.write_bytes(base + place % 16 * 16, &trb);
                    written += 1;
                } else {
                    let trb = ring.take(&mut memory);
                    prop_assert_eq!(trb.is_some(), taken < written);
                    if let Some(trb) = trb {
                        prop_assert_eq!(&trb[..8], &taken.to_le_bytes()[..]);
                        taken += 1;
                    }
                }
            }
        }
    }
}
