//! The host's end of the stream protocol.
//!
//! Which streams have buffers is the host controller's to know: it has an array of them in memory.
//! It is asked at the one moment at which it matters, when the device proposes a stream.

use super::{FromDevice, FromHost, StreamField, Violation};
use bus::StreamId;

/// Where the host's end is.
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

/// The host's end of a pipe.
#[derive(Clone, Debug)]
pub struct Host {
    state: HostState,
    /// The stream that moved last.
    last: Option<StreamId>,
    /// Buffers have come that the device was not notified of.
    has_pending: bool,
    /// Software has stopped the endpoint: nothing is started.
    is_held: bool,
    /// What the device has proposed meanwhile.
    proposed: Option<StreamId>,
    /// Something the device could not have sent has come; the pipe stays as it is until it is
    /// reset.
    is_broken: bool,
}

impl Host {
    /// The end of a pipe without buffers.
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

    /// Where it is.
    pub const fn state(&self) -> HostState {
        self.state
    }

    /// The current stream.
    pub const fn current(&self) -> Option<StreamId> {
        match self.state {
            HostState::MoveData(stream) => Some(stream),
            _ => None,
        }
    }

    /// Software has given buffers for `stream`. What to send, if anything.
    pub fn arm(&mut self, stream: StreamId) -> Option<FromHost> {
        match self.state {
            HostState::Disabled if self.is_broken => None,
            HostState::Disabled | HostState::Idle if self.is_held => {
                self.has_pending = true;
                None
            }
            HostState::Disabled => Some(self.prime()),
            // The device may not be reported that this one has buffers again: it need not ask for
            // what moves anyway.
            HostState::Idle if self.last == Some(stream) => Some(self.begin(stream)),
            HostState::Idle => Some(self.prime()),
            HostState::MoveData(current) if current == stream => None,
            HostState::PrimePipe | HostState::StartStream | HostState::MoveData(_) => {
                self.has_pending = true;
                None
            }
        }
    }

    /// Whether nothing that the host said waits for an answer.
    pub const fn is_settled(&self) -> bool {
        !matches!(self.state, HostState::PrimePipe | HostState::StartStream)
    }

    /// Whether buffers have come that the device was not notified of.
    pub const fn has_pending(&self) -> bool {
        self.has_pending
    }

    /// Starts nothing any more until [`Self::release`]; what is in flight goes on.
    pub const fn hold(&mut self) {
        self.is_held = true;
    }

    /// Starts again. What to send, if anything, to a pipe that is not in Move Data.
    pub fn release(&mut self, is_armed: impl Fn(StreamId) -> bool) -> Option<FromHost> {
        self.is_held = false;
        match (self.state, self.proposed.take()) {
            (HostState::Idle, Some(stream)) => Some(self.answer(stream, is_armed(stream))),
            (HostState::Disabled, _) if self.is_broken => None,
            (HostState::Idle | HostState::Disabled, _) if self.has_pending => Some(self.prime()),
            _ => None,
        }
    }

    /// Leaves a stream that is current and of which nothing is in progress, since its buffers were
    /// cancelled and others have come. The device, whose turn it may be, goes along.
    pub fn leave(&mut self) -> Option<FromHost> {
        matches!(self.state, HostState::MoveData(_)).then(|| self.prime())
    }

    /// What the host said last has not been answered. What to say instead: to Prime and to a
    /// refusal it is Prime, upon which the device forgets what it has proposed.
    pub fn repeat(&mut self) -> Option<FromHost> {
        (!self.is_settled()).then(|| self.prime())
    }

    /// A packet has come. `is_armed` says whether a stream has buffers, for the current one after
    /// what has come. What to send, in order.
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
            // It was reset after a halt that the device has not released. What is proposed now is
            // forgotten with that, or when the host says Prime.
            (HostState::Disabled, FromDevice::Erdy(_)) if self.is_held && !self.is_broken => Ok([None; 2]),
            (HostState::Idle, FromDevice::Erdy(stream)) => {
                Ok([Some(self.answer(stream, is_armed(stream))), None])
            }
            // It has crossed what the host sent, or comes after an answer that was lost. The device
            // forgets it when what the host sends arrives.
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

    /// Goes along with what the device proposes, or refuses it.
    const fn answer(&mut self, stream: StreamId, is_armed: bool) -> FromHost {
        if is_armed {
            return self.begin(stream);
        }
        self.state = HostState::StartStream;
        FromHost::NoStream
    }

    /// Enters Idle, and leaves it at once if buffers are pending: one Prime for each time that Idle
    /// is entered.
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
