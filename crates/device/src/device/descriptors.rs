//! The descriptors of the device (USB 3.2 clause 9.6, USB 2.0 clause 9.6, Bulk-Only Transport 1.0 clause 4,
//! UAS-2 clause 5.2).
//!
//! One configuration, one interface in it, and an alternate setting for each transport. BOT comes first where both
//! are offered: a host that does not know UAS takes setting 0 and looks no further. Each endpoint of UAS is followed
//! by its SuperSpeed companion, if it has one, and then by its pipe usage, which is the order of real enclosures.
//!
//! Always true: everything is encoded once, when the device is made; what does not exist at a speed (the qualifier
//! at super speed) is not found, and so stalls. Left out: a second language; power drawn from the bus.

use super::config::{COMMAND, CONFIGURATION, DATA_IN, DATA_OUT, DeviceConfig, INTERRUPT_INTERVAL_MS, STATUS};
use super::recorded::RecordedDescriptor;
use crate::cbi::CbiEndpoints;
use alloc::string::String;
use alloc::vec::Vec;
use bus::{EndpointAddress, Speed};
use wire::NoRoom;
use wire::cbi::StatusBlock;
use wire::uas::PipeUsage;
use wire::usb::{
    BcdVersion, BosDescriptor, ClassCode, ConfigurationDescriptor, ContainerIdCapability, DescriptorKind,
    DeviceDescriptor, EndpointDescriptor, InterfaceDescriptor, LanguageTable,
    OtherSpeedConfigurationDescriptor, PipeUsageDescriptor, QualifierDescriptor, SpeedSet, StringDescriptor,
    SuperSpeedCapability, SuperSpeedCompanion, Usb2ExtensionCapability,
};

/// Every descriptor of a device, encoded once.
#[derive(Debug)]
pub struct Descriptors {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    kind: DescriptorKind,
    index: u8,
    bytes: Vec<u8>,
}

impl Descriptors {
    /// The descriptors of a device made as `config`.
    pub fn new(config: &DeviceConfig) -> Self {
        let speed = config.speed;
        let mut descriptors = Self { entries: Vec::new() };
        if let Some(recorded) = &config.recorded {
            for RecordedDescriptor { kind, index, bytes } in &recorded.descriptors {
                descriptors.add(*kind, *index, bytes.clone());
            }
            return descriptors;
        }
        descriptors.add(DescriptorKind::Device, 0, device(config).encode().to_vec());
        descriptors.add(DescriptorKind::Configuration, 0, configuration(config, speed, Head::Own));
        descriptors.add(DescriptorKind::Bos, 0, object_store(config));
        // A floppy drive has full speed alone, and no other to report.
        if let Some(other) = other_speed(speed).filter(|_| !config.transports.is_cbi()) {
            let bytes = configuration(config, other, Head::OtherSpeed);
            descriptors.add(DescriptorKind::DeviceQualifier, 0, qualifier().encode().to_vec());
            descriptors.add(DescriptorKind::OtherSpeedConfiguration, 0, bytes);
        }
        descriptors.add(DescriptorKind::String, 0, languages());
        let names = [&config.manufacturer, &config.product, &config.serial].map(String::as_str);
        for (index, name) in (1..).zip(names.into_iter().chain([BOT_NAME, UAS_NAME])) {
            if !name.is_empty() {
                descriptors.add(DescriptorKind::String, index, text(name));
            }
        }
        descriptors
    }

    /// The bytes of one descriptor with all that belongs to it, if the device has it.
    pub fn find(&self, kind: DescriptorKind, index: u8) -> Option<&[u8]> {
        let found = self.entries.iter().find(|entry| (entry.kind, entry.index) == (kind, index))?;
        Some(&found.bytes)
    }

    fn add(&mut self, kind: DescriptorKind, index: u8, bytes: Vec<u8>) {
        self.entries.push(Entry { kind, index, bytes });
    }
}

/// Which descriptor a configuration begins with.
#[derive(Clone, Copy)]
enum Head {
    Own,
    OtherSpeed,
}

fn device(config: &DeviceConfig) -> DeviceDescriptor {
    let (usb_version, max_packet_size_0) = match config.speed {
        // From USB 3.0 on an exponent of two: 512 bytes.
        Speed::Super => (BcdVersion::USB_3_0, 9),
        Speed::High | Speed::Full => (BcdVersion::USB_2_1, CONTROL_PACKET_BYTES),
    };
    DeviceDescriptor {
        usb_version,
        class: ClassCode::PER_INTERFACE,
        max_packet_size_0,
        vendor: config.vendor_id,
        product: config.product_id,
        device_version: BcdVersion(config.release),
        manufacturer_string: string_index(&config.manufacturer, 1),
        product_string: string_index(&config.product, 2),
        serial_string: string_index(&config.serial, 3),
        configurations: 1,
    }
}

/// The device at the other of full and high speed; it looks the same from both.
const fn qualifier() -> QualifierDescriptor {
    QualifierDescriptor {
        usb_version: BcdVersion::USB_2_1,
        class: ClassCode::PER_INTERFACE,
        max_packet_size_0: CONTROL_PACKET_BYTES,
        configurations: 1,
    }
}

const fn other_speed(speed: Speed) -> Option<Speed> {
    match speed {
        Speed::Full => Some(Speed::High),
        Speed::High => Some(Speed::Full),
        Speed::Super => None,
    }
}

/// The configuration at `speed`, with its interface and everything below it.
fn configuration(config: &DeviceConfig, speed: Speed, head: Head) -> Vec<u8> {
    let mut below = Vec::new();
    for alternate in 0..config.transports.alternates() {
        if let Some(endpoints) = config.cbi_endpoints() {
            put_cbi(&mut below, endpoints, speed);
        } else if config.transports.bot_alternate() == Some(alternate) {
            put_bot(&mut below, alternate, speed);
        } else {
            put_uas(&mut below, alternate, speed, config.streams);
        }
    }
    let descriptor = ConfigurationDescriptor {
        total_len: (ConfigurationDescriptor::LEN + below.len()) as u16,
        interfaces: 1,
        value: CONFIGURATION,
        string: 0,
        self_powered: config.bus_power_ma == 0,
        remote_wakeup: false,
        max_power: max_power(config.bus_power_ma, speed),
    };
    let mut whole = match head {
        Head::Own => descriptor.encode(),
        Head::OtherSpeed => OtherSpeedConfigurationDescriptor(descriptor).encode(),
    }
    .to_vec();
    whole.append(&mut below);
    whole
}

fn put_bot(out: &mut Vec<u8>, alternate: u8, speed: Speed) {
    let class = ClassCode::BOT;
    let interface = InterfaceDescriptor { number: 0, alternate, endpoints: 2, class, string: BOT_NAME_INDEX };
    out.extend(interface.encode());
    for address in [DATA_IN, DATA_OUT] {
        put_endpoint(out, address, speed, 0);
    }
}

/// The interface of a floppy drive (CBI Transport 1.1 clause 3).
fn put_cbi(out: &mut Vec<u8>, endpoints: CbiEndpoints, speed: Speed) {
    let CbiEndpoints { bulk_in, bulk_out, interrupt } = endpoints;
    let (class, count) = match interrupt {
        Some(_) => (ClassCode::CBI_UFI, 3),
        None => (ClassCode::CB_UFI, 2),
    };
    let interface = InterfaceDescriptor { number: 0, alternate: 0, endpoints: count, class, string: 0 };
    out.extend(interface.encode());
    for address in [bulk_in, bulk_out] {
        put_endpoint(out, address, speed, 0);
    }
    if let Some(address) = interrupt {
        let packet_len = StatusBlock::LEN as u16;
        out.extend(EndpointDescriptor::interrupt(address, packet_len, INTERRUPT_INTERVAL_MS).encode());
    }
}

/// bMaxPower: in units of 2 mA, at super speed of 8 mA (USB 3.2 table 9-22).
fn max_power(bus_power_ma: u16, speed: Speed) -> u8 {
    let unit_ma = if speed == Speed::Super { 8 } else { 2 };
    u8::try_from(bus_power_ma.div_ceil(unit_ma)).unwrap_or(u8::MAX)
}

fn put_uas(out: &mut Vec<u8>, alternate: u8, speed: Speed, streams: u16) {
    let class = ClassCode::UAS;
    let interface = InterfaceDescriptor { number: 0, alternate, endpoints: 4, class, string: UAS_NAME_INDEX };
    out.extend(interface.encode());
    let exponent = streams.max(2).ilog2() as u8;
    let pipes = [
        (COMMAND, PipeUsage::Command, 0),
        (STATUS, PipeUsage::Status, exponent),
        (DATA_IN, PipeUsage::DataIn, exponent),
        (DATA_OUT, PipeUsage::DataOut, exponent),
    ];
    for (address, usage, streams_exponent) in pipes {
        put_endpoint(out, address, speed, streams_exponent);
        out.extend(PipeUsageDescriptor { usage }.encode());
    }
}

fn put_endpoint(out: &mut Vec<u8>, address: EndpointAddress, speed: Speed, streams_exponent: u8) {
    out.extend(EndpointDescriptor::bulk(address, speed.bulk_packet_bytes() as u16).encode());
    if speed.has_streams() {
        out.extend(SuperSpeedCompanion::bulk(BURST_MAX, streams_exponent).encode());
    }
}

/// The BOS with its capabilities.
fn object_store(config: &DeviceConfig) -> Vec<u8> {
    let usb2 = Usb2ExtensionCapability { lpm: true, ..Usb2ExtensionCapability::default() };
    let mut below = usb2.encode().to_vec();
    let mut capabilities = 1;
    if config.speed == Speed::Super {
        let super_speed = SuperSpeedCapability {
            ltm: false,
            speeds: SpeedSet::FULL.union(SpeedSet::HIGH).union(SpeedSet::SUPER),
            full_function_from: FULL_SPEED_BIT,
            u1_exit_latency_us: U1_EXIT_LATENCY_US,
            u2_exit_latency_us: U2_EXIT_LATENCY_US,
        };
        below.extend(super_speed.encode());
        below.extend(container_id(config).encode());
        capabilities = 3;
    }
    let total_len = (BosDescriptor::LEN + below.len()) as u16;
    let mut whole = BosDescriptor { total_len, capabilities }.encode().to_vec();
    whole.append(&mut below);
    whole
}

/// A UUID of this very device (by FNV-1a): always the same for the same vendor, product and serial number.
fn container_id(config: &DeviceConfig) -> ContainerIdCapability {
    let ids = [config.vendor_id.to_le_bytes(), config.product_id.to_le_bytes()].concat();
    let hash = ids
        .iter()
        .chain(config.serial.as_bytes())
        .fold(FNV_OFFSET_BASIS, |hash, &byte| (hash ^ u128::from(byte)).wrapping_mul(FNV_PRIME));
    ContainerIdCapability::of_version_8(hash)
}

fn languages() -> Vec<u8> {
    let ids = [LanguageTable::US_ENGLISH.to_le_bytes()];
    encoded(|out| LanguageTable { ids: &ids }.encode(out))
}

fn text(text: &str) -> Vec<u8> {
    encoded(|out| StringDescriptor::encode_text(text, out))
}

fn encoded(encode: impl FnOnce(&mut [u8]) -> Result<usize, NoRoom>) -> Vec<u8> {
    let mut bytes = [0; StringDescriptor::LEN_MAX];
    let len = encode(&mut bytes).expect("no string descriptor is longer than LEN_MAX");
    bytes[..len].to_vec()
}

/// The index of a string, or 0 for none where it is empty.
const fn string_index(text: &str, index: u8) -> u8 {
    if text.is_empty() { 0 } else { index }
}

/// bMaxPacketSize0 below super speed.
const CONTROL_PACKET_BYTES: u8 = 64;
/// Packets of a burst, less one.
const BURST_MAX: u8 = 15;
/// wSpeedsSupported's bit of the lowest speed at which everything works.
const FULL_SPEED_BIT: u8 = 1;
/// The longest latencies that may be said: true of any link that carries the device.
const U1_EXIT_LATENCY_US: u8 = 10;
const U2_EXIT_LATENCY_US: u16 = 2047;

const BOT_NAME: &str = "Bulk-Only Transport";
const BOT_NAME_INDEX: u8 = 4;
const UAS_NAME: &str = "USB Attached SCSI";
const UAS_NAME_INDEX: u8 = 5;

const FNV_OFFSET_BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const FNV_PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Limits;
    use crate::device::Transports;
    use alloc::string::ToString;
    use wire::usb::Descriptor;

    fn config(speed: Speed, transports: Transports) -> DeviceConfig {
        DeviceConfig {
            speed,
            transports,
            streams: 32,
            bus_power_ma: 0,
            bot_short_data: Default::default(),
            vendor_id: 0x1209,
            product_id: 0x0001,
            release: 0x0100,
            manufacturer: "ACME".into(),
            product: "Disk".into(),
            serial: "0123456789AB".into(),
            limits: Limits { commands: 4, buffer_bytes: 1 << 20, segment_bytes: 1 << 16 },
            recorded: None,
        }
    }

    fn found(speed: Speed, transports: Transports, kind: DescriptorKind) -> Vec<u8> {
        Descriptors::new(&config(speed, transports)).find(kind, 0).unwrap().to_vec()
    }

    fn descriptor_walk(bytes: &[u8]) -> Vec<Descriptor<'_>> {
        wire::usb::Descriptors::new(bytes).map(Result::unwrap).collect()
    }

    /// BOT at super speed, as setting 0.
    const BOT_SUPER: [u8; 35] = [
        9, 0x04, 0, 0, 2, 0x08, 0x06, 0x50, 4, // interface 0, setting 0
        7, 0x05, 0x81, 0x02, 0x00, 0x04, 0, // bulk-in, 1024 bytes
        6, 0x30, 15, 0, 0, 0, // bursts of 16
        7, 0x05, 0x02, 0x02, 0x00, 0x04, 0, // bulk-out
        6, 0x30, 15, 0, 0, 0,
    ];

    /// The endpoints of UAS at super speed with 32 streams.
    const UAS_SUPER: [u8; 68] = [
        7, 0x05, 0x04, 0x02, 0x00, 0x04, 0, // command
        6, 0x30, 15, 0, 0, 0, // no streams
        4, 0x24, 1, 0, //
        7, 0x05, 0x83, 0x02, 0x00, 0x04, 0, // status
        6, 0x30, 15, 5, 0, 0, // 2^5 streams
        4, 0x24, 2, 0, //
        7, 0x05, 0x81, 0x02, 0x00, 0x04, 0, // data-in
        6, 0x30, 15, 5, 0, 0, //
        4, 0x24, 3, 0, //
        7, 0x05, 0x02, 0x02, 0x00, 0x04, 0, // data-out
        6, 0x30, 15, 5, 0, 0, //
        4, 0x24, 4, 0,
    ];

    const BOT_HIGH: [u8; 23] = [
        9, 0x04, 0, 0, 2, 0x08, 0x06, 0x50, 4, //
        7, 0x05, 0x81, 0x02, 0x00, 0x02, 0, // 512 bytes
        7, 0x05, 0x02, 0x02, 0x00, 0x02, 0,
    ];

    const UAS_HIGH: [u8; 44] = [
        7, 0x05, 0x04, 0x02, 0x00, 0x02, 0, //
        4, 0x24, 1, 0, //
        7, 0x05, 0x83, 0x02, 0x00, 0x02, 0, //
        4, 0x24, 2, 0, //
        7, 0x05, 0x81, 0x02, 0x00, 0x02, 0, //
        4, 0x24, 3, 0, //
        7, 0x05, 0x02, 0x02, 0x00, 0x02, 0, //
        4, 0x24, 4, 0,
    ];

    const BOT_FULL: [u8; 23] = [
        9, 0x04, 0, 0, 2, 0x08, 0x06, 0x50, 4, //
        7, 0x05, 0x81, 0x02, 0x40, 0x00, 0, // 64 bytes
        7, 0x05, 0x02, 0x02, 0x40, 0x00, 0,
    ];

    const UAS_FULL: [u8; 44] = [
        7, 0x05, 0x04, 0x02, 0x40, 0x00, 0, //
        4, 0x24, 1, 0, //
        7, 0x05, 0x83, 0x02, 0x40, 0x00, 0, //
        4, 0x24, 2, 0, //
        7, 0x05, 0x81, 0x02, 0x40, 0x00, 0, //
        4, 0x24, 3, 0, //
        7, 0x05, 0x02, 0x02, 0x40, 0x00, 0, //
        4, 0x24, 4, 0,
    ];

    const UAS_AS_0: [u8; 9] = [9, 0x04, 0, 0, 4, 0x08, 0x06, 0x62, 5];
    const UAS_AS_1: [u8; 9] = [9, 0x04, 0, 1, 4, 0x08, 0x06, 0x62, 5];

    #[test]
    fn a_dual_configuration_at_super_speed_has_these_bytes() {
        let head = [9, 0x02, 121, 0, 1, 1, 0, 0xc0, 0];
        let expected = [&head[..], &BOT_SUPER, &UAS_AS_1, &UAS_SUPER].concat();
        assert_eq!(found(Speed::Super, Transports::Dual, DescriptorKind::Configuration), expected);
    }

    #[test]
    fn a_uas_configuration_at_super_speed_has_these_bytes() {
        let head = [9, 0x02, 86, 0, 1, 1, 0, 0xc0, 0];
        let expected = [&head[..], &UAS_AS_0, &UAS_SUPER].concat();
        assert_eq!(found(Speed::Super, Transports::UasOnly, DescriptorKind::Configuration), expected);
    }

    #[test]
    fn a_bot_configuration_at_super_speed_has_these_bytes() {
        let head = [9, 0x02, 44, 0, 1, 1, 0, 0xc0, 0];
        let expected = [&head[..], &BOT_SUPER].concat();
        assert_eq!(found(Speed::Super, Transports::BotOnly, DescriptorKind::Configuration), expected);
    }

    #[test]
    fn configurations_at_high_speed_have_these_bytes() {
        let head = |len| [9, 0x02, len, 0, 1, 1, 0, 0xc0, 0];
        let kind = DescriptorKind::Configuration;
        let dual = [&head(85)[..], &BOT_HIGH, &UAS_AS_1, &UAS_HIGH].concat();
        assert_eq!(found(Speed::High, Transports::Dual, kind), dual);
        let uas = [&head(62)[..], &UAS_AS_0, &UAS_HIGH].concat();
        assert_eq!(found(Speed::High, Transports::UasOnly, kind), uas);
        assert_eq!(found(Speed::High, Transports::BotOnly, kind), [&head(32)[..], &BOT_HIGH].concat());
    }

    #[test]
    fn configurations_at_full_speed_have_these_bytes() {
        let head = |len| [9, 0x02, len, 0, 1, 1, 0, 0xc0, 0];
        let kind = DescriptorKind::Configuration;
        let dual = [&head(85)[..], &BOT_FULL, &UAS_AS_1, &UAS_FULL].concat();
        assert_eq!(found(Speed::Full, Transports::Dual, kind), dual);
        let uas = [&head(62)[..], &UAS_AS_0, &UAS_FULL].concat();
        assert_eq!(found(Speed::Full, Transports::UasOnly, kind), uas);
        assert_eq!(found(Speed::Full, Transports::BotOnly, kind), [&head(32)[..], &BOT_FULL].concat());
    }

    #[test]
    fn the_other_speed_is_reported_at_high_and_full_speed() {
        let head = [9, 0x07, 85, 0, 1, 1, 0, 0xc0, 0];
        let kind = DescriptorKind::OtherSpeedConfiguration;
        let at_full = [&head[..], &BOT_FULL, &UAS_AS_1, &UAS_FULL].concat();
        assert_eq!(found(Speed::High, Transports::Dual, kind), at_full);
        let at_high = [&head[..], &BOT_HIGH, &UAS_AS_1, &UAS_HIGH].concat();
        assert_eq!(found(Speed::Full, Transports::Dual, kind), at_high);
    }

    #[test]
    fn the_qualifier_is_reported_at_high_and_full_speed() {
        for speed in [Speed::High, Speed::Full] {
            let bytes = found(speed, Transports::Dual, DescriptorKind::DeviceQualifier);
            assert_eq!(bytes, [10, 0x06, 0x10, 0x02, 0, 0, 0, 64, 1, 0]);
        }
    }

    #[test]
    fn super_speed_has_no_other_speed() {
        let descriptors = Descriptors::new(&config(Speed::Super, Transports::Dual));
        assert_eq!(descriptors.find(DescriptorKind::DeviceQualifier, 0), None);
        assert_eq!(descriptors.find(DescriptorKind::OtherSpeedConfiguration, 0), None);
    }

    #[test]
    fn the_device_descriptor_reports_the_speed() {
        let expected = |u0, u1, packet| {
            [18, 0x01, u0, u1, 0, 0, 0, packet, 0x09, 0x12, 0x01, 0x00, 0x00, 0x01, 1, 2, 3, 1]
        };
        let kind = DescriptorKind::Device;
        assert_eq!(found(Speed::Super, Transports::Dual, kind), expected(0x00, 0x03, 9));
        assert_eq!(found(Speed::High, Transports::Dual, kind), expected(0x10, 0x02, 64));
        assert_eq!(found(Speed::Full, Transports::Dual, kind), expected(0x10, 0x02, 64));
    }

    #[test]
    fn the_object_store_at_super_speed_has_three_capabilities() {
        let bytes = found(Speed::Super, Transports::Dual, DescriptorKind::Bos);
        let expected = [
            5, 0x0f, 42, 0, 3, //
            7, 0x10, 0x02, 0x02, 0, 0, 0, // LPM
            10, 0x10, 0x03, 0x00, 0x0e, 0x00, 1, 10, 0xff, 0x07, // full, high, super; 10 µs, 2047 µs
            20, 0x10, 0x04, 0x00,
        ];
        assert_eq!(bytes[..26], expected);
        assert_eq!(bytes.len(), 42);
        assert_eq!((bytes[33] >> 4, bytes[34] >> 6), (8, 0b10), "version and variant");
    }

    #[test]
    fn the_object_store_below_super_speed_reports_lpm_alone() {
        for speed in [Speed::High, Speed::Full] {
            let bytes = found(speed, Transports::Dual, DescriptorKind::Bos);
            assert_eq!(bytes, [5, 0x0f, 12, 0, 1, 7, 0x10, 0x02, 0x02, 0, 0, 0]);
        }
    }

    #[test]
    fn the_container_id_follows_the_serial_number() {
        let first = config(Speed::Super, Transports::Dual);
        let second = DeviceConfig { serial: "0123456789AC".into(), ..first.clone() };
        assert_eq!(container_id(&first), container_id(&first.clone()));
        assert_ne!(container_id(&first), container_id(&second));
    }

    #[test]
    fn strings_are_utf_16() {
        let descriptors = Descriptors::new(&config(Speed::Super, Transports::Dual));
        let string = |index| descriptors.find(DescriptorKind::String, index);
        assert_eq!(string(0), Some(&[4, 3, 0x09, 0x04][..]));
        assert_eq!(string(1), Some(&[10, 3, b'A', 0, b'C', 0, b'M', 0, b'E', 0][..]));
        assert_eq!(string(3).map(<[u8]>::len), Some(26));
        assert_eq!(string(6), None);
        let shown = |index| Descriptor::decode(string(index).unwrap()).unwrap().to_string();
        assert_eq!([shown(4), shown(5)], ["Bulk-Only Transport", "USB Attached SCSI"]);
    }

    #[test]
    fn an_empty_string_is_index_0() {
        let config = DeviceConfig { manufacturer: String::new(), ..config(Speed::High, Transports::Dual) };
        let descriptors = Descriptors::new(&config);
        assert_eq!(descriptors.find(DescriptorKind::Device, 0).unwrap()[14..17], [0, 2, 3]);
        assert_eq!(descriptors.find(DescriptorKind::String, 1), None);
    }

    #[test]
    fn total_lengths_are_true() {
        for speed in [Speed::Full, Speed::High, Speed::Super] {
            for transports in [Transports::Dual, Transports::UasOnly, Transports::BotOnly] {
                for kind in [DescriptorKind::Configuration, DescriptorKind::Bos] {
                    let bytes = found(speed, transports, kind);
                    assert_eq!(usize::from(u16::from_le_bytes([bytes[2], bytes[3]])), bytes.len());
                }
            }
        }
    }

    /// Checks what Linux requires of a UAS interface before it binds: class, four pipe usages, and one stream count.
    #[test]
    fn a_host_finds_the_four_pipes_and_their_streams() {
        let bytes = found(Speed::Super, Transports::Dual, DescriptorKind::Configuration);
        let mut pipes = Vec::new();
        let (mut address, mut streams) = (None, None);
        for descriptor in descriptor_walk(&bytes) {
            match descriptor {
                Descriptor::Endpoint(endpoint) => address = Some(endpoint.address),
                Descriptor::Companion(companion) => streams = Some(companion.max_streams()),
                Descriptor::PipeUsage(pipe) => pipes.push((pipe.usage, address.unwrap(), streams.unwrap())),
                _ => {}
            }
        }
        let expected = [
            (PipeUsage::Command, COMMAND, 0),
            (PipeUsage::Status, STATUS, 32),
            (PipeUsage::DataIn, DATA_IN, 32),
            (PipeUsage::DataOut, DATA_OUT, 32),
        ];
        assert_eq!(pipes, expected);
    }

    #[test]
    fn power_from_the_bus_is_reported_in_units_of_the_speed() {
        for (speed, unit) in [(Speed::Super, 0x12), (Speed::High, 0x48)] {
            let config = DeviceConfig { bus_power_ma: 144, ..config(speed, Transports::Dual) };
            let descriptors = Descriptors::new(&config);
            let bytes = descriptors.find(DescriptorKind::Configuration, 0).unwrap();
            assert_eq!(bytes[7..9], [0x80, unit]);
        }
    }

    #[test]
    fn two_hundred_and_fifty_six_streams_are_the_exponent_8() {
        let config = DeviceConfig { streams: 256, ..config(Speed::Super, Transports::UasOnly) };
        let descriptors = Descriptors::new(&config);
        let bytes = descriptors.find(DescriptorKind::Configuration, 0).unwrap();
        let of = |descriptor: &Descriptor<'_>| match descriptor {
            Descriptor::Companion(companion) => Some(companion.attributes),
            _ => None,
        };
        let exponents: Vec<_> = descriptor_walk(bytes).iter().filter_map(of).collect();
        assert_eq!(exponents, [0, 8, 8, 8]);
    }
}
