//! SCSI: command descriptor blocks, sense data, parameter data (SPC-5, SBC-4).

pub mod ascii;
pub mod block;
pub mod buffer;
pub mod capacity;
pub mod cdb;
pub mod diagnostic;
pub mod inquiry;
mod layout;
pub mod log;
pub mod lun;
pub mod mode;
pub mod opcode;
pub mod persistent_reserve;
pub mod report_luns;
pub mod sense;
mod status;
pub mod supported_opcodes;
pub mod supported_tmf;
pub mod vpd;

pub use status::Status;
