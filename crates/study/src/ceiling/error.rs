//! Why a load has no figures: invalid parameters, or a failed simulation.

use super::load::BLOCK_BYTES;
use initiator::Outcome;
use sim::machine::xhci::PowerOnError;
use sim::machine::{PlugError, StopReason};
use std::fmt;

/// Why a load has no figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CeilingError {
    /// Partial blocks, too many blocks, or no commands.
    Load,
    /// Too many bytes per command, with the maximum.
    TooLong(u32),
    /// Not more commands than are in flight at once.
    TooFew(u32),
    /// The drive lacks the transport.
    Plug(PlugError),
    /// The drive cannot be enumerated on its controller.
    PowerOn(PowerOnError),
    /// Several drives need a controller.
    OneDrive,
    /// The simulation stopped.
    Stopped(StopReason),
    /// A command failed.
    Failed(Outcome),
    /// Data was read from or written to the wrong place.
    Contents,
    /// No more events while commands are in flight.
    Stuck,
}

impl fmt::Display for CeilingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load => write!(
                f,
                "a command needs at least one whole block of {BLOCK_BYTES} bytes, and a run at least one command"
            ),
            Self::TooLong(most) => write!(f, "a command moves at most {most} bytes"),
            Self::TooFew(in_flight) => {
                write!(
                    f,
                    "measure more than {in_flight} commands, which may be in flight and complete together"
                )
            }
            Self::Plug(error) => error.fmt(f),
            Self::PowerOn(error) => error.fmt(f),
            Self::OneDrive => f.write_str("several drives or hubs need a controller"),
            Self::Stopped(stopped) => stopped.fmt(f),
            Self::Failed(outcome) => {
                write!(f, "a command failed without injected faults (simulator bug): {outcome:?}")
            }
            Self::Contents => f.write_str("a block holds data of another place (simulator bug)"),
            Self::Stuck => f.write_str("the simulation has stopped with commands in flight (simulator bug)"),
        }
    }
}

impl std::error::Error for CeilingError {}
