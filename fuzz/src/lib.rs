//! Code that the fuzz targets share: properties that hold for wire types, a host that runs scripts
//! on a drive, and our hosts with a scripted device.

#[path = "../../crates/wire/tests/families/mod.rs"]
pub mod families;
mod host;
pub mod scripted_device;

pub use host::{DriveKind, Host};
