//! Run state of the host side of an endpoint, on either bus.

/// Run state of the host side of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndpointRun {
    Running,
    /// Software has stopped it.
    Stopped,
    /// The device has halted the endpoint, or has sent more than there was room for.
    Halted,
    /// The device does not respond.
    Failed,
}
