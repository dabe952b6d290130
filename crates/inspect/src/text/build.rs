//! From facts to the files of a machine, and what of them was missing.
//!
//! Paths below /sys/devices are made up, those below /sys/bus/usb/devices are the kernel's, so that readings name the
//! attribute that a user can look at. Always true: an attribute without a text is absent.

use super::facts::{ControllerFact, DEVICES_MAX, DeviceFact, Facts, UnitFact};
use super::lsusb::ROOT_DRIVER;
use super::section::Reader;
use super::system::key;
use super::{Report, Source};
use crate::inventory::{DEVICES, LinkSpeed};
use crate::log::{History, LogLine, Session};
use crate::tree::Record;
use std::collections::BTreeMap;

/// A machine in the format of recorded trees, and what is known of its making.
pub(super) struct Built {
    pub(super) record: Record,
    pub(super) report: Report,
    /// Interfaces of which no text names a driver.
    pub(super) unknown_drivers: Vec<String>,
    serials: Vec<String>,
}

/// Takes lines of the kernel's log; whether one of them is about USB or its drives.
pub(super) fn read_log(reader: &Reader<'_>, facts: &mut Facts) -> bool {
    let mut is_log = false;
    for line in reader.lines {
        let text = line.text.as_ref();
        if text.is_empty() {
            continue;
        }
        let source = || Source { file: reader.file.to_owned(), line: line.number, text: String::new() };
        if text.contains("ommand line: ")
            && ["Command line", "Kernel command line"].contains(&LogLine::of(text).source)
        {
            super::system::command_line(LogLine::of(text).text, facts, source());
            continue;
        }
        if let Some(model) = super::system::board_model(text).filter(|_| text.contains("Machine model: ")) {
            let path = crate::inventory::BOARD_MODEL.to_owned();
            facts.files.entry(path).or_insert_with(|| (model.to_owned(), source()));
        }
        // The log of another program's lines stays out; sleep of the machine explains resets.
        let is_of_drives = crate::inventory::is_about_drives(text);
        is_log |= is_of_drives;
        if is_of_drives || text.contains("PM: ") {
            facts.log.push((text.to_owned(), source()));
        }
    }
    if is_log {
        let times = reader.lines.iter().rev().find_map(|line| crate::log::seconds(&line.text));
        facts.log_end = times.or(facts.log_end);
    }
    is_log
}

/// A serial number's replacement: equal ones have equal ones. Controllers' names at root hubs are none.
fn mask(serials: &mut Vec<String>, serial: &str) -> String {
    if serial.split(':').count() == 3 {
        return serial.to_owned();
    }
    let at = serials.iter().position(|known| known == serial).unwrap_or_else(|| {
        serials.push(serial.to_owned());
        serials.len() - 1
    });
    format!("SERIAL-{}", at + 1)
}

/// Writes the machine.
pub(super) fn machine(mut facts: Facts) -> Built {
    let log = std::mem::take(&mut facts.log);
    let history = History::of(log.iter().map(|(line, _)| line.as_str()));
    add_sessions(&history, &log, &mut facts);
    facts.join();
    let mut built = Built {
        record: Record::default(),
        report: Report::default(),
        unknown_drivers: Vec::new(),
        serials: Vec::new(),
    };
    let controllers = controllers(&facts, &history);
    drop(history);
    name_ports(&mut facts);
    let root_buses: Vec<u16> = facts.devices.iter().filter_map(|device| device.bus).collect();
    for bus in root_buses {
        let root = facts.device(&key(&format!("usb{bus}")));
        root.number = root.number.or(Some(1));
        let none = Source { file: String::new(), line: 0, text: String::new() };
        root.attributes.entry("idVendor".to_owned()).or_insert_with(|| ("1d6b".to_owned(), none.clone()));
        root.attributes.entry("idProduct".to_owned()).or_insert_with(|| ("0002".to_owned(), none));
    }
    for device in &mut facts.devices {
        let is_drive = device.interfaces.values().any(|interface| interface.is_storage);
        if is_drive && device.id().is_none() {
            let source = device.interfaces.values().find_map(|interface| Some(interface.driver.clone()?.1));
            let none = source.unwrap_or(Source { file: String::new(), line: 0, text: String::new() });
            device.set_id(quirks::DeviceId::new(0, 0), &none);
        }
    }
    for device in &facts.devices {
        write_device(device, &controllers, &mut built);
    }
    write_controllers(&controllers, &mut built);
    write_drivers(&facts, &log, &mut built);
    for (path, (value, source)) in &facts.files {
        built.record.put_text(path, value);
        built.report.sources.insert(path.clone(), source.clone());
    }
    if !facts.modprobe.is_empty() {
        let lines: Vec<&str> = facts.modprobe.iter().map(|(line, _)| line.as_str()).collect();
        built.record.put_text(MODPROBE, &lines.join("\n"));
        if let Some((_, source)) = facts.modprobe.first() {
            built.report.sources.insert(MODPROBE.to_owned(), source.clone());
        }
    }
    if !log.is_empty() {
        let lines: Vec<&str> = log.iter().map(|(line, _)| line.as_str()).collect();
        built.record.put_text("/dev/kmsg", &lines.join("\n"));
    }
    built.report.has_more_devices = facts.has_more_devices;
    built.report.set_log(log);
    built.report.log_end = facts.log_end;
    built.report.smart = facts.smart;
    built.report.foreign = facts.foreign;
    built
}

const MODPROBE: &str = "/etc/modprobe.d/report.conf";

/// Devices that are attached at the end of the log.
fn add_sessions(history: &History<'_>, log: &[(String, Source)], facts: &mut Facts) {
    let mut last: BTreeMap<&str, &Session> = BTreeMap::new();
    for session in history.sessions.iter().filter(|session| session.is_located()) {
        last.insert(&session.port, session);
    }
    let is_device = |session: &&Session| {
        !session.is_ended() && (session.id.is_some() || !session.hosts.is_empty() || session.is_storage)
    };
    let mut attached: Vec<&Session> = last.into_values().filter(is_device).collect();
    if attached.len() > DEVICES_MAX {
        // The last ones count, in the order of their ports.
        facts.has_more_devices = true;
        attached.sort_by_key(|session| session.first);
        attached.drain(..attached.len() - DEVICES_MAX);
        attached.sort_by(|one, other| one.port.cmp(&other.port));
    }
    for session in attached {
        let at = session.found.unwrap_or(session.first);
        let Some((_, source)) = log.get(at) else { continue };
        let mut key = key(&session.port);
        key.number = session.number;
        let device = facts.device(&key);
        add_session(device, session, source);
    }
}

fn add_session(device: &mut DeviceFact, session: &Session, source: &Source) {
    if let Some(id) = session.id {
        device.set_id(id, source);
    }
    if let Some(revision) = session.revision {
        device.set("bcdDevice", format!("{revision:04x}"), source);
    }
    for (name, value) in
        [("manufacturer", &session.manufacturer), ("product", &session.product), ("serial", &session.serial)]
    {
        if let Some(value) = value {
            device.set(name, value.clone(), source);
        }
    }
    let speed = session.speed.and_then(|speed| match speed {
        LinkSpeed::Low => Some("1.5".to_owned()),
        LinkSpeed::Full => Some("12".to_owned()),
        LinkSpeed::High => Some("480".to_owned()),
        LinkSpeed::Super { mbps } => Some(mbps.to_string()),
        LinkSpeed::Unknown => None,
    });
    if let Some(speed) = speed {
        device.set("speed", speed, source);
    }
    if session.hub_ports > 0 {
        device.set("maxchild", session.hub_ports.to_string(), source);
    }
    device.is_without_serial |= session.is_without_serial;
    if session.driver.is_some() || session.is_storage {
        let interface = device.interface(0);
        interface.is_storage = true;
        if let Some(driver) = session.driver {
            interface.driver.get_or_insert_with(|| (Some(driver.to_owned()), source.clone()));
        } else if session.is_refused {
            interface.driver.get_or_insert_with(|| (None, source.clone()));
        }
    }
    if device.units.is_empty() {
        device.units = session
            .units
            .iter()
            .map(|unit| UnitFact {
                address: unit.address.clone(),
                node: unit.node.clone(),
                vendor: unit.vendor.clone(),
                model: unit.model.clone(),
                capacity: unit.capacity,
            })
            .collect();
    }
}

/// Names devices without a port: `2-dev3` is device 3 of bus 2.
fn name_ports(facts: &mut Facts) {
    for (at, device) in facts.devices.iter_mut().enumerate() {
        if device.port.is_some() {
            continue;
        }
        let bus = device.bus.unwrap_or(0);
        device.bus = Some(bus);
        let is_root = device.number == Some(1) && device.id().is_some_and(|id| id.vendor == LINUX_FOUNDATION);
        device.port = Some(match device.number {
            _ if is_root => format!("usb{bus}"),
            Some(number) => format!("{bus}-dev{number}"),
            None => format!("{bus}-unknown{at}"),
        });
    }
}

/// How the name of a controller begins that no text has; the number of its bus follows.
pub(crate) const UNNAMED_CONTROLLER: &str = "controller-of-bus-";

const LINUX_FOUNDATION: u16 = 0x1d6b;

/// The controller of each bus.
fn controllers(facts: &Facts, history: &History<'_>) -> BTreeMap<u16, ControllerFact> {
    let is_xhci = |controller: &&ControllerFact| {
        controller.driver.as_deref().is_some_and(|driver| driver.contains("xhci"))
            || controller.source.as_ref().is_some_and(|source| source.text.to_lowercase().contains("xhci"))
            || facts.controllers.len() == 1
    };
    let only = {
        let mut all = facts.controllers.iter().filter(is_xhci);
        all.next().filter(|_| all.next().is_none())
    };
    let mut announced: BTreeMap<u16, &Session> = BTreeMap::new();
    for session in history.sessions.iter() {
        if let Some(bus) = session.bus() {
            announced.entry(bus).or_insert(session);
        }
    }
    let mut controllers = BTreeMap::new();
    let buses = facts
        .devices
        .iter()
        .filter_map(|device| device.bus.or_else(|| super::facts::bus_of(device.port.as_deref()?)));
    for bus in buses {
        if controllers.contains_key(&bus) {
            continue;
        }
        let root = facts.devices.iter().find(|device| device.port.as_deref() == Some(&format!("usb{bus}")));
        let driver = root.and_then(|root| root.attributes.get(ROOT_DRIVER)).map(|(driver, _)| driver.clone());
        let driver =
            driver.or_else(|| announced.get(&bus).and_then(|session| session.controller_driver.clone()));
        let named = history.controller_of(bus);
        let found = match named {
            Some(name) => facts.controllers.iter().find(|controller| controller.name == name),
            None => only.filter(|_| driver.as_deref().is_none_or(|driver| driver.contains("xhci"))),
        };
        let mut controller = found.cloned().unwrap_or_default();
        if controller.name.is_empty() {
            controller.name = named.map_or_else(|| format!("{UNNAMED_CONTROLLER}{bus}"), str::to_owned);
        }
        controller.driver = controller.driver.or(driver);
        controllers.insert(bus, controller);
    }
    controllers
}

fn directory(name: &str) -> String {
    let safe: String = name
        .chars()
        .map(|sign| if sign.is_ascii_alphanumeric() || ":._-".contains(sign) { sign } else { '_' })
        .collect();
    format!("/sys/devices/report/{safe}")
}

fn write_controllers(controllers: &BTreeMap<u16, ControllerFact>, built: &mut Built) {
    for controller in controllers.values() {
        let path = directory(&controller.name);
        if let Some((vendor, device)) = controller.pci {
            built.record.put_text(&format!("{path}/vendor"), &format!("0x{vendor:04x}"));
            built.record.put_text(&format!("{path}/device"), &format!("0x{device:04x}"));
        }
        if let Some(driver) = &controller.driver {
            built.record.put_link(&format!("{path}/driver"), &format!("/sys/bus/pci/drivers/{driver}"));
        }
        if let Some(source) = &controller.source {
            for name in ["driver", "device"] {
                built.report.sources.insert(format!("{path}/{name}"), source.clone());
            }
        }
    }
}

fn write_device(device: &DeviceFact, controllers: &BTreeMap<u16, ControllerFact>, built: &mut Built) {
    let (Some(port), Some(bus)) = (&device.port, device.bus) else { return };
    let controller = controllers.get(&bus).map_or("unknown", |controller| controller.name.as_str());
    let root = format!("{}/usb{bus}", directory(controller));
    let path = if *port == format!("usb{bus}") { root } else { format!("{root}/{port}") };
    built.record.put_link(&format!("{DEVICES}/{port}"), &path);
    built.record.put_text(&format!("{path}/busnum"), &bus.to_string());
    built.record.put_text(&format!("{path}/devnum"), &device.number.unwrap_or(0).to_string());
    for (name, (value, source)) in device.attributes.iter().filter(|(name, _)| *name != ROOT_DRIVER) {
        let masked = if name == "serial" { mask(&mut built.serials, value) } else { value.clone() };
        built.record.put_text(&format!("{path}/{name}"), &masked);
        if !source.file.is_empty() {
            built.report.sources.insert(format!("{DEVICES}/{port}/{name}"), source.clone());
        }
    }
    if let Some((bytes, source)) = &device.descriptors {
        built.record.put_bytes(&format!("{path}/descriptors"), bytes);
        built.report.sources.insert(format!("{DEVICES}/{port}/descriptors"), source.clone());
    }
    if let Some((bytes, source)) = &device.object_store {
        built.record.put_bytes(&format!("{path}/bos_descriptors"), bytes);
        built.report.sources.insert(format!("{DEVICES}/{port}/bos_descriptors"), source.clone());
    }
    if device.is_without_serial {
        built.report.without_serial.push(port.clone());
    }
    if device.is_short {
        built.report.short.push(port.clone());
    }
    write_interfaces(device, port, &path, built);
}

fn write_interfaces(device: &DeviceFact, port: &str, path: &str, built: &mut Built) {
    let mut interfaces = device.interfaces.clone();
    let is_hub = device.attributes.contains_key("maxchild");
    let is_known_bridge = device.id().is_some_and(crate::inventory::is_storage_id);
    if interfaces.is_empty() && !is_hub && is_known_bridge {
        // Plain lsusb has ids alone; those of bridges are drives.
        interfaces.entry(0).or_default().is_storage = true;
    }
    for (number, interface) in interfaces {
        let driver = interface.driver.as_ref().and_then(|(driver, _)| driver.as_deref());
        let class = match (driver, interface.class) {
            (Some("uas"), Some((8, 6, _)) | None) => (8, 6, 0x62),
            (_, Some(class)) => class,
            _ if interface.is_storage => (8, 6, 0x50),
            _ => continue,
        };
        let name = format!("{port}:1.{number}");
        let at = format!("{path}/{name}");
        built.record.put_link(&format!("{DEVICES}/{name}"), &at);
        let alternate = interface.alternate.unwrap_or_else(|| u8::from(driver == Some("uas")));
        for (attribute, value) in [
            ("bInterfaceNumber", number),
            ("bInterfaceClass", class.0),
            ("bInterfaceSubClass", class.1),
            ("bInterfaceProtocol", class.2),
            ("bAlternateSetting", alternate),
        ] {
            built.record.put_text(&format!("{at}/{attribute}"), &format!("{value:02x}"));
        }
        match &interface.driver {
            Some((driver, source)) => {
                if let Some(driver) = driver {
                    built.record.put_link(&format!("{at}/driver"), &format!("/sys/bus/usb/drivers/{driver}"));
                    built.record.put_directory(&format!("/sys/bus/usb/drivers/{driver}"));
                }
                built.report.sources.insert(format!("{DEVICES}/{name}/driver"), source.clone());
            }
            None => built.unknown_drivers.push(name.clone()),
        }
        if class.0 == 8 {
            write_units(&device.units, &at, built);
        }
    }
}

fn write_units(units: &[UnitFact], path: &str, built: &mut Built) {
    /// The kernel's unit of `size`.
    const SECTOR_BYTES: u64 = 512;
    for unit in units {
        let mut parts = unit.address.rsplitn(2, ':');
        let (Some(_lun), Some(target)) = (parts.next(), parts.next()) else { continue };
        let host = target.split(':').next().unwrap_or_default();
        let at = format!("{path}/host{host}/target{target}/{}", unit.address);
        built.record.put_directory(&at);
        for (name, value) in [("vendor", &unit.vendor), ("model", &unit.model)] {
            if let Some(value) = value {
                built.record.put_text(&format!("{at}/{name}"), value);
            }
        }
        if let Some(node) = &unit.node {
            let block = format!("{at}/block/{node}");
            built.record.put_directory(&block);
            if let Some((blocks, bytes)) = unit.capacity {
                let sectors = blocks.saturating_mul(bytes.into()) / SECTOR_BYTES;
                built.record.put_text(&format!("{block}/size"), &sectors.to_string());
                built.record.put_text(&format!("{block}/queue/logical_block_size"), &bytes.to_string());
            }
        }
    }
}

/// Drivers that a text shows to be loaded.
fn write_drivers(facts: &Facts, log: &[(String, Source)], built: &mut Built) {
    let is_registered = |name: &str| {
        let words = format!("registered new interface driver {name}");
        log.iter().any(|(line, _)| line.ends_with(&words))
    };
    for (module, driver) in [("uas", "uas"), ("usb_storage", "usb-storage")] {
        if facts.modules.iter().any(|name| name == module) || is_registered(driver) {
            built.record.put_directory(&format!("/sys/bus/usb/drivers/{driver}"));
        }
    }
}
