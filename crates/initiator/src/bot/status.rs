//! How a data phase ended, and what a status wrapper makes of it (Bulk-Only Transport 1.0 clauses 6.3 and 6.7).
//!
//! ```text
//!  the host expects    the device means    data phase            status wrapper
//!  nothing             nothing        1    -                     passed or failed, residue 0
//!  nothing             data        2, 3    -                     phase error
//!  In or Out           less    4, 5, 9, 11 short, or a stall     passed or failed, residue
//!  In or Out           as much    6, 12    whole                 passed or failed, residue 0
//!  In or Out           more       7, 13    whole, or a stall     phase error
//!  In                  Out           8     short, or a stall     phase error
//!  Out                 In           10     whole, or a stall     phase error
//! ```
//!
//! Which case it is, the host learns from the wrapper alone; a phase error is followed by a reset recovery.

/// The command that a status belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    /// The tag of the CBW.
    pub(super) tag: u32,
    /// The data transfer length of the CBW.
    pub(super) bytes: u32,
    /// The command.
    pub(super) operation_code: u8,
}

/// How the data phase ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DataEnd {
    /// Bytes transferred.
    pub(super) moved: u32,
    /// Whether the device sent more than requested.
    pub(super) babble: bool,
}

/// The meaning of a CSW.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// Success, with so many bytes.
    Passed { moved: u32 },
    /// Failure; sense data give the reason.
    Failed { moved: u32 },
    /// Host and device disagree about the data phase.
    PhaseError,
    /// Not valid, not meaningful, or with another tag.
    Invalid,
}
