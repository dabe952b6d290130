//! A host's and a device's port with a link between them, of whatever kind.
//!
//! On a SuperSpeed link a side sends when its lane is free, and each packet arrives by itself. On a bus of USB 2.0 one thing
//! is under way, and goes on at one moment. Left out: when things happen; whoever has the time calls.
//!
//! Always true: both ports are of the kind of what is between them.

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

/// What a symbol takes through a cable of about a metre.
pub const CABLE: Duration = Duration::from_ns(5);

/// How a device is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// By a SuperSpeed link of a metre.
    SuperSpeed(superspeed::Rate),
    /// By a bus of USB 2.0.
    Usb2 {
        /// How fast it is.
        rate: usb2::Rate,
        /// Hubs of that speed in between.
        hubs: u8,
        /// What the host controller adds.
        pacing: Pacing,
    },
}

/// Both ports and what is between them.
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

/// What comes of a message that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When the lane of the other side is to be looked at again, since a credit that it waited for is back then.
    pub frees_other_at: Option<Instant>,
    /// When LBAD will be back, since the header was damaged: call [`LinkPair::retry`] then, for the other side.
    pub retry_at: Option<Instant>,
    /// Whether it was of endpoint 0.
    pub is_control: bool,
    /// Whether the port could take it.
    pub taken: Result<(), Violation>,
}

impl From<superspeed::Rate> for Connection {
    fn from(rate: superspeed::Rate) -> Self {
        Self::SuperSpeed(rate)
    }
}

impl From<usb2::Rate> for Connection {
    /// At the host's own port, with a host controller that adds no gaps.
    fn from(rate: usb2::Rate) -> Self {
        Self::Usb2 { rate, hubs: 0, pacing: Pacing::default() }
    }
}

impl Connection {
    /// The speed of the device's end.
    pub const fn speed(&self) -> Speed {
        match self {
            Self::SuperSpeed(_) => Speed::Super,
            Self::Usb2 { rate: usb2::Rate::High, .. } => Speed::High,
            Self::Usb2 { rate: usb2::Rate::Full, .. } => Speed::Full,
        }
    }

    /// Connects a device with these endpoints.
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
    /// Two ports and an idle SuperSpeed link.
    pub const fn new(link: Link, host: bulk::HostPort, device: bulk::DevicePort) -> Self {
        Self {
            host: HostPort::SuperSpeed(host),
            device: DevicePort::SuperSpeed(device),
            wires: Wires::Lanes(Lanes::new(link)),
            is_cut: false,
            loss_timers: LossTimers::new(),
        }
    }

    /// Two ports and an idle bus of USB 2.0.
    pub const fn on_bus(bus: Bus, host: usb2::HostPort, device: usb2::DevicePort) -> Self {
        Self {
            host: HostPort::Usb2(host),
            device: DevicePort::Usb2(device),
            wires: Wires::Bus(Exchange::new(bus)),
            is_cut: false,
            loss_timers: LossTimers::new(),
        }
    }

    /// The link, with what it has carried, if it is one of SuperSpeed.
    pub const fn link(&self) -> Option<&Link> {
        match self.lanes() {
            Some(lanes) => Some(&lanes.link),
            None => None,
        }
    }

    /// A planted bug: what a side sends on a SuperSpeed link takes no time from now on.
    pub const fn hurry(&mut self, side: Side) {
        if let Wires::Lanes(lanes) = &mut self.wires {
            lanes.link.hurry(side);
        }
    }

    /// A planted bug: see [`Bus::hurry`].
    pub const fn hurry_bus(&mut self) {
        if let Wires::Bus(exchange) = &mut self.wires {
            exchange.hurry();
        }
    }

    /// The bus, with what it has carried, if it is one of USB 2.0.
    pub const fn bus(&self) -> Option<&Bus> {
        match &self.wires {
            Wires::Lanes(_) => None,
            Wires::Bus(exchange) => Some(exchange.bus()),
        }
    }

    /// Lets a SuperSpeed link sleep when nothing crosses.
    pub fn let_sleep(&mut self, sleep: Sleep) {
        if let Wires::Lanes(lanes) = &mut self.wires {
            lanes.link.let_sleep(sleep);
        }
    }

    /// The host's port asks for U1 and U2, and accepts them, in another way from now on (PORT_U1_TIMEOUT, PORT_U2_TIMEOUT).
    pub fn set_inactivity(&mut self, now: Instant, inactivity: [Inactivity; 2]) {
        if let Wires::Lanes(lanes) = &mut self.wires {
            lanes.link.set_inactivity(now, inactivity);
        }
    }

    /// A side says what it takes to wake the link up.
    pub fn set_exit(&mut self, now: Instant, side: Side, exit: ExitLatency) {
        if let Wires::Lanes(lanes) = &mut self.wires {
            lanes.link.set_exit(now, side, exit);
        }
    }

    /// The device was reset: it may not ask for anything, and the link is awake.
    pub fn force_awake(&mut self, now: Instant) {
        if let Wires::Lanes(lanes) = &mut self.wires {
            lanes.link.force_awake(now);
        }
    }

    /// The device begins to work on something that it will say, or has done it: until then it wants the link to stay awake.
    pub fn work(&mut self, now: Instant, is_at_work: bool) {
        if let Wires::Lanes(lanes) = &mut self.wires
            && lanes.link.may_sleep()
        {
            lanes.link.work(now, is_at_work);
        }
    }

    /// The device has carried a request out that lets it ask for U1 or U2, or forbids it (clause 9.4.9: U1_ENABLE, U2_ENABLE).
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

    /// Lets nothing cross any more. What is on its way arrives, and nobody takes it.
    pub const fn cut(&mut self) {
        self.is_cut = true;
    }

    /// Whether nothing crosses.
    pub const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Begins anew with other ports, and lets things cross again: the device was reset. What is on its way is lost.
    pub fn restart(&mut self, endpoints: &[Endpoint]) {
        (self.host, self.device) = (self.host.reset_copy(endpoints), self.device.reset_copy(endpoints));
        self.is_cut = false;
        match &mut self.wires {
            Wires::Lanes(lanes) => lanes.restart(),
            Wires::Bus(exchange) => exchange.restart(),
        }
    }

    /// Gives a side other endpoints: the device is set up in another way. What is on its way to the old ones is lost; what
    /// is on its way to endpoint 0 is not.
    pub fn configure(&mut self, side: Side, endpoints: &[Endpoint]) {
        match side {
            Side::Host => self.host.configure(endpoints),
            Side::Device => self.device.configure(endpoints),
        }
        if let Wires::Lanes(lanes) = &mut self.wires {
            lanes.forget(side);
        }
    }

    /// The lane of a side is free: it sends what it has. When that crosses, and bytes of its payload; what it is [`Self::sent`]
    /// says. `None` if it has nothing to send, or waits for a credit, and always on a bus of USB 2.0.
    pub fn send(&mut self, now: Instant, side: Side) -> Option<(Crossing, u16)> {
        if self.has_kept(side) {
            self.send_kept(now, side)
        } else {
            self.send_paced(now, side, |_| Duration::ZERO)
        }
    }

    /// Whether a side has kept something that goes before all else, by [`Self::send_kept`].
    #[inline(always)]
    pub fn has_kept(&self, side: Side) -> bool {
        !self.is_cut && self.lanes().is_some_and(|lanes| lanes.has_kept(side))
    }

    /// The same as [`Self::send`] of what is kept: what had no credit, or is sent again.
    #[cold]
    pub fn send_kept(&mut self, now: Instant, side: Side) -> Option<(Crossing, u16)> {
        match &mut self.wires {
            Wires::Lanes(lanes) => lanes.send_kept(now, side),
            Wires::Bus(_) => None,
        }
    }

    /// The same of a side that has kept nothing and takes its time: `pace` says how much longer than the link a message has to wait.
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

    /// What a side has sent last, if it has not arrived.
    pub fn sent(&self, side: Side) -> Option<&Message> {
        self.lanes()?.sent(side)
    }

    /// What the host has sent last need not arrive if it is an acknowledgement that changes nothing, as most within a burst: it
    /// has crossed as any, and is [`Self::coming`] no more. What it was, if that is so. For links on which nothing happens to
    /// packets, and devices that do not wait for each.
    #[inline(always)]
    pub fn leave_out(&mut self) -> Option<Message> {
        match (&mut self.wires, &mut self.device) {
            (Wires::Lanes(lanes), DevicePort::SuperSpeed(device)) if !self.is_cut => {
                lanes.leave_out(Side::Host, |message| device.hear_early(message))
            }
            _ => None,
        }
    }

    /// What arrives next at a side.
    pub fn coming(&self, side: Side) -> Option<&Message> {
        self.lanes()?.coming(side)
    }

    const fn lanes(&self) -> Option<&Lanes> {
        match &self.wires {
            Wires::Lanes(lanes) => Some(lanes),
            Wires::Bus(_) => None,
        }
    }

    /// A side has sent something, and its lane is free at that turn. Whether nobody need come back then: [`Self::wakes`] says
    /// so if something comes up.
    #[inline(always)]
    pub fn rests(&mut self, side: Side, free: EventKey) -> bool {
        let has_more = self.may_send(side);
        match &mut self.wires {
            Wires::Lanes(lanes) => lanes.rests(side, free, has_more),
            Wires::Bus(_) => false,
        }
    }

    /// Something may have come up: when a side is to be asked what it sends, since it had nothing before.
    #[inline(always)]
    pub fn wakes(&mut self, side: Side, is_over: impl Fn(EventKey) -> bool) -> Wake {
        let has_some = self.may_send(side);
        match &mut self.wires {
            Wires::Lanes(lanes) => lanes.wakes(side, has_some, is_over),
            Wires::Bus(_) => Wake::Never,
        }
    }

    #[inline(always)]
    fn may_send(&self, side: Side) -> bool {
        match (side, &self.host, &self.device) {
            (Side::Host, HostPort::SuperSpeed(host), _) => host.may_send(),
            (Side::Device, _, DevicePort::SuperSpeed(device)) => device.may_send(),
            _ => false,
        }
    }

    /// The header of what a side has just sent will arrive damaged: that and what is sent after it will be sent again.
    pub fn damage(&mut self, side: Side, message: Message) {
        if let Wires::Lanes(lanes) = &mut self.wires {
            lanes.damage(side, message);
        }
    }

    /// LBAD has come to a side. It sends LRTY when its lane is free, and then what the other side did not take.
    pub fn retry(&mut self, now: Instant, side: Side) {
        if let Wires::Lanes(lanes) = &mut self.wires {
            lanes.retry(now, side);
        }
    }

    /// A message is lost. Who will miss it, if anybody: [`Self::miss`] is to be called after that time.
    pub fn lose(&mut self, message: &Message) -> Option<(Duration, Missed)> {
        self.loss_timers.lose((&self.host, &self.device), message)
    }

    /// The time is over after which an answer is missed, unless something has come since: then it is said again. When to look
    /// again, while an answer is still owed.
    pub fn miss(&mut self, missed: Missed) -> Option<(Duration, Missed)> {
        self.loss_timers.miss((&mut self.host, &mut self.device), missed)
    }

    /// What is [`Self::coming`] to a side has arrived, and this has happened to it: the link takes it, and its port does.
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

    /// When a bus of USB 2.0 goes on. To be asked again whenever something has happened to a port. `None` if there is nothing
    /// to go on with, and always on a SuperSpeed link.
    pub fn due_at(&mut self, now: Instant) -> Option<Instant> {
        match (&mut self.wires, &mut self.host) {
            (Wires::Bus(exchange), HostPort::Usb2(host)) if !self.is_cut => exchange.due_at(now, host),
            _ => None,
        }
    }

    /// Goes on with a bus of USB 2.0, if it is time to. The packets that are sent now; `fate` says what becomes of each.
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
