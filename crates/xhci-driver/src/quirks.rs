//! Deviations of controllers from the standard that a driver must know in advance.
//!
//! The code that opens a controller identifies it (by its PCI ids) and sets them here. Deviations
//! that can be tolerated on every controller need no quirk: a success with a residual, a second
//! event for a TD that ended short, a Stop Endpoint that must be repeated.

/// Deviations from the standard. [`Quirks::default`] has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quirks {
    /// Streams are reported but do not work: none are allocated. (Fresco FL1009, VIA 3432, ASMedia
    /// 1042, Etron EJ168 and EJ188.)
    pub broken_streams: bool,
    /// Secondary stream arrays are reported but do not work: no more streams than the primary array
    /// holds. (QEMU's qemu-xhci; Linux uses such arrays on no controller, so others may be
    /// affected.)
    pub no_secondary_streams: bool,
    /// Stop Endpoint is answered before pending events are posted: the driver waits
    /// [`crate::limit::STOP_SETTLES`] for late events before it inspects the rings.
    pub stop_answered_early: bool,
    /// After Stop or Reset Endpoint the controller takes all cycle bits of the endpoint's stream
    /// rings for 1: the dequeue pointer of each ring on another lap must be set again, or nothing
    /// moves on it. (QEMU's qemu-xhci, up to 7.2 at least.)
    pub forgets_cycles: bool,
    /// The chain bit of every link TRB must be set (controllers of version 0.95).
    pub chained_links: bool,
    /// Small OUT transfers must not be sent as immediate data.
    pub no_immediate: bool,
    /// Reset Endpoint must not preserve the transfer state: a transaction error fails a transfer at
    /// once.
    pub no_soft_retry: bool,
}
