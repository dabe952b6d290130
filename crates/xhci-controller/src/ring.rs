//! A transfer ring: TRBs are fetched, checked, and kept as steps until they are done (xHCI 1.2
//! clauses 4.9, 4.10 and 4.11).
//!
//! A TD is fetched whole: one whose last TRB has the wrong cycle bit is not there yet. Hardware
//! would start with the first TRBs and wait; a driver that writes the first TRB last, as it must,
//! sees no difference.
//!
//! An invalid TRB ([`super::checks`]) is rejected with TRB Error. Not modelled: events that block
//! their interrupt (BEI).
//!
//! Invariants: TDs complete in ring order; a chain of TRBs is finite.

use super::checks::Rules;
use super::dma::LINE_BYTES;
use super::memory::{Fault, GuestMemory};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use wire::usb::{Direction, SetupPacket};
use wire::xhci::{CompletionCode, EventTrb, TRB_BYTES, TransferKind, TransferTrb, TrbFlags, cycle_of};

/// Maximum TRBs of a TD including links; a longer chain counts as a loop.
const TD_TRBS_MAX: u32 = 1024;
/// A position on a ring, and the cycle bit of valid TRBs there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) at: u64,
    pub(super) cycle: bool,
}

impl Cursor {
    /// Returns the position of the TRB behind it in memory.
    #[inline]
    pub(super) const fn next(self) -> Self {
        Self { at: self.at.wrapping_add(TRB_BYTES as u64), ..self }
    }
}

// Aligned to a cache line: with several drives it is rarely cached.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
pub(super) struct Ring {
    /// Position of the next TD.
    next: Cursor,
    /// The oldest fetched TD, usually the only one, with one TRB.
    first: Option<Td>,
    /// Further TDs and TRBs; allocated on first use.
    more: Option<Box<More>>,
    /// TDs queued on the link.
    pub(super) on_link: u32,
    numbers: u32,
    /// Whether the ring position is known.
    pub(super) is_loaded: bool,
    /// Whether the next TRB was in the cache line of the last read.
    pub(super) has_line: bool,
}

const _: () = assert!(size_of::<Ring>() <= 128);

/// TDs after the first, and the remaining TRBs of all TDs, in ring order.
#[derive(Clone, Debug, Default)]
struct More {
    tds: VecDeque<Td>,
    steps: VecDeque<TrbStep>,
}

/// An outstanding TD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Td {
    /// The current TRB.
    pub(super) step: TrbStep,
    /// Counts the TDs of a ring.
    pub(super) number: u32,
    /// Steps of it that are left, with that.
    steps: u32,
    /// Bytes that it moves, and that have moved.
    pub(super) bytes: u32,
    pub(super) moved: u32,
    /// Bytes that had moved when the link was last given it.
    pub(super) base: u32,
    /// Bytes of steps that are done.
    before: u32,
    /// Bytes since the last event data.
    accumulated: u32,
    /// Whether it moves anything, be it an empty packet.
    pub(super) moves: bool,
}

/// A fetched TRB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TrbStep {
    pub(super) at: Cursor,
    pub(super) act: Act,
    pub(super) length: u32,
    pub(super) flags: TrbFlags,
    /// TD Size: packets that follow, as the driver has it; 0 where a TRB has no such field.
    pub(super) td_size: u8,
}

/// The action of a TRB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Moves bytes from or to memory.
    Move(u64),
    /// Sends bytes that it holds.
    Send([u8; 8]),
    /// Event Data: reports the bytes moved with a driver-defined value.
    EventFields(u64),
    /// Nothing, but may be reported.
    Nothing,
    /// Starts a control transfer.
    Setup(SetupPacket, TransferKind),
    /// Moves the data of a control transfer.
    ControlData(u64, Direction),
    /// Ends a control transfer.
    Status(Direction),
}

/// The result of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A TD, now the last of the ring, of so many TRBs, links included.
    Td(u32),
    /// Nothing.
    Nothing,
    /// An invalid TRB.
    Broken(Cursor),
}

/// The fields of a transfer event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventFields {
    pub(super) pointer: u64,
    pub(super) length: u32,
    pub(super) code: CompletionCode,
    pub(super) event_data: bool,
}

impl Ring {
    /// Drops all TDs and continues at `at`.
    pub(super) fn restart(&mut self, at: Cursor) {
        self.forget();
        // Nothing is read of it before the next doorbell.
        (self.next, self.is_loaded, self.has_line) = (at, true, true);
    }

    fn forget(&mut self) {
        self.first = None;
        if let Some(more) = &mut self.more {
            more.tds.clear();
            more.steps.clear();
        }
        self.on_link = 0;
    }

    /// The TRB that is read next.
    pub(super) const fn next(&self) -> Cursor {
        self.next
    }

    /// Returns the position of the first TRB that is not done.
    pub(super) fn stands(&self) -> Cursor {
        self.first.map_or(self.next, |td| td.step.at)
    }

    /// The oldest fetched TD, usually the only one, with one TRB.
    pub(super) const fn first(&self) -> Option<&Td> {
        self.first.as_ref()
    }

    /// Returns the TD at an index, counted from the oldest.
    pub(super) fn td(&self, place: usize) -> Option<&Td> {
        match place.checked_sub(1) {
            None => self.first.as_ref(),
            Some(place) => self.more.as_ref()?.tds.get(place),
        }
    }

    /// The same, to be changed.
    pub(super) fn td_mut(&mut self, place: usize) -> Option<&mut Td> {
        match place.checked_sub(1) {
            None => self.first.as_mut(),
            Some(place) => self.more.as_mut()?.tds.get_mut(place),
        }
    }

    /// TDs that were fetched, oldest first.
    pub(super) fn tds(&self) -> impl Iterator<Item = &Td> {
        self.first.iter().chain(self.more.iter().flat_map(|more| &more.tds))
    }

    /// Returns how many those are.
    #[inline]
    pub(super) fn count(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.as_ref().map_or(0, |more| more.tds.len())
    }

    /// Removes and returns the first TD.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Td> {
        let gone = self.first.take();
        if let Some(more) = &mut self.more {
            self.first = more.tds.pop_front();
        }
        gone
    }

    fn pop_step(more: &mut Option<Box<More>>) -> Option<TrbStep> {
        more.as_mut()?.steps.pop_front()
    }

    /// Unqueues the TDs of the link. A partially moved TD stays, the others are fetched again.
    pub(super) fn unwind(&mut self) {
        let partial = self.first.filter(|td| td.moved > 0);
        if let Some(td) = self.td(usize::from(partial.is_some())) {
            self.next = td.step.at;
        }
        let (steps, more) = (partial.map_or(0, |td| td.steps as usize - 1), &mut self.more);
        if let Some(more) = more {
            more.tds.clear();
            more.steps.truncate(steps);
        }
        (self.first, self.on_link) = (partial, 0);
    }

    /// Returns whether no TD is outstanding and the driver has queued no more.
    pub(super) fn is_at_rest(&self, memory: &impl GuestMemory) -> Result<bool, Fault> {
        Ok(self.first.is_none() && self.has_nothing_new(memory)?)
    }

    /// Returns whether the link has all fetched TDs and the driver has queued no more.
    #[inline]
    pub(super) fn has_nothing_new(&self, memory: &impl GuestMemory) -> Result<bool, Fault> {
        let has_all = self.on_link as usize == self.count();
        Ok(has_all && !self.has_more(memory)?)
    }

    /// Returns whether the driver has queued more TRBs.
    pub(super) fn has_more(&self, memory: &impl GuestMemory) -> Result<bool, Fault> {
        Ok(cycle_of(&memory.read_trb(self.next.at)?) == self.next.cycle)
    }

    /// Returns the first TD, if its current TRB is its last and moves data.
    #[inline]
    pub(super) fn last_step_mut(&mut self) -> Option<&mut Td> {
        let is_it = |td: &&mut Td| {
            td.steps == 1 && td.moves && td.step.act.moves() && td.before + td.step.length == td.bytes
        };
        self.first.as_mut().filter(is_it)
    }

    /// Fetches a TD of one Normal TRB with nothing after it, if the link has all earlier TDs and
    /// fewer than `ahead` are outstanding. `None` in any other case.
    #[inline]
    pub(super) fn fetch_single(
        &mut self,
        memory: &impl GuestMemory,
        rules: Rules,
        ahead: usize,
    ) -> Option<Found> {
        let count = self.count();
        if self.on_link as usize != count {
            return None;
        }
        if count >= ahead {
            return Some(Found::Nothing);
        }
        let at = self.next;
        let next = at.next();
        let bytes = memory.read_trb(at.at).ok()?;
        if cycle_of(&bytes) != at.cycle {
            self.has_line = false;
            return Some(Found::Nothing);
        }
        if cycle_of(&memory.read_trb(next.at).ok()?) == at.cycle || !self.has_line {
            return None;
        }
        let Ok((trb @ TransferTrb::Normal { flags, .. }, _)) = TransferTrb::decode(&bytes) else {
            return None;
        };
        let act = rules.act_of(&trb)?;
        if flags.has(TrbFlags::CHAIN) || !rules.allow(&trb, true) {
            return None;
        }
        self.append(Td::begun(TrbStep::new(at, act, &trb)), next);
        self.has_line = false;
        Some(Found::Td(1))
    }

    /// Fetches the next TD.
    pub(super) fn fetch(&mut self, memory: &impl GuestMemory, rules: Rules) -> Result<Found, Fault> {
        let at = self.next;
        let bytes = memory.read_trb(at.at)?;
        if cycle_of(&bytes) != at.cycle {
            return Ok(Found::Nothing);
        }
        let decoded = TransferTrb::decode(&bytes).ok().map(|(trb, _)| trb);
        let Some(trb) = decoded.filter(|trb| rules.allow(trb, true)) else { return Ok(Found::Broken(at)) };
        let flags = trb.flags();
        match rules.act_of(&trb) {
            // Nothing can be wrong with the TD Size of a TRB alone but that it says more packets
            // follow, which would do no harm.
            Some(act) if !flags.has(TrbFlags::CHAIN) => {
                let step = TrbStep::new(at, act, &trb);
                self.append(Td::begun(step), behind(&trb, at.next()));
                Ok(Found::Td(1))
            }
            _ => self.fetch_chain(memory, rules, bytes),
        }
    }

    /// Fetches a TD of several TRBs, or after a link; the first TRB was read.
    #[inline(never)]
    fn fetch_chain(
        &mut self,
        memory: &impl GuestMemory,
        rules: Rules,
        first: [u8; TRB_BYTES],
    ) -> Result<Found, Fault> {
        let known = self.more.as_ref().map_or(0, |more| more.steps.len());
        let (mut at, mut begun) = (self.next, None);
        for trbs in 1..=TD_TRBS_MAX {
            let bytes = if trbs == 1 { first } else { memory.read_trb(at.at)? };
            if cycle_of(&bytes) != at.cycle {
                self.truncate(known);
                return Ok(Found::Nothing);
            }
            let decoded = TransferTrb::decode(&bytes).ok().map(|(trb, _)| trb);
            let Some(trb) = decoded.filter(|trb| rules.allow(trb, begun.is_none())) else {
                return Ok(self.refuse(known, at));
            };
            let flags = trb.flags();
            if let Some(act) = rules.act_of(&trb) {
                let step = TrbStep::new(at, act, &trb);
                match &mut begun {
                    None => begun = Some(Td::begun(step)),
                    Some(td) => {
                        td.add(step);
                        self.more.get_or_insert_default().steps.push_back(step);
                    }
                }
            }
            at = behind(&trb, at.next());
            // A link outside of a TD is skipped.
            let Some(td) = begun.filter(|_| !flags.has(TrbFlags::CHAIN)) else { continue };
            let others = self.more.iter().flat_map(|more| more.steps.range(known..));
            if td.steps > 1 && !rules.has_right_sizes(core::iter::once(&td.step).chain(others), td.bytes) {
                return Ok(self.refuse(known, td.step.at));
            }
            self.append(td, at);
            return Ok(Found::Td(trbs));
        }
        Ok(self.refuse(known, at))
    }

    /// Appends a TD.
    #[inline]
    fn append(&mut self, td: Td, next: Cursor) {
        let td = Td { number: self.numbers, ..td };
        (self.next, self.numbers) = (next, self.numbers.wrapping_add(1));
        self.has_line = !next.at.is_multiple_of(LINE_BYTES);
        match self.first {
            None => self.first = Some(td),
            Some(_) => self.more.get_or_insert_default().tds.push_back(td),
        }
    }

    fn truncate(&mut self, known: usize) {
        if let Some(more) = &mut self.more {
            more.steps.truncate(known);
        }
    }

    fn refuse(&mut self, known: usize, at: Cursor) -> Found {
        self.truncate(known);
        Found::Broken(at)
    }

    /// Returns the contiguous bytes of a TD from `offset` on, at most `bytes`: action, offset
    /// within the TRB, length.
    #[inline(always)]
    pub(super) fn run(&self, place: usize, offset: u32, bytes: u32) -> Option<(Act, u32, u32)> {
        let td = self.td(place)?;
        if offset < td.before + td.step.length {
            let within = offset - td.before;
            return Some((td.step.act, within, bytes.min(td.step.length - within)));
        }
        self.run_behind(place, offset, bytes)
    }

    /// The same of a TRB that is not at hand yet.
    #[inline(never)]
    fn run_behind(&self, place: usize, offset: u32, bytes: u32) -> Option<(Act, u32, u32)> {
        let (td, more) = (self.td(place)?, self.more.as_ref()?);
        let skipped: u32 = self.tds().take(place).map(|td| td.steps - 1).sum();
        let mut before = td.before + td.step.length;
        for step in more.steps.iter().skip(skipped as usize).take(td.steps as usize - 1) {
            if offset < before + step.length {
                let within = offset - before;
                return Some((step.act, within, bytes.min(step.length - within)));
            }
            before += step.length;
        }
        None
    }

    /// Advances the first TD to `moved` bytes. Calls `emit` for each completed step with an event;
    /// `is_over` means that all has moved, including empty packets.
    #[inline(always)]
    pub(super) fn advance(&mut self, moved: u32, is_over: bool, mut emit: impl FnMut(EventFields)) {
        let Some(td) = &mut self.first else { return };
        td.moved = moved;
        loop {
            let step = &td.step;
            let is_reported = step.flags.has(TrbFlags::INTERRUPT_ON_COMPLETION);
            let end = td.before + step.length;
            let (pointer, code) = (step.at.at, CompletionCode::Success);
            match step.act {
                Act::EventFields(token) => {
                    if is_reported {
                        emit(EventFields { pointer: token, length: td.accumulated, code, event_data: true });
                    }
                    td.accumulated = 0;
                }
                Act::Nothing if is_reported => {
                    emit(EventFields { pointer, length: 0, code, event_data: false })
                }
                Act::Nothing => {}
                _ if moved < end || (end == td.bytes && !is_over) => return,
                _ => {
                    td.accumulated += step.length;
                    if is_reported {
                        emit(EventFields { pointer, length: 0, code, event_data: false });
                    }
                }
            }
            td.before = end;
            td.steps -= 1;
            if td.steps == 0 {
                break;
            }
            td.step = Self::pop_step(&mut self.more).expect("a step is left");
        }
        self.pop();
    }

    /// Ends the first TD with a short packet. The current TRB reports it if enabled; controllers
    /// from version 1.0 on report the last TRB as well (clause 4.10.1.1).
    pub(super) fn cut(&mut self, moved: u32, rules: Rules, mut emit: impl FnMut(EventFields)) {
        self.advance(moved, false, &mut emit);
        let Some(td) = self.pop() else { return };
        let code = CompletionCode::ShortPacket;
        let last_code = if rules.version >= 0x0110 { code } else { CompletionCode::Success };
        let (mut accumulated, mut came, mut step) = (td.accumulated, false, td.step);
        for number in 1..=td.steps {
            if number > 1 {
                step = Self::pop_step(&mut self.more).expect("a step is left");
            }
            let is_reported = step.flags.has(TrbFlags::INTERRUPT_ON_COMPLETION);
            let pointer = step.at.at;
            match step.act {
                Act::EventFields(token) => {
                    if is_reported {
                        emit(EventFields { pointer: token, length: accumulated, code, event_data: true });
                    }
                    accumulated = 0;
                }
                Act::Nothing => {}
                _ if !came => {
                    let here = moved - td.before;
                    (accumulated, came) = (accumulated + here, true);
                    if is_reported || step.flags.has(TrbFlags::INTERRUPT_ON_SHORT) {
                        emit(EventFields { pointer, length: step.length - here, code, event_data: false });
                    }
                }
                _ if number == td.steps && is_reported && rules.version >= 0x0100 => {
                    emit(EventFields { pointer, length: step.length, code: last_code, event_data: false });
                }
                _ => {}
            }
        }
    }

    /// Returns the event fields for the current TRB: pointer and residue.
    pub(super) fn here(&self, code: CompletionCode) -> Option<EventFields> {
        let td = self.first.as_ref()?;
        let length = td.step.length - (td.moved - td.before).min(td.step.length);
        Some(EventFields { pointer: td.step.at.at, length, code, event_data: false })
    }
}

impl TrbStep {
    #[inline]
    fn new(at: Cursor, act: Act, trb: &TransferTrb) -> Self {
        let td_size = match *trb {
            TransferTrb::Normal { td_size, .. } | TransferTrb::DataStage { td_size, .. } => td_size,
            _ => 0,
        };
        Self { at, act, length: trb.length(), flags: trb.flags(), td_size }
    }
}

impl Td {
    /// Creates a TD that starts with `step`.
    #[inline]
    fn begun(step: TrbStep) -> Self {
        let (number, moved, base, before, accumulated) = (0, 0, 0, 0, 0);
        let (steps, bytes, moves) = (1, step.length, step.act.moves());
        Self { step, number, steps, bytes, moved, base, before, accumulated, moves }
    }

    /// Adds a TRB.
    fn add(&mut self, step: TrbStep) {
        self.moves |= step.act.moves();
        self.bytes = self.bytes.saturating_add(step.length);
        self.steps += 1;
    }
}

impl Act {
    /// Returns whether it moves anything, be it an empty packet.
    const fn moves(self) -> bool {
        !matches!(self, Self::EventFields(_) | Self::Nothing)
    }
}

/// Returns the position after a TRB, which is `next` unless it is a link.
fn behind(trb: &TransferTrb, next: Cursor) -> Cursor {
    match *trb {
        TransferTrb::Link { segment, toggle_cycle, .. } => {
            Cursor { at: segment, cycle: next.cycle ^ toggle_cycle }
        }
        _ => next,
    }
}

impl EventFields {
    /// Returns the event TRB for an endpoint.
    pub(super) const fn event(self, slot: u8, endpoint: wire::xhci::EndpointId) -> EventTrb {
        let Self { pointer, length, code, event_data } = self;
        EventTrb::Transfer { pointer, length, code, event_data, endpoint: Some(endpoint), slot }
    }
}
