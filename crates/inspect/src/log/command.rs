//! Commands that failed, by what the kernel prints of them: CDB, sense key, additional sense (SPC-5 clause 4.4).
//!
//! `scsi_print_command` and `scsi_print_sense` print a line each, with the unit and mostly a tag. Kernels before 4.0 print
//! `CDB: Write(10): 2a 00 …`, later ones `CDB: opcode=0x2a 2a 00 …` or a name. Always true: bytes that are no CDB give none.

use super::LogLine;
use wire::scsi::opcode::OperationCode;

/// Bytes of a CDB that are kept.
const CDB_BYTES_MAX: usize = 32;

/// What a command is for, as far as advice differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CommandClass {
    /// ATA PASS-THROUGH and vendor-specific commands: SMART and power-mode polls.
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
    /// LOG SENSE.
    LogSense,
    /// INQUIRY, READ CAPACITY, MODE SENSE and the like: what identifies a unit.
    Identify,
    /// Reads and writes.
    Transfer,
    /// Anything else.
    Other,
}

impl CommandClass {
    /// The class of a CDB.
    pub fn of(cdb: &[u8]) -> Self {
        let byte = |at: usize| cdb.get(at).copied().unwrap_or_default();
        // Bit 3 of byte 1, which is UNMAP in WRITE SAME.
        let is_unmapping = byte(1) % 16 >= 8;
        if cdb.is_empty() {
            return Self::Other;
        }
        match byte(0) {
            0x85 if byte(14) == DATA_SET_MANAGEMENT => Self::Trim,
            0xa1 if byte(9) == DATA_SET_MANAGEMENT => Self::Trim,
            0x85 | 0xa1 | 0xc0..=0xff => Self::Poll,
            0x42 => Self::Trim,
            0x41 | 0x93 if is_unmapping => Self::Trim,
            0x41 | 0x93 => Self::WriteSame,
            0xa3 => Self::ReportOpcodes,
            0x35 | 0x91 => Self::SynchronizeCache,
            0x1b => Self::StartStop,
            0x4d => Self::LogSense,
            0x00 | 0x12 | 0x1a | 0x25 | 0x5a | 0x9e | 0xa0 => Self::Identify,
            0x08 | 0x0a | 0x28 | 0x2a | 0x88 | 0x8a | 0xa8 | 0xaa => Self::Transfer,
            _ => Self::Other,
        }
    }
}

/// The ATA command that trims (ACS-4 clause 7.6).
const DATA_SET_MANAGEMENT: u8 = 0x06;

/// The name of a command: the standard's, with the ATA command of a pass-through where that is known.
pub fn command_name(cdb: &[u8]) -> String {
    let Some(first) = cdb.first().copied() else { return "a command".to_owned() };
    let code = OperationCode::from(first);
    let ata = match first {
        0x85 => cdb.get(14),
        0xa1 => cdb.get(9),
        _ => None,
    };
    match (ata.and_then(|command| ata_name(*command)), first) {
        (Some(ata), _) => format!("{code} with {ata}"),
        (None, 0xa3) if cdb.get(1).is_some_and(|byte| byte % 32 == 0x0c) => {
            "REPORT SUPPORTED OPERATION CODES".to_owned()
        }
        (None, 0xc0..) => format!("the vendor-specific command {first:02X}h"),
        _ => code.to_string(),
    }
}

/// ATA commands that pollers send (ACS-4).
fn ata_name(command: u8) -> Option<&'static str> {
    Some(match command {
        0x06 => "DATA SET MANAGEMENT (TRIM)",
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

/// A sense key as the kernel spells it (drivers/scsi/constants.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenseKey {
    /// 2h.
    NotReady,
    /// 3h: the medium.
    MediumError,
    /// 4h: the drive.
    HardwareError,
    /// 5h: the drive does not support the command.
    IllegalRequest,
    /// 6h.
    UnitAttention,
    /// Bh.
    AbortedCommand,
    /// Any other.
    Other,
}

impl SenseKey {
    fn of(text: &str) -> Self {
        const NAMES: [(&str, SenseKey); 6] = [
            ("Not Ready", SenseKey::NotReady),
            ("Medium Error", SenseKey::MediumError),
            ("Hardware Error", SenseKey::HardwareError),
            ("Illegal Request", SenseKey::IllegalRequest),
            ("Unit Attention", SenseKey::UnitAttention),
            ("Aborted Command", SenseKey::AbortedCommand),
        ];
        const NUMBERS: [(&str, SenseKey); 6] = [
            ("0x2", SenseKey::NotReady),
            ("0x3", SenseKey::MediumError),
            ("0x4", SenseKey::HardwareError),
            ("0x5", SenseKey::IllegalRequest),
            ("0x6", SenseKey::UnitAttention),
            ("0xb", SenseKey::AbortedCommand),
        ];
        let found = NAMES.iter().chain(&NUMBERS).find(|(name, _)| text.starts_with(name));
        found.map_or(Self::Other, |(_, key)| *key)
    }
}

/// A command that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FailedCommand {
    /// The lines about it, by their index.
    pub(crate) lines: Vec<usize>,
    /// Its CDB; empty if no line has it.
    pub(crate) cdb: Vec<u8>,
    /// The error handler aborted it.
    pub(crate) is_aborted: bool,
    /// The sense key.
    pub(crate) sense: Option<SenseKey>,
    /// The additional sense, in the kernel's words.
    pub(crate) additional: String,
    unit: String,
    tag: String,
}

/// Collects the commands of all units, line by line.
#[derive(Debug, Default)]
pub(crate) struct FailedCommands {
    pub(crate) all: Vec<FailedCommand>,
}

/// Open commands that are looked at for a line's own.
const OPEN_COMMANDS_MAX: usize = 256;

impl FailedCommands {
    /// Takes a line of a unit; whether it was about a command.
    pub(crate) fn take(&mut self, index: usize, line: LogLine<'_>) -> bool {
        let text = line.of_command();
        let tag = tag_of(line.text);
        if text.starts_with("uas_eh_abort_handler") || text.starts_with("uas_zap_pending") {
            self.open(index, line.source, tag).is_aborted = true;
        } else if ["FAILED Result", "Result: ", "UNKNOWN("].iter().any(|start| text.starts_with(start)) {
            let _ = self.open(index, line.source, tag);
        } else if let Some(key) =
            text.strip_prefix("Sense Key : ").or_else(|| text.strip_prefix("Sense Key: "))
        {
            let key = SenseKey::of(key);
            let has_one = |command: &FailedCommand| command.sense.is_none();
            self.known(index, line.source, tag, has_one).sense = Some(key);
        } else if let Some(sense) =
            text.strip_prefix("Add. Sense: ").or_else(|| Some(text).filter(|text| text.starts_with("ASC=")))
        {
            let has_one = |command: &FailedCommand| command.additional.is_empty();
            self.known(index, line.source, tag, has_one).additional = sense.to_owned();
        } else if let Some(bytes) = text.strip_prefix("CDB: ") {
            let cdb = cdb_of(bytes);
            let has_one = |command: &FailedCommand| command.cdb.is_empty();
            self.known(index, line.source, tag, has_one).cdb = cdb;
        } else {
            return false;
        }
        true
    }

    fn open(&mut self, index: usize, unit: &str, tag: &str) -> &mut FailedCommand {
        let (unit, tag) = (unit_of(unit).to_owned(), tag.to_owned());
        self.all.push(FailedCommand { lines: vec![index], unit, tag, ..FailedCommand::default() });
        let last = self.all.len() - 1;
        &mut self.all[last]
    }

    /// The last command of that unit and tag which lacks what a line has; else a new one.
    fn known(
        &mut self,
        index: usize,
        unit: &str,
        tag: &str,
        lacks: impl Fn(&FailedCommand) -> bool,
    ) -> &mut FailedCommand {
        let own = unit_of(unit);
        let is_own = |command: &FailedCommand| command.unit == own && command.tag == tag && lacks(command);
        let from = self.all.len().saturating_sub(OPEN_COMMANDS_MAX);
        let found = self.all.get(from..).and_then(|recent| recent.iter().rposition(is_own));
        match found {
            Some(at) => {
                let command = &mut self.all[from + at];
                command.lines.push(index);
                command
            }
            None => self.open(index, unit, tag),
        }
    }
}

/// `3:0:0:0` of `sd 3:0:0:0`.
fn unit_of(source: &str) -> &str {
    source.split_once(' ').map_or(source, |(_, unit)| unit)
}

/// The tag of a command, such as `tag#12`; empty if the line has none.
fn tag_of(text: &str) -> &str {
    text.split(' ').take(2).find(|word| word.starts_with("tag#")).unwrap_or("")
}

/// The bytes at the end of a line; if there are none, the operation code alone.
fn cdb_of(text: &str) -> Vec<u8> {
    let words = text.split_ascii_whitespace();
    let byte = |word: &str| u8::from_str_radix(word, 16).ok().filter(|_| word.len() == 2);
    let mut bytes: Vec<u8> = words.rev().map_while(byte).take(CDB_BYTES_MAX).collect();
    bytes.reverse();
    if bytes.is_empty()
        && let Some((_, digits)) = text.split_once("0x")
        && let Some(code) = digits.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok())
    {
        bytes.push(code);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cdb_is_read_in_the_formats_of_all_kernels() {
        let write = [0x2a, 0x00, 0x01, 0x12, 0x88, 0xb8, 0x00, 0x00, 0x08, 0x00];
        for text in [
            "opcode=0x2a 2a 00 01 12 88 b8 00 00 08 00",
            "Write(10) 2a 00 01 12 88 b8 00 00 08 00",
            "Write(10): 2a 00 01 12 88 b8 00 00 08 00",
            "cdb[0]=0x2a: 2a 00 01 12 88 b8 00 00 08 00",
        ] {
            assert_eq!(cdb_of(text), write, "{text}");
        }
        assert_eq!(cdb_of("opcode=0x85"), [0x85]);
        assert_eq!(cdb_of("Unmap/Read sub-channel 42 00 00"), [0x42, 0, 0]);
    }

    #[test]
    fn a_command_has_the_lines_of_its_tag() {
        let lines = [
            "sd 0:0:0:0: [sda] tag#26 uas_eh_abort_handler 0 uas-tag 8 inflight: CMD",
            "sd 0:0:0:0: [sda] tag#18 uas_eh_abort_handler 0 uas-tag 1 inflight: CMD OUT",
            "sd 0:0:0:0: [sda] tag#18 CDB: opcode=0x2a 2a 00",
            "sd 0:0:0:0: [sda] tag#26 CDB: opcode=0x85 85 06",
            "sd 0:0:0:0: [sda] tag#3 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_SENSE",
            "sd 0:0:0:0: [sda] tag#3 Sense Key : Medium Error [current] ",
            "sd 0:0:0:0: [sda] tag#3 Add. Sense: Unrecovered read error",
            "sd 0:0:0:0: [sda] tag#3 CDB: Read(10) 28 00",
        ];
        let mut commands = FailedCommands::default();
        for (index, line) in lines.iter().enumerate() {
            assert!(commands.take(index, LogLine::of(line)), "{line}");
        }
        let [smart, write, read] = commands.all.as_slice() else { panic!("{commands:#?}") };
        assert_eq!((smart.cdb.as_slice(), smart.is_aborted), ([0x85, 0x06].as_slice(), true));
        assert_eq!(write.cdb, [0x2a, 0x00]);
        assert_eq!(
            (read.sense, read.additional.as_str()),
            (Some(SenseKey::MediumError), "Unrecovered read error")
        );
        assert_eq!(read.lines, [4, 5, 6, 7]);
    }

    #[test]
    fn commands_have_names_and_classes() {
        let check_power = [0x85, 0x06, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xe5, 0];
        assert_eq!(command_name(&check_power), "ATA PASS-THROUGH(16) with CHECK POWER MODE");
        assert_eq!(CommandClass::of(&check_power), CommandClass::Poll);
        assert_eq!(command_name(&[0xe6]), "the vendor-specific command E6h");
        assert_eq!(command_name(&[0x42]), "UNMAP");
        assert_eq!(CommandClass::of(&[0x93, 0x08]), CommandClass::Trim);
        assert_eq!(CommandClass::of(&[0x93, 0x00]), CommandClass::WriteSame);
        assert_eq!(CommandClass::of(&[]), CommandClass::Other);
    }
}
