//! Arguments of `uaskit check`.

use super::lie::{LieArgument, lie};
use super::quantity;
use super::serve::SpeedArgument;
use clap::Args;
use drive::Fault;
use std::ffi::OsString;
use std::path::PathBuf;
use units::ByteCount;

/// Check whether a USB drive follows the standards: descriptors, BOT, UAS, SCSI.
///
/// TARGET is a USB port (2-1.4, see `uaskit list`) or a USB id (174c:55aa). uaskit's own drivers detach the kernel's driver and
/// reattach it on exit. The tests only read: they send commands that a host sends, and requests that a correct host would
/// never send, of which a drive must recover. Nothing is written without --write or --whole. Each test has its clause, and says
/// what a failure means to the owner. What a standard leaves open is a note. The drive must not be in use.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uaskit check 2-1.4
  uaskit check --virtual
  uaskit check 2-1.4 --only bot-case-5 --steps
  uaskit check 2-1.4 --junit results.xml
  uaskit check --list
  uaskit check 2-1.4 --write=2-1.4 --size 4G
  uaskit check 2-1.4 --whole=2-1.4 --resume stick.run
  uaskit check --virtual --size 1T --lie wrap=64M --whole --only whole-probe

Exit codes: 0 no test failed, 1 a test failed, 2 usage, 3 refused: the drive is in use, 130 interrupted.")]
pub(crate) struct CheckArguments {
    /// USB port or id.
    pub(crate) target: Option<OsString>,
    /// Check uaskit's own drive in memory, without hardware.
    #[arg(long = "virtual")]
    pub(crate) is_virtual: bool,
    /// Link speed of the virtual drive.
    #[arg(long, value_enum, default_value_t = SpeedArgument::Super)]
    pub(crate) speed: SpeedArgument,
    /// Size that the virtual drive announces (default: 16M); of a drive, how much of it --write overwrites (default: 1G).
    #[arg(long, value_name = "SIZE", value_parser = quantity::size)]
    pub(crate) size: Option<ByteCount>,
    /// Have the virtual drive lie, to test the tests; repeatable. wrap=SIZE stores blocks past SIZE over
    /// others, drop=SIZE loses them, keep-after-unmap keeps data after UNMAP, capacity-off-by-one announces one block too many,
    /// stuck=LBA has eight blocks return one old block. At a power loss: ignore-flush and ignore-fua lose what should be
    /// durable, torn-writes leaves blocks that are partly new. Of what the drive sends: wrong-data, wrong-tag, wrong-status,
    /// wrong-residue, phase-error, wrong-response (to task management), stale-sense (over UAS), garbage-status. lost-attention
    /// reports no unit attention, hot a temperature that is too high.
    #[arg(long = "lie", value_name = "NAME[=VALUE]", value_parser = lie)]
    pub(crate) lies: Vec<LieArgument>,
    /// Inject a fault into the virtual drive, once at the Nth transfer of its kind (KIND@N), or at one in N on average
    /// (KIND/N:SEED); repeatable. The kinds are those of serve --fault for a drive.
    #[arg(long = "fault", value_name = "KIND@N")]
    pub(crate) faults: Vec<Fault>,
    /// Test data as well, after confirmation: overwrite the first blocks of TARGET, up to --size, and read them back. With
    /// --virtual no TARGET is needed, and the drive loses power as well.
    #[arg(long, value_name = "TARGET", num_args = 0..=1, require_equals = true)]
    pub(crate) write: Option<Option<OsString>>,
    /// Test the capacity as well, after confirmation: overwrite every block of TARGET, and read it back. All data are lost.
    /// With --virtual no TARGET is needed.
    #[arg(long, value_name = "TARGET", num_args = 0..=1, require_equals = true)]
    pub(crate) whole: Option<Option<OsString>>,
    /// Save the pass over all blocks to this file every half minute and at Ctrl-C, and continue the one in it, on the same drive. The
    /// file is removed when the pass is complete.
    #[arg(long, value_name = "FILE")]
    pub(crate) resume: Option<PathBuf>,
    /// Overwrite without confirmation.
    #[arg(long)]
    pub(crate) yes: bool,
    /// Run only this test, or the tests whose names begin so; repeatable.
    #[arg(long, value_name = "TEST")]
    pub(crate) only: Vec<String>,
    /// List the tests with their clauses, and check nothing.
    #[arg(long)]
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
