//! Arguments of `uaskit control`: the socket, and one command.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Eject and insert media of a served drive, or print its status.
///
/// The drive accepts commands if it is served with `--control`, and media can be ejected and inserted if it is served with
/// `--removable`. A host can prevent the removal of a medium that it uses; see `eject --force`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uaskit serve card.img --removable --usbredir unix:drive.sock --control unix:drive.ctl
  uaskit control unix:drive.ctl eject
  uaskit control unix:drive.ctl insert other.img
  uaskit control unix:drive.ctl status --json

Exit codes: 0 ok, 1 failed, 2 usage.")]
pub(crate) struct ControlArguments {
    /// Control socket of the drive: unix:PATH.
    pub(crate) address: String,
    #[command(subcommand)]
    pub(crate) command: ControlCommandArgument,
    /// Print the reply as one JSON object.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ControlCommandArgument {
    /// Print the status of the drive and its logical units.
    Status,
    /// Insert an image into a logical unit without a medium.
    Insert {
        /// Disk image or block device.
        image: PathBuf,
        /// Logical unit.
        #[arg(long, default_value_t = 0)]
        lun: u8,
    },
    /// Flush and eject the medium of a logical unit.
    Eject {
        /// Logical unit.
        #[arg(long, default_value_t = 0)]
        lun: u8,
        /// Eject even if the host prevents removal. Data that the host has not written yet are
        /// lost.
        #[arg(long)]
        force: bool,
    },
    /// Read the size of the image again, and report a change to the host.
    Resize {
        /// Logical unit.
        #[arg(long, default_value_t = 0)]
        lun: u8,
    },
}
