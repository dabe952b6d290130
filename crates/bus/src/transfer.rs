//! Transfers, where they go, and how they end (USB 3.2 clauses 8.12 and 4.4.6.4).
//!
//! A pipe is an endpoint and, where it has them, a stream; a transfer is a pipe and a range of somebody's memory; a
//! completion ends it. Ids that are not allowed on the wire cannot be made. Left out: what a transfer carries.

use core::fmt;
use core::num::NonZeroU16;
use wire::usb::EndpointAddress;

/// A bulk stream: 1…65,533 (USB 3.2 clause 8.12.1.4). Stream 0 and the two reserved ids do not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(NonZeroU16);

impl StreamId {
    /// The highest id that names a stream; FFFEh is Prime, FFFFh NoStream.
    pub const MAX: u16 = 65_533;

    /// The stream with this id, if it names one.
    pub const fn new(id: u16) -> Option<Self> {
        match NonZeroU16::new(id) {
            Some(id) if id.get() <= Self::MAX => Some(Self(id)),
            _ => None,
        }
    }

    /// The id as it is on the wire.
    pub const fn get(self) -> u16 {
        self.0.get()
    }
}

/// Where a transfer goes: an endpoint, and a stream of it where it has streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pipe {
    /// The endpoint, direction included.
    pub endpoint: EndpointAddress,
    /// The stream; `None` on an endpoint without streams.
    pub stream: Option<StreamId>,
}

impl Pipe {
    /// The pipe of an endpoint without streams.
    pub const fn plain(endpoint: EndpointAddress) -> Self {
        Self { endpoint, stream: None }
    }

    /// One stream of an endpoint.
    pub const fn stream(endpoint: EndpointAddress, stream: StreamId) -> Self {
        Self { endpoint, stream: Some(stream) }
    }
}

/// Names a transfer to the side that submitted it. Host and device count for themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransferId(pub u64);

/// How a transfer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferStatus {
    /// Every byte asked for was moved.
    Done,
    /// The other side ended it early, which is no error.
    Short,
    /// The endpoint is halted.
    Stall,
    /// The side that submitted it took it back.
    Cancelled,
    /// The device sent a packet larger than the room that was left.
    Babble,
    /// The device is gone.
    Disconnected,
    /// The bus failed in another way.
    Error,
}

/// The end of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Which one.
    pub id: TransferId,
    /// How it ended.
    pub status: TransferStatus,
    /// Bytes moved.
    pub actual: u32,
}

/// The speed of a device's link. Ordered: a later one is faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Speed {
    /// 12 Mb/s.
    Full,
    /// 480 Mb/s.
    High,
    /// 5 Gb/s.
    Super,
}

impl Speed {
    /// The largest packet of a bulk endpoint, in bytes (USB 2.0 clause 5.8.3, USB 3.2 table 9-26).
    pub const fn bulk_packet_bytes(self) -> u32 {
        match self {
            Self::Full => 64,
            Self::High => 512,
            Self::Super => 1024,
        }
    }

    /// Whether bulk endpoints can have streams.
    pub const fn has_streams(self) -> bool {
        matches!(self, Self::Super)
    }
}

impl fmt::Display for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.stream {
            None => write!(f, "{}", self.endpoint),
            Some(stream) => write!(f, "{} stream {}", self.endpoint, stream.get()),
        }
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "full speed",
            Self::High => "high speed",
            Self::Super => "super speed",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_stream_ids_do_not_exist() {
        assert_eq!(StreamId::new(0), None);
        assert_eq!(StreamId::new(1).map(StreamId::get), Some(1));
        assert_eq!(StreamId::new(65_533).map(StreamId::get), Some(65_533));
        assert_eq!(StreamId::new(0xfffe), None);
        assert_eq!(StreamId::new(0xffff), None);
    }
}
