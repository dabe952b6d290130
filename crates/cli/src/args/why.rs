//! Arguments of `uaskit why`.

use super::machine::MachineArguments;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// Say why a USB drive is on UAS, on BOT, or on nothing, and what can be done about it.
///
/// Asks what Linux asks, in the same order, and shows for each question what was read and where. Looks at link, power,
/// serial numbers, TRIM, SMART and resets as well. Nothing is changed; the output names what only root can read.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uaskit why
  uaskit why /dev/sdb
  uaskit why 2-1.4 --json
  sudo uaskit why 174c:55aa
  uaskit why --from dmesg.txt lsusb-t.txt
  dmesg | uaskit why --from - --markdown
  uaskit why --simulate geerling

Exit codes: 0 ok, 1 failed, 2 usage, 4 unknown: the report lacks what decides.")]
pub(crate) struct WhyArguments {
    /// A port (2-1.4), a disk (/dev/sdb), or an id (174c:55aa); every drive unless given.
    pub(crate) drive: Option<OsString>,
    /// Ask it of parts that you do not own: a setup of `uaskit compare`, by name or as a file. UAS or not, and what it would bring.
    #[arg(long, value_name = "SETUP", conflicts_with_all = ["drive", "log", "from"])]
    pub(crate) simulate: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    /// Read the kernel's log from a file, as dmesg or journalctl -k prints it. With --from it is that machine's.
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// Print Markdown to paste into an issue or a forum.
    #[arg(long, conflicts_with_all = ["json", "simulate"])]
    pub(crate) markdown: bool,
    #[command(flatten)]
    pub(crate) machine: MachineArguments,
}
