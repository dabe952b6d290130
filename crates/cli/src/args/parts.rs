//! Arguments of `uaskit compare` that select a setup and its parts.

use clap::{Args, ValueEnum};

/// Heading of the help for parts.
pub(super) const PARTS: &str = "Parts";

/// Heading of the help for what is measured.
pub(super) const MEASURED: &str = "Measurement";

#[derive(Debug, Args)]
#[command(next_help_heading = PARTS)]
pub(crate) struct Choice {
    /// Built-in setup (geerling, hardware-fr, myce, renesas, toms), or a setup file. Default: myce.
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) setup: Option<String>,
    /// Host, in place of that of the setup.
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// Only variants of the setup with this operating system.
    #[arg(long, value_enum)]
    pub(crate) os: Option<OsArgument>,
    /// Driver, in place of those of the setup.
    #[arg(long, value_name = "NAME")]
    pub(crate) driver: Option<String>,
    /// Hub between root port and drive; repeat it for several in series.
    #[arg(long, value_name = "NAME")]
    pub(crate) hub: Vec<String>,
    /// Bridge, in place of that of the setup.
    #[arg(long, value_name = "NAME")]
    pub(crate) bridge: Option<String>,
    /// Drive, in place of that of the setup.
    #[arg(long, value_name = "NAME")]
    pub(crate) drive: Option<String>,
    /// Only variants of the setup with these transports.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) transport: Vec<ComparedTransport>,
    /// Workload by name (see `uaskit bench --help`), in place of the default ones.
    #[arg(long, help_heading = MEASURED, value_name = "NAME")]
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
