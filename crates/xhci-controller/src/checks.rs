//! Validation of transfer TRBs (xHCI 1.2 clauses 4.11 and 6.4.1): type, length, 64 KiB boundaries,
//! TD Size (from version 1.0 on), immediate data, interrupter number.
//!
//! Hardware checks neither boundaries nor TD Size: OVMF's driver crosses boundaries (EDK II, XhciDxe), so that a controller
//! for any driver is not strict ([`super::Model::is_strict`]).
//!
//! Not modelled: checks that hardware cannot do, such as the size of a buffer.

use super::ring::{Act, TrbStep};
use wire::usb::Direction;
use wire::xhci::{TransferTrb, TrbFlags};

/// No TRB buffer crosses a multiple of this (table 6-1).
const BOUNDARY: u64 = 64 << 10;
/// Maximum immediate data of a TRB.
const IMMEDIATE_BYTES_MAX: u32 = 8;

/// Validation parameters of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    /// `None` of a control endpoint.
    pub(super) direction: Option<Direction>,
    pub(super) packet_bytes: u32,
    pub(super) version: u16,
    /// Whether rules apply that hardware does not check.
    pub(super) is_strict: bool,
}

impl Rules {
    /// Returns whether a TRB is valid here.
    #[inline]
    pub(super) fn allow(self, trb: &TransferTrb, is_first: bool) -> bool {
        let is_bulk = self.direction.is_some();
        if trb.interrupter() != 0 {
            return false;
        }
        match *trb {
            TransferTrb::Normal { buffer, length, flags, .. } if is_bulk || !is_first => {
                let is_immediate = flags.has(TrbFlags::IMMEDIATE_DATA);
                let may_be_immediate =
                    self.direction == Some(Direction::Out) && length <= IMMEDIATE_BYTES_MAX;
                if is_immediate { may_be_immediate } else { self.is_within(buffer, length) }
            }
            TransferTrb::DataStage { buffer, length, .. } => {
                !is_bulk && is_first && self.is_within(buffer, length)
            }
            TransferTrb::SetupStage { flags, .. } => {
                !is_bulk && is_first && flags.has(TrbFlags::IMMEDIATE_DATA) && !flags.has(TrbFlags::CHAIN)
            }
            TransferTrb::StatusStage { .. } => !is_bulk && is_first,
            TransferTrb::Link { .. } | TransferTrb::EventData { .. } | TransferTrb::NoOp { .. } => true,
            TransferTrb::Normal { .. } => false,
        }
    }

    /// Returns whether a buffer is valid for a TRB.
    fn is_within(self, buffer: u64, length: u32) -> bool {
        let is_crossing = buffer % BOUNDARY + u64::from(length) > BOUNDARY;
        length <= TransferTrb::LENGTH_MAX && !(self.is_strict && is_crossing)
    }

    /// Returns the action of a TRB; `None` for a link without an event.
    #[inline]
    pub(super) fn act_of(self, trb: &TransferTrb) -> Option<Act> {
        Some(match *trb {
            TransferTrb::Normal { buffer, flags, .. } if flags.has(TrbFlags::IMMEDIATE_DATA) => {
                Act::Send(buffer.to_le_bytes())
            }
            TransferTrb::Normal { buffer, .. } => Act::Move(buffer),
            TransferTrb::DataStage { buffer, direction, .. } => Act::ControlData(buffer, direction),
            TransferTrb::SetupStage { setup, kind, .. } => Act::Setup(setup, kind),
            TransferTrb::StatusStage { direction, .. } => Act::Status(direction),
            TransferTrb::EventData { token, .. } => Act::EventFields(token),
            TransferTrb::NoOp { .. } => Act::Nothing,
            TransferTrb::Link { flags, .. } if flags.has(TrbFlags::INTERRUPT_ON_COMPLETION) => Act::Nothing,
            TransferTrb::Link { .. } => return None,
        })
    }

    /// Returns whether TD Size of every TRB is the number of packets after it (clause 4.11.2.4).
    pub(super) fn has_right_sizes<'a>(self, steps: impl Iterator<Item = &'a TrbStep>, bytes: u32) -> bool {
        if self.version < 0x0100 || !self.is_strict {
            return true;
        }
        let packets = bytes.div_ceil(self.packet_bytes);
        let mut sum = 0;
        let mut with_data =
            steps.filter(|step| matches!(step.act, Act::Move(_) | Act::Send(_) | Act::ControlData(..)));
        with_data.all(|step| {
            sum += step.length;
            let left = if sum == bytes { 0 } else { packets - sum / self.packet_bytes };
            u32::from(step.td_size) == left.min(TransferTrb::TD_SIZE_MAX.into())
        })
    }
}
