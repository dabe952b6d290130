//! SCSI: command descriptor blocks, sense data, parameter data (SPC-5, SBC-4).

mod status;

pub use status::Status;
