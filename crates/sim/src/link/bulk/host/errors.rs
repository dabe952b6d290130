//! Error handling of the host side: timeouts, damaged packets and halts.
//!
//! A transaction is tried three times; then the endpoint fails, and software resets it (USB 3.2
//! clause 8.13, xHCI 1.2 clause 4.10.2). A damaged packet is requested again, and packets after it
//! are ignored until it arrives.

use super::HostEndpoint;
use crate::link::bulk::message::{Message, Sequence};
use crate::link::run::EndpointRun;
use crate::link::streams::Host;
use bus::StreamId;
use bus::link::End;

/// Times that the host tries a packet before it gives up (xHCI 1.2 clause 6.2.3: CErr, which
/// drivers set to 3).
const TRIES: u8 = 3;

impl HostEndpoint {
    /// Returns the message counter if the device owes an answer.
    pub fn awaits(&self) -> Option<u32> {
        let is_owed = self.in_flight > 0 || self.pipe.as_ref().is_some_and(|pipe| !pipe.is_settled());
        (is_owed && !self.is_halted()).then_some(self.steps)
    }

    /// Handles a timeout: repeats the request, or fails the endpoint.
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
            // What the device has of it is not known, so no one can go on from here.
            () if self.run != EndpointRun::Running => self.halt(EndpointRun::Failed, End::Failed),
            () => {
                self.may_have = self.may_have.max(self.in_flight);
                let oldest = self.next.before(self.in_flight);
                self.rewind_to(stream, oldest);
            }
        }
    }

    /// Like [`Self::reset`], but keeps the sequence number: a retry after a failure that the device
    /// did not notice (xHCI 1.2 clause 4.6.8.1, Transfer State Preserve).
    pub fn reset_for_retry(&mut self) {
        let (next, is_blocked) = (self.next, self.is_blocked);
        self.reset();
        (self.next, self.is_blocked) = (next, is_blocked);
        // The device may have sent what was asked for, and sends it once more only if it is
        // requested to.
        self.is_retrying = self.is_in();
    }

    /// Handles a data packet of the device with a damaged payload.
    pub fn receive_damaged(&mut self, message: &Message) {
        let Message::Data { sequence, .. } = *message else { return };
        if self.is_halted() || !self.is_in() || self.in_flight == 0 || sequence != self.next {
            return;
        }
        self.ask_again();
    }

    /// Requests missing data again, starting with the next packet.
    #[cold]
    #[inline(never)]
    pub(super) fn ask_again(&mut self) {
        let Some(stream) = self.current() else { return };
        self.is_retrying = true;
        self.send_ack(stream, true, true);
    }

    /// Skips packets that the device had accepted before it stopped responding.
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

    /// Rewinds to `from`, so that packets that the device has not accepted are sent again.
    pub(super) fn rewind_to(&mut self, stream: Option<StreamId>, from: Sequence) {
        self.queues.rewind(stream);
        self.next = from;
        self.in_flight = 0;
        self.has_bus = false;
    }

    /// Halts: completes the current transfer, if there is one. Packets in flight when the device
    /// sent NRDY are answered with STALL as well.
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
