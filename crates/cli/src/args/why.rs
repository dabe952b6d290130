//! Arguments of `uaskit why`.

use super::machine::MachineArguments;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// Explain why a USB drive uses UAS, BOT or no driver, and what to change.
///
/// Applies Linux's rules in the kernel's order, and shows for each what was read and where. Also checks link, power, serial
/// numbers, TRIM, SMART and resets. Changes nothing and does not need root; the output names what only root can read.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uaskit why
  uaskit why /dev/sdb
  uaskit why 2-1.4 --json
  sudo uaskit why 174c:55aa
  uaskit why --from dmesg.txt lsusb-t.txt
  dmesg | uaskit why --from - --markdown
  uaskit why --simulate geerling

Exit codes: 0 ok, 1 failed, 2 usage, 4 unknown: the report lacks the deciding facts.")]
pub(crate) struct WhyArguments {
    /// Port (2-1.4), disk (/dev/sdb) or USB id (174c:55aa). Default: every drive.
    pub(crate) drive: Option<OsString>,
    /// Answer for a simulated setup of `uaskit compare`, by name or file, and predict each transport's throughput.
    #[arg(long, value_name = "SETUP")]
    pub(crate) simulate: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    /// Read the kernel log from a file: output of dmesg or journalctl -k. With --from, the log of that machine.
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// Print Markdown to paste into an issue or a forum.
    #[arg(long)]
    pub(crate) markdown: bool,
    #[command(flatten)]
    pub(crate) machine: MachineArguments,
}
