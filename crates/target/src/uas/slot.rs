//! Everything about one tag, in one place.

use crate::command::{CommandId, Outcome, Place};
use crate::output::{Output, Outputs};
use alloc::collections::VecDeque;
use bus::{Direction, TransferId};
use units::ByteRange;
use wire::uas::ResponseCode;

/// One tag.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) tag: u16,
    pub(super) state: State,
    /// The data phase: what is on the wire, and what waits for its turn, in order.
    pub(super) pieces: VecDeque<(Piece, Option<TransferId>)>,
    /// In: the executor has given the last piece.
    pub(super) last: bool,
}

/// What a tag stands for at present.
#[derive(Debug, Default)]
pub(super) enum State {
    /// Nothing.
    #[default]
    Free,
    /// A command under way.
    Running { id: CommandId },
    /// Without streams: the host's data transfer is being ended early; the status comes after it.
    Closing { transfer: TransferId, outcome: Outcome },
    /// The last IU is on the status pipe.
    Answering { transfer: TransferId },
    /// The executor drains the command.
    Aborting { after: After },
    /// A task management function waits for so many commands to drain.
    Managing { left: u16, code: ResponseCode },
}

/// What comes after a command was aborted.
#[derive(Clone, Copy, Debug)]
pub(super) enum After {
    /// The task management function in that slot goes on.
    Managed { by: u16 },
    /// OVERLAPPED COMMANDS ATTEMPTED is told.
    Overlapped,
}

/// A part of a data phase.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) direction: Direction,
    pub(super) range: ByteRange,
    pub(super) place: Place,
    pub(super) last: bool,
}

impl Slot {
    pub(super) fn begin(&mut self, id: CommandId) {
        self.state = State::Running { id };
        self.last = false;
        self.pieces.clear();
    }

    /// Takes back every transfer that the slot has on the wire.
    pub(super) fn cancel_transfers(&mut self, outputs: &mut Outputs) {
        for (_, transfer) in self.pieces.drain(..) {
            outputs.extend(transfer.map(Output::Cancel));
        }
        if let State::Closing { transfer, .. } | State::Answering { transfer } = self.state {
            outputs.push_back(Output::Cancel(transfer));
        }
    }
}
