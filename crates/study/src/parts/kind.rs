//! Kinds of parts, and the folders of their files.
//!
//! Left out: what a part of a kind is made of. Always true: a folder belongs to one kind.

use std::fmt;

/// The kind of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartKind {
    /// A USB-to-SATA bridge.
    Bridge,
    /// A USB host controller.
    Controller,
    /// A driver, with the system's stack below the application.
    Driver,
    /// A hard disk.
    Hdd,
    /// A host: what its processor takes.
    Host,
    /// A host: its processor.
    Hub,
    /// A link.
    Link,
    /// The power draws of the parts of a machine.
    Power,
    /// A host adapter for drives without USB.
    Sata,
    /// A solid-state drive.
    Ssd,
}

impl PartKind {
    /// All kinds.
    pub const ALL: [Self; 10] = [
        Self::Bridge,
        Self::Controller,
        Self::Driver,
        Self::Hdd,
        Self::Host,
        Self::Hub,
        Self::Link,
        Self::Power,
        Self::Sata,
        Self::Ssd,
    ];

    /// Returns the directory of its files.
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Bridge => "bridges",
            Self::Controller => "controllers",
            Self::Driver => "drivers",
            Self::Hdd => "hdd",
            Self::Host => "hosts",
            Self::Hub => "hubs",
            Self::Link => "links",
            Self::Power => "power",
            Self::Sata => "sata",
            Self::Ssd => "ssd",
        }
    }

    /// Finds the kind of a directory.
    pub fn of_folder(folder: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.folder() == folder)
    }
}

impl fmt::Display for PartKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bridge => "bridge",
            Self::Controller => "host controller",
            Self::Driver => "driver",
            Self::Hdd => "hard disk",
            Self::Host => "host",
            Self::Hub => "hub",
            Self::Link => "link",
            Self::Power => "power",
            Self::Sata => "SATA adapter",
            Self::Ssd => "solid-state drive",
        })
    }
}
