//! What controllers do otherwise than the standard says, as far as a driver has to know beforehand.
//!
//! Whoever opens a controller knows what it is (by its PCI ids) and says so here; the driver knows no ids. What can be
//! borne with on every controller is borne without a quirk: a success with bytes left, a second event for a TD that
//! ended short, a Stop Endpoint that has to be said twice.

/// Departures from the standard. [`Quirks::default`] has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quirks {
    /// Streams are offered and do not work: none are allocated. (Fresco FL1009, VIA 3432, ASMedia 1042, Etron EJ168
    /// and EJ188.)
    pub broken_streams: bool,
    /// Secondary stream arrays are offered and do not work: there are no more streams than the primary array holds. (QEMU's
    /// qemu-xhci; Linux uses such arrays on no controller, so others may be like it and nobody knows.)
    pub no_secondary_streams: bool,
    /// Stop Endpoint is answered before what is under way has been told: the driver waits
    /// [`crate::limit::STOP_SETTLES`] for late events before it looks at the rings.
    pub stop_answered_early: bool,
    /// An endpoint that was stopped or reset has forgotten the cycle bits of its streams' rings, all of which are taken to be 1: each
    /// ring that is on another lap has to be given its place again, or nothing moves on it any more. (QEMU's qemu-xhci, up to 7.2 at
    /// least.)
    pub forgets_cycles: bool,
    /// The chain bit of every link TRB has to be set (controllers of version 0.95).
    pub chained_links: bool,
    /// Small OUT transfers must not be sent as immediate data.
    pub no_immediate: bool,
    /// Reset Endpoint must not preserve the transfer's state: a transaction error ends a transfer at once.
    pub no_soft_retry: bool,
}
