//! The host side of endpoint 0 on SuperSpeed.
//!
//! Invariant: requests data only while granted the bus, since one IN endpoint has it at a time.

use super::{CONTROL_DATA, CONTROL_PACKET_BYTES, endpoint_0};
use crate::link::bulk::{Message, PacketPayload, Sequence};
use crate::link::streams::Violation;
use bus::TransferId;
use std::collections::VecDeque;
use std::fmt;
use wire::usb::{Direction, SetupPacket};

/// A control transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlTransfer {
    /// Its id.
    pub id: TransferId,
    /// The request.
    pub setup: SetupPacket,
}

/// How a control transfer completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlEnd {
    /// The device has done it.
    Done,
    /// The device refused it.
    Stalled,
    /// The device does not respond.
    Failed,
}

/// Tries before the host gives up.
const TRIES: u8 = 3;

/// The effect of one packet on a control transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlProgress {
    /// Which.
    pub id: TransferId,
    /// Bytes of its data that have moved so far.
    pub moved: u16,
    /// Received IN data.
    pub piece: Option<PacketPayload>,
    /// If it has ended.
    pub ended: Option<ControlEnd>,
}

/// Another control transfer is in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlBusy;

/// The host side.
#[derive(Clone, Debug, Default)]
pub struct ControlHost {
    transfer: Option<ControlTransfer>,
    stage: Stage,
    turn: Turn,
    is_retrying: bool,
    /// Times in a row that the device did not answer.
    failures: u8,
    /// Counts messages; timeouts compare it.
    steps: u32,
    next: Sequence,
    moved: u16,
    /// The ACK that ends a complete data stage, sent before anything else.
    last_ack: Option<Message>,
    progress: VecDeque<ControlProgress>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Setup,
    Data,
    Status,
}

/// The side that sends next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Turn {
    #[default]
    Host,
    Device,
    /// The device sent NRDY; ERDY follows.
    Blocked,
}

impl fmt::Display for ControlBusy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("another control transfer is in progress")
    }
}

impl std::error::Error for ControlBusy {}

impl ControlHost {
    /// Begins a transfer.
    ///
    /// # Errors
    /// If another one is in progress.
    pub fn begin(&mut self, transfer: ControlTransfer) -> Result<(), ControlBusy> {
        if self.transfer.is_some() {
            return Err(ControlBusy);
        }
        let (progress, steps) = (std::mem::take(&mut self.progress), self.steps.wrapping_add(1));
        *self = Self { transfer: Some(transfer), progress, steps, ..Self::default() };
        Ok(())
    }

    /// Returns whether a transfer is in progress.
    pub const fn is_busy(&self) -> bool {
        self.transfer.is_some()
    }

    /// Returns whether it would ask for data if it had the bus.
    pub fn wants_in(&self) -> bool {
        self.turn == Turn::Host && self.is_data_in()
    }

    /// Returns whether it has asked for data, and waits.
    pub fn has_in(&self) -> bool {
        self.turn == Turn::Device && self.is_data_in()
    }

    fn is_data_in(&self) -> bool {
        self.stage == Stage::Data && self.direction() == Direction::In
    }

    fn direction(&self) -> Direction {
        self.transfer.map_or(Direction::Out, |transfer| transfer.setup.direction)
    }

    /// Returns the next message to send. `may_ask` says that no other IN endpoint has the bus.
    pub fn poll(&mut self, may_ask: bool) -> Option<Message> {
        if let Some(ack) = self.last_ack.take() {
            return Some(ack);
        }
        let setup = self.transfer?.setup;
        if self.turn != Turn::Host || (self.is_data_in() && !may_ask) {
            return None;
        }
        self.turn = Turn::Device;
        let is_retry = std::mem::take(&mut self.is_retrying);
        Some(match (self.stage, setup.direction) {
            (Stage::Setup, _) => Message::Setup { setup },
            (Stage::Data, Direction::In) => self.acknowledgement(1, is_retry),
            (Stage::Data, Direction::Out) => {
                let left = setup.length - self.moved;
                let bytes = left.min(CONTROL_PACKET_BYTES);
                let piece = PacketPayload { transfer: CONTROL_DATA, offset: self.moved.into(), bytes };
                let (endpoint, sequence, is_last) = (endpoint_0(Direction::Out), self.next, bytes == left);
                Message::Data { endpoint, stream: None, sequence, piece: Some(piece), is_last }
            }
            (Stage::Status, _) => Message::Status,
        })
    }

    /// Handles a message of the device for endpoint 0.
    ///
    /// # Errors
    /// If the device could not have sent it in this state.
    pub fn receive(&mut self, message: Message) -> Result<(), Violation> {
        let setup = self.transfer.ok_or(Violation)?.setup;
        (self.steps, self.failures) = (self.steps.wrapping_add(1), 0);
        match message {
            Message::Erdy { .. } if self.turn == Turn::Blocked => self.turn = Turn::Host,
            _ if self.turn != Turn::Device => return Err(Violation),
            Message::Nrdy { .. } if self.stage != Stage::Setup => self.turn = Turn::Blocked,
            Message::Stall { .. } if self.stage != Stage::Setup => self.end(ControlEnd::Stalled),
            Message::Ack { is_retry: true, .. } if self.stage == Stage::Data => self.say_again(),
            Message::Ack { packets, .. } => self.receive_ack(setup, packets)?,
            Message::Data { sequence, piece: Some(piece), .. } if self.is_data_in() => {
                if sequence != self.next {
                    return Err(Violation);
                }
                self.receive_data(setup, piece)?;
            }
            _ => return Err(Violation),
        }
        Ok(())
    }

    /// Handles damaged data of the device: requests it again.
    pub fn receive_damaged(&mut self) {
        if self.has_in() {
            self.say_again();
        }
    }

    /// Returns the message counter if the device owes an answer.
    pub fn awaits(&self) -> Option<u32> {
        (self.is_busy() && self.turn == Turn::Device).then_some(self.steps)
    }

    /// Handles a timeout.
    pub fn time_out(&mut self) {
        self.steps = self.steps.wrapping_add(1);
        self.failures += 1;
        if self.failures < TRIES {
            self.say_again();
        } else {
            self.end(ControlEnd::Failed);
        }
    }

    /// Repeats the last message.
    fn say_again(&mut self) {
        (self.turn, self.is_retrying) = (Turn::Host, true);
    }

    /// Returns the next progress report.
    pub fn poll_progress(&mut self) -> Option<ControlProgress> {
        self.progress.pop_front()
    }

    fn receive_ack(&mut self, setup: SetupPacket, packets: u8) -> Result<(), Violation> {
        match self.stage {
            Stage::Setup if setup.length == 0 => self.stage = Stage::Status,
            Stage::Setup => self.stage = Stage::Data,
            Stage::Data if setup.direction == Direction::Out => {
                self.moved += (setup.length - self.moved).min(CONTROL_PACKET_BYTES);
                self.next = self.next.next();
                self.report(None, None);
                if self.moved == setup.length {
                    self.stage = Stage::Status;
                }
            }
            Stage::Data => return Err(Violation),
            Stage::Status => {
                self.end(ControlEnd::Done);
                return Ok(());
            }
        }
        self.turn = if packets == 0 { Turn::Blocked } else { Turn::Host };
        Ok(())
    }

    fn receive_data(&mut self, setup: SetupPacket, piece: PacketPayload) -> Result<(), Violation> {
        if piece.bytes > setup.length - self.moved {
            return Err(Violation);
        }
        self.next = self.next.next();
        self.moved += piece.bytes;
        self.report(Some(piece), None);
        self.turn = Turn::Host;
        if piece.bytes < CONTROL_PACKET_BYTES || self.moved == setup.length {
            self.last_ack = Some(self.acknowledgement(0, false));
            self.stage = Stage::Status;
        }
        Ok(())
    }

    fn acknowledgement(&self, packets: u8, is_retry: bool) -> Message {
        let (endpoint, expects) = (endpoint_0(Direction::In), self.next);
        Message::Ack { endpoint, stream: None, expects, packets, is_pending: packets > 0, is_retry }
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
