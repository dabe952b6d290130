//! SCSI: command descriptor blocks, sense data, parameter data (SPC-5, SBC-4, MMC-6).
//!
//! Commands go out as a [`cdb`], data comes back in the layouts beside it, failures as [`sense`]. Codes are open,
//! reserved bits are let through: what a unit refuses is the unit's affair. Left out: what only tapes and changers have.

pub mod ascii;
pub mod block;
pub mod buffer;
pub mod capacity;
pub mod cdb;
pub mod diagnostic;
pub mod inquiry;
pub(crate) mod layout;
pub mod log;
pub mod lun;
pub mod mmc;
pub mod mode;
pub mod opcode;
pub mod persistent_reserve;
pub mod report_luns;
pub mod sense;
mod status;
pub mod supported_opcodes;
pub mod supported_tmf;
pub mod vpd;

pub use status::{Status, StatusQualifier};
