//! A host's and a device's port with a SuperSpeed link between them.
//!
//! A side sends when its lane is free. One that has nothing to send is asked again when something has come up; one that
//! has no credit keeps its message until a credit is back. Left out: when things happen; whoever has the time calls.
//!
//! Always true: a side has one message on its lane, and messages cross in the order in which its port made them.

use super::bulk::{DevicePort, ERDY_TIMEOUT, Endpoint, HostPort, Message, TRANSACTION_TIMEOUT};
use super::streams::Violation;
use super::superspeed::{Link, Side};
use super::{Crossing, Fate};
use std::collections::VecDeque;
use units::{Duration, Instant};
use wire::usb::EndpointAddress;

/// Both ports and the link.
#[derive(Clone, Debug)]
pub struct Joint {
    /// The host's port.
    pub host: HostPort,
    /// The device's port.
    pub device: DevicePort,
    link: Link,
    /// Sides that had nothing to send when they were asked last.
    is_idle: [bool; 2],
    /// Sides whose lane will be looked at when what is on it has been sent, or when a credit is back.
    is_expected: [bool; 2],
    /// What a side would send if it had a credit.
    held: [Option<Message>; 2],
    /// Messages on their way to a side, and how many of them are for a port that is not there any more.
    on_the_way: [u32; 2],
    stale: [u32; 2],
    /// The same, of all endpoints: for a port that was reset.
    lost: [u32; 2],
    is_cut: bool,
    /// By the side that sends.
    retries: [Retry; 2],
    /// Endpoints on which something was lost, and who looks whether it is missed.
    watched: Vec<(EndpointAddress, Side)>,
}

/// Packets that a side has to send again, since the header of one arrives damaged.
#[derive(Clone, Debug)]
struct Retry {
    state: RetryState,
    /// The damaged one and all that was sent after it; once LRTY was sent, those that were not sent again.
    packets: VecDeque<Message>,
    /// Packets on their way that the other side will not look at, since they came before LRTY.
    ignored: u32,
}

/// How far that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RetryState {
    /// The other side takes what comes.
    None,
    /// The damaged one is on its way.
    Damaged,
    /// It has arrived, LBAD was sent, and the receiver looks at nothing before LRTY.
    Refused,
}

/// An answer that was lost, and who will miss it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    endpoint: EndpointAddress,
    by: Side,
    /// What had come of the endpoint when it was lost.
    steps: u32,
    /// How often it was looked after.
    repeats: u32,
}

/// Times that a device says ERDY again: a host that does not want to hear it is left alone in the end.
const ERDY_REPEATS: u32 = 3;

/// What comes of a message that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When the lane of the other side is to be looked at again, since a credit that it waited for is back then.
    pub frees_other_at: Option<Instant>,
    /// When LBAD will be back, since the header was damaged: call [`Joint::retry`] then, for the other side.
    pub retry_at: Option<Instant>,
    /// Whether the port could take it.
    pub taken: Result<(), Violation>,
}

impl Joint {
    /// Two ports and an idle link.
    pub const fn new(link: Link, host: HostPort, device: DevicePort) -> Self {
        Self {
            host,
            device,
            link,
            is_idle: [true; 2],
            is_expected: [false; 2],
            held: [None; 2],
            on_the_way: [0; 2],
            stale: [0; 2],
            lost: [0; 2],
            is_cut: false,
            retries: [const { Retry::new() }; 2],
            watched: Vec::new(),
        }
    }

    /// The link, with what it has carried.
    pub const fn link(&self) -> &Link {
        &self.link
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
        (self.host, self.device) = (HostPort::new(endpoints), DevicePort::new(endpoints));
        self.is_cut = false;
        self.lost = self.on_the_way;
        self.retries = [const { Retry::new() }; 2];
        for side in [Side::Host, Side::Device] {
            self.is_idle[side as usize] |= self.held[side as usize].take().is_some();
        }
    }

    /// Gives a side other endpoints: the device is set up in another way. What is on its way to the old ones is lost; what
    /// is on its way to endpoint 0 is not.
    pub fn configure(&mut self, side: Side, endpoints: &[Endpoint]) {
        match side {
            Side::Host => self.host.configure(endpoints),
            Side::Device => self.device.configure(endpoints),
        }
        self.forget(side);
    }

    fn forget(&mut self, side: Side) {
        self.stale[side as usize] = self.on_the_way[side as usize];
        let held = &mut self.held[side as usize];
        if held.is_some_and(|message| message.endpoint().number() != 0) {
            *held = None;
            // Nobody would come back for a credit.
            self.is_idle[side as usize] = true;
        }
    }

    /// The lane of a side is free: what it sends next, and when that crosses. `None` if it has nothing to send, or waits for
    /// a credit.
    pub fn send(&mut self, now: Instant, side: Side) -> Option<(Message, Crossing)> {
        self.send_paced(now, side, |_| Duration::ZERO)
    }

    /// The same of a side that takes its time: `pace` says how much longer than the link a message has to wait.
    pub fn send_paced(
        &mut self,
        now: Instant,
        side: Side,
        pace: impl FnOnce(&Message) -> Duration,
    ) -> Option<(Message, Crossing)> {
        self.is_expected[side as usize] = false;
        if self.is_cut {
            self.is_idle[side as usize] = true;
            return None;
        }
        let sent = self.resend(now, side).or_else(|| self.send_next(now, side, pace));
        self.is_expected[side as usize] = sent.is_some();
        sent
    }

    fn send_next(
        &mut self,
        now: Instant,
        side: Side,
        pace: impl FnOnce(&Message) -> Duration,
    ) -> Option<(Message, Crossing)> {
        // What has waited for a credit has waited.
        let held = self.held[side as usize].take();
        let has_waited = held.is_some();
        let message = held.or_else(|| match side {
            Side::Host => self.host.poll(),
            Side::Device => self.device.poll(),
        });
        let Some(message) = message else {
            self.is_idle[side as usize] = true;
            return None;
        };
        let gap = if has_waited { Duration::ZERO } else { pace(&message) };
        let Ok(crossing) = self.link.send(now, side, message.packet(), gap) else {
            self.held[side as usize] = Some(message);
            return None;
        };
        self.has_sent(side, message);
        Some((message, crossing))
    }

    /// Something has come up: whether a side is to be asked what it sends, since it had nothing before.
    pub fn wakes(&mut self, side: Side) -> bool {
        std::mem::take(&mut self.is_idle[side as usize])
    }

    /// Sends the next packet again that the other side has not taken, if there is one.
    fn resend(&mut self, now: Instant, side: Side) -> Option<(Message, Crossing)> {
        let retry = &mut self.retries[side as usize];
        if retry.state != RetryState::None || retry.packets.is_empty() {
            return None;
        }
        let message = retry.packets.pop_front()?;
        let crossing = self.link.resend(now, side, message.packet());
        self.on_the_way[side.other() as usize] += 1;
        Some((message, crossing))
    }

    fn has_sent(&mut self, side: Side, message: Message) {
        self.on_the_way[side.other() as usize] += 1;
        let retry = &mut self.retries[side as usize];
        if retry.state != RetryState::None {
            retry.packets.push_back(message);
        }
    }

    /// The header of what a side has just sent will arrive damaged: that and what is sent after it will be sent again.
    pub fn damage(&mut self, side: Side, message: Message) {
        let retry = &mut self.retries[side as usize];
        if retry.state == RetryState::None {
            retry.state = RetryState::Damaged;
            retry.packets.push_front(message);
        }
    }

    /// LBAD has come to a side. It sends LRTY when its lane is free, and then what the other side did not take.
    pub fn retry(&mut self, now: Instant, side: Side) {
        let retry = &mut self.retries[side as usize];
        if retry.state != RetryState::Refused {
            return;
        }
        retry.state = RetryState::None;
        retry.ignored = self.on_the_way[side.other() as usize];
        self.link.send_command(now, side);
        self.is_idle[side as usize] = !self.is_expected[side as usize];
    }

    /// A message is lost. Who will miss it, if anybody: [`Self::miss`] is to be called after that time.
    pub fn lose(&mut self, message: &Message) -> Option<(Duration, Missed)> {
        let endpoint = message.endpoint();
        let by = if matches!(message, Message::Erdy { .. }) { Side::Device } else { Side::Host };
        if self.watched.contains(&(endpoint, by)) {
            return None;
        }
        let again = self.owed(endpoint, by)?;
        self.watched.push((endpoint, by));
        Some(again)
    }

    /// The time is over after which an answer is missed, unless something has come since: then it is said again. When to look
    /// again, while an answer is still owed.
    pub fn miss(&mut self, missed: Missed) -> Option<(Duration, Missed)> {
        let Missed { endpoint, by, steps, repeats } = missed;
        let is_missed = self.owed(endpoint, by).is_some_and(|(_, owed)| owed.steps == steps);
        match by {
            Side::Host if is_missed => self.host.time_out(endpoint),
            Side::Device if is_missed && repeats < ERDY_REPEATS => self.device.repeat_erdy(endpoint),
            _ => {}
        }
        let is_given_up = by == Side::Device && repeats >= ERDY_REPEATS;
        let again = self.owed(endpoint, by).filter(|_| !is_given_up);
        if again.is_none() {
            self.watched.retain(|&watched| watched != (endpoint, by));
        }
        again.map(|(span, again)| (span, Missed { repeats: repeats + 1, ..again }))
    }

    /// Whether an answer is owed on an endpoint.
    fn owed(&self, endpoint: EndpointAddress, by: Side) -> Option<(Duration, Missed)> {
        let (span, steps) = match by {
            Side::Host => (TRANSACTION_TIMEOUT, self.host.awaits(endpoint)?),
            Side::Device => (ERDY_TIMEOUT, self.device.awaits(endpoint).then_some(0)?),
        };
        Some((span, Missed { endpoint, by, steps, repeats: 0 }))
    }

    /// A message has arrived at a side: the link takes it, and its port does.
    pub fn arrive(&mut self, now: Instant, side: Side, message: Message) -> Arrival {
        self.arrive_as(now, side, message, Fate::Arrives)
    }

    /// The same for a message to which something has happened.
    pub fn arrive_as(&mut self, now: Instant, side: Side, message: Message, fate: Fate) -> Arrival {
        self.on_the_way[side as usize] -= 1;
        let is_lost = count_down(&mut self.lost[side as usize]);
        let is_stale = count_down(&mut self.stale[side as usize]) && message.endpoint().number() != 0;
        let mut arrival = Arrival { frees_other_at: None, retry_at: None, taken: Ok(()) };
        let retry = &mut self.retries[side.other() as usize];
        if count_down(&mut retry.ignored) || retry.state == RetryState::Refused {
            return arrival;
        }
        if fate == Fate::HeaderDamaged {
            retry.state = RetryState::Refused;
            arrival.retry_at = Some(self.link.send_command(now, side).arrives);
            return arrival;
        }
        let credit_at = self.link.take(now, side);
        let other = side.other() as usize;
        if self.held[other].is_some() && !std::mem::replace(&mut self.is_expected[other], true) {
            arrival.frees_other_at = Some(credit_at);
        }
        if self.is_cut || is_lost || is_stale || fate == Fate::Lost {
            return arrival;
        }
        arrival.taken = match side {
            Side::Host if fate == Fate::PayloadDamaged => self.host.receive_damaged(message),
            Side::Device if fate == Fate::PayloadDamaged => self.device.receive_damaged(message),
            Side::Host => self.host.receive(message),
            Side::Device => self.device.receive(message),
        };
        arrival
    }
}

impl Retry {
    const fn new() -> Self {
        Self { state: RetryState::None, packets: VecDeque::new(), ignored: 0 }
    }
}

/// Whether there was one left.
const fn count_down(count: &mut u32) -> bool {
    let was_left = *count > 0;
    *count = count.saturating_sub(1);
    was_left
}
