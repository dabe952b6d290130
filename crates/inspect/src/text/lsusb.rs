//! `lsusb`, and `lsusb -t` in the formats before and since usbutils 016.

use super::facts::{Facts, Key};
use super::section::{Reader, number};
use quirks::DeviceId;

/// `Bus 002 Device 003: ID 152d:0578 JMicron …`.
pub(super) fn device_line(text: &str) -> Option<(u16, u16, DeviceId)> {
    let rest = text.strip_prefix("Bus ")?;
    let (bus, rest) = rest.split_once(" Device ")?;
    let (device, rest) = rest.split_once(": ID ")?;
    let id: DeviceId = rest.get(..9)?.parse().ok()?;
    Some((bus.trim().parse().ok()?, device.trim().parse().ok()?, id))
}

/// Reads lines of plain `lsusb`.
pub(super) fn read(reader: &Reader<'_>, facts: &mut Facts) {
    for line in reader.lines {
        let Some((bus, number, id)) = device_line(&line.text) else { continue };
        let source = reader.source(line);
        let device = facts.device(&Key { port: None, bus: Some(bus), number: Some(number) });
        device.set_id(id, &source);
    }
}

/// Whether a line is one of `lsusb -t`.
pub(super) fn is_tree_line(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with("/:  Bus ") || text.starts_with("|__ Port ") || text.starts_with("/: Bus ")
}

/// Reads `lsusb -t`.
pub(super) fn read_tree(reader: &Reader<'_>, facts: &mut Facts) {
    let mut bus = None;
    // Indentation and port path of the hubs on the way.
    let mut way: Vec<(usize, String)> = Vec::new();
    for line in reader.lines {
        let text = line.text.trim_start();
        let indent = line.text.len() - text.len();
        let source = reader.source(line);
        if let Some(rest) = text.strip_prefix("/:") {
            bus = rest.trim_start().strip_prefix("Bus ").and_then(number);
            way.clear();
            let Some(bus) = bus else { continue };
            let port = format!("usb{bus}");
            let device = facts.device(&Key { port: Some(port), bus: Some(bus), number: Some(1) });
            note_speed(device, rest, &source);
            if let Some(driver) = field(rest, "Driver=") {
                let (driver, ports) = driver.split_once('/').unwrap_or((driver, ""));
                device.set("maxchild", ports.trim_end_matches('p'), &source);
                device.set(ROOT_DRIVER, driver, &source);
            }
            continue;
        }
        // `lsusb -tv` puts the ids on a separate line.
        if let (Some(id), Some((_, port))) =
            (text.strip_prefix("ID ").and_then(|id| id.get(..9)?.parse().ok()), way.last())
        {
            facts.device(&Key { port: Some(port.clone()), bus: None, number: None }).set_id(id, &source);
            continue;
        }
        let Some(rest) = text.strip_prefix("|__ Port ") else { continue };
        // What grep leaves of a tree lacks its root.
        let bus = bus.unwrap_or(0);
        let (Some(own), Some((_, rest))) = (number::<u16>(rest), rest.split_once(": ")) else { continue };
        while way.last().is_some_and(|(at, _)| *at >= indent) {
            way.pop();
        }
        let port = match way.last() {
            Some((_, hub)) => format!("{hub}.{own}"),
            None => format!("{bus}-{own}"),
        };
        way.push((indent, port.clone()));
        let device_number = rest.strip_prefix("Dev ").and_then(number);
        let device = facts.device(&Key { port: Some(port), bus: Some(bus), number: device_number });
        note_speed(device, rest, &source);
        let driver = field(rest, "Driver=").unwrap_or_default();
        if driver.starts_with("hub/") {
            device.set("maxchild", driver.trim_start_matches("hub/").trim_end_matches('p'), &source);
            continue;
        }
        let Some(interface) = field(rest, "If ").and_then(number::<u8>) else { continue };
        let interface = device.interface(interface);
        // Without the hardware database of udev, lsusb leaves the class empty.
        interface.is_storage |= ["uas", "usb-storage"].contains(&driver)
            || field(rest, "Class=").is_some_and(|class| class.starts_with("Mass Storage"));
        let driver =
            Some(driver).filter(|driver| !driver.is_empty() && *driver != "[none]" && *driver != "(none)");
        interface.driver.get_or_insert_with(|| (driver.map(str::to_owned), source));
    }
}

/// The attribute under which the driver of a root hub's controller is kept.
pub(super) const ROOT_DRIVER: &str = "controller-driver";

/// `480M`, `5000M`, `20000M/x2` at the end of a line.
fn note_speed(device: &mut super::facts::DeviceFact, text: &str, source: &super::Source) {
    let Some((_, last)) = text.rsplit_once(", ") else { return };
    if let Some((mbps, _)) = last.split_once('M').filter(|(mbps, _)| mbps.parse::<f32>().is_ok()) {
        device.set("speed", mbps, source);
    }
}

/// Returns the text after a name up to the next comma.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(name)?;
    Some(rest.split(',').next().unwrap_or(rest).trim())
}
