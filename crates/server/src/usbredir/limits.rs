//! How much a client may make a session hold, and how long it may take.

use std::time::Duration;

/// How long a client may take to send its hello, unless given.
pub const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// Bounds in bytes, and one in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that wait to be sent. At this no further packet is looked at until the client has read some.
    pub outgoing_bytes: usize,
    /// Payload that waits for the device. At this no further packet is looked at as long as a medium is at work,
    /// which gives memory back by itself.
    pub payload_bytes_soft: usize,
    /// Payload that waits for the device. A packet that would pass this ends the session: nothing
    /// that is in flight would ever make room for it.
    pub payload_bytes_hard: usize,
    /// From the connection to the client's hello. The server that owns the socket enforces it: a
    /// session has no clock.
    pub hello_timeout: Duration,
}

/// QEMU keeps 16 transfers on the command pipe but one on each of 256 streams and 16 more on the data pipe, so the
/// data of a full queue come before most of its commands. Linux moves 512 KiB with a command at most, unless the
/// block limits page limits it to less, as ours does.
const AHEAD_BYTES_MAX: usize = (256 + 16) * (512 << 10);

impl Default for Limits {
    fn default() -> Self {
        Self {
            outgoing_bytes: 4 << 20,
            payload_bytes_soft: 16 << 20,
            payload_bytes_hard: AHEAD_BYTES_MAX,
            hello_timeout: HELLO_TIMEOUT,
        }
    }
}
