//! The state of one tag.

use crate::command::{CommandId, DataLocation, Outcome};
use crate::output::Outputs;
use bus::{Direction, Fifo, TransferId};
use units::ByteRange;
use wire::uas::{CommandIu, TaskAttribute};

/// One tag.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) tag: u16,
    pub(super) state: State,
    /// The unit that the command addresses, if there is such a unit. Without meaning for a function.
    pub(super) unit: Option<u8>,
    /// Whether the command has the ACA attribute.
    pub(super) is_aca: bool,
    /// The data phase: what is on the wire, and what waits for its turn, in order.
    pub(super) pieces: Fifo<(DataSegment, Option<TransferId>)>,
    /// The READY IU that the host has not taken yet.
    pub(super) ready: Option<TransferId>,
}

/// Use of a tag.
#[derive(Debug, Default)]
pub(super) enum State {
    /// Nothing.
    #[default]
    Free,
    /// A command in flight.
    Running { id: CommandId },
    /// Without streams: the host's data transfer is being ended early; the status comes after it.
    Closing { transfer: TransferId, outcome: Outcome },
    /// The SENSE IU of a command is on the status pipe.
    Reporting { transfer: TransferId },
    /// The executor drains the command, which has no status.
    Aborting,
    /// Commands drain, and an answer comes after that. `own` is whether one of them had this tag.
    Draining { ends: Ends, then: Then, own: bool },
    /// A RESPONSE IU is on the status pipe.
    Responding { transfer: TransferId },
}

/// Which commands are ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ends {
    Task { tag: u16, unit: u8 },
    Unit(u8),
    AcaOf(u8),
    Everything,
}

/// Report that follows when they have drained.
#[derive(Clone, Copy, Debug)]
pub(super) enum Then {
    /// TASK MANAGEMENT FUNCTION COMPLETE.
    Complete,
    /// OVERLAPPED COMMANDS ATTEMPTED.
    Overlapped,
}

/// A part of a data phase.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataSegment {
    pub(super) direction: Direction,
    pub(super) range: ByteRange,
    pub(super) location: DataLocation,
    pub(super) last: bool,
}

impl Slot {
    /// A command has come under this tag.
    pub(super) fn begin(&mut self, iu: &CommandIu<'_>, unit: Option<u8>) {
        self.tag = iu.tag;
        self.unit = unit;
        self.is_aca = iu.attribute == TaskAttribute::Aca;
        self.pieces.clear();
        self.ready = None;
    }

    pub(super) const fn is_free(&self) -> bool {
        matches!(self.state, State::Free)
    }

    /// Whether a command has the tag whose status the host does not have yet.
    pub(super) const fn is_command(&self) -> bool {
        matches!(self.state, State::Running { .. } | State::Closing { .. } | State::Reporting { .. })
    }

    /// Whether the executor still drains a command that had the tag.
    pub(super) const fn drains(&self) -> bool {
        matches!(self.state, State::Aborting | State::Draining { own: true, .. })
    }

    /// Cancels the slot's transfers of a data phase.
    pub(super) fn cancel_pieces(&mut self, outputs: &mut Outputs) {
        while let Some((_, transfer)) = self.pieces.pop_front() {
            if let Some(transfer) = transfer {
                outputs.cancel(transfer);
            }
        }
    }

    /// Cancels all transfers of the slot.
    pub(super) fn cancel_transfers(&mut self, outputs: &mut Outputs) {
        self.cancel_pieces(outputs);
        if let Some(ready) = self.ready.take() {
            outputs.cancel(ready);
        }
        if let State::Closing { transfer, .. }
        | State::Reporting { transfer }
        | State::Responding { transfer } = self.state
        {
            outputs.cancel(transfer);
        }
    }
}
