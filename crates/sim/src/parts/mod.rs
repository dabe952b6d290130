//! The catalogue of parts: files that say what a part is made of, each number with its unit and where it is from.
//!
//! ```toml
//! [flash]
//! read = { value = 50, unit = "us", source = "data sheet of the flash, tR" }
//! program = { value = 1.3, unit = "ms", fitted = ["P021"] }
//! ```
//!
//! A part belongs to a [`Kind`], which says what it must tell ([`schema`](self)); a number that is missing, unknown, or of a
//! unit that it cannot have is refused with file, line and what was expected. Parts that come with the project are in
//! `crates/sim/parts`, a folder for each kind; others of the same name take their place.
//!
//! Left out: reading files, which whoever has files does; drivers, controllers, bridges and power, which come when worlds are
//! made of them.
//!
//! Always true: what is in the catalogue can be built.

mod quantity;
mod schema;

pub use quantity::{Constant, Origin};

use crate::drive::disk::DiskPart;
use crate::drive::solid::SolidPart;
use std::collections::BTreeMap;
use std::fmt;

/// What kind of part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A hard disk.
    Hdd,
    /// A solid-state drive.
    Ssd,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Hdd, Self::Ssd];

    /// The folder that its files are in.
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Hdd => "hdd",
            Self::Ssd => "ssd",
        }
    }

    /// The kind whose files are in this folder.
    pub fn of_folder(folder: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.folder() == folder)
    }
}

/// What a part is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Make {
    /// A hard disk.
    Hdd(DiskPart),
    /// A solid-state drive.
    Ssd(SolidPart),
}

/// A part of the catalogue.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// What it is called on command lines: the name of its file.
    pub name: String,
    /// What it is, in a line.
    pub title: String,
    /// What it is made of.
    pub make: Make,
    /// Its numbers, as its file gives them.
    pub constants: Vec<Constant>,
}

impl Entry {
    /// What kind of part it is.
    pub const fn kind(&self) -> Kind {
        match self.make {
            Make::Hdd(_) => Kind::Hdd,
            Make::Ssd(_) => Kind::Ssd,
        }
    }
}

/// Parts by kind and name.
#[derive(Clone, Debug, PartialEq)]
pub struct Catalogue {
    entries: BTreeMap<(Kind, String), Entry>,
}

/// Why a file is no part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartError {
    /// The file, as whoever read it calls it.
    pub file: String,
    /// The line, from 1; none where the file as a whole is meant.
    pub line: Option<usize>,
    /// What is wrong, and what was expected.
    pub what: String,
}

/// The parts that come with the project: kind, name, text.
const BUILT_IN: [(Kind, &str, &str); 7] = [
    (Kind::Hdd, "disk-5400", include_str!("../../parts/hdd/disk-5400.toml")),
    (Kind::Hdd, "disk-7200", include_str!("../../parts/hdd/disk-7200.toml")),
    (Kind::Ssd, "dramless-240", include_str!("../../parts/ssd/dramless-240.toml")),
    (Kind::Ssd, "m4-256", include_str!("../../parts/ssd/m4-256.toml")),
    (Kind::Ssd, "vertex3-240", include_str!("../../parts/ssd/vertex3-240.toml")),
    (Kind::Ssd, "vertex3-20-240", include_str!("../../parts/ssd/vertex3-20-240.toml")),
    (Kind::Ssd, "vertex3-maxiops-128", include_str!("../../parts/ssd/vertex3-maxiops-128.toml")),
];

impl Catalogue {
    /// The parts that come with the project.
    ///
    /// # Errors
    /// If one of them is no part: a fault of ours, which a test looks for.
    pub fn built_in() -> Result<Self, PartError> {
        let mut catalogue = Self { entries: BTreeMap::new() };
        for (kind, name, text) in BUILT_IN {
            let file = format!("{}/{name}.toml", kind.folder());
            catalogue.add(kind, name, &file, text)?;
        }
        Ok(catalogue)
    }

    /// Adds a part from the text of its file, in place of one of the same name.
    ///
    /// # Errors
    /// See [`PartError`]; `file` is what it calls the file.
    pub fn add(&mut self, kind: Kind, name: &str, file: &str, text: &str) -> Result<(), PartError> {
        let entry = schema::read(kind, name, text).map_err(|fault| PartError {
            file: file.into(),
            line: fault.line,
            what: fault.what,
        })?;
        self.entries.insert((kind, name.into()), entry);
        Ok(())
    }

    /// A part.
    pub fn find(&self, kind: Kind, name: &str) -> Option<&Entry> {
        self.entries.get(&(kind, name.to_owned()))
    }

    /// All parts, by kind and name.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hdd => "hard disk",
            Self::Ssd => "solid-state drive",
        })
    }
}

impl fmt::Display for PartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}, line {line}: {}", self.file, self.what),
            None => write!(f, "{}: {}", self.file, self.what),
        }
    }
}

impl std::error::Error for PartError {}

#[cfg(test)]
mod tests;
