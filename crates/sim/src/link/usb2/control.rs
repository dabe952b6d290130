//! Endpoint 0 at both ends of a USB 2.0 bus (USB 2.0 clauses 5.5, 8.5.3 and 8.6.1).
//!
//! ```text
//!   SETUP  DATA0, 8 bytes  ACK            always taken, whatever was before
//!   IN     DATA1, DATA0, …  or  OUT       the data stage, if there is one
//!   OUT    DATA1, empty    or  IN         the status stage, the other way: ACK, or the empty packet, says that it is done
//! ```
//!
//! Same types as [`crate::link::control`]. NAK in either stage means "not yet", STALL rejects the
//! request until the next SETUP. Not modelled: cancelling a transfer in progress at the host.
//!
//! Invariant: one transfer is in progress, and it ends once.

use super::host::{Pacing, TRIES_MAX};
use super::packet::{Answer, Handshake, HostRequest, Toggle};
use super::rate::Rate;
use crate::link::bulk::PacketPayload;
use crate::link::control::{
    CONTROL_DATA, ControlAnswer, ControlBusy, ControlEnd, ControlEvent, ControlProgress, ControlTransfer,
    endpoint_0,
};
use std::collections::VecDeque;
use units::Instant;
use wire::usb::{Direction, SetupPacket};

/// Bytes of the largest packet of endpoint 0, at high speed and here at full speed as well (clause
/// 5.5.3).
pub(super) const CONTROL_PACKET_BYTES: u16 = 64;

/// The host side.
#[derive(Clone, Debug)]
pub(super) struct ControlHost {
    rate: Rate,
    transfer: Option<ControlTransfer>,
    stage: Stage,
    toggle: Toggle,
    moved: u16,
    asks_for_room: bool,
    failures: u8,
    asked: Option<HostRequest>,
    patient_until: Instant,
    progress: VecDeque<ControlProgress>,
}

/// The device side.
#[derive(Clone, Debug, Default)]
pub(super) struct ControlDevice {
    setup: Option<SetupPacket>,
    answer: Option<ControlAnswer>,
    toggle: Toggle,
    /// Bytes that have moved: that were acknowledged, of data for the host.
    moved: u16,
    /// Bytes of data for the host that were sent and not acknowledged, if a packet was.
    sent: Option<u16>,
    events: VecDeque<ControlEvent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Setup,
    Data,
    Status,
}

impl ControlHost {
    pub(super) const fn new(rate: Rate) -> Self {
        Self {
            rate,
            transfer: None,
            stage: Stage::Setup,
            toggle: Toggle::Data0,
            moved: 0,
            asks_for_room: false,
            failures: 0,
            asked: None,
            patient_until: Instant::ZERO,
            progress: VecDeque::new(),
        }
    }

    /// Begins a transfer.
    ///
    /// # Errors
    /// If another one is in progress.
    pub(super) fn begin(&mut self, transfer: ControlTransfer) -> Result<(), ControlBusy> {
        if self.transfer.is_some() {
            return Err(ControlBusy);
        }
        let progress = std::mem::take(&mut self.progress);
        *self = Self { transfer: Some(transfer), progress, ..Self::new(self.rate) };
        Ok(())
    }

    /// Returns the next transaction and when it may start. `None` if there is none.
    pub(super) fn wants(&self) -> Option<(Instant, HostRequest)> {
        let setup = self.transfer.filter(|_| self.asked.is_none())?.setup;
        let direction = match (self.stage, setup.direction) {
            (Stage::Setup, _) => return Some((self.patient_until, HostRequest::Setup(setup))),
            (Stage::Data, direction) => direction,
            (Stage::Status, Direction::In) if setup.length > 0 => Direction::Out,
            (Stage::Status, _) => Direction::In,
        };
        let (endpoint, left) = (endpoint_0(direction), setup.length - self.moved);
        let bytes = if self.stage == Stage::Data { left.min(CONTROL_PACKET_BYTES) } else { 0 };
        let piece = PacketPayload { transfer: CONTROL_DATA, offset: self.moved.into(), bytes };
        let ask = match direction {
            Direction::In => HostRequest::In(endpoint),
            Direction::Out if self.asks_for_room => HostRequest::Ping(endpoint),
            Direction::Out => HostRequest::Out(endpoint, self.toggle, piece),
        };
        Some((self.patient_until, ask))
    }

    /// Starts the transaction that it wanted.
    pub(super) const fn ask(&mut self, ask: HostRequest) {
        self.asked = Some(ask);
    }

    /// Handles the device's answer; `None` for no or a corrupt answer. Returns whether data is
    /// acknowledged.
    pub(super) fn answered(&mut self, now: Instant, answer: Option<Answer>, pacing: &Pacing) -> bool {
        let Some((ask, transfer)) = self.asked.take().zip(self.transfer) else { return false };
        let failures = std::mem::take(&mut self.failures);
        let setup = transfer.setup;
        match (ask, answer) {
            // It has come again, since its acknowledgement was lost.
            (HostRequest::In(_), Some(Answer::Data(toggle, _))) if toggle != self.toggle => return true,
            (HostRequest::In(_), Some(Answer::Data(_, piece)))
                if piece.bytes <= setup.length - self.moved =>
            {
                self.take(setup, piece);
                return true;
            }
            (HostRequest::Setup(_), Some(Answer::Handshake(Handshake::Ack))) => {
                self.begin_stage(if setup.length == 0 { Stage::Status } else { Stage::Data });
            }
            (
                HostRequest::In(_) | HostRequest::Out(..) | HostRequest::Ping(_),
                Some(Answer::Handshake(Handshake::Stall)),
            ) => {
                self.end(ControlEnd::Stalled);
            }
            (
                HostRequest::In(_) | HostRequest::Out(..) | HostRequest::Ping(_),
                Some(Answer::Handshake(Handshake::Nak)),
            ) => {
                self.asks_for_room = self.rate.has_ping() && !matches!(ask, HostRequest::In(_));
                self.patient_until = now + pacing.after_nak;
            }
            (HostRequest::Ping(_), Some(Answer::Handshake(Handshake::Ack))) => self.asks_for_room = false,
            (
                HostRequest::Out(_, _, piece),
                Some(Answer::Handshake(handshake @ (Handshake::Ack | Handshake::Nyet))),
            ) => {
                self.asks_for_room = handshake == Handshake::Nyet;
                self.has_sent(setup, piece);
            }
            _ if failures + 1 < TRIES_MAX => self.failures = failures + 1,
            _ => self.end(ControlEnd::Failed),
        }
        false
    }

    /// Repeats a transaction at `until` that was not accepted. The error count restarts, because
    /// there was an answer.
    pub(super) fn put_off(&mut self, until: Instant) {
        if self.asked.take().is_some() {
            (self.patient_until, self.failures) = (until, 0);
        }
    }

    /// Fails the transaction permanently and halts the endpoint.
    pub(super) fn fail(&mut self) {
        if self.asked.take().is_some() {
            self.failures = 0;
            self.end(ControlEnd::Failed);
        }
    }

    pub(super) fn poll_progress(&mut self) -> Option<ControlProgress> {
        self.progress.pop_front()
    }

    /// The first packet of a stage after SETUP is DATA1.
    const fn begin_stage(&mut self, stage: Stage) {
        self.stage = stage;
        self.toggle = Toggle::Data1;
        self.asks_for_room = false;
    }

    fn take(&mut self, setup: SetupPacket, piece: PacketPayload) {
        if self.stage == Stage::Status {
            return self.end(ControlEnd::Done);
        }
        self.toggle = self.toggle.other();
        self.moved += piece.bytes;
        self.report(Some(piece), None);
        if piece.bytes < CONTROL_PACKET_BYTES || self.moved == setup.length {
            self.begin_stage(Stage::Status);
        }
    }

    fn has_sent(&mut self, setup: SetupPacket, piece: PacketPayload) {
        if self.stage == Stage::Status {
            return self.end(ControlEnd::Done);
        }
        self.toggle = self.toggle.other();
        self.moved += piece.bytes;
        self.report(None, None);
        if self.moved == setup.length {
            self.begin_stage(Stage::Status);
        }
    }

    fn end(&mut self, end: ControlEnd) {
        self.report(None, Some(end));
        self.transfer = None;
    }

    fn report(&mut self, piece: Option<PacketPayload>, ended: Option<ControlEnd>) {
        let Some(transfer) = self.transfer else { return };
        self.progress.push_back(ControlProgress { id: transfer.id, moved: self.moved, piece, ended });
    }
}

impl ControlDevice {
    /// Sets the device's answer to a request. Ignored if another request has come since.
    pub(super) fn answer(&mut self, setup: SetupPacket, answer: ControlAnswer) {
        if self.setup == Some(setup) && self.answer.is_none() {
            self.answer = Some(match answer {
                ControlAnswer::Done(bytes) => ControlAnswer::Done(bytes.min(setup.length)),
                ControlAnswer::Stall => answer,
            });
        }
    }

    /// Returns the answer to the host.
    pub(super) fn asked(&mut self, ask: HostRequest) -> Answer {
        if let HostRequest::Setup(setup) = ask {
            let events = std::mem::take(&mut self.events);
            *self = Self { setup: Some(setup), toggle: Toggle::Data1, events, ..Self::default() };
            if setup.direction == Direction::In || setup.length == 0 {
                self.events.push_back(ControlEvent::Asked(setup));
            }
            return Answer::Handshake(Handshake::Ack);
        }
        let Some(setup) = self.setup else { return Answer::Handshake(Handshake::Stall) };
        let is_data_out = setup.direction == Direction::Out && self.moved < setup.length;
        match (ask, self.answer) {
            (_, Some(ControlAnswer::Stall)) => Answer::Handshake(Handshake::Stall),
            // Data of the host, or what has come of it already.
            (HostRequest::Out(_, toggle, piece), None) if setup.direction == Direction::Out => {
                self.receive(setup, toggle, piece)
            }
            (HostRequest::Ping(_), None) if is_data_out => Answer::Handshake(Handshake::Ack),
            (_, None) => Answer::Handshake(Handshake::Nak),
            (HostRequest::In(_), Some(ControlAnswer::Done(total))) if setup.direction == Direction::In => {
                let bytes = (total - self.moved).min(CONTROL_PACKET_BYTES);
                self.sent = Some(bytes);
                Answer::Data(
                    self.toggle,
                    PacketPayload { transfer: CONTROL_DATA, offset: self.moved.into(), bytes },
                )
            }
            (HostRequest::In(_), Some(_)) => {
                let piece = PacketPayload { transfer: CONTROL_DATA, offset: 0, bytes: 0 };
                Answer::Data(Toggle::Data1, piece)
            }
            (_, Some(_)) => Answer::Handshake(Handshake::Ack),
        }
    }

    /// Handles the host's ACK.
    pub(super) fn acknowledged(&mut self) {
        if let Some(sent) = self.sent.take() {
            self.moved += sent;
            self.toggle = self.toggle.other();
        }
    }

    pub(super) fn poll_event(&mut self) -> Option<ControlEvent> {
        self.events.pop_front()
    }

    fn receive(&mut self, setup: SetupPacket, toggle: Toggle, piece: PacketPayload) -> Answer {
        if toggle == self.toggle && piece.bytes <= setup.length - self.moved {
            self.toggle = self.toggle.other();
            self.moved += piece.bytes;
            self.events.push_back(ControlEvent::Moved(piece));
            if self.moved == setup.length {
                self.events.push_back(ControlEvent::Asked(setup));
            }
        }
        Answer::Handshake(Handshake::Ack)
    }
}
