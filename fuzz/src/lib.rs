//! What the fuzz targets share: what has to hold for wire types, a host that runs scripts on a drive, and our hosts with
//! a scripted device.

#[path = "../../crates/wire/tests/families/mod.rs"]
pub mod families;
mod host;
pub mod scripted_device;

pub use host::{DriveKind, Host};
