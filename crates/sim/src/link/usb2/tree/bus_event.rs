//! The result of a step of a tree, and what decides the fate of its packets.

use super::super::exchange::{AllSent, Fate};
use super::super::packet::Packet;
use crate::link::hub::DeviceId;
use crate::link::superspeed::Side;
use wire::usb::EndpointAddress;

/// Decides the fate of a packet of a device, on the root bus (false) or behind a translator (true).
pub type FateOf<'a> = &'a mut dyn FnMut(DeviceId, bool, Side, &Packet) -> Fate;

/// The result of a step on one of the buses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusEvent {
    /// The device.
    pub device: DeviceId,
    /// The endpoint, while a transaction is in progress.
    pub endpoint: Option<EndpointAddress>,
    /// Whether it happened between a translator and the device.
    pub is_below: bool,
    /// The packets that are sent now.
    pub sent: AllSent,
}
