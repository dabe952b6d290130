//! Delays that a controller adds to packets on a SuperSpeed link.

use crate::link::bulk::Message;
use units::{Duration, Instant};
use xhci_controller::Controller;

/// Delays of a controller between packets, beyond the link's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketDelays {
    /// Before a data packet.
    pub(crate) gap: Duration,
    /// From a packet of the device to the answer.
    pub(crate) response: Duration,
}

impl PacketDelays {
    /// Returns the delay of a message of the host: for the controller itself, and for memory when
    /// its buffer is full.
    #[inline]
    pub(crate) fn of(self, now: Instant, controller: &mut Controller, message: &Message) -> Duration {
        match message {
            Message::Data { piece: Some(piece), .. } => self.gap + controller.read_payload(now, *piece),
            Message::Ack { packets: 1.., .. } => self.response + controller.buffer_wait(now),
            _ => self.response,
        }
    }
}
