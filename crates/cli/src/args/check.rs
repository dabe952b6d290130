//! Arguments of `uaskit check`.

use super::serve::SpeedArgument;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// Check whether a USB drive follows the standards: descriptors, BOT, UAS, SCSI.
///
/// TARGET is a USB port (2-1.4, see `uaskit list`) or a USB id (174c:55aa). uaskit's own drivers detach the kernel's driver and
/// reattach it on exit. The tests only read: they send commands that a host sends, and requests that a correct host would
/// never send, of which a drive must recover. Nothing is written. Each test has its clause, and says what a failure means
/// to the owner. What a standard leaves open is a note. The drive must not be in use.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uaskit check 2-1.4
  uaskit check --virtual
  uaskit check 2-1.4 --only bot-case-5 --steps
  uaskit check 2-1.4 --junit results.xml
  uaskit check --list

Exit codes: 0 no test failed, 1 a test failed, 2 usage, 3 refused: the drive is in use.")]
pub(crate) struct CheckArguments {
    /// USB port or id.
    #[arg(conflicts_with = "is_virtual")]
    pub(crate) target: Option<OsString>,
    /// Check uaskit's own drive in memory, without hardware.
    #[arg(long = "virtual")]
    pub(crate) is_virtual: bool,
    /// Link speed of the virtual drive.
    #[arg(long, value_enum, default_value_t = SpeedArgument::Super, requires = "is_virtual")]
    pub(crate) speed: SpeedArgument,
    /// Run only this test, or the tests whose names begin so; repeatable.
    #[arg(long, value_name = "TEST")]
    pub(crate) only: Vec<String>,
    /// List the tests with their clauses, and check nothing.
    #[arg(long, conflicts_with_all = ["target", "is_virtual", "junit"])]
    pub(crate) list: bool,
    /// Show each step of tests that found something: transfers and control requests with their bytes.
    #[arg(long)]
    pub(crate) steps: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the results as JUnit XML, which continuous integration reads.
    #[arg(long, value_name = "FILE.xml")]
    pub(crate) junit: Option<PathBuf>,
}
