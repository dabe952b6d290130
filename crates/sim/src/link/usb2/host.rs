//! The host side of a USB 2.0 bulk endpoint: starts every transaction (USB 2.0 clauses 8.5.1, 8.5.2
//! and 8.6).
//!
//! Same interface as [`crate::link::bulk::HostEndpoint`]: it can be stopped between packets, a
//! STALL halts it, and [`HostEndpoint::reset`] resets it but keeps its transfers. A stopped
//! endpoint is quiet once an unanswered transaction has been repeated, so that both sides agree on
//! the data toggle.

use super::line::Line;
use super::packet::{Answer, Handshake, HostRequest, Toggle};
use super::rate::Rate;
use crate::link::bulk::{End, Endpoint, NotWithdrawn, Progress, Transfer};
use crate::link::run::EndpointRun;
use bus::TransferId;
use std::collections::VecDeque;
use units::{Duration, Instant};
use wire::usb::Direction;

/// Maximum tries of an unanswered transaction (clause 8.6.4; xHCI 1.2 clause 4.10.2.3).
pub const TRIES_MAX: u8 = 3;

/// Delays that a host controller adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pacing {
    /// Between two transactions.
    pub gap: Duration,
    /// After a NAK, before the endpoint is polled again.
    pub after_nak: Duration,
}

/// The host side.
#[derive(Clone, Debug)]
pub struct HostEndpoint {
    endpoint: Endpoint,
    rate: Rate,
    line: Line,
    toggle: Toggle,
    run: EndpointRun,
    /// OUT: whether the device has said that there is no room, and is asked before data is sent.
    asks_for_room: bool,
    /// Tries of what is in flight or comes next that were not answered.
    failures: u8,
    /// The transaction in progress.
    asked: Option<HostRequest>,
    /// When it may be asked again.
    patient_until: Instant,
    progress: VecDeque<Progress>,
}

impl Pacing {
    /// No gaps, and 10 us after a NAK, for which EHCI lets its list of bulk endpoints rest (EHCI
    /// 1.0 clause 4.8.4).
    pub const AT_ONCE: Self = Self { gap: Duration::ZERO, after_nak: Duration::from_us(10) };
}

impl Default for Pacing {
    fn default() -> Self {
        Self::AT_ONCE
    }
}

impl HostEndpoint {
    /// An endpoint on which nothing has moved.
    pub fn new(endpoint: Endpoint, rate: Rate) -> Self {
        Self {
            endpoint,
            rate,
            line: Line::default(),
            toggle: Toggle::Data0,
            run: EndpointRun::Running,
            asks_for_room: false,
            failures: 0,
            asked: None,
            patient_until: Instant::ZERO,
            progress: VecDeque::new(),
        }
    }

    /// Queues a transfer: memory to fill on an IN endpoint, bytes to send on an OUT endpoint.
    pub fn queue(&mut self, transfer: Transfer) {
        self.line.push(transfer);
    }

    /// Stops at the next packet boundary until [`Self::resume`].
    pub fn stop(&mut self) {
        if self.run == EndpointRun::Running {
            self.run = EndpointRun::Stopped;
        }
    }

    /// Returns whether it is stopped or halted with nothing in flight.
    pub const fn is_quiet(&self) -> bool {
        !matches!(self.run, EndpointRun::Running) && self.asked.is_none() && self.failures == 0
    }

    /// Returns whether the device has halted it or does not respond.
    pub const fn is_halted(&self) -> bool {
        matches!(self.run, EndpointRun::Halted | EndpointRun::Failed)
    }

    /// Returns whether it is halted because the device does not respond.
    pub fn has_failed(&self) -> bool {
        self.run == EndpointRun::Failed
    }

    /// Restarts it after [`Self::stop`] or [`Self::reset`]. Has no effect while halted.
    pub fn resume(&mut self) {
        if self.run == EndpointRun::Stopped {
            self.run = EndpointRun::Running;
        }
    }

    /// Cancels a transfer. Returns the bytes of it that have moved.
    ///
    /// # Errors
    /// If it is not queued, or a packet of the endpoint is in flight.
    pub fn withdraw(&mut self, id: TransferId) -> Result<u32, NotWithdrawn> {
        if self.asked.is_some() || self.failures > 0 {
            return Err(NotWithdrawn::InFlight);
        }
        let progress = self.line.withdraw(id, false).flatten().ok_or(NotWithdrawn::Unknown)?;
        Ok(progress.moved)
    }

    /// Resets it to DATA0, not halted, keeping its transfers. It is stopped then.
    pub fn reset(&mut self) {
        let (line, progress) = (std::mem::take(&mut self.line), std::mem::take(&mut self.progress));
        *self = Self { line, progress, run: EndpointRun::Stopped, ..Self::new(self.endpoint, self.rate) };
    }

    /// Like [`Self::reset`], but keeps the data toggle: a retry after a failure that the device did
    /// not notice (xHCI 1.2 clause 4.6.8.1, Transfer State Preserve).
    pub fn reset_for_retry(&mut self) {
        let toggle = self.toggle;
        self.reset();
        self.toggle = toggle;
    }

    /// Returns the transfers, oldest first.
    pub fn transfers(&self) -> impl Iterator<Item = TransferId> {
        self.line.transfers()
    }

    /// Returns the bytes of the first transfer.
    pub fn expects(&self) -> Option<u32> {
        self.line.first_bytes()
    }

    /// Returns the bytes that the first transfer still waits for, and all of the one behind it.
    pub fn awaits(&self) -> (Option<u32>, Option<u32>) {
        (self.line.left(), self.line.second_bytes())
    }

    /// Returns the next transaction and when it may start. `None` if there is none.
    pub fn wants(&self) -> Option<(Instant, HostRequest)> {
        let may_run =
            self.run == EndpointRun::Running || self.run == EndpointRun::Stopped && self.failures > 0;
        if !may_run || self.asked.is_some() {
            return None;
        }
        let piece = self.line.piece(self.endpoint.packet_bytes)?;
        let ask = match self.endpoint.address {
            address if address.direction() == Direction::In => HostRequest::In(address),
            address if self.asks_for_room => HostRequest::Ping(address),
            address => HostRequest::Out(address, self.toggle, piece),
        };
        Some((self.patient_until, ask))
    }

    /// Starts the transaction that it wanted.
    pub fn ask(&mut self, ask: HostRequest) {
        self.asked = Some(ask);
    }

    /// Handles the device's answer; `None` for no or a corrupt answer. Returns whether data is
    /// acknowledged.
    pub fn answered(&mut self, now: Instant, answer: Option<Answer>, pacing: &Pacing) -> bool {
        let Some(ask) = self.asked.take() else { return false };
        let failures = std::mem::take(&mut self.failures);
        match (ask, answer) {
            (HostRequest::In(_), Some(Answer::Data(toggle, piece))) => {
                // Else the acknowledgement of a packet was lost: it has come again.
                return toggle != self.toggle || self.take(piece);
            }
            (_, Some(Answer::Handshake(Handshake::Stall))) => self.halt(End::Stalled),
            (_, Some(Answer::Handshake(Handshake::Nak))) => {
                self.asks_for_room = self.rate.has_ping() && !matches!(ask, HostRequest::In(_));
                self.patient_until = now + self.pause(pacing);
            }
            (HostRequest::Ping(_), Some(Answer::Handshake(Handshake::Ack))) => self.asks_for_room = false,
            (
                HostRequest::Out(_, _, piece),
                Some(Answer::Handshake(handshake @ (Handshake::Ack | Handshake::Nyet))),
            ) => {
                self.asks_for_room = handshake == Handshake::Nyet;
                self.toggle = self.toggle.other();
                self.progress.extend(self.line.taken(piece));
            }
            _ if failures + 1 < TRIES_MAX => self.failures = failures + 1,
            _ => self.halt(End::Failed),
        }
        false
    }

    /// Repeats a transaction at `until` that was not accepted. The error count restarts, because
    /// there was an answer.
    pub fn put_off(&mut self, until: Instant) {
        if self.asked.take().is_some() {
            (self.patient_until, self.failures) = (until, 0);
        }
    }

    /// Fails the transaction permanently and halts the endpoint.
    pub fn fail(&mut self) {
        if self.asked.take().is_some() {
            self.failures = 0;
            self.halt(End::Failed);
        }
    }

    /// Returns the delay before the next poll.
    fn pause(&self, pacing: &Pacing) -> Duration {
        pacing.after_nak.max(self.endpoint.interval)
    }

    /// Returns the next progress report.
    pub fn poll_progress(&mut self) -> Option<Progress> {
        self.progress.pop_front()
    }

    /// Accepts new data. Returns whether it is acknowledged: data without room is not, and halts
    /// the endpoint (xHCI 1.2 clause 4.10.2.4).
    fn take(&mut self, piece: crate::link::bulk::PacketPayload) -> bool {
        let has_room = self.line.left().is_some_and(|left| u32::from(piece.bytes) <= left);
        if !has_room {
            self.halt(End::Overflow);
            return false;
        }
        self.toggle = self.toggle.other();
        self.progress.extend(self.line.take(piece, self.endpoint.packet_bytes));
        true
    }

    /// Completes the current transfer; the others wait.
    fn halt(&mut self, end: End) {
        self.run = if end == End::Failed { EndpointRun::Failed } else { EndpointRun::Halted };
        self.progress.extend(self.line.end_first(end));
    }
}
