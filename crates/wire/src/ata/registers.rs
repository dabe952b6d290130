//! The registers of a command and of its result (ACS-4 clauses 6 and 7.1).
//!
//! They travel in frames ([`super::HostToDeviceFis`], [`super::DeviceToHostFis`]), in CDBs of ATA
//! PASS-THROUGH and in the ATA return descriptor; the bytes are laid out there.

use super::{AtaCommand, LBA_MASK, LogAddress};
use core::fmt;

register_bits! {
    /// The status register (ACS-4 clause 6.2).
    pub struct AtaStatus: u8 {
        /// The device is busy, no other bit counts.
        BUSY = 0x80 => "BSY",
        /// The device takes commands.
        READY = 0x40 => "DRDY",
        /// The device failed and cannot continue.
        DEVICE_FAULT = 0x20 => "DF",
        /// Deferred write error; earlier, seek complete.
        DEFERRED_WRITE_ERROR = 0x10 => "DWE",
        /// Data may be transferred.
        DATA_REQUEST = 0x08 => "DRQ",
        /// The write was not aligned to a physical sector.
        ALIGNMENT_ERROR = 0x04 => "ALIGN",
        /// There is sense data.
        SENSE_AVAILABLE = 0x02 => "SENSE",
        /// The command failed, the error register says why.
        ERROR = 0x01 => "ERR",
    }
}

register_bits! {
    /// The error register (ACS-4 clause 6.3).
    pub struct AtaError: u8 {
        /// A CRC error on the link.
        INTERFACE_CRC = 0x80 => "ICRC",
        /// A sector could not be read.
        UNCORRECTABLE = 0x40 => "UNC",
        /// Obsolete; the medium changed.
        MEDIUM_CHANGED = 0x20 => "MC",
        /// No such LBA.
        ID_NOT_FOUND = 0x10 => "IDNF",
        /// Obsolete; the user wants the medium.
        MEDIUM_CHANGE_REQUEST = 0x08 => "MCR",
        /// The command is not supported or not valid.
        ABORTED = 0x04 => "ABRT",
        /// Obsolete; no medium.
        NO_MEDIUM = 0x02 => "NM",
        /// Obsolete; the address mark was not found.
        ADDRESS_MARK_NOT_FOUND = 0x01 => "AMNF",
    }
}

/// A command on its way to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandRegisters {
    /// Command code.
    pub command: AtaCommand,
    /// Subcommand or options; bits 7:0 for a 28-bit command.
    pub features: u16,
    /// Sectors, blocks or a setting; bits 7:0 for a 28-bit command.
    pub count: u16,
    /// 48 bits; bits 23:0 for a 28-bit command, see [`Self::lba28`].
    pub lba: u64,
    /// The device register: bit 6 for an LBA, bits 3:0 are LBA 27:24 of a 28-bit command.
    pub device: u8,
}

impl CommandRegisters {
    /// LBA 23:8 of every SMART command.
    pub const SMART_SIGNATURE: u64 = 0xc2_4f00;

    /// A command with these registers: 28-bit LBA split as the command wants it, LBA bit set.
    pub const fn new(command: AtaCommand, features: u16, count: u16, lba: u64) -> Self {
        if command.is_48_bit() {
            return Self { command, features, count, lba: lba & LBA_MASK, device: 0x40 };
        }
        let device = 0x40 | (lba >> 24) as u8 & 0x0f;
        Self { command, features, count, lba: lba & 0xff_ffff, device }
    }

    /// The LBA of a 28-bit command: bits 27:24 are in the device register.
    pub const fn lba28(&self) -> u32 {
        (self.device as u32 & 0x0f) << 24 | self.lba as u32 & 0xff_ffff
    }

    /// The LBA, 28 or 48 bits as the command has them.
    pub const fn address(&self) -> u64 {
        if self.command.is_48_bit() { self.lba & LBA_MASK } else { self.lba28() as u64 }
    }

    /// Sectors of a read, write or verify: 0 stands for 256 (28-bit) or 65536.
    pub const fn sectors(&self) -> u32 {
        let (count, zero) = if self.command.is_48_bit() {
            (self.count as u32, 0x1_0000)
        } else {
            (self.count as u32 & 0xff, 0x100)
        };
        if count == 0 { zero } else { count }
    }

    /// Which log a READ LOG or WRITE LOG command means: LBA 7:0, SMART or general purpose.
    pub fn log_address(&self) -> LogAddress {
        (self.lba as u8).into()
    }

    /// The first page of a general purpose log command: LBA 39:32 and LBA 15:8.
    pub const fn log_page(&self) -> u16 {
        (self.lba >> 24) as u16 & 0xff00 | (self.lba >> 8) as u16 & 0x00ff
    }

    /// Whether LBA 23:8 carry the SMART signature; without it a SMART command is aborted.
    pub const fn has_smart_signature(&self) -> bool {
        self.lba & 0xff_ff00 == Self::SMART_SIGNATURE
    }
}

/// Registers after a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResultRegisters {
    /// How it ended.
    pub status: AtaStatus,
    /// Why it failed.
    pub error: AtaError,
    /// Whatever the command says.
    pub count: u16,
    /// The first sector that failed, or whatever the command says; 48 bits.
    pub lba: u64,
    /// The device register.
    pub device: u8,
}

impl ResultRegisters {
    /// A command completed without error.
    pub const GOOD: Self =
        Self { status: AtaStatus::READY, error: AtaError::EMPTY, count: 0, lba: 0, device: 0x40 };

    /// A command was not supported, or not valid.
    pub const ABORTED: Self =
        Self { status: AtaStatus::READY.with(AtaStatus::ERROR), error: AtaError::ABORTED, ..Self::GOOD };

    /// After a reset or EXECUTE DEVICE DIAGNOSTIC: all parts passed (01h in the error register), and it is an ATA device (ACS-4, device signatures).
    pub const SIGNATURE: Self = Self {
        status: AtaStatus::READY,
        error: AtaError::ADDRESS_MARK_NOT_FOUND,
        count: 1,
        lba: 1,
        device: 0,
    };

    /// A command failed with `error` at the sector `lba`.
    pub const fn failed(error: AtaError, lba: u64) -> Self {
        Self { error, lba: lba & LBA_MASK, ..Self::ABORTED }
    }

    /// The answer of READ NATIVE MAX ADDRESS, cut to 28 bits, or EXT: the address of the last sector.
    pub const fn native_max(last: u64, ext: bool) -> Self {
        if ext {
            return Self { lba: last & LBA_MASK, ..Self::GOOD };
        }
        let last = if last < 0x0fff_ffff { last } else { 0x0fff_ffff };
        Self { lba: last & 0xff_ffff, device: 0x40 | (last >> 24) as u8, ..Self::GOOD }
    }

    /// The answer of SMART RETURN STATUS: the signature, or its opposite where a threshold is exceeded.
    pub const fn smart_status(threshold_exceeded: bool) -> Self {
        Self { lba: if threshold_exceeded { 0x2c_f400 } else { 0xc2_4f00 }, ..Self::GOOD }
    }

    /// Returns the result of SMART RETURN STATUS; `None` if the LBA registers carry neither answer, as behind
    /// bridges that do not return them.
    pub const fn smart_threshold_exceeded(&self) -> Option<bool> {
        match self.lba & 0xff_ff00 {
            0xc2_4f00 => Some(false),
            0x2c_f400 => Some(true),
            _ => None,
        }
    }
}

impl fmt::Display for CommandRegisters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { command, features, count, lba, device } = self;
        write!(f, "{command}, features {features:#x} count {count:#x} LBA {lba:#x} device {device:#04x}")
    }
}

impl fmt::Display for ResultRegisters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, error, count, lba, device } = self;
        write!(f, "status {status}, error {error}, count {count:#x} LBA {lba:#x} device {device:#04x}")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_28_bit_lba_reaches_into_the_device_register() {
        let read = CommandRegisters::new(AtaCommand::ReadDma, 0, 8, 0x0abc_def0);
        assert_eq!((read.lba, read.device), (0xbc_def0, 0x4a));
        assert_eq!((read.lba28(), read.address()), (0x0abc_def0, 0x0abc_def0));
    }

    #[test]
    fn a_48_bit_lba_does_not() {
        let read = CommandRegisters::new(AtaCommand::ReadDmaExt, 0, 8, 0x1234_5678_9abc);
        assert_eq!((read.lba, read.device), (0x1234_5678_9abc, 0x40));
        assert_eq!(read.address(), 0x1234_5678_9abc);
    }

    #[test]
    fn no_sectors_are_the_most_sectors() {
        let sectors = |command, count| CommandRegisters::new(command, 0, count, 0).sectors();
        assert_eq!(sectors(AtaCommand::ReadDma, 0), 256);
        assert_eq!(sectors(AtaCommand::ReadDma, 0x0103), 3);
        assert_eq!(sectors(AtaCommand::ReadDmaExt, 0), 65536);
        assert_eq!(sectors(AtaCommand::ReadDmaExt, 0x0103), 259);
    }

    #[test]
    fn smart_commands_carry_a_signature() {
        let smart = CommandRegisters::new(AtaCommand::Smart, 0xd5, 1, 0xc2_4f06);
        assert!(smart.has_smart_signature());
        assert!(!CommandRegisters { lba: 0x2c_f406, ..smart }.has_smart_signature());
    }

    #[test]
    fn smart_status_is_in_the_lba() {
        assert_eq!(ResultRegisters::smart_status(false).lba, 0xc2_4f00);
        assert_eq!(ResultRegisters::smart_status(true).lba, 0x2c_f400);
        assert_eq!(ResultRegisters::smart_status(true).smart_threshold_exceeded(), Some(true));
        assert_eq!(ResultRegisters::smart_status(false).smart_threshold_exceeded(), Some(false));
        assert_eq!(ResultRegisters::GOOD.smart_threshold_exceeded(), None);
    }

    #[test]
    fn bits_have_names() {
        assert_eq!(u8::from(ResultRegisters::ABORTED.status), 0x41);
        assert_eq!(u8::from(ResultRegisters::ABORTED.error), 0x04);
        assert_eq!(ResultRegisters::ABORTED.status.to_string(), "DRDY ERR");
        assert_eq!(AtaError::from(0x50).to_string(), "UNC IDNF");
        assert_eq!(AtaStatus::EMPTY.to_string(), "none");
    }

    #[test]
    fn a_log_command_names_log_and_page_in_its_lba() {
        let registers = CommandRegisters::new(AtaCommand::ReadLogExt, 0, 1, 0x0012_0000_3404);
        assert_eq!(registers.log_address(), LogAddress::DeviceStatistics);
        assert_eq!(registers.log_page(), 0x1234);
    }

    #[test]
    fn the_native_maximum_has_28_or_48_bits() {
        let short = ResultRegisters::native_max(0x0765_4321, false);
        assert_eq!((short.lba, short.device), (0x65_4321, 0x47));
        let cut = ResultRegisters::native_max(0x1_2345_6789, false);
        assert_eq!((cut.lba, cut.device), (0xff_ffff, 0x4f));
        let long = ResultRegisters::native_max(0x1_2345_6789, true);
        assert_eq!((long.lba, long.device), (0x1_2345_6789, 0x40));
    }

    #[test]
    fn a_failure_names_error_and_sector() {
        let failed = ResultRegisters::failed(AtaError::ID_NOT_FOUND, 0x1234);
        assert_eq!((u8::from(failed.status), u8::from(failed.error), failed.lba), (0x41, 0x10, 0x1234));
    }
}
