//! How a buffer is split into TRBs (xHCI 1.2 clauses 4.11.2.4, 4.11.7.1 and 6.4.1).
//!
//! A TRB covers at most 64 KiB and does not cross a 64 KiB boundary. Before a link within a TD the
//! bytes so far are whole packets, as far as a boundary allows. The split follows from the buffer
//! and the ring position alone, so the bytes before a TRB are recomputed when an event names it,
//! and not stored.

use crate::hardware::BOUNDARY;
use wire::xhci::TransferTrb;

/// The bytes of one TRB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TrbSpan {
    pub(crate) address: u64,
    pub(crate) length: u32,
    /// Bytes of the TD before it.
    pub(crate) before: u32,
    pub(crate) is_last: bool,
}

/// The TRBs of a buffer; an empty buffer has one empty TRB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrbSpans {
    pub(crate) address: u64,
    pub(crate) length: u32,
    /// Maximum packet size; not 0.
    pub(crate) packet: u32,
    /// TRBs up to the next link, including the next TRB.
    pub(crate) until_link: u32,
    /// TRBs between two links.
    pub(crate) per_segment: u32,
    before: u32,
    ended: bool,
}

impl TrbSpans {
    pub(crate) fn new(address: u64, length: u32, packet: u32, until_link: u32, per_segment: u32) -> Self {
        Self { address, length, packet: packet.max(1), until_link, per_segment, before: 0, ended: false }
    }

    /// Returns whether a buffer is one TRB, wherever it lies on the ring.
    pub(crate) const fn is_one(address: u64, length: u32) -> bool {
        address % BOUNDARY as u64 + length as u64 <= BOUNDARY as u64 && length <= TransferTrb::LENGTH_MAX
    }
}

impl Iterator for TrbSpans {
    type Item = TrbSpan;

    fn next(&mut self) -> Option<TrbSpan> {
        if self.ended {
            return None;
        }
        let address = self.address.wrapping_add(self.before.into());
        let to_boundary = BOUNDARY - (address % u64::from(BOUNDARY)) as u32;
        let left = self.length - self.before;
        let mut length = left.min(to_boundary).min(TransferTrb::LENGTH_MAX);
        if self.until_link == 1 && length < left {
            let past_packet = (self.before + length) % self.packet;
            length = if past_packet < length { length - past_packet } else { length };
        }
        let piece = TrbSpan { address, length, before: self.before, is_last: length == left };
        self.before += length;
        self.ended = piece.is_last;
        self.until_link = if self.until_link == 1 { self.per_segment } else { self.until_link - 1 };
        Some(piece)
    }
}

/// How TD Size is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TdSize {
    /// From version 1.0 on: packets that are left after the TRB (clause 4.11.2.4).
    Packets,
    /// Before: KiB that are left with the TRB.
    Kibibytes,
}

impl TdSize {
    /// TD Size of a piece of a TD of `length` bytes in packets of `packet`.
    pub(crate) fn of(self, piece: &TrbSpan, length: u32, packet: u32) -> u8 {
        let left = match self {
            _ if piece.is_last => 0,
            Self::Packets => length.div_ceil(packet.max(1)) - (piece.before + piece.length) / packet.max(1),
            Self::Kibibytes => (length - piece.before) / 1024,
        };
        left.min(TransferTrb::TD_SIZE_MAX.into()) as u8
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn lengths(address: u64, length: u32, until_link: u32, per_segment: u32) -> Vec<u32> {
        TrbSpans::new(address, length, 1024, until_link, per_segment).map(|piece| piece.length).collect()
    }

    #[test]
    fn a_buffer_is_cut_at_64_kib() {
        assert_eq!(lengths(0x1_0000, 0x2_0000, 100, 100), [0x1_0000, 0x1_0000]);
        assert_eq!(lengths(0x1_fff0, 0x1_0020, 100, 100), [0x10, 0x1_0000, 0x10]);
        assert_eq!(lengths(0x1_0000, 31, 100, 100), [31]);
        assert_eq!(lengths(0x1_0000, 0, 100, 100), [0]);
    }

    #[test]
    fn whole_packets_lie_before_a_link() {
        assert_eq!(lengths(0xf200, 0x8000, 1, 3), [0xc00, 0x200, 0x7200]);
        assert_eq!(lengths(0xf200, 0x8000, 2, 3), [0xe00, 0x7200]);
        // Less than a packet up to the boundary: there is nothing to choose.
        assert_eq!(lengths(0xffff, 0x8000, 1, 3), [1, 0x7fff]);
    }

    #[test]
    fn td_size_counts_packets_that_are_left() {
        let pieces: Vec<_> = TrbSpans::new(0xf000, 0x2_0000, 1024, 9, 9).collect();
        let sizes = |kind: TdSize| pieces.iter().map(|p| kind.of(p, 0x2_0000, 1024)).collect::<Vec<_>>();
        assert_eq!(sizes(TdSize::Packets), [31, 31, 0]);
        let pieces: Vec<_> = TrbSpans::new(0xf000, 0x1400, 1024, 9, 9).collect();
        let sizes = |kind: TdSize| pieces.iter().map(|p| kind.of(p, 0x1400, 1024)).collect::<Vec<_>>();
        assert_eq!(sizes(TdSize::Packets), [1, 0]);
        assert_eq!(sizes(TdSize::Kibibytes), [5, 0]);
    }

    proptest! {
        #[test]
        fn pieces_are_the_buffer_and_cross_nothing(
            address in 0u64..1 << 40, length in 0u32..1 << 21, until in 1u32..8, per in 1u32..8, packet in 1u32..2000
        ) {
            let (mut next, mut sum) = (address, 0);
            for piece in TrbSpans::new(address, length, packet, until, per) {
                prop_assert_eq!((piece.address, piece.before), (next, sum));
                prop_assert!(piece.length > 0 || length == 0);
                let end = piece.address + u64::from(piece.length).max(1) - 1;
                prop_assert_eq!(piece.address / 65_536, end / 65_536);
                (next, sum) = (next + u64::from(piece.length), sum + piece.length);
                prop_assert_eq!(piece.is_last, sum == length);
            }
            prop_assert_eq!(sum, length);
        }
    }
}
