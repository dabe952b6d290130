//! Records of enclosures: what a drive says of itself, to be presented by a virtual one (`uaskit record`, `serve --as`).
//!
//! [`record`] asks a device for its descriptors, and each of its logical units for INQUIRY data, vital product data, mode and
//! log pages and supported commands. [`Record::to_toml`] and [`Record::parse`] are the file (version 1). [`Record::device`] and
//! [`UnitRecord::unit`] are what a virtual drive needs to present it. Left out: the data on the medium; how fast the enclosure is;
//! its faults. Always true: nothing is written to the medium; a record that was made with replaced serial numbers, served and
//! recorded again is the same text.

mod collect;
mod questions;
mod serials;
mod served;
mod text;

pub use collect::record;
pub use serials::SerialNumbers;
pub use text::RecordError;

use bus::Speed;
use device::device::RecordedDescriptor;
use device::lun::RecordedAnswer;

/// Logical units that a record can have: what a CBW can name.
pub const RECORDED_UNITS_MAX: usize = 16;

/// A device, as it describes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The speed of its link.
    pub speed: Speed,
    /// Whether serial numbers were replaced.
    pub serials: SerialNumbers,
    /// bConfigurationValue of the configuration that was in use.
    pub configuration: u8,
    /// Its descriptors, each with all that belongs to it.
    pub descriptors: Vec<RecordedDescriptor>,
    /// Its logical units, from LUN 0 on.
    pub units: Vec<UnitRecord>,
}

/// A logical unit, as it describes itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitRecord {
    /// Bytes of a logical block; zero if the unit had no medium.
    pub block_bytes: u32,
    /// How many blocks there are.
    pub blocks: u64,
    /// The answers to the commands that describe it.
    pub answers: Vec<RecordedAnswer>,
}
