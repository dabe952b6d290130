//! A transfer ring from the controller's side: TRBs are read, checked, and kept as steps until they
//! are done (xHCI 1.2 clauses 4.9, 4.10 and 4.11).
//!
//! A TD is fetched whole: one whose last TRB has the wrong cycle bit is not there yet. A real
//! controller would begin with what is there and wait; a driver that writes the first TRB last, as
//! it must, does not see the difference.
//!
//! A TRB that is not what it must be ([`super::checks`]) is refused with TRB Error. Not modelled:
//! events that block their interrupt (BEI).
//!
//! Invariants: TDs end in the order in which they lie; a chain of TRBs has an end.

use super::checks::Rules;
use super::dma::LINE_BYTES;
use super::memory::{Fault, Memory};
use std::collections::VecDeque;
use wire::usb::{Direction, SetupPacket};
use wire::xhci::{CompletionCode, EventTrb, TRB_BYTES, TransferKind, TransferTrb, TrbFlags, cycle_of};

/// TRBs of a TD, links counted, before its chain is taken for a circle.
const TD_TRBS_MAX: u32 = 1024;
/// A place on a ring, and the cycle bit of what is valid there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) at: u64,
    pub(super) cycle: bool,
}

// With several drives it is in no near cache: it begins where a line of a cache does.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
pub(super) struct Ring {
    /// Where the next TD is looked for.
    next: Cursor,
    /// The oldest TD that was fetched, which is mostly the only one, and has one TRB.
    first: Option<Td>,
    /// What is beside that; made when it is needed, and kept.
    more: Option<Box<More>>,
    /// TDs that the link has.
    pub(super) on_link: u32,
    numbers: u32,
    /// Whether it is known where the ring is.
    pub(super) is_loaded: bool,
    /// Whether the TRB that is read next came with the line of the last read.
    pub(super) has_line: bool,
}

const _: () = assert!(size_of::<Ring>() <= 128);

/// TDs behind the first, and of all TDs the TRBs behind that at hand, in the order of the ring.
#[derive(Clone, Debug, Default)]
struct More {
    tds: VecDeque<Td>,
    steps: VecDeque<TrbStep>,
}

/// A TD in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Td {
    /// The TRB that is not done yet.
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

/// What is left of a TRB when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TrbStep {
    pub(super) at: Cursor,
    pub(super) act: Act,
    pub(super) length: u32,
    pub(super) flags: TrbFlags,
}

/// What a TRB does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Moves bytes from or to memory.
    Move(u64),
    /// Sends bytes that it holds.
    Send([u8; 8]),
    /// Reports the bytes moved, with a value of the driver's.
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

/// What was found where a TD was looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A TD, which is the last of the ring's, of so many TRBs, links counted.
    Td(u32),
    /// Nothing.
    Nothing,
    /// A TRB that is none.
    Broken(Cursor),
}

/// An event that a step is reported by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventFields {
    pub(super) pointer: u64,
    pub(super) length: u32,
    pub(super) code: CompletionCode,
    pub(super) event_data: bool,
}

impl Ring {
    /// Forgets everything, and goes on elsewhere.
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

    /// Where the controller stands: the TRB that is not done yet.
    pub(super) fn stands(&self) -> Cursor {
        self.first.map_or(self.next, |td| td.step.at)
    }

    /// The oldest TD that was fetched.
    pub(super) const fn first(&self) -> Option<&Td> {
        self.first.as_ref()
    }

    /// The TD that is so many after the oldest.
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

    /// How many those are.
    #[inline]
    pub(super) fn count(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.as_ref().map_or(0, |more| more.tds.len())
    }

    /// The first TD is gone, and its steps are.
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

    /// Takes the link's TDs back. One that has begun stays, the others are read again.
    pub(super) fn unwind(&mut self) {
        let kept = self.first.filter(|td| td.moved > 0);
        if let Some(td) = self.td(usize::from(kept.is_some())) {
            self.next = td.step.at;
        }
        let (steps, more) = (kept.map_or(0, |td| td.steps as usize - 1), &mut self.more);
        if let Some(more) = more {
            more.tds.clear();
            more.steps.truncate(steps);
        }
        (self.first, self.on_link) = (kept, 0);
    }

    /// Whether nothing of it is in flight, and the driver has put nothing behind that.
    pub(super) fn is_at_rest(&self, memory: &Memory) -> Result<bool, Fault> {
        Ok(self.first.is_none() && self.has_nothing_new(memory)?)
    }

    /// Whether the link has all that was fetched, and the driver has put nothing behind that.
    #[inline]
    pub(super) fn has_nothing_new(&self, memory: &Memory) -> Result<bool, Fault> {
        let has_all = self.on_link as usize == self.count();
        Ok(has_all && !self.has_more(memory)?)
    }

    /// Whether the driver has put something behind what was fetched.
    pub(super) fn has_more(&self, memory: &Memory) -> Result<bool, Fault> {
        Ok(cycle_of(&memory.read(self.next.at)?) == self.next.cycle)
    }

    /// The first TD, if the TRB at hand is the last of it and moves something.
    #[inline]
    pub(super) fn last_step_mut(&mut self) -> Option<&mut Td> {
        let is_it = |td: &&mut Td| {
            td.steps == 1 && td.moves && td.step.act.moves() && td.before + td.step.length == td.bytes
        };
        self.first.as_mut().filter(is_it)
    }

    /// Looks for a TD of one Normal TRB, with nothing behind it, if the link has all before it and
    /// no more than `ahead` are to be fetched. `None` if there is another one, or no memory.
    #[inline]
    pub(super) fn fetch_single(&mut self, memory: &Memory, rules: Rules, ahead: usize) -> Option<Found> {
        let count = self.count();
        if self.on_link as usize != count {
            return None;
        }
        if count >= ahead {
            return Some(Found::Nothing);
        }
        let at = self.next;
        let both = memory.slice(at.at, 2 * TRB_BYTES).ok()?;
        let (bytes, behind) = (both.first_chunk()?, both.last_chunk()?);
        if cycle_of(bytes) != at.cycle {
            self.has_line = false;
            return Some(Found::Nothing);
        }
        if cycle_of(behind) == at.cycle || !self.has_line {
            return None;
        }
        let Ok((trb @ TransferTrb::Normal { flags, length, .. }, _)) = TransferTrb::decode(bytes) else {
            return None;
        };
        let act = rules.act_of(&trb)?;
        if flags.has(TrbFlags::CHAIN) || !rules.allow(&trb, true) {
            return None;
        }
        self.append(
            Td::begun(TrbStep { at, act, length, flags }),
            Cursor { at: at.at + TRB_BYTES as u64, ..at },
        );
        self.has_line = false;
        Some(Found::Td(1))
    }

    /// Looks for another TD.
    pub(super) fn fetch(&mut self, memory: &Memory, rules: Rules) -> Result<Found, Fault> {
        let at = self.next;
        let bytes = memory.read::<TRB_BYTES>(at.at)?;
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
                let next = Cursor { at: at.at + TRB_BYTES as u64, ..at };
                let step = TrbStep { at, act, length: trb.length(), flags };
                self.append(Td::begun(step), behind(&trb, next));
                Ok(Found::Td(1))
            }
            _ => self.fetch_chain(memory, rules),
        }
    }

    /// Looks for a TD of several TRBs, or behind a link.
    #[inline(never)]
    fn fetch_chain(&mut self, memory: &Memory, rules: Rules) -> Result<Found, Fault> {
        let known = self.more.as_ref().map_or(0, |more| more.steps.len());
        let (mut at, mut begun) = (self.next, None);
        for trbs in 1..=TD_TRBS_MAX {
            let bytes = memory.read::<TRB_BYTES>(at.at)?;
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
                let step = TrbStep { at, act, length: trb.length(), flags };
                match &mut begun {
                    None => begun = Some(Td::begun(step)),
                    Some(td) => {
                        td.add(step);
                        self.more.get_or_insert_default().steps.push_back(step);
                    }
                }
            }
            at = behind(&trb, Cursor { at: at.at + TRB_BYTES as u64, ..at });
            // A link outside a TD is only passed.
            let Some(td) = begun.filter(|_| !flags.has(TrbFlags::CHAIN)) else { continue };
            let others = self.more.iter().flat_map(|more| more.steps.range(known..));
            if td.steps > 1
                && !rules.has_right_sizes(std::iter::once(&td.step).chain(others), td.bytes, memory)?
            {
                return Ok(self.refuse(known, td.step.at));
            }
            self.append(td, at);
            return Ok(Found::Td(trbs));
        }
        Ok(self.refuse(known, at))
    }

    /// Takes a TD on behind the others.
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

    /// Of a TD's bytes from `offset` on, the first that lie together, at most `bytes`: where they
    /// are.
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

    /// The first TD has come so far. Steps that are done by that are reported to `emit`; `is_over`
    /// says that all of it has moved, empty packets as well.
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

    /// A short packet has ended the first TD. It is reported where it came, if that is wanted; the
    /// last TRB is reported once more by controllers from version 1.0 on (clause 4.10.1.1).
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

    /// What an event says of the step that is in flight: where, and how much of it has not moved.
    pub(super) fn here(&self, code: CompletionCode) -> Option<EventFields> {
        let td = self.first.as_ref()?;
        let length = td.step.length - (td.moved - td.before).min(td.step.length);
        Some(EventFields { pointer: td.step.at.at, length, code, event_data: false })
    }
}

impl Td {
    /// A TD that begins with this.
    #[inline]
    fn begun(step: TrbStep) -> Self {
        let (number, moved, base, before, accumulated) = (0, 0, 0, 0, 0);
        let (steps, bytes, moves) = (1, step.length, step.act.moves());
        Self { step, number, steps, bytes, moved, base, before, accumulated, moves }
    }

    /// There is one more TRB.
    fn add(&mut self, step: TrbStep) {
        self.moves |= step.act.moves();
        self.bytes = self.bytes.saturating_add(step.length);
        self.steps += 1;
    }
}

impl Act {
    /// Whether it moves anything, be it an empty packet.
    const fn moves(self) -> bool {
        !matches!(self, Self::EventFields(_) | Self::Nothing)
    }
}

/// Where a ring goes on behind a TRB, which is `next` unless that is a link.
fn behind(trb: &TransferTrb, next: Cursor) -> Cursor {
    match *trb {
        TransferTrb::Link { segment, toggle_cycle, .. } => {
            Cursor { at: segment, cycle: next.cycle ^ toggle_cycle }
        }
        _ => next,
    }
}

impl EventFields {
    /// The event of an endpoint.
    pub(super) const fn event(self, slot: u8, endpoint: wire::xhci::EndpointId) -> EventTrb {
        let Self { pointer, length, code, event_data } = self;
        EventTrb::Transfer { pointer, length, code, event_data, endpoint: Some(endpoint), slot }
    }
}
