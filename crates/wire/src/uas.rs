//! USB Attached SCSI: the six information units (UAS-2 clause 6, T10/2229-D).
//!
//! Every unit begins with a four-byte header: id, reserved, tag. Multi-byte fields are big-endian. The tag
//! is the stream id on SuperSpeed. Each IU has its own type; [`StatusIu`] is what a host may find on
//! the status pipe, [`CommandPipeIu`] what a device may find on the command pipe.
//! Left out: nothing that UAS-2 defines on these pipes.

mod command;
mod header;
mod ready;
mod response;
mod sense;
mod task_management;

pub use command::{CommandIu, TaskAttribute};
pub use header::{HEADER_LEN, IuId};
pub use ready::ReadyIu;
pub use response::{ResponseCode, ResponseIu};
pub use sense::SenseIu;
pub use task_management::{TaskManagementFunction, TaskManagementIu};

use crate::DecodeError;
use crate::usb::Direction;
use core::fmt;
use header::header;

code! {
    /// Purpose of an endpoint, as in its pipe usage descriptor (UAS-2 clause 5.2.3).
    #[doc(alias = "bPipeID")]
    pub enum PipeUsage: u8 {
        /// COMMAND and TASK MANAGEMENT IUs.
        Command = 0x01 => "command pipe",
        /// SENSE, RESPONSE and READY IUs.
        Status = 0x02 => "status pipe",
        /// Data of reads.
        DataIn = 0x03 => "data-in pipe",
        /// Data of writes.
        DataOut = 0x04 => "data-out pipe",
    }
}

impl PipeUsage {
    /// The direction that an endpoint of this usage must have; `None` if the usage is unknown.
    pub const fn direction(self) -> Option<Direction> {
        match self {
            Self::Command | Self::DataOut => Some(Direction::Out),
            Self::Status | Self::DataIn => Some(Direction::In),
            Self::Unknown(_) => None,
        }
    }
}

/// IU that the device sends on the status pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusIu<'a> {
    /// A command ended.
    Sense(SenseIu<'a>),
    /// A task management function ended, or an IU was not taken.
    Response(ResponseIu),
    /// Without streams: data of a command moves next.
    Ready(ReadyIu),
}

impl<'a> StatusIu<'a> {
    /// Decodes the one IU that a transfer on the status pipe brought.
    #[inline(always)]
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let &[id, ..] = header(bytes)?;
        match IuId::from(id) {
            IuId::Sense => SenseIu::decode(bytes).map(Self::Sense),
            IuId::Response => ResponseIu::decode(bytes).map(Self::Response),
            IuId::ReadReady | IuId::WriteReady => ReadyIu::decode(bytes).map(Self::Ready),
            _ => Err(DecodeError::Invalid { field: "IU ID on the status pipe", value: id.into() }),
        }
    }

    /// The command or function that the IU is about.
    pub const fn tag(&self) -> u16 {
        match self {
            Self::Sense(iu) => iu.tag,
            Self::Response(iu) => iu.tag,
            Self::Ready(iu) => iu.tag,
        }
    }
}

impl fmt::Display for StatusIu<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sense(iu) => iu.fmt(f),
            Self::Response(iu) => iu.fmt(f),
            Self::Ready(iu) => iu.fmt(f),
        }
    }
}

/// IU that the host sends on the command pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandPipeIu<'a> {
    /// A command begins.
    Command(CommandIu<'a>),
    /// A task management function begins.
    TaskManagement(TaskManagementIu),
}

impl<'a> CommandPipeIu<'a> {
    /// Decodes the one IU that a transfer on the command pipe brought.
    #[inline(always)]
    pub fn decode(bytes: &'a [u8]) -> Result<Self, CommandPipeError> {
        let &[id, _, high, low] = header(bytes).map_err(|error| CommandPipeError { tag: None, error })?;
        let decoded = match IuId::from(id) {
            IuId::Command => CommandIu::decode(bytes).map(Self::Command),
            IuId::TaskManagement => TaskManagementIu::decode(bytes).map(Self::TaskManagement),
            _ => Err(DecodeError::Invalid { field: "IU ID on the command pipe", value: id.into() }),
        };
        decoded.map_err(|error| CommandPipeError { tag: Some(u16::from_be_bytes([high, low])), error })
    }

    /// The tag that names the command or the function.
    pub const fn tag(&self) -> u16 {
        match self {
            Self::Command(iu) => iu.tag,
            Self::TaskManagement(iu) => iu.tag,
        }
    }
}

impl fmt::Display for CommandPipeIu<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(iu) => iu.fmt(f),
            Self::TaskManagement(iu) => iu.fmt(f),
        }
    }
}

/// Bytes on the command pipe that are not an IU the device takes.
///
/// The device answers them with a RESPONSE IU, [`ResponseCode::InvalidIu`], under the tag if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandPipeError {
    /// The tag, if at least the header was there.
    pub tag: Option<u16>,
    /// Error in the IU.
    pub error: DecodeError,
}

impl fmt::Display for CommandPipeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tag {
            Some(tag) => write!(f, "invalid IU tag {tag}: {}", self.error),
            None => write!(f, "invalid IU without a tag: {}", self.error),
        }
    }
}

impl core::error::Error for CommandPipeError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.error)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::scsi::Status;
    use proptest::prelude::*;
    use std::string::ToString;

    #[test]
    fn the_status_pipe_carries_sense_response_and_ready() {
        let good = [0x03, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let sense = SenseIu { tag: 5, status_qualifier: 0, status: Status::Good, sense: &[] };
        assert_eq!(StatusIu::decode(&good), Ok(StatusIu::Sense(sense)));

        let response = ResponseIu::new(6, ResponseCode::TaskManagementSucceeded);
        assert_eq!(StatusIu::decode(&[0x04, 0, 0, 6, 0, 0, 0, 8]), Ok(StatusIu::Response(response)));

        let read = ReadyIu { direction: Direction::In, tag: 7 };
        assert_eq!(StatusIu::decode(&[0x06, 0, 0, 7]), Ok(StatusIu::Ready(read)));
        let write = ReadyIu { direction: Direction::Out, tag: 8 };
        assert_eq!(StatusIu::decode(&[0x07, 0, 0, 8]), Ok(StatusIu::Ready(write)));
        assert_eq!(StatusIu::Ready(write).tag(), 8);
        assert_eq!(StatusIu::Ready(write).to_string(), "WRITE READY tag 8");
    }

    #[test]
    fn a_command_on_the_status_pipe_is_invalid() {
        let error = DecodeError::Invalid { field: "IU ID on the status pipe", value: 1 };
        assert_eq!(StatusIu::decode(&[0x01; 32]), Err(error));
    }

    #[test]
    fn the_command_pipe_carries_commands_and_task_management() {
        let mut bytes = [0; 32];
        bytes[0] = 0x01;
        bytes[3] = 0x21;
        let iu = CommandPipeIu::decode(&bytes).unwrap();
        assert!(matches!(iu, CommandPipeIu::Command(CommandIu { tag: 0x21, .. })));

        bytes[0] = 0x05;
        bytes[4] = 0x08;
        let iu = CommandPipeIu::decode(&bytes).unwrap();
        assert!(matches!(iu, CommandPipeIu::TaskManagement(TaskManagementIu { tag: 0x21, .. })));
        assert_eq!(iu.to_string(), "TASK MANAGEMENT tag 33 LOGICAL UNIT RESET");
    }

    #[test]
    fn a_short_command_still_reports_its_tag() {
        for len in 4..32 {
            let mut bytes = [0; 32];
            bytes[..4].copy_from_slice(&[0x01, 0, 0x12, 0x34]);
            let error = DecodeError::Truncated { needed: 32, got: len };
            let expected = CommandPipeError { tag: Some(0x1234), error };
            assert_eq!(CommandPipeIu::decode(&bytes[..len]), Err(expected));
        }
    }

    #[test]
    fn less_than_a_header_has_no_tag() {
        for len in 0..4 {
            let error = DecodeError::Truncated { needed: 4, got: len };
            let expected = CommandPipeError { tag: None, error };
            assert_eq!(CommandPipeIu::decode(&[0x01, 0, 0, 1][..len]), Err(expected));
            assert_eq!(StatusIu::decode(&[0x03, 0, 0, 1][..len]), Err(error));
        }
    }

    #[test]
    fn an_unknown_iu_still_reports_its_tag() {
        let error = DecodeError::Invalid { field: "IU ID on the command pipe", value: 0x7f };
        let expected = CommandPipeError { tag: Some(2), error };
        assert_eq!(CommandPipeIu::decode(&[0x7f, 0, 0, 2]), Err(expected));
        assert_eq!(expected.to_string(), "invalid IU tag 2: IU ID on the command pipe cannot be 0x7f");
    }

    #[test]
    fn each_pipe_has_its_direction() {
        let directions = [1, 2, 3, 4, 5].map(|id| PipeUsage::from(id).direction());
        let (out, in_) = (Some(Direction::Out), Some(Direction::In));
        assert_eq!(directions, [out, in_, in_, out, None]);
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_say_why(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let status_tag = StatusIu::decode(&bytes).map(|iu| iu.tag()).ok();
            let command_tag = match CommandPipeIu::decode(&bytes) {
                Ok(iu) => Some(iu.tag()),
                Err(error) => error.tag,
            };
            let tag = bytes.get(2..4).map(|tag| u16::from_be_bytes([tag[0], tag[1]]));
            prop_assert!(status_tag.is_none() || status_tag == tag);
            prop_assert_eq!(command_tag, tag);
        }
    }
}
