//! Both sides of a device's endpoints in a hub tree.
//!
//! When a device is reconfigured or reset, packets in flight to its old endpoints are lost: each
//! side has a generation number, and each packet is for one generation. Invariant: both sides are
//! SuperSpeed.

use super::burst::Burst;
use super::{DeviceId, Routed};
use crate::link::bulk::{self, Endpoint, Message, Others};
use crate::link::loss_timers::{LossTimers, Missed};
use crate::link::streams::Violation;
use crate::link::superspeed::Side;
use crate::link::{DevicePort, Fate, HostPort};
use units::Duration;
use wire::xhci::RouteString;

#[derive(Clone, Debug)]
pub(super) struct Ends {
    pub(super) host: HostPort,
    pub(super) device: DevicePort,
    /// The branch and the route to it.
    pub(super) branch: usize,
    pub(super) route: RouteString,
    /// Cached bus usage.
    pub(super) burst: Burst,
    /// By side.
    generations: [Lives; 2],
    loss_timers: LossTimers,
}

/// Generations of one side: the current one, and the first since the last reset.
#[derive(Clone, Copy, Debug, Default)]
struct Lives {
    current: u32,
    since_reset: u32,
}

impl Ends {
    pub(super) fn new(branch: usize, route: RouteString, endpoints: &[Endpoint]) -> Self {
        Self {
            host: HostPort::SuperSpeed(bulk::HostPort::new(endpoints)),
            device: DevicePort::SuperSpeed(bulk::DevicePort::new(endpoints)),
            branch,
            route,
            burst: Burst::default(),
            generations: Default::default(),
            loss_timers: LossTimers::new(),
        }
    }

    /// Replaces the endpoints of a side, except endpoint 0.
    pub(super) fn configure(&mut self, side: Side, endpoints: &[Endpoint]) {
        match side {
            Side::Host => self.host.configure(endpoints),
            Side::Device => self.device.configure(endpoints),
        }
        self.generations[side as usize].current += 1;
    }

    /// Resets a side, without endpoints.
    pub(super) fn restart(&mut self, side: Side) {
        match side {
            Side::Host => self.host = self.host.reset_copy(&[]),
            Side::Device => self.device = self.device.reset_copy(&[]),
        }
        let generations = &mut self.generations[side as usize];
        generations.current += 1;
        generations.since_reset = generations.current;
    }

    /// Returns the bus usage of the host side.
    pub(super) fn bursts(&self) -> Burst {
        match &self.host {
            HostPort::SuperSpeed(port) => Burst { has: port.has_bus(), wants: port.wants_bus() },
            HostPort::Usb2(_) => Burst::default(),
        }
    }

    /// Returns the next packet of the host.
    pub(super) fn poll_down(&mut self, device: DeviceId, others: Others) -> Option<Routed> {
        let HostPort::SuperSpeed(port) = &mut self.host else { return None };
        port.share(others);
        let message = port.poll()?;
        Some(Routed {
            device,
            route: self.route,
            message,
            generation: self.generations[Side::Device as usize].current,
        })
    }

    /// Returns the next packet of the device.
    pub(super) fn poll_up(&mut self, device: DeviceId) -> Option<Routed> {
        let DevicePort::SuperSpeed(port) = &mut self.device else { return None };
        let message = port.poll()?;
        Some(Routed {
            device,
            route: self.route,
            message,
            generation: self.generations[Side::Host as usize].current,
        })
    }

    /// Delivers a packet to the device. Returns whether it is for the current generation.
    pub(super) fn take_down(&mut self, routed: &Routed, fate: Fate) -> Result<bool, Violation> {
        let DevicePort::SuperSpeed(port) = &mut self.device else { return Err(Violation) };
        let taken = match (self.generations[Side::Device as usize].is_for_now(routed), fate) {
            (false, _) => return Ok(false),
            (true, Fate::Lost) => Ok(()),
            (true, Fate::PayloadDamaged) => port.receive_damaged(&routed.message),
            (true, Fate::Arrives | Fate::HeaderDamaged) => port.receive(&routed.message),
        };
        taken.map(|()| true)
    }

    /// Delivers a packet to the host. Returns whether it is for the current generation.
    pub(super) fn take_up(&mut self, routed: &Routed, others: Others, fate: Fate) -> Result<bool, Violation> {
        let HostPort::SuperSpeed(port) = &mut self.host else { return Err(Violation) };
        port.share(others);
        let taken = match (self.generations[Side::Host as usize].is_for_now(routed), fate) {
            (false, _) => return Ok(false),
            (true, Fate::Lost) => Ok(()),
            (true, Fate::PayloadDamaged) => port.receive_damaged(&routed.message),
            (true, Fate::Arrives | Fate::HeaderDamaged) => port.receive(&routed.message),
        };
        taken.map(|()| true)
    }

    /// See [`crate::link::LinkPair::lose`].
    pub(super) fn lose(&mut self, message: &Message) -> Option<(Duration, Missed)> {
        self.loss_timers.lose(&self.host, &self.device, message)
    }

    /// See [`crate::link::LinkPair::miss`].
    pub(super) fn miss(&mut self, missed: Missed) -> Option<(Duration, Missed)> {
        self.loss_timers.miss(&mut self.host, &mut self.device, missed)
    }
}

impl Lives {
    /// Endpoint 0 stays when the others change.
    const fn is_for_now(self, routed: &Routed) -> bool {
        let is_control = routed.message.endpoint().number() == 0;
        routed.generation == self.current || is_control && routed.generation >= self.since_reset
    }
}
