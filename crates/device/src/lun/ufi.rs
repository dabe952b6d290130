//! Commands of floppy drives (UFI Command Specification 1.0).
//!
//! Here are those that differ from SPC and SBC; [`super::registry`] lists all. A disk has one of three formats, which its
//! image decides. Left out: formatting a disk with another capacity, which an image cannot have.

pub(super) mod capacities;
pub(super) mod format;
pub(super) mod inquiry;
pub(super) mod mode;
pub(super) mod position;
#[cfg(test)]
mod tests;

use super::LogicalUnit;
use super::plan::{Decision, fields, settle};
use super::row::{Needs, PlanFn, Row};
use wire::ufi::DiskFormat;

/// A command without a later step that ends within seconds.
const fn brief(usage: &'static [u8], needs: Needs, plan: PlanFn) -> Row {
    Row { usage, needs, timeout_s: 5, plan, on_list: None, on_medium: None }
}

/// The format of the disk in the drive, if there is one.
fn format_of(unit: &LogicalUnit) -> Option<DiskFormat> {
    let config = &unit.config;
    DiskFormat::of(config.capacity.0, config.block_size.bytes()).filter(|_| unit.has_medium())
}
