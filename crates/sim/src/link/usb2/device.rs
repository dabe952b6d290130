//! The device side of a USB 2.0 bulk endpoint: answers the host (USB 2.0 clauses 8.5.1, 8.5.2 and
//! 8.6).
//!
//! The device function queues its transfers; without any it answers NAK. While halted it answers
//! STALL; queued transfers wait until the halt is cleared.
//!
//! Invariants: sent data is repeated until acknowledged; received data is not accepted twice.

use super::line::Line;
use super::packet::{Answer, Handshake, HostRequest, Toggle};
use super::rate::Rate;
use crate::link::bulk::{Endpoint, Progress, Transfer};
use bus::TransferId;
use std::collections::VecDeque;

/// The device side.
#[derive(Clone, Debug)]
pub struct DeviceEndpoint {
    endpoint: Endpoint,
    rate: Rate,
    line: Line,
    toggle: Toggle,
    /// IN: whether the first packet was sent and not acknowledged.
    is_sent: bool,
    is_halted: bool,
    /// Number of injected NAKs.
    refusals: u8,
    progress: VecDeque<Progress>,
}

impl DeviceEndpoint {
    /// An endpoint on which nothing has moved.
    pub fn new(endpoint: Endpoint, rate: Rate) -> Self {
        Self {
            endpoint,
            rate,
            line: Line::default(),
            toggle: Toggle::Data0,
            is_sent: false,
            is_halted: false,
            refusals: 0,
            progress: VecDeque::new(),
        }
    }

    /// Queues a transfer: bytes to send on an IN endpoint, room on an OUT endpoint.
    pub fn queue(&mut self, transfer: Transfer) {
        self.line.push(transfer);
    }

    /// Cancels a transfer. Returns whether it was queued: it then completes as withdrawn, as soon
    /// as the host has acknowledged the packets sent of it.
    pub fn withdraw(&mut self, id: TransferId) -> bool {
        let withdrawn = self.line.withdraw(id, self.is_sent);
        self.progress.extend(withdrawn.flatten());
        withdrawn.is_some()
    }

    /// Halts it (clause 8.4.5: a device answers STALL then).
    pub const fn halt(&mut self) {
        self.is_halted = true;
    }

    /// Makes the endpoint answer NAK `times` times although it is ready.
    pub const fn refuse(&mut self, times: u8) {
        self.refusals = times;
    }

    /// Clears the halt and resets the toggle to DATA0 (clause 9.4.5). Transfers are kept and
    /// continue where they are.
    pub fn clear_halt(&mut self) {
        self.progress.extend(self.line.forget_sent());
        self.toggle = Toggle::Data0;
        (self.is_sent, self.is_halted) = (false, false);
    }

    /// Returns the answer to the host.
    pub fn asked(&mut self, ask: HostRequest) -> Answer {
        match ask {
            _ if self.is_halted => Answer::Handshake(Handshake::Stall),
            HostRequest::In(_) if !self.line.is_empty() && self.refuses() => {
                Answer::Handshake(Handshake::Nak)
            }
            HostRequest::In(_) => {
                let Some(piece) = self.line.piece(self.endpoint.packet_bytes) else {
                    return Answer::Handshake(Handshake::Nak);
                };
                self.is_sent = true;
                Answer::Data(self.toggle, piece)
            }
            // What it has answered was lost.
            HostRequest::Out(_, toggle, _) if toggle != self.toggle => Answer::Handshake(Handshake::Ack),
            HostRequest::Ping(_) | HostRequest::Out(..) if self.line.is_empty() || self.refuses() => {
                Answer::Handshake(Handshake::Nak)
            }
            // Endpoint 0 alone takes requests, and no port brings them here.
            HostRequest::Ping(_) | HostRequest::Setup(_) => Answer::Handshake(Handshake::Ack),
            HostRequest::Out(_, _, piece) => {
                self.toggle = self.toggle.other();
                self.progress.extend(self.line.take(piece, self.endpoint.packet_bytes));
                let has_no_room = self.rate.has_ping() && self.line.is_empty();
                Answer::Handshake(if has_no_room { Handshake::Nyet } else { Handshake::Ack })
            }
        }
    }

    /// Returns whether an injected NAK is due.
    fn refuses(&mut self) -> bool {
        let refuses = self.refusals > 0;
        self.refusals = self.refusals.saturating_sub(1);
        refuses
    }

    /// Handles the host's ACK.
    pub fn acknowledged(&mut self) {
        let piece = self.line.piece(self.endpoint.packet_bytes);
        if let Some(piece) = piece.filter(|_| std::mem::take(&mut self.is_sent)) {
            self.toggle = self.toggle.other();
            self.progress.extend(self.line.taken(piece));
        }
    }

    /// Returns the next progress report.
    pub fn poll_progress(&mut self) -> Option<Progress> {
        self.progress.pop_front()
    }
}
