//! A transaction translator of a high-speed hub, and the host's view of it (USB 2.0 clauses 8.4.2,
//! 11.14.1 and 11.17).
//!
//! ```text
//!   above, 480 Mb/s                 places                      below, 12 Mb/s
//!   SSPLIT OUT DATA ─► ACK  ──►  Waiting ─► InFlight ─►  OUT DATA ─► ACK, NAK, STALL
//!   CSPLIT OUT ─► NYET              │          │  three tries without an answer: STALL
//!   CSPLIT OUT ─► ACK   ◄──  Done ◄─┴──────────┘
//! ```
//!
//! A translator has [`PLACES`] buffers for non-periodic transactions (clause 11.14.2.2 requires
//! two), and executes them in order of arrival. A result that was returned stays until the buffer
//! is needed, since the answer may be lost: the host repeats its request before it starts anything
//! else. IN data is acknowledged downstream before the host gets it, so the host does not
//! acknowledge it.
//!
//! Invariants: an endpoint has one buffer; its transaction is executed once downstream, however
//! often either phase is repeated.

use super::super::exchange::{Ends, Exchange, Next};
use super::super::host::TRIES_MAX;
use super::super::packet::{Answer, Handshake, HostRequest, HostTransaction, Packet, SplitPhase};
use super::super::port::{HostPort, NextTransaction};
use super::super::rate::Rate;
use super::super::wires::Bus;
use super::bus_event::{BusEvent, FateOf};
use super::member::Member;
use crate::link::DevicePort;
use crate::link::hub::DeviceId;
use units::{Duration, Instant};
use wire::usb::EndpointAddress;

/// Number of transaction translators of a high-speed hub.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Translators {
    /// One for all ports (single TT).
    #[default]
    One,
    /// One per port (multi TT).
    Each,
}

/// Buffers of a translator.
pub(super) const PLACES: usize = 2;

/// Delay before the host polls a busy translator again: as EHCI pauses its bulk list (EHCI 1.0
/// clause 4.8.4). No standard defines it.
const REST: Duration = Duration::from_us(10);

/// A translator.
#[derive(Clone, Debug)]
pub(super) struct Translator {
    /// Its hub, and its port for a translator per port.
    pub(super) place: (usize, Option<u8>),
    below: Exchange,
    places: Places,
}

#[derive(Clone, Debug, Default)]
struct Places {
    /// Oldest first.
    all: Vec<Place>,
    /// The device served downstream now or last.
    current: usize,
    has_pending: bool,
}

/// A transaction that the host has started.
#[derive(Clone, Copy, Debug)]
struct Place {
    device: usize,
    ask: HostRequest,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Number of tries.
    Waiting(u8),
    InFlight(u8),
    Done {
        answer: Answer,
        is_returned: bool,
    },
}

/// Host state of a device behind a translator.
#[derive(Clone, Debug)]
pub(super) struct Behind {
    pub(super) translator: usize,
    /// Transactions in the translator whose result the host does not know.
    open: Vec<Open>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    ask: HostRequest,
    packet_bytes: u16,
    /// Time of the next complete split.
    again_at: Instant,
    /// Number of unanswered complete splits.
    failures: u8,
}

/// Host and translator as parties for one device.
pub(super) struct Split<'a> {
    behind: &'a mut Behind,
    host: &'a mut HostPort,
    places: &'a mut Places,
    device: usize,
}

/// Translator and downstream devices as parties.
struct Below<'a> {
    places: &'a mut Places,
    members: &'a mut [Member],
}

impl Translator {
    pub(super) const fn new(hub: usize, port: Option<u8>) -> Self {
        let places = Places { all: Vec::new(), current: 0, has_pending: false };
        Self { place: (hub, port), below: Exchange::new(Bus::new(Rate::Full, 0)), places }
    }

    /// Returns the downstream bus with its traffic counters.
    pub(super) const fn bus(&self) -> &Bus {
        self.below.bus()
    }

    pub(super) fn due_at(&mut self, now: Instant) -> Option<Instant> {
        self.below.due_at_with(now, std::mem::take(&mut self.places.has_pending))
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.below.is_due(now)
    }

    /// Executes the next downstream step.
    pub(super) fn step(
        &mut self,
        now: Instant,
        members: &mut [Member],
        fate_of: FateOf<'_>,
    ) -> Option<BusEvent> {
        if self.below.is_free() {
            match self.places.waiting() {
                Some(place) => self.places.current = place.device,
                None => {
                    self.below.rest(None);
                    return None;
                }
            }
        }
        let device = DeviceId(self.places.current);
        let mut ends = Below { places: &mut self.places, members };
        let sent = self
            .below
            .step_with(now, &mut ends, &mut |from, packet: &Packet| fate_of(device, true, from, packet));
        let endpoint = self.below.order().map(|order| order.ask().endpoint());
        Some(BusEvent { device, endpoint, is_below: true, sent })
    }

    /// Drops the transactions of a device, or of one of its endpoints.
    pub(super) fn forget(&mut self, now: Instant, device: usize, endpoint: Option<EndpointAddress>) {
        let is_its = |place: &Place| {
            place.device == device && endpoint.is_none_or(|endpoint| place.is_of(device, endpoint))
        };
        let is_in_flight = |place: &Place| matches!(place.state, State::InFlight(_));
        if self.places.all.iter().any(|place| is_its(place) && is_in_flight(place)) {
            self.below.abandon(now);
        }
        self.places.all.retain(|place| !is_its(place));
        self.places.has_pending = true;
    }
}

impl Places {
    fn waiting(&self) -> Option<&Place> {
        self.all.iter().find(|place| matches!(place.state, State::Waiting(_)))
    }

    fn find(&mut self, device: usize, endpoint: EndpointAddress) -> Option<&mut Place> {
        self.all.iter_mut().find(|place| place.is_of(device, endpoint))
    }

    fn in_flight(&mut self) -> Option<&mut Place> {
        self.all.iter_mut().find(|place| matches!(place.state, State::InFlight(_)))
    }

    /// Handles a start split. Returns whether it has a buffer.
    fn start(&mut self, device: usize, ask: HostRequest) -> Handshake {
        let is_returned = |place: &Place| matches!(place.state, State::Done { is_returned: true, .. });
        if let Some(at) = self.all.iter().position(|place| place.is_of(device, ask.endpoint())) {
            if !is_returned(&self.all[at]) {
                // The acknowledgement of the first time was lost.
                return Handshake::Ack;
            }
            self.all.remove(at);
        }
        if self.all.len() >= PLACES {
            let Some(at) = self.all.iter().position(is_returned) else { return Handshake::Nak };
            self.all.remove(at);
        }
        self.all.push(Place { device, ask, state: State::Waiting(0) });
        self.has_pending = true;
        Handshake::Ack
    }

    /// Handles a complete split. Unknown transactions are not answered.
    fn complete(&mut self, device: usize, ask: HostRequest) -> Option<Answer> {
        match &mut self.find(device, ask.endpoint())?.state {
            State::Waiting(_) | State::InFlight(_) => Some(Answer::Handshake(Handshake::Nyet)),
            State::Done { answer, is_returned } => {
                *is_returned = true;
                Some(*answer)
            }
        }
    }
}

impl Place {
    /// Returns whether it belongs to an endpoint; both directions of endpoint 0 are one.
    fn is_of(&self, device: usize, endpoint: EndpointAddress) -> bool {
        let its = self.ask.endpoint();
        self.device == device && (its == endpoint || its.number() == 0 && endpoint.number() == 0)
    }
}

impl Behind {
    pub(super) const fn new(translator: usize) -> Self {
        Self { translator, open: Vec::new() }
    }

    pub(super) const fn with<'a>(
        &'a mut self,
        host: &'a mut HostPort,
        translator: &'a mut Translator,
        device: usize,
    ) -> Split<'a> {
        Split { behind: self, host, places: &mut translator.places, device }
    }

    pub(super) fn forget(&mut self) {
        self.open.clear();
    }

    /// Returns whether a transaction of an endpoint is outstanding for the host.
    pub(super) fn is_open(&self, endpoint: EndpointAddress) -> bool {
        self.open.iter().any(|open| open.ask.endpoint() == endpoint)
    }

    /// Returns whether an answer of the translator was lost: nothing else may be started with it
    /// before the repetition, which could replace the result.
    pub(super) fn insists(&self) -> bool {
        self.open.iter().any(|open| open.failures > 0)
    }

    /// Returns the next split of the host: it completes a transaction before it starts another.
    pub(super) fn next(&self, now: Instant, host: &HostPort) -> Next {
        let due = || self.open.iter().filter(|open| open.again_at <= now);
        if let Some(open) = due().find(|open| open.failures > 0).or_else(|| due().next()) {
            return Next::Begin(HostTransaction::Split(SplitPhase::Complete, open.ask), open.packet_bytes);
        }
        let later = match host.turn(now) {
            NextTransaction::HostRequest(ask, packet_bytes) => {
                return Next::Begin(HostTransaction::Split(SplitPhase::Start, ask), packet_bytes);
            }
            NextTransaction::Later(at) => Some(at),
            NextTransaction::Nothing => None,
        };
        let again_at = self.open.iter().map(|open| open.again_at);
        again_at.chain(later).min().map_or(Next::Nothing, Next::Later)
    }
}

impl Split<'_> {
    /// Handles the answer to a start split.
    fn started(&mut self, now: Instant, ask: HostRequest, packet_bytes: u16, answer: Option<Answer>) {
        match answer {
            Some(Answer::Handshake(Handshake::Ack)) => {
                let again_at = now + REST;
                self.behind.open.push(Open { ask, packet_bytes, again_at, failures: 0 });
            }
            Some(Answer::Handshake(_)) => self.host.put_off(now + REST, &ask),
            _ => {
                self.host.answered(now, &ask, None);
            }
        }
    }

    /// Handles the answer to a complete split.
    fn completed(&mut self, now: Instant, ask: HostRequest, answer: Option<Answer>) {
        let Some(at) = self.behind.open.iter().position(|open| open.ask == ask) else { return };
        let open = &mut self.behind.open[at];
        match answer {
            Some(Answer::Handshake(Handshake::Nyet)) => {
                (open.failures, open.again_at) = (0, now + REST);
            }
            // At once, and not from the start, which would do it twice.
            None if open.failures + 1 < TRIES_MAX => {
                (open.failures, open.again_at) = (open.failures + 1, now);
            }
            None => {
                self.behind.open.remove(at);
                self.host.fail(&ask);
            }
            Some(answer) => {
                self.behind.open.remove(at);
                self.host.answered(now, &ask, Some(answer));
            }
        }
    }
}

impl Ends for Split<'_> {
    fn next(&self, now: Instant) -> Next {
        self.behind.next(now, self.host)
    }

    fn begin(&mut self, order: HostTransaction) {
        if let HostTransaction::Split(SplitPhase::Start, ask) = order {
            self.host.ask(ask);
        }
    }

    fn asked(&mut self, order: HostTransaction) -> Option<Answer> {
        match order {
            HostTransaction::Split(SplitPhase::Start, ask) => {
                Some(Answer::Handshake(self.places.start(self.device, ask)))
            }
            HostTransaction::Split(SplitPhase::Complete, ask) => self.places.complete(self.device, ask),
            HostTransaction::Whole(_) => None,
        }
    }

    fn answered(&mut self, now: Instant, order: HostTransaction, answer: Option<Answer>) -> bool {
        match order {
            HostTransaction::Split(SplitPhase::Start, ask) => {
                let packet_bytes = self.host.packet_bytes(&ask);
                self.started(now, ask, packet_bytes, answer);
            }
            HostTransaction::Split(SplitPhase::Complete, ask) => self.completed(now, ask, answer),
            HostTransaction::Whole(_) => {}
        }
        // A result that was returned once is returned again on request.
        false
    }

    fn acknowledged(&mut self, _: HostTransaction) {}

    fn gap(&self) -> Duration {
        self.host.pacing().gap
    }
}

impl Ends for Below<'_> {
    fn next(&self, _: Instant) -> Next {
        let Some(place) = self.places.waiting() else { return Next::Nothing };
        let DevicePort::Usb2(device) = &self.members[place.device].device else { return Next::Nothing };
        Next::Begin(HostTransaction::Whole(place.ask), device.packet_bytes(&place.ask))
    }

    fn begin(&mut self, _: HostTransaction) {
        let waiting = self.places.all.iter_mut().find_map(|place| match &mut place.state {
            State::Waiting(tries) => Some((*tries, &mut place.state)),
            _ => None,
        });
        if let Some((tries, state)) = waiting {
            *state = State::InFlight(tries);
        }
    }

    fn asked(&mut self, order: HostTransaction) -> Option<Answer> {
        let member = &mut self.members[self.places.current];
        match &mut member.device {
            DevicePort::Usb2(device) if member.is_up => device.asked(*order.ask()),
            _ => None,
        }
    }

    fn answered(&mut self, _: Instant, _: HostTransaction, answer: Option<Answer>) -> bool {
        let Some(place) = self.places.in_flight() else { return false };
        let State::InFlight(tries) = place.state else { return false };
        place.state = match answer {
            Some(answer) => State::Done { answer, is_returned: false },
            None if tries + 1 < TRIES_MAX => State::Waiting(tries + 1),
            None => State::Done { answer: Answer::Handshake(Handshake::Stall), is_returned: false },
        };
        matches!(answer, Some(Answer::Data(..)))
    }

    fn acknowledged(&mut self, order: HostTransaction) {
        if let DevicePort::Usb2(device) = &mut self.members[self.places.current].device {
            device.acknowledged(order.ask().endpoint());
        }
    }

    fn gap(&self) -> Duration {
        Duration::ZERO
    }
}
