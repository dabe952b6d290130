//! Whether a logical unit can access its medium (SBC-4 clause 4.20).

/// Whether a unit can access its medium, and why not (SBC-4 clause 4.20).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It can be accessed.
    Ready,
    /// START STOP UNIT has stopped it.
    Stopped,
    /// The host has ejected the medium, and can load it again.
    Ejected,
    /// There is no medium.
    Absent,
    /// FORMAT UNIT runs.
    Formatting,
    /// SANITIZE runs.
    Sanitizing {
        /// State after a failure: see [`Readiness::SanitizeFailed`].
        unrestricted_exit: bool,
    },
    /// SANITIZE has failed; nothing may be read or written.
    SanitizeFailed {
        /// EXIT FAILURE MODE ends this, not only another SANITIZE (AUSE).
        unrestricted_exit: bool,
    },
}
