//! Endpoints made from their descriptors: context, ring, retries (xHCI 1.2 clauses 4.8.2 and 6.2.3).
//!
//! Left out: streams, and configuring the controller, which are requests. Always true: an endpoint that
//! was not made has allocated nothing.

use crate::device::endpoint::Endpoint;
use crate::device::td::Writing;
use crate::hardware::Hardware;
use crate::limit::SOFT_RETRIES_MAX;
use crate::ring::{RingShape, TdSize};
use crate::types::{Config, EndpointPlan};
use bus::Direction;
use wire::usb::TransferType;
use wire::xhci::{EndpointContext, EndpointId, EndpointType, SlotContext};

/// Settings that all endpoints of a controller share.
pub(super) struct EndpointSettings<'a> {
    pub(super) config: &'a Config,
    pub(super) td_size: TdSize,
}

impl EndpointSettings<'_> {
    /// Makes a bulk or interrupt endpoint; `None` without memory.
    pub(super) fn data_endpoint(
        &self,
        hw: &mut impl Hardware,
        slot: SlotContext,
        plan: EndpointPlan,
    ) -> Option<Endpoint> {
        let EndpointPlan { descriptor, companion } = plan;
        let direction = descriptor.address.direction();
        let burst = companion.map_or(0, |companion| companion.max_burst);
        let transfer_type = descriptor.attributes.transfer_type();
        let kind = EndpointType::new(transfer_type, direction);
        let plain = EndpointContext::plain(kind, descriptor.packet_len(), burst);
        let context = match transfer_type {
            TransferType::Interrupt => {
                let value = companion.map_or(0, |companion| companion.bytes_per_interval);
                EndpointContext {
                    interval: interval(descriptor.interval, slot.speed_id),
                    interval_bytes: if value > 0 { value } else { descriptor.packet_len() }.into(),
                    average_trb_length: 1024,
                    ..plain
                }
            }
            _ => EndpointContext { average_trb_length: 3072, ..plain },
        };
        let is_translated = slot.translator_slot != 0;
        let quirks = self.config.quirks;
        let mut made = self.endpoint(hw, EndpointId::of(descriptor.address), context, direction)?;
        made.plan = Some(plan);
        // A soft retry would not undo what a translator has done (clause 4.6.8.1).
        made.retries_max = if quirks.no_soft_retry || is_translated { 0 } else { SOFT_RETRIES_MAX };
        Some(made)
    }

    /// Makes an endpoint with one ring; `None` without memory.
    pub(super) fn endpoint(
        &self,
        hw: &mut impl Hardware,
        id: EndpointId,
        context: EndpointContext,
        direction: Direction,
    ) -> Option<Endpoint> {
        let writing = Writing {
            direction,
            packet: context.max_packet.max(1).into(),
            td_size: self.td_size,
            immediate: !self.config.quirks.no_immediate,
        };
        let ring = RingShape {
            segments: self.config.ring_segments,
            trbs: self.config.ring_trbs,
            chained_links: self.config.quirks.chained_links,
        };
        Endpoint::plain(hw, id, context, writing, ring)
    }
}

/// 2^n times 125 us between two services of an interrupt endpoint (xHCI 1.2 clause 6.2.3.6). From
/// high speed on the descriptor has n + 1; below it has milliseconds, of which the power of two
/// that is not longer is taken.
fn interval(value: u8, speed_id: u8) -> u8 {
    let is_exponent = speed_id > 2;
    match is_exponent {
        true => value.clamp(1, 16) - 1,
        false => 3 + value.max(1).ilog2() as u8,
    }
}

#[cfg(test)]
mod tests {
    use super::interval;

    #[test]
    fn an_interval_is_encoded_as_a_power_of_two() {
        // High speed and SuperSpeed: 12 is 2^11 microframes; full speed: 255 ms is 128 ms.
        assert_eq!(
            [(12, 3), (8, 4), (0, 4), (200, 4)].map(|(value, id)| interval(value, id)),
            [11, 7, 0, 15]
        );
        assert_eq!([(1, 1), (10, 1), (255, 1), (0, 2)].map(|(value, id)| interval(value, id)), [3, 6, 10, 3]);
    }
}
