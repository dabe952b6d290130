//! A SuperSpeed link and what is on it between two ports.
//!
//! A side sends when its lane is free. One that has nothing to send is asked again when something has come up, so that a lane
//! that is free again is an event only if somebody waits for it. One that has no credit keeps its message until a credit is
//! back. What arrives with a damaged header is sent again, with all that came after it.
//!
//! Always true: a side has one message on its lane, and messages cross in the order in which its port made them.

use super::bulk::Message;
use super::superspeed::{Link, Side};
use super::{Crossing, Fate};
use crate::engine::Turn;
use std::collections::VecDeque;
use units::{Duration, Instant};

/// The link, and what is on it.
#[derive(Clone, Debug)]
pub(super) struct Lanes {
    pub(super) link: Link,
    /// Sides that had nothing to send when they were asked last.
    is_idle: [bool; 2],
    /// Sides whose lane will be looked at when what is on it has been sent, or when a credit is back.
    is_expected: [bool; 2],
    /// Sides that had nothing more to send when they sent last, and when their lane is free.
    rests: [Option<Turn>; 2],
    /// What a side would send if it had a credit.
    held: [Option<Message>; 2],
    /// Messages on their way to a side, and how many of them are for a port that is not there any more.
    on_the_way: [u32; 2],
    stale: [u32; 2],
    /// The same, of all endpoints: for a port that was reset.
    lost: [u32; 2],
    /// By the side that sends.
    retries: [Retry; 2],
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

/// When a side is to be asked what it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// It need not be.
    Never,
    /// Now.
    Now,
    /// When its lane is free.
    At(Turn),
}

/// What the link makes of a message that has arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taken {
    /// When the lane of the other side is to be looked at again.
    pub(super) frees_other_at: Option<Instant>,
    /// When LBAD will be back.
    pub(super) retry_at: Option<Instant>,
    /// Whether the port that is there now is to see it.
    pub(super) is_for_port: bool,
}

impl Lanes {
    pub(super) const fn new(link: Link) -> Self {
        Self {
            link,
            is_idle: [true; 2],
            is_expected: [false; 2],
            rests: [None; 2],
            held: [None; 2],
            on_the_way: [0; 2],
            stale: [0; 2],
            lost: [0; 2],
            retries: [const { Retry::new() }; 2],
        }
    }

    /// Both ports are other ones: what is on its way is lost.
    pub(super) fn restart(&mut self) {
        self.lost = self.on_the_way;
        self.link.restart();
        self.retries = [const { Retry::new() }; 2];
        for side in [Side::Host, Side::Device] {
            self.is_idle[side as usize] |= self.held[side as usize].take().is_some();
        }
    }

    /// The endpoints of a side are other ones: what is on its way to them is lost, but for endpoint 0.
    pub(super) fn forget(&mut self, side: Side) {
        self.stale[side as usize] = self.on_the_way[side as usize];
        let held = &mut self.held[side as usize];
        if held.is_some_and(|message| message.endpoint().number() != 0) {
            *held = None;
            // Nobody would come back for a credit.
            self.is_idle[side as usize] = true;
        }
    }

    /// The lane of a side is free: what it sends next, which `next` says if nothing is held or sent again.
    /// `pace` says how much longer than the link that has to wait.
    pub(super) fn send(
        &mut self,
        now: Instant,
        side: Side,
        next: impl FnOnce() -> Option<Message>,
        pace: impl FnOnce(&Message) -> Duration,
    ) -> Option<(Message, Crossing)> {
        let sent =
            if self.has_again(side) { self.resend(now, side) } else { self.send_next(now, side, next, pace) };
        self.is_expected[side as usize] = sent.is_some();
        sent
    }

    /// Nothing crosses any more.
    pub(super) const fn rest(&mut self, side: Side) {
        self.is_expected[side as usize] = false;
        self.is_idle[side as usize] = true;
    }

    fn send_next(
        &mut self,
        now: Instant,
        side: Side,
        next: impl FnOnce() -> Option<Message>,
        pace: impl FnOnce(&Message) -> Duration,
    ) -> Option<(Message, Crossing)> {
        let held = self.held[side as usize].take();
        let has_waited = held.is_some();
        let Some(message) = held.or_else(next) else {
            self.is_idle[side as usize] = true;
            return None;
        };
        // What has waited for a credit has waited.
        let gap = if has_waited { Duration::ZERO } else { pace(&message) };
        let Ok(crossing) = self.link.send(now, side, message.packet(), gap) else {
            self.held[side as usize] = Some(message);
            return None;
        };
        self.has_sent(side, message, &crossing);
        Some((message, crossing))
    }

    /// A side has sent something, and its lane is free at that turn. Whether nobody need come back then, since the side has
    /// nothing more to send; `has_more` is what its port says.
    pub(super) fn rests(&mut self, side: Side, free: Turn, has_more: bool) -> bool {
        if has_more || self.has_again(side) {
            return false;
        }
        self.is_expected[side as usize] = false;
        self.rests[side as usize] = Some(free);
        true
    }

    /// When a side is to be asked what it sends, since it had nothing before and now has something, if its port says so.
    pub(super) fn wakes(&mut self, side: Side, has_some: bool, is_over: impl Fn(Turn) -> bool) -> Wake {
        let place = side as usize;
        if !has_some && self.held[place].is_none() && !self.has_again(side) {
            return Wake::Never;
        }
        match self.rests[place].take() {
            Some(free) if !is_over(free) => {
                self.is_expected[place] = true;
                Wake::At(free)
            }
            Some(_) => Wake::Now,
            None if std::mem::replace(&mut self.is_idle[place], false) => Wake::Now,
            None => Wake::Never,
        }
    }

    /// Whether a side has something to send again.
    fn has_again(&self, side: Side) -> bool {
        let retry = &self.retries[side as usize];
        retry.state == RetryState::None && !retry.packets.is_empty()
    }

    /// Sends the next packet again that the other side has not taken, if there is one.
    fn resend(&mut self, now: Instant, side: Side) -> Option<(Message, Crossing)> {
        let message = self.retries[side as usize].packets.pop_front()?;
        let crossing = self.link.resend(now, side, message.packet());
        self.link.take_on_arrival(&crossing, side.other());
        self.on_the_way[side.other() as usize] += 1;
        Some((message, crossing))
    }

    fn has_sent(&mut self, side: Side, message: Message, crossing: &Crossing) {
        self.on_the_way[side.other() as usize] += 1;
        let retry = &mut self.retries[side as usize];
        if retry.state == RetryState::None {
            self.link.take_on_arrival(crossing, side.other());
        } else {
            retry.packets.push_back(message);
        }
    }

    /// The header of what a side has just sent will arrive damaged: that and what is sent after it will be sent again.
    pub(super) fn damage(&mut self, side: Side, message: Message) {
        let retry = &mut self.retries[side as usize];
        if retry.state == RetryState::None {
            retry.state = RetryState::Damaged;
            retry.packets.push_front(message);
            self.link.refuse(side.other());
        }
    }

    /// LBAD has come to a side. It sends LRTY when its lane is free, and then what the other side did not take.
    pub(super) fn retry(&mut self, now: Instant, side: Side) {
        let retry = &mut self.retries[side as usize];
        if retry.state != RetryState::Refused {
            return;
        }
        retry.state = RetryState::None;
        retry.ignored = self.on_the_way[side.other() as usize];
        self.link.send_command(now, side);
        self.is_idle[side as usize] = !self.is_expected[side as usize] && self.rests[side as usize].is_none();
    }

    /// A message has arrived at a side, to which something has happened or not.
    pub(super) fn take(&mut self, now: Instant, side: Side, message: &Message, fate: Fate) -> Taken {
        self.on_the_way[side as usize] -= 1;
        let is_lost = count_down(&mut self.lost[side as usize]);
        let is_stale = count_down(&mut self.stale[side as usize]) && message.endpoint().number() != 0;
        let mut taken = Taken::default();
        let retry = &mut self.retries[side.other() as usize];
        if count_down(&mut retry.ignored) || retry.state == RetryState::Refused {
            return taken;
        }
        if fate == Fate::HeaderDamaged {
            retry.state = RetryState::Refused;
            taken.retry_at = Some(self.link.send_command(now, side).arrives);
            return taken;
        }
        let other = side.other() as usize;
        if self.held[other].is_some() && !std::mem::replace(&mut self.is_expected[other], true) {
            taken.frees_other_at = Some(self.link.credit_at(now, side.other()));
        }
        taken.is_for_port = !is_lost && !is_stale && fate != Fate::Lost;
        taken
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
