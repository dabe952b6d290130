//! The event ring and the interrupter (xHCI 1.2 clauses 4.9.4 and 4.17).
//!
//! An event becomes visible some time after it was posted. The driver looks at the ring when it is
//! called, so events wait here with the time of their visibility and are written before the driver
//! can look; this needs no simulation event. When one entry is left, Event Ring Full Error takes
//! it, and the rest waits for room.
//!
//! Not modelled: more than one interrupter. Invariants: events are written in the order of posting;
//! an entry that the driver has not released is not overwritten.

use super::memory::{Fault, GuestMemory};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use units::{Duration, Instant};
use wire::xhci::{
    CompletionCode, EndpointId, EventRingDequeue, EventRingSegment, EventTrb, InterrupterManagement,
    InterrupterModeration, TRB_BYTES,
};

/// Unit of interrupt moderation.
const MODERATION_UNIT: Duration = Duration::from_ns(250);
/// Moderation after a reset: 1 ms (clause 5.5.2.2).
const MODERATION_DEFAULT: u16 = 4000;

/// TRBs of a segment (clause 6.5).
const SEGMENT_TRBS: RangeInclusive<u16> = 16..=4096;

/// Most events that wait for visibility or room. A fetched TD makes a few, each command and each port
/// change one; a full controller fetches no further TDs.
pub const EVENTS_WAITING_MAX: usize = 1 << 16;

/// Entries that stay free for events of commands and ports while completions of TDs wait: a driver with many commands in
/// flight has fewer entries than their completions need, and Event Ring Full Error would be all that it learns.
const SPARE_EVENTS: usize = 4;

#[derive(Clone, Debug)]
pub(super) struct EventRing {
    pub(super) table: u64,
    pub(super) entries: u32,
    pub(super) dequeue: EventRingDequeue,
    segments: Vec<EventRingSegment>,
    places: u32,
    /// Address of the next event, its segment, the entries left there, and its index from the
    /// first.
    at: u64,
    segment: usize,
    left: u16,
    enqueue: u32,
    /// Dequeue index of the driver.
    taken: u32,
    cycle: bool,
    /// Events that are not visible yet, or wait for room.
    waiting: VecDeque<(Instant, EventTrb)>,
    /// Set when the queue overflowed.
    has_overrun: bool,
    is_full: bool,
    times_full: u32,
    /// Corruption of the next transfer event.
    tampered: Option<Tampering>,
    traffic: EventTraffic,
    last_answer: LastAnswer,
}

/// Where the last completion of a command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastAnswer {
    /// There was none.
    None,
    /// So many events wait up to it, with it.
    Waiting(usize),
    /// So many events were written up to it.
    Written(u64),
}

/// Events that came to an event ring and went, since it was placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventTraffic {
    /// How often a ring was placed, or dropped by a reset: everything else counts from then on.
    pub placed: u32,
    /// Events written.
    pub written: u64,
    /// Events that the driver has passed.
    pub taken: u64,
    /// Events in the ring that the driver has not passed.
    pub present: u32,
    /// Of those written, how many a fault dated before their write ([`Tampering::Early`]).
    pub early: u64,
}

/// A seeded bug: corruption of a transfer event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tampering {
    /// It is not written.
    Lost,
    /// It is written twice.
    Twice,
    /// Its cycle bit is wrong.
    Cycle,
    /// It points to the TRB after the right one.
    Pointer,
    /// Its residue is one byte too large.
    Length,
    /// It points to no TRB: its pointer is 0.
    Nowhere,
    /// Its completion code is Undefined Error, which no driver expects.
    Code,
    /// Its recorded time is before its write.
    Early,
}

#[derive(Clone, Debug)]
pub(super) struct Interrupter {
    pub(super) management: InterrupterManagement,
    pub(super) moderation: InterrupterModeration,
    /// The event handler is busy (EHB).
    is_busy: bool,
    /// Time from which an interrupt is pending.
    wanted: Option<Instant>,
    quiet_until: Instant,
}

impl EventRing {
    pub(super) fn new() -> Self {
        Self {
            table: 0,
            entries: 0,
            dequeue: EventRingDequeue::default(),
            segments: Vec::new(),
            places: 0,
            at: 0,
            segment: 0,
            left: 0,
            enqueue: 0,
            taken: 0,
            cycle: true,
            waiting: VecDeque::new(),
            has_overrun: false,
            is_full: false,
            times_full: 0,
            tampered: None,
            traffic: EventTraffic::default(),
            last_answer: LastAnswer::None,
        }
    }

    /// Returns what came and went since the ring was placed.
    pub(super) const fn traffic(&self) -> EventTraffic {
        EventTraffic { present: self.lie_there(), ..self.traffic }
    }

    /// Returns a ring without a place, after a reset of the controller.
    pub(super) fn reset(&mut self) {
        let placed = self.traffic.placed.wrapping_add(1);
        *self = Self { traffic: EventTraffic { placed, ..EventTraffic::default() }, ..Self::new() };
    }

    /// Returns the number of events that the driver has not taken.
    const fn lie_there(&self) -> u32 {
        self.ahead_of(self.taken)
    }

    /// Places from one that the driver has not passed up to where the next event goes.
    const fn ahead_of(&self, place: u32) -> u32 {
        if place > self.enqueue { self.places + self.enqueue - place } else { self.enqueue - place }
    }

    /// Corrupts the next transfer event.
    pub(super) const fn tamper(&mut self, tampering: Tampering) {
        self.tampered = Some(tampering);
    }

    /// Loads the segment table and resets the ring.
    pub(super) fn load(&mut self, memory: &impl GuestMemory) -> Result<(), Fault> {
        self.segments.clear();
        for number in 0..u64::from(self.entries) {
            let entry = memory.read::<{ EventRingSegment::LEN }>(self.table + 16 * number)?;
            let segment = EventRingSegment::decode(&entry).map_err(|_| Fault { address: self.table })?;
            self.segments.push(segment);
        }
        self.places = self.segments.iter().map(|segment| u32::from(segment.trbs)).sum();
        (self.enqueue, self.cycle) = (0, true);
        self.begin_segment(0);
        self.acknowledge(self.dequeue);
        // Untaken events of the old ring are gone.
        let placed = self.traffic.placed.wrapping_add(1);
        self.traffic = EventTraffic { placed, ..EventTraffic::default() };
        self.last_answer = LastAnswer::None;
        Ok(())
    }

    /// Returns whether its segments have as many TRBs as they may (clause 6.5).
    pub(super) fn check(&self) -> Result<(), Fault> {
        let wrong = self.segments.iter().find(|segment| !SEGMENT_TRBS.contains(&segment.trbs));
        wrong.map_or(Ok(()), |segment| Err(Fault { address: segment.base }))
    }

    /// Handles a new dequeue pointer.
    pub(super) fn take(&mut self, dequeue: EventRingDequeue) {
        let before = self.taken;
        self.acknowledge(dequeue);
        let lap = if self.taken < before { self.places } else { 0 };
        let count = self.taken + lap - before;
        self.traffic.taken += u64::from(count);
    }

    /// Sets the dequeue pointer. Ignored if it is outside of the ring.
    fn acknowledge(&mut self, dequeue: EventRingDequeue) {
        self.dequeue = dequeue;
        let mut before = 0;
        for segment in &self.segments {
            let length = u64::from(segment.trbs) * TRB_BYTES as u64;
            if let Some(offset) = dequeue.address.checked_sub(segment.base).filter(|offset| *offset < length)
            {
                self.taken = before + (offset / TRB_BYTES as u64) as u32;
                return;
            }
            before += u32::from(segment.trbs);
        }
    }

    /// Queues an event that is visible from `at` on, and not before earlier ones. Returns when it
    /// is visible.
    pub(super) fn push(&mut self, at: Instant, event: EventTrb) -> Instant {
        let at = self.waiting.back().map_or(at, |(last, _)| at.max(*last));
        if self.waiting.len() < EVENTS_WAITING_MAX {
            self.waiting.push_back((at, event));
        } else {
            self.has_overrun = true;
        }
        if let EventTrb::CommandCompletion { .. } = event {
            self.last_answer = LastAnswer::Waiting(self.waiting.len());
        }
        at
    }

    /// Returns whether events were dropped for want of room.
    #[inline]
    pub(super) const fn has_overrun(&self) -> bool {
        self.has_overrun
    }

    /// Returns when the next event can be seen that has not been written.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.waiting.front().map(|(at, _)| *at)
    }

    /// Returns when each event can be seen that has not been written.
    #[cfg(test)]
    pub(super) fn times(&self) -> impl Iterator<Item = Instant> {
        self.waiting.iter().map(|(at, _)| *at)
    }

    /// Returns whether the ring holds events that the driver has not taken.
    pub(super) const fn has_untaken(&self) -> bool {
        self.enqueue != self.taken
    }

    /// Returns whether the driver has passed the completions of all commands.
    pub(super) const fn has_passed_answers(&self) -> bool {
        match self.last_answer {
            LastAnswer::None => true,
            LastAnswer::Waiting(_) => false,
            LastAnswer::Written(count) => self.traffic.taken >= count,
        }
    }

    /// Returns whether the ring is full, counting waiting events: the controller pauses until there
    /// is room.
    pub(super) fn is_full(&self) -> bool {
        self.is_full || self.room() as usize <= self.waiting.len() + 1
    }

    /// Returns whether the completion of a TD fits, with events of commands and ports beside it.
    pub(super) fn has_room(&self) -> bool {
        self.room() as usize > self.waiting.len() + SPARE_EVENTS
    }

    /// Returns how often it was full.
    pub(super) const fn times_full(&self) -> u32 {
        self.times_full
    }

    /// Writes visible events while there is room. `fault` is asked for each transfer event, with its
    /// slot and endpoint.
    pub(super) fn write(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        mut fault: impl FnMut(u8, Option<EndpointId>) -> Option<Tampering>,
    ) -> Result<(), Fault> {
        while let Some(&(_, event)) = self.waiting.front().filter(|(at, _)| *at <= now) {
            match self.room() {
                0 => break,
                1 => return self.fill(memory),
                _ => self.is_full = false,
            }
            let tampering = match event {
                EventTrb::Transfer { slot, endpoint, .. } => {
                    self.tampered.take().or_else(|| fault(slot, endpoint))
                }
                _ => None,
            };
            match tampering {
                None => self.put(memory, event)?,
                Some(tampering) => self.put_tampered(memory, event, tampering)?,
            }
            self.waiting.pop_front();
            self.last_answer = match self.last_answer {
                LastAnswer::Waiting(1) => LastAnswer::Written(self.traffic.written),
                LastAnswer::Waiting(count) => LastAnswer::Waiting(count - 1),
                other => other,
            };
        }
        Ok(())
    }

    /// Writes Event Ring Full Error to the last entry.
    #[cold]
    fn fill(&mut self, memory: &mut impl GuestMemory) -> Result<(), Fault> {
        (self.is_full, self.times_full) = (true, self.times_full + 1);
        self.put(memory, EventTrb::HostController { code: CompletionCode::EventRingFull })
    }

    /// Writes a corrupted transfer event; others are unchanged.
    #[cold]
    fn put_tampered(
        &mut self,
        memory: &mut impl GuestMemory,
        event: EventTrb,
        tampering: Tampering,
    ) -> Result<(), Fault> {
        let EventTrb::Transfer { pointer, length, code, event_data, endpoint, slot } = event else {
            return self.put(memory, event);
        };
        let with =
            |pointer, length, code| EventTrb::Transfer { pointer, length, code, event_data, endpoint, slot };
        match tampering {
            Tampering::Lost => Ok(()),
            Tampering::Twice => {
                self.put(memory, event)?;
                self.put(memory, event)
            }
            Tampering::Cycle => {
                self.cycle = !self.cycle;
                let put = self.put(memory, event);
                self.cycle = !self.cycle;
                put
            }
            Tampering::Early => {
                self.traffic.early += 1;
                self.put(memory, event)
            }
            Tampering::Pointer => {
                self.put(memory, with(pointer.wrapping_add(TRB_BYTES as u64), length, code))
            }
            Tampering::Length => self.put(memory, with(pointer, length + 1, code)),
            Tampering::Nowhere => self.put(memory, with(0, length, code)),
            Tampering::Code => self.put(memory, with(pointer, length, CompletionCode::Undefined)),
        }
    }

    /// Returns the free entries; one always stays empty.
    const fn room(&self) -> u32 {
        if self.places == 0 {
            return 0;
        }
        let ahead = if self.taken > self.enqueue { 0 } else { self.places };
        self.taken + ahead - self.enqueue - 1
    }

    #[inline]
    fn put(&mut self, memory: &mut impl GuestMemory, event: EventTrb) -> Result<(), Fault> {
        if self.segments.is_empty() {
            return Ok(());
        }
        self.traffic.written += 1;
        memory.write_trb(self.at, event.encode(self.cycle))?;
        (self.at, self.enqueue) = (self.at + TRB_BYTES as u64, self.enqueue + 1);
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            self.end_segment();
        }
        Ok(())
    }

    #[cold]
    fn end_segment(&mut self) {
        let next = self.segment + 1;
        if next < self.segments.len() {
            return self.begin_segment(next);
        }
        (self.enqueue, self.cycle) = (0, !self.cycle);
        self.begin_segment(0);
    }

    fn begin_segment(&mut self, number: usize) {
        self.segment = number;
        if let Some(segment) = self.segments.get(number) {
            (self.at, self.left) = (segment.base, segment.trbs);
        }
    }
}

impl Interrupter {
    pub(super) fn new() -> Self {
        Self {
            management: InterrupterManagement::default(),
            moderation: InterrupterModeration { interval_250ns: MODERATION_DEFAULT, counter_250ns: 0 },
            is_busy: false,
            wanted: None,
            quiet_until: Instant::ZERO,
        }
    }

    /// Requests an interrupt from `at` on.
    pub(super) fn want(&mut self, at: Instant) {
        self.wanted.get_or_insert(at);
    }

    /// Cancels the request: an interrupter fires only for a ring that is not empty (clause 4.17.2).
    pub(super) const fn want_nothing(&mut self) {
        self.wanted = None;
    }

    /// Handles the end of the event handler (EHB cleared). Events that came meanwhile request an
    /// interrupt from now on.
    pub(super) fn rest(&mut self, now: Instant) {
        self.is_busy = false;
        self.wanted = self.wanted.map(|at| at.max(now));
    }

    /// Returns when it fires next.
    pub(super) fn due(&self) -> Option<Instant> {
        let wanted = self.wanted.filter(|_| self.management.enabled && !self.is_busy)?;
        Some(wanted.max(self.quiet_until))
    }

    /// Fires. The interrupt is a message, so IP is cleared (clause 4.17.5).
    pub(super) fn speak(&mut self, now: Instant) {
        (self.is_busy, self.wanted) = (true, None);
        let units = u64::from(self.moderation.interval_250ns);
        self.quiet_until = now + Duration::from_ps(units * MODERATION_UNIT.as_ps());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::TestMemory;
    use wire::xhci::cycle_of;
    use xhci_driver::{DmaLayout, DmaMemory};

    const NOW: Instant = Instant::ZERO;

    fn at(ns: u64) -> Instant {
        NOW + Duration::from_ns(ns)
    }

    /// A ring of two segments with so many places each, and where they are.
    fn ring(memory: &mut TestMemory, trbs: u16) -> (EventRing, [u64; 2]) {
        let layout = DmaLayout { bytes: 4096, align: 64, boundary: 1 << 16 };
        let [table, first, second] = [(); 3].map(|()| memory.allocate(layout).unwrap());
        for (number, base) in [first, second].into_iter().enumerate() {
            memory.write(table + 16 * number as u64, &EventRingSegment { base, trbs }.encode()).unwrap();
        }
        let mut ring = EventRing::new();
        (ring.table, ring.entries) = (table, 2);
        ring.dequeue.address = first;
        ring.load(memory).unwrap();
        (ring, [first, second])
    }

    fn port(port: u8) -> EventTrb {
        EventTrb::PortStatusChange { port, code: CompletionCode::Success }
    }

    fn seen(memory: &impl GuestMemory, base: u64, index: u64) -> ([u8; 16], bool) {
        let trb = memory.read::<16>(base + 16 * index).unwrap();
        (trb, cycle_of(&trb))
    }

    #[test]
    fn an_event_is_not_seen_before_its_time() {
        let mut memory = TestMemory::new();
        let (mut ring, [first, _]) = ring(&mut memory, 4);
        ring.push(at(200), port(1));
        ring.write(at(199), &mut memory, |_, _| None).unwrap();
        assert_eq!((ring.next_at(), ring.has_untaken()), (Some(at(200)), false));
        ring.write(at(200), &mut memory, |_, _| None).unwrap();
        assert_eq!(seen(&memory, first, 0), (port(1).encode(true), true));
        assert!(ring.has_untaken());
    }

    #[test]
    fn the_place_before_the_last_says_that_the_ring_is_full() {
        let mut memory = TestMemory::new();
        let (mut ring, [first, second]) = ring(&mut memory, 3);
        for number in 1..=9 {
            ring.push(NOW, port(number));
        }
        ring.write(NOW, &mut memory, |_, _| None).unwrap();
        let full = EventTrb::HostController { code: CompletionCode::EventRingFull };
        assert_eq!(seen(&memory, second, 0).0, port(4).encode(true));
        assert_eq!(seen(&memory, second, 1).0, full.encode(true));
        assert_eq!(seen(&memory, second, 2).0, [0; 16]);
        assert!(ring.is_full());
        // Four are taken: the next two are written, the second of them over the first place, its
        // cycle bit turned.
        ring.take(EventRingDequeue { address: second + 16, segment: 1, handler_busy: true });
        ring.write(NOW, &mut memory, |_, _| None).unwrap();
        assert_eq!(seen(&memory, second, 2).0, port(5).encode(true));
        assert_eq!(seen(&memory, first, 0), (port(6).encode(false), false));
    }

    #[test]
    fn one_event_beyond_the_queue_limit_is_an_overflow() {
        let mut memory = TestMemory::new();
        let (mut ring, _) = ring(&mut memory, 3);
        // Four are written, and Event Ring Full Error.
        for _ in 0..4 + 65_536 {
            ring.push(NOW, port(1));
            ring.write(NOW, &mut memory, |_, _| None).unwrap();
        }
        assert_eq!((ring.waiting.len(), ring.has_overrun()), (65_536, false));
        ring.push(NOW, port(1));
        assert_eq!((ring.waiting.len(), ring.has_overrun()), (65_536, true));
    }

    #[test]
    fn events_are_counted_around_the_end_of_the_ring() {
        let mut memory = TestMemory::new();
        let (mut ring, [first, second]) = ring(&mut memory, 2);
        let place = |address| EventRingDequeue { address, segment: 0, handler_busy: false };
        ring.push(NOW, port(1));
        ring.write(NOW, &mut memory, |_, _| None).unwrap();
        for (count, taken) in (1..).zip([first + 16, second, second + 16, first, first + 16]) {
            ring.push(NOW, port(1));
            ring.write(NOW, &mut memory, |_, _| None).unwrap();
            assert_eq!((ring.traffic().written, ring.traffic().present), (count + 1, 2));
            ring.take(place(taken));
            assert_eq!((ring.traffic().taken, ring.traffic().present), (count, 1));
        }
        let placed = ring.traffic().placed;
        ring.reset();
        assert_eq!(ring.traffic(), EventTraffic { placed: placed + 1, ..EventTraffic::default() });
    }

    #[test]
    fn a_table_that_is_not_there_is_a_fault() {
        let mut ring = EventRing::new();
        (ring.table, ring.entries) = (64, 1);
        assert_eq!(ring.load(&TestMemory::new()), Err(Fault { address: 64 }));
    }

    #[test]
    fn the_first_event_after_idle_interrupts_at_once_and_the_next_after_the_interval() {
        let mut interrupter = Interrupter::new();
        interrupter.management.enabled = true;
        interrupter.moderation.interval_250ns = 160;
        interrupter.want(at(100));
        assert_eq!(interrupter.due(), Some(at(100)));
        interrupter.speak(at(100));
        interrupter.want(at(200));
        assert_eq!(interrupter.due(), None, "the driver is at it");
        interrupter.rest(at(300));
        assert_eq!(interrupter.due(), Some(at(40_100)));
        interrupter.speak(at(40_100));
        interrupter.rest(at(40_200));
        interrupter.want(at(90_000));
        assert_eq!(interrupter.due(), Some(at(90_000)));
    }

    #[test]
    fn an_event_during_a_long_handler_interrupts_at_its_end() {
        let mut interrupter = Interrupter::new();
        interrupter.management.enabled = true;
        interrupter.moderation.interval_250ns = 160;
        interrupter.speak(at(100));
        interrupter.want(at(200));
        interrupter.rest(at(70_000));
        assert_eq!(interrupter.due(), Some(at(70_000)));
    }

    #[test]
    fn moderation_is_1_ms_unless_the_driver_says_otherwise() {
        let mut interrupter = Interrupter::new();
        interrupter.management.enabled = true;
        interrupter.speak(NOW);
        interrupter.rest(NOW);
        interrupter.want(at(5));
        assert_eq!(interrupter.due(), Some(at(1_000_000)));
    }
}
