//! Devices and their interfaces, from `/sys/bus/usb/devices`.
//!
//! Names there are the place: `usb2` is the root hub of bus 2, `2-1.4` what is plugged into port 4 of the hub in its
//! port 1, `2-1.4:1.0` interface 0 of configuration 1 of that. What sysfs leaves out is left out here.

use super::disk::Disk;
use super::{Controller, DEVICES, Port, descriptors};
use crate::tree::Tree;
use bus::Speed;
use quirks::configuration::{Configuration, Setting};
use quirks::{DeviceId, Identity, Names, fastest_lane_mbps, fastest_speed};
use std::collections::BTreeMap;
use std::fmt;
use wire::usb::{BcdVersion, ClassCode, Descriptor, Descriptors, InterfaceDescriptor};

/// A device, a hub, or a root hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsbDevice {
    /// Its name in sysfs: `2-1.4`, or `usb2`.
    pub port: String,
    /// Its directory in sysfs.
    pub path: String,
    /// The number of its bus.
    pub bus: u16,
    /// Its number on the bus.
    pub number: u16,
    /// idVendor and idProduct.
    pub id: DeviceId,
    /// bcdDevice.
    pub revision: u16,
    /// bcdUSB.
    pub usb_version: Option<BcdVersion>,
    /// The string iManufacturer.
    pub manufacturer: Option<String>,
    /// The string iProduct.
    pub product: Option<String>,
    /// The string iSerialNumber.
    pub serial: Option<String>,
    /// How fast it is connected.
    pub speed: LinkSpeed,
    /// bMaxPower of the active configuration in mA.
    pub max_power_ma: Option<u32>,
    /// The active configuration; `None` if the kernel has set none, or its descriptors cannot be read.
    pub configuration: Option<Configuration>,
    /// The configurations that it offers, if the kernel has set none; else empty.
    pub offered: Vec<Configuration>,
    /// `authorized`: whether the kernel may use it; `None` if that is not known.
    pub authorized: Option<bool>,
    /// Ports, if it is a hub.
    pub hub_ports: u32,
    /// The port that it is plugged into, as the kernel knows it.
    pub plugged: Option<Port>,
    /// Lanes of the link, where the kernel shows them.
    pub lanes: Option<Lanes>,
    /// The speeds in its binary device object store; `None` if the kernel does not show it.
    pub able: Option<AbleSpeeds>,
    /// The driver of the device as a whole: `usb`, unless another driver has the whole device.
    pub driver: Option<String>,
    /// The interfaces of the active configuration; if the kernel has set none, those of what it offers, which sysfs does not
    /// have.
    pub interfaces: Vec<Interface>,
}

/// An interface of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name in sysfs, such as `2-1.4:1.0`.
    pub name: String,
    /// Its directory in sysfs.
    pub path: String,
    /// bInterfaceNumber.
    pub number: u8,
    /// bAlternateSetting of the setting in use.
    pub alternate: u8,
    /// The class code of the setting in use.
    pub class: ClassCode,
    /// The driver that is bound to it.
    pub driver: Option<String>,
    /// Whether it is known which driver is bound, or that none is; a text may not say.
    pub is_driver_known: bool,
    /// The limit of its SCSI host on lists of memory pieces, where its driver has made one.
    pub scatter_gather: Option<TableSize>,
    /// Its disks, or other logical units.
    pub disks: Vec<Disk>,
}

/// The entries that a SCSI host takes in a list of memory pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSize {
    /// The attribute of the interface that says so.
    pub attribute: String,
    /// How many; Linux's 16 bits are full where there is no limit.
    pub entries: u64,
}

/// Lanes of a link (USB 3.2 clause 3.2.1), as sysfs has them in `rx_lanes` and `tx_lanes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// Towards the host.
    pub receive: u32,
    /// Towards the device.
    pub transmit: u32,
}

/// How fast a device can be, by its binary device object store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AbleSpeeds {
    /// It can super speed.
    pub super_speed: bool,
    /// Mb/s of its fastest lane, if it can more than super speed or more than one lane.
    pub lane_mbps: Option<u32>,
}

/// How fast a device is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkSpeed {
    /// 1.5 Mb/s.
    Low,
    /// 12 Mb/s.
    Full,
    /// 480 Mb/s.
    High,
    /// 5 Gb/s and more.
    Super {
        /// Mb/s of all lanes.
        mbps: u32,
    },
    /// The kernel does not say.
    Unknown,
}

impl LinkSpeed {
    /// Super speed or faster: where UAS needs streams.
    pub const fn is_super(self) -> bool {
        matches!(self, Self::Super { .. })
    }

    /// The speed in the words of the bus: what is slower than full speed, or not known, is taken for that.
    pub const fn on_the_bus(self) -> Speed {
        match self {
            Self::Super { .. } => Speed::Super,
            Self::High => Speed::High,
            Self::Full | Self::Low | Self::Unknown => Speed::Full,
        }
    }

    fn parse(text: &str) -> Self {
        match text {
            "1.5" => Self::Low,
            "12" => Self::Full,
            "480" => Self::High,
            faster => match faster.parse::<u32>() {
                Ok(mbps) if mbps >= 5000 => Self::Super { mbps },
                _ => Self::Unknown,
            },
        }
    }
}

impl fmt::Display for LinkSpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Low => f.write_str("1.5 Mb/s"),
            Self::Full => f.write_str("12 Mb/s"),
            Self::High => f.write_str("480 Mb/s"),
            Self::Super { mbps } if mbps % 1000 == 0 => write!(f, "{} Gb/s", mbps / 1000),
            Self::Super { mbps } => write!(f, "{mbps} Mb/s"),
            Self::Unknown => f.write_str("unknown speed"),
        }
    }
}

impl UsbDevice {
    /// A root hub is the kernel's own.
    pub fn is_root_hub(&self) -> bool {
        self.port.starts_with("usb")
    }

    /// The name of the hub that it is plugged into; `None` for a root hub.
    pub fn parent(&self) -> Option<String> {
        let (bus, ports) = self.port.split_once('-')?;
        Some(match ports.rsplit_once('.') {
            Some((hub, _)) => format!("{bus}-{hub}"),
            None => format!("usb{bus}"),
        })
    }

    /// Its tier (USB 2.0 clause 4.1.1): 1 is the root hub, 2 what is plugged into the machine itself.
    pub fn tier(&self) -> usize {
        if self.is_root_hub() { 1 } else { 2 + self.port.matches('.').count() }
    }

    /// Whether an interface is mass storage in any setting.
    pub fn is_storage(&self) -> bool {
        self.interfaces.iter().any(|interface| self.speaks_storage(interface))
    }

    /// Whether the kernel has set a configuration, without which no driver is asked.
    pub const fn is_configured(&self) -> bool {
        self.offered.is_empty()
    }

    /// The configuration that counts: the active one, or of those that it offers the first that is mass storage.
    pub fn described(&self) -> Option<&Configuration> {
        self.configuration.as_ref().or_else(|| self.offered.iter().find(|one| has_storage(one)))
    }

    /// Returns the current that it may draw in mA: as sysfs says, or of what it offers, the descriptor.
    pub fn wanted_ma(&self) -> Option<u32> {
        // USB 2.0 clause 9.6.3, USB 3.2 clause 9.6.3.
        let unit_ma = if self.speed.is_super() { 8 } else { 2 };
        let offered = self.described().filter(|_| !self.is_configured());
        self.max_power_ma.or_else(|| offered.map(|one| u32::from(one.head.max_power) * unit_ma))
    }

    /// Whether an interface of it is mass storage in any setting.
    pub fn speaks_storage(&self, interface: &Interface) -> bool {
        let mut settings = self
            .described()
            .into_iter()
            .flat_map(|configuration| configuration.settings_of(interface.number));
        interface.class.class == MASS_STORAGE || settings.any(is_storage)
    }

    /// The disks of all its interfaces.
    pub fn disks(&self) -> impl Iterator<Item = &Disk> {
        self.interfaces.iter().flat_map(|interface| &interface.disks)
    }

    /// The path of an attribute, as people write it.
    pub fn attribute(&self, name: &str) -> String {
        format!("{DEVICES}/{}/{name}", self.port)
    }

    /// Its node in usbfs, through which programs reach it.
    pub fn node(&self) -> String {
        format!("/dev/bus/usb/{:03}/{:03}", self.bus, self.number)
    }

    /// A driver that has taken the device as a whole, in place of the kernel's own, which leaves the interfaces to
    /// others: `usbip-host` exports it.
    pub fn taken_by(&self) -> Option<&str> {
        self.driver.as_deref().filter(|driver| *driver != "usb")
    }

    /// Returns the identity that it reports.
    pub fn identity(&self) -> Identity<'_> {
        let names = Names { manufacturer: self.manufacturer.as_deref(), product: self.product.as_deref() };
        Identity { id: self.id, revision: self.revision, names }
    }

    /// Maker and product, as far as the device says; the maker once, if the product begins with it.
    pub fn title(&self) -> String {
        match (&self.manufacturer, &self.product) {
            (Some(maker), Some(product)) if product.starts_with(maker.as_str()) => product.clone(),
            (Some(maker), Some(product)) => format!("{maker} {product}"),
            (Some(name), None) | (None, Some(name)) => name.clone(),
            (None, None) => "(no name)".to_owned(),
        }
    }

    /// The speed that rules go by. A text may lack it; bcdUSB is 3.00 or above at super speed alone (USB 3.2 clause 9.6.1).
    pub(crate) fn speed_of_link(&self) -> Speed {
        match self.speed {
            LinkSpeed::Unknown if self.usb_version >= Some(BcdVersion::USB_3_0) => Speed::Super,
            speed => speed.on_the_bus(),
        }
    }

    /// Whether it may be faster than its link: a version of 2.01 or above has an object store that lists it (USB 3.2
    /// clause 9.6.2), one of 3.1 or above may have more than 5 Gb/s.
    pub fn may_be_faster(&self) -> bool {
        let above = match self.speed {
            LinkSpeed::Super { mbps } if mbps > MBPS_OF_USB_3_0 => return false,
            LinkSpeed::Super { .. } => BcdVersion::USB_3_0,
            _ => BcdVersion::USB_2_0,
        };
        self.usb_version.is_some_and(|version| version > above)
    }

    /// Asks a drive that may be faster than its link whether it can, where the kernel does not show what it knows.
    pub(super) fn ask_for_speeds(&mut self, tree: &Tree) {
        if self.able.is_some() || !self.may_be_faster() || !self.is_storage() {
            return;
        }
        let store = tree.object_store(&format!("{}/bos_descriptors", self.path), self.bus, self.number);
        self.able = store.ok().map(|bos| AbleSpeeds::of(&bos));
    }

    fn read(tree: &Tree, port: &str) -> Option<Self> {
        let path = tree.link(&format!("{DEVICES}/{port}")).unwrap_or_else(|| format!("{DEVICES}/{port}"));
        let at = |name: &str| format!("{path}/{name}");
        let text = |name: &str| tree.text(&at(name)).ok().filter(|text| !text.is_empty());
        let small = |name: &str| tree.number(&at(name)).and_then(|number| u16::try_from(number).ok());
        let id = DeviceId {
            vendor: tree.hexadecimal(&at("idVendor"))?,
            product: tree.hexadecimal(&at("idProduct")).unwrap_or_default(),
        };
        let value = tree.text(&at("bConfigurationValue"));
        let blob = tree.bytes(&at("descriptors")).unwrap_or_default();
        // Empty where the kernel has set none.
        let is_set = value.as_ref().is_ok_and(|value| !value.is_empty());
        let offered = if value.is_err() || is_set { Vec::new() } else { descriptors::offered(&blob) };
        let value = value.ok().and_then(|text| text.parse::<u8>().ok());
        let configuration = value.and_then(|value| descriptors::configuration(&blob, value));
        let power = text("bMaxPower").and_then(|text| text.trim_end_matches("mA").trim().parse().ok());
        Some(Self {
            port: port.to_owned(),
            bus: small("busnum")?,
            number: small("devnum").unwrap_or_default(),
            id,
            revision: tree.hexadecimal(&at("bcdDevice")).unwrap_or_default(),
            usb_version: usb_version(&blob),
            manufacturer: text("manufacturer"),
            product: text("product"),
            serial: text("serial"),
            speed: text("speed").map_or(LinkSpeed::Unknown, |speed| LinkSpeed::parse(&speed)),
            max_power_ma: power,
            configuration,
            offered,
            authorized: tree.number(&at("authorized")).map(|authorized| authorized != 0),
            hub_ports: tree.number(&at("maxchild")).and_then(|ports| u32::try_from(ports).ok()).unwrap_or(0),
            plugged: Port::read(tree, &at("port")),
            lanes: Lanes::read(tree, &path),
            able: tree.bytes(&at("bos_descriptors")).ok().map(|bos| AbleSpeeds::of(&bos)),
            driver: tree.link_name(&at("driver")),
            interfaces: Vec::new(),
            path,
        })
    }
}

impl Interface {
    fn read(tree: &Tree, name: &str) -> Option<Self> {
        let path = tree.link(&format!("{DEVICES}/{name}")).unwrap_or_else(|| format!("{DEVICES}/{name}"));
        let byte = |name: &str| {
            let value = tree.hexadecimal(&format!("{path}/{name}"))?;
            u8::try_from(value).ok()
        };
        let class = ClassCode::new(
            byte("bInterfaceClass")?,
            byte("bInterfaceSubClass")?,
            byte("bInterfaceProtocol")?,
        );
        let is_host = |name: &str| name.strip_prefix("host").is_some_and(|rest| rest.parse::<u32>().is_ok());
        let hosts = if class.class == ClassCode::BOT.class { tree.names(&path, is_host) } else { Vec::new() };
        let table_size = |host: &String| {
            let attribute = format!("{host}/scsi_host/{host}/sg_tablesize");
            tree.number(&format!("{path}/{attribute}")).map(|entries| TableSize { attribute, entries })
        };
        Some(Self {
            is_driver_known: true,
            number: byte("bInterfaceNumber")?,
            // Written "%2d": decimal, unlike the others.
            alternate: tree
                .number(&format!("{path}/bAlternateSetting"))
                .and_then(|at| u8::try_from(at).ok())
                .unwrap_or(0),
            class,
            driver: tree.link_name(&format!("{path}/driver")),
            scatter_gather: hosts.iter().find_map(table_size),
            disks: hosts.iter().flat_map(|host| Disk::read_all(tree, &format!("{path}/{host}"))).collect(),
            name: name.to_owned(),
            path,
        })
    }

    /// The interfaces that a device would have, by the names that they would have.
    fn offered(device: &UsbDevice) -> Vec<Self> {
        let configuration = device.described().filter(|_| !device.is_configured());
        let mut interfaces: Vec<Self> = Vec::new();
        for (setting, value) in
            configuration.iter().flat_map(|one| one.settings.iter().map(|setting| (setting, one.head.value)))
        {
            let InterfaceDescriptor { number, alternate, class, .. } = setting.interface;
            if interfaces.iter().any(|other| other.number == number) {
                continue;
            }
            let name = format!("{}:{value}.{number}", device.port);
            let path = format!("{}/{name}", device.path);
            interfaces.push(Self {
                name,
                path,
                number,
                alternate,
                class,
                driver: None,
                is_driver_known: true,
                scatter_gather: None,
                disks: Vec::new(),
            });
        }
        interfaces
    }

    /// The interfaces of a device that are mass storage in any setting.
    pub fn storage_of(device: &UsbDevice) -> impl Iterator<Item = &Self> {
        device.interfaces.iter().filter(|interface| device.speaks_storage(interface))
    }

    /// The path of an attribute, as people write it.
    pub fn attribute(&self, name: &str) -> String {
        format!("{DEVICES}/{}/{name}", self.name)
    }
}

/// All devices in the order of a tree that is read from the top, and their controllers.
pub(super) fn read_all(tree: &Tree) -> (Vec<UsbDevice>, Vec<Controller>) {
    let names = tree.names(DEVICES, |name| super::is_file_name(&name.replace(':', "-")));
    let (interfaces, devices): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| name.contains(':'));
    let devices = devices.iter().filter_map(|port| UsbDevice::read(tree, port));
    let mut devices: BTreeMap<String, UsbDevice> =
        devices.map(|device| (device.port.clone(), device)).collect();
    for name in interfaces {
        let port = name.split(':').next().unwrap_or_default();
        // Interfaces of hubs are of no interest, and their names have another form at root hubs.
        if let Some(device) = devices.get_mut(port).filter(|device| device.hub_ports == 0) {
            device.interfaces.extend(Interface::read(tree, &name));
        }
    }
    for device in devices.values_mut().filter(|device| device.interfaces.is_empty()) {
        device.interfaces = Interface::offered(device);
    }
    let mut devices: Vec<UsbDevice> = devices.into_values().collect();
    devices.sort_by_key(place);
    let controllers = Controller::read_all(tree, &devices);
    (devices, controllers)
}

/// Bus, then the ports on the way: a hub comes right before what is plugged into it.
fn place(device: &UsbDevice) -> (u16, Vec<u32>) {
    let ports = device.port.split_once('-').map_or("", |(_, ports)| ports);
    (device.bus, ports.split('.').filter_map(|port| port.parse().ok()).collect())
}

impl Lanes {
    fn read(tree: &Tree, path: &str) -> Option<Self> {
        let of =
            |name: &str| tree.number(&format!("{path}/{name}")).and_then(|lanes| u32::try_from(lanes).ok());
        let (receive, transmit) = of("rx_lanes").zip(of("tx_lanes"))?;
        (receive > 0 && transmit > 0).then_some(Self { receive, transmit })
    }

    /// Of one lane, in Mb/s.
    pub(crate) const fn of_lane(self, mbps: u32) -> u32 {
        mbps / if self.receive == 0 { 1 } else { self.receive }
    }
}

impl AbleSpeeds {
    fn of(bos: &[u8]) -> Self {
        Self { super_speed: fastest_speed(bos) == Some(Speed::Super), lane_mbps: fastest_lane_mbps(bos) }
    }
}

const MASS_STORAGE: u8 = ClassCode::BOT.class;

fn is_storage(setting: &Setting) -> bool {
    setting.interface.class.class == MASS_STORAGE
}

fn has_storage(configuration: &Configuration) -> bool {
    configuration.settings.iter().any(is_storage)
}

/// Mb/s of one lane before USB 3.1.
const MBPS_OF_USB_3_0: u32 = 5000;

fn usb_version(blob: &[u8]) -> Option<BcdVersion> {
    match Descriptors::new(blob).next() {
        Some(Ok(Descriptor::Device(device))) => Some(device.usb_version),
        _ => None,
    }
}
