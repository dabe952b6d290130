//! Transfer descriptors: what of a ring belongs to one transfer, and how it is written (xHCI 1.2
//! clause 4.11).
//!
//! Bulk: data TRBs, and an event data TRB where these are in use. Control: setup, data, status,
//! three TDs to the controller, one to us. Left out: buffers in several parts. Always
//! true: a TD that does not fit is not begun.

use crate::hardware::DmaMemory;
use crate::retire::{Actual, EventTarget};
use crate::ring::{Position, ProducerRing, Put, TdSize, TrbSpan, TrbSpans};
use bus::TransferId;
use wire::usb::{Direction, SetupPacket};
use wire::xhci::{TransferKind, TransferTrb, TrbFlags};

/// The most bytes that a TRB itself can hold.
const IMMEDIATE_BYTES_MAX: u32 = 8;

/// One transfer on a ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Td {
    pub(crate) id: TransferId,
    /// Counts the transfers of an endpoint, of all its rings.
    pub(crate) number: u64,
    pub(crate) buffer: u64,
    pub(crate) length: u32,
    /// Where it begins, and the cycle bit there.
    first: u32,
    cycle: bool,
    pub(crate) kind: TdKind,
    pub(crate) state: TdState,
    pub(crate) trbs: u32,
    /// Bytes transferred, as reported by an event before the last.
    pub(crate) noted: Option<u32>,
}

// There is one in each ring, and with several drives what it lies in is in no near cache.
const _: () = assert!(size_of::<Td>() <= 48);

/// A transfer to be written to a ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TdRequest {
    pub(crate) id: TransferId,
    pub(crate) spec: TdSpec,
    /// Bus address of the buffer.
    pub(crate) buffer: u64,
    pub(crate) length: u32,
}

/// The kind of a requested transfer, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TdSpec {
    Bulk { event_data: bool },
    Control { setup: SetupPacket },
}

/// The kind of a transfer, which is kept in its TD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TdKind {
    Bulk { event_data: bool },
    Control,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TdState {
    /// The controller's.
    Live,
    /// Wanted back.
    Cancelled,
    /// Has ended; its TRBs are no-ops that the controller has yet to pass.
    NoOp,
    /// Has ended; its places are given back when those before are.
    Over,
}

/// How the TDs of an endpoint are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writing {
    pub(crate) direction: Direction,
    pub(crate) packet: u32,
    pub(crate) td_size: TdSize,
    /// Small OUT transfers in the TRB itself.
    pub(crate) immediate: bool,
}

impl Td {
    /// A TD that would begin at the ring's enqueue place.
    #[inline]
    fn at_enqueue(ring: &ProducerRing, request: TdRequest, number: u64) -> Self {
        let (Position { index: first, cycle }, state) = (ring.enqueue(), TdState::Live);
        let TdRequest { id, spec, buffer, length } = request;
        let kind = TdKind::of(spec);
        Self { id, number, buffer, length, first, cycle, kind, state, trbs: 1, noted: None }
    }

    /// Where it begins.
    pub(crate) const fn first(&self) -> Position {
        Position { index: self.first, cycle: self.cycle }
    }

    /// Writes a transfer to a ring; `None` if there is no room. Most have one TRB, which is seen
    /// whole or not at all.
    #[inline]
    pub(crate) fn write(
        hw: &mut impl DmaMemory,
        ring: &mut ProducerRing,
        request: TdRequest,
        number: u64,
        how: Writing,
    ) -> Option<Self> {
        let TdRequest { spec, buffer: address, length, .. } = request;
        if !matches!(spec, TdSpec::Bulk { event_data: false }) || !TrbSpans::is_one(address, length) {
            return Self::write_several(hw, ring, request, number, how);
        }
        let td = Self::at_enqueue(ring, request, number);
        if ring.room() == 0 {
            return None;
        }
        let trb = td.normal(hw, &TrbSpan { address, length, before: 0, is_last: true }, how);
        ring.put(hw, |cycle| trb.encode(cycle), Put::default());
        Some(td)
    }

    #[inline(never)]
    fn write_several(
        hw: &mut impl DmaMemory,
        ring: &mut ProducerRing,
        request: TdRequest,
        number: u64,
        how: Writing,
    ) -> Option<Self> {
        let mut td = Self::at_enqueue(ring, request, number);
        td.trbs = match request.spec {
            TdSpec::Bulk { event_data } => td.count(ring, how.packet) + u32::from(event_data),
            // Setup and status, with or without data between them.
            TdSpec::Control { .. } => td.count(ring, how.packet) + 2,
        };
        (td.trbs <= ring.room()).then(|| {
            td.write_trbs(hw, ring, request.spec, how);
            td
        })
    }

    fn write_trbs(&self, hw: &mut impl DmaMemory, ring: &mut ProducerRing, spec: TdSpec, how: Writing) {
        let mut first = None;
        match spec {
            TdSpec::Bulk { event_data } => {
                for piece in self.pieces(ring, how.packet) {
                    let trb = self.normal(hw, &piece, how);
                    first.get_or_insert(trb);
                    let chained = event_data || !piece.is_last;
                    ring.put(hw, |cycle| trb.encode(cycle), Put { chained, held: piece.before == 0 });
                }
                if event_data {
                    let token = ring.address(self.first);
                    let flags = TrbFlags::INTERRUPT_ON_COMPLETION;
                    let trb = TransferTrb::EventData { token, interrupter: 0, flags };
                    ring.put(hw, |cycle| trb.encode(cycle), Put::default());
                }
            }
            TdSpec::Control { setup } => first = Some(self.write_control(hw, ring, setup, how)),
        }
        if let Some(first) = first {
            ring.publish(hw, self.first(), |cycle| first.encode(cycle));
        }
    }

    fn write_control(
        &self,
        hw: &mut impl DmaMemory,
        ring: &mut ProducerRing,
        setup: SetupPacket,
        how: Writing,
    ) -> TransferTrb {
        let kind = if self.length == 0 { TransferKind::NoData } else { TransferKind::Data(setup.direction) };
        let flags = TrbFlags::IMMEDIATE_DATA;
        let first = TransferTrb::SetupStage { setup, kind, interrupter: 0, flags };
        let pieces = self.pieces(ring, how.packet);
        ring.put(hw, |cycle| first.encode(cycle), Put { chained: false, held: true });
        for piece in pieces {
            let TrbSpan { address: buffer, length, is_last, .. } = piece;
            let td_size = how.td_size.of(&piece, self.length, how.packet);
            let short =
                if setup.direction == Direction::In { TrbFlags::INTERRUPT_ON_SHORT } else { TrbFlags::EMPTY };
            let flags = if is_last { short } else { short.with(TrbFlags::CHAIN) };
            let trb = match piece.before {
                0 => {
                    let direction = setup.direction;
                    TransferTrb::DataStage { buffer, length, td_size, direction, interrupter: 0, flags }
                }
                _ => TransferTrb::Normal { buffer, length, td_size, interrupter: 0, flags },
            };
            ring.put(hw, |cycle| trb.encode(cycle), Put { chained: !is_last, held: false });
        }
        let against = match kind {
            TransferKind::Data(Direction::In) => Direction::Out,
            _ => Direction::In,
        };
        let flags = TrbFlags::INTERRUPT_ON_COMPLETION;
        let status = TransferTrb::StatusStage { direction: against, interrupter: 0, flags };
        ring.put(hw, |cycle| status.encode(cycle), Put::default());
        first
    }

    #[inline]
    fn normal(&self, hw: &mut impl DmaMemory, piece: &TrbSpan, how: Writing) -> TransferTrb {
        let TdKind::Bulk { event_data } = self.kind else {
            return TransferTrb::NoOp { interrupter: 0, flags: TrbFlags::EMPTY };
        };
        let mut flags = match (event_data, piece.is_last) {
            (true, _) | (false, false) => TrbFlags::CHAIN,
            (false, true) => TrbFlags::INTERRUPT_ON_COMPLETION,
        };
        if how.direction == Direction::In && !event_data {
            flags = flags.with(TrbFlags::INTERRUPT_ON_SHORT);
        }
        let mut buffer = piece.address;
        let small = self.length > 0 && self.length <= IMMEDIATE_BYTES_MAX && piece.length == self.length;
        if how.immediate && how.direction == Direction::Out && small && !event_data {
            buffer = immediate(hw, piece);
            flags = flags.with(TrbFlags::IMMEDIATE_DATA);
        }
        let td_size = how.td_size.of(piece, self.length, how.packet);
        TransferTrb::Normal { buffer, length: piece.length, td_size, interrupter: 0, flags }
    }

    fn count(&self, ring: &ProducerRing, packet: u32) -> u32 {
        self.pieces(ring, packet).count() as u32
    }

    /// The pieces of its buffer; of a control transfer without data there are none.
    fn pieces(&self, ring: &ProducerRing, packet: u32) -> impl Iterator<Item = TrbSpan> + use<> {
        let (none, skipped) = match self.kind {
            TdKind::Bulk { .. } => (false, 0),
            TdKind::Control => (self.length == 0, 1),
        };
        let from = ring.after(self.first(), skipped);
        let (until_link, per_segment) = (ring.until_link(from.index), ring.per_segment());
        TrbSpans::new(self.buffer, self.length, packet, until_link, per_segment).take(if none {
            0
        } else {
            usize::MAX
        })
    }

    /// How far into the TD a place lies; `None` if it is not of the TD.
    #[inline]
    pub(crate) fn offset_of(&self, ring: &ProducerRing, index: u32) -> Option<u32> {
        let offset = ring.distance(self.first, index);
        (offset < self.trbs).then_some(offset)
    }

    /// Returns the event target at an offset.
    #[inline]
    pub(crate) fn place(&self, offset: u32) -> EventTarget {
        let is_last = offset + 1 == self.trbs;
        match (self.state, self.kind) {
            (TdState::NoOp, _) => EventTarget::NoOp,
            (TdState::Over, _) => EventTarget::Finished,
            (_, TdKind::Bulk { event_data: true }) if is_last => EventTarget::EventData,
            (_, TdKind::Bulk { .. }) if is_last => EventTarget::Last,
            (_, TdKind::Bulk { .. }) => EventTarget::Inner,
            (_, TdKind::Control) if offset == 0 => EventTarget::Setup,
            (_, TdKind::Control) if is_last => EventTarget::Status,
            (_, TdKind::Control) => EventTarget::ControlData,
        }
    }

    /// Returns the bytes transferred, as an event at `offset` with `event_length` says; never more
    /// than were asked for.
    #[inline]
    pub(crate) fn moved(
        &self,
        ring: &ProducerRing,
        packet: u32,
        offset: u32,
        event_length: u32,
        actual: Actual,
    ) -> u32 {
        let skipped = u32::from(self.kind == TdKind::Control);
        let piece = || {
            let number = offset.saturating_sub(skipped) as usize;
            if number == 0 && TrbSpans::is_one(self.buffer, self.length) {
                return (0, self.length);
            }
            self.pieces(ring, packet).nth(number).map_or((self.length, 0), |p| (p.before, p.length))
        };
        let moved = match actual {
            Actual::Nothing => 0,
            Actual::EventLength => event_length,
            Actual::Noted => self.noted.unwrap_or(self.length),
            Actual::BeforeTrb => piece().0,
            Actual::ThisTrb => {
                let (before, length) = piece();
                before + length.saturating_sub(event_length)
            }
        };
        moved.min(self.length)
    }
}

impl TdKind {
    const fn of(spec: TdSpec) -> Self {
        match spec {
            TdSpec::Bulk { event_data } => Self::Bulk { event_data },
            TdSpec::Control { .. } => Self::Control,
        }
    }
}

/// The bytes of a piece that lie in the TRB itself.
#[cold]
fn immediate(hw: &mut impl DmaMemory, piece: &TrbSpan) -> u64 {
    let mut bytes = [0; IMMEDIATE_BYTES_MAX as usize];
    hw.read_bytes(piece.address, &mut bytes[..piece.length as usize]);
    u64::from_le_bytes(bytes)
}
