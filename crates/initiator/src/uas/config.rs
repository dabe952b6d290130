//! The location of a UAS interface and its queue depth.

use crate::{StreamEndpoints, Timeouts};
use bus::EndpointAddress;
use core::fmt;

/// Maximum queue depth: 256 streams less two, as in Linux.
pub const TASKS_MAX: u16 = 254;

/// Default queue depth without streams, as in Linux.
pub const READY_DEPTH: u16 = 30;

/// Transfers on the status pipe at once without streams. More would wait in the host controller:
/// QEMU fetches 16.
pub const READY_STATUSES_MAX: usize = 16;

/// Unexpected statuses of one task (READY IUs with streams, late or empty ones, stalls) tolerated
/// before it is a fault.
pub const ODD_STATUSES_MAX: u8 = 4;

/// Tags reserved for task management functions, without streams.
pub(super) const READY_FUNCTION_TAGS: u16 = 8;

/// Minimum number of streams: one for a command and one for task management.
const STREAMS_MIN: u16 = 2;

/// The four pipes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UasEndpoints {
    /// COMMAND and TASK MANAGEMENT IUs.
    pub command: EndpointAddress,
    /// SENSE, RESPONSE and READY IUs.
    pub status: EndpointAddress,
    /// Data of reads.
    pub data_in: EndpointAddress,
    /// Data of writes.
    pub data_out: EndpointAddress,
}

/// The location of a UAS interface and its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UasConfig {
    /// bInterfaceNumber.
    pub interface: u8,
    /// bAlternateSetting, selected again after a port reset.
    pub alternate: u8,
    /// The four pipes.
    pub endpoints: UasEndpoints,
    /// Number of streams granted; `None` without streams, where READY IUs are used.
    pub streams: Option<u16>,
    /// Queue depth; by default two fewer than streams, or [`READY_DEPTH`].
    pub depth: Option<u16>,
    /// Timeouts of the recovery steps.
    pub timeouts: Timeouts,
}

/// The device granted fewer than two streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFewStreams {
    /// The number granted.
    pub granted: u16,
}

impl UasConfig {
    /// Returns the queue depth for this number of streams. The other tags are for task management;
    /// two are reserved, since some bridges support one stream fewer than they report.
    pub(super) fn depth_for(&self, streams: Option<u16>) -> Result<u16, TooFewStreams> {
        let (usual, most) = match streams {
            None => (READY_DEPTH, TASKS_MAX),
            Some(granted) if granted < STREAMS_MIN => return Err(TooFewStreams { granted }),
            Some(granted) => (granted - 2, granted - 1),
        };
        Ok(self.depth.unwrap_or(usual).clamp(1, most.min(TASKS_MAX)))
    }

    pub(super) const fn stream_endpoints(&self) -> StreamEndpoints {
        let UasEndpoints { status, data_in, data_out, .. } = self.endpoints;
        StreamEndpoints { status, data_in, data_out }
    }
}

impl fmt::Display for TooFewStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "device granted {} streams; UAS needs at least {STREAMS_MIN}", self.granted)
    }
}

impl core::error::Error for TooFewStreams {}
