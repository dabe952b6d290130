//! Single lines about a machine: its kernel, command line, modules, modprobe's files, attributes with their paths.
//!
//! A line counts by its form, wherever it stands in a report. Left out: /etc/default/grub and boot loaders' own files, whose
//! words count only once the kernel has them.

use super::TextKind;
use super::facts::{Facts, Key};
use super::section::Reader;
use crate::inventory::{BOARD_MODEL, PARAMETER, THROTTLED};
use quirks::quirk::Flag;

/// The format of a single line.
pub(super) fn kind_of(text: &str) -> Option<TextKind> {
    let mut words = text.split_whitespace();
    let (first, second) = (words.next()?, words.next());
    if release_of(text).is_some() {
        return Some(TextKind::Uname);
    }
    if is_command_line(text) {
        return Some(TextKind::CommandLine);
    }
    if text.starts_with("throttled=0x") || board_model(text).is_some() {
        return Some(TextKind::Attributes);
    }
    let is_module = |name: &str| ["uas", "usb_storage"].contains(&name.replace('-', "_").as_str());
    let third = words.next();
    if is_module(first)
        && second.is_some_and(|size| size.parse::<u64>().is_ok())
        && third.is_some_and(|uses| uses.parse::<u64>().is_ok())
    {
        return Some(TextKind::Lsmod);
    }
    let is_verb = ["options", "option", "blacklist", "install", "softdep"].contains(&first);
    let names_storage = second.is_some_and(|name| {
        let name = name.to_ascii_lowercase();
        name == "uas" || name.contains("stor")
    });
    (is_verb && names_storage).then_some(TextKind::Modprobe)
}

/// The release in a line of `uname -a` or of the kernel's log: `Linux version 5.15.0-91-generic (…`.
pub(super) fn release_of(text: &str) -> Option<&str> {
    let is_release = |word: &&str| {
        word.starts_with(|sign: char| sign.is_ascii_digit()) && word.split('.').count() >= 2 && word.len() > 3
    };
    if let Some((before, rest)) = text.split_once("Linux version ") {
        return rest.split_whitespace().next().filter(is_release).filter(|_| !before.contains(": usb"));
    }
    let mut words = text.split_whitespace();
    if words.next() != Some("Linux") {
        return None;
    }
    let _host = words.next()?;
    let release = words.next().filter(is_release)?;
    text.contains('#').then_some(release)
}

/// Whether a line is the kernel's command line.
fn is_command_line(text: &str) -> bool {
    const WORDS: [&str; 9] =
        ["BOOT_IMAGE=", "root=", "console=", "ro", "rw", "quiet", "rootwait", "splash", "rootfstype="];
    let text = text.split_once("ommand line: ").map_or(text, |(_, rest)| rest);
    let is_parameter = |word: &str| {
        WORDS.iter().any(|known| if known.ends_with('=') { word.starts_with(known) } else { word == *known })
            || word.starts_with("usb-storage.")
            || word.starts_with("usb_storage.")
            || word.starts_with("usbcore.")
    };
    let words = text.split_whitespace();
    let known = words.clone().filter(|word| is_parameter(word)).count();
    let is_alone = words.clone().count() == 1 && text.contains("quirks=");
    (known >= 2 || known == 1 && is_alone)
        && !text.starts_with('[')
        && !text.contains(": ")
        && !text.starts_with("options")
}

/// The model of a board: a line of `cat /proc/device-tree/model`, of /proc/cpuinfo, or of the kernel's log.
pub(super) fn board_model(text: &str) -> Option<&str> {
    let text = text.trim_end_matches('\0').trim();
    let named = text.split_once("Machine model: ").map(|(_, model)| model);
    let of_cpuinfo = || text.strip_prefix("Model")?.trim_start().strip_prefix(": ");
    let alone = || Some(text).filter(|text| text.starts_with("Raspberry Pi ") && text.contains(" Rev "));
    named.or_else(of_cpuinfo).or_else(alone).filter(|model| model.contains(" Rev ") || named.is_some())
}

/// Whether a line is an attribute with its path: `/sys/…:value`, `/sys/… = value`, `/proc/cmdline:…`.
pub(super) fn is_attribute(text: &str) -> bool {
    attribute_of(text).is_some()
}

/// Whether a line is what `cat` prints of the quirks in force: `152d:0578:u,174c:55aa:`.
fn is_quirk_list(text: &str) -> bool {
    const ID_DIGITS: usize = 4;
    // Fewer digits are valid as well, but then a line may be a time of day.
    let is_id = |word: &str| word.len() == ID_DIGITS && word.bytes().all(|digit| digit.is_ascii_hexdigit());
    let is_entry = |entry: &str| {
        let mut words = entry.split(':');
        let (vendor, product, letters) = (words.next(), words.next(), words.next());
        vendor.is_some_and(is_id)
            && product.is_some_and(is_id)
            && letters.is_some_and(|letters| letters.chars().all(|letter| Flag::of_letter(letter).is_some()))
            && words.next().is_none()
    };
    !text.is_empty() && text.split(',').all(is_entry)
}

fn attribute_of(text: &str) -> Option<(&str, &str)> {
    if is_quirk_list(text.trim()) {
        return Some((PARAMETER, text.trim()));
    }
    if !text.starts_with("/sys/")
        && !text.starts_with("/proc/cmdline")
        && !text.starts_with("/proc/device-tree/")
        && !text.starts_with("/etc/modprobe.d/")
    {
        return None;
    }
    let spaced = text.split_once(" = ").or_else(|| text.split_once(": "));
    // Names of interfaces and PCI addresses have colons: the last one parts path and value.
    let (path, value) = match spaced {
        Some(pair) => pair,
        None => {
            let name = text.rfind('/')?;
            let colon = text.get(name..)?.find(':')? + name;
            (text.get(..colon)?, text.get(colon + 1..)?)
        }
    };
    (!path.contains(' ')).then_some((path, value.trim()))
}

/// Reads lines of that kind.
pub(super) fn read(kind: TextKind, reader: &Reader<'_>, facts: &mut Facts) {
    for line in reader.lines {
        let text = line.text.trim();
        let source = reader.source(line);
        match kind {
            TextKind::Uname => {
                if let Some(release) = release_of(text) {
                    facts.files.entry(BUILD.to_owned()).or_insert_with(|| (text.to_owned(), source.clone()));
                    facts.files.entry(RELEASE.to_owned()).or_insert_with(|| (release.to_owned(), source));
                }
            }
            TextKind::CommandLine => command_line(text, facts, source),
            TextKind::Modprobe => facts.modprobe.push((text.to_owned(), source)),
            TextKind::Lsmod => {
                let name = text.split_whitespace().next().unwrap_or_default().replace('-', "_");
                if ["uas", "usb_storage"].contains(&name.as_str()) {
                    facts.modules.push(name);
                }
            }
            _ => attribute(text, facts, source),
        }
    }
}

const RELEASE: &str = "/proc/sys/kernel/osrelease";
const BUILD: &str = "/proc/version";

pub(super) fn command_line(text: &str, facts: &mut Facts, source: super::Source) {
    let text = text.split_once("ommand line: ").map_or(text, |(_, rest)| rest);
    facts.files.entry("/proc/cmdline".to_owned()).or_insert_with(|| (text.to_owned(), source));
}

fn attribute(text: &str, facts: &mut Facts, source: super::Source) {
    let file = if let Some(model) = board_model(text) {
        Some((BOARD_MODEL, model))
    } else {
        text.starts_with("throttled=0x").then_some((THROTTLED, text))
    };
    if let Some((path, value)) = file {
        facts.files.entry(path.to_owned()).or_insert_with(|| (value.to_owned(), source));
        return;
    }
    let Some((path, value)) = attribute_of(text) else { return };
    if path.starts_with("/etc/modprobe.d/") {
        facts.modprobe.push((value.to_owned(), source));
        return;
    }
    device_attribute(path, value, facts, source);
}

/// An attribute of a device or an interface, or another file.
pub(super) fn device_attribute(path: &str, value: &str, facts: &mut Facts, source: super::Source) {
    let mut names = path.rsplit('/');
    let (name, parent) = (names.next().unwrap_or_default(), names.next().unwrap_or_default());
    let is_port = |text: &str| {
        let digits =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        text.split_once('-').is_some_and(|(bus, ports)| digits(bus) && digits(ports))
            || text.strip_prefix("usb").is_some_and(digits)
    };
    if let Some((port, numbers)) = parent.split_once(':').filter(|(port, _)| is_port(port)) {
        let Some(number) = numbers.split_once('.').and_then(|(_, number)| number.parse().ok()) else {
            return;
        };
        let interface = facts.device(&key(port)).interface(number);
        let byte = u8::from_str_radix(value, 16).unwrap_or_default();
        let class = interface.class.get_or_insert((0, 0, 0));
        match name {
            "bInterfaceClass" => {
                class.0 = byte;
                interface.is_storage |= byte == 8;
            }
            "bInterfaceSubClass" => class.1 = byte,
            "bInterfaceProtocol" => class.2 = byte,
            "bAlternateSetting" => interface.alternate = value.trim().parse().ok(),
            _ => {}
        }
        if interface.class == Some((0, 0, 0)) {
            interface.class = None;
        }
    } else if is_port(parent) {
        facts.device(&key(parent)).set(name, value, &source);
    } else if !path.contains("/../") {
        facts.files.entry(path.to_owned()).or_insert_with(|| (value.to_owned(), source));
    }
}

pub(super) fn key(port: &str) -> Key {
    Key { port: Some(port.to_owned()), bus: super::facts::bus_of(port), number: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_lines_are_known_by_what_they_hold() {
        for (text, kind) in [
            ("Linux box 5.15.0-91-generic #101-Ubuntu SMP x86_64 GNU/Linux", Some(TextKind::Uname)),
            ("BOOT_IMAGE=/vmlinuz root=UUID=1 ro quiet", Some(TextKind::CommandLine)),
            ("usb-storage.quirks=152d:0578:u", Some(TextKind::CommandLine)),
            ("options usb-storage quirks=152d:0578:u", Some(TextKind::Modprobe)),
            ("blacklist uas", Some(TextKind::Modprobe)),
            ("uas                    32768  1", Some(TextKind::Lsmod)),
            ("[    1.0] usb 2-1: Product: root=ro quiet", None),
            ("Linux is fine", None),
        ] {
            assert_eq!(kind_of(text), kind, "{text}");
        }
        assert_eq!(
            attribute_of("/sys/bus/usb/devices/2-1/speed:5000"),
            Some(("/sys/bus/usb/devices/2-1/speed", "5000"))
        );
        assert_eq!(
            attribute_of("/sys/bus/usb/devices/2-1:1.0/bInterfaceClass:08"),
            Some(("/sys/bus/usb/devices/2-1:1.0/bInterfaceClass", "08"))
        );
    }
}
