//! Validation of input contexts (xHCI 1.2 clauses 6.2.2, 6.2.3, 6.2.5) and of transaction
//! translators.
//!
//! Average TRB Length is above 0 by the standard (clause 6.2.3); Linux writes 0 for bulk endpoints, which hardware takes, and so
//! does this controller.
//!
//! Changes nothing. Not modelled: bandwidth, and facts that a controller cannot check, such as the
//! number of a hub's ports. Invariant: rejects only what hardware rejects as well, or what has no
//! meaning.

use super::memory::{Fault, GuestMemory};
use super::model::Model;
use super::slot::{SlotStage, Slots};
use wire::usb::Direction;
use wire::xhci::{
    CompletionCode as Code, EndpointContext, EndpointId, EndpointType, PortStatus, SlotContext,
};

/// Packets of a burst at SuperSpeed, less one.
const BURST_MAX: u8 = 15;

/// Returns whether an endpoint context is valid (clause 6.2.3).
pub(super) fn is_endpoint_right(
    model: &Model,
    context: &EndpointContext,
    id: EndpointId,
    speed_id: u8,
) -> bool {
    if context.endpoint_type == EndpointType::Interrupt(Direction::In) {
        return !id.get().is_multiple_of(2) && is_interrupt_right(context, speed_id);
    }
    let direction = if id.get().is_multiple_of(2) { Direction::Out } else { Direction::In };
    let is_super = speed_id >= SUPER;
    let packet = match speed_id {
        SUPER.. => context.max_packet == 1024,
        HIGH => context.max_packet == 512,
        _ => matches!(context.max_packet, 8 | 16 | 32 | 64),
    };
    let has_streams = context.primary_streams > 0;
    let streams = !has_streams
        || is_super
            && context.primary_streams <= model.primary_streams_exponent
            && (context.linear_streams || model.has_secondary_streams);
    context.endpoint_type == EndpointType::Bulk(direction)
        && packet
        && context.max_burst <= if is_super { BURST_MAX } else { 0 }
        && context.mult == 0
        && context.dequeue != 0
        && streams
}

/// Checks the transaction translator of a full- or low-speed device (clause 6.2.2): split
/// transactions go to the hub slot and port of its slot context. `Err` is the completion code
/// for a hub that does not exist, or for a wrong hub or port, which does not respond.
pub(super) fn translator(
    slots: &Slots,
    memory: &impl GuestMemory,
    slot: &SlotContext,
    port: PortStatus,
) -> Result<Result<(), Code>, Fault> {
    let is_split = slot.route.tiers() > 0 && slot.speed_id < HIGH && port.speed_id() == HIGH;
    if !is_split {
        let is_none = slot.translator_slot == 0 && slot.translator_port == 0;
        return Ok(if is_none { Ok(()) } else { Err(Code::ParameterError) });
    }
    if slot.translator_slot == 0 {
        // It is addressed at the bus's speed, to which it does not respond.
        return Ok(Err(Code::UsbTransactionError));
    }
    let hub = slots.get(slot.translator_slot);
    let Some(hub) = hub.filter(|hub| hub.stage >= SlotStage::Addressed) else {
        return Ok(Err(Code::ParameterError));
    };
    let Ok(reported) = SlotContext::decode(&memory.read::<{ SlotContext::LEN }>(hub.context)?) else {
        return Ok(Err(Code::ParameterError));
    };
    if !reported.is_hub || reported.speed_id != HIGH {
        return Ok(Err(Code::ParameterError));
    }
    let above = hub.path.route;
    let leads_there = slot.route.port_after(above.tiers()) == Some(slot.translator_port);
    let answers = hub.path.port == slot.root_port && slot.route.leads_through(above) && leads_there;
    Ok(if answers { Ok(()) } else { Err(Code::UsbTransactionError) })
}

/// The usual speed ids.
const LOW: u8 = 2;
const HIGH: u8 = 3;
const SUPER: u8 = 4;

/// An interrupt endpoint from a device (clause 6.2.3.6).
fn is_interrupt_right(context: &EndpointContext, speed_id: u8) -> bool {
    let (packets, intervals) = match speed_id {
        HIGH.. => (1..=1024, 0..=15),
        _ => (1..=64, 3..=10),
    };
    packets.contains(&context.max_packet)
        && intervals.contains(&context.interval)
        && context.interval_bytes > 0
        && context.max_burst == 0
        && context.primary_streams == 0
        && context.mult == 0
        && context.dequeue != 0
        && context.average_trb_length > 0
}

/// Returns whether a slot context is valid for a port with this status (clause 6.2.2).
pub(super) fn is_slot_right(slot: &SlotContext, port: PortStatus) -> bool {
    // Behind a hub the port's speed is the hub's.
    let speed = slot.route.tiers() > 0 || !port.is_connected() || slot.speed_id == port.speed_id();
    speed && slot.speed_id != 0 && slot.context_entries >= 1 && slot.interrupter == 0
}

/// The largest packet of endpoint 0 at a speed (clause 4.3).
pub(super) const fn is_control_packet(packet: u16, speed_id: u8) -> bool {
    match speed_id {
        SUPER.. => packet == 512,
        HIGH => packet == 64,
        LOW => packet == 8,
        _ => matches!(packet, 8 | 16 | 32 | 64),
    }
}

/// Endpoint 0.
pub(super) fn is_control_right(endpoint: &EndpointContext, speed_id: u8) -> bool {
    let packet = is_control_packet(endpoint.max_packet, speed_id);
    let is_control = endpoint.endpoint_type == EndpointType::Control;
    is_control
        && packet
        && endpoint.dequeue != 0
        && endpoint.primary_streams == 0
        && endpoint.average_trb_length > 0
}
