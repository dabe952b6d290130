//! A device of a tree: both ports, and its location.

use super::super::exchange::Next;
use super::super::host::Pacing;
use super::super::packet::HostTransaction;
use super::super::port::{self, NextTransaction};
use super::super::rate::Rate;
use super::translator::{Behind, Translators};
use crate::link::{DevicePort, HostPort};
use units::Instant;
use wire::xhci::RouteString;

#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) host: HostPort,
    pub(super) device: DevicePort,
    pub(super) route: RouteString,
    /// The hub that it is at.
    pub(super) above: Option<usize>,
    /// Whether its port forwards packets.
    pub(super) is_up: bool,
    /// Of a hub.
    pub(super) hub: Option<Translators>,
    /// Of a full-speed device behind a high-speed hub.
    pub(super) behind: Option<Behind>,
}

impl Member {
    pub(super) fn new(above: Option<usize>, route: RouteString, rate: Rate, pacing: Pacing) -> Self {
        Self {
            host: HostPort::Usb2(port::HostPort::new(rate, &[], pacing)),
            device: DevicePort::Usb2(port::DevicePort::new(rate, &[])),
            route,
            above,
            is_up: true,
            hub: None,
            behind: None,
        }
    }

    /// Number of hubs between the host and the device or its translator, which is in the last hub.
    pub(super) const fn hubs(&self) -> u8 {
        let hubs = self.route.tiers() as u8;
        if self.behind.is_some() { hubs.saturating_sub(1) } else { hubs }
    }

    /// Returns whether there are new requests.
    pub(super) fn take_pending(&mut self) -> bool {
        match &mut self.host {
            HostPort::Usb2(host) => host.take_pending() && self.is_up,
            HostPort::SuperSpeed(_) => false,
        }
    }

    /// Returns the next request of the host for it.
    pub(super) fn next(&self, now: Instant) -> Next {
        let HostPort::Usb2(host) = &self.host else { return Next::Nothing };
        if !self.is_up {
            return Next::Nothing;
        }
        match &self.behind {
            Some(behind) => behind.next(now, host),
            None => match host.turn(now) {
                NextTransaction::HostRequest(ask, packet_bytes) => {
                    Next::Begin(HostTransaction::Whole(ask), packet_bytes)
                }
                NextTransaction::Later(at) => Next::Later(at),
                NextTransaction::Nothing => Next::Nothing,
            },
        }
    }
}

/// Both ports as what they are on a bus.
pub(super) const fn ports<'a>(
    host: &'a mut HostPort,
    device: &'a mut DevicePort,
) -> Option<(&'a mut port::HostPort, &'a mut port::DevicePort)> {
    match (host, device) {
        (HostPort::Usb2(host), DevicePort::Usb2(device)) => Some((host, device)),
        _ => None,
    }
}
