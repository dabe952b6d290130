//! The device side of the stream protocol.
//!
//! The firmware chooses the stream; it is asked when the host starts one itself.

use super::{FromDevice, FromHost, StreamField, Violation};
use bus::StreamId;
use std::collections::BTreeSet;

/// State of the device side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceState {
    /// The host never had a buffer, or it broke the protocol.
    Disabled,
    /// No stream is current.
    Idle,
    /// This stream was proposed, and the host has not answered.
    StartStream(StreamId),
    /// This stream is current, and it is the device's turn.
    MoveData(StreamId),
    /// This stream is current, and the host has not answered the last burst.
    BurstSent(StreamId),
}

/// The device side of a pipe.
#[derive(Clone, Debug)]
pub struct Device {
    state: DeviceState,
    /// Streams for which the host had no buffers, since it last said that there are new ones. At
    /// most as many as the pipe has streams.
    refused: BTreeSet<StreamId>,
    is_broken: bool,
}

impl Device {
    /// Creates the device side of a pipe in the Disabled state.
    pub const fn new() -> Self {
        Self { state: DeviceState::Disabled, refused: BTreeSet::new(), is_broken: false }
    }

    /// Returns its state.
    pub const fn state(&self) -> DeviceState {
        self.state
    }

    /// Returns the current stream.
    pub const fn current(&self) -> Option<StreamId> {
        match self.state {
            DeviceState::MoveData(stream) | DeviceState::BurstSent(stream) => Some(stream),
            _ => None,
        }
    }

    /// Returns whether a stream may be proposed now.
    pub fn may_propose(&self, stream: StreamId) -> bool {
        self.state == DeviceState::Idle && (self.refused.is_empty() || !self.refused.contains(&stream))
    }

    /// Proposes a stream. Returns the packet to send; nothing while another one is current, or if
    /// this one was refused.
    pub fn propose(&mut self, stream: StreamId) -> Option<FromDevice> {
        if !self.may_propose(stream) {
            return None;
        }
        self.state = DeviceState::StartStream(stream);
        Some(FromDevice::Erdy(stream))
    }

    /// Repeats a proposal after a timeout: the host may be past the last burst, and then repeats
    /// its state. Returns the packet to send.
    pub const fn propose_again(&mut self) -> Option<FromDevice> {
        let (DeviceState::BurstSent(stream) | DeviceState::StartStream(stream)) = self.state else {
            return None;
        };
        self.state = DeviceState::StartStream(stream);
        Some(FromDevice::Erdy(stream))
    }

    /// Sends a burst of the current stream, perhaps its last. Returns the packet to send, if it is
    /// the device's turn.
    pub const fn burst(&mut self, ends: bool) -> Option<FromDevice> {
        let DeviceState::MoveData(stream) = self.state else { return None };
        self.state = DeviceState::BurstSent(stream);
        Some(FromDevice::Burst { stream, ends })
    }

    /// Drops a proposal: the host continues an earlier stream.
    pub const fn forget_proposal(&mut self) {
        if matches!(self.state, DeviceState::StartStream(_)) {
            self.state = DeviceState::Idle;
        }
    }

    /// Returns to Move Data for a retry of the last burst.
    pub const fn retry(&mut self) {
        if let DeviceState::BurstSent(stream) = self.state {
            self.state = DeviceState::MoveData(stream);
        }
    }

    /// Ends the current stream without data. Returns the packet to send, if it is the device's
    /// turn.
    pub const fn decline(&mut self) -> Option<FromDevice> {
        let DeviceState::MoveData(stream) = self.state else { return None };
        self.state = DeviceState::Idle;
        Some(FromDevice::Nrdy(StreamField::Stream(stream)))
    }

    /// Handles a packet. `is_ready` returns whether the firmware would move a stream. Returns the
    /// packet to send, if any.
    ///
    /// # Errors
    /// If the host could not have sent it; the pipe is then disabled.
    pub fn receive(
        &mut self,
        packet: FromHost,
        is_ready: impl Fn(StreamId) -> bool,
    ) -> Result<Option<FromDevice>, Violation> {
        match (self.state, packet) {
            (DeviceState::Disabled, FromHost::Prime) if self.is_broken => Err(Violation),
            // A proposal that crossed it is dropped by both sides; a current stream has lost its
            // buffers.
            (_, FromHost::Prime) => {
                self.state = DeviceState::Idle;
                self.refused.clear();
                Ok(Some(FromDevice::Nrdy(StreamField::Prime)))
            }
            (DeviceState::Idle | DeviceState::StartStream(_), FromHost::Move(stream)) => {
                Ok(self.go_along(stream, is_ready(stream)))
            }
            (DeviceState::StartStream(stream), FromHost::NoStream) => {
                self.state = DeviceState::Idle;
                self.refused.insert(stream);
                Ok(Some(FromDevice::Nrdy(StreamField::NoStream)))
            }
            (DeviceState::BurstSent(current), FromHost::Move(stream)) if current == stream => {
                self.state = DeviceState::MoveData(stream);
                Ok(None)
            }
            (DeviceState::BurstSent(current), FromHost::Last(stream)) if current == stream => {
                self.state = DeviceState::Idle;
                Ok(None)
            }
            _ => {
                self.state = DeviceState::Disabled;
                self.is_broken = true;
                Err(Violation)
            }
        }
    }

    /// Handles a stream that the host moves: the proposed one, or one of the host's choice.
    fn go_along(&mut self, stream: StreamId, ready: bool) -> Option<FromDevice> {
        // It has buffers for it now, and need not say so once more.
        self.refused.remove(&stream);
        if self.state == DeviceState::StartStream(stream) || ready {
            self.state = DeviceState::MoveData(stream);
            return None;
        }
        self.state = DeviceState::Idle;
        Some(FromDevice::Nrdy(StreamField::Stream(stream)))
    }
}

impl Default for Device {
    fn default() -> Self {
        Self::new()
    }
}
