//! Arguments that select a machine, for `list` and `why`.

use clap::Args;
use std::path::PathBuf;

/// The machine to inspect.
#[derive(Debug, Args)]
pub(crate) struct MachineArguments {
    /// Read a report instead of this machine: a file of `list --record`, output of dmesg, lsusb, lspci and the like, an
    /// archive or a directory of them, `-` for stdin. Several files are one report.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) from: Vec<PathBuf>,
}
