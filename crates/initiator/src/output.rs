//! What a transport wants of the bus and of the memory around it.
//!
//! Small messages (CBW, IUs) travel inside an output; payload is named as a range of a command's buffer. Outputs are to
//! be carried out in order. Each [`Output::Submit`] brings one completion, also when it is cancelled or the device
//! goes; each [`Output::Request`] brings one answer. There is at most one request under way at a time.

use crate::{CommandId, Outcome};
use bus::{Direction, EndpointAddress, Fifo, Pipe, TransferId};
use core::fmt;
use units::{ByteRange, Instant};
use wire::bot::{ClassRequest, Csw};
use wire::uas::CommandIu;
use wire::usb::{EndpointFeature, Recipient, RequestKind, SetupPacket, StandardRequest};

/// Bytes of the longest message that travels in an output: a COMMAND IU with the longest command block.
pub const INLINE_BYTES_MAX: usize = CommandIu::LEN + crate::CDB_BYTES_MAX - 16;

/// An In transfer into a buffer that brought this many bytes or fewer is shown to the transport along with its
/// completion: a device that skips the data phase sends its 13-byte CSW there.
pub const PEEK_BYTES_MAX: usize = Csw::LEN;

/// Bytes that are small enough to be carried in an output.
#[derive(Clone, Copy, PartialEq, Eq)]
// Moved in whole words, as it is made.
#[repr(align(8))]
pub struct Inline {
    bytes: [u8; INLINE_BYTES_MAX],
    len: u8,
}

/// A range of one command's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Whose buffer.
    pub command: CommandId,
    /// Which bytes of it.
    pub range: ByteRange,
}

/// Names a list of pieces, [`crate::Transport::pieces`], while a transfer that says so is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackId(pub u32);

/// Where the bytes of a transfer come from or go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Out: these bytes.
    Inline(Inline),
    /// In: whatever comes is handed in with the completion.
    Message,
    /// In or Out: bytes of a command's buffer. Said once per command at most: memory may change hands.
    Buffer(Piece),
    /// In or Out: bytes of several commands' buffers, one after another. Only Turbo says this.
    Pieces(PackId),
}

/// A transfer that the host wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Comes back in its completion.
    pub id: TransferId,
    /// Where it goes.
    pub pipe: Pipe,
    /// Bytes to send, or room.
    pub length: u32,
    /// The bytes.
    pub payload: Payload,
}

/// Names a request to the bus.
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

/// Something to be done on the bus that is not a bulk transfer.
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
    /// Streams on three endpoints. Answered with how many there are.
    AllocateStreams {
        /// Which endpoints.
        endpoints: StreamEndpoints,
        /// How many are wanted.
        wanted: u16,
    },
    /// A reset of the port. When it is done the device is configured as before, the interface is at alternate setting
    /// 0, has no streams, and every transfer has completed.
    ResetPort,
}

/// What came of a [`BusRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusAnswer {
    /// It was done.
    Done,
    /// [`BusRequest::AllocateStreams`] was done: streams 1 to this many are there.
    Streams(u16),
    /// The device answered with a stall.
    Stalled,
    /// It could not be done, or the device did not answer in time.
    Failed,
}

/// Something that a transport asks its driver to do. To be carried out in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Offer a transfer to the bus. Answered by [`crate::Transport::handle_completion`].
    Submit(Transfer),
    /// Take a transfer back. Answered by its completion; if that is on its way already, nothing more comes of it.
    Cancel(TransferId),
    /// Something else to do on the bus. Answered by [`crate::Transport::handle_answer`].
    Request(RequestId, BusRequest),
    /// A command has ended. Its buffer is the caller's again.
    Finished(CommandId, Outcome),
}

/// Outputs that wait to be polled.
pub(crate) type Outputs = Fifo<Output>;

/// When [`crate::Transport::handle_timeout`] has something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// The time.
    pub at: Instant,
    /// What is waited for.
    pub reason: DeadlineReason,
}

/// What a transport waits for with a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineReason {
    /// A command to end.
    Command(CommandId),
    /// BOT: the answer to REQUEST SENSE.
    Sense,
    /// UAS: data that a GOOD status says has been sent, or that the COMMAND IU is through which it answers.
    DataAfterStatus(CommandId),
    /// UAS: the answer to ABORT TASK.
    AbortTask,
    /// UAS: the answer to LOGICAL UNIT RESET.
    LogicalUnitReset,
    /// UAS: the answer to I_T NEXUS RESET.
    NexusReset,
    /// A halt to be cleared.
    ClearHalt,
    /// BOT: the answer to Mass Storage Reset.
    MassStorageReset,
    /// The port reset, and the device to be set up again.
    PortReset,
    /// Turbo: a neighbour of the requests at hand.
    LookAhead,
}

impl Inline {
    /// Carries `bytes`; what is past [`INLINE_BYTES_MAX`] is cut.
    pub fn new(bytes: &[u8]) -> Self {
        let len = bytes.len().min(INLINE_BYTES_MAX);
        let mut inline = Self { bytes: [0; INLINE_BYTES_MAX], len: len as u8 };
        inline.bytes[..len].copy_from_slice(&bytes[..len]);
        inline
    }

    /// Carries `head` and then the first `tail_len` bytes of `tail`, which is zero past them.
    #[inline]
    pub(crate) fn of_parts(head: &[u8; CommandIu::LEN], tail: &[u8; 16], tail_len: usize) -> Self {
        let mut bytes = [0; INLINE_BYTES_MAX];
        bytes[..CommandIu::LEN].copy_from_slice(head);
        bytes[CommandIu::LEN..].copy_from_slice(tail);
        Self { bytes, len: (CommandIu::LEN + tail_len) as u8 }
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl BusRequest {
    /// The setup packet, for the requests that are one control transfer without a data stage.
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
            Self::ClearHalt => "a halt to be cleared",
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
