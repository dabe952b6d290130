//! A USB 2.0 root port, hubs, and devices that share the bus.
//!
//! Hubs repeat all packets, with a delay each. So there is one bus, and the host serves the devices
//! with requests round-robin. A full-speed device behind a high-speed hub has a separate bus, on
//! which a [`translator`] of that hub is the host; the host reaches it with split transactions (USB
//! 2.0 clauses 11.14 and 11.17).
//!
//! Not modelled: low speed, periodic split transactions, full-speed hubs behind high-speed hubs.
//! Invariants: one transaction is in progress on each bus; a device behind a disabled port is not
//! polled.

mod bus_event;
mod member;
#[cfg(test)]
mod tests;
mod translator;

pub use bus_event::{BusEvent, FateOf};
pub use translator::Translators;

use super::exchange::{Exchange, Next, Pair};
use super::host::Pacing;
use super::packet::Packet;
use super::rate::Rate;
use super::wires::Bus;
use crate::link::bulk::Endpoint;
use crate::link::hub::{AttachError, AttachPoint, DEVICES_MAX, DeviceId, HubId};
use crate::link::superspeed::Side;
use crate::link::{DevicePort, HostPort};
use member::{Member, ports};
use translator::{Behind, Translator};
use units::Instant;
use wire::usb::EndpointAddress;
use wire::xhci::RouteString;

/// A root port and what is behind it.
#[derive(Clone, Debug)]
pub struct Tree {
    rate: Rate,
    pacing: Pacing,
    /// On the bus at the root port.
    above: Exchange,
    members: Vec<Member>,
    translators: Vec<Translator>,
    /// The device served now or last.
    current: usize,
}

impl Tree {
    /// Creates an empty root port. `pacing` is that of the host controller.
    pub const fn new(rate: Rate, pacing: Pacing) -> Self {
        let above = Exchange::new(Bus::new(rate, 0));
        Self { rate, pacing, above, members: Vec::new(), translators: Vec::new(), current: 0 }
    }

    /// Attaches a hub of the bus rate. Its port is enabled.
    ///
    /// # Errors
    /// See [`AttachError`]; at most five hubs in a path.
    pub fn plug_hub(&mut self, place: AttachPoint, translators: Translators) -> Result<HubId, AttachError> {
        let route = self.route(place)?;
        // Nothing could be routed through one more.
        route.via(1).ok_or(AttachError)?;
        let device = self.plug(place, route, self.rate)?;
        self.members[device.0].hub = Some(translators);
        Ok(HubId(device.0))
    }

    /// Attaches a device with a rate. Its port is enabled.
    ///
    /// # Errors
    /// See [`AttachError`]; one of high speed has no place on a bus of full speed.
    pub fn plug_device(&mut self, place: AttachPoint, rate: Rate) -> Result<DeviceId, AttachError> {
        let route = self.route(place)?;
        match (self.rate, rate, place) {
            (Rate::High, Rate::Full, AttachPoint::Port(HubId(hub), port)) => {
                let device = self.plug(place, route, rate)?;
                self.members[device.0].behind = Some(Behind::new(self.translator(hub, port)));
                Ok(device)
            }
            (ours, its, _) if ours == its => self.plug(place, route, rate),
            _ => Err(AttachError),
        }
    }

    /// Returns the device id of a hub.
    pub const fn device_of(&self, hub: HubId) -> DeviceId {
        DeviceId(hub.0)
    }

    /// Returns the route to a device.
    pub fn route_of(&self, device: DeviceId) -> Option<RouteString> {
        self.members.get(device.0).map(|member| member.route)
    }

    /// Returns the bus at the root port with its traffic counters.
    pub const fn bus(&self) -> &Bus {
        self.above.bus()
    }

    /// Returns the buses below translators.
    pub fn buses_below(&self) -> impl Iterator<Item = &Bus> {
        self.translators.iter().map(Translator::bus)
    }

    /// Seeded bug: see [`Bus::hurry`].
    pub const fn hurry(&mut self) {
        self.above.hurry();
    }

    /// Returns both ports of a device.
    ///
    /// # Panics
    /// If the device is of another tree.
    pub fn ports(&mut self, device: DeviceId) -> (&mut HostPort, &mut DevicePort) {
        let Member { host, device, .. } = &mut self.members[device.0];
        (host, device)
    }

    /// Returns the host port of a device.
    ///
    /// # Panics
    /// If the device is of another tree.
    pub fn host(&self, device: DeviceId) -> &HostPort {
        &self.members[device.0].host
    }

    /// Replaces the endpoints of one side of a device: see [`crate::link::LinkPair::configure`].
    ///
    /// # Panics
    /// If the device is of another tree.
    pub fn configure(&mut self, device: DeviceId, side: Side, endpoints: &[Endpoint]) {
        match side {
            Side::Host => self.members[device.0].host.configure(endpoints),
            Side::Device => self.members[device.0].device.configure(endpoints),
        }
    }

    /// Resets a device. Packets in flight from or to it are lost.
    ///
    /// # Panics
    /// If the device is of another tree.
    pub fn restart(&mut self, now: Instant, device: DeviceId) {
        self.forget(now, device.0);
        let Member { host, device, .. } = &mut self.members[device.0];
        (*host, *device) = (host.reset_copy(&[]), device.reset_copy(&[]));
    }

    /// Disables a device, and all devices below a hub. Host ports lose their endpoints then.
    ///
    /// # Panics
    /// If the device is of another tree.
    pub fn cut(&mut self, now: Instant, device: DeviceId) {
        let below: Vec<_> =
            (0..self.members.len()).filter(|&member| self.members[member].above == Some(device.0)).collect();
        below.into_iter().for_each(|member| self.cut(now, DeviceId(member)));
        self.forget(now, device.0);
        let member = &mut self.members[device.0];
        member.is_up = false;
        member.host = member.host.reset_copy(&[]);
    }

    /// Enables the port of a device. Devices below it are enabled separately.
    ///
    /// # Panics
    /// If the device is of another tree.
    pub fn join(&mut self, device: DeviceId) {
        self.members[device.0].is_up = true;
    }

    /// Returns whether the translator of a device holds a transaction of an endpoint whose result
    /// the host does not know.
    ///
    /// # Panics
    /// If the device is of another tree.
    pub fn is_open(&self, device: DeviceId, endpoint: EndpointAddress) -> bool {
        self.members[device.0].behind.as_ref().is_some_and(|behind| behind.is_open(endpoint))
    }

    /// Returns the time of the next step. Poll again after each change of a port.
    pub fn due_at(&mut self, now: Instant) -> Option<Instant> {
        let has_pending =
            self.members.iter_mut().fold(false, |pending, member| member.take_pending() | pending);
        let above = self.above.due_at_with(now, has_pending);
        let below = self.translators.iter_mut().filter_map(|translator| translator.due_at(now));
        above.into_iter().chain(below).min()
    }

    /// Executes the next step of one bus that is due.
    pub fn step(&mut self, now: Instant, fate_of: FateOf<'_>) -> Option<BusEvent> {
        if self.above.is_due(now) {
            return self.step_above(now, fate_of);
        }
        let at = self.translators.iter().position(|translator| translator.is_due(now))?;
        self.translators[at].step(now, &mut self.members, fate_of)
    }

    /// Clears the translator buffer of an endpoint (clause 11.17.5).
    ///
    /// # Panics
    /// If the device is of another tree.
    pub fn clear_buffer(&mut self, now: Instant, device: DeviceId, endpoint: EndpointAddress) {
        if let Some(behind) = &self.members[device.0].behind {
            self.translators[behind.translator].forget(now, device.0, Some(endpoint));
        }
    }

    fn step_above(&mut self, now: Instant, fate_of: FateOf<'_>) -> Option<BusEvent> {
        if self.above.is_free() {
            let (next, earliest) = self.turn(now);
            let Some(next) = next else {
                self.above.rest(earliest);
                return None;
            };
            self.current = next;
            self.above.reach(self.members[next].hubs());
        }
        let current = self.current;
        let fate_of = &mut |from, packet: &Packet| fate_of(DeviceId(current), false, from, packet);
        let member = &mut self.members[current];
        let (host, device) = ports(&mut member.host, &mut member.device)?;
        let sent = match &mut member.behind {
            None => self.above.step_with(now, &mut Pair { host, device }, fate_of),
            Some(behind) => {
                let translator = &mut self.translators[behind.translator];
                self.above.step_with(now, &mut behind.with(host, translator, current), fate_of)
            }
        };
        let endpoint = self.above.order().map(|order| order.ask().endpoint());
        Some(BusEvent { device: DeviceId(current), endpoint, is_below: false, sent })
    }

    /// Returns the next device round-robin; if none is ready, the time at which one may be.
    fn turn(&self, now: Instant) -> (Option<usize>, Option<Instant>) {
        let insists = |member: &Member| member.behind.as_ref().is_some_and(Behind::insists);
        if self.members.get(self.current).is_some_and(insists) {
            return (Some(self.current), None);
        }
        let (count, mut earliest) = (self.members.len(), None::<Instant>);
        for step in 1..=count {
            let at = (self.current + step) % count;
            match self.members[at].next(now) {
                Next::Begin(..) => return (Some(at), None),
                Next::Later(at) => earliest = Some(earliest.map_or(at, |earliest| earliest.min(at))),
                Next::Nothing => {}
            }
        }
        (None, earliest)
    }

    /// Aborts the transaction with a device.
    fn forget(&mut self, now: Instant, device: usize) {
        if self.current == device {
            self.above.abandon(now);
        }
        if let Some(behind) = &mut self.members[device].behind {
            behind.forget();
            self.translators[behind.translator].forget(now, device, None);
        }
    }

    /// Returns the translator of a hub port.
    fn translator(&mut self, hub: usize, port: u8) -> usize {
        let port = (self.members[hub].hub == Some(Translators::Each)).then_some(port);
        let known = self.translators.iter().position(|translator| translator.place == (hub, port));
        known.unwrap_or_else(|| {
            self.translators.push(Translator::new(hub, port));
            self.translators.len() - 1
        })
    }

    /// Returns the route to a free attach point.
    fn route(&self, place: AttachPoint) -> Result<RouteString, AttachError> {
        match place {
            AttachPoint::Root if self.members.is_empty() => Ok(RouteString::ROOT),
            AttachPoint::Root => Err(AttachError),
            AttachPoint::Port(HubId(hub), port) => {
                let hub = self.members.get(hub).filter(|member| member.hub.is_some()).ok_or(AttachError)?;
                let route = hub.route.via(port).filter(|_| port <= 15).ok_or(AttachError)?;
                let is_free = self.members.iter().all(|member| member.route != route);
                is_free.then_some(route).ok_or(AttachError)
            }
        }
    }

    fn plug(&mut self, place: AttachPoint, route: RouteString, rate: Rate) -> Result<DeviceId, AttachError> {
        let number = self.members.len();
        if number >= DEVICES_MAX {
            return Err(AttachError);
        }
        let above = match place {
            AttachPoint::Root => None,
            AttachPoint::Port(HubId(hub), _) => Some(hub),
        };
        self.members.push(Member::new(above, route, rate, self.pacing));
        Ok(DeviceId(number))
    }
}
