//! Retransmission of packets after a damaged header (USB 3.2 clause 7.2.4.1.4).
//!
//! The receiver answers a damaged header with LBAD and ignores packets until LRTY; the sender sends
//! LRTY, then all packets that were not accepted, in order, with the credits that it has. Not
//! modelled: link commands, credits and times, which belong to the link.
//!
//! Invariant: retransmitted packets go before new ones.

use std::collections::VecDeque;

/// Retransmission state of one side of a link.
#[derive(Clone, Debug)]
pub(super) struct Retry<T> {
    state: State,
    /// The damaged one and all that was sent after it; once LRTY was sent, those that were not sent
    /// again.
    packets: VecDeque<T>,
    /// Packets in flight that the other side will not look at, since they came before LRTY.
    ignored: u32,
}

/// How far that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The other side takes what comes.
    None,
    /// The damaged one is in flight.
    Damaged,
    /// It has arrived, LBAD was sent, and the receiver looks at nothing before LRTY.
    Refused,
}

impl<T> Retry<T> {
    /// Nothing is damaged.
    pub(super) const fn new() -> Self {
        Self { state: State::None, packets: VecDeque::new(), ignored: 0 }
    }

    /// Returns whether nothing is damaged, sent again or ignored.
    pub(super) fn is_at_rest(&self) -> bool {
        !self.keeps() && self.packets.is_empty() && self.ignored == 0
    }

    /// Returns whether there is something to send again.
    pub(super) fn has_again(&self) -> bool {
        !self.keeps() && !self.packets.is_empty()
    }

    /// Returns the next packet to send again, if there is one.
    pub(super) fn next_again(&mut self) -> Option<T> {
        if self.keeps() { None } else { self.packets.pop_front() }
    }

    /// Returns whether what is sent now will be sent again, since something before it arrives
    /// damaged.
    pub(super) fn keeps(&self) -> bool {
        self.state != State::None
    }

    /// Such a packet has been sent.
    pub(super) fn keep(&mut self, packet: T) {
        self.packets.push_back(packet);
    }

    /// Marks the header of the last packet as damaged. Returns whether it is the first: packets
    /// after a damaged one are ignored anyway.
    pub(super) fn damage(&mut self, packet: T) -> bool {
        if self.keeps() {
            return false;
        }
        self.state = State::Damaged;
        self.packets.push_front(packet);
        true
    }

    /// A packet comes to the receiver. Returns whether it does not look at it.
    pub(super) fn ignores(&mut self) -> bool {
        let is_before = self.ignored > 0;
        self.ignored -= u32::from(is_before);
        is_before || self.state == State::Refused
    }

    /// Records that the damaged packet arrived and LBAD was sent.
    pub(super) fn refuse(&mut self) {
        self.state = State::Refused;
    }

    /// Handles LBAD while packets are in flight. Returns whether to send LRTY and retransmit.
    pub(super) fn begin_again(&mut self, propagating: usize) -> bool {
        if self.state != State::Refused {
            return false;
        }
        self.state = State::None;
        self.ignored = propagating as u32;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_damaged_and_all_behind_it_goes_again_in_order() {
        let mut retry = Retry::new();
        assert!(retry.damage(1), "the first");
        retry.keep(2);
        assert!(!retry.damage(3), "the receiver ignores it");
        retry.keep(3);
        assert!(!retry.has_again(), "LBAD has not come");
        assert!(!retry.begin_again(0), "LBAD was not sent");
        retry.refuse();
        assert!(retry.ignores(), "there was no LRTY yet");
        assert!(retry.begin_again(1));
        assert_eq!((retry.ignores(), retry.ignores()), (true, false), "one was on its way");
        assert_eq!([(); 4].map(|()| retry.next_again()), [Some(1), Some(2), Some(3), None]);
        assert!(retry.is_at_rest());
    }

    #[test]
    fn one_that_is_damaged_again_goes_before_those_that_wait() {
        let mut retry = Retry::new();
        retry.damage(1);
        retry.keep(2);
        retry.refuse();
        retry.begin_again(0);
        let first = retry.next_again().unwrap();
        assert!(retry.damage(first));
        retry.refuse();
        retry.begin_again(0);
        assert_eq!([(); 3].map(|()| retry.next_again()), [Some(1), Some(2), None]);
    }
}
