//! A host port, a device port and the link between them: SuperSpeed or USB 2.0.
//!
//! On a SuperSpeed link a side sends when its lane is free, and each packet arrives separately. On
//! a USB 2.0 bus one transaction is in progress, with one next deadline. Not modelled: scheduling;
//! the owner calls at the times that are returned.
//!
//! Invariant: both ports match the type of the link between them.

use super::bulk::{self, Endpoint, Message};
use super::lanes::{Lanes, Taken, Wake};
use super::loss_timers::{LossTimers, Missed};
use super::streams::Violation;
use super::superspeed::{self, ExitLatency, Inactivity, Link, LinkState, Side, Sleep, TurnRound};
use super::usb2::{self, Bus, Exchange, Pacing};
use super::{Crossing, DevicePort, Fate, HostPort};
use crate::engine::EventKey;
use bus::Speed;
use units::{Duration, Instant};
use wire::usb::{DeviceFeature, Recipient, SetupPacket, StandardRequest};

/// Propagation delay of a cable of about 1 m.
pub const CABLE: Duration = Duration::from_ns(5);

/// How a device is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// Over a SuperSpeed link with a cable of 1 m.
    SuperSpeed(superspeed::Rate),
    /// Over a USB 2.0 bus.
    Usb2 {
        /// Signalling rate.
        rate: usb2::Rate,
        /// Number of hubs of the same speed in between.
        hubs: u8,
        /// Delays that the host controller adds.
        pacing: Pacing,
    },
}

/// A host port, a device port and the link between them.
#[derive(Clone, Debug)]
pub struct LinkPair {
    /// The host's port.
    pub host: HostPort,
    /// The device's port.
    pub device: DevicePort,
    wires: Wires,
    is_cut: bool,
    loss_timers: LossTimers,
}

#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each device, and the larger kind is the usual one"
)]
enum Wires {
    Lanes(Lanes),
    Bus(Exchange),
}

/// The result of [`LinkPair::arrive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Time to poll the lane of the other side again, because a credit that it waited for returns.
    pub frees_other_at: Option<Instant>,
    /// Time at which LBAD reaches the sender of a damaged header: call [`LinkPair::retry`] for the
    /// other side.
    pub retry_at: Option<Instant>,
    /// Whether the message belongs to endpoint 0.
    pub is_control: bool,
    /// `Err` if the port could not accept the message.
    pub taken: Result<(), Violation>,
}

impl From<superspeed::Rate> for Connection {
    fn from(rate: superspeed::Rate) -> Self {
        Self::SuperSpeed(rate)
    }
}

impl From<usb2::Rate> for Connection {
    /// Attaches at the host's own port, with a host controller that adds no gaps.
    fn from(rate: usb2::Rate) -> Self {
        Self::Usb2 { rate, hubs: 0, pacing: Pacing::default() }
    }
}

impl Connection {
    /// Returns the speed of the device.
    pub const fn speed(&self) -> Speed {
        match self {
            Self::SuperSpeed(_) => Speed::Super,
            Self::Usb2 { rate: usb2::Rate::High, .. } => Speed::High,
            Self::Usb2 { rate: usb2::Rate::Full, .. } => Speed::Full,
        }
    }

    /// Connects a device with `endpoints`.
    pub fn join(self, endpoints: &[Endpoint]) -> LinkPair {
        match self {
            Self::SuperSpeed(rate) => LinkPair::new(
                Link::new(rate, CABLE).between(TurnRound::TYPICAL),
                bulk::HostPort::new(endpoints),
                bulk::DevicePort::new(endpoints),
            ),
            Self::Usb2 { rate, hubs, pacing } => LinkPair::on_bus(
                Bus::new(rate, hubs),
                usb2::HostPort::new(rate, endpoints, pacing),
                usb2::DevicePort::new(rate, endpoints),
            ),
        }
    }
}

impl LinkPair {
    /// Creates two ports on an idle SuperSpeed link.
    pub const fn new(link: Link, host: bulk::HostPort, device: bulk::DevicePort) -> Self {
        Self {
            host: HostPort::SuperSpeed(host),
            device: DevicePort::SuperSpeed(device),
            wires: Wires::Lanes(Lanes::new(link)),
            is_cut: false,
            loss_timers: LossTimers::new(),
        }
    }

    /// Creates two ports on an idle USB 2.0 bus.
    pub const fn on_bus(bus: Bus, host: usb2::HostPort, device: usb2::DevicePort) -> Self {
        Self {
            host: HostPort::Usb2(host),
            device: DevicePort::Usb2(device),
            wires: Wires::Bus(Exchange::new(bus)),
            is_cut: false,
            loss_timers: LossTimers::new(),
        }
    }

    /// Returns the SuperSpeed link with its traffic counters, if it is one.
    pub const fn link(&self) -> Option<&Link> {
        match self.lanes() {
            Some(lanes) => Some(&lanes.link),
            None => None,
        }
    }

    /// Seeded bug: packets that `side` sends on a SuperSpeed link take no time from now on.
    pub const fn hurry(&mut self, side: Side) {
        if let Wires::Lanes(lanes) = &mut self.wires {
            lanes.link.hurry(side);
        }
    }

    /// Seeded bug: see [`Bus::hurry`].
    pub const fn hurry_bus(&mut self) {
        if let Wires::Bus(exchange) = &mut self.wires {
            exchange.hurry();
        }
    }

    /// Returns the USB 2.0 bus with its traffic counters, if it is one.
    pub const fn bus(&self) -> Option<&Bus> {
        match &self.wires {
            Wires::Lanes(_) => None,
            Wires::Bus(exchange) => Some(exchange.bus()),
        }
    }

    /// Enables U1 and U2 on a SuperSpeed link.
    pub fn let_sleep(&mut self, sleep: Sleep) {
        if let Wires::Lanes(lanes) = &mut self.wires {
            lanes.link.let_sleep(sleep);
        }
    }

    /// Sets the inactivity timeouts of the host port (PORT_U1_TIMEOUT, PORT_U2_TIMEOUT).
    pub fn set_inactivity(&mut self, now: Instant, inactivity: [Inactivity; 2]) {
        if let Wires::Lanes(lanes) = &mut self.wires {
            lanes.link.set_inactivity(now, inactivity);
        }
    }

    /// Sets the exit latencies that `side` advertises.
    pub fn set_exit(&mut self, now: Instant, side: Side, exit: ExitLatency) {
        if let Wires::Lanes(lanes) = &mut self.wires {
            lanes.link.set_exit(now, side, exit);
        }
    }

    /// Returns the link to U0 and clears U1_ENABLE and U2_ENABLE after a device reset.
    pub fn force_awake(&mut self, now: Instant) {
        if let Wires::Lanes(lanes) = &mut self.wires {
            lanes.link.force_awake(now);
        }
    }

    /// Reports whether the device is busy; while it is, it keeps the link awake.
    pub fn work(&mut self, now: Instant, is_at_work: bool) {
        if let Wires::Lanes(lanes) = &mut self.wires
            && lanes.link.may_sleep()
        {
            lanes.link.work(now, is_at_work);
        }
    }

    /// Applies a SetFeature or ClearFeature request that the device has completed (clause 9.4.9:
    /// U1_ENABLE, U2_ENABLE).
    pub fn apply_feature(&mut self, now: Instant, setup: SetupPacket) {
        let may = match setup.standard() {
            Some(StandardRequest::SetFeature) => true,
            Some(StandardRequest::ClearFeature) => false,
            _ => return,
        };
        let state = match DeviceFeature::from(setup.value) {
            DeviceFeature::U1Enable => LinkState::U1,
            DeviceFeature::U2Enable => LinkState::U2,
            _ => return,
        };
        if let (Wires::Lanes(lanes), Recipient::Device) = (&mut self.wires, setup.recipient) {
            lanes.link.let_device_ask(now, state, may);
        }
    }

    /// Takes the link down. Packets in flight are dropped on arrival.
    pub const fn cut(&mut self) {
        self.is_cut = true;
    }

    /// Returns whether the link is down.
    pub const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Resets both ports and brings the link up after a device reset. Packets in flight are lost.
    pub fn restart(&mut self, endpoints: &[Endpoint]) {
        (self.host, self.device) = (self.host.reset_copy(endpoints), self.device.reset_copy(endpoints));
        self.is_cut = false;
        match &mut self.wires {
            Wires::Lanes(lanes) => lanes.restart(),
            Wires::Bus(exchange) => exchange.restart(),
        }
    }

    /// Replaces the endpoints of a side after a new device configuration. Packets in flight to the
    /// old endpoints are lost, except those of endpoint 0.
    pub fn configure(&mut self, side: Side, endpoints: &[Endpoint]) {
        match side {
            Side::Host => self.host.configure(endpoints),
            Side::Device => self.device.configure(endpoints),
        }
        if let Wires::Lanes(lanes) = &mut self.wires {
            lanes.forget(side);
        }
    }

    /// Sends the next packet of a side whose lane is free. Returns its times and payload bytes;
    /// [`Self::sent`] returns the packet. `None` if there is nothing to send or no credit, and
    /// always on a USB 2.0 bus.
    pub fn send(&mut self, now: Instant, side: Side) -> Option<(Crossing, u16)> {
        if self.has_kept(side) {
            self.send_kept(now, side)
        } else {
            self.send_paced(now, side, |_| Duration::ZERO)
        }
    }

    /// Returns whether a side has a packet that [`Self::send_kept`] must send before all others.
    #[inline]
    pub fn has_kept(&self, side: Side) -> bool {
        !self.is_cut && self.lanes().is_some_and(|lanes| lanes.has_kept(side))
    }

    /// Like [`Self::send`], for a packet that waited for a credit or is retransmitted.
    #[cold]
    pub fn send_kept(&mut self, now: Instant, side: Side) -> Option<(Crossing, u16)> {
        match &mut self.wires {
            Wires::Lanes(lanes) => lanes.send_kept(now, side),
            Wires::Bus(_) => None,
        }
    }

    /// Like [`Self::send`], for a side without kept packets; `pace` returns the delay that the
    /// sender adds to a message.
    #[inline(always)]
    pub fn send_paced(
        &mut self,
        now: Instant,
        side: Side,
        pace: impl FnOnce(&Message) -> Duration,
    ) -> Option<(Crossing, u16)> {
        let Wires::Lanes(lanes) = &mut self.wires else { return None };
        if self.is_cut {
            lanes.rest(side);
            return None;
        }
        let next = match (side, &mut self.host, &mut self.device) {
            (Side::Host, HostPort::SuperSpeed(host), _) => host.poll(),
            (Side::Device, _, DevicePort::SuperSpeed(device)) => device.poll(),
            _ => None,
        };
        let Some(message) = next else {
            lanes.rest(side);
            return None;
        };
        let gap = pace(&message);
        lanes.send(now, side, message, gap)
    }

    /// Returns the last packet that a side sent, unless it has arrived.
    pub fn sent(&self, side: Side) -> Option<&Message> {
        self.lanes()?.sent(side)
    }

    /// Elides the host's last packet if it is an acknowledgement that changes nothing, as most
    /// within a burst: it has taken its time on the link, and [`Self::coming`] does not return it.
    /// Returns the elided message. For links without injected faults and devices that do not
    /// observe every packet.
    #[inline]
    pub fn leave_out(&mut self) -> Option<Message> {
        match (&mut self.wires, &mut self.device) {
            (Wires::Lanes(lanes), DevicePort::SuperSpeed(device)) if !self.is_cut => {
                lanes.leave_out(Side::Host, |message| device.hear_early(message))
            }
            _ => None,
        }
    }

    /// Returns the packet that arrives next at a side.
    pub fn coming(&self, side: Side) -> Option<&Message> {
        self.lanes()?.coming(side)
    }

    const fn lanes(&self) -> Option<&Lanes> {
        match &self.wires {
            Wires::Lanes(lanes) => Some(lanes),
            Wires::Bus(_) => None,
        }
    }

    /// Records that the lane of a side becomes free at `free`. Returns whether no event is needed
    /// then; [`Self::wakes`] reports when one is.
    #[inline]
    pub fn rests(&mut self, side: Side, free: EventKey) -> bool {
        let has_more = self.may_send(side);
        match &mut self.wires {
            Wires::Lanes(lanes) => lanes.rests(side, free, has_more),
            Wires::Bus(_) => false,
        }
    }

    /// Returns when to poll a side that had nothing to send and may have something now.
    #[inline]
    pub fn wakes(&mut self, side: Side, is_over: impl Fn(EventKey) -> bool) -> Wake {
        let has_some = self.may_send(side);
        match &mut self.wires {
            Wires::Lanes(lanes) => lanes.wakes(side, has_some, is_over),
            Wires::Bus(_) => Wake::Never,
        }
    }

    #[inline]
    fn may_send(&self, side: Side) -> bool {
        match (side, &self.host, &self.device) {
            (Side::Host, HostPort::SuperSpeed(host), _) => host.may_send(),
            (Side::Device, _, DevicePort::SuperSpeed(device)) => device.may_send(),
            _ => false,
        }
    }

    /// Marks the header of the packet that a side has just sent as damaged: it and all packets
    /// after it will be retransmitted.
    pub fn damage(&mut self, side: Side, message: Message) {
        if let Wires::Lanes(lanes) = &mut self.wires {
            lanes.damage(side, message);
        }
    }

    /// Handles LBAD at a side: it sends LRTY when its lane is free, then retransmits what the other
    /// side did not accept.
    pub fn retry(&mut self, now: Instant, side: Side) {
        if let Wires::Lanes(lanes) = &mut self.wires {
            lanes.retry(now, side);
        }
    }

    /// Records a lost message. Returns the timeout of the side that waits for an answer, if there
    /// is one: call [`Self::miss`] when it expires.
    pub fn lose(&mut self, message: &Message) -> Option<(Duration, Missed)> {
        self.loss_timers.lose(&self.host, &self.device, message)
    }

    /// Handles an expired timeout: the message is repeated unless an answer has come since. Returns
    /// the next timeout while an answer is still outstanding.
    pub fn miss(&mut self, missed: Missed) -> Option<(Duration, Missed)> {
        self.loss_timers.miss(&mut self.host, &mut self.device, missed)
    }

    /// Delivers the packet that [`Self::coming`] returns to the link and the port of a side.
    #[inline(always)]
    pub fn arrive(&mut self, now: Instant, side: Side, fate: Fate) -> Arrival {
        const NOTHING: Arrival =
            Arrival { frees_other_at: None, retry_at: None, is_control: false, taken: Err(Violation) };
        let Wires::Lanes(lanes) = &mut self.wires else { return NOTHING };
        let Taken { frees_other_at, retry_at, is_for_port } = lanes.take(now, side, fate);
        let Some(message) = lanes.coming(side) else { return NOTHING };
        let endpoint = message.endpoint();
        let is_control = endpoint.number() == 0;
        let is_damaged = fate == Fate::PayloadDamaged;
        let taken = match (side, &mut self.host, &mut self.device) {
            _ if self.is_cut || !is_for_port => Ok(()),
            (Side::Host, HostPort::SuperSpeed(host), _) if is_damaged => host.receive_damaged(message),
            (Side::Device, _, DevicePort::SuperSpeed(device)) if is_damaged => {
                device.receive_damaged(message)
            }
            (Side::Host, HostPort::SuperSpeed(host), _) => host.receive_at(endpoint, message),
            (Side::Device, _, DevicePort::SuperSpeed(device)) => device.receive_at(endpoint, message),
            _ => Err(Violation),
        };
        lanes.has_come(side);
        Arrival { frees_other_at, retry_at, is_control, taken }
    }

    /// Returns when a USB 2.0 bus acts next; poll again after each change of a port. `None` if it
    /// is idle, and always on a SuperSpeed link.
    pub fn due_at(&mut self, now: Instant) -> Option<Instant> {
        match (&mut self.wires, &mut self.host) {
            (Wires::Bus(exchange), HostPort::Usb2(host)) if !self.is_cut => exchange.due_at(now, host),
            _ => None,
        }
    }

    /// Advances a USB 2.0 bus, if it is due. Returns the packets that are sent now; `fate` decides
    /// the outcome of each.
    pub fn step(
        &mut self,
        now: Instant,
        fate: &mut dyn FnMut(Side, &usb2::Packet) -> usb2::Fate,
    ) -> usb2::AllSent {
        match (&mut self.wires, &mut self.host, &mut self.device) {
            (Wires::Bus(exchange), HostPort::Usb2(host), DevicePort::Usb2(device)) if !self.is_cut => {
                exchange.step(now, host, device, fate)
            }
            _ => [None; 3],
        }
    }
}
