//! The device side of endpoint 0 on SuperSpeed.
//!
//! The device function is asked once, when the SETUP and its data have arrived; until it answers,
//! the host gets NRDY. Invariant: a SETUP ends the control transfer before it.

use super::{CONTROL_DATA, CONTROL_PACKET_BYTES, endpoint_0};
use crate::link::bulk::{Message, PacketPayload, Sequence};
use crate::link::streams::Violation;
use std::collections::VecDeque;
use wire::usb::{Direction, SetupPacket};

/// An event of endpoint 0 for the device function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlEvent {
    /// Data of the host has arrived.
    Moved(PacketPayload),
    /// A request has arrived with all its data. To be answered with [`ControlDevice::answer`].
    Asked(SetupPacket),
}

/// The device's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlAnswer {
    /// Success, with the length of IN data; 0 without a data stage.
    Done(u16),
    /// Refused.
    Stall,
}

/// The device side.
#[derive(Clone, Debug, Default)]
pub struct ControlDevice {
    setup: Option<SetupPacket>,
    answer: Option<ControlAnswer>,
    next: Sequence,
    /// Bytes that have moved: that were acknowledged, of data for the host.
    moved: u16,
    /// Bytes of data for the host that were sent and not acknowledged, if a packet was.
    sent: Option<u16>,
    /// Which direction waits for the device to be ready.
    owes_erdy: Option<Direction>,
    outbox: VecDeque<Message>,
    events: VecDeque<ControlEvent>,
}

impl ControlDevice {
    /// Sets the device's answer to a request. Ignored if another request has come since.
    pub fn answer(&mut self, setup: SetupPacket, answer: ControlAnswer) {
        if self.setup != Some(setup) || self.answer.is_some() {
            return;
        }
        self.answer = Some(match answer {
            ControlAnswer::Done(bytes) => ControlAnswer::Done(bytes.min(setup.length)),
            ControlAnswer::Stall => answer,
        });
        if let Some(direction) = self.owes_erdy.take() {
            self.outbox.push_back(Message::Erdy {
                endpoint: endpoint_0(direction),
                stream: None,
                packets: 1,
            });
        }
    }

    /// Handles a message of the host for endpoint 0.
    ///
    /// # Errors
    /// If the host could not have sent it in this state.
    pub fn receive(&mut self, message: Message) -> Result<(), Violation> {
        if let Message::Setup { setup } = message {
            self.receive_setup(setup);
            return Ok(());
        }
        let setup = self.setup.ok_or(Violation)?;
        match message {
            Message::Ack { expects, packets, is_retry, .. } if setup.direction == Direction::In => {
                if is_retry && self.sent.is_some() && expects.next() == self.next {
                    (self.sent, self.next) = (None, expects);
                }
                self.receive_ack(setup, expects, packets)
            }
            Message::Data { piece: Some(piece), sequence, .. } if setup.direction == Direction::Out => {
                self.receive_data(setup, sequence, piece)
            }
            Message::Status => {
                self.receive_status();
                Ok(())
            }
            _ => Err(Violation),
        }
    }

    /// Returns whether there is a message to send.
    pub fn has_message(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Returns the next message to send.
    pub fn poll(&mut self) -> Option<Message> {
        self.outbox.pop_front()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<ControlEvent> {
        self.events.pop_front()
    }

    fn receive_setup(&mut self, setup: SetupPacket) {
        *self = Self { setup: Some(setup), events: std::mem::take(&mut self.events), ..Self::default() };
        // The SETUP was number 0; the data stage counts from there again (clause 8.12.2).
        self.acknowledge(Direction::Out, Sequence::default().next());
        if setup.direction == Direction::In || setup.length == 0 {
            self.events.push_back(ControlEvent::Asked(setup));
        }
    }

    /// The host has taken what was sent, and asks for more or not.
    fn receive_ack(&mut self, setup: SetupPacket, expects: Sequence, packets: u8) -> Result<(), Violation> {
        if expects != self.next {
            return Err(Violation);
        }
        self.moved += self.sent.take().unwrap_or(0);
        if packets == 0 {
            return Ok(());
        }
        match self.answer {
            Some(ControlAnswer::Done(bytes)) => self.send(setup, bytes),
            Some(ControlAnswer::Stall) => self.stall(Direction::In),
            None => self.refuse(Direction::In),
        }
        Ok(())
    }

    fn send(&mut self, setup: SetupPacket, total: u16) {
        let bytes = (total - self.moved).min(CONTROL_PACKET_BYTES);
        let piece = PacketPayload { transfer: CONTROL_DATA, offset: self.moved.into(), bytes };
        let is_last = bytes < CONTROL_PACKET_BYTES || self.moved + bytes == setup.length;
        let (endpoint, sequence) = (endpoint_0(Direction::In), self.next);
        self.outbox.push_back(Message::Data {
            endpoint,
            stream: None,
            sequence,
            piece: Some(piece),
            is_last,
        });
        self.next = self.next.next();
        self.sent = Some(bytes);
    }

    fn receive_data(
        &mut self,
        setup: SetupPacket,
        sequence: Sequence,
        piece: PacketPayload,
    ) -> Result<(), Violation> {
        if sequence.next() == self.next {
            // It was taken before, and the acknowledgement was lost.
            self.acknowledge(Direction::Out, self.next);
            return Ok(());
        }
        if sequence != self.next || piece.bytes > setup.length - self.moved {
            return Err(Violation);
        }
        self.next = self.next.next();
        self.moved += piece.bytes;
        self.events.push_back(ControlEvent::Moved(piece));
        self.acknowledge(Direction::Out, self.next);
        if self.moved == setup.length {
            self.events.push_back(ControlEvent::Asked(setup));
        }
        Ok(())
    }

    fn receive_status(&mut self) {
        match self.answer {
            Some(ControlAnswer::Done(_)) => self.acknowledge(Direction::Out, self.next),
            Some(ControlAnswer::Stall) => self.stall(Direction::Out),
            None => self.refuse(Direction::Out),
        }
    }

    fn acknowledge(&mut self, direction: Direction, expects: Sequence) {
        self.outbox.push_back(Message::Ack {
            endpoint: endpoint_0(direction),
            stream: None,
            expects,
            packets: 1,
            is_pending: false,
            is_retry: false,
        });
    }

    /// Handles damaged data of the host: requests it again.
    pub fn receive_damaged(&mut self) {
        self.outbox.push_back(Message::Ack {
            endpoint: endpoint_0(Direction::Out),
            stream: None,
            expects: self.next,
            packets: 1,
            is_pending: false,
            is_retry: true,
        });
    }

    fn refuse(&mut self, direction: Direction) {
        self.owes_erdy = Some(direction);
        self.outbox.push_back(Message::Nrdy { endpoint: endpoint_0(direction), stream: None });
    }

    fn stall(&mut self, direction: Direction) {
        self.outbox.push_back(Message::Stall { endpoint: endpoint_0(direction), stream: None });
    }
}
