//! A command in flight: its transfers and its progress.
//!
//! Always true: a task ends when it is answered or released and none of its transfers is in flight.

use crate::{Answer, Command, Failure, Outcome, SenseBytes};
use bus::TransferId;
use core::hint::cold_path;
use units::Instant;
use wire::scsi::Status;

/// A command and its transfers.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) command: Command,
    pub(super) stage: Stage,
    /// The COMMAND IU.
    pub(super) iu: TransferState,
    /// With streams: the transfer on the status pipe.
    pub(super) status: TransferState,
    /// The data phase; without streams not before READY.
    pub(super) data: TransferState,
    /// Bytes of the data phase transferred.
    pub(super) moved: u32,
    /// A fault of the data phase, which overrides a GOOD status.
    pub(super) data_fault: Option<Failure>,
    /// Whether the COMMAND IU was rejected and sent again.
    pub(super) resent: bool,
    /// Unexpected statuses so far.
    pub(super) odd_statuses: u8,
}

/// The progress of a task.
#[derive(Debug, PartialEq, Eq)]
// A separate tag is faster to read than a niche in the status of an answer.
#[repr(u8)]
pub(super) enum Stage {
    /// Waits for recovery; the device does not have it.
    Held,
    /// The device has it.
    Running,
    /// The device has ended it. Data and the completion of the COMMAND IU may arrive until
    /// `data_by`.
    Answered { answer: Answer, data_by: Instant },
    /// The device has it, and recovery must make it release it.
    Faulty(Failure),
    /// The device has released it.
    Released(Failure),
}

/// The state of a transfer of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransferState {
    /// Not submitted yet.
    Idle,
    InFlight(TransferId),
    /// Cancelled, not completed yet.
    Cancelling(TransferId),
    /// Completed, or not needed.
    Completed,
}

impl Task {
    pub(super) const fn new(command: Command, stage: Stage) -> Self {
        Self {
            command,
            stage,
            iu: TransferState::Idle,
            status: TransferState::Idle,
            data: TransferState::Idle,
            moved: 0,
            data_fault: None,
            resent: false,
            odd_statuses: 0,
        }
    }

    /// Returns whether the device may have it.
    pub(super) const fn is_with_device(&self) -> bool {
        matches!(self.stage, Stage::Running | Stage::Faulty(_))
    }

    /// Returns whether only its transfers are outstanding.
    pub(super) const fn has_ended(&self) -> bool {
        matches!(self.stage, Stage::Answered { .. } | Stage::Released(_))
    }

    /// Returns whether its data phase completed, which proves that the device has the COMMAND IU
    /// although its completion is outstanding.
    pub(super) const fn proves_its_iu(&self) -> bool {
        matches!((self.iu, self.data), (TransferState::InFlight(_), TransferState::Completed))
            && self.moved > 0
            && self.data_fault.is_none()
    }

    /// Returns the outcome once, when the task has ended and no transfer is in flight.
    #[inline]
    pub(super) fn take_outcome(&mut self) -> Option<Outcome> {
        if [self.status, self.data, self.iu].iter().any(|transfer| transfer.id().is_some()) {
            cold_path();
            return None;
        }
        let fault = self.data_fault;
        match &mut self.stage {
            Stage::Answered { answer, .. } => Some(match fault {
                Some(fault) if answer.status == Status::Good => Outcome::Failed(fault),
                _ => {
                    let sense = core::mem::replace(&mut answer.sense, SenseBytes::NONE);
                    Outcome::Answered(Answer { moved: self.moved, sense, ..*answer })
                }
            }),
            Stage::Released(failure) => Some(Outcome::Failed(*failure)),
            Stage::Held | Stage::Running | Stage::Faulty(_) => None,
        }
    }
}

impl TransferState {
    /// Returns the transfer in flight.
    pub(super) const fn id(self) -> Option<TransferId> {
        match self {
            Self::InFlight(id) | Self::Cancelling(id) => Some(id),
            Self::Idle | Self::Completed => None,
        }
    }

    /// Marks a transfer in flight as cancelled and returns it.
    pub(super) const fn cancel(&mut self) -> Option<TransferId> {
        match *self {
            Self::InFlight(id) => {
                *self = Self::Cancelling(id);
                Some(id)
            }
            _ => None,
        }
    }
}
