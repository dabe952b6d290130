//! Transactions on a USB 2.0 bus, one after the other.
//!
//! One transaction is in progress at a time, so an exchange has one next deadline:
//! [`Exchange::due_at`]. The owner calls [`Exchange::step`] then, and polls the ports for progress.
//! The parties are [`Ends`]: a host port and a device port, a host port and a translator, or a
//! translator and a device (see [`super::tree`]).
//!
//! ```text
//!   Free ── the host asks ──► Asked ── the device answers ──► Answered ─► Free
//!    ▲                          │ nothing                         │ data: the host's ACK
//!    └── Silent ◄───────────────┘                   Acknowledged ◄┘
//! ```

use super::packet::{Answer, Handshake, HostTransaction, Packet};
use super::port::{DevicePort, HostPort, NextTransaction};
use super::wires::Bus;
use crate::link::superspeed::Side;
use units::{Duration, Instant};

/// The outcome of one packet transmission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    /// It arrives.
    #[default]
    Arrives,
    /// It arrives with a bad CRC and is not answered.
    Damaged,
    /// It does not arrive.
    Lost,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The sending side.
    pub from: Side,
    /// The packet.
    pub packet: Packet,
    /// When it begins.
    pub begins: Instant,
    /// When the next may begin.
    pub ends: Instant,
    /// Its fate.
    pub fate: Fate,
}

/// The packets of one step: split token, token, data.
pub type AllSent = [Option<Sent>; 3];

/// Returns the payload bytes of the packets of one step.
pub fn payload_of(sent: &AllSent) -> u32 {
    let payload = |sent: &Sent| match sent.packet {
        Packet::Data(_, piece) => u32::from(piece.bytes),
        _ => 0,
    };
    sent.iter().flatten().map(payload).sum()
}

/// Decides the fate of a packet that a side sends.
pub(super) type FateOf<'a> = &'a mut dyn FnMut(Side, &Packet) -> Fate;

/// The next action on a free bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A transaction. The other side sends at most this many bytes, if it sends.
    Begin(HostTransaction, u16),
    /// Nothing before then.
    Later(Instant),
    /// Nothing.
    Nothing,
}

/// The two parties of a transaction.
pub(super) trait Ends {
    /// Returns the next transaction on a free bus, without starting it.
    fn next(&self, now: Instant) -> Next;
    /// Starts the next transaction.
    fn begin(&mut self, order: HostTransaction);
    /// Returns the answer. `None` without a responder.
    fn asked(&mut self, order: HostTransaction) -> Option<Answer>;
    /// Handles the answer; `None` for no or a corrupt answer. Returns whether it is acknowledged.
    fn answered(&mut self, now: Instant, order: HostTransaction, answer: Option<Answer>) -> bool;
    /// Handles the acknowledgement.
    fn acknowledged(&mut self, order: HostTransaction);
    /// Between two transactions.
    fn gap(&self) -> Duration;
}

/// A host port and a device port that are connected directly.
pub(super) struct Pair<'a> {
    pub(super) host: &'a mut HostPort,
    pub(super) device: &'a mut DevicePort,
}

/// A bus and the transaction on it.
#[derive(Clone, Debug)]
pub struct Exchange {
    bus: Bus,
    phase: Phase,
    /// Time of the next step; `None` if the host is idle.
    due_at: Option<Instant>,
    /// When the next transaction may begin.
    free_at: Instant,
}

/// State of an exchange.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The host may ask.
    Free,
    /// The device has been asked.
    Asked(HostTransaction),
    /// The host has been answered.
    Answered(HostTransaction, Answer),
    /// The host's ACK has arrived, or not.
    Acknowledged(HostTransaction, Fate),
    /// The host has waited for long enough.
    Silent(HostTransaction),
}

impl Ends for Pair<'_> {
    fn next(&self, now: Instant) -> Next {
        match self.host.turn(now) {
            NextTransaction::HostRequest(ask, packet_bytes) => {
                Next::Begin(HostTransaction::Whole(ask), packet_bytes)
            }
            NextTransaction::Later(at) => Next::Later(at),
            NextTransaction::Nothing => Next::Nothing,
        }
    }

    fn begin(&mut self, order: HostTransaction) {
        self.host.ask(*order.ask());
    }

    fn asked(&mut self, order: HostTransaction) -> Option<Answer> {
        self.device.asked(*order.ask())
    }

    fn answered(&mut self, now: Instant, order: HostTransaction, answer: Option<Answer>) -> bool {
        self.host.answered(now, order.ask(), answer)
    }

    fn acknowledged(&mut self, order: HostTransaction) {
        self.device.acknowledged(order.ask().endpoint());
    }

    fn gap(&self) -> Duration {
        self.host.pacing().gap
    }
}

impl Exchange {
    /// Creates an exchange on an idle bus.
    pub const fn new(bus: Bus) -> Self {
        Self { bus, phase: Phase::Free, due_at: None, free_at: Instant::ZERO }
    }

    /// Returns the bus with its traffic counters.
    pub const fn bus(&self) -> &Bus {
        &self.bus
    }

    /// Seeded bug: see [`Bus::hurry`].
    pub const fn hurry(&mut self) {
        self.bus.hurry();
    }

    /// Aborts the transaction after the ports were replaced.
    pub const fn restart(&mut self) {
        self.phase = Phase::Free;
        self.due_at = None;
    }

    /// Returns the time of the next event, if there is one.
    pub fn due_at(&mut self, now: Instant, host: &mut HostPort) -> Option<Instant> {
        self.due_at_with(now, host.take_pending())
    }

    /// Executes the next step, if it is due. Returns the packets that are sent; `fate_of` decides
    /// the outcome of each.
    pub fn step(
        &mut self,
        now: Instant,
        host: &mut HostPort,
        device: &mut DevicePort,
        fate_of: FateOf<'_>,
    ) -> AllSent {
        self.step_with(now, &mut Pair { host, device }, fate_of)
    }

    /// Like [`Self::due_at`], given whether the host has new requests.
    pub(super) fn due_at_with(&mut self, now: Instant, has_pending: bool) -> Option<Instant> {
        if has_pending && self.is_free() {
            self.due_at = Some(self.free_at.max(now));
        }
        self.due_at
    }

    /// Returns whether a step is due.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due_at.is_some_and(|due_at| due_at <= now)
    }

    /// Returns whether nothing is in progress.
    pub(super) const fn is_free(&self) -> bool {
        matches!(self.phase, Phase::Free)
    }

    /// Returns the transaction in progress.
    pub(super) const fn order(&self) -> Option<HostTransaction> {
        match self.phase {
            Phase::Free => None,
            Phase::Asked(order)
            | Phase::Answered(order, _)
            | Phase::Acknowledged(order, _)
            | Phase::Silent(order) => Some(order),
        }
    }

    /// Sets the time before which nothing is sent.
    pub(super) const fn rest(&mut self, until: Option<Instant>) {
        self.due_at = until;
    }

    /// Sets the number of hubs on the path of the next transaction.
    pub(super) const fn reach(&mut self, hubs: u8) {
        self.bus.reach(hubs);
    }

    /// Aborts the transaction of a party that is gone. The bus is free after the packet on it.
    pub(super) fn abandon(&mut self, now: Instant) {
        if !self.is_free() {
            self.phase = Phase::Free;
            self.free_at = self.bus.now().max(now);
            self.due_at = Some(self.free_at);
        }
    }

    /// Like [`Self::step`], for any two parties.
    pub(super) fn step_with(&mut self, now: Instant, ends: &mut impl Ends, fate_of: FateOf<'_>) -> AllSent {
        if !self.is_due(now) {
            return [None; 3];
        }
        match self.phase {
            Phase::Free => return self.begin(now, ends, fate_of),
            Phase::Asked(order) => return [self.answer(order, ends, fate_of), None, None],
            Phase::Answered(order, answer) => {
                if ends.answered(now, order, Some(answer)) {
                    return [Some(self.acknowledge(order, fate_of)), None, None];
                }
            }
            Phase::Acknowledged(order, Fate::Arrives) => ends.acknowledged(order),
            Phase::Acknowledged(..) => {}
            Phase::Silent(order) => {
                ends.answered(now, order, None);
            }
        }
        self.free_at = now + ends.gap();
        self.phase = Phase::Free;
        self.due_at = Some(self.free_at);
        [None; 3]
    }

    /// Starts a transaction as soon as it fits into the frame.
    fn begin(&mut self, now: Instant, ends: &mut impl Ends, fate_of: FateOf<'_>) -> AllSent {
        let (order, packet_bytes) = match ends.next(now) {
            Next::Begin(order, packet_bytes) => (order, packet_bytes),
            Next::Later(at) => {
                self.due_at = Some(at);
                return [None; 3];
            }
            Next::Nothing => {
                self.due_at = None;
                return [None; 3];
            }
        };
        let bits = self.bus.rate().order_bits(&order, packet_bytes);
        // A frame's end may pass before; then the choice is reset.
        let room_at = self.bus.room_at(now, bits);
        if room_at.as_ps() / self.bus.rate().frame().as_ps() > now.as_ps() / self.bus.rate().frame().as_ps() {
            self.due_at = Some(room_at);
            return [None; 3];
        }
        self.bus.begin(now, bits);
        ends.begin(order);
        let sent = order.packets().map(|packet| Some(self.send(Side::Host, packet?, fate_of)));
        self.bus.turn_round();
        if sent.iter().flatten().all(|sent| sent.fate == Fate::Arrives) {
            self.phase = Phase::Asked(order);
            self.due_at = Some(self.bus.now());
        } else {
            self.wait_in_vain(order);
        }
        sent
    }

    /// Lets the device answer, if it has such an endpoint.
    fn answer(&mut self, order: HostTransaction, ends: &mut impl Ends, fate_of: FateOf<'_>) -> Option<Sent> {
        let Some(answer) = ends.asked(order) else {
            self.wait_in_vain(order);
            return None;
        };
        let sent = self.send(Side::Device, answer.into(), fate_of);
        match sent.fate {
            Fate::Arrives => self.phase = Phase::Answered(order, answer),
            Fate::Damaged => self.phase = Phase::Silent(order),
            Fate::Lost => {
                self.wait_in_vain(order);
                return Some(sent);
            }
        }
        self.due_at = Some(sent.ends);
        Some(sent)
    }

    fn acknowledge(&mut self, order: HostTransaction, fate_of: FateOf<'_>) -> Sent {
        let sent = self.send(Side::Host, Packet::Handshake(Handshake::Ack), fate_of);
        self.phase = Phase::Acknowledged(order, sent.fate);
        self.due_at = Some(sent.ends);
        sent
    }

    fn wait_in_vain(&mut self, order: HostTransaction) {
        self.phase = Phase::Silent(order);
        self.due_at = Some(self.bus.wait_in_vain());
    }

    fn send(&mut self, from: Side, packet: Packet, fate_of: FateOf<'_>) -> Sent {
        let fate = fate_of(from, &packet);
        let crossing = self.bus.send(&packet);
        Sent { from, packet, begins: crossing.begins, ends: crossing.ends, fate }
    }
}
