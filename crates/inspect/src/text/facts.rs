//! Facts that texts state of a machine, joined: devices by port, or by bus and number, each attribute with its line.
//!
//! Readers add facts in any order; [`Facts::join`] makes one device of those that several texts describe. Always true: the
//! first text that says something of an attribute counts, and a fact has a line.

use quirks::DeviceId;
use std::collections::BTreeMap;

/// Where a fact was read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The line's text.
    pub text: String,
}

/// An interface, as texts describe it.
#[derive(Clone, Debug, Default)]
pub(crate) struct InterfaceFact {
    /// bInterfaceClass, bInterfaceSubClass, bInterfaceProtocol of the setting in use, if that is known.
    pub(crate) class: Option<(u8, u8, u8)>,
    /// bAlternateSetting of the setting in use.
    pub(crate) alternate: Option<u8>,
    /// The driver; `Some(None)` where a text says that there is none.
    pub(crate) driver: Option<(Option<String>, Source)>,
    /// It is mass storage in some setting.
    pub(crate) is_storage: bool,
}

/// A device, as texts describe it.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceFact {
    pub(crate) port: Option<String>,
    pub(crate) bus: Option<u16>,
    pub(crate) number: Option<u16>,
    /// Attributes of sysfs by name.
    pub(crate) attributes: BTreeMap<String, (String, Source)>,
    pub(crate) interfaces: BTreeMap<u8, InterfaceFact>,
    /// The descriptors, rebuilt.
    pub(crate) descriptors: Option<(Vec<u8>, Source)>,
    /// The binary device object store, rebuilt.
    pub(crate) object_store: Option<(Vec<u8>, Source)>,
    /// Logical units: address, block device, bytes.
    pub(crate) units: Vec<UnitFact>,
    /// A text says that it has no serial number.
    pub(crate) is_without_serial: bool,
    /// Its descriptors lack endpoints that they announce.
    pub(crate) is_short: bool,
}

/// A logical unit, as texts describe it.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnitFact {
    pub(crate) address: String,
    pub(crate) node: Option<String>,
    pub(crate) vendor: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) capacity: Option<(u64, u32)>,
}

/// A host controller, as texts describe it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ControllerFact {
    pub(crate) name: String,
    pub(crate) pci: Option<(u16, u16)>,
    pub(crate) driver: Option<String>,
    pub(crate) source: Option<Source>,
}

/// Devices of a report, beside root hubs, of which there may be as many; what texts say of more is left out.
pub const DEVICES_MAX: usize = 512;

/// Host controllers of a report; what texts say of more is left out.
const CONTROLLERS_MAX: usize = 256;

/// Drives of other systems in a report; more are left out.
const FOREIGN_MAX: usize = 256;

/// Everything that texts say.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) devices: Vec<DeviceFact>,
    /// Texts name more devices than [`DEVICES_MAX`].
    pub(crate) has_more_devices: bool,
    pub(crate) controllers: Vec<ControllerFact>,
    /// Facts about a device and a controller beyond the limits, which are forgotten.
    beyond: (DeviceFact, ControllerFact),
    /// Other files of a machine, by path.
    pub(crate) files: BTreeMap<String, (String, Source)>,
    /// Lines that are no other text's: those of the kernel's log.
    pub(crate) log: Vec<(String, Source)>,
    /// The time of the last line of a log, whatever it is about.
    pub(crate) log_end: Option<f64>,
    /// Modules that are loaded.
    pub(crate) modules: Vec<String>,
    /// Lines of modprobe's files.
    pub(crate) modprobe: Vec<(String, Source)>,
    /// Lines of smartctl about disks.
    pub(crate) smart: Vec<super::SmartText>,
    /// Drives of other systems.
    pub(crate) foreign: Vec<super::ForeignDrive>,
}

/// The key that a device is found by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) port: Option<String>,
    pub(crate) bus: Option<u16>,
    pub(crate) number: Option<u16>,
}

impl DeviceFact {
    /// Sets an attribute that no text before has said.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>, source: &Source) {
        let value = value.into();
        if !value.is_empty() {
            self.attributes.entry(name.to_owned()).or_insert_with(|| (value, source.clone()));
        }
    }

    /// Sets idVendor and idProduct.
    pub(crate) fn set_id(&mut self, id: DeviceId, source: &Source) {
        self.set("idVendor", format!("{:04x}", id.vendor), source);
        self.set("idProduct", format!("{:04x}", id.product), source);
    }

    pub(crate) fn id(&self) -> Option<DeviceId> {
        let of = |name: &str| u16::from_str_radix(&self.attributes.get(name)?.0, 16).ok();
        Some(DeviceId::new(of("idVendor")?, of("idProduct")?))
    }

    pub(crate) fn interface(&mut self, number: u8) -> &mut InterfaceFact {
        self.interfaces.entry(number).or_default()
    }

    fn merge(&mut self, other: Self) {
        self.port = self.port.take().or(other.port);
        self.bus = self.bus.or(other.bus);
        self.number = self.number.or(other.number);
        for (name, value) in other.attributes {
            self.attributes.entry(name).or_insert(value);
        }
        for (number, interface) in other.interfaces {
            let own = self.interface(number);
            own.class = own.class.or(interface.class);
            own.alternate = own.alternate.or(interface.alternate);
            own.driver = own.driver.take().or(interface.driver);
            own.is_storage |= interface.is_storage;
        }
        self.descriptors = self.descriptors.take().or(other.descriptors);
        self.object_store = self.object_store.take().or(other.object_store);
        if self.units.is_empty() {
            self.units = other.units;
        }
        self.is_without_serial |= other.is_without_serial;
        self.is_short |= other.is_short;
    }
}

impl Facts {
    /// The device of a key; a new one if no text before has named it. Beyond [`DEVICES_MAX`], one that is forgotten.
    pub(crate) fn device(&mut self, key: &Key) -> &mut DeviceFact {
        let is_it = |device: &DeviceFact| {
            let by_port = key.port.is_some() && device.port == key.port;
            let ports_differ = key.port.is_some() && device.port.is_some() && device.port != key.port;
            let by_number = key.number.is_some() && device.number == key.number && device.bus == key.bus;
            by_port || by_number && !ports_differ
        };
        // A report that has all devices gets the root hubs of their buses as well.
        let is_root = key.port.as_ref().is_some_and(|port| port.starts_with("usb"));
        let limit = if is_root { 2 * DEVICES_MAX } else { DEVICES_MAX };
        let at = match self.devices.iter().position(is_it) {
            Some(at) => at,
            None if self.devices.len() >= limit => {
                self.has_more_devices = true;
                self.beyond.0 = DeviceFact::default();
                return &mut self.beyond.0;
            }
            None => {
                self.devices.push(DeviceFact::default());
                self.devices.len() - 1
            }
        };
        let device = &mut self.devices[at];
        device.port = device.port.take().or_else(|| key.port.clone());
        device.bus = device.bus.or(key.bus).or_else(|| bus_of(key.port.as_deref()?));
        device.number = device.number.or(key.number);
        device
    }

    /// The controller of that name.
    pub(crate) fn controller(&mut self, name: &str) -> &mut ControllerFact {
        let at = match self.controllers.iter().position(|controller| controller.name == name) {
            Some(at) => at,
            None if self.controllers.len() >= CONTROLLERS_MAX => {
                self.beyond.1 = ControllerFact::default();
                return &mut self.beyond.1;
            }
            None => {
                self.controllers.push(ControllerFact { name: name.to_owned(), ..ControllerFact::default() });
                self.controllers.len() - 1
            }
        };
        &mut self.controllers[at]
    }

    /// Adds a drive of another system and returns its place; `None` if there are too many.
    pub(crate) fn add_foreign(&mut self, drive: super::ForeignDrive) -> Option<usize> {
        if self.foreign.len() >= FOREIGN_MAX {
            return None;
        }
        self.foreign.push(drive);
        Some(self.foreign.len() - 1)
    }

    /// Makes one device of what texts without a port and texts with one say, where ids leave no doubt.
    pub(crate) fn join(&mut self) {
        let mut at = 0;
        while at < self.devices.len() {
            let Some(found) = self.counterpart(at) else {
                at += 1;
                continue;
            };
            let device = self.devices.remove(at);
            let found = if found > at { found - 1 } else { found };
            self.devices[found].merge(device);
        }
    }

    /// Returns the only device with a port that has the ids of one without.
    fn counterpart(&self, at: usize) -> Option<usize> {
        let device = self.devices.get(at)?;
        let id = device.id()?;
        if device.port.is_some() {
            return None;
        }
        let is_same_bus =
            |other: &DeviceFact| device.bus.is_none() || other.bus.is_none() || other.bus == device.bus;
        let mut others = self.devices.iter().enumerate().filter(|(index, other)| {
            *index != at && other.port.is_some() && other.id() == Some(id) && is_same_bus(other)
        });
        match others.next() {
            Some((found, _)) => others.next().is_none().then_some(found),
            None => self.only_drive_without_ids(at),
        }
    }

    /// The only drive of a tree that has no ids, for the only drive of which there are ids alone: `lsusb -t` has no ids, and its
    /// numbers are others after the drive was plugged in again.
    fn only_drive_without_ids(&self, at: usize) -> Option<usize> {
        let device = self.devices.get(at)?;
        let is_drive = |device: &DeviceFact| device.interfaces.values().any(|interface| interface.is_storage);
        let has_ids_alone = |device: &DeviceFact| {
            device.port.is_none() && device.id().is_some_and(crate::inventory::is_storage_id)
        };
        let is_on_bus = |other: &DeviceFact| device.bus == other.bus || other.bus == Some(0);
        let is_alone =
            has_ids_alone(device) && self.devices.iter().filter(|other| has_ids_alone(other)).count() == 1;
        let mut others = self.devices.iter().enumerate().filter(|(index, other)| {
            *index != at
                && other.port.is_some()
                && other.id().is_none()
                && is_drive(other)
                && is_on_bus(other)
        });
        let (found, _) = others.next().filter(|_| is_alone)?;
        others.next().is_none().then_some(found)
    }
}

/// The bus of a port, such as 2 of `2-1.4` and of `usb2`.
pub(crate) fn bus_of(port: &str) -> Option<u16> {
    match port.strip_prefix("usb") {
        Some(bus) => bus.parse().ok(),
        None => port.split('-').next()?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> Source {
        Source { file: "x".into(), line: 1, text: String::new() }
    }

    #[test]
    fn texts_about_one_device_are_joined() {
        let mut facts = Facts::default();
        let tree = Key { port: Some("2-1".into()), bus: Some(2), number: Some(3) };
        facts.device(&tree).set("speed", "5000", &source());
        facts
            .device(&Key { port: None, bus: Some(2), number: Some(3) })
            .set_id(DeviceId::new(1, 2), &source());
        assert_eq!(facts.devices.len(), 1);
        facts.device(&Key::default()).set_id(DeviceId::new(1, 2), &source());
        facts.devices[1].set("serial", "S", &source());
        facts.join();
        assert_eq!(facts.devices.len(), 1);
        assert_eq!(facts.devices[0].attributes["serial"].0, "S");
    }
}
