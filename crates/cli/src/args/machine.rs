//! Arguments that select a machine, for `list` and `why`.

use clap::Args;
use std::path::PathBuf;

/// The machine to inspect.
#[derive(Debug, Args)]
pub(crate) struct MachineArguments {
    /// Read a report in place of this machine: a file of `list --record`, output of dmesg, lsusb, lspci and similar, an
    /// archive or a directory of such files, or - for stdin. Several files form one report.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) from: Vec<PathBuf>,
}
