//! USB Attached SCSI: the six information units (UAS-2 clause 6, T10/2215-D).
//!
//! Every unit begins with a four-byte header: id, reserved, tag. Multi-byte fields are big-endian. The tag
//! is the stream id on SuperSpeed. Left out: nothing that UAS-2 defines on these pipes.

mod command;

pub use command::{CommandIu, TaskAttribute};

code! {
    /// The id of an information unit, byte 0 of each (UAS-2 table 9).
    pub enum IuId: u8 {
        /// COMMAND, host to device on the command pipe.
        Command = 0x01 => "COMMAND",
        /// SENSE, device to host on the status pipe.
        Sense = 0x03 => "SENSE",
        /// RESPONSE, device to host on the status pipe.
        Response = 0x04 => "RESPONSE",
        /// TASK MANAGEMENT, host to device on the command pipe.
        TaskManagement = 0x05 => "TASK MANAGEMENT",
        /// READ READY, device to host on the status pipe, without streams only.
        ReadReady = 0x06 => "READ READY",
        /// WRITE READY, device to host on the status pipe, without streams only.
        WriteReady = 0x07 => "WRITE READY",
    }
}
