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

/// What the status is due for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    /// The tag of the command wrapper.
    pub(super) tag: u32,
    /// Bytes that the host expects to move.
    pub(super) bytes: u32,
    /// The command.
    pub(super) operation_code: u8,
}

/// How the data phase ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DataEnd {
    /// Bytes that were on the bus.
    pub(super) moved: u32,
    /// There were more than were asked for.
    pub(super) babble: bool,
}

/// What the status wrapper says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// The command did what it was asked to, with so many bytes.
    Passed { moved: u32 },
    /// It did not; sense data say why.
    Failed { moved: u32 },
    /// The two sides do not agree about the data phase.
    PhaseError,
    /// It is not valid, not meaningful, or not of this command.
    Invalid,
}
