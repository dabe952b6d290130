//! Why a load came to no figures: it cannot be measured, or the world did not do what it should.

use super::BLOCK_BYTES;
use initiator::Outcome;
use sim::machine::xhci::PowerOnError;
use sim::machine::{PlugError, StopReason};
use std::fmt;

/// Why there are no figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CeilingError {
    /// No whole blocks, too many of them, or no commands.
    Load,
    /// More bytes in a command than these, which are the most.
    TooLong(u32),
    /// No more commands than these, which are under way at once.
    TooFew(u32),
    /// The drive has not the transport.
    Plug(PlugError),
    /// The drive cannot be brought up on its controller.
    PowerOn(PowerOnError),
    /// Several drives are behind a controller alone.
    OneDrive,
    /// The world does not go on.
    Stopped(StopReason),
    /// A command failed, which none should.
    Failed(Outcome),
    /// A drive has read, or was made to write, what belongs elsewhere.
    Contents,
    /// Nothing happens any more, and commands are under way.
    Stuck,
}

impl fmt::Display for CeilingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load => write!(
                f,
                "a command moves whole blocks of {BLOCK_BYTES} bytes, one at least, and there is at least one command"
            ),
            Self::TooLong(most) => write!(f, "one command moves {most} bytes at most"),
            Self::TooFew(under_way) => {
                write!(
                    f,
                    "{under_way} commands are under way at once and may end together, so that more have to be measured"
                )
            }
            Self::Plug(error) => error.fmt(f),
            Self::PowerOn(error) => error.fmt(f),
            Self::OneDrive => f.write_str("without a controller there is one drive, and no hub"),
            Self::Stopped(stopped) => stopped.fmt(f),
            Self::Failed(outcome) => write!(f, "a command failed in a world without faults: {outcome:?}"),
            Self::Contents => f.write_str("a block holds what belongs elsewhere: a fault of the model"),
            Self::Stuck => {
                f.write_str("nothing happens any more, and commands are under way: a fault of the model")
            }
        }
    }
}

impl std::error::Error for CeilingError {}
