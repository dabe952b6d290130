//! Arguments of `uaskit list`.

use super::machine::MachineArguments;
use clap::Args;
use std::path::PathBuf;

/// Show the USB drives of this machine: transport, speed, disk, queue depth.
///
/// One line is one drive, below the bus and the hubs that it is plugged into. Nothing is changed, and root is not
/// needed. `uaskit why` says for one of them why it is on this transport and not on the other.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uaskit list
  uaskit list --all --json
  uaskit list --udev | sudo tee /etc/udev/rules.d/70-uaskit.rules
  uaskit list --record machine.tree

Exit codes: 0 ok, 1 failed, 2 usage.")]
pub(crate) struct ListArguments {
    /// Show every USB device, not drives alone.
    #[arg(long)]
    pub(crate) all: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the udev rule that lets the user at the console open these drives.
    #[arg(long, conflicts_with_all = ["all", "json", "record"])]
    pub(crate) udev: bool,
    /// Write what `list` and `why` read of this machine into a file, without serial numbers, to be sent to others.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["all", "json"])]
    pub(crate) record: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) machine: MachineArguments,
}
