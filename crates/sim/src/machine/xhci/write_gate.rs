//! Limits data-out to one command at a time.
//!
//! With controller streams the device requests the data of any command. A driver without them
//! cannot know which, and sends the data of the next command when the one before has completed.
//! Data-in, commands and statuses are not limited.
//!
//! Invariant: a waiting transfer is passed on once, or cancelled.

use initiator::CommandId;
use initiator::session::TransferRequest;
use std::collections::VecDeque;
use wire::usb::Direction;

#[derive(Debug, Default)]
pub(super) struct WriteGate {
    is_serial: bool,
    /// The command whose data is sent.
    mover: Option<CommandId>,
    waiting: VecDeque<(CommandId, TransferRequest)>,
}

impl WriteGate {
    /// Creates a gate: one command at a time if `is_serial`, else all at once.
    pub(super) fn new(is_serial: bool) -> Self {
        Self { is_serial, ..Self::default() }
    }

    /// Returns whether transfers may have to wait.
    pub(super) const fn is_serial(&self) -> bool {
        self.is_serial
    }

    /// Returns a transfer, with the command whose data it has, if it can proceed, else queues it.
    pub(super) fn pass(
        &mut self,
        transfer: TransferRequest,
        command: Option<CommandId>,
    ) -> Option<TransferRequest> {
        let Some(command) = command else { return Some(transfer) };
        let goes_out = transfer.pipe.endpoint.direction() == Direction::Out;
        if !self.is_serial || !goes_out || *self.mover.get_or_insert(command) == command {
            return Some(transfer);
        }
        self.waiting.push_back((command, transfer));
        None
    }

    /// Handles a completed command; returns the transfers of the next one.
    pub(super) fn ended(&mut self, id: CommandId) -> Vec<TransferRequest> {
        if self.mover != Some(id) {
            return Vec::new();
        }
        self.mover = self.waiting.front().map(|(command, _)| *command);
        let all = std::mem::take(&mut self.waiting);
        let (next, rest): (VecDeque<_>, _) = all.into_iter().partition(|(id, _)| Some(*id) == self.mover);
        self.waiting = rest;
        next.into_iter().map(|(_, transfer)| transfer).collect()
    }

    /// Cancels a waiting transfer. Returns whether it was waiting.
    pub(super) fn cancel(&mut self, id: bus::TransferId) -> bool {
        let place = self.waiting.iter().position(|(_, transfer)| transfer.id == id);
        place.is_some_and(|place| self.waiting.remove(place).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bus::{Pipe, TransferId};
    use initiator::session::{BufferId, BufferSpan};
    use units::ByteRange;
    use wire::usb::EndpointAddress;

    fn command(slot: u16) -> CommandId {
        CommandId { slot, generation: 0 }
    }

    fn to(endpoint: u8, id: u64) -> TransferRequest {
        let pipe = Pipe::plain(EndpointAddress::try_from(endpoint).unwrap());
        let span = BufferSpan { buffer: BufferId::default(), range: ByteRange::new(0, 512) };
        TransferRequest { id: TransferId(id), pipe, span, is_whole: true }
    }

    /// Passes data of the command in a slot to an endpoint.
    fn pass(gate: &mut WriteGate, endpoint: u8, id: u64, slot: u16) -> bool {
        gate.pass(to(endpoint, id), Some(command(slot))).is_some()
    }

    #[test]
    fn data_of_the_next_command_passes_on_completion() {
        let mut turn = WriteGate::new(true);
        assert!(pass(&mut turn, 0x02, 1, 1) && !pass(&mut turn, 0x02, 2, 2));
        assert_eq!(turn.ended(command(2)), []);
        assert_eq!(turn.ended(command(1)), [to(0x02, 2)]);
        assert!(pass(&mut turn, 0x02, 3, 2), "it holds the gate");
    }

    #[test]
    fn a_cancelled_transfer_is_not_sent() {
        let mut turn = WriteGate::new(true);
        assert!(pass(&mut turn, 0x02, 1, 1) && !pass(&mut turn, 0x02, 2, 2));
        assert!(turn.cancel(TransferId(2)) && !turn.cancel(TransferId(1)));
        assert_eq!(turn.ended(command(1)), []);
    }

    #[test]
    fn data_in_is_not_limited() {
        let mut turn = WriteGate::new(true);
        assert!(pass(&mut turn, 0x02, 1, 1) && pass(&mut turn, 0x81, 2, 2));
    }

    #[test]
    fn without_the_gate_all_transfers_pass() {
        let mut turn = WriteGate::new(false);
        assert!(pass(&mut turn, 0x02, 1, 1) && pass(&mut turn, 0x02, 2, 2));
    }
}
