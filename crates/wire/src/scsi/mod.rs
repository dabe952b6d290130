//! SCSI: command descriptor blocks, sense data, parameter data (SPC-5, SBC-4).
