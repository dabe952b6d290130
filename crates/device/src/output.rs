//! Outputs of a device for its bus and for the memory around it.
//!
//! Small messages (IUs, CSW) travel inside an output; parameter data and block data are named by the command that
//! owns them. Always true: outputs are carried out in order; a transfer that is cancelled before it was polled is
//! never shown; all others end with a completion.

use crate::command::CommandId;
use crate::medium::MediumRequest;
use alloc::boxed::Box;
use alloc::vec::Vec;
use bus::{EndpointAddress, Fifo, Front, Pipe, TransferId};
use units::ByteRange;
use wire::scsi::sense::Sense;
use wire::uas::SenseIu;

/// Bytes of the longest message that a device sends by itself: a SENSE IU with every descriptor that sense data has
/// here. It fits the 112 bytes that Linux has room for.
pub const INLINE_BYTES_MAX: usize = SenseIu::LEN + Sense::DESCRIPTOR_LEN_MAX;

/// Bytes that are stored inline: a SENSE IU without sense data, and anything shorter.
const SHORT_BYTES_MAX: usize = SenseIu::LEN;

/// A message of the device: small enough to be carried in an output, or, with sense data, behind it.
#[derive(Clone, PartialEq, Eq)]
pub struct Inline(Message);

/// In whole words, as it is handed on several times: a processor waits where it reads in other pieces than were written
/// just before.
#[derive(Clone, PartialEq, Eq)]
#[repr(u64)]
enum Message {
    Short { len: u64, bytes: Words },
    Long(Box<[u8]>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(align(8))]
struct Words([u8; SHORT_BYTES_MAX]);

/// Where the bytes of a device transfer come from or go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// In: these bytes. Where the transfer is longer than the bytes of its payload, zeros follow them; so for all three.
    Inline(Inline),
    /// In: parameter data of a command, as [`crate::Device::reply`] returns it.
    Reply(CommandId),
    /// In or Out: bytes of a command's buffer.
    Buffer(CommandId, ByteRange),
    /// Out: whatever comes is handed in with the completion.
    Message,
    /// Out: whatever comes is thrown away.
    Nowhere,
}

/// A transfer that the device is ready for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceTransfer {
    /// Comes back in its completion.
    pub id: TransferId,
    /// Where it goes.
    pub pipe: Pipe,
    /// Bytes to send, or room.
    pub length: u32,
    /// In: whether the host's transfer ends with it (a short or zero-length packet).
    pub ends: bool,
    /// The bytes.
    pub payload: Payload,
}

/// Outputs that wait to be polled, and the endpoints that are halted by them.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    queue: Fifo<Output>,
    halted: Vec<EndpointAddress>,
}

impl Outputs {
    #[inline(always)]
    pub(crate) fn push_with(&mut self, make: impl FnOnce() -> Output) {
        self.queue.push_with(make);
    }

    #[inline]
    pub(crate) fn push_back(&mut self, output: Output) {
        self.queue.push_back(output);
    }

    #[inline(always)]
    pub(crate) fn front(&mut self) -> Option<Front<'_, Output>> {
        self.queue.front_entry()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Halts an endpoint.
    pub(crate) fn halt(&mut self, endpoint: EndpointAddress) {
        if !self.halted.contains(&endpoint) {
            self.halted.push(endpoint);
        }
        self.push_back(Output::Halt(endpoint));
    }

    /// Clears the halt of an endpoint.
    pub(crate) fn clear_halt(&mut self, endpoint: EndpointAddress) {
        self.halted.retain(|&halted| halted != endpoint);
        self.push_back(Output::ClearHalt(endpoint));
    }

    /// Clears all halts.
    pub(crate) fn clear_halts(&mut self) {
        self.queue.extend(self.halted.drain(..).map(Output::ClearHalt));
    }

    /// Halted endpoints, as GET_STATUS reports them.
    pub(crate) fn halted(&self) -> &[EndpointAddress] {
        &self.halted
    }

    /// Takes a transfer back. One that the driver has not polled yet is never shown to it, since what it would send may
    /// be gone by then.
    pub(crate) fn cancel(&mut self, id: TransferId) {
        let is_it = |output: &Output| matches!(output, Output::Transfer(it) if it.id == id);
        let position = self.queue.iter().position(is_it);
        match position {
            Some(position) => drop(self.queue.remove(position)),
            None => self.push_back(Output::Cancel(id)),
        }
    }
}

/// Something that a device asks its driver to do. To be carried out in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Offer a transfer to the bus. Answered by [`crate::Device::handle_completion`].
    Transfer(DeviceTransfer),
    /// Take a transfer back. Answered by its completion.
    Cancel(TransferId),
    /// End whatever the host has on a pipe: In short, Out swallowed.
    Finish(Pipe),
    /// The same for both data pipes of a stream.
    FinishBoth(Pipe, Pipe),
    /// Halt an endpoint: what the host has there, and brings, stalls.
    Halt(EndpointAddress),
    /// The endpoint's halt is over.
    ClearHalt(EndpointAddress),
    /// Reserve a buffer of so many bytes for a command.
    Acquire(CommandId, u32),
    /// The command's buffer is free again.
    Release(CommandId),
    /// Something for a medium. Answered by [`crate::Device::handle_medium`].
    Medium(MediumRequest),
}

impl Inline {
    /// Carries `bytes`; what is past [`INLINE_BYTES_MAX`] is cut.
    #[inline]
    pub fn new(bytes: &[u8]) -> Self {
        let bytes = &bytes[..bytes.len().min(INLINE_BYTES_MAX)];
        if bytes.len() > SHORT_BYTES_MAX {
            return Self(Message::Long(bytes.into()));
        }
        let mut short = [0; SHORT_BYTES_MAX];
        short[..bytes.len()].copy_from_slice(bytes);
        Self(Message::Short { len: bytes.len() as u64, bytes: Words(short) })
    }

    /// Carries a SENSE IU without sense data.
    #[inline]
    pub(crate) const fn status(iu: [u8; SenseIu::LEN]) -> Self {
        Self(Message::Short { len: SenseIu::LEN as u64, bytes: Words(iu) })
    }

    /// The bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Message::Short { len, bytes } => &bytes.0[..(*len as usize).min(SHORT_BYTES_MAX)],
            Message::Long(bytes) => bytes,
        }
    }
}

impl core::fmt::Debug for Inline {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Inline({:02x?})", self.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_fits_a_line_of_the_cache() {
        assert!(size_of::<Output>() <= 64, "{} bytes", size_of::<Output>());
    }

    #[test]
    fn a_short_message_and_a_long_one_are_carried_whole() {
        let bytes: [u8; INLINE_BYTES_MAX] = core::array::from_fn(|at| at as u8);
        for len in [0, 1, SHORT_BYTES_MAX, SHORT_BYTES_MAX + 1, INLINE_BYTES_MAX] {
            assert_eq!(Inline::new(&bytes[..len]).as_bytes(), &bytes[..len]);
        }
    }
}
