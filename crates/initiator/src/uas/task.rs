//! One command under way: its transfers, and how far it is.
//!
//! Always true: a task ends when it is answered or released and none of its transfers is under way.

use crate::{Answer, Command, Failure, Outcome, SenseBytes};
use bus::TransferId;
use core::hint::cold_path;
use units::Instant;
use wire::scsi::Status;

/// A command and what is under way for it.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) command: Command,
    pub(super) stage: Stage,
    /// The COMMAND IU.
    pub(super) iu: Flight,
    /// With streams: the IU of the task on the status pipe.
    pub(super) status: Flight,
    /// The data phase; without streams not before the device is ready.
    pub(super) data: Flight,
    /// Bytes of the data phase that were moved.
    pub(super) moved: u32,
    /// What went wrong in the data phase, if the device goes on to say that all is well.
    pub(super) data_fault: Option<Failure>,
    /// The COMMAND IU was sent once before, and not taken.
    pub(super) resent: bool,
    /// Statuses that were none, so far.
    pub(super) odd_statuses: u8,
}

/// How far a task is.
#[derive(Debug, PartialEq, Eq)]
// A tag of its own is read quicker than one in the status of an answer.
#[repr(u8)]
pub(super) enum Stage {
    /// It waits for a recovery to be over; the device knows nothing of it.
    Held,
    /// The device has it.
    Running,
    /// The device has ended it. Data may come in late, and the end of the COMMAND IU may, until `data_by`.
    Answered { answer: Answer, data_by: Instant },
    /// The device has it, and is to be brought to let go.
    Faulty(Failure),
    /// The device has let go.
    Released(Failure),
}

/// A transfer of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flight {
    /// To be submitted, when its time comes.
    Idle,
    UnderWay(TransferId),
    /// Taken back, and not completed yet.
    Cancelling(TransferId),
    /// Completed, or not needed.
    Back,
}

impl Task {
    pub(super) const fn new(command: Command, stage: Stage) -> Self {
        Self {
            command,
            stage,
            iu: Flight::Idle,
            status: Flight::Idle,
            data: Flight::Idle,
            moved: 0,
            data_fault: None,
            resent: false,
            odd_statuses: 0,
        }
    }

    /// Whether the device may have it.
    pub(super) const fn is_with_device(&self) -> bool {
        matches!(self.stage, Stage::Running | Stage::Faulty(_))
    }

    /// Whether nothing but its transfers is waited for.
    pub(super) const fn has_ended(&self) -> bool {
        matches!(self.stage, Stage::Answered { .. } | Stage::Released(_))
    }

    /// Whether data of it have moved to their end, which they do only when the device has its COMMAND IU, whatever the host
    /// has heard of that.
    pub(super) const fn proves_its_iu(&self) -> bool {
        matches!((self.iu, self.data), (Flight::UnderWay(_), Flight::Back))
            && self.moved > 0
            && self.data_fault.is_none()
    }

    /// How it ended, if it has and none of its transfers is under way. Says so once.
    #[inline]
    pub(super) fn take_outcome(&mut self) -> Option<Outcome> {
        if [self.status, self.data, self.iu].iter().any(|flight| flight.id().is_some()) {
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

impl Flight {
    /// The transfer under way.
    pub(super) const fn id(self) -> Option<TransferId> {
        match self {
            Self::UnderWay(id) | Self::Cancelling(id) => Some(id),
            Self::Idle | Self::Back => None,
        }
    }

    /// Takes the transfer back, if there is one and that was not done before.
    pub(super) const fn cancel(&mut self) -> Option<TransferId> {
        match *self {
            Self::UnderWay(id) => {
                *self = Self::Cancelling(id);
                Some(id)
            }
            _ => None,
        }
    }
}
