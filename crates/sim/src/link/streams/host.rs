//! The host's end of the stream protocol.
//!
//! Which streams have buffers is the host controller's to know: it has an array of them in memory. It is asked at the one
//! moment at which it matters, when the device proposes a stream.

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
    /// Buffers have come that the device has not been told of.
    has_news: bool,
    /// Something the device could not have sent has come; the pipe stays as it is until it is made anew.
    is_broken: bool,
}

impl Host {
    /// The end of a pipe without buffers.
    pub const fn new() -> Self {
        Self { state: HostState::Disabled, last: None, has_news: false, is_broken: false }
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
            HostState::Disabled => self.prime(),
            // The device may not be told that this one has buffers again: it need not ask for what moves anyway.
            HostState::Idle if self.last == Some(stream) => self.begin(stream),
            HostState::Idle => self.prime(),
            HostState::MoveData(current) if current == stream => None,
            HostState::PrimePipe | HostState::StartStream | HostState::MoveData(_) => {
                self.has_news = true;
                None
            }
        }
    }

    /// A packet has come. `is_armed` says whether a stream has buffers, for the current one after what has come. What to
    /// send, in order.
    ///
    /// # Errors
    /// If the device could not have sent it; the pipe is then disabled.
    pub fn receive(
        &mut self,
        packet: FromDevice,
        is_armed: impl Fn(StreamId) -> bool,
    ) -> Result<[Option<FromHost>; 2], Violation> {
        match (self.state, packet) {
            (HostState::Idle, FromDevice::Erdy(stream)) if is_armed(stream) => Ok([self.begin(stream), None]),
            (HostState::Idle, FromDevice::Erdy(_)) => {
                self.state = HostState::StartStream;
                Ok([Some(FromHost::NoStream), None])
            }
            // It has crossed what the host sent. The device forgets it when that arrives.
            (HostState::PrimePipe | HostState::MoveData(_), FromDevice::Erdy(_)) => Ok([None; 2]),
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

    /// Enters Idle, and leaves it at once if there is news: one Prime for each time that Idle is entered.
    fn rest(&mut self) -> Option<FromHost> {
        self.state = HostState::Idle;
        if self.has_news { self.prime() } else { None }
    }

    const fn prime(&mut self) -> Option<FromHost> {
        self.state = HostState::PrimePipe;
        self.has_news = false;
        Some(FromHost::Prime)
    }

    const fn begin(&mut self, stream: StreamId) -> Option<FromHost> {
        self.state = HostState::MoveData(stream);
        self.last = Some(stream);
        Some(FromHost::Move(stream))
    }
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}
