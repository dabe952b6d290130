//! Slot context (xHCI 1.2 clause 6.2.2), and the route string in it (USB 3.2 clause 8.9).

use crate::DecodeError;
use crate::xhci::{bit, bytes_of, dwords, field, flag, place};
use core::fmt;

/// A device: where it is and what it is.
///
/// ```text
///  0..4   Route String 19:0, Speed 23:20, MTT 25, Hub 26, Context Entries 31:27
///  4..8   Max Exit Latency 15:0, Root Hub Port Number 23:16, Number of Ports 31:24
///  8..12  Parent Hub Slot ID 7:0, Parent Port Number 15:8, TTT 17:16, Interrupter Target 31:22
/// 12..16  USB Device Address 7:0, Slot State 31:27
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotContext {
    /// The ports of the hubs between root port and device.
    pub route: RouteString,
    /// The port's speed id ([`super::super::LinkSpeed`] says what it means).
    pub speed_id: u8,
    /// A high-speed hub with a translator for each port that is on, or a device behind one.
    pub multiple_translators: bool,
    /// It is a hub.
    pub is_hub: bool,
    /// The highest endpoint context in use, 1 to 31.
    pub context_entries: u8,
    /// Maximum exit latency of the links to the device, in microseconds.
    pub exit_latency_us: u16,
    /// The root port, from 1.
    pub root_port: u8,
    /// Ports, if it is a hub.
    pub hub_ports: u8,
    /// The slot of the high-speed hub that translates; 0 if none does.
    pub translator_slot: u8,
    /// The port of that hub.
    pub translator_port: u8,
    /// Think time of a high-speed hub: 0 to 3 for 8, 16, 24, 32 full-speed bit times.
    pub think_time: u8,
    /// Where events of the slot go.
    pub interrupter: u16,
    /// The address that the controller chose. Output only.
    pub address: u8,
    /// Output only.
    pub state: SlotState,
}

/// State of a slot (bits 31:27 of the last dword).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SlotState {
    /// Disabled or enabled.
    #[default]
    DisabledOrEnabled,
    /// The device has no address.
    Default,
    /// It has one.
    Addressed,
    /// It has endpoints besides 0.
    Configured,
    /// Reserved.
    Reserved(u8),
}

/// The ports of up to five hubs in the path, four bits each; the hub next to the root has the lowest. 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RouteString(u32);

impl RouteString {
    /// At the root port itself.
    pub const ROOT: Self = Self(0);
    /// Hubs on the longest way.
    pub const TIERS_MAX: u32 = 5;

    /// The route with these 20 bits.
    pub const fn from_bits(bits: u32) -> Self {
        Self(field(bits, 0, 20))
    }

    /// The 20 bits.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The number of hubs in the path.
    pub const fn tiers(self) -> u32 {
        (u32::BITS - self.0.leading_zeros()).div_ceil(4)
    }

    /// The way on to a port of the hub that is here; ports above 15 share the last number. `None` if the hub would be
    /// the sixth, or the port is 0.
    #[must_use]
    pub const fn via(self, port: u8) -> Option<Self> {
        let tiers = self.tiers();
        let port = if port > 15 { 15 } else { port };
        if tiers >= Self::TIERS_MAX || port == 0 {
            return None;
        }
        Some(Self(self.0 | (port as u32) << (4 * tiers)))
    }

    /// The port that the hub takes that has so many hubs between it and the root. `None` if the way ends before.
    pub const fn port_after(self, tiers: u32) -> Option<u8> {
        if tiers >= self.tiers() {
            return None;
        }
        Some(field(self.0, 4 * tiers, 4) as u8)
    }

    /// Whether the way is that to `hub`, or leads on from there.
    pub fn leads_through(self, hub: Self) -> bool {
        (0..hub.tiers()).all(|tiers| self.port_after(tiers) == hub.port_after(tiers))
    }
}

impl SlotContext {
    /// Bytes that mean something.
    pub const LEN: usize = 32;

    /// A device at a root port that says this speed, with the control endpoint only.
    pub const fn at_root(root_port: u8, speed_id: u8) -> Self {
        Self {
            route: RouteString::ROOT,
            speed_id,
            multiple_translators: false,
            is_hub: false,
            context_entries: 1,
            exit_latency_us: 0,
            root_port,
            hub_ports: 0,
            translator_slot: 0,
            translator_port: 0,
            think_time: 0,
            interrupter: 0,
            address: 0,
            state: SlotState::DisabledOrEnabled,
        }
    }

    /// Decodes a context; bytes past it are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let [way, ports, translator, state, ..] = dwords::<8>(bytes)?;
        Ok(Self {
            route: RouteString::from_bits(way),
            speed_id: field(way, 20, 4) as u8,
            multiple_translators: flag(way, 25),
            is_hub: flag(way, 26),
            context_entries: field(way, 27, 5) as u8,
            exit_latency_us: field(ports, 0, 16) as u16,
            root_port: field(ports, 16, 8) as u8,
            hub_ports: field(ports, 24, 8) as u8,
            translator_slot: field(translator, 0, 8) as u8,
            translator_port: field(translator, 8, 8) as u8,
            think_time: field(translator, 16, 2) as u8,
            interrupter: field(translator, 22, 10) as u16,
            address: field(state, 0, 8) as u8,
            state: SlotState::from_bits(field(state, 27, 5) as u8),
        })
    }

    /// The 32 bytes.
    pub fn encode(&self) -> [u8; 32] {
        let way = self.route.bits()
            | place(self.speed_id.into(), 20, 4)
            | bit(self.multiple_translators, 25)
            | bit(self.is_hub, 26)
            | place(self.context_entries.into(), 27, 5);
        let ports = place(self.exit_latency_us.into(), 0, 16)
            | place(self.root_port.into(), 16, 8)
            | place(self.hub_ports.into(), 24, 8);
        let translator = place(self.translator_slot.into(), 0, 8)
            | place(self.translator_port.into(), 8, 8)
            | place(self.think_time.into(), 16, 2)
            | place(self.interrupter.into(), 22, 10);
        let state = place(self.address.into(), 0, 8) | place(self.state.bits().into(), 27, 5);
        bytes_of(&[way, ports, translator, state])
    }
}

impl SlotState {
    const fn from_bits(bits: u8) -> Self {
        match bits {
            0 => Self::DisabledOrEnabled,
            1 => Self::Default,
            2 => Self::Addressed,
            3 => Self::Configured,
            other => Self::Reserved(other),
        }
    }

    const fn bits(self) -> u8 {
        match self {
            Self::DisabledOrEnabled => 0,
            Self::Default => 1,
            Self::Addressed => 2,
            Self::Configured => 3,
            Self::Reserved(other) => other,
        }
    }
}

impl fmt::Display for RouteString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:05x}", self.0)
    }
}

impl fmt::Display for SlotContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { root_port, route, speed_id, address, .. } = self;
        write!(f, "device {address} at root port {root_port} route {route}, speed id {speed_id}")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    #[test]
    fn a_device_behind_two_hubs_both_ways() {
        let mut bytes = [0; 32];
        let head = [0x23, 0x00, 0x30, 0x1a, 0x34, 0x12, 0x05, 0x00, 0x07, 0x03, 0x81, 0x00, 0x09, 0, 0, 0x10];
        bytes[..16].copy_from_slice(&head);
        let slot = SlotContext {
            route: RouteString::from_bits(0x23),
            multiple_translators: true,
            context_entries: 3,
            exit_latency_us: 0x1234,
            translator_slot: 7,
            translator_port: 3,
            think_time: 1,
            interrupter: 2,
            address: 9,
            state: SlotState::Addressed,
            ..SlotContext::at_root(5, 3)
        };
        assert_eq!(slot.encode(), bytes);
        assert_eq!(SlotContext::decode(&bytes), Ok(slot));
        assert_eq!(slot.to_string(), "device 9 at root port 5 route 00023, speed id 3");
    }

    #[test]
    fn a_hub_both_ways() {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&[0, 0, 0x40, 0x0c, 0, 0, 1, 4]);
        let hub = SlotContext { is_hub: true, hub_ports: 4, ..SlotContext::at_root(1, 4) };
        assert_eq!(hub.encode(), bytes);
        assert_eq!(SlotContext::decode(&bytes), Ok(hub));
    }

    #[test]
    fn a_route_has_five_tiers_and_fifteen_ports() {
        let route = RouteString::ROOT.via(3).and_then(|r| r.via(2)).unwrap();
        assert_eq!(route.bits(), 0x23);
        assert_eq!(route.tiers(), 2);
        assert_eq!(RouteString::ROOT.via(31).map(RouteString::bits), Some(15));
        assert_eq!(RouteString::ROOT.via(0), None);
        assert_eq!(RouteString::from_bits(0x11111).via(1), None);
    }

    #[test]
    fn each_hub_of_a_route_finds_its_port() {
        let route = RouteString::from_bits(0x0f23);
        assert_eq!([0, 1, 2, 3].map(|tiers| route.port_after(tiers)), [Some(3), Some(2), Some(15), None]);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..32 {
            let error = DecodeError::Truncated { needed: 32, got: len };
            assert_eq!(SlotContext::decode(&[0; 32][..len]), Err(error));
        }
    }

    proptest! {
        #[test]
        fn what_decodes_is_encoded_to_the_same_value(bytes: [u8; 32]) {
            let slot = SlotContext::decode(&bytes).unwrap();
            prop_assert_eq!(SlotContext::decode(&slot.encode()), Ok(slot));
        }
    }

    #[test]
    fn a_way_leads_through_each_hub_on_it_and_no_other() {
        let way = |ports: &[u8]| ports.iter().fold(RouteString::ROOT, |way, &port| way.via(port).unwrap());
        let drive = way(&[3, 1, 2]);
        for through in [&[][..], &[3], &[3, 1], &[3, 1, 2]] {
            assert!(drive.leads_through(way(through)), "{through:?}");
        }
        for beside in [&[1][..], &[3, 2], &[3, 1, 1], &[3, 1, 2, 1]] {
            assert!(!drive.leads_through(way(beside)), "{beside:?}");
        }
    }
}
