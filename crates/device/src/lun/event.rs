//! Events that change a logical unit's state from outside of its commands (SAM-6 clause 6.3).

/// Event that affects a unit from outside of its commands (SAM-6 clause 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitEvent {
    /// Power came.
    PowerOn,
    /// The bus was reset (hard reset).
    BusReset,
    /// LOGICAL UNIT RESET was asked for.
    LogicalUnitReset,
    /// I_T NEXUS RESET was asked for, or the host is another one now.
    NexusLoss,
}
