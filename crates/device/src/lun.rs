//! A logical unit: what commands mean (SPC-5, SBC-4, MMC-6, UFI 1.0, SAT-4).
//!
//! A command is a [`Row`](row::Row): its CDB usage map, what it needs, and up to three functions. `plan` reads the CDB and
//! returns a [`Plan`]; `on_list` does the same once a parameter list has arrived, `on_medium` once the medium has
//! completed a request. The executor in [`crate::command`] carries plans out, so a command's file holds no queue, no
//! transfer and no buffer.
//!
//! To add a command: its CDB in `wire::scsi::cdb`, its file with its row here, the row's name in [`registry`], a test, and
//! a line in docs/CONFORMANCE.md.
//!
//! Files depend one way: state ([`LogicalUnit`] and what it holds), then [`row`], then the families' commands, then
//! [`registry`], which lists them. Always true: a unit's state changes only in these functions, one command at a time.

pub(crate) mod absent_unit;
pub mod access;
pub mod attention;
pub mod buffers;
mod config;
mod context;
pub mod durable;
mod event;
#[cfg(test)]
#[allow(dead_code, reason = "each family of commands uses its part of it")]
pub(crate) mod fixture;
pub mod limits;
mod logical_unit;
pub mod logs;
pub(crate) mod medium_failure;
pub mod mmc;
pub mod mode;
mod plan;
pub mod precheck;
#[cfg(test)]
mod property_tests;
mod readiness;
mod recorded;
pub mod registry;
pub mod reservation;
pub mod row;
pub mod sanitizing;
pub mod sat;
pub mod sbc;
pub mod spc;
pub mod ufi;
mod unit_type;

pub use config::{LogicalUnitConfig, REFERENCE_CELSIUS};
pub use context::Context;
pub use event::UnitEvent;
pub use logical_unit::LogicalUnit;
pub use plan::{DataPhase, LIST_HEAD_BYTES, MediumPlan, PARAMETER_BYTES_MAX, Plan, Reply};
pub use readiness::Readiness;
pub use recorded::{RecordedAnswer, RecordedOutcome, RecordedUnit};
pub use sbc::InsertedMedium;
pub(crate) use sbc::resume_sanitize;
pub use unit_type::UnitType;
