//! A host's and a device's port with a SuperSpeed link between them.
//!
//! A side sends when its lane is free. One that has nothing to send is asked again when something has come up; one that
//! has no credit keeps its message until a credit is back. Left out: when things happen; whoever has the time calls.
//!
//! Always true: a side has one message on its lane, and messages cross in the order in which its port made them.

use super::Crossing;
use super::bulk::{DevicePort, Endpoint, HostPort, Message};
use super::streams::Violation;
use super::superspeed::{Link, Side};
use units::{Duration, Instant};

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
    /// What a side would send if it had a credit.
    held: [Option<Message>; 2],
    /// Messages on their way to a side, and how many of them are for a port that is not there any more.
    on_the_way: [u32; 2],
    stale: [u32; 2],
    /// The same, of all endpoints: for a port that was reset.
    lost: [u32; 2],
    is_cut: bool,
}

/// What comes of a message that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When the lane of the other side is to be looked at again, since a credit that it waited for is back then.
    pub frees_other_at: Option<Instant>,
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
            held: [None; 2],
            on_the_way: [0; 2],
            stale: [0; 2],
            lost: [0; 2],
            is_cut: false,
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
        if self.is_cut {
            self.is_idle[side as usize] = true;
            return None;
        }
        let held = self.held[side as usize].take();
        let message = held.or_else(|| match side {
            Side::Host => self.host.poll(),
            Side::Device => self.device.poll(),
        });
        let Some(message) = message else {
            self.is_idle[side as usize] = true;
            return None;
        };
        let Ok(crossing) = self.link.send(now, side, message.packet(), Duration::ZERO) else {
            self.held[side as usize] = Some(message);
            return None;
        };
        self.on_the_way[side.other() as usize] += 1;
        Some((message, crossing))
    }

    /// Something has come up: whether a side is to be asked what it sends, since it had nothing before.
    pub fn wakes(&mut self, side: Side) -> bool {
        std::mem::take(&mut self.is_idle[side as usize])
    }

    /// A message has arrived at a side: the link takes it, and its port does.
    pub fn arrive(&mut self, now: Instant, side: Side, message: Message) -> Arrival {
        let credit_at = self.link.take(now, side);
        let frees_other_at = self.held[side.other() as usize].is_some().then_some(credit_at);
        self.on_the_way[side as usize] -= 1;
        let is_lost = count_down(&mut self.lost[side as usize]);
        let is_stale = count_down(&mut self.stale[side as usize]) && message.endpoint().number() != 0;
        if self.is_cut || is_lost || is_stale {
            return Arrival { frees_other_at, taken: Ok(()) };
        }
        let taken = match side {
            Side::Host => self.host.receive(message),
            Side::Device => self.device.receive(message),
        };
        Arrival { frees_other_at, taken }
    }
}

/// Whether there was one left.
const fn count_down(count: &mut u32) -> bool {
    let was_left = *count > 0;
    *count = count.saturating_sub(1);
    was_left
}
