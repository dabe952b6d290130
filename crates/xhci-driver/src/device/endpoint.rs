//! An endpoint: its rings, the TDs on them, cancellation and failure (xHCI 1.2 clauses 4.6.8 to
//! 4.6.10, 4.8.3).
//!
//! To cancel TDs the endpoint is stopped. Then, ring by ring: if the controller is in such a TD, or
//! nothing else is left, the dequeue pointer is moved past it; a TD behind one that stays becomes
//! no-ops. After a halt it is the same, with Reset Endpoint instead of Stop Endpoint. The state
//! names the command in flight; there is one at a time.
//!
//! Always true: a TD's completion is reported once, and only when the controller is not in it.

mod hold;

pub(crate) use hold::EndpointHold;

use super::spacing::Spacing;
use super::streams::{StreamArrays, StreamShape};
use super::td::{Td, TdKind, TdRequest, TdState, Writing};
use crate::hardware::DmaMemory;
use crate::limit::LOST_HALTS_MAX;
use crate::retire::{Actual, Ending, EventTarget, Recovery, Retirement, retire};
use crate::ring::{Position, ProducerRing, RingShape};
use crate::types::{EndpointPlan, Refusal};
use alloc::vec::Vec;
use bus::{Completion, Fifo, StreamId, TransferId, TransferStatus};
use units::Instant;
use wire::xhci::{
    CompletionCode, EndpointContext, EndpointId, StreamContext, StreamDequeue, TransferTrb, TrbFlags,
};

/// An endpoint and its rings. The fields that each transfer needs come first and lie together.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Endpoint {
    rings: Vec<Ring>,
    spacing: Spacing,
    /// Transaction errors tried again since a TD ended, and how often that is done.
    retries: u8,
    pub(crate) retries_max: u8,
    /// Halts where no transfer was, since a TD ended.
    lost_halts: u8,
    pub(crate) hold: EndpointHold,
    /// The device's end is cleared; what waits for ours is a request.
    pub(crate) is_cleared: bool,
    pub(crate) writing: Writing,
    /// Transfers so far.
    submitted: u64,
    pub(crate) state: State,
    /// Stop Endpoints said in a row.
    pub(crate) stops: u8,
    pub(crate) id: EndpointId,
    /// `None` of the control endpoint.
    pub(crate) plan: Option<EndpointPlan>,
    pub(crate) context: EndpointContext,
    /// Which ring a segment is of, by address.
    bases: Vec<(u64, u16)>,
    arrays: Option<StreamArrays>,
    moves: Vec<(u16, Position)>,
    leaving: Vec<Completion>,
}

/// The operation in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing; a submit writes the doorbell, unless the endpoint is held.
    Running,
    /// Stop Endpoint.
    Stopping,
    /// Late events are waited for.
    Settling(Instant),
    /// Reset Endpoint, which preserves the numbers or begins again with them.
    Resetting { preserve_state: bool },
    /// Set TR Dequeue Pointer.
    Moving,
    /// Configure Endpoint: it is dropped and added, with its rings.
    Renewing,
    /// Configure Endpoint: it is dropped, and its rings go.
    Leaving,
}

// With several drives it is in no near cache: it begins where a line of a cache does.
#[derive(Debug)]
#[repr(align(64))]
struct Ring {
    ring: ProducerRing,
    /// A stream has mostly one, or none, which then lies here.
    tds: Fifo<Td>,
    /// A TD that the controller stands in has ended.
    must_move: bool,
}

const _: () = assert!(size_of::<Ring>() <= 128);

/// The result of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventResult {
    pub(crate) place: EventTarget,
    pub(crate) completion: Option<Completion>,
    pub(crate) recovery: Recovery,
}

/// The fields of a transfer event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TransferEvent {
    pub(crate) pointer: u64,
    pub(crate) length: u32,
    pub(crate) code: CompletionCode,
    pub(crate) event_data: bool,
}

/// A ring that is to go on elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) dequeue: u64,
    pub(crate) cycle: bool,
    pub(crate) stream: Option<StreamDequeue>,
}

impl Endpoint {
    /// An endpoint with one ring. `None` if there is no memory; nothing is kept then.
    pub(crate) fn plain(
        hw: &mut impl DmaMemory,
        id: EndpointId,
        context: EndpointContext,
        writing: Writing,
        shape: RingShape,
    ) -> Option<Self> {
        let mut endpoint = Self::empty(id, context, writing);
        endpoint.add_ring(hw, shape)?;
        endpoint.context.dequeue = endpoint.rings.first()?.ring.address(0);
        Some(endpoint)
    }

    /// An endpoint with a ring per stream. `None` if there is no memory; nothing is kept then.
    pub(crate) fn with_streams(
        hw: &mut impl DmaMemory,
        plain: &Self,
        streams: StreamShape,
        shape: RingShape,
    ) -> Option<Self> {
        let mut endpoint = Self::empty(plain.id, plain.context, plain.writing);
        (endpoint.plan, endpoint.retries_max) = (plain.plan, plain.retries_max);
        let arrays = StreamArrays::allocate(hw, streams)?;
        for id in 1..=streams.streams {
            if endpoint.add_ring(hw, shape).is_none() {
                let mut arrays = arrays;
                arrays.release(hw);
                endpoint.release(hw);
                return None;
            }
            let start = endpoint.rings.last()?.ring.address(0);
            let context = StreamContext::ring(streams.context_type(), start);
            hw.write_bytes(arrays.context(id), &context.encode());
        }
        endpoint.context = EndpointContext {
            primary_streams: streams.exponent(),
            linear_streams: streams.secondary.is_none(),
            dequeue: arrays.primary,
            cycle: false,
            ..plain.context
        };
        endpoint.arrays = Some(arrays);
        Some(endpoint)
    }

    fn empty(id: EndpointId, context: EndpointContext, writing: Writing) -> Self {
        Self {
            id,
            plan: None,
            writing,
            context,
            state: State::Running,
            hold: EndpointHold::None,
            is_cleared: false,
            stops: 0,
            retries: 0,
            retries_max: 0,
            lost_halts: 0,
            submitted: 0,
            rings: Vec::new(),
            spacing: Spacing::default(),
            bases: Vec::new(),
            arrays: None,
            moves: Vec::new(),
            leaving: Vec::new(),
        }
    }

    fn add_ring(&mut self, hw: &mut impl DmaMemory, shape: RingShape) -> Option<()> {
        let ring = ProducerRing::allocate(hw, shape)?;
        let number = self.rings.len() as u16;
        for &base in ring.segments() {
            let at = self.bases.partition_point(|(other, _)| *other < base);
            self.bases.insert(at, (base, number));
        }
        self.spacing.add(number, ring.address(0));
        self.rings.push(Ring { ring, tds: Fifo::new(), must_move: false });
        Some(())
    }

    /// Gives the memory back; the controller must have released it.
    pub(crate) fn release(&mut self, hw: &mut impl DmaMemory) {
        for ring in &mut self.rings {
            ring.ring.release(hw);
        }
        if let Some(mut arrays) = self.arrays.take() {
            arrays.release(hw);
        }
    }

    /// The ring again, from its beginning. For the control endpoint of a device that gets its
    /// address again.
    pub(crate) fn restart(&mut self, hw: &mut impl DmaMemory) {
        for ring in &mut self.rings {
            ring.ring.clear(hw);
            (ring.must_move, ring.tds) = (false, Fifo::new());
        }
        (self.state, self.stops, self.retries, self.lost_halts) = (State::Running, 0, 0, 0);
        self.moves.clear();
    }

    /// Whether doorbells may be written.
    pub(crate) fn is_running(&self) -> bool {
        self.is_free() && !self.is_held()
    }

    /// Whether no command is in progress.
    pub(crate) fn is_free(&self) -> bool {
        self.state == State::Running
    }

    /// How many streams it has; 0 is none.
    pub(crate) fn streams(&self) -> u16 {
        self.arrays.as_ref().map_or(0, |arrays| arrays.shape.streams)
    }

    /// Whether a transfer is in flight.
    pub(crate) fn is_busy(&self) -> bool {
        !self.is_free() || self.rings.iter().any(|ring| ring.tds.iter().any(Td::is_open))
    }

    /// The streams (0: the one ring) with something for the controller to do.
    pub(crate) fn with_work(&self) -> impl Iterator<Item = u16> + '_ {
        let first = u16::from(self.arrays.is_some());
        let has_work =
            |ring: &Ring| ring.tds.iter().any(|td| matches!(td.state, TdState::Live | TdState::NoOp));
        self.rings.iter().zip(first..).filter(move |(ring, _)| has_work(ring)).map(|(_, stream)| stream)
    }

    #[inline]
    fn ring_of(&mut self, stream: Option<StreamId>) -> Option<&mut Ring> {
        match (stream, &self.arrays) {
            (None, None) => self.rings.first_mut(),
            (Some(stream), Some(_)) => self.rings.get_mut(usize::from(stream.get()) - 1),
            _ => None,
        }
    }

    /// Puts a transfer on its ring.
    #[inline]
    pub(crate) fn submit(
        &mut self,
        hw: &mut impl DmaMemory,
        stream: Option<StreamId>,
        request: TdRequest,
    ) -> Result<(), Refusal> {
        let writing = self.writing;
        let number = self.submitted;
        let ring = self.ring_of(stream).ok_or(Refusal::NoSuchPipe)?;
        let td = Td::write(hw, &mut ring.ring, request, number, writing).ok_or(Refusal::Full)?;
        ring.tds.push_back(td);
        self.submitted += 1;
        Ok(())
    }

    /// Marks a transfer as wanted back; whether it was there.
    pub(crate) fn cancel(&mut self, stream: Option<StreamId>, id: TransferId) -> bool {
        let Some(ring) = self.ring_of(stream) else { return false };
        let td = ring.tds.iter_mut().find(|td| td.id == id && td.state == TdState::Live);
        td.map(|td| td.state = TdState::Cancelled).is_some()
    }

    /// Whether it has halted too often where no transfer is.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost_halts > LOST_HALTS_MAX
    }

    /// Whether the controller stands in a TD that has ended.
    pub(crate) fn must_move(&self) -> bool {
        self.rings.iter().any(|ring| ring.must_move)
    }

    /// Whether there is something for [`Self::settle`].
    pub(crate) fn has_cancelled(&self) -> bool {
        self.rings
            .iter()
            .any(|ring| ring.must_move || ring.tds.iter().any(|td| td.state == TdState::Cancelled))
    }

    /// An event of the oldest TD of a ring, if that has one TRB and is done by it, as most are: in
    /// code that is short. `None` if it is another one, or ends otherwise.
    #[inline]
    pub(crate) fn retire_alone(&mut self, event: TransferEvent) -> Option<Completion> {
        let may_retry = self.retries < self.retries_max;
        let ring = self.rings.get_mut(self.spacing.guess(event.pointer)).filter(|ring| !ring.must_move)?;
        let td = ring.tds.front()?;
        let is_alone = td.trbs == 1 && td.state == TdState::Live && !event.event_data;
        if !is_alone || ring.ring.address(td.first().index) != event.pointer {
            return None;
        }
        let place = td.place(0);
        let Retirement { ending, recovery } = retire(place, event.code, event.length, may_retry);
        if (place, ending, recovery)
            != (EventTarget::Last, Ending::ByLength(Actual::ThisTrb), Recovery::Nothing)
        {
            return None;
        }
        let actual = td.length.saturating_sub(event.length);
        let status = if actual == td.length { TransferStatus::Done } else { TransferStatus::Short };
        let completion = Completion { id: td.id, status, actual };
        ring.tds.pop_front();
        ring.ring.give_back(1);
        ring.give_back();
        (self.retries, self.lost_halts) = (0, 0);
        Some(completion)
    }

    /// Handles any event, and returns its result.
    #[inline(never)]
    pub(crate) fn handle_event(&mut self, event: TransferEvent) -> EventResult {
        let result = self.retire(event);
        if result.completion.is_some() {
            self.hold_after(result.recovery);
        }
        result
    }

    fn retire(&mut self, event: TransferEvent) -> EventResult {
        let may_retry = self.retries < self.retries_max;
        let (number, at, offset) = match self.locate(event) {
            Ok(found) => found,
            Err(place) => return self.retire_none(event, place, may_retry),
        };
        let (packet, ring) = (self.writing.packet, &mut self.rings[number]);
        let td = ring.tds.get_mut(at).expect("it was found there");
        let place = td.place(offset);
        let retirement = retire(place, event.code, event.length, may_retry);
        let recovery = retirement.recovery;
        let moved = |td: &Td, actual| td.moved(&ring.ring, packet, offset, event.length, actual);
        let (id, length) = (td.id, td.length);
        let completion = match retirement.ending {
            Ending::Open | Ending::Oldest(_) => None,
            Ending::Note(actual) => {
                td.noted = Some(moved(td, actual));
                None
            }
            Ending::ByLength(actual) => {
                let actual = moved(td, actual);
                let status = if actual == length { TransferStatus::Done } else { TransferStatus::Short };
                Some(Completion { id, status, actual })
            }
            Ending::With(status, actual) => Some(Completion { id, status, actual: moved(td, actual) }),
            Ending::Dropped => {
                td.state = TdState::Over;
                None
            }
        };
        if completion.is_some() {
            td.state = TdState::Over;
            (self.retries, self.lost_halts) = (0, 0);
        }
        // After a halt it stands there still, were it only a no-op that it halted at.
        ring.must_move |= td.state == TdState::Over && recovery != Recovery::Nothing;
        self.retries += u8::from(recovery == Recovery::SoftRetry);
        if at > 0 {
            ring.pass(at);
        }
        // Where the controller stands nothing new is written, or that would be taken for where it
        // stands.
        if !ring.must_move {
            ring.give_back();
        }
        EventResult { place, completion, recovery }
    }

    /// An event that names no TD.
    #[cold]
    fn retire_none(&mut self, event: TransferEvent, place: EventTarget, may_retry: bool) -> EventResult {
        let Retirement { ending, recovery } = retire(place, event.code, event.length, may_retry);
        self.retries += u8::from(recovery == Recovery::SoftRetry);
        let completion = match ending {
            Ending::Oldest(status) => self.end_oldest(status),
            _ => None,
        };
        // The code that was reported sees to it; a try is counted already.
        let is_lost = completion.is_none() && !matches!(recovery, Recovery::Nothing | Recovery::SoftRetry);
        self.lost_halts += u8::from(is_lost);
        EventResult { place, completion, recovery }
    }

    /// Ends the transfer that has waited longest, if there is one. It stays on its ring until that
    /// is moved on.
    fn end_oldest(&mut self, status: TransferStatus) -> Option<Completion> {
        let first = |ring: &Ring| ring.tds.iter().position(|td| td.state == TdState::Live);
        let waiting = self.rings.iter().enumerate().filter_map(|(number, ring)| Some((number, first(ring)?)));
        let number_of = |&(number, at): &(usize, usize)| self.rings[number].tds.get(at).map(|td| td.number);
        let (number, at) = waiting.min_by_key(number_of)?;
        let ring = &mut self.rings[number];
        let td = ring.tds.get_mut(at)?;
        td.state = TdState::Over;
        ring.must_move = true;
        self.retries = 0;
        Some(Completion { id: td.id, status, actual: td.noted.unwrap_or(0) })
    }

    /// Which ring an address is of, wherever they lie.
    fn search(&self, address: u64) -> Option<usize> {
        let after = self.bases.partition_point(|(base, _)| *base <= address);
        let (_, ring) = self.bases.get(after.checked_sub(1)?)?;
        Some(usize::from(*ring))
    }

    fn locate(&self, event: TransferEvent) -> Result<(usize, usize, u32), EventTarget> {
        let place_in = |number: usize| self.rings.get(number)?.ring.index_of(event.pointer);
        let guess = self.spacing.guess(event.pointer);
        let (number, index) = match place_in(guess) {
            Some(index) => (guess, index),
            None => {
                let number = self.search(event.pointer).ok_or(EventTarget::Nowhere)?;
                (number, place_in(number).ok_or(EventTarget::Nowhere)?)
            }
        };
        let ring = &self.rings[number];
        for (at, td) in ring.tds.iter().enumerate() {
            let is_its_token = td.kind == (TdKind::Bulk { event_data: true }) && td.first().index == index;
            match td.offset_of(&ring.ring, index) {
                Some(_) if event.event_data && is_its_token => return Ok((number, at, td.trbs - 1)),
                Some(offset) if !event.event_data => return Ok((number, at, offset)),
                _ => {}
            }
        }
        Err(EventTarget::Finished)
    }

    /// Ends the transfers to be cancelled, now that the endpoint is stopped. Returns what is reported
    /// at once; what has to wait for [`Self::next_move`] is reported by [`Self::moved`]. `output` is
    /// where the endpoint's context is.
    pub(crate) fn settle(&mut self, hw: &mut impl DmaMemory, output: u64) -> Vec<Completion> {
        let mut completions = self.end_begun();
        for number in 0..self.rings.len() {
            let ring = &self.rings[number];
            if !ring.must_move && ring.tds.iter().all(|td| td.state != TdState::Cancelled) {
                continue;
            }
            let stream = number as u16 + 1;
            let pointer = match &self.arrays {
                None => read_context::<32, _>(hw, output, |b| EndpointContext::decode(b).map(|c| c.dequeue)),
                Some(arrays) => read_context::<16, _>(hw, arrays.context(stream), |b| {
                    StreamContext::decode(b).map(|c| c.dequeue)
                }),
            };
            let ring = &mut self.rings[number];
            let stands = pointer.and_then(|at| ring.ring.landing(at));
            match ring.leave(stands) {
                Some((to, leaving)) => {
                    self.moves.push((number as u16, to));
                    self.leaving.extend(leaving);
                }
                None => completions.extend(ring.void(hw)),
            }
            if ring.must_move {
                completions.extend(ring.void(hw));
                ring.must_move = false;
            }
        }
        completions
    }

    /// The next ring to be moved.
    pub(crate) fn next_move(&mut self) -> Option<Move> {
        let (number, to) = self.moves.pop()?;
        let ring = &self.rings.get(usize::from(number))?.ring;
        let stream = self
            .arrays
            .as_ref()
            .map(|arrays| StreamDequeue { id: number + 1, context_type: arrays.shape.context_type() });
        Some(Move { dequeue: ring.address(to.index), cycle: to.cycle, stream })
    }

    /// Returns the transfers that have left the rings, once all of them are moved.
    pub(crate) fn moved(&mut self) -> Vec<Completion> {
        core::mem::take(&mut self.leaving)
    }

    /// Ends every transfer.
    pub(crate) fn end_all(&mut self, status: TransferStatus) -> Vec<Completion> {
        let mut ended = self.moved();
        self.moves.clear();
        for ring in &mut self.rings {
            for td in ring.tds.iter_mut().filter(|td| td.is_open()) {
                ended.push(Completion { id: td.id, status, actual: td.noted.unwrap_or(0) });
                td.state = TdState::Over;
            }
            ring.give_back();
        }
        ended
    }
}

impl Ring {
    #[inline]
    fn give_back(&mut self) {
        while let Some(trbs) = self.tds.front().filter(|td| td.state == TdState::Over).map(|td| td.trbs) {
            self.tds.pop_front();
            self.ring.give_back(trbs);
        }
    }

    /// Marks the no-op TDs before `at` as over, since the controller has passed them on its way to
    /// that TD.
    fn pass(&mut self, at: usize) {
        let passed = self.tds.iter_mut().take(at).filter(|td| td.state == TdState::NoOp);
        passed.for_each(|td| td.state = TdState::Over);
    }

    /// Where the controller is to go on, and what leaves the ring by that; `None` if it stays where
    /// it is. It never goes back: a transfer that it has passed is not done twice, even if no event
    /// has reported its end.
    fn leave(&mut self, stands: Option<u32>) -> Option<(Position, Vec<Completion>)> {
        let is_here = |td: &Td| stands.and_then(|index| td.offset_of(&self.ring, index)).is_some();
        let here = self.tds.iter().position(is_here).unwrap_or(0);
        let is_cancelled_here =
            self.tds.get(here).is_some_and(|td| td.state == TdState::Cancelled && is_here(td));
        let has_more = self.tds.iter().skip(here).any(|td| td.state == TdState::Live);
        if !self.must_move && !is_cancelled_here && has_more {
            return None;
        }
        self.must_move = true;
        let (mut to, mut leaving) = (self.ring.enqueue(), Vec::new());
        for (number, td) in self.tds.iter_mut().enumerate() {
            match td.state {
                TdState::Live if number < here => continue,
                TdState::Live => {
                    to = td.first();
                    break;
                }
                TdState::Cancelled => leaving.push(td.cancelled()),
                TdState::NoOp | TdState::Over => {}
            }
            td.state = TdState::Over;
        }
        self.give_back();
        Some((to, leaving))
    }

    /// Turns what is wanted back into no-ops, behind something that stays.
    fn void(&mut self, hw: &mut impl DmaMemory) -> Vec<Completion> {
        let mut completions = Vec::new();
        for td in self.tds.iter_mut().filter(|td| td.state == TdState::Cancelled) {
            for number in 0..td.trbs {
                let is_last = number + 1 == td.trbs;
                let flags = if is_last { TrbFlags::INTERRUPT_ON_COMPLETION } else { TrbFlags::EMPTY };
                let at = self.ring.after(td.first(), number);
                self.ring.overwrite(hw, at, TransferTrb::NoOp { interrupter: 0, flags });
            }
            completions.push(td.cancelled());
            td.state = TdState::NoOp;
        }
        completions
    }
}

impl Td {
    fn is_open(&self) -> bool {
        matches!(self.state, TdState::Live | TdState::Cancelled)
    }

    fn cancelled(&self) -> Completion {
        Completion { id: self.id, status: TransferStatus::Cancelled, actual: self.noted.unwrap_or(0) }
    }
}

fn read_context<const N: usize, T>(
    hw: &mut impl DmaMemory,
    at: u64,
    decode: impl Fn(&[u8]) -> Result<T, wire::DecodeError>,
) -> Option<T> {
    let mut bytes = [0; N];
    hw.read_bytes(at, &mut bytes);
    decode(&bytes).ok()
}
