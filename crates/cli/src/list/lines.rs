//! The list for people: a bus, and below it one line for each drive, indented by the hubs on its way.
//!
//! Columns are as wide as the widest entry of all buses; what a device says of itself comes last. What devices and files say
//! is escaped, so that it cannot play with the terminal. On a terminal that is narrower than the lines, a table
//! of all drives leaves columns out and names them; elsewhere nothing is left out.

use crate::compare::table::in_columns;
use crate::sanitize::escape;
use inspect::diagnose::Diagnoser;
use inspect::inventory::{DEVICES, Disk, Interface, Inventory, Transport, UsbDevice, bridge_family};
use inspect::text::{DEVICES_MAX, ForeignDrive, ForeignSystem, TextKind};
use inspect::tree::LOG_LINES_MAX;
use report::TextTable;
use study::plural::counted;
use units::Capacity;

/// The cells of a line, by column.
type Row = [String; 7];

const TITLES: [&str; 7] = ["PORT", "TRANSPORT", "LINK", "DEPTH", "DISK", "SIZE", "DEVICE"];

/// The whole list; everything with `all`, else drives and what they are plugged into. `columns` are those of the
/// terminal.
pub(super) fn inventory(inventory: &Inventory, all: bool, columns: Option<usize>) -> String {
    let mut buses: Vec<(String, Vec<Row>)> = Vec::new();
    for device in &inventory.devices {
        if device.is_root_hub() {
            buses.push((escape(&bus_line(inventory, device)), Vec::new()));
        } else if let Some((_, rows)) = buses.last_mut().filter(|_| all || is_ancestor(inventory, device)) {
            rows.extend(rows_of(device).into_iter().map(|row| row.map(|cell| escape(&cell))));
        }
    }
    buses.retain(|(_, rows)| all || !rows.is_empty());
    if buses.is_empty() {
        return nothing(inventory);
    }
    let titles = TITLES.map(str::to_owned);
    let rows = buses.iter().flat_map(|(_, rows)| rows).chain([&titles]);
    let widths =
        rows.fold([0; 7], |widths, row| std::array::from_fn(|at| widths[at].max(row[at].chars().count())));
    let mut lines = vec![line(&titles, &widths)];
    for (bus, rows) in &buses {
        lines.push(bus.clone());
        lines.extend(rows.iter().map(|row| line(row, &widths)));
    }
    let fits = |columns: usize| lines.iter().all(|line| line.chars().count() <= columns);
    match columns.filter(|columns| !fits(*columns)) {
        Some(columns) => narrow(&buses, columns),
        None => lines.iter().map(|line| format!("{line}\n")).collect(),
    }
}

/// The text without any drive.
pub(crate) fn nothing(inventory: &Inventory) -> String {
    if let Some(report) = &inventory.report {
        return match (report.foreign.is_empty(), report.kinds.is_empty()) {
            (false, _) => String::new(),
            (true, false) => match report.kinds.iter().find_map(|kind| system_of(*kind)) {
                Some(system) => format!("The report is from {system} and names no USB drive.\n"),
                None => no_drive(inventory),
            },
            (true, true) => {
                "The report contains no known format: no kernel log, no lsusb, no lspci.\n".to_owned()
            }
        };
    }
    if inventory.devices.iter().any(UsbDevice::is_root_hub) {
        "No USB drive is attached.\n".to_owned()
    } else {
        format!("No USB bus found in {DEVICES}.\n")
    }
}

/// A text of Linux without a drive, with the devices that may be one.
fn no_drive(inventory: &Inventory) -> String {
    const NAMED_MAX: usize = 4;
    let is_device =
        |device: &&UsbDevice| !device.is_root_hub() && device.hub_ports == 0 && device.interfaces.is_empty();
    let devices: Vec<String> = inventory
        .devices
        .iter()
        .filter(is_device)
        .map(|device| format!("{} ({})", escape(&device.port), device.id))
        .collect();
    if devices.is_empty() || devices.len() > NAMED_MAX {
        return "The report names no attached USB drive.\n".to_owned();
    }
    format!(
        "The report names no attached USB drive; the classes of these devices are unknown: {}.\n",
        devices.join(", ")
    )
}

/// The system of a text that is not Linux's.
const fn system_of(kind: TextKind) -> Option<&'static str> {
    match kind {
        TextKind::Windows => Some("Windows"),
        TextKind::Apple => Some("macOS"),
        TextKind::Bsd => Some("FreeBSD, OpenBSD or NetBSD"),
        _ => None,
    }
}

fn line(row: &Row, widths: &[usize; 7]) -> String {
    let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
    cells.join("  ").trim_end().to_owned()
}

/// The list for a terminal that is narrower than its lines: the buses, then a table of all drives, which breaks cells and
/// leaves columns out.
fn narrow(buses: &[(String, Vec<Row>)], columns: usize) -> String {
    let table = TextTable::new(TITLES).words([1, 6]).names([0, 2, 4]);
    let mut table = table.leave_out_first(&["LINK", "DEPTH", "SIZE"]).open();
    buses.iter().flat_map(|(_, rows)| rows).for_each(|row| table.row(row.clone()));
    let titles: String = buses.iter().map(|(bus, _)| format!("{bus}\n")).collect();
    format!("{titles}\n{}\n", in_columns(&table, Some(columns)))
}

fn bus_line(inventory: &Inventory, hub: &UsbDevice) -> String {
    let mut line = format!("bus {}, {}", hub.bus, hub.speed);
    if let Some(controller) = inventory.controller_of(hub) {
        let driver = controller.driver.as_deref().unwrap_or("no driver");
        line += &format!(", {driver} at {}", controller.name);
        if let Some((vendor, device)) = controller.pci {
            line += &format!(" ({vendor:04x}:{device:04x})");
        }
    }
    line
}

/// A drive, or a hub that has one behind it.
fn is_ancestor(inventory: &Inventory, device: &UsbDevice) -> bool {
    let behind = format!("{}.", device.port);
    device.is_storage() || inventory.storage().any(|storage| storage.port.starts_with(&behind))
}

/// A line for the device, and one for each further disk.
fn rows_of(device: &UsbDevice) -> Vec<Row> {
    let port = format!("{:indent$}{}", "", device.port, indent = 2 * (device.tier() - 1));
    let name = bridge_family(device.id)
        .map_or_else(|| device.title(), |family| format!("{family}, {}", device.title()));
    let device_cell = format!("{} {name}", device.id);
    let link = device.speed.to_string();
    if !device.is_storage() {
        let kind = if device.hub_ports > 0 {
            format!("hub, {}", counted(device.hub_ports.into(), "port"))
        } else {
            "-".into()
        };
        return vec![[port, kind, link, String::new(), String::new(), String::new(), device_cell]];
    }
    let mut rows: Vec<Row> = Vec::new();
    for interface in Interface::storage_of(device) {
        let transport = match Transport::of(device, interface) {
            Transport::None if !device.is_configured() => "not configured".into(),
            transport => describe(&transport),
        };
        let disks: Vec<[String; 3]> = interface.disks.iter().map(cells_of).collect();
        let first = disks.first().cloned().unwrap_or_default();
        let [depth, disk, size] = first;
        rows.push([port.clone(), transport, link.clone(), depth, disk, size, device_cell.clone()]);
        let blank = String::new;
        rows.extend(
            disks
                .into_iter()
                .skip(1)
                .map(|[depth, disk, size]| [blank(), blank(), blank(), depth, disk, size, blank()]),
        );
    }
    rows
}

fn cells_of(disk: &Disk) -> [String; 3] {
    let depth = disk.queue_depth.map_or_else(String::new, |depth| depth.to_string());
    let node = disk.node.as_ref().map_or_else(|| format!("lun {}", disk.lun), |node| format!("/dev/{node}"));
    [depth, node, disk.bytes.map_or_else(String::new, |bytes| Capacity(bytes).to_string())]
}

fn describe(transport: &Transport) -> String {
    match transport {
        Transport::Uas { streams: true } => "UAS, streams".into(),
        Transport::Uas { streams: false } => "UAS, no streams".into(),
        other => other.to_string(),
    }
}

/// Drives, ports and controllers that the log speaks of and that are not there; drives of other systems.
pub(crate) fn not_there(diagnoser: &Diagnoser<'_>, inventory: &Inventory) -> String {
    let mut text = String::new();
    for one in diagnoser.absent() {
        text += &format!("\n{}: {}.\n", escape(&one.place), escape(&one.because));
    }
    for drive in inventory.report.iter().flat_map(|report| &report.foreign) {
        text += &format!("\n{}\n", foreign(drive));
    }
    text
}

/// Limits that a log or a report exceeds, so that a part of it alone was considered.
pub(crate) fn exceeded_limits(inventory: &Inventory) -> String {
    let mut text = String::new();
    if let Some(log) = inventory.readable_log().filter(|log| log.lines_left_out > 0) {
        text += &format!(
            "\nOnly the last {LOG_LINES_MAX} lines of the log about USB are considered; {} before them are not.\n",
            log.lines_left_out
        );
    }
    if inventory.report.as_ref().is_some_and(|report| report.has_more_devices) {
        text += &format!("\nOnly {DEVICES_MAX} devices are considered; the report names more.\n");
    }
    text
}

/// A drive of another system in a sentence.
pub(crate) fn foreign(drive: &ForeignDrive) -> String {
    let system = match drive.system {
        ForeignSystem::Windows => "Windows",
        ForeignSystem::MacOs => "macOS",
        ForeignSystem::FreeBsd => "FreeBSD",
        ForeignSystem::OtherBsd => "OpenBSD or NetBSD",
    };
    let family = bridge_family(drive.id).map_or_else(String::new, |family| format!(" ({family})"));
    let speed = drive.speed.map_or_else(String::new, |speed| format!(" at {speed}"));
    let how = match (drive.transport, &drive.driver) {
        // A device that did not start uses nothing.
        (Some(transport), Some(driver)) if drive.error.is_some() => {
            format!("is attached{speed}; its driver is {driver} ({transport})")
        }
        (Some(transport), Some(driver)) => format!("uses {transport} (driver {driver}){speed}"),
        _ => format!("is attached{speed}; the report does not name its driver"),
    };
    let id = match &drive.name {
        Some(name) if name.starts_with("/dev/") && drive.id != quirks::DeviceId::new(0, 0) => {
            format!("{} as {name}", drive.id)
        }
        Some(name) => name.clone(),
        None if drive.id == quirks::DeviceId::new(0, 0) => "a drive".to_owned(),
        None => drive.id.to_string(),
    };
    let error = drive.error.as_ref().map_or_else(String::new, |error| format!(" It reports: {error}."));
    escape(&format!("On {system}, {id}{family} {how}.{error} Linux's rules do not apply to {system}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_terminal_leaves_columns_out_and_names_them() {
        let row = |port: &str, disk: &str| {
            [
                port,
                "UAS, streams",
                "5 Gb/s",
                "30",
                disk,
                "4.0 TB",
                "152d:0562 JMicron JMS562 USB to ATA Bridge",
            ]
            .map(str::to_owned)
        };
        let bus = "bus 2, 10 Gb/s, xhci_hcd at 0000:00:14.0";
        let buses = [(bus.to_owned(), vec![row("  2-1", "/dev/sda"), row("    2-1.2", "/dev/sdb")])];
        for columns in [60, 80] {
            let text = narrow(&buses, columns);
            let mut table = text.lines().filter(|line| !line.starts_with("Not shown"));
            assert!(table.all(|line| line.chars().count() <= columns), "{columns}: {text}");
            for part in [bus, "  2-1 ", "    2-1.2 ", "/dev/sda", "/dev/sdb", "JMS562"] {
                assert!(text.contains(part), "{columns}, {part}: {text}");
            }
            assert_eq!(text.contains("Not shown: LINK"), columns == 60, "{text}");
        }
    }
}
