//! Arguments of `uaskit record`.

use super::serve::SpeedArgument;
use clap::Args;
use std::ffi::OsString;

/// Record an enclosure, to be presented by a virtual drive: print its descriptors and SCSI pages as TOML.
///
/// TARGET is a USB port (2-1.4, see `uaskit list`) or a USB id (174c:55aa). The record has descriptors and strings; of each
/// logical unit INQUIRY, vital product data, mode and log pages, and the commands that it supports. Serial numbers are replaced
/// by letters A and digits 0, and world-wide names cut to their company. `uaskit serve --as` presents the record. Nothing is
/// written to the drive, which must not be in use. uaskit's own drivers detach the kernel's driver and reattach it on exit.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uaskit record 2-1.4 > box.toml
  uaskit record --virtual
  uaskit serve --as box.toml --ram 1G --usbredir unix:box.sock

Exit codes: 0 ok, 1 failed, 2 usage, 3 refused: the drive is in use.")]
pub(crate) struct RecordArguments {
    /// USB port or id.
    pub(crate) target: Option<OsString>,
    /// Record uaskit's own drive in memory, without hardware.
    #[arg(long = "virtual")]
    pub(crate) is_virtual: bool,
    /// Link speed of the virtual drive.
    #[arg(long, value_enum, default_value_t = SpeedArgument::Super)]
    pub(crate) speed: SpeedArgument,
    /// Keep serial numbers and world-wide names: the record identifies this very drive.
    #[arg(long)]
    pub(crate) keep_serials: bool,
}
