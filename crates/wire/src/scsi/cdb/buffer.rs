//! READ BUFFER(10) and WRITE BUFFER: the unit's memory, its microcode, its error history (SPC-5).

use super::field::{bits, bytes};

cdb! {
    /// READ BUFFER(10) (SPC-5).
    pub struct ReadBuffer: "READ BUFFER(10)" = Ten 0x3c {
        /// A detail of the mode, 0..=7.
        mode_specific: u8 = bits(1, 7, 5),
        /// Data to read.
        mode: ReadBufferMode = bits(1, 4, 0),
        /// Which buffer.
        buffer_id: u8 = bytes(2, 2),
        /// First byte, 24 bits.
        buffer_offset: u32 = bytes(3, 5),
        /// Bytes that the host has room for, 24 bits.
        allocation_len: u32 = bytes(6, 8),
    }
}

cdb! {
    /// WRITE BUFFER (SPC-5).
    pub struct WriteBuffer: "WRITE BUFFER" = Ten 0x3b {
        /// A detail of the mode, 0..=7.
        mode_specific: u8 = bits(1, 7, 5),
        /// Data to write, and what to do with it.
        mode: WriteBufferMode = bits(1, 4, 0),
        /// Which buffer.
        buffer_id: u8 = bytes(2, 2),
        /// First byte, 24 bits.
        buffer_offset: u32 = bytes(3, 5),
        /// Bytes that come, 24 bits.
        parameter_list_len: u32 = bytes(6, 8),
    }
}

code! {
    /// MODE of READ BUFFER (SPC-5).
    pub enum ReadBufferMode: u8 {
        /// Obsolete: a header and the data.
        CombinedHeaderAndData = 0x00 => "combined header and data",
        /// The vendor's.
        VendorSpecific = 0x01 => "vendor specific",
        /// The buffer.
        Data = 0x02 => "data",
        /// The buffer's size and granularity.
        Descriptor = 0x03 => "descriptor",
        /// Data last written to the echo buffer.
        EchoBuffer = 0x0a => "echo buffer",
        /// The echo buffer's size.
        EchoBufferDescriptor = 0x0b => "echo buffer descriptor",
        /// How the microcode is.
        MicrocodeStatus = 0x0f => "microcode status",
        /// The error history.
        ErrorHistory = 0x1c => "error history",
    }
}

code! {
    /// MODE of WRITE BUFFER (SPC-5).
    pub enum WriteBufferMode: u8 {
        /// Obsolete: a header and the data.
        CombinedHeaderAndData = 0x00 => "combined header and data",
        /// The vendor's.
        VendorSpecific = 0x01 => "vendor specific",
        /// The buffer.
        Data = 0x02 => "data",
        /// Microcode, in force at once, lost with power.
        DownloadMicrocodeAndActivate = 0x04 => "download microcode and activate",
        /// Microcode, saved and in force at once.
        DownloadMicrocodeSaveAndActivate = 0x05 => "download microcode, save, and activate",
        /// The first in several parts.
        DownloadMicrocodeWithOffsetsAndActivate = 0x06 => "download microcode with offsets and activate",
        /// The second in several parts.
        DownloadMicrocodeWithOffsetsSaveAndActivate = 0x07 => "download microcode with offsets, save, and activate",
        /// Data for READ BUFFER to read back.
        EchoBuffer = 0x0a => "echo buffer",
        /// Parts, in force on an event chosen in the mode-specific bits.
        DownloadMicrocodeWithOffsetsSelectActivation = 0x0d
            => "download microcode with offsets, select activation, save, and defer activate",
        /// Parts, in force later.
        DownloadMicrocodeWithOffsetsSaveAndDefer = 0x0e
            => "download microcode with offsets, save, and defer activate",
        /// Activates the microcode whose activation was deferred.
        ActivateDeferredMicrocode = 0x0f => "activate deferred microcode",
        /// A snapshot of the application client's errors.
        DownloadApplicationClientErrorHistory = 0x1c => "download application client error history",
    }
}

code_fields!(ReadBufferMode, WriteBufferMode);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_buffer_both_ways() {
        assert_both_ways!(
            ReadBuffer {
                mode_specific: 5,
                mode: ReadBufferMode::ErrorHistory,
                buffer_id: 0x10,
                buffer_offset: 0x01_0203,
                allocation_len: 0x04_0506
            },
            [0x3c, 0xbc, 0x10, 1, 2, 3, 4, 5, 6, 0],
            "READ BUFFER(10) mode_specific 0x05 error history buffer_id 0x10 buffer_offset 66051 \
             allocation_len 263430"
        );
    }

    #[test]
    fn write_buffer_both_ways() {
        assert_both_ways!(
            WriteBuffer {
                mode_specific: 1,
                mode: WriteBufferMode::EchoBuffer,
                buffer_id: 2,
                buffer_offset: 0x01_0203,
                parameter_list_len: 0x04_0506
            },
            [0x3b, 0x2a, 2, 1, 2, 3, 4, 5, 6, 0],
            "WRITE BUFFER mode_specific 0x01 echo buffer buffer_id 0x02 buffer_offset 66051 \
             parameter_list_len 263430"
        );
    }
}
