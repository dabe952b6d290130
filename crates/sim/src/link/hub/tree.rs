//! A root port, hubs, devices, and the packets between them.
//!
//! A branch is a link and what is at its lower end. Whoever has the time schedules what [`Tree::poll_next`] says and brings
//! it back with [`Tree::handle`].

use crate::link::Crossing;
use crate::link::bulk::{DevicePort, Endpoint, HostPort, Message, Others};
use crate::link::streams::Violation;
use crate::link::superspeed::{Link, Packet, Rate, Side};
use std::collections::VecDeque;
use std::fmt;
use units::{Duration, Instant};
use wire::xhci::RouteString;

/// A hub of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HubId(usize);

/// A device of a tree, by number from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceId(pub usize);

/// Where something is plugged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the host.
    Root,
    /// At a port of a hub, 1 to 15.
    Port(HubId, u8),
}

/// Nothing can be plugged in there: something is, or it would be behind too many hubs, or there is no such port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPlace;

/// A message and the device that it is for or from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routed {
    /// The device.
    pub device: DeviceId,
    /// The ports on the way to it.
    pub route: RouteString,
    /// The message.
    pub message: Message,
}

/// Something that happens in a tree. Branches are counted as they were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A lane is free.
    Free {
        /// Of which branch.
        branch: usize,
        /// Who sends on it.
        from: Side,
        /// Where what was sent had come from: the branch, and the hub's side of it.
        passed: Option<(usize, Side)>,
    },
    /// A packet has come to an end of a branch; to a hub, as far as the hub needs it to pass it on.
    Reaches {
        /// Of which branch.
        branch: usize,
        /// Which end.
        side: Side,
        /// What.
        routed: Routed,
    },
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// On which branch.
    pub branch: usize,
    /// Who sends.
    pub from: Side,
    /// What.
    pub routed: Routed,
    /// When.
    pub crossing: Crossing,
}

/// A root port and what is below it.
#[derive(Clone, Debug)]
pub struct Tree {
    rate: Rate,
    /// What a symbol takes through a cable.
    flight: Duration,
    branches: Vec<Branch>,
    /// By device, as all that follows: the host's port,
    hosts: Vec<HostPort>,
    /// its own port,
    devices: Vec<DevicePort>,
    /// its branch, and the way there.
    places: Vec<(usize, RouteString)>,
    /// Which device was last to be sent something.
    turn: usize,
    next: VecDeque<(Instant, Happening)>,
    sent: VecDeque<Sent>,
}

/// A link, and what is at its lower end.
#[derive(Clone, Debug)]
struct Branch {
    link: Link,
    /// The branch of the hub above.
    above: Option<usize>,
    end: End,
    /// In the hub above: what goes down this branch, and what has come up.
    waiting: [VecDeque<Passing>; 2],
    lanes: [Lane; 2],
}

#[derive(Clone, Debug)]
enum End {
    Hub {
        delay: Duration,
        route: RouteString,
        /// Port and branch.
        below: Vec<(u8, usize)>,
        /// Which of them was last to send up.
        turn: usize,
    },
    Device(DeviceId),
}

/// What one side of a branch sends on.
#[derive(Clone, Copy, Debug)]
struct Lane {
    /// It had nothing to send when it was asked last.
    is_idle: bool,
    /// What it would send if it had a credit.
    held: Option<Passing>,
}

/// A packet in whoever sends it next, and where it has come from if that is a hub: the branch, and the hub's side of it.
#[derive(Clone, Copy, Debug)]
struct Passing {
    routed: Routed,
    came_by: Option<(usize, Side)>,
}

impl Tree {
    /// A root port with nothing in it. `flight` is what a symbol takes through each cable.
    pub const fn new(rate: Rate, flight: Duration) -> Self {
        Self {
            rate,
            flight,
            branches: Vec::new(),
            hosts: Vec::new(),
            devices: Vec::new(),
            places: Vec::new(),
            turn: 0,
            next: VecDeque::new(),
            sent: VecDeque::new(),
        }
    }

    /// Plugs in a hub that passes a packet on after `delay`.
    ///
    /// # Errors
    /// See [`NoPlace`]; a hub has five hubs above it at most, itself included.
    pub fn plug_hub(&mut self, place: Place, delay: Duration) -> Result<HubId, NoPlace> {
        let route = self.route(place)?;
        // Nothing could be routed through one more.
        route.via(1).ok_or(NoPlace)?;
        let end = End::Hub { delay, route, below: Vec::new(), turn: 0 };
        Ok(HubId(self.plug(place, end)))
    }

    /// Plugs in a device with these endpoints.
    ///
    /// # Errors
    /// See [`NoPlace`].
    pub fn plug_device(&mut self, place: Place, endpoints: &[Endpoint]) -> Result<DeviceId, NoPlace> {
        let (route, id) = (self.route(place)?, DeviceId(self.hosts.len()));
        let branch = self.plug(place, End::Device(id));
        self.devices.push(DevicePort::new(endpoints));
        self.hosts.push(HostPort::new(endpoints));
        self.places.push((branch, route));
        Ok(id)
    }

    /// The host's ends of a device's endpoints.
    ///
    /// # Panics
    /// If the device is of another tree.
    pub fn host(&mut self, device: DeviceId) -> &mut HostPort {
        &mut self.hosts[device.0]
    }

    /// The device's ends of its endpoints.
    ///
    /// # Panics
    /// If the device is of another tree.
    pub fn device(&mut self, device: DeviceId) -> &mut DevicePort {
        &mut self.devices[device.0]
    }

    /// The link of a branch, with what it has carried.
    pub fn link(&self, branch: usize) -> Option<&Link> {
        self.branches.get(branch).map(|branch| &branch.link)
    }

    /// The way to a device.
    pub fn route_of(&self, device: DeviceId) -> Option<RouteString> {
        self.places.get(device.0).map(|&(_, route)| route)
    }

    /// What happens, to be brought back to [`Self::handle`] at its time.
    pub fn poll_next(&mut self) -> Option<(Instant, Happening)> {
        self.next.pop_front()
    }

    /// The next packet that was sent.
    pub fn poll_sent(&mut self) -> Option<Sent> {
        self.sent.pop_front()
    }

    /// Something has come up at a port of the host or of a device: what had nothing to send is asked again.
    pub fn wake(&mut self, now: Instant) {
        if !self.branches.is_empty() {
            self.wake_lane(now, 0, Side::Host);
        }
        for device in 0..self.places.len() {
            self.wake_lane(now, self.places[device].0, Side::Device);
        }
    }

    /// Something happens.
    ///
    /// # Errors
    /// If one end of a pipe sent what it could not have sent.
    pub fn handle(&mut self, now: Instant, happening: Happening) -> Result<(), Violation> {
        match happening {
            Happening::Free { branch, from, passed } => {
                if let Some((branch, side)) = passed {
                    self.give_credit_back(now, branch, side);
                }
                self.send(now, branch, from);
                Ok(())
            }
            Happening::Reaches { branch, side: Side::Device, routed } => self.go_down(now, branch, routed),
            Happening::Reaches { branch, side: Side::Host, routed } => self.go_up(now, branch, routed),
        }
    }

    /// The way to a place where nothing is.
    fn route(&self, place: Place) -> Result<RouteString, NoPlace> {
        match place {
            Place::Root if self.branches.is_empty() => Ok(RouteString::ROOT),
            Place::Root => Err(NoPlace),
            Place::Port(HubId(hub), port) => match self.branches.get(hub).map(|branch| &branch.end) {
                Some(End::Hub { route, below, .. })
                    if port <= 15 && below.iter().all(|&(taken, _)| taken != port) =>
                {
                    route.via(port).ok_or(NoPlace)
                }
                _ => Err(NoPlace),
            },
        }
    }

    fn plug(&mut self, place: Place, end: End) -> usize {
        let branch = self.branches.len();
        let above = match place {
            Place::Root => None,
            Place::Port(HubId(hub), port) => {
                if let End::Hub { below, .. } = &mut self.branches[hub].end {
                    below.push((port, branch));
                }
                Some(hub)
            }
        };
        let (link, lane) = (Link::new(self.rate, self.flight), Lane { is_idle: true, held: None });
        self.branches.push(Branch { link, above, end, waiting: Default::default(), lanes: [lane; 2] });
        branch
    }

    /// A packet has come down a branch.
    fn go_down(&mut self, now: Instant, branch: usize, routed: Routed) -> Result<(), Violation> {
        match &mut self.branches[branch].end {
            End::Hub { route, below, .. } => {
                let port = routed.route.port_after(route.tiers()).ok_or(Violation)?;
                let &(_, next) = below.iter().find(|&&(number, _)| number == port).ok_or(Violation)?;
                let came_by = Some((branch, Side::Device));
                self.branches[next].waiting[Side::Host as usize].push_back(Passing { routed, came_by });
                self.wake_lane(now, next, Side::Host);
                Ok(())
            }
            &mut End::Device(device) => {
                let result = self.devices[device.0].receive(routed.message);
                self.give_credit_back(now, branch, Side::Device);
                self.wake_lane(now, branch, Side::Device);
                result
            }
        }
    }

    /// A packet has come up a branch.
    fn go_up(&mut self, now: Instant, branch: usize, routed: Routed) -> Result<(), Violation> {
        if let Some(above) = self.branches[branch].above {
            let came_by = Some((branch, Side::Host));
            self.branches[branch].waiting[Side::Device as usize].push_back(Passing { routed, came_by });
            self.wake_lane(now, above, Side::Device);
            return Ok(());
        }
        let device = routed.device.0;
        let others = self.others_of(device);
        let host = self.hosts.get_mut(device).ok_or(Violation)?;
        host.share(others);
        let result = host.receive(routed.message);
        self.give_credit_back(now, branch, Side::Host);
        self.wake_lane(now, branch, Side::Host);
        result
    }

    /// What a side has received has been passed on or taken.
    fn give_credit_back(&mut self, now: Instant, branch: usize, side: Side) {
        let Branch { link, lanes, .. } = &mut self.branches[branch];
        let credit_at = link.take(now, side);
        if lanes[side.other() as usize].held.is_some() {
            self.next.push_back((credit_at, Happening::Free { branch, from: side.other(), passed: None }));
        }
    }

    fn wake_lane(&mut self, now: Instant, branch: usize, side: Side) {
        if std::mem::take(&mut self.branches[branch].lanes[side as usize].is_idle) {
            self.send(now, branch, side);
        }
    }

    /// A side of a branch sends what it has to send next.
    fn send(&mut self, now: Instant, branch: usize, from: Side) {
        let held = self.branches[branch].lanes[from as usize].held.take();
        let Some(passing) = held.or_else(|| self.choose(branch, from)) else {
            self.branches[branch].lanes[from as usize].is_idle = true;
            return;
        };
        let packet = passing.routed.message.packet();
        let Branch { link, lanes, .. } = &mut self.branches[branch];
        let Ok(crossing) = link.send(now, from, packet, Duration::ZERO) else {
            lanes[from as usize].held = Some(passing);
            return;
        };
        let Passing { routed, came_by: passed } = passing;
        let reaches_at = self.reaches_at(branch, from.other(), &crossing, packet);
        self.next.push_back((crossing.ends, Happening::Free { branch, from, passed }));
        self.next.push_back((reaches_at, Happening::Reaches { branch, side: from.other(), routed }));
        self.sent.push_back(Sent { branch, from, routed, crossing });
    }

    /// When a packet is where it can be used: a device and the host need all of it, a hub its header.
    fn reaches_at(&self, branch: usize, side: Side, crossing: &Crossing, packet: Packet) -> Instant {
        let hub = match side {
            Side::Device => Some(branch),
            Side::Host => self.branches[branch].above,
        };
        let delay = match hub.map(|hub| &self.branches[hub].end) {
            Some(&End::Hub { delay, .. }) => delay,
            _ => return crossing.arrives,
        };
        match (self.rate, packet) {
            (Rate::Gen1, Packet::Data(_)) => {
                let header = self.rate.symbols(self.rate.header_packet());
                crossing.begins + header + self.flight + delay
            }
            _ => crossing.arrives + delay,
        }
    }

    /// What a side of a branch sends next.
    fn choose(&mut self, branch: usize, from: Side) -> Option<Passing> {
        let Branch { above, end, waiting, .. } = &mut self.branches[branch];
        match (from, above, end) {
            (Side::Host, None, _) => self.choose_of_hosts(),
            (Side::Host, Some(_), _) => waiting[Side::Host as usize].pop_front(),
            (Side::Device, _, &mut End::Device(device)) => {
                let message = self.devices[device.0].poll()?;
                let (_, route) = self.places[device.0];
                Some(Passing { routed: Routed { device, route, message }, came_by: None })
            }
            (Side::Device, _, End::Hub { .. }) => self.choose_of_ports(branch),
        }
    }

    /// The next message of the host, whose ports go round.
    fn choose_of_hosts(&mut self) -> Option<Passing> {
        let count = self.hosts.len();
        for step in 1..=count {
            let device = (self.turn + step) % count;
            let others = self.others_of(device);
            self.hosts[device].share(others);
            if let Some(message) = self.hosts[device].poll() {
                self.turn = device;
                let (_, route) = self.places[device];
                let routed = Routed { device: DeviceId(device), route, message };
                return Some(Passing { routed, came_by: None });
            }
        }
        None
    }

    /// The next packet that goes up from a hub, whose ports go round.
    fn choose_of_ports(&mut self, hub: usize) -> Option<Passing> {
        let End::Hub { below, turn, .. } = &self.branches[hub].end else { return None };
        let count = below.len();
        let mut ports = (1..=count).map(|step| (turn + step) % count).map(|place| (place, below[place].1));
        let has_some = |branch: usize| !self.branches[branch].waiting[Side::Device as usize].is_empty();
        let (place, branch) = ports.find(|&(_, branch)| has_some(branch))?;
        if let End::Hub { turn, .. } = &mut self.branches[hub].end {
            *turn = place;
        }
        self.branches[branch].waiting[Side::Device as usize].pop_front()
    }

    /// What the host does with all devices but one.
    fn others_of(&self, device: usize) -> Others {
        let mut others = Others::default();
        let rest = self.hosts.iter().enumerate().filter(|&(other, _)| other != device);
        for (_, host) in rest {
            for (all, one) in
                [(&mut others.have_bus, host.has_bus()), (&mut others.want_bus, host.wants_bus())]
            {
                all.iter_mut().zip(one).for_each(|(all, one)| *all |= one);
            }
        }
        others
    }
}

impl fmt::Display for NoPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing can be plugged in there")
    }
}

impl std::error::Error for NoPlace {}
