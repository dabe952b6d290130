//! The endpoints of the device as it is configured now, and how they are reported to a client.
//!
//! usbredir reports endpoints in tables by address; bulk packets are held against the same table, so that a client can
//! name only what was reported to it. Left out: descriptors, which travel in control packets.

use super::pace::StatusPace;
use bus::{EndpointAddress, Pipe, Speed, StreamId};
use device::bot::BotEndpoints;
use device::uas::UasEndpoints;
use device::{Device, INTERRUPT_INTERVAL_MS};
use wire::cbi::StatusBlock;
use wire::usb::{ClassCode, Direction};
use wire::usbredir::{
    DeviceConnect, EndpointEntry, EndpointInfo, EndpointSet, EndpointType, InterfaceEntry, InterfaceInfo,
    Speed as WireSpeed,
};

/// The bulk endpoints of the current alternate setting, and the streams that the client has allocated.
#[derive(Debug)]
pub(super) struct Layout {
    /// How fast answers may go on these endpoints. Restarts with each change of them.
    pub(super) pace: StatusPace,
    /// Whether a bulk transfer has come since they are what they are.
    pub(super) used: bool,
    /// Whether the client receives from the interrupt endpoint.
    pub(super) receives: bool,
    /// By [`EndpointAddress::index`].
    endpoints: [Option<BulkEndpoint>; EndpointAddress::COUNT],
    /// The interrupt endpoint of CBI.
    interrupt: Option<EndpointAddress>,
    packet_bytes: u16,
    class: ClassCode,
}

#[derive(Clone, Copy, Debug)]
struct BulkEndpoint {
    address: EndpointAddress,
    streams_max: u16,
    /// 0 while none are allocated.
    streams: u16,
}

impl Layout {
    /// The endpoints of `device` as it is now, with no stream allocated.
    pub(super) fn of(device: &Device) -> Self {
        let config = device.config();
        let is_uas = config.uas_alternate() == Some(device.alternate());
        let streams = if config.speed.has_streams() { config.streams } else { 0 };
        let BotEndpoints { bulk_in, bulk_out } = config.bot_endpoints();
        let UasEndpoints { command, status, data_in, data_out } = config.uas_endpoints();
        let bot = [(bulk_in, 0), (bulk_out, 0)];
        let uas = [(data_in, streams), (data_out, streams), (status, streams), (command, 0)];
        let cbi = config.cbi_endpoints();
        let pipes: &[(EndpointAddress, u16)] = match (device.configuration(), is_uas) {
            (0, _) => &[],
            (_, false) => &bot,
            (_, true) => &uas,
        };
        let mut endpoints = [None; EndpointAddress::COUNT];
        for &(address, streams_max) in pipes {
            endpoints[address.index()] = Some(BulkEndpoint { address, streams_max, streams: 0 });
        }
        let interrupt = cbi.and_then(|cbi| cbi.interrupt);
        let class = match cbi {
            Some(_) if interrupt.is_some() => ClassCode::CBI_UFI,
            Some(_) => ClassCode::CB_UFI,
            None if is_uas => ClassCode::UAS,
            None => ClassCode::BOT,
        };
        Self {
            pace: StatusPace::new(0),
            used: false,
            receives: false,
            endpoints,
            interrupt: interrupt.filter(|_| device.configuration() != 0),
            packet_bytes: config.speed.bulk_packet_bytes() as u16,
            class,
        }
    }

    /// Where a bulk packet goes; `None` if there is no such endpoint or no such stream.
    pub(super) fn pipe(&self, endpoint: u8, stream_id: u32) -> Option<Pipe> {
        let address = EndpointAddress::try_from(endpoint).ok()?;
        let endpoint = self.endpoints[address.index()]?;
        match (endpoint.streams, stream_id) {
            (0, 0) => Some(Pipe::plain(address)),
            (0, _) => None,
            (streams, id) => {
                let stream = u16::try_from(id).ok().filter(|&id| id <= streams).and_then(StreamId::new)?;
                Some(Pipe::stream(address, stream))
            }
        }
    }

    /// The pipe of the interrupt endpoint with this address, if there is one.
    pub(super) fn interrupt_pipe(&self, endpoint: u8) -> Option<Pipe> {
        self.interrupt.filter(|&address| u8::from(address) == endpoint).map(Pipe::plain)
    }

    /// How many streams an allocation of `count` brings: as many, on all of these endpoints, or none. Fewer than requested would be of
    /// no use: QEMU has reported success to its guest already.
    pub(super) fn streams_granted(&self, set: EndpointSet, count: u32) -> Option<u16> {
        let able = |endpoint: BulkEndpoint| count <= endpoint.streams_max.into();
        let possible = !set.is_empty() && set.addresses().all(|address| self.at(address).is_some_and(able));
        u16::try_from(count).ok().filter(|&count| count > 0 && possible)
    }

    /// The endpoints of a set whose meaning changes when they get this many streams: all, except that to free what has no streams
    /// changes nothing.
    pub(super) fn changed_by(&self, set: EndpointSet, streams: u16) -> Vec<EndpointAddress> {
        let changes = |endpoint: &&BulkEndpoint| {
            set.has(endpoint.address.into()) && (streams > 0 || endpoint.streams > 0)
        };
        self.endpoints.iter().flatten().filter(changes).map(|endpoint| endpoint.address).collect()
    }

    /// Sets how many streams these endpoints have; 0 frees them.
    pub(super) fn set_streams(&mut self, set: EndpointSet, count: u16) {
        for endpoint in self.endpoints.iter_mut().flatten() {
            if set.has(endpoint.address.into()) {
                endpoint.streams = count;
            }
        }
        self.pace = StatusPace::new(count);
    }

    /// Returns the `interface_info` packet. Before the device is configured, it describes the
    /// interface that the device will have, so that a client's filter has something to go by.
    pub(super) fn interface_info(&self) -> InterfaceInfo {
        let ClassCode { class, subclass, protocol } = self.class;
        InterfaceInfo::new(&[InterfaceEntry { number: 0, class, subclass, protocol }])
    }

    /// Returns the `ep_info` packet.
    pub(super) fn endpoint_info(&self) -> EndpointInfo {
        let mut table = EndpointInfo::EMPTY;
        let control = EndpointEntry { kind: EndpointType::Control, ..EndpointEntry::ABSENT };
        table.set_endpoint(0x00, control);
        table.set_endpoint(0x80, control);
        for endpoint in self.endpoints.iter().flatten() {
            let entry = EndpointEntry {
                kind: EndpointType::Bulk,
                interval: 0,
                interface: 0,
                max_packet_size: self.packet_bytes,
                max_streams: endpoint.streams_max.into(),
            };
            table.set_endpoint(endpoint.address.into(), entry);
        }
        if let Some(address) = self.interrupt {
            let entry = EndpointEntry {
                kind: EndpointType::Interrupt,
                interval: INTERRUPT_INTERVAL_MS,
                interface: 0,
                max_packet_size: StatusBlock::LEN as u16,
                max_streams: 0,
            };
            table.set_endpoint(address.into(), entry);
        }
        table
    }

    fn at(&self, address: u8) -> Option<BulkEndpoint> {
        self.endpoints[EndpointAddress::try_from(address).ok()?.index()]
    }
}

/// Returns the `device_connect` packet.
pub(super) fn device_connect(device: &Device) -> DeviceConnect {
    let config = device.config();
    let ClassCode { class, subclass, protocol } = ClassCode::PER_INTERFACE;
    DeviceConnect {
        speed: match config.speed {
            Speed::Full => WireSpeed::Full,
            Speed::High => WireSpeed::High,
            Speed::Super => WireSpeed::Super,
        },
        device_class: class,
        device_subclass: subclass,
        device_protocol: protocol,
        vendor_id: config.vendor_id,
        product_id: config.product_id,
        device_version: config.release,
    }
}

/// Whether the data stage of a request type goes to the host.
pub(super) const fn is_in(request_type: u8) -> bool {
    matches!(Direction::from_bit_7(request_type), Direction::In)
}
