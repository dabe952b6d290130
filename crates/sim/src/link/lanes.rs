//! A SuperSpeed link and the packets in flight between two ports.
//!
//! A side sends when its lane is free. A side with nothing to send is polled again when it has
//! something, so that a free lane is an event only if a command waits for it. A side without a
//! credit keeps its message until one returns. A packet with a damaged header is retransmitted,
//! with all packets after it.
//!
//! Invariants: a side has one message on its lane; messages cross in the order in which the port
//! created them.

use super::bulk::Message;
use super::propagation::PropagationQueue;
use super::retry::Retry;
use super::superspeed::{Link, Side};
use super::{Crossing, Fate};
use crate::engine::EventKey;
use units::{Duration, Instant};

/// The link and the packets in flight on it.
#[derive(Clone, Debug)]
pub(super) struct Lanes {
    pub(super) link: Link,
    /// Sides that had nothing to send when they were asked last.
    is_idle: [bool; 2],
    /// Sides for which an event is pending: the lane becomes free or a credit returns.
    is_expected: [bool; 2],
    /// Sides that had nothing more to send when they sent last, and when their lane is free.
    rests: [Option<EventKey>; 2],
    /// Messages that wait for a credit, by side.
    held: [Option<Message>; 2],
    /// Messages in flight to a side, oldest first, and how many of them are for a port that is not
    /// there any more.
    propagating: [PropagationQueue; 2],
    stale: [u32; 2],
    /// The same, of all endpoints: for a port that was reset.
    lost: [u32; 2],
    /// By the side that sends.
    retries: [Retry<Message>; 2],
    /// Whether nothing is held, lost, stale, damaged or sent again, so that all that comes is for
    /// the port that is there.
    is_smooth: bool,
}

/// When to poll a side for a packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// It need not be.
    Never,
    /// Now.
    Now,
    /// When its lane is free.
    At(EventKey),
}

/// The link layer's result for a message that has arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taken {
    /// Time to poll the lane of the other side again.
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
            propagating: [const { PropagationQueue::new() }; 2],
            stale: [0; 2],
            lost: [0; 2],
            retries: [const { Retry::new() }; 2],
            is_smooth: true,
        }
    }

    /// Both ports are other ones: what is in flight is lost.
    pub(super) fn restart(&mut self) {
        self.lost = [Side::Host, Side::Device].map(|side| self.in_flight(side));
        self.link.restart();
        self.retries = [const { Retry::new() }; 2];
        self.is_smooth = false;
        for side in [Side::Host, Side::Device] {
            self.is_idle[side as usize] |= self.held[side as usize].take().is_some();
        }
    }

    /// The endpoints of a side are other ones: what is in flight to them is lost, but for endpoint
    /// 0.
    pub(super) fn forget(&mut self, side: Side) {
        self.stale[side as usize] = self.in_flight(side);
        self.is_smooth = false;
        let held = &mut self.held[side as usize];
        if held.is_some_and(|message| message.endpoint().number() != 0) {
            *held = None;
            // No one would come back for a credit.
            self.is_idle[side as usize] = true;
        }
    }

    /// Returns whether a side holds something, or has something to send again: that goes first, by
    /// [`Self::send_kept`].
    #[inline]
    pub(super) fn has_kept(&self, side: Side) -> bool {
        !self.is_smooth && (self.held[side as usize].is_some() || self.has_again(side))
    }

    /// The lane of a side is free, and it sends this, after it has waited for `gap` longer than the
    /// link. How it crosses, and bytes of its payload; what was sent is [`Self::sent`].
    #[inline]
    pub(super) fn send(
        &mut self,
        now: Instant,
        side: Side,
        message: Message,
        gap: Duration,
    ) -> Option<(Crossing, u16)> {
        let packet = message.packet();
        self.propagating[side.other() as usize].push_back(message);
        let Ok(crossing) = self.link.send(now, side, packet, gap) else {
            self.hold(side);
            return None;
        };
        self.is_expected[side as usize] = true;
        self.has_sent(side, crossing.arrives);
        Some((crossing, packet.payload()))
    }

    /// There is no credit for what was to be sent.
    #[cold]
    #[inline(never)]
    fn hold(&mut self, side: Side) {
        self.held[side as usize] = self.propagating[side.other() as usize].pop_back();
        self.is_expected[side as usize] = false;
        self.is_smooth = false;
    }

    /// Sends what is held, or what is sent again.
    #[cold]
    #[inline(never)]
    pub(super) fn send_kept(&mut self, now: Instant, side: Side) -> Option<(Crossing, u16)> {
        let sent = if self.has_again(side) { self.resend(now, side) } else { self.send_held(now, side) };
        self.is_expected[side as usize] = sent.is_some();
        Some((sent?, self.sent(side)?.packet().payload()))
    }

    /// A side has nothing to send, or nothing crosses any more.
    pub(super) const fn rest(&mut self, side: Side) {
        self.is_expected[side as usize] = false;
        self.is_idle[side as usize] = true;
    }

    /// Sends what had no credit, if there is one now. It has waited, and is not paced any more.
    fn send_held(&mut self, now: Instant, side: Side) -> Option<Crossing> {
        let message = self.held[side as usize].take()?;
        let Ok(crossing) = self.link.send(now, side, message.packet(), Duration::ZERO) else {
            self.held[side as usize] = Some(message);
            return None;
        };
        self.propagating[side.other() as usize].push_back(message);
        self.has_sent(side, crossing.arrives);
        Some(crossing)
    }

    /// Returns the last message that a side sent.
    pub(super) fn sent(&self, side: Side) -> Option<&Message> {
        self.propagating[side.other() as usize].back()
    }

    /// Returns the next message to arrive at a side.
    pub(super) fn coming(&self, side: Side) -> Option<&Message> {
        self.propagating[side as usize].front()
    }

    /// Removes the message that has arrived.
    pub(super) fn has_come(&mut self, side: Side) {
        self.propagating[side as usize].drop_first();
    }

    /// Elides the last message of a side if `may_be` allows it. Only while no message is damaged,
    /// held or lost.
    #[inline]
    pub(super) fn leave_out(&mut self, side: Side, may_be: impl FnOnce(&Message) -> bool) -> Option<Message> {
        let line = &mut self.propagating[side.other() as usize];
        if self.is_smooth && line.back().is_some_and(may_be) { line.pop_back() } else { None }
    }

    fn in_flight(&self, side: Side) -> u32 {
        self.propagating[side as usize].len() as u32
    }

    /// Records that the lane of a side becomes free at `free`. Returns whether no event is needed
    /// then; `has_more` reports whether its port has more to send.
    #[inline]
    pub(super) fn rests(&mut self, side: Side, free: EventKey, has_more: bool) -> bool {
        if has_more || self.has_again(side) {
            return false;
        }
        self.is_expected[side as usize] = false;
        self.rests[side as usize] = Some(free);
        true
    }

    /// Returns when to poll a side that had nothing to send, if its port has something now.
    #[inline]
    pub(super) fn wakes(&mut self, side: Side, has_some: bool, is_over: impl Fn(EventKey) -> bool) -> Wake {
        let place = side as usize;
        if !has_some && (self.is_smooth || self.held[place].is_none() && !self.has_again(side)) {
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

    /// Returns whether a side has something to send again.
    fn has_again(&self, side: Side) -> bool {
        !self.is_smooth && self.retries[side as usize].has_again()
    }

    /// Sends the next packet again that the other side has not taken, if there is one.
    fn resend(&mut self, now: Instant, side: Side) -> Option<Crossing> {
        let message = self.retries[side as usize].next_again()?;
        let crossing = self.link.resend(now, side, message.packet());
        self.link.accept_on_arrival(crossing.arrives, side.other());
        self.propagating[side.other() as usize].push_back(message);
        Some(crossing)
    }

    /// Records that the last queued message was sent.
    #[inline(always)]
    fn has_sent(&mut self, side: Side, arrives: Instant) {
        if self.is_smooth {
            return self.link.accept_newest_on_arrival(arrives, side.other());
        }
        let retry = &mut self.retries[side as usize];
        if !retry.keeps() {
            self.link.accept_on_arrival(arrives, side.other());
        } else if let Some(&sent) = self.propagating[side.other() as usize].back() {
            retry.keep(sent);
        }
    }

    /// Marks the header of the packet that a side has just sent as damaged: it and all packets
    /// after it will be retransmitted.
    pub(super) fn damage(&mut self, side: Side, message: Message) {
        self.is_smooth = false;
        if self.retries[side as usize].damage(message) {
            self.link.refuse(side.other());
        }
    }

    /// Handles LBAD at a side: it sends LRTY when its lane is free, then retransmits what the other
    /// side did not accept.
    pub(super) fn retry(&mut self, now: Instant, side: Side) {
        let propagating = self.propagating[side.other() as usize].len();
        if !self.retries[side as usize].begin_again(propagating) {
            return;
        }
        self.link.send_command(now, side);
        self.is_idle[side as usize] = !self.is_expected[side as usize] && self.rests[side as usize].is_none();
    }

    /// Accepts the arriving message in the link layer. It stays [`Self::coming`] until
    /// [`Self::has_come`].
    #[inline]
    pub(super) fn take(&mut self, now: Instant, side: Side, fate: Fate) -> Taken {
        if !self.is_smooth || fate != Fate::Arrives {
            return self.take_with_errors(now, side, fate);
        }
        Taken { frees_other_at: None, retry_at: None, is_for_port: true }
    }

    #[cold]
    #[inline(never)]
    fn take_with_errors(&mut self, now: Instant, side: Side, fate: Fate) -> Taken {
        let is_lost = count_down(&mut self.lost[side as usize]);
        let is_stale = count_down(&mut self.stale[side as usize])
            && self.coming(side).is_some_and(|message| message.endpoint().number() != 0);
        let mut taken = Taken::default();
        self.is_smooth = self.is_smooth_again();
        let retry = &mut self.retries[side.other() as usize];
        if retry.ignores() {
            return taken;
        }
        if fate == Fate::HeaderDamaged {
            retry.refuse();
            taken.retry_at = Some(self.link.send_command(now, side).arrives);
            return taken;
        }
        taken.frees_other_at = self.free_held(now, side.other());
        taken.is_for_port = !is_lost && !is_stale && fate != Fate::Lost;
        taken
    }

    /// Handles a returning credit. Returns when to poll the lane, if it holds a message.
    fn free_held(&mut self, now: Instant, side: Side) -> Option<Instant> {
        let place = side as usize;
        let waits = self.held[place].is_some() && !std::mem::replace(&mut self.is_expected[place], true);
        waits.then(|| self.link.credit_at(now, side))
    }

    fn is_smooth_again(&self) -> bool {
        let nothing_held = self.held.iter().all(Option::is_none);
        let nothing_again = self.retries.iter().all(Retry::is_at_rest);
        nothing_held && self.lost == [0; 2] && self.stale == [0; 2] && nothing_again
    }
}

/// Returns whether there was one left.
const fn count_down(count: &mut u32) -> bool {
    let was_left = *count > 0;
    if was_left {
        *count -= 1;
    }
    was_left
}
