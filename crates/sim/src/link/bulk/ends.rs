//! The endpoints of a port, indexed by address and by what they can do next.
//!
//! Each endpoint has an index into the table and one bit in each [`Set`]. After each change of an
//! endpoint its state is cached in these sets, so that the next sender is found without polling
//! all. Endpoint 0 is not in the table.
//!
//! Invariants: the sets match the state of the endpoints; indices follow the order of installation.

use super::device::DeviceEndpoint;
use super::host::HostEndpoint;
use super::message::Message;
use bus::link::Progress;
use wire::usb::{Direction, EndpointAddress};

/// The ends of endpoints.
#[derive(Clone, Debug)]
pub(super) struct Ends<E> {
    ends: Vec<(EndpointAddress, E)>,
    /// By [`EndpointAddress::index`].
    places: [Option<EndIndex>; EndpointAddress::COUNT],
    /// By direction, Out first.
    of: [Set; 2],
    /// Those that have something to say, and those that may send data.
    talking: Pair,
    /// Those that have the bus, and those that want it.
    bus: Pair,
    /// Whether one would begin a burst on a bus that none of its direction has.
    may_begin: bool,
    /// Those of which something has moved, and has not been reported.
    moved: Set,
    /// Upper bound of the counters of removed endpoints: a new endpoint continues from there, so
    /// that timeouts of the old one do not match it.
    steps: u32,
}

/// Where an end is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EndIndex(u8);

/// Places, a bit each: there are no more addresses than bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Set(u32);

/// Two sets in one word, the second in the upper half: updated about thirty times per command, both
/// at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pair(u64);

/// Queries about an endpoint after each change.
pub(super) trait End {
    /// Whether it is the end that starts bursts.
    const STARTS_BURSTS: bool;

    /// Returns the message counter that timeouts compare.
    fn steps(&self) -> u32;

    /// Starts the message counter at `steps`.
    fn count_from(&mut self, steps: u32);

    /// Returns whether progress is pending.
    fn has_progress(&self) -> bool;

    /// Returns the next progress report.
    fn poll_progress(&mut self) -> Option<Progress>;

    /// Returns whether a message other than data is pending.
    fn has_answer(&self) -> bool;

    /// Returns the next message other than data. Does not change the other queries.
    fn poll_answer(&mut self) -> Option<Message>;

    /// Returns whether it may have data to send. If so it is asked for them, and may have none.
    fn may_send(&self) -> bool;

    /// Returns whether it has the bus: a burst is in progress.
    fn has_bus(&self) -> bool {
        false
    }

    /// Returns whether it would start a burst if granted the bus.
    fn wants_bus(&self) -> bool {
        false
    }
}

impl End for HostEndpoint {
    const STARTS_BURSTS: bool = true;

    fn steps(&self) -> u32 {
        self.steps()
    }

    fn count_from(&mut self, steps: u32) {
        self.count_from(steps);
    }

    fn has_progress(&self) -> bool {
        self.has_progress()
    }

    fn poll_progress(&mut self) -> Option<Progress> {
        self.poll_progress()
    }

    fn has_answer(&self) -> bool {
        self.has_answer()
    }

    fn poll_answer(&mut self) -> Option<Message> {
        self.poll_answer()
    }

    fn may_send(&self) -> bool {
        self.may_send()
    }

    fn has_bus(&self) -> bool {
        self.has_bus()
    }

    fn wants_bus(&self) -> bool {
        self.wants_bus()
    }
}

impl End for DeviceEndpoint {
    const STARTS_BURSTS: bool = false;

    fn steps(&self) -> u32 {
        self.steps()
    }

    fn count_from(&mut self, steps: u32) {
        self.count_from(steps);
    }

    fn has_progress(&self) -> bool {
        self.has_progress()
    }

    fn poll_progress(&mut self) -> Option<Progress> {
        self.poll_progress()
    }

    fn has_answer(&self) -> bool {
        self.has_answer()
    }

    fn poll_answer(&mut self) -> Option<Message> {
        self.poll_answer()
    }

    fn may_send(&self) -> bool {
        self.may_send()
    }
}

impl<E: End> Ends<E> {
    /// Adds an end in the place of what was there under its address. Its place is the last.
    pub(super) fn install(&mut self, address: EndpointAddress, mut end: E) {
        self.drop_end(address);
        end.count_from(self.steps);
        self.ends.push((address, end));
        self.find_places();
    }

    /// Removes an end. Those that came after it have other places from then on.
    pub(super) fn remove(&mut self, address: EndpointAddress) {
        self.drop_end(address);
        self.find_places();
    }

    /// None, after these.
    pub(super) fn reset_copy(&self) -> Self {
        let spent = self.ends.iter().map(|(_, end)| end.steps().wrapping_add(1));
        Self { steps: spent.fold(self.steps, u32::max), ..Self::default() }
    }

    fn drop_end(&mut self, address: EndpointAddress) {
        let gone = self.ends.extract_if(.., |(other, _)| *other == address);
        self.steps = gone.map(|(_, end)| end.steps().wrapping_add(1)).fold(self.steps, u32::max);
    }

    fn find_places(&mut self) {
        *self = Self { ends: std::mem::take(&mut self.ends), steps: self.steps, ..Self::default() };
        for at in 0..self.ends.len() {
            let (address, place) = (self.ends[at].0, EndIndex(at as u8));
            self.places[address.index()] = Some(place);
            self.of[address.direction() as usize].put(place, true);
            self.moved.put(place, self.ends[at].1.has_progress());
            self.note(place);
        }
    }

    /// The place of an address.
    pub(super) const fn place(&self, address: EndpointAddress) -> Option<EndIndex> {
        self.places[address.index()]
    }

    /// The end of an address.
    pub(super) fn get(&self, address: EndpointAddress) -> Option<&E> {
        self.ends.get(self.place(address)?.index()).map(|(_, end)| end)
    }

    /// The same, to be changed in nothing that is noted of it.
    pub(super) fn get_mut(&mut self, address: EndpointAddress) -> Option<&mut E> {
        let place = self.place(address)?;
        self.ends.get_mut(place.index()).map(|(_, end)| end)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (EndpointAddress, &E)> {
        self.ends.iter().map(|(address, end)| (*address, end))
    }

    /// Returns whether any answers, may send data, or would begin a burst on a bus that none of
    /// them has.
    pub(super) const fn may_send(&self) -> bool {
        !self.talking.is_empty() || self.may_begin
    }

    const fn may_begin_of(&self, of: Set) -> bool {
        !self.wanting_bus().and(of).is_empty() && self.having_bus().and(of).is_empty()
    }

    /// Those that may send data.
    pub(super) const fn sending(&self) -> Set {
        self.talking.second()
    }

    /// Those that have the bus.
    pub(super) const fn having_bus(&self) -> Set {
        self.bus.first()
    }

    /// Those that would start a burst.
    pub(super) const fn wanting_bus(&self) -> Set {
        self.bus.second()
    }

    /// Those of a direction.
    pub(super) const fn of(&self, direction: Direction) -> Set {
        self.of[direction as usize]
    }

    /// Changes an end, and notes what it would do next.
    #[inline(always)]
    pub(super) fn change<R>(&mut self, place: EndIndex, change: impl FnOnce(&mut E) -> R) -> R {
        let end = &mut self.ends[place.index()].1;
        let result = change(end);
        if end.has_progress() {
            self.moved.put(place, true);
        }
        self.talking.put(place, [end.has_answer(), end.may_send()]);
        if E::STARTS_BURSTS {
            let bus = [end.has_bus(), end.wants_bus()];
            self.note_bus(place, bus);
        }
        result
    }

    /// Returns whether progress is pending.
    pub(super) const fn has_progress(&self) -> bool {
        !self.moved.is_empty()
    }

    /// Returns the next progress report.
    #[inline]
    pub(super) fn poll_progress(&mut self) -> Option<Progress> {
        let place = self.moved.first()?;
        let end = &mut self.ends[place.index()].1;
        let progress = end.poll_progress();
        self.moved.put(place, end.has_progress());
        progress
    }

    /// Returns the next message other than data, of the first endpoint that has one.
    #[inline]
    pub(super) fn poll_answer(&mut self) -> Option<Message> {
        let place = self.talking.first().first()?;
        let end = &mut self.ends[place.index()].1;
        let answer = end.poll_answer();
        self.talking.put(place, [end.has_answer(), end.may_send()]);
        answer
    }

    fn note(&mut self, place: EndIndex) {
        let end = &self.ends[place.index()].1;
        self.talking.put(place, [end.has_answer(), end.may_send()]);
        if E::STARTS_BURSTS {
            let bus = [end.has_bus(), end.wants_bus()];
            self.note_bus(place, bus);
        }
    }

    #[inline]
    fn note_bus(&mut self, place: EndIndex, bus: [bool; 2]) {
        let before = self.bus;
        self.bus.put(place, bus);
        if self.bus != before {
            let [out, into] = self.of;
            self.may_begin = self.may_begin_of(out) || self.may_begin_of(into);
        }
    }
}

impl<E> Default for Ends<E> {
    fn default() -> Self {
        Self {
            ends: Vec::new(),
            places: [None; EndpointAddress::COUNT],
            of: [Set::default(); 2],
            talking: Pair::default(),
            bus: Pair::default(),
            may_begin: false,
            moved: Set::default(),
            steps: 0,
        }
    }
}

impl EndIndex {
    const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Pair {
    /// The first place of the second set.
    const SECOND: u64 = 1 << u32::BITS;

    const fn put(&mut self, place: EndIndex, [first, second]: [bool; 2]) {
        let noted = first as u64 + Self::SECOND * second as u64;
        self.0 = self.0 & !((1 + Self::SECOND) << place.0) | noted << place.0;
    }

    const fn is_empty(self) -> bool {
        self.0 == 0
    }

    const fn first(self) -> Set {
        Set(self.0 as u32)
    }

    const fn second(self) -> Set {
        Set((self.0 / Self::SECOND) as u32)
    }
}

impl Set {
    const fn put(&mut self, place: EndIndex, is_in: bool) {
        self.0 = self.0 & !(1 << place.0) | (is_in as u32) << place.0;
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those that are in the other one as well.
    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// All but one.
    pub(super) const fn without(self, place: EndIndex) -> Self {
        Self(self.0 & !(1 << place.0))
    }

    /// The first.
    pub(super) fn first(self) -> Option<EndIndex> {
        (self.0 != 0).then(|| EndIndex(self.0.trailing_zeros() as u8))
    }

    /// The first after a place, going round: that place comes last.
    pub(super) fn after(self, place: EndIndex) -> Option<EndIndex> {
        let later = Self(self.0 & (u32::MAX - 1) << place.0);
        if later.is_empty() { self.first() } else { later.first() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::bulk::Endpoint;
    use proptest::prelude::*;

    #[test]
    fn an_end_in_the_place_of_another_goes_on_counting() {
        let address = EndpointAddress::at::<1>(Direction::In);
        let end = || HostEndpoint::new(Endpoint::bulk(address, 1024, 1, 0));
        let mut ends = Ends::default();
        ends.install(address, end());
        let place = ends.place(address).unwrap();
        ends.change(place, |end| end.count_from(116));
        ends.install(address, end());
        assert_eq!(ends.get(address).map(HostEndpoint::steps), Some(117));
        let mut reset_copy = ends.reset_copy();
        reset_copy.install(address, end());
        assert_eq!(reset_copy.get(address).map(HostEndpoint::steps), Some(118));
    }

    proptest! {
        #[test]
        fn going_round_a_set_meets_each_once_and_where_it_began_last(bits in any::<u32>(), start in 0_u8..32) {
            let (all, start) = (Set(bits), EndIndex(start));
            let (mut left, mut at, mut met) = (all, start, Vec::new());
            while let Some(next) = left.after(at) {
                (left, at) = (left.without(next), next);
                met.push(next.0);
            }
            let expected = (1..=32).map(|step| (start.0 + step) % 32).filter(|at| bits >> at & 1 == 1);
            prop_assert_eq!(met, expected.collect::<Vec<_>>());
        }
    }
}
