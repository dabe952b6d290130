//! The subcommands, and the arguments of each.
//!
//! One description for parsing, help, completions and man pages. Modules of arguments do not import this one.

use crate::args::{
    BenchArguments, CheckArguments, CompareArguments, ControlArguments, DecodeArguments, DiffArguments,
    HistoryArguments, ListArguments, MergeArguments, RecordArguments, ServeArguments, ValidateArguments,
    WhyArguments,
};
use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// USB Attached SCSI in user space: serve, measure, explain, simulate and decode USB drives.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(Box<ServeArguments>),
    Control(ControlArguments),
    Bench(Box<BenchArguments>),
    Check(CheckArguments),
    Record(RecordArguments),
    Compare(Box<CompareArguments>),
    Merge(MergeArguments),
    Validate(ValidateArguments),
    Decode(DecodeArguments),
    History(HistoryArguments),
    Diff(DiffArguments),
    List(ListArguments),
    Why(WhyArguments),
    /// Print shell completions.
    Completions {
        /// Shell.
        shell: clap_complete::Shell,
    },
    /// Print the main man page, or write all man pages into a directory.
    Man {
        /// Directory for all man pages.
        directory: Option<PathBuf>,
    },
}
