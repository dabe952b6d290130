//! Transfer descriptors: what of a ring belongs to one transfer, and how it is written (xHCI 1.2 clause 4.11).
//!
//! Bulk: data TRBs, and an event data TRB where these are in use. Control: setup, data, status, each a TD of its own to
//! the controller, one to us. Left out: buffers in several parts. Always true: a TD that does not fit is not begun.

use crate::hardware::DmaMemory;
use crate::retire::{Actual, Place};
use crate::ring::{Cuts, Piece, Position, ProducerRing, Put, TdSize};
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
    pub(crate) kind: Kind,
    pub(crate) buffer: u64,
    pub(crate) length: u32,
    pub(crate) first: Position,
    pub(crate) trbs: u32,
    /// Bytes that an event told before the end.
    pub(crate) noted: Option<u32>,
    pub(crate) state: TdState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bulk { event_data: bool },
    Control { setup: SetupPacket },
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
    pub(crate) fn at_enqueue(ring: &ProducerRing, id: TransferId, kind: Kind, buffer: (u64, u32)) -> Self {
        let (buffer, length) = buffer;
        let (first, state) = (ring.enqueue(), TdState::Live);
        Self { id, number: 0, kind, buffer, length, first, trbs: 0, noted: None, state }
    }

    /// Writes it, if there is room; whether there was.
    pub(crate) fn write(&mut self, hw: &mut impl DmaMemory, ring: &mut ProducerRing, how: Writing) -> bool {
        self.trbs = match self.kind {
            Kind::Bulk { event_data } if Cuts::is_one(self.buffer, self.length) => 1 + u32::from(event_data),
            Kind::Bulk { event_data } => self.count(ring, how.packet) + u32::from(event_data),
            // Setup and status, with or without data between them.
            Kind::Control { .. } => self.count(ring, how.packet) + 2,
        };
        if self.trbs > ring.room() {
            return false;
        }
        let mut first = None;
        match self.kind {
            // Alone, it is seen whole or not at all.
            Kind::Bulk { .. } if self.trbs == 1 => {
                let piece = Piece { address: self.buffer, length: self.length, before: 0, is_last: true };
                let trb = self.normal(hw, &piece, how);
                ring.put(hw, |cycle| trb.encode(cycle), Put::default());
            }
            Kind::Bulk { event_data } => {
                for piece in self.pieces(ring, how.packet) {
                    let trb = self.normal(hw, &piece, how);
                    first.get_or_insert(trb);
                    let chained = event_data || !piece.is_last;
                    ring.put(hw, |cycle| trb.encode(cycle), Put { chained, held: piece.before == 0 });
                }
                if event_data {
                    let token = ring.address(self.first.index);
                    let flags = TrbFlags::INTERRUPT_ON_COMPLETION;
                    let trb = TransferTrb::EventData { token, interrupter: 0, flags };
                    ring.put(hw, |cycle| trb.encode(cycle), Put::default());
                }
            }
            Kind::Control { setup } => first = Some(self.write_control(hw, ring, setup, how)),
        }
        if let Some(first) = first {
            ring.publish(hw, self.first, |cycle| first.encode(cycle));
        }
        true
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
            let Piece { address: buffer, length, is_last, .. } = piece;
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

    fn normal(&self, hw: &mut impl DmaMemory, piece: &Piece, how: Writing) -> TransferTrb {
        let Kind::Bulk { event_data } = self.kind else {
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
            let mut bytes = [0; IMMEDIATE_BYTES_MAX as usize];
            hw.read_bytes(piece.address, &mut bytes[..self.length as usize]);
            buffer = u64::from_le_bytes(bytes);
            flags = flags.with(TrbFlags::IMMEDIATE_DATA);
        }
        let td_size = how.td_size.of(piece, self.length, how.packet);
        TransferTrb::Normal { buffer, length: piece.length, td_size, interrupter: 0, flags }
    }

    fn count(&self, ring: &ProducerRing, packet: u32) -> u32 {
        self.pieces(ring, packet).count() as u32
    }

    /// The pieces of its buffer; of a control transfer without data there are none.
    fn pieces(&self, ring: &ProducerRing, packet: u32) -> impl Iterator<Item = Piece> + use<> {
        let (none, skipped) = match self.kind {
            Kind::Bulk { .. } => (false, 0),
            Kind::Control { .. } => (self.length == 0, 1),
        };
        let from = ring.after(self.first, skipped);
        let places = (ring.until_link(from.index), ring.per_segment());
        Cuts::new(self.buffer, self.length, packet, places).take(if none { 0 } else { usize::MAX })
    }

    /// How far into the TD a place lies; `None` if it is not of the TD.
    pub(crate) fn offset_of(&self, ring: &ProducerRing, index: u32) -> Option<u32> {
        let offset = ring.distance(self.first.index, index);
        (offset < self.trbs).then_some(offset)
    }

    /// What lies at an offset.
    pub(crate) fn place(&self, offset: u32) -> Place {
        let is_last = offset + 1 == self.trbs;
        match (self.state, self.kind) {
            (TdState::NoOp, _) => Place::NoOp,
            (TdState::Over, _) => Place::Finished,
            (_, Kind::Bulk { event_data: true }) if is_last => Place::EventData,
            (_, Kind::Bulk { .. }) if is_last => Place::Last,
            (_, Kind::Bulk { .. }) => Place::Inner,
            (_, Kind::Control { .. }) if offset == 0 => Place::Setup,
            (_, Kind::Control { .. }) if is_last => Place::Status,
            (_, Kind::Control { .. }) => Place::ControlData,
        }
    }

    /// Bytes moved, as an event at `offset` with `told` says; never more than were asked for.
    pub(crate) fn moved(&self, ring: &ProducerRing, packet: u32, at: (u32, u32), actual: Actual) -> u32 {
        let (offset, told) = at;
        let skipped = u32::from(matches!(self.kind, Kind::Control { .. }));
        let piece = || {
            let number = offset.saturating_sub(skipped) as usize;
            if number == 0 && Cuts::is_one(self.buffer, self.length) {
                return (0, self.length);
            }
            self.pieces(ring, packet).nth(number).map_or((self.length, 0), |p| (p.before, p.length))
        };
        let moved = match actual {
            Actual::Nothing => 0,
            Actual::Told => told,
            Actual::Noted => self.noted.unwrap_or(self.length),
            Actual::BeforeTrb => piece().0,
            Actual::ThisTrb => {
                let (before, length) = piece();
                before + length.saturating_sub(told)
            }
        };
        moved.min(self.length)
    }
}
