//! Texts of several formats in one file, parted into sections.
//!
//! A line that only one format has begins a section, and a section takes the lines that its format continues with; every
//! other line is taken for one of the kernel's log. Always true: each line is in one section.

use super::facts::Source;
use super::lsusb::{device_line, is_tree_line};
use super::{Line, TextKind};

/// Lines of one format, of one file.
pub(crate) struct Reader<'a> {
    pub(crate) file: &'a str,
    pub(crate) lines: &'a [Line<'a>],
}

impl Reader<'_> {
    pub(crate) fn source(&self, line: &Line<'_>) -> Source {
        const TEXT_LETTERS_MAX: usize = 200;
        let text = line.text.trim().chars().take(TEXT_LETTERS_MAX).collect();
        Source { file: self.file.to_owned(), line: line.number, text }
    }
}

/// The number that a text begins with.
pub(crate) fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    let text = text.trim_start();
    text.split(|sign: char| !sign.is_ascii_digit()).next()?.parse().ok()
}

/// Joins lines of `lsusb -t` that a mail program broke before the driver.
fn join_tree_lines(lines: &mut Vec<Line<'_>>) {
    let mut joined: Vec<Line<'_>> = Vec::with_capacity(lines.len());
    for line in lines.drain(..) {
        let is_rest = line.text.trim_start().starts_with("Driver=");
        let begin = joined.last_mut().filter(|begin| is_rest && is_tree_line(&begin.text));
        match begin.filter(|begin| !begin.text.contains("Driver=")) {
            Some(begin) => begin.text = format!("{} {}", begin.text.trim_end(), line.text.trim()).into(),
            None => joined.push(line),
        }
    }
    *lines = joined;
}

/// Puts the path before the value that `cat` printed of one attribute: its command stands in the line before.
pub(crate) fn name_values(lines: &mut Vec<Line<'_>>) {
    join_tree_lines(lines);
    for at in 1..lines.len() {
        let path =
            lines.get(at - 1).and_then(|line| line.text.rsplit_once("cat ").map(|(_, path)| path.trim()));
        let Some(path) = path.filter(|path| path.starts_with("/sys/") && !path.contains(' ')) else {
            continue;
        };
        let path = path.to_owned();
        if let Some(line) = lines.get_mut(at)
            && !line.text.trim().is_empty()
            && !line.text.trim().contains([' ', '$'])
        {
            line.text = format!("{path}:{}", line.text.trim()).into();
        }
    }
}

/// The sections of a file: their kind, from which line, and up to which.
pub(crate) fn sections(lines: &[Line<'_>]) -> Vec<(TextKind, usize, usize)> {
    if let Some(kind) = foreign(lines) {
        return vec![(kind, 0, lines.len())];
    }
    let mut sections: Vec<(TextKind, usize, usize)> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let current = sections.last().map(|section| section.0);
        let next = lines.get(at + 1).map_or("", |line| line.text.as_ref());
        let kind = match begins(&line.text, next) {
            // A device of `lsusb -v` begins as a line of plain `lsusb` does.
            Some(TextKind::Lsusb) if current == Some(TextKind::LsusbVerbose) && continues_verbose(next) => {
                TextKind::LsusbVerbose
            }
            Some(kind) => kind,
            None => match current {
                Some(current) if continues(current, &line.text) => current,
                _ => TextKind::KernelLog,
            },
        };
        match sections.last_mut() {
            Some(section) if section.0 == kind => section.2 = at + 1,
            _ => sections.push((kind, at, at + 1)),
        }
    }
    sections
}

/// Whether the whole file is of another system.
fn foreign(lines: &[Line<'_>]) -> Option<TextKind> {
    const LINES_MAX: usize = 4000;
    let has = |words: &[&str]| {
        lines.iter().take(LINES_MAX).any(|line| words.iter().any(|word| line.text.contains(word)))
    };
    if has(&["USB\\VID_", "UASPStor", "USBSTOR\\", "Windows version: "]) {
        return Some(TextKind::Windows);
    }
    if lines.iter().take(LINES_MAX).any(|line| super::bsd::is_attach(&line.text)) {
        return Some(TextKind::Bsd);
    }
    let is_apple = has(&[
        "Product ID: 0x",
        "SPUSBDataType",
        "SPUSBHostDataType",
        "\"idProduct\" = ",
        "Host Controller Driver: AppleUSB",
        "Host Controller Driver: AppleT",
    ]);
    let is_log = || lines.iter().take(LINES_MAX).any(|line| super::apple_log::is_line(&line.text));
    (is_apple || is_log()).then_some(TextKind::Apple)
}

/// The format that only this line can begin.
fn begins(text: &str, next: &str) -> Option<TextKind> {
    if text.is_empty() {
        return None;
    }
    // Most lines are of a log and begin with a time.
    if text.starts_with(['[', '<']) {
        return text.contains("Linux version ").then_some(TextKind::Uname);
    }
    if is_tree_line(text) && (text.trim_start().starts_with("/:") || text.contains("Class=")) {
        return Some(TextKind::LsusbTree);
    }
    if super::lsusb_py::device_line(text).is_some() {
        return Some(TextKind::LsusbPy);
    }
    if device_line(text).is_some() {
        let is_verbose = continues_verbose(next);
        return Some(if is_verbose { TextKind::LsusbVerbose } else { TextKind::Lsusb });
    }
    if text == "Device Descriptor:" {
        return Some(TextKind::LsusbVerbose);
    }
    if text.starts_with("T:  Bus=") || text.starts_with("T: Bus=") {
        return Some(TextKind::UsbDevices);
    }
    if super::pci::address(text).is_some() {
        return Some(TextKind::Lspci);
    }
    if text.starts_with("P: /devices") {
        return Some(TextKind::Umockdev);
    }
    if text.starts_with("smartctl ") && text.contains('.') {
        return Some(TextKind::Smartctl);
    }
    if text.starts_with("Module ") && text.contains("Size") && text.contains("Used by") {
        return Some(TextKind::Lsmod);
    }
    if super::system::is_attribute(text) {
        return Some(TextKind::Attributes);
    }
    super::system::kind_of(text)
}

/// Whether `lsusb -v` follows a line that names a device.
fn continues_verbose(next: &str) -> bool {
    let next = next.trim();
    next.starts_with("Device Descriptor:")
        || next.starts_with("Couldn't open device")
        || next.starts_with("Negotiated speed:")
        || next.starts_with("bLength")
}

fn continues(kind: TextKind, text: &str) -> bool {
    let is_indented = text.starts_with([' ', '\t']);
    match kind {
        TextKind::LsusbTree => is_tree_line(text) || is_indented,
        TextKind::LsusbVerbose => {
            is_indented
                || [
                    "Binary Object Store",
                    "Device Qualifier",
                    "Device Status",
                    "Couldn't open",
                    "can't get",
                    "Negotiated",
                ]
                .iter()
                .any(|start| text.starts_with(start))
        }
        TextKind::LsusbPy => super::lsusb_py::interface_line(text).is_some(),
        TextKind::UsbDevices => {
            text.get(1..2) == Some(":") && "TBDPSCIAE".contains(text.get(..1).unwrap_or("-"))
        }
        TextKind::Lspci => is_indented && !text.trim_start().starts_with('['),
        TextKind::Umockdev => {
            text.get(1..3) == Some(": ") && "PAELHNS".contains(text.get(..1).unwrap_or("-"))
        }
        TextKind::Smartctl => !text.starts_with('['),
        TextKind::Lsmod => {
            let mut words = text.split_whitespace();
            words.next().is_some() && words.next().is_some_and(|size| size.parse::<u64>().is_ok())
        }
        _ => false,
    }
}
