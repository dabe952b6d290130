//! The catalogue of parts: files that say what a part is made of, each number with its unit and where it is from.
//!
//! ```toml
//! [flash]
//! read = { value = 50, unit = "us", source = "data sheet of the flash, tR" }
//! program = { value = 1.3, unit = "ms", fitted = ["P021"] }
//! ```
//!
//! A part belongs to a [`PartKind`], which defines its fields ([`schema`](self)); a number that is missing, unknown, or of a
//! unit that it cannot have is refused with file, line and what was expected. Parts that come with the project are in
//! `crates/study/parts`, a folder for each kind; others of the same name take their place.
//!
//! Left out: reading files, which the caller does.
//!
//! Always true: what is in the catalogue can be built; a number belongs to a part, and to nothing that is measured.

mod activation;
mod bridge;
mod built_in;
mod controller;
mod drive;
mod driver;
mod entry;
mod fields;
mod kind;
mod link_limit;
mod machine;
mod quantity;
pub(crate) mod schema;
mod wires;

pub use activation::{Activation, Carried, Chain, ChainError, Matched, Reason, Rule};
pub use bridge::{BridgePart, BridgeSide, FirmwareCosts};
pub use controller::{ControllerPart, StreamsOf};
pub use driver::{DriverPart, DriverStreams, DriverTransport, Os, Packing, Pieces, Waits};
pub use entry::{Entry, PartModel};
pub use kind::PartKind;
pub use link_limit::{LinkLimit, NegotiatedLink};
pub use machine::{HostPart, PowerPart};
pub use quantity::{Constant, Origin};
pub use wires::{HubPart, LinkPart, SataPart};

use sim::drive::disk::DiskPart;
use sim::drive::solid::SolidPart;
use std::collections::BTreeMap;
use std::fmt;

/// Parts by kind and name.
#[derive(Clone, Debug, PartialEq)]
pub struct Catalogue {
    entries: BTreeMap<(PartKind, String), Entry>,
}

/// An error in the file of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartError {
    /// Name of the file.
    pub file: String,
    /// Line, from 1; none if it concerns the whole file.
    pub line: Option<usize>,
    /// The error, and what was expected.
    pub what: String,
}

impl Catalogue {
    /// Returns the built-in parts.
    ///
    /// # Errors
    ///
    /// If one is invalid, which a test excludes.
    pub fn built_in() -> Result<Self, PartError> {
        let mut catalogue = Self { entries: BTreeMap::new() };
        for &(kind, name, text) in built_in::BUILT_IN {
            let file = format!("{}/{name}.toml", kind.folder());
            catalogue.add(kind, name, &file, text)?;
        }
        Ok(catalogue)
    }

    /// Adds a part from the text of its file, replacing one of the same name.
    ///
    /// # Errors
    ///
    /// See [`PartError`]; `file` is the name of the file in it.
    pub fn add(&mut self, kind: PartKind, name: &str, file: &str, text: &str) -> Result<(), PartError> {
        let entry = schema::read(kind, name, text).map_err(|fault| PartError {
            file: file.into(),
            line: fault.line,
            what: fault.what,
        })?;
        self.entries.insert((kind, name.into()), entry);
        Ok(())
    }

    /// Returns the catalogue with one constant changed, in the unit of its file, to see its effect.
    ///
    /// # Errors
    ///
    /// If the part or constant does not exist, or the value is invalid.
    pub fn with(&self, kind: PartKind, name: &str, place: &str, value: f64) -> Result<Self, PartError> {
        let mut changed = self.clone();
        changed.change(kind, name, &[(place, value)])?;
        Ok(changed)
    }

    /// Changes constants of a part at once, in the units of its file.
    ///
    /// # Errors
    ///
    /// If the part or a constant does not exist, or a value is invalid; then nothing is changed.
    pub fn change(&mut self, kind: PartKind, name: &str, values: &[(&str, f64)]) -> Result<(), PartError> {
        let error = |line, what| PartError { file: format!("{}/{name}.toml", kind.folder()), line, what };
        let entry = self.find(kind, name).ok_or_else(|| error(None, "no such part".into()))?;
        let entry = schema::with(entry, values).map_err(|fault| error(fault.line, fault.what))?;
        self.entries.insert((kind, name.into()), entry);
        Ok(())
    }

    /// Finds a part.
    pub fn find(&self, kind: PartKind, name: &str) -> Option<&Entry> {
        self.entries.get(&(kind, name.to_owned()))
    }

    /// A bridge from USB to SATA.
    pub fn bridge(&self, name: &str) -> Option<&BridgePart> {
        match &self.find(PartKind::Bridge, name)?.make {
            PartModel::Bridge(part) => Some(part),
            _ => None,
        }
    }

    /// A host controller of USB.
    pub fn controller(&self, name: &str) -> Option<&ControllerPart> {
        match &self.find(PartKind::Controller, name)?.make {
            PartModel::Controller(part) => Some(part),
            _ => None,
        }
    }

    /// A driver, with all of its system that is below a program.
    pub fn driver(&self, name: &str) -> Option<&DriverPart> {
        match &self.find(PartKind::Driver, name)?.make {
            PartModel::Driver(part) => Some(part),
            _ => None,
        }
    }

    /// A hard disk.
    pub fn hdd(&self, name: &str) -> Option<&DiskPart> {
        match &self.find(PartKind::Hdd, name)?.make {
            PartModel::Hdd(part) => Some(part),
            _ => None,
        }
    }

    /// A host: what its processor takes.
    pub fn host(&self, name: &str) -> Option<&HostPart> {
        match &self.find(PartKind::Host, name)?.make {
            PartModel::Host(part) => Some(part),
            _ => None,
        }
    }

    /// A hub.
    pub fn hub(&self, name: &str) -> Option<&HubPart> {
        match &self.find(PartKind::Hub, name)?.make {
            PartModel::Hub(part) => Some(part),
            _ => None,
        }
    }

    /// A link.
    pub fn link(&self, name: &str) -> Option<&LinkPart> {
        match &self.find(PartKind::Link, name)?.make {
            PartModel::Link(part) => Some(part),
            _ => None,
        }
    }

    /// Returns the power draws of the parts of a machine.
    pub fn power(&self, name: &str) -> Option<&PowerPart> {
        match &self.find(PartKind::Power, name)?.make {
            PartModel::Power(part) => Some(part),
            _ => None,
        }
    }

    /// An adapter for drives without USB.
    pub fn sata(&self, name: &str) -> Option<&SataPart> {
        match &self.find(PartKind::Sata, name)?.make {
            PartModel::Sata(part) => Some(part),
            _ => None,
        }
    }

    /// A solid-state drive.
    pub fn ssd(&self, name: &str) -> Option<&SolidPart> {
        match &self.find(PartKind::Ssd, name)?.make {
            PartModel::Ssd(part) => Some(part),
            _ => None,
        }
    }

    /// Returns all parts, by kind and name.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
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
