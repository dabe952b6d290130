//! The host side of the stream protocol.
//!
//! The host controller knows which streams have buffers: its stream array is in memory. It is asked
//! only when the device proposes a stream.

use super::{FromDevice, FromHost, StreamField, Violation};
use bus::StreamId;

/// State of the host side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostState {
    /// No stream ever had a buffer, or the other end broke the protocol.
    Disabled,
    /// Prime was sent and is not answered.
    PrimePipe,
    /// No stream is current.
    Idle,
    /// The device's proposal was refused, and the refusal is not answered.
    StartStream,
    /// This stream is current.
    MoveData(StreamId),
}

/// The host side of a pipe.
#[derive(Clone, Debug)]
pub struct Host {
    state: HostState,
    /// The stream that moved last.
    last: Option<StreamId>,
    /// New buffers that the device was not notified of.
    has_pending: bool,
    /// Software has stopped the endpoint.
    is_held: bool,
    /// The stream that the device has proposed meanwhile.
    proposed: Option<StreamId>,
    /// The device violated the protocol; the pipe stays disabled until it is reset.
    is_broken: bool,
}

impl Host {
    /// Creates the host side of a pipe without buffers.
    pub const fn new() -> Self {
        Self {
            state: HostState::Disabled,
            last: None,
            has_pending: false,
            is_held: false,
            proposed: None,
            is_broken: false,
        }
    }

    /// Returns its state.
    pub const fn state(&self) -> HostState {
        self.state
    }

    /// Returns the current stream.
    pub const fn current(&self) -> Option<StreamId> {
        match self.state {
            HostState::MoveData(stream) => Some(stream),
            _ => None,
        }
    }

    /// Handles new buffers for `stream`. Returns the packet to send, if any.
    pub fn arm(&mut self, stream: StreamId) -> Option<FromHost> {
        match self.state {
            HostState::Disabled if self.is_broken => None,
            HostState::Disabled | HostState::Idle if self.is_held => {
                self.has_pending = true;
                None
            }
            HostState::Disabled => Some(self.prime()),
            // The device need not learn that this stream has buffers again: it moves anyway.
            HostState::Idle if self.last == Some(stream) => Some(self.begin(stream)),
            HostState::Idle => Some(self.prime()),
            HostState::MoveData(current) if current == stream => None,
            HostState::PrimePipe | HostState::StartStream | HostState::MoveData(_) => {
                self.has_pending = true;
                None
            }
        }
    }

    /// Returns whether no packet of the host waits for an answer.
    pub const fn is_settled(&self) -> bool {
        !matches!(self.state, HostState::PrimePipe | HostState::StartStream)
    }

    /// Returns whether there are new buffers that the device was not notified of.
    pub const fn has_pending(&self) -> bool {
        self.has_pending
    }

    /// Stops starting streams until [`Self::release`]; a current one continues.
    pub const fn hold(&mut self) {
        self.is_held = true;
    }

    /// Starts streams again. Returns the packet to send, if any, to a pipe that is not in Move
    /// Data.
    pub fn release(&mut self, is_armed: impl Fn(StreamId) -> bool) -> Option<FromHost> {
        self.is_held = false;
        match (self.state, self.proposed.take()) {
            (HostState::Idle, Some(stream)) => Some(self.answer(stream, is_armed(stream))),
            (HostState::Disabled, _) if self.is_broken => None,
            (HostState::Idle | HostState::Disabled, _) if self.has_pending => Some(self.prime()),
            _ => None,
        }
    }

    /// Leaves an idle current stream whose buffers were cancelled while others have come. The
    /// device follows.
    pub fn leave(&mut self) -> Option<FromHost> {
        matches!(self.state, HostState::MoveData(_)).then(|| self.prime())
    }

    /// Repeats an unanswered packet: Prime stands for Prime and for a refusal, and makes the device
    /// drop its proposal.
    pub fn repeat(&mut self) -> Option<FromHost> {
        (!self.is_settled()).then(|| self.prime())
    }

    /// Handles a packet. `is_armed` returns whether a stream has buffers, for the current one after
    /// this packet. Returns the packets to send, in order.
    ///
    /// # Errors
    /// If the device could not have sent it; the pipe is then disabled.
    pub fn receive(
        &mut self,
        packet: FromDevice,
        is_armed: impl Fn(StreamId) -> bool,
    ) -> Result<[Option<FromHost>; 2], Violation> {
        match (self.state, packet) {
            (HostState::Idle, FromDevice::Erdy(stream)) if self.is_held => {
                self.proposed = Some(stream);
                Ok([None; 2])
            }
            // It was reset after a halt that the device still has. The proposal is dropped with the
            // halt, or with the next Prime.
            (HostState::Disabled, FromDevice::Erdy(_)) if self.is_held && !self.is_broken => Ok([None; 2]),
            (HostState::Idle, FromDevice::Erdy(stream)) => {
                Ok([Some(self.answer(stream, is_armed(stream))), None])
            }
            // It crossed a packet of the host, or follows a lost answer. The device drops it when
            // the host's packet arrives.
            (HostState::PrimePipe | HostState::StartStream | HostState::MoveData(_), FromDevice::Erdy(_)) => {
                Ok([None; 2])
            }
            (HostState::PrimePipe, FromDevice::Nrdy(StreamField::Prime))
            | (HostState::StartStream, FromDevice::Nrdy(StreamField::NoStream)) => Ok([self.rest(), None]),
            (HostState::MoveData(current), FromDevice::Nrdy(StreamField::Stream(stream)))
                if current == stream =>
            {
                Ok([self.rest(), None])
            }
            (HostState::MoveData(current), FromDevice::Burst { stream, ends }) if current == stream => {
                if !ends && is_armed(stream) {
                    return Ok([Some(FromHost::Move(stream)), None]);
                }
                Ok([Some(FromHost::Last(stream)), self.rest()])
            }
            _ => {
                self.state = HostState::Disabled;
                self.is_broken = true;
                Err(Violation)
            }
        }
    }

    /// Accepts or refuses a proposal.
    const fn answer(&mut self, stream: StreamId, is_armed: bool) -> FromHost {
        if is_armed {
            return self.begin(stream);
        }
        self.state = HostState::StartStream;
        FromHost::NoStream
    }

    /// Enters Idle, and leaves it at once if new buffers are pending: one Prime per entry of Idle.
    fn rest(&mut self) -> Option<FromHost> {
        self.state = HostState::Idle;
        (self.has_pending && !self.is_held).then(|| self.prime())
    }

    const fn prime(&mut self) -> FromHost {
        self.state = HostState::PrimePipe;
        self.has_pending = false;
        self.proposed = None;
        FromHost::Prime
    }

    const fn begin(&mut self, stream: StreamId) -> FromHost {
        self.state = HostState::MoveData(stream);
        self.last = Some(stream);
        FromHost::Move(stream)
    }
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}
