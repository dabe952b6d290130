//! Serial numbers that repeat: boxes with several bays, and cheap enclosures, give all drives the same.

use super::{Check, CheckKind, Health};
use crate::diagnose::evidence::{Evidence, Reading};
use crate::inventory::Disk;

pub(super) fn check(evidence: &Evidence<'_>) -> Check {
    let kind = CheckKind::Serial;
    let device = evidence.device;
    let is_stated =
        evidence.inventory.report.as_ref().is_none_or(|report| report.without_serial.contains(&device.port));
    if device.serial.is_none() && !is_stated {
        return kind.says(Health::Unknown, "the text has no serial number of it");
    }
    let Some(serial) = &device.serial else {
        return kind
            .says(
                Health::Concern,
                "it has no serial number, so its name in /dev/disk/by-id depends on the port",
            )
            .seen(evidence.attribute("serial", "does not exist"));
    };
    let reading = evidence.attribute("serial", serial);
    let same = |other: &&crate::inventory::UsbDevice| {
        other.port != device.port && other.id == device.id && other.serial.as_ref() == Some(serial)
    };
    let twins: Vec<_> = evidence.inventory.storage().filter(same).collect();
    if !twins.is_empty() {
        let ports: Vec<&str> = twins.iter().map(|twin| twin.port.as_str()).collect();
        let because =
            format!("{} has the same serial number: /dev/disk/by-id has one link for both", ports.join(", "));
        let check = kind.says(Health::Concern, because).seen(reading);
        return twins
            .into_iter()
            .fold(check, |check, twin| check.seen(Reading::new(twin.attribute("serial"), serial)));
    }
    let disks: Vec<&Disk> = evidence.interface.disks.iter().collect();
    let repeats = disks.iter().enumerate().find_map(|(at, disk)| {
        let own = disk.serial.as_ref()?;
        let twin = disks.get(at + 1..)?.iter().find(|other| other.serial.as_ref() == Some(own))?;
        Some((disk.lun, twin.lun, own.clone(), format!("{}/vpd_pg80", twin.path)))
    });
    match repeats {
        Some((first, second, own, path)) => kind
            .says(
                Health::Concern,
                format!("its logical units {first} and {second} have the same serial number"),
            )
            .seen(Reading::new(path, own)),
        None => kind.says(Health::Good, "no other drive here has the same serial number").seen(reading),
    }
}
