//! The host's end of an endpoint when an answer does not come, or does not come whole, and when the device has halted it.
//!
//! What was said is said again, three times in all; then the endpoint fails, and software resets it (USB 3.2 clause 8.13, xHCI 1.2
//! clause 4.10.2). A packet that came damaged is asked for again, and what follows it is not looked at before.

use super::HostEndpoint;
use crate::link::bulk::message::{Message, Sequence};
use crate::link::bulk::queue::End;
use crate::link::run::EndpointRun;
use crate::link::streams::Host;
use bus::StreamId;

/// Times that the host tries a packet before it gives up (xHCI 1.2 clause 6.2.3: CErr, which drivers set to 3).
const TRIES: u8 = 3;

impl HostEndpoint {
    /// Whether the device owes an answer; if so, what has come of the endpoint so far, to be compared.
    pub fn awaits(&self) -> Option<u32> {
        let is_owed = self.in_flight > 0 || self.pipe.as_ref().is_some_and(|pipe| !pipe.is_settled());
        (is_owed && !self.is_halted()).then_some(self.steps)
    }

    /// The device has not answered in time: what was said is said again, or the endpoint fails.
    pub fn time_out(&mut self) {
        self.steps = self.steps.wrapping_add(1);
        self.failures += 1;
        let Some(stream) = self.current() else {
            let said = self.pipe.as_mut().and_then(Host::repeat);
            return if self.failures < TRIES {
                self.say(said)
            } else {
                self.halt(EndpointRun::Failed, End::Failed)
            };
        };
        match () {
            () if self.failures >= TRIES => self.halt(EndpointRun::Failed, End::Failed),
            () if self.is_in() => self.ask_again(),
            // What the device has of it is not known, so nobody can go on from here.
            () if self.run != EndpointRun::Running => self.halt(EndpointRun::Failed, End::Failed),
            () => {
                self.may_have = self.may_have.max(self.in_flight);
                let oldest = self.next.before(self.in_flight);
                self.rewind_to(stream, oldest);
            }
        }
    }

    /// As [`Self::reset`], but keeps the sequence number: a new try after a failure, of which the device knows nothing (xHCI
    /// 1.2 clause 4.6.8.1, Transfer State Preserve).
    pub fn reset_for_retry(&mut self) {
        let (next, is_blocked) = (self.next, self.is_blocked);
        self.reset();
        (self.next, self.is_blocked) = (next, is_blocked);
        // The device may have sent what was asked for, and sends it once more only if it is told to.
        self.is_retrying = self.is_in();
    }

    /// A data packet of the device has come whose payload is damaged.
    pub fn receive_damaged(&mut self, message: &Message) {
        let Message::Data { sequence, .. } = *message else { return };
        if self.is_halted() || !self.is_in() || self.in_flight == 0 || sequence != self.next {
            return;
        }
        self.ask_again();
    }

    /// Asks for what has not come, from the next packet on.
    #[cold]
    #[inline(never)]
    pub(super) fn ask_again(&mut self) {
        let Some(stream) = self.current() else { return };
        self.is_retrying = true;
        self.send_ack(stream, true, true);
    }

    /// Passes over packets that the device had taken before it did not answer.
    pub(super) fn skip_to(&mut self, stream: Option<StreamId>, expects: Sequence) {
        let ahead = expects.since(self.next);
        if ahead == 0 || ahead > self.may_have.saturating_sub(self.in_flight) {
            return;
        }
        for _ in 0..ahead {
            self.queues.send(stream, self.endpoint.packet_bytes);
            self.next = self.next.next();
            self.in_flight += 1;
        }
    }

    /// What the device has not taken will be sent again.
    pub(super) fn rewind_to(&mut self, stream: Option<StreamId>, from: Sequence) {
        self.queues.rewind(stream);
        self.next = from;
        self.in_flight = 0;
        self.has_bus = false;
    }

    /// Halts: the transfer at hand ends, if there is one. Packets that were on their way when the device said NRDY are answered
    /// with STALL as well.
    #[cold]
    #[inline(never)]
    pub(super) fn halt(&mut self, run: EndpointRun, end: End) {
        let stream = self.pipe.as_ref().map_or(Some(None), |pipe| pipe.current().map(Some));
        if let Some(stream) = stream {
            self.queues.rewind(stream);
            self.queues.end_first(stream, end).into_iter().for_each(|ended| self.progress.push_back(ended));
        }
        if !self.is_in() {
            self.next = self.next.before(self.in_flight);
        }
        self.run = run;
        (self.may_have, self.failures) = (0, 0);
        self.has_bus = false;
        self.in_flight = 0;
        self.outbox.clear();
    }
}
