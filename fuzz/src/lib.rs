//! What the fuzz targets share: what has to hold for wire types, and a host that plays scripts on a drive.

#[path = "../../crates/wire/tests/families/mod.rs"]
pub mod families;
mod host;

pub use host::{Host, Kind};
