//! Plans to drive a transport: the interface setting, the pipes, and how to name commands on them.

use super::configuration::Endpoint;
use bus::{EndpointAddress, Pipe, StreamId};
use core::fmt;
use core::num::NonZeroU16;

/// A transport that the device offers and that works on this link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Bulk-Only Transport.
    Bot(BotPlan),
    /// USB Attached SCSI.
    Uas(UasPlan),
}

/// Parameters of SET_CONFIGURATION and SET_INTERFACE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceSetting {
    /// bConfigurationValue.
    pub configuration: u8,
    /// bInterfaceNumber.
    pub interface: u8,
    /// bAlternateSetting.
    pub alternate: u8,
}

/// An endpoint to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipeEnd {
    /// Its address.
    pub address: EndpointAddress,
    /// Its longest packet, in bytes.
    pub packet_bytes: u16,
    /// Packets of a burst, 1 to 16; 1 below SuperSpeed.
    pub burst_packets: u8,
}

/// How to use Bulk-Only Transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BotPlan {
    /// Where it is.
    pub place: InterfaceSetting,
    /// CSWs and data of reads.
    pub bulk_in: PipeEnd,
    /// CBWs and data of writes.
    pub bulk_out: PipeEnd,
}

/// How to use USB Attached SCSI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UasPlan {
    /// Where it is.
    pub place: InterfaceSetting,
    /// COMMAND and TASK MANAGEMENT IUs.
    pub command: PipeEnd,
    /// SENSE, RESPONSE and READY IUs.
    pub status: PipeEnd,
    /// Data of reads.
    pub data_in: PipeEnd,
    /// Data of writes.
    pub data_out: PipeEnd,
    /// How transfers are matched with commands.
    pub matching: Matching,
}

/// How a transfer on the status or a data pipe is matched with its command (UAS-2 clause 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matching {
    /// By its stream, whose id is the tag: SuperSpeed.
    Streams {
        /// Streams to ask for on status, data-in and data-out; ids are 1 to what is granted.
        request: NonZeroU16,
    },
    /// READ READY and WRITE READY IUs say whose data is next: below SuperSpeed.
    Ready,
}

impl Plan {
    /// Where the transport is.
    pub const fn place(&self) -> InterfaceSetting {
        match self {
            Self::Bot(plan) => plan.place,
            Self::Uas(plan) => plan.place,
        }
    }
}

impl UasPlan {
    /// The endpoints that streams are to be allocated on: status, data-in, data-out.
    pub const fn stream_endpoints(&self) -> [EndpointAddress; 3] {
        [self.status.address, self.data_in.address, self.data_out.address]
    }
}

impl PipeEnd {
    pub(super) fn of(endpoint: &Endpoint) -> Self {
        Self {
            address: endpoint.descriptor.address,
            packet_bytes: endpoint.descriptor.packet_len(),
            burst_packets: endpoint.companion.map_or(1, |companion| companion.max_burst.min(15) + 1),
        }
    }

    /// The endpoint without streams.
    pub const fn plain(&self) -> Pipe {
        Pipe::plain(self.address)
    }

    /// One of its streams.
    pub const fn stream(&self, stream: StreamId) -> Pipe {
        Pipe::stream(self.address, stream)
    }
}

impl fmt::Display for InterfaceSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { configuration, interface, alternate } = self;
        write!(f, "configuration {configuration} interface {interface} alternate {alternate}")
    }
}

impl fmt::Display for Matching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Streams { request } => write!(f, "{request} streams"),
            Self::Ready => f.write_str("READY IUs"),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bot(plan) => write!(f, "BOT, {}", plan.place),
            Self::Uas(plan) => write!(f, "UAS with {}, {}", plan.matching, plan.place),
        }
    }
}
