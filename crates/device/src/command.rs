//! Commands: their order, execution and outcome (SAM-6 clauses 5, 7 and 8).
//!
//! The transport submits a [`Request`]; the [`Executor`] holds it in one slot, starts it when the task set allows,
//! asks the unit for a plan and carries the plan out: data phase with the transport, blocks with the medium. It
//! speaks to the transport by [`CommandOutput`], and to the driver of the device by [`Output`](crate::Output): buffers and
//! requests for the medium.
//!
//! Always true: each submitted command brings exactly one [`CommandOutput::Completed`] or
//! [`CommandOutput::Aborted`]; data outputs come only after [`CommandOutput::Begin`] was answered by
//! [`Executor::proceed`]; a command's buffer is acquired before it is named and released after the last use.

mod executor;
mod memory;
mod movement;
mod order;
mod task;

pub use executor::Executor;

use alloc::boxed::Box;
use bus::Direction;
use units::ByteRange;
use wire::scsi::Status;
use wire::scsi::sense::{Sense, SenseFormat};
use wire::uas::TaskAttribute;

/// How much a device accepts at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Commands in all task sets together; more end with TASK SET FULL.
    pub commands: u16,
    /// Bytes of command buffers held at once; commands wait for room. One command may exceed it alone.
    pub buffer_bytes: u32,
    /// Bytes of one medium request, where an operation can be cut.
    pub segment_bytes: u32,
}

/// Identifies a command from submission to completion. Never reused while it may still be held: the generation
/// counts how often the slot was filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId {
    /// Which slot.
    pub slot: u16,
    /// Which filling of it.
    pub generation: u16,
}

/// A command as the transport has received it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The logical unit number field (SAM-6 clause 4.7).
    pub lun: [u8; 8],
    /// The task attribute; transports without one use simple.
    pub attribute: TaskAttribute,
    /// The command descriptor block.
    pub cdb: &'a [u8],
    /// Whether the transport wants to be notified of the data phase before it begins ([`CommandOutput::Begin`]).
    pub asks: bool,
}

/// Data that a command is going to move, reported before it moves anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intent {
    /// The host's direction.
    pub direction: Direction,
    /// Bytes, at least one.
    pub bytes: u32,
}

/// Where a command's data lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataLocation {
    /// Block data, in the command's buffer, which the driver owns.
    Buffer,
    /// Parameter data, inside the target: [`Executor::reply`], or the bytes given to
    /// [`Executor::handle_parameter_list`].
    Parameters,
}

/// Outputs of the executor for the transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandOutput {
    /// To a transport that wants to hear it ([`Request::asks`]); it answers with [`Executor::proceed`] or
    /// [`Executor::refuse`].
    Begin {
        /// Which command.
        id: CommandId,
        /// Data that it will move.
        intent: Intent,
    },
    /// Bytes for the host are ready. Answered by [`Executor::handle_data_in`].
    DataIn {
        /// Which command.
        id: CommandId,
        /// Which bytes of its data.
        range: ByteRange,
        /// The buffer or parameters that hold them.
        location: DataLocation,
        /// Whether no more will come.
        last: bool,
    },
    /// Bytes of the host are wanted. Answered by [`Executor::handle_data_out`] or, for parameters,
    /// [`Executor::handle_parameter_list`].
    DataOut {
        /// Which command.
        id: CommandId,
        /// Which bytes of its data.
        range: ByteRange,
        /// Where they go.
        location: DataLocation,
        /// Whether no more will be wanted after them.
        last: bool,
    },
    /// The command has ended.
    Completed {
        /// Which one.
        id: CommandId,
        /// How.
        outcome: Outcome,
    },
    /// The command was aborted, and the medium has released it.
    Aborted {
        /// Which one.
        id: CommandId,
    },
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Which unit answered, if the logical unit number names one.
    pub unit: Option<u8>,
    /// The status.
    pub status: Status,
    /// Sense data, with CHECK CONDITION: seldom, and much larger than the rest.
    pub sense: Option<Box<Sense>>,
    /// The format that the unit's sense data is to have.
    pub format: SenseFormat,
}

impl Outcome {
    /// A status without sense data.
    pub const fn of_status(unit: Option<u8>, status: Status) -> Self {
        Self { unit, status, sense: None, format: SenseFormat::Fixed }
    }

    /// CHECK CONDITION with sense data.
    pub fn of_sense(unit: Option<u8>, sense: Sense) -> Self {
        Self {
            unit,
            status: Status::CheckCondition,
            sense: Some(Box::new(sense)),
            format: SenseFormat::Fixed,
        }
    }
}

/// Every command slot is taken: the transport answers TASK SET FULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskSetFull;
