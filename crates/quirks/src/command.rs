//! Purposes of SCSI commands, what it means that a drive does not answer one, and the remedy.
//!
//! One row for an operation code, for captures and kernel logs alike. Numbers are those of SPC-5, SBC-4 and SAT-4; where two
//! commands share an operation code (WRITE SAME and its UNMAP bit, ATA PASS-THROUGH and the ATA command), the CDB decides.
//! Always true: a flag here is one by which Linux does not send the command. Left out: commands of tapes and discs.

use crate::quirk::Flag;
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use wire::scsi::opcode::OperationCode;

/// Purpose of a command, as far as the remedy depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CommandClass {
    /// ATA PASS-THROUGH, LOG SENSE and vendor-specific commands: SMART, temperature, power mode.
    Poll,
    /// UNMAP, WRITE SAME with the UNMAP bit, DATA SET MANAGEMENT.
    Trim,
    /// WRITE SAME without the UNMAP bit.
    WriteSame,
    /// REPORT SUPPORTED OPERATION CODES.
    ReportOpcodes,
    /// SYNCHRONIZE CACHE.
    SynchronizeCache,
    /// START STOP UNIT.
    StartStop,
    /// INQUIRY, READ CAPACITY, MODE SENSE and the like: what the kernel sends to a new drive.
    Identify,
    /// Reads and writes.
    Transfer,
    /// Anything else.
    Other,
}

/// Remedy to try first when a drive does not answer a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Stop the program that polls the drive.
    StopPoller,
    /// Send no TRIM.
    StopTrim,
    /// Let the drive run.
    NoSpinDown,
    /// Cut its power, update its firmware.
    PowerCycle,
    /// Cable, port and power: the command is not to blame.
    Link,
    /// A quirk by which Linux does not send it.
    Quirk,
}

/// One command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandRow {
    /// Its operation code.
    pub opcode: OperationCode,
    /// Purpose of the command.
    pub class: CommandClass,
    /// Meaning of a missing answer, as text after the name of the command; empty if the name is enough.
    pub meaning: &'static str,
    /// Remedy to try first.
    pub remedy: Remedy,
    /// The quirk by which Linux does not send it.
    pub quirk: Option<Flag>,
}

const fn row(
    opcode: OperationCode,
    class: CommandClass,
    meaning: &'static str,
    remedy: Remedy,
    quirk: Option<Flag>,
) -> CommandRow {
    CommandRow { opcode, class, meaning, remedy, quirk }
}

const POLL: &str = "a poll for SMART or power mode";
const FLUSH: &str = "the drive did not finish flushing its cache";
const SPIN: &str = "the drive did not start or stop in time";
const NEW: &str = "the kernel sends it to every new drive";

/// Commands that drives fail at, by what they are for.
const ROWS: [CommandRow; 28] = {
    use CommandClass as Class;
    use OperationCode as Code;
    [
        row(Code::AtaPassThrough16, Class::Poll, POLL, Remedy::StopPoller, Some(Flag::NoAta1x)),
        row(Code::AtaPassThrough12, Class::Poll, POLL, Remedy::StopPoller, Some(Flag::NoAta1x)),
        row(Code::LogSense, Class::Poll, "a poll for temperature or health", Remedy::StopPoller, None),
        row(Code::Unmap, Class::Trim, TRIM, Remedy::StopTrim, None),
        row(Code::WriteSame10, Class::WriteSame, "", Remedy::Quirk, Some(Flag::NoSame)),
        row(Code::WriteSame16, Class::WriteSame, "", Remedy::Quirk, Some(Flag::NoSame)),
        row(Code::MaintenanceIn, Class::ReportOpcodes, NEW, Remedy::Quirk, Some(Flag::NoReportOpcodes)),
        row(Code::SynchronizeCache10, Class::SynchronizeCache, FLUSH, Remedy::PowerCycle, None),
        row(Code::SynchronizeCache16, Class::SynchronizeCache, FLUSH, Remedy::PowerCycle, None),
        row(Code::StartStopUnit, Class::StartStop, SPIN, Remedy::NoSpinDown, None),
        row(Code::ReportLuns, Class::Identify, NEW, Remedy::Quirk, Some(Flag::NoReportLuns)),
        row(Code::ServiceActionIn16, Class::Identify, NEW, Remedy::Quirk, Some(Flag::NoReadCapacity16)),
        row(Code::ModeSense6, Class::Identify, NEW, Remedy::Quirk, Some(Flag::NoWriteProtectDetect)),
        row(Code::ModeSense10, Class::Identify, NEW, Remedy::Quirk, Some(Flag::NoWriteProtectDetect)),
        row(Code::PreventAllowMediumRemoval, Class::Other, "", Remedy::Quirk, Some(Flag::NotLockable)),
        row(Code::TestUnitReady, Class::Identify, NEW, Remedy::Link, None),
        row(Code::Inquiry, Class::Identify, NEW, Remedy::Link, None),
        row(Code::ReadCapacity10, Class::Identify, NEW, Remedy::Link, None),
        row(Code::RequestSense, Class::Identify, "", Remedy::Link, None),
        row(Code::Read6, Class::Transfer, "", Remedy::Link, None),
        row(Code::Read10, Class::Transfer, "", Remedy::Link, None),
        row(Code::Read12, Class::Transfer, "", Remedy::Link, None),
        row(Code::Read16, Class::Transfer, "", Remedy::Link, None),
        row(Code::Write6, Class::Transfer, "", Remedy::Link, None),
        row(Code::Write10, Class::Transfer, "", Remedy::Link, None),
        row(Code::Write12, Class::Transfer, "", Remedy::Link, None),
        row(Code::Write16, Class::Transfer, "", Remedy::Link, None),
        row(Code::Verify10, Class::Transfer, "", Remedy::Link, None),
    ]
};

const TRIM: &str = "TRIM, as fstrim or the mount option discard sends it";

/// The ATA command that trims (ACS-4 clause 7.6).
const DATA_SET_MANAGEMENT: u8 = 0x06;

/// The lowest of the vendor-specific operation codes (SPC-5 annex E).
const VENDOR_SPECIFIC: u8 = 0xc0;

impl CommandRow {
    /// The row of a CDB; `None` if there are no bytes.
    pub fn of(cdb: &[u8]) -> Option<Self> {
        let code = *cdb.first()?;
        let opcode = OperationCode::from(code);
        let byte = |at: usize| cdb.get(at).copied().unwrap_or_default();
        // Bit 3 of byte 1, which is UNMAP in WRITE SAME.
        let is_unmapping = byte(1) % 16 >= 8;
        let trims = match opcode {
            OperationCode::AtaPassThrough16 => byte(14) == DATA_SET_MANAGEMENT,
            OperationCode::AtaPassThrough12 => byte(9) == DATA_SET_MANAGEMENT,
            OperationCode::WriteSame10 | OperationCode::WriteSame16 => is_unmapping,
            _ => false,
        };
        if trims {
            return Some(row(opcode, CommandClass::Trim, TRIM, Remedy::StopTrim, None));
        }
        let known = ROWS.iter().find(|row| row.opcode == opcode).copied();
        Some(known.unwrap_or_else(|| match code {
            VENDOR_SPECIFIC.. => row(opcode, CommandClass::Poll, POLL, Remedy::StopPoller, None),
            _ => row(opcode, CommandClass::Other, "", Remedy::Link, None),
        }))
    }
}

/// The quirk by which Linux does not send a command.
pub fn quirk_of(opcode: OperationCode) -> Option<Flag> {
    ROWS.iter().find(|row| row.opcode == opcode)?.quirk
}

/// The name of a command: the standard's, with the ATA command of a pass-through where that is known.
pub fn command_name(cdb: &[u8]) -> String {
    let Some(first) = cdb.first().copied() else { return "a command".to_owned() };
    let code = OperationCode::from(first);
    let ata = match code {
        OperationCode::AtaPassThrough16 => cdb.get(14),
        OperationCode::AtaPassThrough12 => cdb.get(9),
        _ => None,
    };
    match (ata.and_then(|command| ata_name(*command)), first) {
        (Some(ata), _) => format!("{code} with {ata}"),
        (None, 0xa3) if cdb.get(1).is_some_and(|byte| byte % 32 == 0x0c) => {
            "REPORT SUPPORTED OPERATION CODES".to_owned()
        }
        (None, VENDOR_SPECIFIC..) => format!("the vendor-specific command {first:02X}h"),
        _ => code.to_string(),
    }
}

/// ATA commands that pollers send (ACS-4).
fn ata_name(command: u8) -> Option<&'static str> {
    Some(match command {
        DATA_SET_MANAGEMENT => "DATA SET MANAGEMENT (TRIM)",
        0x2f | 0x47 => "READ LOG",
        0xb0 => "SMART",
        0xe0 => "STANDBY IMMEDIATE",
        0xe1 => "IDLE IMMEDIATE",
        0xe5 => "CHECK POWER MODE",
        0xe7 | 0xea => "FLUSH CACHE",
        0xec => "IDENTIFY DEVICE",
        0xef => "SET FEATURES",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(cdb: &[u8]) -> CommandClass {
        CommandRow::of(cdb).expect("it has bytes").class
    }

    #[test]
    fn commands_have_names_and_classes() {
        let check_power = [0x85, 0x06, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xe5, 0];
        assert_eq!(command_name(&check_power), "ATA PASS-THROUGH(16) with CHECK POWER MODE");
        assert_eq!(class(&check_power), CommandClass::Poll);
        assert_eq!(command_name(&[0xe6]), "the vendor-specific command E6h");
        assert_eq!(class(&[0xe6]), CommandClass::Poll);
        assert_eq!(command_name(&[0x42]), "UNMAP");
        assert_eq!(class(&[0x93, 0x08]), CommandClass::Trim);
        assert_eq!(class(&[0x93, 0x00]), CommandClass::WriteSame);
        assert_eq!(class(&[0x28]), CommandClass::Transfer);
        assert_eq!(class(&[0x3b]), CommandClass::Other);
        assert_eq!(CommandRow::of(&[]), None);
    }

    #[test]
    fn a_quirk_keeps_linux_from_sending_a_command() {
        for (opcode, letter) in [(0xa3, Some('f')), (0x85, Some('t')), (0xa0, Some('j')), (0x41, Some('k'))] {
            assert_eq!(quirk_of(OperationCode::from(opcode)).and_then(Flag::letter), letter, "{opcode:02x}");
        }
        assert_eq!(quirk_of(OperationCode::Read10), None);
        let mut codes: alloc::vec::Vec<u8> = ROWS.iter().map(|row| row.opcode.into()).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), ROWS.len(), "one row for a code");
    }
}
