//! A transfer ring from the controller's side: TRBs are read, checked, and kept as steps until they are done (xHCI 1.2
//! clauses 4.9, 4.10 and 4.11).
//!
//! A TD is taken on whole: one whose last TRB has the wrong cycle bit is not there yet. A real controller would begin with
//! what is there and wait; a driver that writes the first TRB last, as it must, does not see the difference.
//!
//! What a TRB must be is checked here and refused with TRB Error: its type, its length, a buffer that crosses 64 KiB, TD Size
//! (from version 1.0 on), immediate data that are too long or come from the device.
//!
//! Always true: TDs end in the order in which they lie; a chain of TRBs has an end.

use super::memory::{Fault, Memory};
use std::collections::VecDeque;
use wire::usb::{Direction, SetupPacket};
use wire::xhci::{CompletionCode, EventTrb, TRB_BYTES, TransferKind, TransferTrb, TrbFlags, cycle_of};

/// TRBs of a TD, links counted, before its chain is taken for a circle.
const TD_TRBS_MAX: usize = 1024;
/// No buffer of a TRB crosses a multiple of this (table 6-1).
const BOUNDARY: u64 = 64 << 10;
/// What a TRB itself can hold.
const IMMEDIATE_BYTES_MAX: u32 = 8;

/// A place on a ring, and the cycle bit of what is valid there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) at: u64,
    pub(super) cycle: bool,
}

/// What the TRBs of an endpoint are checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    /// `None` of a control endpoint.
    pub(super) direction: Option<Direction>,
    pub(super) packet_bytes: u32,
    pub(super) version: u16,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Ring {
    /// Where the next TD is looked for.
    next: Cursor,
    /// TDs that were taken on, oldest first.
    pub(super) tds: VecDeque<Td>,
    /// Of all of them, what is not done yet.
    steps: VecDeque<Step>,
    /// TDs that the link has.
    pub(super) on_link: usize,
    /// Whether it is known where the ring is.
    pub(super) is_loaded: bool,
    numbers: u32,
}

/// A TD under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Td {
    /// Counts the TDs of a ring.
    pub(super) number: u32,
    /// Steps of it that are left.
    pub(super) steps: u32,
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
pub(super) struct Step {
    pub(super) at: Cursor,
    pub(super) act: Act,
    pub(super) length: u32,
    flags: TrbFlags,
}

/// What a TRB does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Moves bytes from or to memory.
    Move(u64),
    /// Sends bytes that it holds.
    Send([u8; 8]),
    /// Tells the bytes moved, with a value of the driver's.
    Tell(u64),
    /// Nothing, but may be told.
    Nothing,
    /// Begins a control transfer.
    Setup(SetupPacket, TransferKind),
    /// Moves the data of a control transfer.
    ControlData(u64, Direction),
    /// Ends a control transfer.
    Status(Direction),
}

/// What was found where a TD was looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A TD, which is the last of the ring's.
    Td,
    /// Nothing.
    Nothing,
    /// A TRB that is none.
    Broken(Cursor),
}

/// An event that a step is told by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tell {
    pub(super) pointer: u64,
    pub(super) length: u32,
    pub(super) code: CompletionCode,
    pub(super) event_data: bool,
}

impl Ring {
    /// Forgets everything, and goes on elsewhere.
    pub(super) fn restart(&mut self, at: Cursor) {
        self.tds.clear();
        self.steps.clear();
        (self.next, self.on_link, self.is_loaded) = (at, 0, true);
    }

    /// The TRB that is read next.
    pub(super) const fn next(&self) -> Cursor {
        self.next
    }

    /// Where the controller stands: the TRB that is not done yet.
    pub(super) fn stands(&self) -> Cursor {
        self.steps.front().map_or(self.next, |step| step.at)
    }

    /// The step that is under way.
    pub(super) fn step(&self) -> Option<&Step> {
        self.steps.front()
    }

    /// The step that is so many after that.
    pub(super) fn step_at(&self, number: usize) -> Option<&Step> {
        self.steps.get(number)
    }

    /// Takes the link's TDs back. One that has begun stays, the others are read again.
    pub(super) fn unwind(&mut self) {
        let kept = self.tds.front().filter(|td| td.moved > 0).map_or(0, |td| td.steps as usize);
        if let Some(first) = self.steps.get(kept) {
            self.next = first.at;
        }
        self.steps.truncate(kept);
        self.tds.truncate(usize::from(kept > 0));
        self.on_link = 0;
    }

    /// Whether nothing of it is under way, and the driver has put nothing behind that.
    pub(super) fn is_at_rest(&self, memory: &Memory) -> Result<bool, Fault> {
        Ok(self.tds.is_empty() && cycle_of(&memory.read::<TRB_BYTES>(self.next.at)?) != self.next.cycle)
    }

    /// Looks for another TD.
    pub(super) fn fetch(&mut self, memory: &Memory, rules: Rules) -> Result<Found, Fault> {
        let (mut at, known) = (self.next, self.steps.len());
        let mut td = Td {
            number: self.numbers,
            steps: 0,
            bytes: 0,
            moved: 0,
            base: 0,
            before: 0,
            accumulated: 0,
            moves: false,
        };
        for _ in 0..TD_TRBS_MAX {
            let bytes = memory.read::<TRB_BYTES>(at.at)?;
            if cycle_of(&bytes) != at.cycle {
                self.steps.truncate(known);
                return Ok(Found::Nothing);
            }
            let decoded = TransferTrb::decode(&bytes).ok().map(|(trb, _)| trb);
            let Some(trb) = decoded.filter(|trb| rules.allow(trb, td.steps == 0)) else {
                return Ok(self.refuse(known, at));
            };
            let flags = trb.flags();
            if let Some(act) = rules.act_of(&trb) {
                let length = trb.length();
                td.moves |= !matches!(act, Act::Tell(_) | Act::Nothing);
                td.bytes = td.bytes.saturating_add(length);
                td.steps += 1;
                self.steps.push_back(Step { at, act, length, flags });
            }
            at = match trb {
                TransferTrb::Link { segment, toggle_cycle, .. } => {
                    Cursor { at: segment, cycle: at.cycle ^ toggle_cycle }
                }
                _ => Cursor { at: at.at + TRB_BYTES as u64, ..at },
            };
            // A link outside a TD is only passed.
            if flags.has(TrbFlags::CHAIN) || td.steps == 0 {
                continue;
            }
            if !rules.has_right_sizes(self.steps.range(known..), td.bytes, memory)? {
                let at = self.steps.get(known).map_or(at, |step| step.at);
                return Ok(self.refuse(known, at));
            }
            self.next = at;
            self.numbers = self.numbers.wrapping_add(1);
            self.tds.push_back(td);
            return Ok(Found::Td);
        }
        Ok(self.refuse(known, at))
    }

    fn refuse(&mut self, known: usize, at: Cursor) -> Found {
        self.steps.truncate(known);
        Found::Broken(at)
    }

    /// Of a TD's bytes from `offset` on, the first that lie together, at most `bytes`: where they are.
    #[inline(always)]
    pub(super) fn run(&self, td: usize, offset: u32, bytes: u32) -> Option<(Act, u32, u32)> {
        let skipped: u32 = self.tds.iter().take(td).map(|td| td.steps).sum();
        let mut before = self.tds.get(td)?.before;
        for step in self.steps.range(skipped as usize..) {
            if offset < before + step.length {
                let within = offset - before;
                return Some((step.act, within, bytes.min(step.length - within)));
            }
            before += step.length;
        }
        None
    }

    /// The first TD has come so far. Steps that are done by that are told to `tell`; `is_over` says that all of it has moved,
    /// empty packets as well.
    #[inline(always)]
    pub(super) fn advance(&mut self, moved: u32, is_over: bool, mut tell: impl FnMut(Tell)) {
        let Some(td) = self.tds.front_mut() else { return };
        td.moved = moved;
        while let Some(step) = self.steps.front().filter(|_| td.steps > 0) {
            let is_told = step.flags.has(TrbFlags::INTERRUPT_ON_COMPLETION);
            let end = td.before + step.length;
            let (pointer, code) = (step.at.at, CompletionCode::Success);
            match step.act {
                Act::Tell(token) => {
                    if is_told {
                        tell(Tell { pointer: token, length: td.accumulated, code, event_data: true });
                    }
                    td.accumulated = 0;
                }
                Act::Nothing if is_told => tell(Tell { pointer, length: 0, code, event_data: false }),
                Act::Nothing => {}
                _ if moved < end || (end == td.bytes && !is_over) => return,
                _ => {
                    td.accumulated += step.length;
                    if is_told {
                        tell(Tell { pointer, length: 0, code, event_data: false });
                    }
                }
            }
            (td.before, td.steps) = (end, td.steps - 1);
            self.steps.pop_front();
        }
        self.tds.pop_front();
    }

    /// A short packet has ended the first TD. It is told where it came, if that is wanted; the last TRB is told once more by
    /// controllers from version 1.0 on (clause 4.10.1.1).
    pub(super) fn cut(&mut self, moved: u32, rules: Rules, mut tell: impl FnMut(Tell)) {
        self.advance(moved, false, &mut tell);
        let Some(td) = self.tds.pop_front() else { return };
        let code = CompletionCode::ShortPacket;
        let last_code = if rules.version >= 0x0110 { code } else { CompletionCode::Success };
        let (mut accumulated, mut came) = (td.accumulated, false);
        for number in 1..=td.steps {
            let Some(step) = self.steps.pop_front() else { return };
            let is_told = step.flags.has(TrbFlags::INTERRUPT_ON_COMPLETION);
            let pointer = step.at.at;
            match step.act {
                Act::Tell(token) => {
                    if is_told {
                        tell(Tell { pointer: token, length: accumulated, code, event_data: true });
                    }
                    accumulated = 0;
                }
                Act::Nothing => {}
                _ if !came => {
                    let here = moved - td.before;
                    (accumulated, came) = (accumulated + here, true);
                    if is_told || step.flags.has(TrbFlags::INTERRUPT_ON_SHORT) {
                        tell(Tell { pointer, length: step.length - here, code, event_data: false });
                    }
                }
                _ if number == td.steps && is_told && rules.version >= 0x0100 => {
                    tell(Tell { pointer, length: step.length, code: last_code, event_data: false });
                }
                _ => {}
            }
        }
    }

    /// What an event says of the step that is under way: where, and how much of it has not moved.
    pub(super) fn here(&self, code: CompletionCode) -> Option<Tell> {
        let (step, td) = (self.steps.front()?, self.tds.front()?);
        let length = step.length - (td.moved - td.before).min(step.length);
        Some(Tell { pointer: step.at.at, length, code, event_data: false })
    }
}

impl Rules {
    /// Whether a TRB may be on the ring here.
    fn allow(self, trb: &TransferTrb, is_first: bool) -> bool {
        let is_bulk = self.direction.is_some();
        match *trb {
            TransferTrb::Normal { buffer, length, flags, .. } if is_bulk || !is_first => {
                let is_immediate = flags.has(TrbFlags::IMMEDIATE_DATA);
                let may_be_immediate =
                    self.direction == Some(Direction::Out) && length <= IMMEDIATE_BYTES_MAX;
                if is_immediate { may_be_immediate } else { is_within(buffer, length) }
            }
            TransferTrb::DataStage { buffer, length, .. } => {
                !is_bulk && is_first && is_within(buffer, length)
            }
            TransferTrb::SetupStage { flags, .. } => {
                !is_bulk && is_first && flags.has(TrbFlags::IMMEDIATE_DATA) && !flags.has(TrbFlags::CHAIN)
            }
            TransferTrb::StatusStage { .. } => !is_bulk && is_first,
            TransferTrb::Link { .. } | TransferTrb::EventData { .. } | TransferTrb::NoOp { .. } => true,
            TransferTrb::Normal { .. } => false,
        }
    }

    /// What a TRB does; nothing of a link that is not told.
    fn act_of(self, trb: &TransferTrb) -> Option<Act> {
        Some(match *trb {
            TransferTrb::Normal { buffer, flags, .. } if flags.has(TrbFlags::IMMEDIATE_DATA) => {
                Act::Send(buffer.to_le_bytes())
            }
            TransferTrb::Normal { buffer, .. } => Act::Move(buffer),
            TransferTrb::DataStage { buffer, direction, .. } => Act::ControlData(buffer, direction),
            TransferTrb::SetupStage { setup, kind, .. } => Act::Setup(setup, kind),
            TransferTrb::StatusStage { direction, .. } => Act::Status(direction),
            TransferTrb::EventData { token, .. } => Act::Tell(token),
            TransferTrb::NoOp { .. } => Act::Nothing,
            TransferTrb::Link { flags, .. } if flags.has(TrbFlags::INTERRUPT_ON_COMPLETION) => Act::Nothing,
            TransferTrb::Link { .. } => return None,
        })
    }

    /// Whether TD Size of every TRB of a TD says the packets that follow it (clause 4.11.2.4).
    fn has_right_sizes<'a>(
        self,
        steps: impl ExactSizeIterator<Item = &'a Step>,
        bytes: u32,
        memory: &Memory,
    ) -> Result<bool, Fault> {
        // Nothing can be wrong with a TRB alone but that it says more packets follow, which would do no harm.
        if self.version < 0x0100 || steps.len() < 2 {
            return Ok(true);
        }
        let packets = bytes.div_ceil(self.packet_bytes);
        let mut sum = 0;
        for step in steps {
            let trb = TransferTrb::decode(&memory.read::<TRB_BYTES>(step.at.at)?).ok().map(|(trb, _)| trb);
            let Some(
                TransferTrb::Normal { length, td_size, .. } | TransferTrb::DataStage { length, td_size, .. },
            ) = trb
            else {
                continue;
            };
            sum += length;
            let left = if sum == bytes { 0 } else { packets - sum / self.packet_bytes };
            if u32::from(td_size) != left.min(TransferTrb::TD_SIZE_MAX.into()) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Tell {
    /// The event of an endpoint.
    pub(super) const fn event(self, slot: u8, endpoint: wire::xhci::EndpointId) -> EventTrb {
        let Self { pointer, length, code, event_data } = self;
        EventTrb::Transfer { pointer, length, code, event_data, endpoint: Some(endpoint), slot }
    }
}

/// Whether a TRB may have this buffer.
fn is_within(buffer: u64, length: u32) -> bool {
    length <= TransferTrb::LENGTH_MAX && buffer % BOUNDARY + u64::from(length) <= BOUNDARY
}
