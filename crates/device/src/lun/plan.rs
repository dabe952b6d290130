//! Plans: what a command asks the executor to do next.
//!
//! A plan is data, not a callback: it says what is to happen and the executor makes it happen, so that a command's
//! file can be read and tested without a transport or a medium. Left out: how any of it is done.

use crate::medium::MediumOp;
use alloc::vec::Vec;
use units::Extent;
use wire::scsi::Status;
use wire::scsi::sense::{AdditionalSense, Sense, SenseKey};
use wire::{DecodeError, NoRoom};

/// Parameter data, in or out, that one command may have, in bytes.
///
/// Block data does not count: it never passes through a unit.
pub const PARAMETER_BYTES_MAX: usize = 8192;

/// Bytes of a list that are fetched before its length is known: no bulk packet is smaller at any speed, so a host that
/// sends fewer ends its transfer by them.
pub const LIST_HEAD_BYTES: u32 = 64;

/// Next step of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Done: GOOD.
    Good,
    /// Done: CHECK CONDITION with this sense data.
    Check(Sense),
    /// Done: another status, without sense data.
    Status(Status),
    /// Parameter data for the host, as it stands in the [`Reply`]; then GOOD.
    Reply,
    /// The same; then CHECK CONDITION with this sense data, which does not invalidate the data.
    ReplyThen(Sense),
    /// Fetch a parameter list of so many bytes, then call `on_list`. Zero is legal, and calls it at once.
    List {
        /// Bytes that the CDB announces.
        bytes: u32,
    },
    /// Fetch a parameter list whose header states its length (FORMAT UNIT): at most [`LIST_HEAD_BYTES`] of it, then
    /// call `on_list`.
    ListHead {
        /// Bytes of the shortest list.
        least: u32,
    },
    /// Fetch the rest of such a list, then call `on_list` with all of it. A host that has announced less is not asked.
    ListRest {
        /// Bytes that are missing.
        bytes: u32,
    },
    /// Have the medium do something, then call `on_medium` if the row has it, else GOOD.
    Medium(MediumPlan),
    /// Like [`Plan::Medium`] without a data phase to come, but nothing stops it: if the command is aborted the work
    /// continues. Other commands start beside it, and the unit's readiness keeps them from the medium.
    LongRunning(MediumPlan),
    /// Like [`Plan::LongRunning`], but GOOD is sent first (IMMED = 1).
    Background(MediumPlan),
}

impl Plan {
    /// How a command ends whose parameter data the host has taken.
    pub const fn after_reply(self) -> Self {
        match self {
            Self::ReplyThen(sense) => Self::Check(sense),
            _ => Self::Good,
        }
    }
}

/// A plan, or the sense data that ends the command instead.
pub(super) type Decision = Result<Plan, Sense>;

/// The plan of a decision.
pub(super) fn settle(decision: Decision) -> Plan {
    decision.unwrap_or_else(Plan::Check)
}

/// The fields of a CDB. Operation code and length were checked against the row, so this does not fail.
pub(super) fn fields<T>(decoded: Result<T, DecodeError>) -> Result<T, Sense> {
    decoded.map_err(|_| Sense::illegal_request(AdditionalSense::INVALID_FIELD_IN_CDB))
}

/// Fetches a parameter list of a length that the CDB says at byte `length_field`.
pub(super) fn fetch_list(bytes: u32, length_field: u16) -> Decision {
    if bytes as usize > PARAMETER_BYTES_MAX {
        return Err(Sense::invalid_field_in_cdb(length_field, None));
    }
    Ok(Plan::List { bytes })
}

/// Something for the medium, with the data phase that goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediumPlan {
    /// Operation.
    pub op: MediumOp,
    /// With which blocks; the caller has checked that they exist.
    pub extent: Extent,
    /// Which way data flows, if it does.
    pub data: DataPhase,
    /// Bytes of the data phase, or, in a later step without one, bytes of the buffer that the step uses.
    pub bytes: u32,
}

/// The data phase of a [`MediumPlan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataPhase {
    /// No data, or data that an earlier step has left in the command's buffer.
    None,
    /// The same for the host, but the medium works with `bytes` bytes of the [`Reply`], where the unit has put them.
    Own,
    /// From the medium to the host.
    In,
    /// From the host to the medium.
    Out,
}

impl MediumPlan {
    /// A step without data.
    pub const fn bare(op: MediumOp, extent: Extent) -> Self {
        Self { op, extent, data: DataPhase::None, bytes: 0 }
    }
}

/// Parameter data on its way to the host.
#[derive(Debug, Default)]
pub struct Reply {
    bytes: Vec<u8>,
}

impl Reply {
    /// Fills the reply by `write`, which is given [`PARAMETER_BYTES_MAX`] bytes and says how many it used, and cuts
    /// it at the allocation length (SPC-5 clause 4.2.5.6). An allocation length of zero is legal.
    ///
    /// Data that does not fit is our bug; the command ends with INTERNAL TARGET FAILURE.
    pub fn fill(
        &mut self,
        allocation_length: u32,
        write: impl FnOnce(&mut [u8]) -> Result<usize, NoRoom>,
    ) -> Plan {
        self.bytes.clear();
        self.bytes.resize(PARAMETER_BYTES_MAX, 0);
        match write(&mut self.bytes) {
            Ok(used) => {
                self.bytes.truncate(used.min(allocation_length as usize));
                Plan::Reply
            }
            Err(NoRoom { .. }) => {
                Plan::Check(Sense::new(SenseKey::HardwareError, AdditionalSense::INTERNAL_TARGET_FAILURE))
            }
        }
    }

    /// Clears the reply, for [`Self::append`].
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Adds bytes; what is past [`PARAMETER_BYTES_MAX`] is cut.
    pub fn append(&mut self, bytes: &[u8]) {
        let room = PARAMETER_BYTES_MAX.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Keeps the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }

    /// Takes the bytes out, to be put into another order.
    pub fn take(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.bytes)
    }

    /// The bytes that go to the host.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}
