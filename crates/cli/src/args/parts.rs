//! Arguments of `uaskit compare` that select a setup and its parts.

use clap::{Args, ValueEnum};

/// Heading of the help for parts.
pub(super) const PARTS: &str = "Parts";

/// Heading of the help for what is measured.
pub(super) const MEASURED: &str = "What is measured";

#[derive(Debug, Args)]
#[command(next_help_heading = PARTS)]
pub(crate) struct Choice {
    /// A built-in setup (geerling, hardware-fr, myce, renesas, toms), or a file of one. Default: myce.
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "raw")]
    pub(crate) setup: Option<String>,
    /// The host.
    #[arg(long, value_name = "NAME", conflicts_with = "raw")]
    pub(crate) host: Option<String>,
    /// Only variants of this system.
    #[arg(long, value_enum, conflicts_with = "raw")]
    pub(crate) os: Option<OsArgument>,
    /// The driver, in place of those of the setup.
    #[arg(long, value_name = "NAME", conflicts_with = "raw")]
    pub(crate) driver: Option<String>,
    /// A hub between root port and drive; repeat it for several in series.
    #[arg(long, value_name = "NAME", conflicts_with = "raw")]
    pub(crate) hub: Vec<String>,
    /// The bridge.
    #[arg(long, value_name = "NAME", conflicts_with = "raw")]
    pub(crate) bridge: Option<String>,
    /// The drive.
    #[arg(long, value_name = "NAME", conflicts_with = "raw")]
    pub(crate) drive: Option<String>,
    /// Only variants that run on these transports.
    #[arg(long, value_enum, value_delimiter = ',', conflicts_with = "raw")]
    pub(crate) transport: Vec<ComparedTransport>,
    /// A workload by name, as `uaskit bench` has them, in place of the usual ones.
    #[arg(long, help_heading = MEASURED, value_name = "NAME", conflicts_with_all = ["raw", "block"])]
    pub(crate) workload: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OsArgument {
    Windows7,
    Windows8,
    Linux,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ComparedTransport {
    Sata,
    Bot,
    Turbo,
    #[value(alias = "uasp")]
    Uas,
}
