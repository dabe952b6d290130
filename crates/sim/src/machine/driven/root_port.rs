//! What is behind a root port: a device, or hubs and devices.
//!
//! A device at the root port itself has a link that damaged packets and faults know of; behind hubs there is a [`Tree`], of links or,
//! at a port of USB 2.0, on one bus.

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
    /// Its number at the controller.
    pub(super) port: u8,
    pub(super) wires: Wires,
    /// The first device, which is the only one where there are no hubs.
    pub(super) first: usize,
    /// Devices, by number.
    pub(super) devices: Vec<usize>,
    /// When its bus of USB 2.0 goes on.
    pub(super) alarm: Alarm,
    /// Whether somebody is noticed there.
    pub(super) is_connected: bool,
    /// Whether it can be talked to.
    pub(super) is_ready: bool,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each root port")]
pub(super) enum Wires {
    Direct(LinkPair),
    Hubs(Tree),
    /// Hubs of USB 2.0.
    Bus(usb2::Tree),
}

/// Where a device is plugged in.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    /// Which root port leads there.
    pub(super) root: usize,
    /// Who it is behind hubs.
    pub(super) device: hub::DeviceId,
}

impl RootPort {
    /// Both ends of the endpoints of a device.
    #[inline]
    pub(super) fn ports(&mut self, device: hub::DeviceId) -> (&mut HostPort, &mut DevicePort) {
        match &mut self.wires {
            Wires::Direct(link_pair) => (&mut link_pair.host, &mut link_pair.device),
            Wires::Hubs(tree) => tree.ports(device),
            Wires::Bus(tree) => tree.ports(device),
        }
    }

    /// The host's ends, to be looked at.
    pub(super) fn host(&self, device: hub::DeviceId) -> &HostPort {
        match &self.wires {
            Wires::Direct(link_pair) => &link_pair.host,
            Wires::Hubs(tree) => tree.host(device),
            Wires::Bus(tree) => tree.host(device),
        }
    }

    /// The device has other endpoints.
    pub(super) fn configure_device(&mut self, device: hub::DeviceId, endpoints: &[Endpoint]) {
        match &mut self.wires {
            Wires::Direct(link_pair) => link_pair.configure(Side::Device, endpoints),
            Wires::Hubs(tree) => tree.configure(device, Side::Device, endpoints),
            Wires::Bus(tree) => tree.configure(device, Side::Device, endpoints),
        }
    }

    /// Nothing crosses any more.
    pub(super) fn cut(&mut self, now: Instant) {
        match &mut self.wires {
            Wires::Direct(link_pair) => link_pair.cut(),
            Wires::Hubs(tree) => tree.cut(now, hub::DeviceId(0)),
            Wires::Bus(tree) => tree.cut(now, hub::DeviceId(0)),
        }
    }

    /// The link is trained, and both ends begin anew.
    pub(super) fn restart(&mut self, now: Instant) {
        match &mut self.wires {
            Wires::Direct(link_pair) => link_pair.restart(&[]),
            Wires::Hubs(tree) => {
                (0..self.devices.len()).for_each(|device| tree.restart(hub::DeviceId(device)));
                // Those behind the hub come up when it lets them.
                tree.join(hub::DeviceId(0));
            }
            Wires::Bus(tree) => {
                (0..self.devices.len()).for_each(|device| tree.restart(now, hub::DeviceId(device)));
                tree.join(hub::DeviceId(0));
            }
        }
    }

    /// Nothing crosses any more at the port of a hub.
    pub(super) fn cut_below(&mut self, now: Instant, device: hub::DeviceId) {
        match &mut self.wires {
            Wires::Direct(_) => {}
            Wires::Hubs(tree) => tree.cut(now, device),
            Wires::Bus(tree) => tree.cut(now, device),
        }
    }

    /// The port of a hub leads on, and both ends begin anew.
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

    /// Whether a translator has something of an endpoint of which the host does not know the end.
    pub(super) fn is_split_open(&self, device: hub::DeviceId, endpoint: EndpointAddress) -> bool {
        match &self.wires {
            Wires::Direct(_) | Wires::Hubs(_) => false,
            Wires::Bus(tree) => tree.is_open(device, endpoint),
        }
    }

    /// The bus at the port, if it is one of USB 2.0.
    pub(super) const fn bus(&self) -> Option<&usb2::Bus> {
        match &self.wires {
            Wires::Direct(link_pair) => link_pair.bus(),
            Wires::Hubs(_) => None,
            Wires::Bus(tree) => Some(tree.bus()),
        }
    }

    /// Whether the books of packets in its hubs agree, if it has any.
    pub(super) fn is_consistent(&self, now: Instant) -> bool {
        match &self.wires {
            Wires::Hubs(tree) => tree.is_consistent(now),
            Wires::Direct(_) | Wires::Bus(_) => true,
        }
    }

    /// Links below its hubs.
    pub(super) fn links_below(&self) -> impl Iterator<Item = &Link> {
        let tree = match &self.wires {
            Wires::Hubs(tree) => Some(tree),
            Wires::Direct(_) | Wires::Bus(_) => None,
        };
        tree.into_iter().flat_map(|tree| tree.links().skip(1))
    }

    /// Buses below translators of its hubs.
    pub(super) fn buses_below(&self) -> impl Iterator<Item = &usb2::Bus> {
        let tree = match &self.wires {
            Wires::Bus(tree) => Some(tree),
            Wires::Direct(_) | Wires::Hubs(_) => None,
        };
        tree.into_iter().flat_map(usb2::Tree::buses_below)
    }

    /// A planted bug: data on the bus takes no time from now on, if it is one of USB 2.0.
    pub(super) const fn hurry(&mut self) {
        match &mut self.wires {
            Wires::Direct(link_pair) => link_pair.hurry_bus(),
            Wires::Hubs(_) => {}
            Wires::Bus(tree) => tree.hurry(),
        }
    }

    /// The link at the port, if it is one of SuperSpeed.
    pub(super) fn link(&self) -> Option<&Link> {
        match &self.wires {
            Wires::Direct(link_pair) => link_pair.link(),
            Wires::Hubs(tree) => tree.links().next(),
            Wires::Bus(_) => None,
        }
    }
}
