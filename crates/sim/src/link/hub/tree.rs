//! The tree: root port, hubs, devices, and the packets between them.
//!
//! A branch is a link and the hub or device at its lower end. The owner schedules the events of
//! [`Tree::poll_next`] and returns them with [`Tree::handle`]. A hub has endpoint 0, so it is a
//! destination as well.

mod lines;

use super::burst::Bus;
use super::ends::Ends;
use super::lane::{CameBy, Coming, Lane, Passing};
use super::types::{
    Arrived, AttachError, AttachPoint, DEVICES_MAX, DeviceId, HubId, Routed, Sent, TreeArrival,
    TreeEnvironment, TreeEvent,
};
use crate::engine::{CapacityExceeded, OccupancyStats};
use crate::index_set::IndexSet64;
use crate::link::bulk::{Endpoint, Message};
use crate::link::streams::Violation;
use crate::link::superspeed::{Link, Packet, Rate, Side, TurnRound};
use crate::link::{Crossing, DevicePort, HostPort, Missed};
use std::collections::VecDeque;
use units::{Duration, Instant};
use wire::xhci::RouteString;

/// A root port and what is below it.
#[derive(Clone, Debug)]
pub struct Tree {
    rate: Rate,
    /// Propagation delay of each cable.
    propagation: Duration,
    turn_round: TurnRound,
    branches: Vec<Branch>,
    /// By device.
    ends: Vec<Ends>,
    /// Bursts of all devices.
    bus: Bus,
    /// Devices for which the host may have packets.
    ready: IndexSet64,
    /// Devices whose ports changed since the last wake.
    touched: IndexSet64,
    /// The device that the host served last.
    turn: usize,
    next: VecDeque<(Instant, TreeEvent)>,
    sent: VecDeque<Sent>,
    /// The queue that overflowed.
    overrun: Option<CapacityExceeded>,
    /// Packets in hubs, until they go on.
    in_hubs: OccupancyStats,
}

/// A link, and what is at its lower end.
#[derive(Clone, Debug)]
struct Branch {
    link: Link,
    /// Number of times it went down.
    generation: u8,
    is_up: bool,
    /// The branch of the hub above.
    above: Option<usize>,
    /// The device at the lower end.
    device: DeviceId,
    hub: Option<Hub>,
    /// In the hub above: packets that go down this branch, and that came up.
    waiting: [VecDeque<Passing>; 2],
    /// By the side that sends.
    lanes: [Lane; 2],
}

#[derive(Clone, Debug)]
struct Hub {
    delay: Duration,
    route: RouteString,
    /// Port and branch.
    below: Vec<(u8, usize)>,
    /// The port served last.
    turn: usize,
}

impl Tree {
    /// Creates an empty root port. `propagation` is the propagation delay of each cable.
    pub fn new(rate: Rate, propagation: Duration) -> Self {
        Self {
            rate,
            propagation,
            turn_round: TurnRound::NONE,
            branches: Vec::new(),
            ends: Vec::new(),
            bus: Bus::new(),
            ready: IndexSet64::NONE,
            touched: IndexSet64::NONE,
            turn: 0,
            next: VecDeque::new(),
            sent: VecDeque::new(),
            overrun: None,
            in_hubs: OccupancyStats::default(),
        }
    }

    /// Sets the response times of host and devices. Hubs forward within their own delay.
    #[must_use]
    pub const fn between(mut self, turn_round: TurnRound) -> Self {
        self.turn_round = turn_round;
        self
    }

    /// Attaches a hub with a forwarding delay. Its link is up.
    ///
    /// # Errors
    /// See [`AttachError`]; at most five hubs in a path.
    pub fn plug_hub(&mut self, place: AttachPoint, delay: Duration) -> Result<HubId, AttachError> {
        let route = self.route(place)?;
        // Nothing could be routed through one more.
        route.via(1).ok_or(AttachError)?;
        let hub = Hub { delay, route, below: Vec::new(), turn: 0 };
        Ok(HubId(self.plug(place, route, &[], Some(hub))?))
    }

    /// Attaches a device with `endpoints`. Its link is up.
    ///
    /// # Errors
    /// See [`AttachError`].
    pub fn plug_device(
        &mut self,
        place: AttachPoint,
        endpoints: &[Endpoint],
    ) -> Result<DeviceId, AttachError> {
        let route = self.route(place)?;
        let branch = self.plug(place, route, endpoints, None)?;
        Ok(self.branches[branch].device)
    }

    /// Returns the device id of a hub.
    ///
    /// # Panics
    /// If it is of another tree.
    pub fn device_of(&self, hub: HubId) -> DeviceId {
        self.branches[hub.0].device
    }

    /// Returns both ports of a device. Call [`Self::wake`] after all changes.
    ///
    /// # Panics
    /// If the device is of another tree.
    pub fn ports(&mut self, device: DeviceId) -> (&mut HostPort, &mut DevicePort) {
        self.touched.add(device.0);
        let ends = &mut self.ends[device.0];
        (&mut ends.host, &mut ends.device)
    }

    /// Returns the host port of a device.
    ///
    /// # Panics
    /// If the device is of another tree.
    pub fn host(&self, device: DeviceId) -> &HostPort {
        &self.ends[device.0].host
    }

    /// Replaces the endpoints of one side of a device: see [`crate::link::LinkPair::configure`].
    ///
    /// # Panics
    /// If the device is of another tree.
    pub fn configure(&mut self, device: DeviceId, side: Side, endpoints: &[Endpoint]) {
        self.touched.add(device.0);
        self.ends[device.0].configure(side, endpoints);
    }

    /// Resets a device. Packets in flight from or to it are lost.
    ///
    /// # Panics
    /// If the device is of another tree.
    pub fn restart(&mut self, device: DeviceId) {
        self.touched.add(device.0);
        let ends = &mut self.ends[device.0];
        [Side::Host, Side::Device].into_iter().for_each(|side| ends.restart(side));
    }

    /// Returns the links with their traffic counters: the root link first, then those below hubs.
    pub fn links(&self) -> impl Iterator<Item = &Link> {
        self.branches.iter().map(|branch| &branch.link)
    }

    /// Returns the route to a device.
    pub fn route_of(&self, device: DeviceId) -> Option<RouteString> {
        self.ends.get(device.0).map(|ends| ends.route)
    }

    /// Returns the next event to schedule and return to [`Self::handle`].
    pub fn poll_next(&mut self) -> Option<(Instant, TreeEvent)> {
        self.next.pop_front()
    }

    /// Returns the next packet that was sent.
    pub fn poll_sent(&mut self) -> Option<Sent> {
        self.sent.pop_front()
    }

    /// Polls the sides that had nothing to send after changes of their ports.
    pub fn wake(&mut self, now: Instant, around: &mut dyn TreeEnvironment) {
        for device in self.touched.drain() {
            self.look_at(device);
            let branch = self.ends[device].branch;
            self.wake_lane(now, branch, Side::Device, around);
        }
        if !self.ready.is_none() {
            self.wake_lane(now, 0, Side::Host, around);
        }
    }

    /// Records a lost packet: see [`crate::link::LinkPair::lose`].
    ///
    /// # Panics
    /// If the device is of another tree.
    pub fn lose(&mut self, device: DeviceId, message: &Message) -> Option<(Duration, Missed)> {
        self.ends[device.0].lose(message)
    }

    /// Handles an expired timeout: see [`crate::link::LinkPair::miss`].
    ///
    /// # Panics
    /// If the device is of another tree.
    pub fn miss(&mut self, device: DeviceId, missed: Missed) -> Option<(Duration, Missed)> {
        self.touched.add(device.0);
        self.ends[device.0].miss(missed)
    }

    /// Handles an event. Returns the arrival of a packet, if there was one.
    ///
    /// # Errors
    /// If one end of a pipe sent what it could not have sent.
    pub fn handle(
        &mut self,
        now: Instant,
        happening: TreeEvent,
        around: &mut dyn TreeEnvironment,
    ) -> Result<Option<TreeArrival>, Violation> {
        let (branch, generation) = happening.branch();
        if self.branches[branch].generation != generation {
            return Ok(None);
        }
        match happening {
            TreeEvent::Free { from, .. } => {
                let lane = &mut self.branches[branch].lanes[from as usize];
                lane.is_expected = false;
                if let Some(came_by) = lane.passes.take() {
                    self.give_credit_back(now, came_by);
                }
                self.send(now, branch, from, around);
                Ok(None)
            }
            TreeEvent::Reaches { side, .. } => self.reach(now, branch, side, around),
            TreeEvent::Retry { from, .. } => {
                self.begin_again(now, branch, from, around);
                Ok(None)
            }
        }
    }

    /// Delivers a packet to a side of a branch, unless its header or an earlier one is damaged.
    fn reach(
        &mut self,
        now: Instant,
        branch: usize,
        side: Side,
        around: &mut dyn TreeEnvironment,
    ) -> Result<Option<TreeArrival>, Violation> {
        let Branch { generation, lanes, link, .. } = &mut self.branches[branch];
        let lane = &mut lanes[side.other() as usize];
        let Coming { routed, is_damaged } = lane.propagating.pop_front().ok_or(Violation)?;
        if lane.retry.ignores() || is_damaged {
            if is_damaged {
                lane.retry.refuse();
                let lbad_at = link.send_command(now, side).arrives;
                let (branch, generation) = (branch as u8, *generation);
                self.expect(lbad_at, TreeEvent::Retry { branch, generation, from: side.other() });
            }
            return Ok(Some(TreeArrival::InVain { branch, side, bytes: routed.message.packet().payload() }));
        }
        match side {
            Side::Device => self.go_down(now, branch, routed, around),
            Side::Host => self.go_up(now, branch, routed, around),
        }
    }

    /// Handles LBAD: sends LRTY and retransmits.
    fn begin_again(&mut self, now: Instant, branch: usize, from: Side, around: &mut dyn TreeEnvironment) {
        let Branch { lanes, link, .. } = &mut self.branches[branch];
        let lane = &mut lanes[from as usize];
        if lane.retry.begin_again(lane.propagating.len()) {
            link.send_command(now, from);
            if !lane.is_expected {
                lane.is_idle = false;
                self.send(now, branch, from, around);
            }
        }
    }

    /// Takes the link to a device down, with all links below a hub: packets in flight are lost.
    /// Host ports lose their endpoints, since outstanding transactions cannot complete.
    ///
    /// # Panics
    /// If the device is of another tree.
    pub fn cut(&mut self, now: Instant, device: DeviceId) {
        let branch = self.ends[device.0].branch;
        for (_, below) in self.branches[branch].hub.as_ref().map(|hub| hub.below.clone()).unwrap_or_default()
        {
            self.cut(now, self.branches[below].device);
        }
        self.touched.add(device.0);
        self.ends[device.0].restart(Side::Host);
        let Branch { generation, is_up, waiting, lanes, .. } = &mut self.branches[branch];
        (*generation, *is_up) = (generation.wrapping_add(1), false);
        // The hub above drops the packets for this branch, which frees its buffers.
        let down = &mut lanes[Side::Host as usize];
        let in_hub = waiting[Side::Host as usize].drain(..).chain(down.held.take());
        let waited: Vec<_> = in_hub.filter_map(|passing| passing.came_by).collect();
        let passes = down.passes.take();
        // The packet that the lower hub held is lost with its lane.
        let lost = lanes[Side::Device as usize].held.take().and_then(|passing| passing.came_by);
        *lanes = Lane::both();
        waited.iter().chain(&lost).for_each(|came_by| self.in_hubs.leave(now, came_by.since));
        waited.into_iter().chain(passes).for_each(|came_by| self.give_credit_back(now, came_by));
    }

    /// Brings the link to a device up. Links below it come up separately.
    ///
    /// # Panics
    /// If the device is of another tree.
    pub fn join(&mut self, device: DeviceId) {
        let branch = &mut self.branches[self.ends[device.0].branch];
        if !std::mem::replace(&mut branch.is_up, true) {
            branch.link.restart();
        }
        self.touched.add(device.0);
    }

    /// Returns whether the link to a device is up.
    ///
    /// # Panics
    /// If the device is of another tree.
    pub fn is_up(&self, device: DeviceId) -> bool {
        self.branches[self.ends[device.0].branch].is_up
    }

    /// Returns the route to a free attach point.
    fn route(&self, place: AttachPoint) -> Result<RouteString, AttachError> {
        match place {
            AttachPoint::Root if self.branches.is_empty() => Ok(RouteString::ROOT),
            AttachPoint::Root => Err(AttachError),
            AttachPoint::Port(HubId(hub), port) => {
                let hub = self.branches.get(hub).and_then(|branch| branch.hub.as_ref()).ok_or(AttachError)?;
                let is_free = port <= 15 && hub.below.iter().all(|&(taken, _)| taken != port);
                hub.route.via(port).filter(|_| is_free).ok_or(AttachError)
            }
        }
    }

    fn plug(
        &mut self,
        place: AttachPoint,
        route: RouteString,
        endpoints: &[Endpoint],
        hub: Option<Hub>,
    ) -> Result<usize, AttachError> {
        let (branch, device) = (self.branches.len(), DeviceId(self.ends.len()));
        if device.0 >= DEVICES_MAX {
            return Err(AttachError);
        }
        let above = match place {
            AttachPoint::Root => None,
            AttachPoint::Port(HubId(above), port) => {
                if let Some(hub) = &mut self.branches[above].hub {
                    hub.below.push((port, branch));
                }
                Some(above)
            }
        };
        self.branches.push(Branch {
            link: Link::new(self.rate, self.propagation).between(self.turn_round),
            generation: 0,
            is_up: true,
            above,
            device,
            hub,
            waiting: Default::default(),
            lanes: Lane::both(),
        });
        self.ends.push(Ends::new(branch, route, endpoints));
        Ok(branch)
    }

    /// Handles a packet that arrived at the lower end of a branch.
    fn go_down(
        &mut self,
        now: Instant,
        branch: usize,
        routed: Routed,
        around: &mut dyn TreeEnvironment,
    ) -> Result<Option<TreeArrival>, Violation> {
        let Branch { hub, device, generation, .. } = &self.branches[branch];
        let came_by = CameBy { branch, generation: *generation, side: Side::Device, since: now };
        let port = hub.as_ref().and_then(|hub| routed.route.port_after(hub.route.tiers()));
        let (Some(hub), Some(port)) = (hub, port) else {
            let (device, is_its) = (*device, self.ends[device.0].route == routed.route);
            let taken = match is_its {
                true => self.ends[device.0].take_down(&routed, around.ends(device, &routed.message)),
                false => Ok(false),
            };
            self.use_credit(now, came_by);
            self.wake_lane(now, branch, Side::Device, around);
            let arrived = Arrived { side: Side::Device, device, message: routed.message };
            return taken.map(|is_new| is_new.then_some(TreeArrival::ToItsEnd(arrived)));
        };
        let next = hub.below.iter().find(|&&(number, _)| number == port).map(|&(_, next)| next);
        match next.filter(|&next| self.branches[next].is_up) {
            Some(next) => {
                let passing = Passing { routed, came_by: Some(came_by) };
                self.line_up(now, next, Side::Host, passing);
                self.wake_lane(now, next, Side::Host, around);
            }
            // No device is there: the hub discards the packet (clause 10.7.2).
            None => self.give_credit_back(now, came_by),
        }
        Ok(None)
    }

    /// Handles a packet that arrived at the upper end of a branch.
    fn go_up(
        &mut self,
        now: Instant,
        branch: usize,
        routed: Routed,
        around: &mut dyn TreeEnvironment,
    ) -> Result<Option<TreeArrival>, Violation> {
        let came_by =
            CameBy { branch, generation: self.branches[branch].generation, side: Side::Host, since: now };
        if let Some(above) = self.branches[branch].above {
            let passing = Passing { routed, came_by: Some(came_by) };
            self.line_up(now, branch, Side::Device, passing);
            self.wake_lane(now, above, Side::Device, around);
            return Ok(None);
        }
        let device = routed.device;
        self.look_at(device.0);
        let others = self.bus.others(self.ends[device.0].burst);
        let taken = self.ends[device.0].take_up(&routed, others, around.ends(device, &routed.message));
        self.use_credit(now, came_by);
        self.look_at(device.0);
        self.wake_lane(now, branch, Side::Host, around);
        let arrived = Arrived { side: Side::Host, device, message: routed.message };
        taken.map(|is_new| is_new.then_some(TreeArrival::ToItsEnd(arrived)))
    }

    /// Updates the bus usage of a device; when a burst ends, others may start.
    fn look_at(&mut self, device: usize) {
        let ends = &mut self.ends[device];
        let now = ends.bursts();
        let before = std::mem::replace(&mut ends.burst, now);
        let is_freed = self.bus.change(before, now);
        self.ready.add(device);
        if is_freed {
            for (other, ends) in self.ends.iter().enumerate() {
                if ends.burst.wants() {
                    self.ready.add(other);
                }
            }
        }
    }

    /// Returns the credit of a packet that a hub has forwarded or discarded.
    fn give_credit_back(&mut self, now: Instant, came_by: CameBy) {
        let branch = &mut self.branches[came_by.branch];
        if branch.generation == came_by.generation {
            branch.link.take(now, came_by.side);
            self.use_credit(now, came_by);
        }
    }

    /// Schedules the sender that waits for the credit of an accepted packet.
    fn use_credit(&mut self, now: Instant, CameBy { branch: number, generation, side, .. }: CameBy) {
        let branch = &mut self.branches[number];
        let credit_at = branch.link.credit_at(now, side.other());
        let lane = &mut branch.lanes[side.other() as usize];
        if lane.held.is_some() && !std::mem::replace(&mut lane.is_expected, true) {
            let free = TreeEvent::Free { branch: number as u8, generation, from: side.other() };
            self.expect(credit_at, free);
        }
    }

    fn wake_lane(&mut self, now: Instant, branch: usize, side: Side, around: &mut dyn TreeEnvironment) {
        if std::mem::take(&mut self.branches[branch].lanes[side as usize].is_idle) {
            self.send(now, branch, side, around);
        }
    }

    /// Sends the next packet of a side of a branch.
    fn send(&mut self, now: Instant, branch: usize, from: Side, around: &mut dyn TreeEnvironment) {
        let Branch { link, lanes, is_up, .. } = &mut self.branches[branch];
        let lane = &mut lanes[from as usize];
        if let Some(again) = lane.retry.next_again() {
            // It still has its credit; its buffer in the hub was released.
            let crossing = link.resend(now, from, again.routed.message.packet());
            return self.has_sent(branch, from, again, crossing, around);
        }
        let held = lane.held.take();
        let has_waited = held.is_some();
        let next = if *is_up { held.or_else(|| self.choose(branch, from)) } else { None };
        let Branch { link, lanes, above, .. } = &mut self.branches[branch];
        let lane = &mut lanes[from as usize];
        let Some(passing) = next else {
            lane.is_idle = true;
            return;
        };
        let message = &passing.routed.message;
        // The host adds its delay, unless it has waited for a credit.
        let is_paced = from == Side::Host && above.is_none() && !has_waited;
        let gap = if is_paced { around.pace(message) } else { Duration::ZERO };
        let Ok(crossing) = link.send(now, from, message.packet(), gap) else {
            lane.held = Some(passing);
            return;
        };
        lane.passes = passing.came_by;
        if let Some(CameBy { since, .. }) = passing.came_by {
            self.in_hubs.leave(now, since);
        }
        self.has_sent(branch, from, passing, crossing, around);
    }

    /// Schedules the events of a packet: lane free and arrival.
    fn has_sent(
        &mut self,
        branch: usize,
        from: Side,
        passing: Passing,
        crossing: Crossing,
        around: &mut dyn TreeEnvironment,
    ) {
        let (side, routed) = (from.other(), passing.routed);
        let passes_at = self.passes_at(branch, side, &crossing, &routed);
        let Branch { link, lanes, generation, .. } = &mut self.branches[branch];
        let (lane, generation) = (&mut lanes[from as usize], *generation);
        lane.is_expected = true;
        let is_kept = lane.retry.keeps();
        if is_kept {
            lane.retry.keep(passing);
        }
        let is_damaged =
            !is_kept && around.damages(routed.device, &routed.message) && lane.retry.damage(passing);
        if passes_at.is_none() && !is_kept && !is_damaged {
            // The receiver always has room for it.
            link.accept_on_arrival(crossing.arrives, side);
        }
        lane.propagating.push_back(Coming { routed, is_damaged });
        let number = branch as u8;
        let reaches_at = passes_at.unwrap_or(crossing.heard);
        self.expect(crossing.ends, TreeEvent::Free { branch: number, generation, from });
        let bytes = routed.message.packet().payload();
        self.expect(reaches_at, TreeEvent::Reaches { branch: number, generation, side, bytes });
        self.sent.push_back(Sent { branch, from, routed, crossing, is_passed: passing.came_by.is_some() });
    }

    /// Returns when a hub can forward a packet, which needs only its header; the route is decoded
    /// within the delay. `None` for the final hop, which needs the whole packet.
    fn passes_at(&self, branch: usize, side: Side, crossing: &Crossing, routed: &Routed) -> Option<Instant> {
        let hub = match side {
            Side::Device => self.branches[branch].hub.as_ref(),
            Side::Host => self.branches[branch].above.and_then(|above| self.branches[above].hub.as_ref()),
        };
        let passes = |hub: &&Hub| side == Side::Host || routed.route.port_after(hub.route.tiers()).is_some();
        let &Hub { delay, .. } = hub.filter(passes)?;
        Some(match (self.rate, routed.message.packet()) {
            (Rate::Gen1, Packet::Data(_)) => {
                let header = self.rate.symbols(self.rate.header_packet());
                crossing.begins + header + self.propagation + delay
            }
            _ => crossing.arrives + delay,
        })
    }
}
