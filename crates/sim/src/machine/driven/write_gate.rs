//! Whose data go out, for a driver that has those of one command with the controller at a time.
//!
//! With streams of the controller each command has its own, and the device asks for the data of any of them. A driver that does
//! without does not know which it will ask for, and has those of the next command go out when the one before has ended. What
//! comes in, commands and statuses go at once.
//!
//! Always true: a transfer that waits is passed on once, or taken back.

use initiator::{CommandId, Payload, Transfer};
use std::collections::VecDeque;
use wire::usb::Direction;

#[derive(Debug, Default)]
pub(super) struct WriteGate {
    is_serial: bool,
    /// Whose data go out.
    mover: Option<CommandId>,
    waiting: VecDeque<(CommandId, Transfer)>,
}

impl WriteGate {
    /// One command at a time if `is_serial`, and all at once otherwise.
    pub(super) fn new(is_serial: bool) -> Self {
        Self { is_serial, ..Self::default() }
    }

    /// Whether any transfer may have to wait.
    pub(super) const fn is_serial(&self) -> bool {
        self.is_serial
    }

    /// A transfer that the transport wants: it comes back if it can go on.
    pub(super) fn pass(&mut self, transfer: Transfer) -> Option<Transfer> {
        let Payload::Buffer(piece) = transfer.payload else { return Some(transfer) };
        let goes_out = transfer.pipe.endpoint.direction() == Direction::Out;
        if !self.is_serial || !goes_out || *self.mover.get_or_insert(piece.command) == piece.command {
            return Some(transfer);
        }
        self.waiting.push_back((piece.command, transfer));
        None
    }

    /// A command has ended: the transfers of the next one, which go on now.
    pub(super) fn ended(&mut self, id: CommandId) -> Vec<Transfer> {
        if self.mover != Some(id) {
            return Vec::new();
        }
        self.mover = self.waiting.front().map(|(command, _)| *command);
        let all = std::mem::take(&mut self.waiting);
        let (next, rest): (VecDeque<_>, _) = all.into_iter().partition(|(id, _)| Some(*id) == self.mover);
        self.waiting = rest;
        next.into_iter().map(|(_, transfer)| transfer).collect()
    }

    /// The transport takes a transfer back. Whether it was waiting here.
    pub(super) fn cancel(&mut self, id: bus::TransferId) -> bool {
        let place = self.waiting.iter().position(|(_, transfer)| transfer.id == id);
        place.is_some_and(|place| self.waiting.remove(place).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bus::{Pipe, TransferId};
    use initiator::BufferRange;
    use units::ByteRange;
    use wire::usb::EndpointAddress;

    fn command(slot: u16) -> CommandId {
        CommandId { slot, generation: 0 }
    }

    fn data(id: u64, slot: u16) -> Transfer {
        to(0x02, id, slot)
    }

    fn to(endpoint: u8, id: u64, slot: u16) -> Transfer {
        let pipe = Pipe { endpoint: EndpointAddress::try_from(endpoint).unwrap(), stream: None };
        let payload = Payload::Buffer(BufferRange { command: command(slot), range: ByteRange::new(0, 512) });
        Transfer { id: TransferId(id), pipe, length: 512, payload }
    }

    #[test]
    fn data_of_the_next_command_go_when_the_one_before_has_ended() {
        let mut turn = WriteGate::new(true);
        assert!(turn.pass(data(1, 1)).is_some() && turn.pass(data(2, 2)).is_none());
        assert_eq!(turn.ended(command(2)), []);
        assert_eq!(turn.ended(command(1)), [data(2, 2)]);
        assert!(turn.pass(data(3, 2)).is_some(), "it is its turn");
    }

    #[test]
    fn what_is_taken_back_does_not_go() {
        let mut turn = WriteGate::new(true);
        assert!(turn.pass(data(1, 1)).is_some() && turn.pass(data(2, 2)).is_none());
        assert!(turn.cancel(TransferId(2)) && !turn.cancel(TransferId(1)));
        assert_eq!(turn.ended(command(1)), []);
    }

    #[test]
    fn what_comes_in_waits_for_nobody() {
        let mut turn = WriteGate::new(true);
        assert!(turn.pass(data(1, 1)).is_some() && turn.pass(to(0x81, 2, 2)).is_some());
    }

    #[test]
    fn without_turns_all_go_at_once() {
        let mut turn = WriteGate::new(false);
        assert!(turn.pass(data(1, 1)).is_some() && turn.pass(data(2, 2)).is_some());
    }
}
