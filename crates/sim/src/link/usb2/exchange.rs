//! Transactions between a host's and a device's port, one after the other.
//!
//! One thing is under way at a time, so there is one moment at which an exchange goes on: [`Exchange::due_at`]. Whoever has the
//! time calls [`Exchange::step`] then, and finds what has moved at the ports.
//!
//! ```text
//!   Free ── the host asks ──► Asked ── the device answers ──► Answered ─► Free
//!    ▲                          │ nothing                         │ data: the host's ACK
//!    └── Silent ◄───────────────┘                   Acknowledged ◄┘
//! ```

use super::packet::{Answer, Ask, Handshake, Packet};
use super::port::{DevicePort, HostPort, Turn};
use super::wires::Bus;
use crate::link::superspeed::Side;
use units::Instant;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    /// It arrives.
    #[default]
    Arrives,
    /// It arrives with a wrong checksum: nobody answers it.
    Damaged,
    /// It does not arrive.
    Lost,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Who sends.
    pub from: Side,
    /// What.
    pub packet: Packet,
    /// When it begins.
    pub begins: Instant,
    /// When the next may begin.
    pub ends: Instant,
    /// What becomes of it.
    pub fate: Fate,
}

/// A bus and what is under way on it.
#[derive(Clone, Debug)]
pub struct Exchange {
    bus: Bus,
    phase: Phase,
    /// When it goes on; `None` if the host has nothing to ask.
    due_at: Option<Instant>,
    /// When the next transaction may begin.
    free_at: Instant,
}

/// What comes next.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The host may ask.
    Free,
    /// The device has been asked.
    Asked(Ask),
    /// The host has been answered.
    Answered(Ask, Answer),
    /// The host's ACK has arrived, or not.
    Acknowledged(Ask, Fate),
    /// The host has waited for long enough.
    Silent(Ask),
}

impl Exchange {
    /// An idle bus.
    pub const fn new(bus: Bus) -> Self {
        Self { bus, phase: Phase::Free, due_at: None, free_at: Instant::ZERO }
    }

    /// The bus, with what it has carried.
    pub const fn bus(&self) -> &Bus {
        &self.bus
    }

    /// Gives up what is under way: the ports are other ones now.
    pub const fn restart(&mut self) {
        self.phase = Phase::Free;
        self.due_at = None;
    }

    /// When it goes on. To be asked again whenever something has happened to a port.
    pub fn due_at(&mut self, now: Instant, host: &mut HostPort) -> Option<Instant> {
        if host.take_news() && matches!(self.phase, Phase::Free) {
            self.due_at = Some(self.free_at.max(now));
        }
        self.due_at
    }

    /// Goes on, if it is time to. The packets that are sent now; `fate` says what becomes of each.
    pub fn step(
        &mut self,
        now: Instant,
        host: &mut HostPort,
        device: &mut DevicePort,
        fate: &mut dyn FnMut(Side, &Packet) -> Fate,
    ) -> [Option<Sent>; 2] {
        if self.due_at.is_none_or(|due_at| due_at > now) {
            return [None; 2];
        }
        match self.phase {
            Phase::Free => return self.begin(now, host, fate),
            Phase::Asked(ask) => return [self.answer(ask, device, fate), None],
            Phase::Answered(ask, answer) => {
                if host.answered(now, &ask, Some(answer)) {
                    return [Some(self.acknowledge(ask, fate)), None];
                }
            }
            Phase::Acknowledged(ask, Fate::Arrives) => device.acknowledged(ask.endpoint()),
            Phase::Acknowledged(..) => {}
            Phase::Silent(ask) => {
                host.answered(now, &ask, None);
            }
        }
        self.free_at = now + host.pacing().gap;
        self.phase = Phase::Free;
        self.due_at = Some(self.free_at);
        [None; 2]
    }

    /// The host asks, as soon as what it asks fits into what is left of the frame.
    fn begin(
        &mut self,
        now: Instant,
        host: &mut HostPort,
        fate: &mut dyn FnMut(Side, &Packet) -> Fate,
    ) -> [Option<Sent>; 2] {
        let (ask, packet_bytes) = match host.turn(now) {
            Turn::Ask(ask, packet_bytes) => (ask, packet_bytes),
            Turn::Later(at) => {
                self.due_at = Some(at);
                return [None; 2];
            }
            Turn::Nothing => {
                self.due_at = None;
                return [None; 2];
            }
        };
        let bits = self.bus.rate().transaction_bits(&ask, packet_bytes);
        // A frame's end may pass before; then the choice is made anew.
        let room_at = self.bus.room_at(now, bits);
        if room_at.as_ps() / self.bus.rate().frame().as_ps() > now.as_ps() / self.bus.rate().frame().as_ps() {
            self.due_at = Some(room_at);
            return [None; 2];
        }
        self.bus.begin(now, bits);
        host.ask(ask);
        let token = self.send(Side::Host, Packet::Token(ask), fate);
        let data = ask.data_packet().map(|packet| self.send(Side::Host, packet, fate));
        self.bus.turn_round();
        let is_heard = token.fate == Fate::Arrives && data.is_none_or(|data| data.fate == Fate::Arrives);
        if is_heard {
            self.phase = Phase::Asked(ask);
            self.due_at = Some(self.bus.now());
        } else {
            self.wait_in_vain(ask);
        }
        [Some(token), data]
    }

    /// The device answers, if it has such an endpoint.
    fn answer(
        &mut self,
        ask: Ask,
        device: &mut DevicePort,
        fate: &mut dyn FnMut(Side, &Packet) -> Fate,
    ) -> Option<Sent> {
        let Some(answer) = device.asked(ask) else {
            self.wait_in_vain(ask);
            return None;
        };
        let sent = self.send(Side::Device, answer.into(), fate);
        match sent.fate {
            Fate::Arrives => self.phase = Phase::Answered(ask, answer),
            Fate::Damaged => self.phase = Phase::Silent(ask),
            Fate::Lost => {
                self.wait_in_vain(ask);
                return Some(sent);
            }
        }
        self.due_at = Some(sent.ends);
        Some(sent)
    }

    fn acknowledge(&mut self, ask: Ask, fate: &mut dyn FnMut(Side, &Packet) -> Fate) -> Sent {
        let sent = self.send(Side::Host, Packet::Handshake(Handshake::Ack), fate);
        self.phase = Phase::Acknowledged(ask, sent.fate);
        self.due_at = Some(sent.ends);
        sent
    }

    fn wait_in_vain(&mut self, ask: Ask) {
        self.phase = Phase::Silent(ask);
        self.due_at = Some(self.bus.wait_in_vain());
    }

    fn send(&mut self, from: Side, packet: Packet, fate: &mut dyn FnMut(Side, &Packet) -> Fate) -> Sent {
        let fate = fate(from, &packet);
        let crossing = self.bus.send(&packet);
        Sent { from, packet, begins: crossing.begins, ends: crossing.ends, fate }
    }
}
