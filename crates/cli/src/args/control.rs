//! Arguments of `uaskit control`: the socket, and one command.

use super::quantity;
use super::{FaultArgument, drive_description, with_absolute_paths};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Eject and insert media of served drives, attach and detach drives, inject faults, or print the status.
///
/// Drives accept commands if they are served with `--control`, and media can be ejected and inserted if a drive is served with
/// `--removable`. A host can prevent the removal of a medium that it uses; see `eject --force`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uaskit serve card.img --removable --usbredir unix:drive.sock --control unix:drive.ctl
  uaskit control unix:drive.ctl eject
  uaskit control unix:drive.ctl insert other.img
  uaskit control unix:drive.ctl status --json
  uaskit control unix:host.ctl attach image=stick.img,speed=high
  uaskit control unix:host.ctl detach --port 1
  uaskit control unix:host.ctl fault lose-event@1

Exit codes: 0 ok, 1 failed, 2 usage.")]
pub(crate) struct ControlArguments {
    /// Control socket of the server: unix:PATH.
    pub(crate) address: String,
    #[command(subcommand)]
    pub(crate) command: ControlCommandArgument,
    /// Print the reply as one JSON object.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ControlCommandArgument {
    /// Print the status of the drives and their logical units.
    Status,
    /// Insert an image into a logical unit without a medium.
    Insert {
        /// Disk image or block device.
        image: PathBuf,
        /// Logical unit.
        #[arg(long, default_value_t = 0, value_parser = quantity::within::<u8>(0, 255))]
        lun: u8,
        /// Root port of the drive, if there are several.
        #[arg(long, value_parser = quantity::within::<u8>(0, 255))]
        port: Option<u8>,
    },
    /// Flush and eject the medium of a logical unit.
    Eject {
        /// Logical unit.
        #[arg(long, default_value_t = 0, value_parser = quantity::within::<u8>(0, 255))]
        lun: u8,
        /// Root port of the drive, if there are several.
        #[arg(long, value_parser = quantity::within::<u8>(0, 255))]
        port: Option<u8>,
        /// Eject even if the host prevents removal. Data that the host has not written yet are
        /// lost.
        #[arg(long)]
        force: bool,
    },
    /// Read the size of the image again, and report a change to the host.
    Resize {
        /// Logical unit.
        #[arg(long, default_value_t = 0, value_parser = quantity::within::<u8>(0, 255))]
        lun: u8,
        /// Root port of the drive, if there are several.
        #[arg(long, value_parser = quantity::within::<u8>(0, 255))]
        port: Option<u8>,
    },
    /// Plug a drive into a free port of the controller (`--vfio-user`).
    Attach {
        /// The drive, described as by `serve --drive`.
        #[arg(value_name = "KEY=VALUE,...", value_parser = checked_description)]
        drive: String,
    },
    /// Pull a drive out of its port, and flush it.
    Detach {
        /// Root port of the drive, if there are several.
        #[arg(long, value_parser = quantity::within::<u8>(0, 255))]
        port: Option<u8>,
    },
    /// Inject a fault of a drive or of the controller, which counts from now on; see `serve --fault`.
    Fault {
        /// KIND@N or KIND/N:SEED.
        fault: FaultArgument,
        /// Root port of the drive, if there are several.
        #[arg(long, value_parser = quantity::within::<u8>(0, 255))]
        port: Option<u8>,
    },
}

/// Checks a description, and makes its paths independent of the folder.
fn checked_description(text: &str) -> Result<String, String> {
    drive_description(text).map(|_| with_absolute_paths(text))
}
