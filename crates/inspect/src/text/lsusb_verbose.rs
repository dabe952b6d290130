//! `lsusb -v`: descriptors are rebuilt from their fields, so that the same rules judge them as those of sysfs.
//!
//! Pipe usage descriptors of UAS (UAS-2 clause 5.3.3.4) are printed raw by older versions, `** UNRECOGNIZED: 04 24 03 00`,
//! and by name since. A text that was shortened is noticed by bNumEndpoints: then no endpoint is made up.

use super::bos::{self, Store};
use super::facts::{Facts, Key};
use super::lsusb::device_line;
use super::section::Reader;
use super::{Line, Source};

/// Reads blocks of `lsusb -v`, each from its line `Bus … Device …: ID …` on.
pub(super) fn read(reader: &Reader<'_>, facts: &mut Facts) {
    let starts: Vec<usize> = reader
        .lines
        .iter()
        .enumerate()
        .filter(|(_, line)| device_line(&line.text).is_some())
        .map(|(at, _)| at)
        .collect();
    // `lsusb -v -d ID` may have lost its first line.
    let starts = if starts.is_empty() { vec![0] } else { starts };
    for (at, start) in starts.iter().enumerate() {
        let end = starts.get(at + 1).copied().unwrap_or(reader.lines.len());
        let Some(block) = reader.lines.get(*start..end) else { continue };
        read_block(reader, block, facts);
    }
}

#[derive(Default)]
struct Builder {
    device: Vec<u8>,
    is_usb_3: bool,
    configuration: Vec<u8>,
    interface: Vec<u8>,
    endpoint: Vec<u8>,
    companion: Option<Vec<u8>>,
    usage: Option<u8>,
    body: Vec<u8>,
    endpoints_present: usize,
    is_short: bool,
}

fn read_block(reader: &Reader<'_>, block: &[Line<'_>], facts: &mut Facts) {
    let Some(first) = block.first() else { return };
    let source = reader.source(first);
    let head = device_line(&first.text);
    let key = head.map_or_else(Key::default, |(bus, number, _)| Key {
        port: None,
        bus: Some(bus),
        number: Some(number),
    });
    let mut builder = Builder::default();
    let mut numbers: Vec<u8> = Vec::new();
    let device = facts.device(&key);
    if let Some((.., id)) = head {
        device.set_id(id, &source);
    }
    let mut section = "";
    let mut setting: (u8, u8, u8, u8) = (0, 0, 0, 0);
    let mut store = Store::default();
    for line in block {
        let text = line.text.trim();
        let at = reader.source(line);
        if let Some(title) = TITLES.iter().find(|title| text.starts_with(**title)) {
            section = title;
            builder.begin(section);
            store.begin(section);
            continue;
        }
        if let Some(mbps) = text.strip_prefix("Negotiated speed: ").and_then(negotiated_mbps) {
            device.set("speed", mbps, &at);
            continue;
        }
        let Some((name, value)) = text.split_once(char::is_whitespace) else { continue };
        let value = value.trim();
        let byte = || byte_of(value);
        note_attribute(device, section, name, value, &at);
        match (section, name) {
            ("Interface Descriptor:", "bInterfaceNumber") => setting.0 = byte(),
            ("Interface Descriptor:", "bInterfaceClass") => setting.1 = byte(),
            ("Interface Descriptor:", "bInterfaceSubClass") => setting.2 = byte(),
            ("Interface Descriptor:", "bInterfaceProtocol") => {
                setting.3 = byte();
                let interface = device.interface(setting.0);
                interface.is_storage |= setting.1 == 8;
                interface.class.get_or_insert((setting.1, setting.2, setting.3));
                numbers.push(setting.0);
            }
            _ => {}
        }
        builder.field(section, name, value);
        store.field(section, name, value);
    }
    if device.object_store.is_none() {
        device.object_store = store.finish().map(|bytes| (bytes, source.clone()));
    }
    if let Some(speed) = builder.speed_by_version() {
        device.set("speed", speed, &source);
    }
    if let Some((bytes, is_short)) = builder.finish(&numbers) {
        device.descriptors.get_or_insert((bytes, source.clone()));
        device.is_short |= is_short;
        device.set("bConfigurationValue", "1", &source);
    }
}

/// Mb/s of `SuperSpeed (5Gbps)`, `High Speed (480Mbps)`.
fn negotiated_mbps(text: &str) -> Option<String> {
    let rate = text.split_once('(')?.1.split_once(')')?.0;
    match (rate.strip_suffix("Gbps"), rate.strip_suffix("Mbps")) {
        (Some(gbps), _) => Some((gbps.parse::<u32>().ok()? * 1000).to_string()),
        (None, Some(mbps)) => Some(mbps.to_owned()),
        _ => None,
    }
}

/// Sections of a block that matter, by how their titles begin.
const TITLES: [&str; 15] = [
    "Device Descriptor:",
    "Configuration Descriptor:",
    "Interface Descriptor:",
    "Endpoint Descriptor:",
    bos::STORE,
    bos::SUPER_SPEED_PLUS,
    bos::SUPER_SPEED,
    bos::OTHERS[0],
    bos::OTHERS[1],
    bos::OTHERS[2],
    bos::OTHERS[3],
    bos::OTHERS[4],
    bos::OTHERS[5],
    "Device Qualifier",
    "Interface Association:",
];

fn note_attribute(
    device: &mut super::facts::DeviceFact,
    section: &str,
    name: &str,
    value: &str,
    source: &Source,
) {
    let string = || value.split_once(' ').map(|(_, text)| text.trim()).unwrap_or_default();
    let hexadecimal = || value.split(' ').next().unwrap_or_default().trim_start_matches("0x").to_owned();
    match (section, name) {
        ("Device Descriptor:", "idVendor") => device.set("idVendor", hexadecimal(), source),
        ("Device Descriptor:", "idProduct") => device.set("idProduct", hexadecimal(), source),
        ("Device Descriptor:", "bcdDevice") => device.set("bcdDevice", bcd_digits(value), source),
        ("Device Descriptor:", "iManufacturer") => device.set("manufacturer", string(), source),
        ("Device Descriptor:", "iProduct") => device.set("product", string(), source),
        ("Device Descriptor:", "iSerial") => {
            device.set("serial", string(), source);
            device.is_without_serial |= value == "0";
        }
        ("Configuration Descriptor:", "MaxPower") => device.set("bMaxPower", value, source),
        _ => {}
    }
}

/// `2.09` as `0209`, `20.01` as `2001`.
fn bcd_digits(value: &str) -> String {
    let (major, minor) = value.split_once('.').unwrap_or((value, "00"));
    format!("{major:0>2}{minor:0>2}")
}

fn byte_of(value: &str) -> u8 {
    let word = value.split_whitespace().next().unwrap_or_default();
    match word.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16).unwrap_or_default(),
        None => word.parse().unwrap_or_default(),
    }
}

fn word_of(value: &str) -> [u8; 2] {
    let word = value.split_whitespace().next().unwrap_or_default();
    let number = match word.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16).unwrap_or_default(),
        None => word.parse().unwrap_or_default(),
    };
    number.to_le_bytes()
}

fn bcd_of(value: &str) -> [u8; 2] {
    u16::from_str_radix(&bcd_digits(value), 16).unwrap_or_default().to_le_bytes()
}

impl Builder {
    /// Ends what is open, and begins a descriptor.
    fn begin(&mut self, section: &str) {
        match section {
            "Device Descriptor:" => {
                self.device = vec![18, 1, 0, 0, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
            }
            "Configuration Descriptor:" if self.configuration.is_empty() => {
                self.configuration = vec![9, 2, 0, 0, 1, 1, 0, 0x80, 0];
            }
            "Interface Descriptor:" => {
                self.end_interface();
                self.interface = vec![9, 4, 0, 0, 0, 0, 0, 0, 0];
            }
            "Endpoint Descriptor:" => {
                self.end_endpoint();
                self.endpoint = vec![7, 5, 0, 0, 0, 0, 0];
                self.endpoints_present += 1;
            }
            _ => self.end_interface(),
        }
    }

    fn field(&mut self, section: &str, name: &str, value: &str) {
        match section {
            "Device Descriptor:" => self.device_field(name, value),
            "Configuration Descriptor:" => match name {
                "bNumInterfaces" => put(&mut self.configuration, 4, &[byte_of(value)]),
                "bConfigurationValue" => put(&mut self.configuration, 5, &[byte_of(value)]),
                "bmAttributes" => put(&mut self.configuration, 7, &[byte_of(value)]),
                "MaxPower" => {
                    let unit = if self.is_usb_3 { 8 } else { 2 };
                    let power: u32 = value.trim_end_matches("mA").trim().parse().unwrap_or_default();
                    put(&mut self.configuration, 8, &[u8::try_from(power / unit).unwrap_or(u8::MAX)]);
                }
                _ => {}
            },
            "Interface Descriptor:" => self.interface_field(name, value),
            "Endpoint Descriptor:" => self.endpoint_field(name, value),
            _ => {}
        }
    }

    fn device_field(&mut self, name: &str, value: &str) {
        match name {
            "bcdUSB" => {
                put(&mut self.device, 2, &bcd_of(value));
                self.is_usb_3 = value.trim().starts_with('3');
            }
            "bMaxPacketSize0" => put(&mut self.device, 7, &[byte_of(value)]),
            "idVendor" => put(&mut self.device, 8, &word_of(value)),
            "idProduct" => put(&mut self.device, 10, &word_of(value)),
            "bcdDevice" => put(&mut self.device, 12, &bcd_of(value)),
            "iManufacturer" => put(&mut self.device, 14, &[byte_of(value)]),
            "iProduct" => put(&mut self.device, 15, &[byte_of(value)]),
            "iSerial" => put(&mut self.device, 16, &[byte_of(value)]),
            _ => {}
        }
    }

    fn interface_field(&mut self, name: &str, value: &str) {
        let at = match name {
            "bInterfaceNumber" => 2,
            "bAlternateSetting" => 3,
            "bNumEndpoints" => 4,
            "bInterfaceClass" => 5,
            "bInterfaceSubClass" => 6,
            "bInterfaceProtocol" => 7,
            _ => return,
        };
        put(&mut self.interface, at, &[byte_of(value)]);
    }

    fn endpoint_field(&mut self, name: &str, value: &str) {
        match name {
            "bEndpointAddress" => put(&mut self.endpoint, 2, &[byte_of(value)]),
            "bmAttributes" => put(&mut self.endpoint, 3, &[byte_of(value)]),
            "wMaxPacketSize" => put(&mut self.endpoint, 4, &word_of(value)),
            "bInterval" => put(&mut self.endpoint, 6, &[byte_of(value)]),
            "bMaxBurst" => self.companion = Some(vec![6, 0x30, byte_of(value), 0, 0, 0]),
            "MaxStreams" => {
                let streams: u32 =
                    value.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0);
                let exponent = u8::try_from(streams.max(1).ilog2()).unwrap_or_default();
                if let Some(companion) = &mut self.companion {
                    put(companion, 3, &[exponent]);
                }
            }
            "**" => {
                let bytes = value.trim_start_matches("UNRECOGNIZED:").split_whitespace();
                let bytes: Vec<u8> = bytes.filter_map(|digits| u8::from_str_radix(digits, 16).ok()).collect();
                if let [_, 0x24, pipe, ..] = bytes.as_slice() {
                    self.usage = Some(*pipe);
                }
            }
            "Command" if value.starts_with("pipe") => self.usage = Some(1),
            "Status" if value.starts_with("pipe") => self.usage = Some(2),
            "Data-in" if value.starts_with("pipe") => self.usage = Some(3),
            "Data-out" if value.starts_with("pipe") => self.usage = Some(4),
            _ => {}
        }
    }

    /// The speed that follows from bcdUSB: 2.10 and above is what a device reports that can super speed and is connected by
    /// USB 2.0 (USB 3.2 clause 9.2.6.6).
    fn speed_by_version(&self) -> Option<&'static str> {
        let [minor, 2] = *self.device.get(2..4)? else { return None };
        (minor >= 0x10 && self.device.get(7) == Some(&64)).then_some("480")
    }

    fn end_endpoint(&mut self) {
        self.body.append(&mut self.endpoint);
        self.body.extend(self.companion.take().unwrap_or_default());
        if let Some(pipe) = self.usage.take() {
            self.body.extend([4, 0x24, pipe, 0]);
        }
    }

    fn end_interface(&mut self) {
        self.end_endpoint();
        let endpoints = std::mem::take(&mut self.body);
        if !self.interface.is_empty() {
            // A text that was shortened has fewer endpoints than it announces.
            let count = self.interface.get(4).copied().unwrap_or_default();
            let present = u8::try_from(self.endpoints_present).unwrap_or(u8::MAX);
            self.is_short |= present < count;
            put(&mut self.interface, 4, &[present]);
            self.configuration.append(&mut self.interface);
            self.configuration.extend(endpoints);
        }
        self.endpoints_present = 0;
    }

    /// The device descriptor and the configuration, and whether endpoints are missing; `None` if the text has no settings.
    fn finish(mut self, interfaces: &[u8]) -> Option<(Vec<u8>, bool)> {
        self.end_interface();
        if self.device.is_empty() || self.configuration.len() <= 9 || interfaces.is_empty() {
            return None;
        }
        let len = u16::try_from(self.configuration.len()).ok()?;
        put(&mut self.configuration, 2, &len.to_le_bytes());
        put(&mut self.configuration, 5, &[1]);
        Some((self.device.into_iter().chain(self.configuration).collect(), self.is_short))
    }
}

/// Writes bytes at a place of a descriptor.
fn put(bytes: &mut [u8], at: usize, values: &[u8]) {
    for (place, value) in bytes.iter_mut().skip(at).zip(values) {
        *place = *value;
    }
}
