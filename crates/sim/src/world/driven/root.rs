//! What is behind a root port: a device, or hubs and devices.
//!
//! A device at the root port itself has a link that damaged packets and faults know of; behind hubs there is a [`Tree`].

use crate::engine::Alarm;
use crate::link::bulk::Endpoint;
use crate::link::hub::{self, Tree};
use crate::link::superspeed::{Link, Side};
use crate::link::usb2::Bus;
use crate::link::{DevicePort, HostPort, Joint};
use units::Instant;

/// A root port.
#[derive(Debug)]
pub(super) struct Root {
    /// Its number at the controller.
    pub(super) port: u8,
    pub(super) wires: Wires,
    /// The first device, which is the only one where there are no hubs.
    pub(super) first: usize,
    /// Devices, by number.
    pub(super) fronts: Vec<usize>,
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
    Direct(Joint),
    Hubs(Tree),
}

/// Where a device is plugged in.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    /// Which root port leads there.
    pub(super) root: usize,
    /// Who it is behind hubs.
    pub(super) device: hub::DeviceId,
}

impl Root {
    /// Both ends of the endpoints of a device.
    #[inline]
    pub(super) fn ports(&mut self, device: hub::DeviceId) -> (&mut HostPort, &mut DevicePort) {
        match &mut self.wires {
            Wires::Direct(joint) => (&mut joint.host, &mut joint.device),
            Wires::Hubs(tree) => tree.ports(device),
        }
    }

    /// The host's ends, to be looked at.
    pub(super) fn host(&self, device: hub::DeviceId) -> &HostPort {
        match &self.wires {
            Wires::Direct(joint) => &joint.host,
            Wires::Hubs(tree) => tree.host(device),
        }
    }

    /// The device has other endpoints.
    pub(super) fn configure_device(&mut self, device: hub::DeviceId, endpoints: &[Endpoint]) {
        match &mut self.wires {
            Wires::Direct(joint) => joint.configure(Side::Device, endpoints),
            Wires::Hubs(tree) => tree.configure(device, Side::Device, endpoints),
        }
    }

    /// Nothing crosses any more.
    pub(super) fn cut(&mut self, now: Instant) {
        match &mut self.wires {
            Wires::Direct(joint) => joint.cut(),
            Wires::Hubs(tree) => tree.cut(now, hub::DeviceId(0)),
        }
    }

    /// The link is trained, and both ends begin anew.
    pub(super) fn restart(&mut self) {
        match &mut self.wires {
            Wires::Direct(joint) => joint.restart(&[]),
            Wires::Hubs(tree) => {
                (0..self.fronts.len()).for_each(|device| tree.restart(hub::DeviceId(device)));
                // Those behind the hub come up when it lets them.
                tree.join(hub::DeviceId(0));
            }
        }
    }

    /// The bus at the port, if it is one of USB 2.0.
    pub(super) const fn bus(&self) -> Option<&Bus> {
        match &self.wires {
            Wires::Direct(joint) => joint.bus(),
            Wires::Hubs(_) => None,
        }
    }

    /// The link at the port, if it is one of SuperSpeed.
    pub(super) fn link(&self) -> Option<&Link> {
        match &self.wires {
            Wires::Direct(joint) => joint.link(),
            Wires::Hubs(tree) => tree.link(0),
        }
    }
}
