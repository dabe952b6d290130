//! Whether a host's end of an endpoint may begin anything, on a link of whatever kind.

/// What software and the device have made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndpointRun {
    Running,
    /// Software has stopped it.
    Stopped,
    /// The device's end is halted, or has sent more than there was room for.
    Halted,
    /// The device does not answer.
    Failed,
}
