//! Texts of Windows and macOS. Linux's rules are not applied to them: they say which driver has a drive, and how fast it is.
//!
//! Windows: USB Device Tree Viewer and `pnputil /enum-devices`. macOS: `system_profiler SPUSBDataType`, since macOS 26
//! `SPUSBHostDataType`, `ioreg`, and the kernel's log ([`super::apple_log`]).

use super::apple_log;
use super::facts::Facts;
use super::section::Reader;
use super::{ForeignDrive, ForeignSystem, TextKind};
use quirks::DeviceId;

/// Drivers of mass storage, by the word that a text has.
const DRIVERS: [(&str, &str); 6] = [
    ("UASPStor", "UAS"),
    ("uaspstor", "UAS"),
    ("IOUSBMassStorageUASDriver", "UAS"),
    ("IOUSBAttachedSCSI", "UAS"),
    ("USBSTOR", "BOT"),
    ("IOUSBMassStorage", "BOT"),
];

/// Reads a text of that system.
pub(super) fn read(kind: TextKind, reader: &Reader<'_>, facts: &mut Facts) {
    let system = if kind == TextKind::Windows { ForeignSystem::Windows } else { ForeignSystem::MacOs };
    let mut current: Option<ForeignDrive> = None;
    let mut vendor: Option<u16> = None;
    let mut product: Option<u16> = None;
    for line in reader.lines {
        let text = line.text.trim();
        let source = reader.source(line);
        let id = match system {
            ForeignSystem::Windows => windows_id(text),
            _ => {
                vendor = apple_number(text, &["Vendor ID:", "idVendor"]).or(vendor);
                product = apple_number(text, &["Product ID:", "idProduct"]).or(product);
                let id = product.zip(vendor).map(|(product, vendor)| DeviceId::new(vendor, product));
                if id.is_some() {
                    (vendor, product) = (None, None);
                }
                id
            }
        };
        if let Some(id) = id.filter(|id| current.as_ref().is_none_or(|drive| drive.id != *id)) {
            keep(current.take(), facts);
            current = Some(ForeignDrive::new(system, id, source));
        }
        if let Some(disk) = apple_disk(text).filter(|_| system == ForeignSystem::MacOs) {
            let drive = current
                .get_or_insert_with(|| ForeignDrive::new(system, DeviceId::new(0, 0), reader.source(line)));
            drive.name.get_or_insert(format!("/dev/{disk}"));
        }
        let Some(drive) = &mut current else { continue };
        note(drive, text);
    }
    keep(current, facts);
    if system == ForeignSystem::MacOs {
        read_apple_log(reader, facts);
    }
}

/// Reads the kernel's log of macOS. An error of a disk belongs to the drive with its name, or to the only one.
fn read_apple_log(reader: &Reader<'_>, facts: &mut Facts) {
    for line in reader.lines {
        if let Some((id, identifier)) = apple_log::found(&line.text) {
            let mut source = reader.source(line);
            if let Some(serial) = identifier {
                source.text = source.text.replace(serial, "…");
            }
            if !facts.foreign.iter().any(|drive| drive.id == id) {
                let _ = facts.add_foreign(ForeignDrive::new(ForeignSystem::MacOs, id, source));
            }
        } else if let Some((disk, volume, error)) = apple_log::disk_error(&line.text) {
            let node = format!("/dev/{disk}");
            let named = facts.foreign.iter().position(|drive| drive.name.as_deref() == Some(&node));
            let is_alone = facts.foreign.len() == 1 && !["disk0", "disk1"].contains(&disk);
            let at = named.or(is_alone.then_some(0));
            if let Some(drive) = at.and_then(|at| facts.foreign.get_mut(at)) {
                drive.error = Some(format!("{error} of {volume}"));
            }
        }
    }
}

fn note(drive: &mut ForeignDrive, text: &str) {
    if drive.transport != Some("UAS")
        && let Some((driver, transport)) = driver(text)
    {
        drive.driver = Some(driver.to_owned());
        drive.transport = Some(transport);
    }
    if let Some(problem) = windows_problem(text) {
        drive.error = Some(format!("the problem {problem}"));
    }
    let is_speed =
        ["Speed:", "Device Bus Speed", "Link Speed:", "Device Speed"].iter().any(|word| text.contains(word));
    if is_speed && drive.speed.is_none() {
        drive.speed = speed(text);
    }
}

/// The driver that a line names, and its transport. `pnputil` names the driver's file, in small letters.
fn driver(text: &str) -> Option<(&'static str, &'static str)> {
    let is_named = |word: &str| {
        text.contains(word)
            || text.split_whitespace().any(|one| one == format!("{}.inf", word.to_lowercase()))
    };
    DRIVERS.into_iter().find(|(word, _)| is_named(word))
}

/// The speed of a line, in the words that both systems use.
fn speed(text: &str) -> Option<&'static str> {
    const SPEEDS: [(&str, &str); 10] = [
        ("20 Gb", "20 Gb/s"),
        ("10 Gb", "10 Gb/s"),
        ("5 Gb", "5 Gb/s"),
        ("480 Mb", "480 Mb/s"),
        ("12 Mb", "12 Mb/s"),
        ("SuperSpeedPlus", "10 Gb/s"),
        ("Super-Speed+", "10 Gb/s"),
        ("Super-Speed", "5 Gb/s"),
        ("SuperSpeed", "5 Gb/s"),
        ("High-Speed", "480 Mb/s"),
    ];
    SPEEDS.iter().find(|(word, _)| text.contains(word)).map(|(_, speed)| *speed)
}

/// A device that is mass storage, as far as its driver or its chip says.
fn keep(drive: Option<ForeignDrive>, facts: &mut Facts) {
    let is_drive = |drive: &ForeignDrive| {
        drive.transport.is_some() || drive.name.is_some() || crate::inventory::is_storage_id(drive.id)
    };
    let is_known = |drive: &ForeignDrive| {
        facts.foreign.iter().any(|other| other.id == drive.id && other.driver.is_some())
    };
    if let Some(drive) = drive.filter(is_drive).filter(|drive| !is_known(drive)) {
        facts.foreign.retain(|other: &ForeignDrive| other.id != drive.id);
        let _ = facts.add_foreign(drive);
    }
}

/// `BSD Name: disk4`, which is the disk and no partition.
fn apple_disk(text: &str) -> Option<&str> {
    let disk = text.strip_prefix("BSD Name: ")?.trim();
    let number = disk.strip_prefix("disk")?;
    (!number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())).then_some(disk)
}

/// `Problem Code: 10 (0x0A) [CM_PROB_FAILED_START]`, whatever language the words before it are in.
fn windows_problem(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("CM_PROB_")?;
    let end = rest.find(|sign: char| !sign.is_ascii_uppercase() && sign != '_').unwrap_or(rest.len());
    let from = text.len() - rest.len() - "CM_PROB_".len();
    text.get(from..text.len() - rest.len() + end).filter(|problem| *problem != "CM_PROB_NONE")
}

/// `USB\VID_152D&PID_0578\…`.
fn windows_id(text: &str) -> Option<DeviceId> {
    let (_, rest) = text.split_once("VID_")?;
    let vendor = u16::from_str_radix(rest.get(..4)?, 16).ok()?;
    let (_, rest) = rest.split_once("PID_")?;
    Some(DeviceId::new(vendor, u16::from_str_radix(rest.get(..4)?, 16).ok()?))
}

/// `Product ID: 0x0578`, `"idProduct" = 1400`.
fn apple_number(text: &str, names: &[&str]) -> Option<u16> {
    let rest = names.iter().find_map(|name| text.split_once(name)).map(|(_, rest)| rest)?;
    if let Some((_, digits)) = rest.split_once("0x") {
        let digits: String = digits.chars().take_while(char::is_ascii_hexdigit).take(4).collect();
        return u16::from_str_radix(&digits, 16).ok();
    }
    rest.split_once("= ").and_then(|(_, number)| number.trim().parse().ok())
}
