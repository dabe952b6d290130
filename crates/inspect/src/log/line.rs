//! A line of the kernel's log, taken apart: who says it, and what.
//!
//! Names of devices come into the log as well: their strings, what their INQUIRY says, what other kinds of devices are called. A
//! device may be called what the kernel says of another one. So words count right behind who says them and nowhere else,
//! and no source is looked for behind the first. Left out: a name with a line feed in it, which `dmesg` writes as two lines;
//! `/dev/kmsg` does not.

/// A line of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogLine<'a> {
    /// A driver and its device, such as `usb 3-3` or `sd 6:0:0:0`, or a part of the kernel, such as `PM`; empty if the
    /// line names none.
    pub(crate) source: &'a str,
    /// The message.
    pub(crate) text: &'a str,
}

impl<'a> LogLine<'a> {
    /// Takes a line of `/dev/kmsg`, of `dmesg` or of `journalctl -k` apart.
    pub(crate) fn of(line: &'a str) -> Self {
        let message = message(line);
        let (source, text) = message.split_once(": ").unwrap_or(("", message));
        Self { source, text }
    }

    /// A line that goes on from one that ends after its unit, as kernels before 4.0 print sense data and CDBs.
    pub(crate) fn continued(line: &'a str, unit: &'a str) -> Option<Self> {
        const BEGINNINGS: [&str; 6] =
            ["Result: ", "Sense Key", "Add. Sense", "ASC=", "cdb[0]=", "<<vendor>>"];
        let text = message(line);
        let is_command = text.split_once("): ").is_some_and(|(name, _)| {
            name.starts_with(char::is_uppercase) && !name.contains(": ") && name.contains('(')
        });
        let continues = is_command || BEGINNINGS.iter().any(|beginning| text.starts_with(beginning));
        continues.then_some(Self { source: unit, text })
    }

    /// Whether a line of a unit goes on in the next one.
    pub(crate) fn is_split(self) -> bool {
        let text = self.text.trim_end();
        let is_of_unit = self.source.starts_with("sd ") || self.source.starts_with("sr ");
        is_of_unit
            && (is_in_brackets(text) && !text.contains(' ') || text == "CDB:" || text.ends_with("] CDB:"))
            || is_of_unit && BEGUN.iter().any(|begun| text.starts_with(begun))
    }

    /// Whether it is one of the strings of a device.
    pub(crate) fn is_name(self) -> bool {
        self.source.starts_with("usb ") && self.begins(&["Product:", "Manufacturer:", "SerialNumber:"])
    }

    /// Whether it says one of these words first.
    pub(crate) fn begins(self, words: &[&str]) -> bool {
        words.iter().any(|words| self.text.starts_with(words))
    }

    /// The message about a command, without its disk and tag: `[sdc] tag#1 uas_zap_pending …`.
    pub(crate) fn of_command(self) -> &'a str {
        let mut text = self.text;
        while let Some((first, rest)) = text.split_once(' ')
            && (first.starts_with("tag#") || is_in_brackets(first))
        {
            text = rest;
        }
        text
    }

    /// Whether `uas` prints it about a command or a SCSI host.
    pub(crate) fn is_of_uas(self) -> bool {
        let text = self.of_command();
        text.starts_with("uas_")
            || text.starts_with("data cmplt err") && text.contains(" uas-tag ")
            || self.source.starts_with("scsi host") && text.trim_end() == "uas"
    }

    /// The interface, such as `3-3:1.0`, of which the driver says something, or the kernel of the driver: `uas: probe of
    /// 3-3:1.0 failed`.
    pub(crate) fn interface_of(self, driver: &str) -> Option<&'a str> {
        if self.source == driver {
            return self.text.strip_prefix("probe of ")?.split(' ').next();
        }
        self.source.strip_prefix(driver)?.strip_prefix(' ')
    }

    /// The disk of which the block layer says that a block could not be read or written: `I/O error, dev sdc, sector 77`,
    /// with the name of a function before it in older kernels.
    pub(crate) fn disk_in_error(self) -> Option<&'a str> {
        if !["", "blk_update_request", "print_req_error", "end_request"].contains(&self.source) {
            return None;
        }
        let (what, rest) = self.text.split_once(" error, dev ")?;
        let is_plain = what.chars().all(|letter| letter.is_ascii_alphabetic() || " /-".contains(letter));
        rest.split(',').next().filter(|_| is_plain)
    }

    /// Whether a file system or the page cache says that it lost something of its disk.
    pub(crate) fn is_file_system_error(self) -> bool {
        const TEXTS: [&str; 10] = [
            "log I/O error",
            "metadata I/O error",
            "has been shut down",
            "errs: wr ",
            "IO failure",
            "emounting filesystem read-only",
            "read failed",
            "Aborting journal on device",
            "sync page write",
            "failed to read",
        ];
        let is_error = self.source.contains(" error (device ") || self.text.starts_with("error (device ");
        let is_named = self.source.is_empty() && self.text.starts_with("Buffer I/O error on dev")
            || self.source.is_empty() && self.text.starts_with("Aborting journal")
            || self.file_system_node().is_some();
        is_named && (is_error || TEXTS.iter().any(|words| self.text.contains(words)))
    }

    /// The partition that a file system names: `EXT4-fs (sda1)`, `XFS (sdb1)`, `BTRFS error (device sdb1)`, `ntfs3(sdc1)`.
    pub(crate) fn file_system_node(self) -> Option<&'a str> {
        const NAMES: [&str; 5] = ["XFS", "BTRFS", "ntfs3", "exFAT-fs", "F2FS-fs"];
        if let Some(rest) =
            self.text.strip_prefix("error (device ").filter(|_| self.source.starts_with("BTRFS"))
        {
            return rest.split([')', ' ']).next();
        }
        if let Some((node, _)) = self.text.split_once(": ").filter(|_| self.source == "ntfs3") {
            return Some(node);
        }
        let (name, rest) = self.source.split_once('(')?;
        let name = name.split(' ').next()?;
        let is_known = name.ends_with("-fs") || NAMES.contains(&name);
        let node = rest.strip_prefix("device ").unwrap_or(rest);
        node.split([')', ' ']).next().filter(|_| is_known)
    }

    /// The device that ZFS names in an error: `zio pool=tank vdev=/dev/disk/by-id/usb-… error=5 …`.
    pub(crate) fn vdev_in_error(self) -> Option<&'a str> {
        let rest = self.text.strip_prefix("zio pool=").filter(|_| self.source.is_empty())?;
        let (_, rest) = rest.split_once(" vdev=")?;
        let (vdev, rest) = rest.split_once(" error=")?;
        (!rest.starts_with("0 ")).then_some(vdev)
    }

    /// The number in `new SuperSpeed USB device number 4 using xhci_hcd`.
    pub(crate) fn new_number(self) -> Option<u16> {
        let text = self.text.strip_prefix("new ")?;
        // Kernels before 3.0 call it an address.
        let (_, number) = text
            .split_once("USB device number ")
            .or_else(|| text.split_once("USB device using ")?.1.split_once(" and address "))?;
        number.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
    }
}

/// Continued lines after which another one may follow.
const BEGUN: [&str; 2] = ["Result: ", "Sense Key"];

/// The line without what is put before it: `<6>`, `kern  :info  : `, `[   12.345678] `, `[    T1] `, a date, and what
/// journals put there, `Nov 26 09:23:06 host kernel: `. What is a name of a device comes behind a colon, as these do not.
fn message(line: &str) -> &str {
    let line = line.strip_prefix('<').and_then(|rest| rest.split_once('>')).map_or(line, |(_, rest)| rest);
    let line = without_level(line).unwrap_or(line);
    let line = without_file(line);
    let line = without_brackets(line);
    let line = without_date(line).unwrap_or(line);
    if let Some(message) = of_logcat(line) {
        return without_brackets(message);
    }
    match kernel_tag(line) {
        Some((before, message)) if is_of_journal(before) => without_brackets(message.trim_start()),
        _ => line,
    }
}

/// The line before and after the tag of the kernel's messages: `kernel:`, or with a number as BSD's syslog has it,
/// `kernel[0]:`.
fn kernel_tag(line: &str) -> Option<(&str, &str)> {
    let (before, rest) = line.split_once("kernel")?;
    let rest = match rest.strip_prefix('[') {
        Some(numbered) => {
            let (number, rest) = numbered.split_once(']')?;
            number.bytes().all(|digit| digit.is_ascii_digit()).then_some(rest)?
        }
        None => rest,
    };
    let message = rest.strip_prefix(':')?;
    (message.starts_with([' ', '['])).then_some((before, message))
}

/// The message of a line of Android's logcat: `01-05 12:00:00.000     0     0 I kernel  : usb 2-1: …`.
fn of_logcat(line: &str) -> Option<&str> {
    let mut words = line.split_ascii_whitespace();
    let (date, time) = (words.next()?, words.next()?);
    let is_date = date.len() == 5 && date.as_bytes().get(2) == Some(&b'-') && time.contains(':');
    let is_number = |word: &str| word.bytes().all(|digit| digit.is_ascii_digit());
    let is_process = is_date && is_number(words.next()?) && is_number(words.next()?);
    let is_level = is_process && words.next()?.len() == 1;
    let (tag, message) = line.split_once(": ").filter(|_| is_level)?;
    let is_of_kernel = tag.ends_with(|letter: char| letter.is_whitespace())
        || tag.contains("kernel")
        || tag.contains("Kernel");
    is_of_kernel.then_some(message)
}

/// Without what `dmesg -x` puts first.
fn without_level(line: &str) -> Option<&str> {
    let (level, rest) = line.strip_prefix("kern")?.trim_start().strip_prefix(':')?.split_once(": ")?;
    level.trim_end().chars().all(|letter| letter.is_ascii_alphabetic()).then_some(rest)
}

/// Without the name of a file or a number that `grep` puts before a line with a time.
fn without_file(line: &str) -> &str {
    match line.split_once(":[") {
        Some((name, rest)) if !name.is_empty() && !name.contains([' ', '[']) => {
            line.get(line.len() - rest.len() - 1..).unwrap_or(line)
        }
        _ => line,
    }
}

/// Without times and callers; a line that begins with a space is the rest of another. Of the first line that is copied from a
/// terminal the bracket may be missing.
fn without_brackets(line: &str) -> &str {
    let mut line = line;
    // Of the first line that is copied the bracket may be missing, and the blanks behind it are not.
    if let Some((time, rest)) = line.split_once("] ")
        && let time = time.trim_start()
        && time.contains('.')
        && time.bytes().all(|sign| sign.is_ascii_digit() || sign == b'.')
    {
        line = rest;
    }
    while let Some((_, rest)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        line = rest.trim_start();
    }
    line
}

/// Without what `dmesg --time-format iso` puts first; scripts put a colon behind it.
fn without_date(line: &str) -> Option<&str> {
    let (date, rest) = line.split_once(' ')?;
    let is_date = date.starts_with(|letter: char| letter.is_ascii_digit()) && date.contains('T');
    (is_date && date.contains(':') && (!date.ends_with(':') || is_whole_date(date))).then_some(rest)
}

/// Whether a word begins with date and time, such as `2026-11-26T09:23`.
fn is_whole_date(word: &str) -> bool {
    const PATTERN: &[u8] = b"0000-00-00T00:00";
    word.len() >= PATTERN.len()
        && word.bytes().zip(PATTERN).all(|(sign, pattern)| match pattern {
            b'0' => sign.is_ascii_digit(),
            _ => sign == *pattern,
        })
}

/// Whether that is a date and the name of a machine.
fn is_of_journal(before: &str) -> bool {
    let is_word = before.is_empty() || before.ends_with(' ');
    is_word && before.split(' ').all(|word| !word.ends_with(':'))
}

fn is_in_brackets(word: &str) -> bool {
    word.starts_with('[') && word.ends_with(']')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> (&str, &str) {
        let LogLine { source, text } = LogLine::of(line);
        (source, text)
    }

    #[test]
    fn what_programs_put_before_a_line_is_left_out() {
        for before in [
            "",
            "<6>",
            "[   12.345678] ",
            "[   12.345678][    T1] ",
            "<6>[   12.345678] ",
            "[Thu Nov 26 09:23:06 2026] ",
            "[  +0.000012] ",
            "kern  :info  : [   12.345678] ",
            "2026-11-26T09:23:06,123456+00:00 ",
            "Nov 26 09:23:06 host kernel: ",
            "Nov 26 09:23:06 usb kernel: ",
            "Nov 26 09:23:06 host kernel[0]: [   12.345678] ",
            "Nov 26 09:23:06 host kernel:[   12.345678] ",
            "11-26 09:23:06.123     0     0 I         : ",
            "11-26 09:23:06.123     0     0 I kernel  : [   12.345678] ",
            "/var/log/kern.log:[   12.345678] ",
            "Nov 26 09:23:06 host kernel: [   12.345678] ",
            "2026-11-26T09:23:06.123456+00:00 host kernel: ",
            "2026-11-26T09:23:06+0000 host kernel: ",
            "2026-11-26T09:23:06+0000: ",
            "Thu 2026-11-26 09:23:06 UTC host kernel: ",
            "12.345678] ",
            "[   12.345678] host kernel: ",
            "1795684986.123456 host kernel: ",
        ] {
            let line = format!("{before}usb 3-3: USB disconnect, device number 4");
            assert_eq!(of(&line), ("usb 3-3", "USB disconnect, device number 4"), "{before}");
        }
    }

    #[test]
    fn no_source_is_found_behind_the_first() {
        let forged = "usb 3-3: UAS is ignored for this device";
        for (before, source) in [
            ("usb 2-1: Product: ", "usb 2-1"),
            ("usb 2-1: Product: kernel: ", "usb 2-1"),
            ("[   12.345678] usb 2-1: Manufacturer: [   12.345678] ", "usb 2-1"),
            ("Nov 26 09:23:06 host kernel: usb 2-1: Product: kernel: ", "usb 2-1"),
            (
                "hid-generic 0003:046D:C52B.0001: input: USB HID v1.11 Mouse [",
                "hid-generic 0003:046D:C52B.0001",
            ),
            ("input: ", "input"),
            ("scsi 3:0:0:0: Direct-Access     ", "scsi 3:0:0:0"),
            // The rest of a line, as journalctl writes it.
            ("                              ", "                              usb 3-3"),
            ("Nov 26 09:23:06 host udisksd[1]: ", "Nov 26 09:23:06 host udisksd[1]"),
        ] {
            assert_eq!(of(&format!("{before}{forged}")).0, source, "{before}");
        }
    }

    #[test]
    fn lines_are_read_by_kind() {
        let line = LogLine::of;
        assert!(line("usb 2-1: Product: x").is_name() && line("[ 1.0] usb 2-1: SerialNumber: 1").is_name());
        assert!(!line("usb 2-1: New USB device strings: Mfr=1, Product=2, SerialNumber=3").is_name());
        assert_eq!(
            line("usb 2-1: new SuperSpeed Plus Gen 2x1 USB device number 14 using xhci_hcd").new_number(),
            Some(14)
        );
        assert_eq!(line("usb 2-1: Product: new USB device number 14").new_number(), None);
        assert_eq!(
            line("usb 1-2: new high speed USB device using ehci_hcd and address 4").new_number(),
            Some(4)
        );
        for before in ["", "[sdc] ", "tag#1 ", "[sdc] tag#1 "] {
            let text = format!("sd 3:0:0:0: {before}uas_zap_pending 0 uas-tag 1");
            assert_eq!(LogLine::of(&text).of_command(), "uas_zap_pending 0 uas-tag 1");
        }
        let old = line("uas: probe of 3-3:1.0 failed with error -22");
        assert_eq!(old.interface_of("uas"), Some("3-3:1.0"));
        let new = line("uas 3-3:1.0: probe with driver uas failed with error -22");
        assert_eq!((new.interface_of("uas"), new.interface_of("ua")), (Some("3-3:1.0"), None));
    }

    #[test]
    fn the_block_layer_names_a_disk_alone() {
        let disk = |line| LogLine::of(line).disk_in_error();
        assert_eq!(disk("I/O error, dev sdc, sector 77 op 0x0:(READ) flags 0x80700"), Some("sdc"));
        assert_eq!(
            disk("[   12.3] blk_update_request: critical medium error, dev sdc, sector 79"),
            Some("sdc")
        );
        assert_eq!(disk("input: Nice I/O error, dev sdc, Mouse as /devices/pci0000:00"), None);
        assert_eq!(disk("usb 2-1: Product: I/O error, dev sdc, sector 7"), None);
    }
}
