//! Arguments of `uaskit list`.

use super::machine::MachineArguments;
use clap::Args;
use std::path::PathBuf;

/// Show the USB drives of this machine: transport, speed, disk, queue depth.
///
/// Prints one line per drive, below its bus and hubs. Changes nothing and does not need root. `uaskit why` explains why a
/// drive uses its transport.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uaskit list
  uaskit list --all --json
  uaskit list --udev | sudo tee /etc/udev/rules.d/70-uaskit.rules
  uaskit list --record machine.tree

Exit codes: 0 ok, 1 failed, 2 usage.")]
pub(crate) struct ListArguments {
    /// Show all USB devices, not only drives.
    #[arg(long)]
    pub(crate) all: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print a udev rule that gives the user at the console access to these drives.
    #[arg(long)]
    pub(crate) udev: bool,
    /// Write what `list` and `why` read of this machine into a file that you can send; serial numbers are left out.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) machine: MachineArguments,
}
