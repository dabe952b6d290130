//! Where a UAS interface is, and how many commands it takes at once.

use crate::{Patience, StreamEndpoints};
use bus::EndpointAddress;
use core::fmt;

/// Commands under way at once, whatever was granted: 256 streams less two, as Linux has it.
pub const TASKS_MAX: u16 = 254;

/// Commands under way without streams, unless told: as Linux has it.
pub const READY_DEPTH: u16 = 30;

/// Transfers on the status pipe at once without streams. More would wait in the host controller: QEMU fetches 16.
pub const READY_STATUSES_MAX: usize = 16;

/// Tags that task management functions have in turn, without streams.
pub(super) const READY_FUNCTION_TAGS: u16 = 8;

/// Streams below which there is no room for a command and a task management function beside it.
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

/// Where a UAS interface is, and how it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UasConfig {
    /// bInterfaceNumber.
    pub interface: u8,
    /// bAlternateSetting, chosen again after a port reset.
    pub alternate: u8,
    /// The pipes.
    pub endpoints: UasEndpoints,
    /// How many streams were granted; `None` where pipes have none, and READY IUs take their place.
    pub streams: Option<u16>,
    /// Commands under way at once; unless told, two fewer than streams, or [`READY_DEPTH`].
    pub depth: Option<u16>,
    /// Limits of the recovery's steps.
    pub patience: Patience,
}

/// Fewer than two streams were granted: no room for a command and a task management function beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFewStreams {
    /// How many were granted.
    pub granted: u16,
}

impl UasConfig {
    /// Commands that can be under way with so many streams. The other tags are for task management; with two of
    /// them, one is to spare, against bridges that count one fewer than they say.
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
        write!(f, "{} streams were granted where {STREAMS_MIN} are needed", self.granted)
    }
}

impl core::error::Error for TooFewStreams {}
