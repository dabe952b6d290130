//! A part: its name, model and constants.
//!
//! Left out: how a file becomes a part, which [`super::schema`] says. Always true: constants are those of the file.

use super::bridge::BridgePart;
use super::controller::ControllerPart;
use super::driver::DriverPart;
use super::kind::PartKind;
use super::machine::{HostPart, PowerPart};
use super::quantity::Constant;
use super::wires::{HubPart, LinkPart, SataPart};
use serde_json::{Value, json};
use sim::drive::disk::DiskPart;
use sim::drive::solid::SolidPart;

/// The model of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartModel {
    /// A USB-to-SATA bridge.
    Bridge(BridgePart),
    /// A USB host controller.
    Controller(ControllerPart),
    /// A driver, with the system's stack below the application.
    Driver(DriverPart),
    /// A hard disk.
    Hdd(DiskPart),
    /// A host: its processor.
    Host(HostPart),
    /// A hub.
    Hub(HubPart),
    /// A link.
    Link(LinkPart),
    /// Power draw of the parts of a machine.
    Power(PowerPart),
    /// A host adapter for drives without USB.
    Sata(SataPart),
    /// A solid-state drive.
    Ssd(SolidPart),
}

/// A part of the catalogue.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Name on command lines, which is that of its file.
    pub name: String,
    /// Description in a line.
    pub title: String,
    /// Its model.
    pub make: PartModel,
    /// Its constants, as in the file.
    pub constants: Vec<Constant>,
    /// The text of the file.
    pub(super) text: String,
}

impl Entry {
    /// Returns the kind of the part.
    pub const fn kind(&self) -> PartKind {
        match self.make {
            PartModel::Bridge(_) => PartKind::Bridge,
            PartModel::Controller(_) => PartKind::Controller,
            PartModel::Driver(_) => PartKind::Driver,
            PartModel::Hdd(_) => PartKind::Hdd,
            PartModel::Host(_) => PartKind::Host,
            PartModel::Hub(_) => PartKind::Hub,
            PartModel::Link(_) => PartKind::Link,
            PartModel::Power(_) => PartKind::Power,
            PartModel::Sata(_) => PartKind::Sata,
            PartModel::Ssd(_) => PartKind::Ssd,
        }
    }

    /// Returns the part with all of its constants.
    pub fn to_json(&self) -> Value {
        json!({
            "kind": self.kind().folder(),
            "name": self.name,
            "title": self.title,
            "constants": self.constants.iter().map(Constant::to_json).collect::<Value>(),
        })
    }
}
