//! Commands that failed, by what the kernel prints of them: CDB, sense key, additional sense (SPC-5 clause 4.4).
//!
//! `scsi_print_command` and `scsi_print_sense` print a line each, with the unit and mostly a tag. Kernels before 4.0 print
//! `CDB: Write(10): 2a 00 …`, later ones `CDB: opcode=0x2a 2a 00 …` or a name. Always true: bytes that are no CDB give none.

use super::LogLine;

/// Bytes of a CDB that are kept.
const CDB_BYTES_MAX: usize = 32;

/// How the kernel lost a command: the drive did not complete it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The error handler aborted it.
    Aborted,
    /// Its transfer failed (`cmd cmplt err`, `data cmplt err`), or the host byte says so.
    Transport,
    /// It timed out.
    TimedOut,
    /// The device was gone: never the first thing that went wrong.
    Gone,
}

impl Loss {
    /// By the host byte and driver byte of a result, which old kernels print as numbers.
    fn of_result(text: &str) -> Option<Self> {
        let byte = |name: &str| text.split_once(name).and_then(|(_, rest)| rest.split_whitespace().next());
        match (byte("hostbyte="), byte("driverbyte=")) {
            (_, Some("DRIVER_TIMEOUT" | "0x06")) | (Some("DID_TIME_OUT" | "0x03"), _) => Some(Self::TimedOut),
            (
                Some("DID_ERROR" | "DID_ABORT" | "DID_RESET" | "DID_SOFT_ERROR" | "0x05" | "0x07" | "0x08"),
                _,
            ) => Some(Self::Transport),
            (Some("DID_NO_CONNECT" | "DID_BAD_TARGET" | "0x01" | "0x04"), _) => Some(Self::Gone),
            _ => None,
        }
    }
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
    /// Its name in SPC-5.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotReady => "NOT READY",
            Self::MediumError => "MEDIUM ERROR",
            Self::HardwareError => "HARDWARE ERROR",
            Self::IllegalRequest => "ILLEGAL REQUEST",
            Self::UnitAttention => "UNIT ATTENTION",
            Self::AbortedCommand => "ABORTED COMMAND",
            Self::Other => "another sense key",
        }
    }

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
    /// How it was lost, unless the drive answered it.
    pub(crate) loss: Option<Loss>,
    /// The sense key.
    pub(crate) sense: Option<SenseKey>,
    /// The additional sense, in the kernel's words.
    pub(crate) additional: String,
    has_result: bool,
    unit: String,
    tag: String,
}

impl FailedCommand {
    /// Whether the device reported a failure and gave no reason.
    ///
    /// Linux enters HARDWARE ERROR and `DID_ERROR` itself where the sense data of a failed command over BOT are all zeros
    /// (drivers/usb/storage/transport.c, `usb_stor_invoke_transport`).
    pub(crate) fn is_without_reason(&self) -> bool {
        let additional = self.additional.trim().to_ascii_lowercase();
        let is_empty = additional.is_empty()
            || additional.starts_with("no additional sense")
            || additional.starts_with("asc=0x0 ascq=0x0");
        self.sense == Some(SenseKey::HardwareError) && self.loss == Some(Loss::Transport) && is_empty
    }
}

/// Lines between the abort of a command and its result: those of the other commands in flight.
const RESULT_LINES_MAX: usize = 256;

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
        if ["uas_eh_abort_handler", "uas_zap_pending"].iter().any(|start| text.starts_with(start)) {
            self.open(index, line.source, tag).loss = Some(Loss::Aborted);
        } else if ["cmd cmplt err", "data cmplt err"].iter().any(|start| text.starts_with(start)) {
            self.open(index, line.source, tag).loss = Some(Loss::Transport);
        } else if ["FAILED Result", "Result: ", "UNKNOWN("].iter().any(|start| text.starts_with(start)) {
            self.result(index, line.source, tag, Loss::of_result(text));
        } else if let Some((name, result)) = text.split_once(" failed: Result: ") {
            self.named(index, line.source, name, result);
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
        } else if let Some(bytes) = text.strip_prefix("CDB: ").or_else(|| named_cdb(text)) {
            let cdb = cdb_of(bytes);
            let is_near = |line: &usize| index.saturating_sub(*line) <= RESULT_LINES_MAX;
            let has_one = |command: &FailedCommand| {
                command.cdb.is_empty() || command.cdb == cdb && command.lines.last().is_some_and(is_near)
            };
            self.known(index, line.source, tag, has_one).cdb.clone_from(&cdb);
        } else {
            return false;
        }
        true
    }

    /// A command that the kernel names instead of its CDB, when it sets up or removes a disk (`sd.c`).
    fn named(&mut self, index: usize, unit: &str, name: &str, result: &str) {
        const NAMES: [(&str, &[u8]); 5] = [
            ("Read Capacity(10)", &[0x25]),
            ("Read Capacity(16)", &[0x9e, 0x10]),
            ("Synchronize Cache(10)", &[0x35]),
            ("Synchronize Cache(16)", &[0x91]),
            ("Start/Stop Unit", &[0x1b]),
        ];
        let cdb = NAMES.iter().find(|(known, _)| *known == name).map_or(&[] as &[u8], |(_, cdb)| cdb);
        let loss = match Loss::of_result(result) {
            // The flush that follows a disconnect fails because of it.
            Some(Loss::Transport) if name.starts_with("Synchronize") => Some(Loss::Gone),
            loss => loss,
        };
        let command = self.open(index, unit, "");
        command.loss = loss;
        command.cdb = cdb.to_vec();
        command.has_result = true;
    }

    /// The result of a command: of one that was lost a few lines before, or of a new one.
    fn result(&mut self, index: usize, unit: &str, tag: &str, loss: Option<Loss>) {
        let is_near = |line: &usize| index.saturating_sub(*line) <= RESULT_LINES_MAX;
        let is_lost = |command: &FailedCommand| {
            let is_recent = command.lines.last().is_some_and(is_near);
            command.loss.is_some() && !command.has_result && is_recent
        };
        let command = self.known(index, unit, tag, is_lost);
        command.loss = command.loss.or(loss);
        command.has_result = true;
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

/// The CDB of kernels before 4.0, whose line goes on after `CDB:` as a line of its unit: `cdb[0]=0x28: 28 00 …`.
fn named_cdb(text: &str) -> Option<&str> {
    let is_name =
        text.starts_with("cdb[0]=") || text.split_once("): ").is_some_and(|(name, _)| is_command(name));
    is_name.then_some(text)
}

/// Whether it is a command's name up to its parenthesis, such as `Read(10`.
fn is_command(name: &str) -> bool {
    name.split_once('(').is_some_and(|(name, bytes)| {
        name.starts_with(char::is_uppercase) && bytes.bytes().all(|digit| digit.is_ascii_digit())
    })
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
        assert_eq!((smart.cdb.as_slice(), smart.loss), ([0x85, 0x06].as_slice(), Some(Loss::Aborted)));
        assert_eq!(write.cdb, [0x2a, 0x00]);
        assert_eq!(
            (read.sense, read.additional.as_str()),
            (Some(SenseKey::MediumError), "Unrecovered read error")
        );
        assert_eq!(read.lines, [4, 5, 6, 7]);
    }

    #[test]
    fn a_result_belongs_to_the_command_that_was_aborted_before() {
        let lines = [
            "sd 0:0:0:0: [sda] tag#3 uas_eh_abort_handler 0 uas-tag 4 inflight: CMD OUT",
            "sd 0:0:0:0: [sda] tag#3 CDB: opcode=0x2a 2a 00",
            "sd 0:0:0:0: [sda] tag#3 FAILED Result: hostbyte=DID_TIME_OUT driverbyte=DRIVER_OK",
            "sd 0:0:0:0: [sda] tag#3 CDB: opcode=0x2a 2a 00",
            "sd 0:0:0:0: [sda] tag#3 FAILED Result: hostbyte=DID_ERROR driverbyte=DRIVER_OK",
            "sd 0:0:0:0: [sda] tag#3 CDB: opcode=0x28 28 00",
        ];
        let mut commands = FailedCommands::default();
        for (index, line) in lines.iter().enumerate() {
            assert!(commands.take(index, LogLine::of(line)), "{line}");
        }
        let losses: Vec<_> = commands.all.iter().map(|one| (one.loss, one.cdb.first().copied())).collect();
        assert_eq!(losses[0], (Some(Loss::Aborted), Some(0x2a)));
        assert_eq!(losses.last(), Some(&(Some(Loss::Transport), Some(0x28))));
        for (text, loss) in [
            ("hostbyte=DID_OK driverbyte=DRIVER_TIMEOUT", Some(Loss::TimedOut)),
            ("hostbyte=0x07 driverbyte=0x00", Some(Loss::Transport)),
            ("hostbyte=DID_NO_CONNECT driverbyte=DRIVER_OK", Some(Loss::Gone)),
            ("hostbyte=DID_OK driverbyte=DRIVER_SENSE", None),
        ] {
            assert_eq!(Loss::of_result(text), loss, "{text}");
        }
    }
}
