//! Transfers, their pipes and their completions (USB 3.2 clauses 8.12 and 4.4.6.4).
//!
//! A pipe is an endpoint plus, on a bulk streaming endpoint, a stream. Reserved stream ids cannot
//! be constructed. Left out: the payload of a transfer.

use core::fmt;
use core::num::NonZeroU16;
use wire::usb::EndpointAddress;

/// A bulk stream: 1…65,533 (USB 3.2 clause 8.12.1.4). Stream 0 and the two reserved ids do not
/// exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(NonZeroU16);

impl StreamId {
    /// The highest id that names a stream; FFFEh is Prime, FFFFh NoStream.
    pub const MAX: u16 = 65_533;

    /// Creates a stream id; `None` for a reserved id.
    pub const fn new(id: u16) -> Option<Self> {
        match NonZeroU16::new(id) {
            Some(id) if id.get() <= Self::MAX => Some(Self(id)),
            _ => None,
        }
    }

    /// Returns the id as sent on the wire.
    pub const fn get(self) -> u16 {
        self.0.get()
    }
}

/// The destination of a transfer: an endpoint and, if the endpoint has streams, one of them.
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

/// Identifies a transfer to the side that submitted it. Host and device number independently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransferId(pub u64);

/// The completion status of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferStatus {
    /// All requested bytes were transferred.
    Done,
    /// A short packet ended the transfer early; not an error.
    Short,
    /// The endpoint is halted.
    Stall,
    /// The submitter cancelled it.
    Cancelled,
    /// The device sent a packet larger than the remaining buffer.
    Babble,
    /// The device is disconnected.
    Disconnected,
    /// Another bus error.
    Error,
}

/// The completion of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The transfer.
    pub id: TransferId,
    /// Its status.
    pub status: TransferStatus,
    /// Bytes transferred.
    pub actual: u32,
}

/// The speed of a device's link, ordered from slow to fast.
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
    /// Returns the maximum packet size of a bulk endpoint, in bytes (USB 2.0 clause 5.8.3, USB 3.2
    /// table 9-26).
    pub const fn bulk_packet_bytes(self) -> u32 {
        match self {
            Self::Full => 64,
            Self::High => 512,
            Self::Super => 1024,
        }
    }

    /// Returns whether bulk endpoints can have streams.
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
