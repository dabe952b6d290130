//! Arguments of the subcommands: one description for parsing, help, completions and man pages.
//!
//! Modules here import nothing of the commands. A value is checked here if it can be checked alone, and options that do not
//! go together in [`together`]; files, addresses and parts are checked where they are used.

mod bench;
mod capture;
mod check;
mod compare;
mod control;
mod decode;
mod diff;
mod grid;
mod history;
mod lie;
mod list;
mod machine;
mod merge;
mod parts;
pub(crate) mod quantity;
mod record;
mod save;
mod serve;
pub(crate) mod together;
mod validate;
mod why;

pub(crate) use self::bench::{BenchArguments, PatternArgument, RouteArgument};
pub(crate) use self::capture::CaptureArguments;
pub(crate) use self::check::CheckArguments;
pub(crate) use self::compare::{CaptureKind, CompareArguments, ControllerArgument, LinkArgument};
pub(crate) use self::control::{ControlArguments, ControlCommandArgument};
pub(crate) use self::decode::DecodeArguments;
pub(crate) use self::diff::DiffArguments;
pub(crate) use self::grid::GridArguments;
pub(crate) use self::history::HistoryArguments;
pub(crate) use self::lie::LieArgument;
pub(crate) use self::list::ListArguments;
pub(crate) use self::machine::MachineArguments;
pub(crate) use self::merge::MergeArguments;
pub(crate) use self::parts::{Choice, ComparedTransport, OsArgument};
pub(crate) use self::record::RecordArguments;
pub(crate) use self::save::SaveArguments;
pub(crate) use self::serve::{
    BlockSizeArgument, DoorbellsArgument, DriveArguments, FaultArgument, ServeArguments, ShortDataArgument,
    SpeedArgument, TransportArgument, drive_description, with_absolute_paths,
};
pub(crate) use self::validate::ValidateArguments;
pub(crate) use self::why::WhyArguments;
