//! Access of commands to a reserved logical unit.

/// Access of a command to a reserved unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Allowed whatever is reserved.
    Always,
    /// Reads: refused under another's exclusive access.
    Read,
    /// Changes something: refused under another's write exclusive as well.
    Write,
}
