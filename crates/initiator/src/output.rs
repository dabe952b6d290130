//! The outputs of a transport: what it asks of the bus and of the caller's buffers.
//!
//! Small messages (CBW, IUs) are inline in an output; payload is a range of a command's buffer.
//! Outputs must be carried out in order. Each [`Output::Submit`] is answered by one completion,
//! also after a cancel or a disconnect; each [`Output::Request`] by one answer. At most one request
//! is outstanding.

use crate::{CommandId, Outcome};
use bus::{Direction, EndpointAddress, Fifo, Pipe, TransferId};
use core::fmt;
use units::{ByteRange, Instant};
use wire::bot::{ClassRequest, Csw};
use wire::uas::CommandIu;
use wire::usb::{EndpointFeature, Recipient, RequestKind, SetupPacket, StandardRequest};

/// Length of the longest inline message: a COMMAND IU with the longest command block.
pub const INLINE_BYTES_MAX: usize = CommandIu::LEN + crate::CDB_BYTES_MAX - 16;

/// An In transfer into a buffer that received at most this many bytes is passed to the transport
/// with its completion: a device that skips the data phase sends its 13-byte CSW there.
pub const PEEK_BYTES_MAX: usize = Csw::LEN;

/// A message small enough to be inline in an output.
#[derive(Clone, Copy, PartialEq, Eq)]
// Moved in whole words, as it is made.
#[repr(align(8))]
pub struct Inline {
    bytes: [u8; INLINE_BYTES_MAX],
    len: u8,
}

/// A range of one command's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferRange {
    /// The command that owns the buffer.
    pub command: CommandId,
    /// The bytes of it.
    pub range: ByteRange,
}

/// Identifies a list of buffer ranges, [`crate::Transport::pieces`], while a transfer that uses it
/// is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackId(pub u32);

/// The memory of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Out: these bytes.
    Inline(Inline),
    /// In: the received bytes are passed in with the completion.
    Message,
    /// In or Out: bytes of a command's buffer. At most once per command: the memory may change
    /// owner.
    Buffer(BufferRange),
    /// In or Out: the concatenation of several commands' buffers. Turbo only.
    Pieces(PackId),
}

/// A transfer that the host submits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Returned in its completion.
    pub id: TransferId,
    /// Its pipe.
    pub pipe: Pipe,
    /// Bytes to send, or the size of the receive buffer.
    pub length: u32,
    /// Its memory.
    pub payload: Payload,
}

/// Identifies a request to the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u32);

/// The three endpoints whose streams are allocated together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamEndpoints {
    /// Status pipe.
    pub status: EndpointAddress,
    /// Data-in pipe.
    pub data_in: EndpointAddress,
    /// Data-out pipe.
    pub data_out: EndpointAddress,
}

/// A bus operation other than a bulk transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusRequest {
    /// CLEAR FEATURE (ENDPOINT_HALT), and whatever the host side of the endpoint needs with it.
    ClearHalt(EndpointAddress),
    /// Bulk-Only Mass Storage Reset (Bulk-Only Transport 1.0 clause 3.1).
    MassStorageReset {
        /// The interface.
        interface: u8,
    },
    /// SET INTERFACE.
    SelectAlternate {
        /// The interface.
        interface: u8,
        /// The alternate setting.
        alternate: u8,
    },
    /// Allocate streams on three endpoints. Answered with the number granted.
    AllocateStreams {
        /// The endpoints.
        endpoints: StreamEndpoints,
        /// Number of streams wanted.
        wanted: u16,
    },
    /// Reset the port. Afterwards the device is configured as before, the interface is at alternate
    /// setting 0 without streams, and every transfer has completed.
    ResetPort,
}

/// The result of a [`BusRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusAnswer {
    /// Success.
    Done,
    /// [`BusRequest::AllocateStreams`] succeeded: streams 1 to this number exist.
    Streams(u16),
    /// The device stalled the request.
    Stalled,
    /// It failed, or the device did not answer in time.
    Failed,
}

/// An action for the driver of a transport, to be carried out in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Submit a transfer. Answered by [`crate::Transport::handle_completion`].
    Submit(Transfer),
    /// Cancel a transfer. Answered by its completion, whose status may be another if it completed
    /// first.
    Cancel(TransferId),
    /// Carry out a bus operation. Answered by [`crate::Transport::handle_answer`].
    Request(RequestId, BusRequest),
    /// A command ended. Its buffer is the caller's again.
    Finished(CommandId, Outcome),
}

/// Outputs not polled yet.
pub(crate) type Outputs = Fifo<Output>;

/// When [`crate::Transport::handle_timeout`] must be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// The time.
    pub at: Instant,
    /// The reason for it.
    pub reason: DeadlineReason,
}

/// An event that a transport awaits with a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineReason {
    /// The end of a command.
    Command(CommandId),
    /// BOT: the answer to REQUEST SENSE.
    Sense,
    /// UAS: data outstanding after a GOOD status, or the completion of the COMMAND IU.
    DataAfterStatus(CommandId),
    /// UAS: the answer to ABORT TASK.
    AbortTask,
    /// UAS: the answer to LOGICAL UNIT RESET.
    LogicalUnitReset,
    /// UAS: the answer to I_T NEXUS RESET.
    NexusReset,
    /// The clearing of a halt.
    ClearHalt,
    /// BOT: the answer to Mass Storage Reset.
    MassStorageReset,
    /// The port reset and the set-up of the device after it.
    PortReset,
    /// Turbo: a neighbouring request to merge with.
    LookAhead,
}

impl Inline {
    /// Copies `bytes`, truncated to [`INLINE_BYTES_MAX`].
    pub fn new(bytes: &[u8]) -> Self {
        let len = bytes.len().min(INLINE_BYTES_MAX);
        let mut inline = Self { bytes: [0; INLINE_BYTES_MAX], len: len as u8 };
        inline.bytes[..len].copy_from_slice(&bytes[..len]);
        inline
    }

    /// Copies `head` and then the first `tail_len` bytes of `tail`, which is zero past them.
    #[inline]
    pub(crate) fn of_parts(head: &[u8; CommandIu::LEN], tail: &[u8; 16], tail_len: usize) -> Self {
        let mut bytes = [0; INLINE_BYTES_MAX];
        bytes[..CommandIu::LEN].copy_from_slice(head);
        bytes[CommandIu::LEN..].copy_from_slice(tail);
        Self { bytes, len: (CommandIu::LEN + tail_len) as u8 }
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl BusRequest {
    /// Returns the setup packet of a request that is one control transfer without data stage.
    pub fn setup(&self) -> Option<SetupPacket> {
        let standard = |recipient, request: StandardRequest, value, index: u8| SetupPacket {
            direction: Direction::Out,
            kind: RequestKind::Standard,
            recipient,
            request: request.into(),
            value,
            index: index.into(),
            length: 0,
        };
        match *self {
            Self::ClearHalt(endpoint) => {
                let halt = EndpointFeature::Halt.into();
                Some(standard(Recipient::Endpoint, StandardRequest::ClearFeature, halt, endpoint.into()))
            }
            Self::MassStorageReset { interface } => {
                Some(ClassRequest::MassStorageReset { interface }.encode())
            }
            Self::SelectAlternate { interface, alternate } => {
                let request = StandardRequest::SetInterface;
                Some(standard(Recipient::Interface, request, alternate.into(), interface))
            }
            Self::AllocateStreams { .. } | Self::ResetPort => None,
        }
    }
}

impl fmt::Debug for Inline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Inline({:02x?})", self.as_bytes())
    }
}

impl fmt::Display for DeadlineReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Command(id) => return write!(f, "the end of {id}"),
            Self::Sense => "the answer to REQUEST SENSE",
            Self::DataAfterStatus(id) => return write!(f, "the data of {id} after its status"),
            Self::AbortTask => "the answer to ABORT TASK",
            Self::LogicalUnitReset => "the answer to LOGICAL UNIT RESET",
            Self::NexusReset => "the answer to I_T NEXUS RESET",
            Self::ClearHalt => "a halt to clear",
            Self::MassStorageReset => "the answer to Mass Storage Reset",
            Self::PortReset => "the port reset",
            Self::LookAhead => "a neighbouring request",
        })
    }
}

impl fmt::Display for BusRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClearHalt(endpoint) => write!(f, "clear the halt of endpoint {endpoint}"),
            Self::MassStorageReset { .. } => f.write_str("mass storage reset"),
            Self::SelectAlternate { alternate, .. } => write!(f, "select alternate setting {alternate}"),
            Self::AllocateStreams { wanted, .. } => write!(f, "allocate {wanted} streams"),
            Self::ResetPort => f.write_str("reset the port"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_one_control_transfer_have_their_setup_packet() {
        let halted = EndpointAddress::at::<1>(Direction::In);
        let bytes = |request: BusRequest| request.setup().map(|setup| setup.encode());
        assert_eq!(bytes(BusRequest::ClearHalt(halted)), Some([0x02, 0x01, 0, 0, 0x81, 0, 0, 0]));
        let reset = BusRequest::MassStorageReset { interface: 3 };
        assert_eq!(bytes(reset), Some([0x21, 0xff, 0, 0, 3, 0, 0, 0]));
        let select = BusRequest::SelectAlternate { interface: 3, alternate: 1 };
        assert_eq!(bytes(select), Some([0x01, 0x0b, 1, 0, 3, 0, 0, 0]));
        assert_eq!(bytes(BusRequest::ResetPort), None);
    }
}
