//! USB Mass Storage Class, Bulk-Only Transport 1.0: the two wrappers and the two class requests.
//!
//! Every command is a wrapper out, at most one data phase, a wrapper in. Fields are little-endian; the
//! command block inside is SCSI's and big-endian. Left out: vendor-specific subclasses; the CBI transport is in [`crate::cbi`].

mod cbw;
mod csw;
mod request;

pub use cbw::{Cbw, Meaningless};
pub use csw::{Csw, CswStatus};
pub use request::ClassRequest;

/// The highest logical unit that a command wrapper names: it has four bits for it.
pub const LUN_MAX: u8 = 15;
