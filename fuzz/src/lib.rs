//! What the fuzz targets share: what has to hold for wire types, a host that plays scripts on a drive, and hosts of ours
//! that a device plays scripts on.

#[path = "../../crates/wire/tests/families/mod.rs"]
pub mod families;
mod host;
pub mod wild;

pub use host::{DriveKind, Host};
