//! A root port: a device, or hubs with devices.
//!
//! A single device is on a link with link-level faults; behind hubs there is a [`Tree`] of links
//! or, on USB 2.0, of devices on one bus.

use crate::engine::Alarm;
use crate::link::bulk::Endpoint;
use crate::link::hub::{self, Tree};
use crate::link::superspeed::{Link, Side};
use crate::link::usb2;
use crate::link::{DevicePort, HostPort, LinkPair};
use units::Instant;
use wire::usb::EndpointAddress;

/// A root port.
#[derive(Debug)]
pub(super) struct RootPort {
    /// Number at the controller.
    pub(super) port: u8,
    pub(super) wires: Wires,
    /// The first device, the only one without hubs.
    pub(super) first: usize,
    /// Numbers of its devices.
    pub(super) devices: Vec<usize>,
    /// Alarm of its USB 2.0 bus.
    pub(super) alarm: Alarm,
    /// Whether a device is detected.
    pub(super) is_connected: bool,
    /// Whether it is enabled.
    pub(super) is_ready: bool,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each root port")]
pub(super) enum Wires {
    Direct(LinkPair),
    Hubs(Tree),
    /// USB 2.0 hubs.
    Bus(usb2::Tree),
}

/// Position of a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    /// Number of the root port.
    pub(super) root: usize,
    /// Number behind the root port.
    pub(super) device: hub::DeviceId,
}

impl RootPort {
    /// Returns both ends of a device's endpoints.
    #[inline]
    pub(super) fn ports(&mut self, device: hub::DeviceId) -> (&mut HostPort, &mut DevicePort) {
        match &mut self.wires {
            Wires::Direct(link_pair) => (&mut link_pair.host, &mut link_pair.device),
            Wires::Hubs(tree) => tree.ports(device),
            Wires::Bus(tree) => tree.ports(device),
        }
    }

    /// Returns the host's end.
    pub(super) fn host(&self, device: hub::DeviceId) -> &HostPort {
        match &self.wires {
            Wires::Direct(link_pair) => &link_pair.host,
            Wires::Hubs(tree) => tree.host(device),
            Wires::Bus(tree) => tree.host(device),
        }
    }

    /// Sets the endpoints of a device.
    pub(super) fn configure_device(&mut self, device: hub::DeviceId, endpoints: &[Endpoint]) {
        match &mut self.wires {
            Wires::Direct(link_pair) => link_pair.configure(Side::Device, endpoints),
            Wires::Hubs(tree) => tree.configure(device, Side::Device, endpoints),
            Wires::Bus(tree) => tree.configure(device, Side::Device, endpoints),
        }
    }

    /// Takes the link down.
    pub(super) fn cut(&mut self, now: Instant) {
        match &mut self.wires {
            Wires::Direct(link_pair) => link_pair.cut(),
            Wires::Hubs(tree) => tree.cut(now, hub::DeviceId(0)),
            Wires::Bus(tree) => tree.cut(now, hub::DeviceId(0)),
        }
    }

    /// Restarts both ends of the trained link.
    pub(super) fn restart(&mut self, now: Instant) {
        match &mut self.wires {
            Wires::Direct(link_pair) => link_pair.restart(&[]),
            Wires::Hubs(tree) => {
                (0..self.devices.len()).for_each(|device| tree.restart(hub::DeviceId(device)));
                // Devices behind the hub join when it enables their ports.
                tree.join(hub::DeviceId(0));
            }
            Wires::Bus(tree) => {
                (0..self.devices.len()).for_each(|device| tree.restart(now, hub::DeviceId(device)));
                tree.join(hub::DeviceId(0));
            }
        }
    }

    /// Takes down the link at a hub port.
    pub(super) fn cut_below(&mut self, now: Instant, device: hub::DeviceId) {
        match &mut self.wires {
            Wires::Direct(_) => {}
            Wires::Hubs(tree) => tree.cut(now, device),
            Wires::Bus(tree) => tree.cut(now, device),
        }
    }

    /// Restarts both ends of the link at a hub port.
    pub(super) fn restart_below(&mut self, now: Instant, device: hub::DeviceId) {
        match &mut self.wires {
            Wires::Direct(_) => {}
            Wires::Hubs(tree) => {
                tree.restart(device);
                tree.join(device);
            }
            Wires::Bus(tree) => {
                tree.restart(now, device);
                tree.join(device);
            }
        }
    }

    /// Returns whether a translator holds a split transaction whose completion the host has not
    /// seen.
    pub(super) fn is_split_open(&self, device: hub::DeviceId, endpoint: EndpointAddress) -> bool {
        match &self.wires {
            Wires::Direct(_) | Wires::Hubs(_) => false,
            Wires::Bus(tree) => tree.is_open(device, endpoint),
        }
    }

    /// Returns the bus at the port, if it is USB 2.0.
    pub(super) const fn bus(&self) -> Option<&usb2::Bus> {
        match &self.wires {
            Wires::Direct(link_pair) => link_pair.bus(),
            Wires::Hubs(_) => None,
            Wires::Bus(tree) => Some(tree.bus()),
        }
    }

    /// Returns whether the packet statistics of its hubs are consistent.
    pub(super) fn is_consistent(&self, now: Instant) -> bool {
        match &self.wires {
            Wires::Hubs(tree) => tree.is_consistent(now),
            Wires::Direct(_) | Wires::Bus(_) => true,
        }
    }

    /// Returns the links below its hubs.
    pub(super) fn links_below(&self) -> impl Iterator<Item = &Link> {
        let tree = match &self.wires {
            Wires::Hubs(tree) => Some(tree),
            Wires::Direct(_) | Wires::Bus(_) => None,
        };
        tree.into_iter().flat_map(|tree| tree.links().skip(1))
    }

    /// Returns the buses below transaction translators.
    pub(super) fn buses_below(&self) -> impl Iterator<Item = &usb2::Bus> {
        let tree = match &self.wires {
            Wires::Bus(tree) => Some(tree),
            Wires::Direct(_) | Wires::Hubs(_) => None,
        };
        tree.into_iter().flat_map(usb2::Tree::buses_below)
    }

    /// Seeded bug: data on a USB 2.0 bus takes no time from now on.
    pub(super) const fn hurry(&mut self) {
        match &mut self.wires {
            Wires::Direct(link_pair) => link_pair.hurry_bus(),
            Wires::Hubs(_) => {}
            Wires::Bus(tree) => tree.hurry(),
        }
    }

    /// Returns the link at the port, if it is SuperSpeed.
    pub(super) fn link(&self) -> Option<&Link> {
        match &self.wires {
            Wires::Direct(link_pair) => link_pair.link(),
            Wires::Hubs(tree) => tree.links().next(),
            Wires::Bus(_) => None,
        }
    }
}
