//! Traffic as scripts: transfers of a host as usbmon records them, and what is decoded from them.

mod bot;
mod cbi;
mod damage;
mod good;
mod healthy;
mod hostile;
mod sources;
mod uas;

use crate::{Command, Decoder, Fault, Verdict};
use capture::{ByteOrder, Link, Packet};
use wire::usb::{Direction, EndpointAddress};
use wire::usbmon::{UsbmonEvent, UsbmonHeader, UsbmonKind, UsbmonPayload};

const PENDING: i32 = -115;
const STALL: i32 = -32;
const CANCELLED: i32 = -2;

/// A host, a device at 2.5, and the decoder.
struct Script {
    decoder: Decoder,
    packets: u64,
    at_ns: u64,
    stream: Option<u16>,
    /// The interrupt endpoint of the device.
    interrupt: Option<u8>,
    /// Recorded packets: times, streams, bytes.
    recorded: Vec<(u64, Option<u16>, Vec<u8>)>,
}

/// A configuration with BOT (1 OUT, 1 IN) as setting 0 and UAS (4 command, 3 status, 1 data-in, 2 data-out) as setting 1.
#[rustfmt::skip]
const CONFIGURATION: [u8; 85] = [
    9, 2, 85, 0, 1, 1, 0, 0xc0, 0,
    9, 4, 0, 0, 2, 8, 6, 0x50, 0,
    7, 5, 0x81, 2, 0, 2, 0,
    7, 5, 0x01, 2, 0, 2, 0,
    9, 4, 0, 1, 4, 8, 6, 0x62, 0,
    7, 5, 0x04, 2, 0, 2, 0, 4, 0x24, 1, 0,
    7, 5, 0x83, 2, 0, 2, 0, 4, 0x24, 2, 0,
    7, 5, 0x81, 2, 0, 2, 0, 4, 0x24, 3, 0,
    7, 5, 0x02, 2, 0, 2, 0, 4, 0x24, 4, 0,
];

impl Script {
    fn new() -> Self {
        Self {
            decoder: Decoder::new(),
            packets: 0,
            at_ns: 0,
            stream: None,
            interrupt: None,
            recorded: Vec::new(),
        }
    }

    /// The device is configured, and set to this setting.
    fn enumerated(alternate: u8) -> Self {
        let mut script = Self::new();
        script.control([0x80, 6, 0, 2, 0, 0, 85, 0], &CONFIGURATION);
        script.control([0x00, 9, 1, 0, 0, 0, 0, 0], &[]);
        script.control([0x01, 11, alternate, 0, 0, 0, 0, 0], &[]);
        script
    }

    fn wait_ms(&mut self, ms: u64) -> &mut Self {
        self.at_ns += ms * 1_000_000;
        self
    }

    /// Sets the stream of the transfers that follow.
    fn on(&mut self, stream: impl Into<Option<u16>>) -> &mut Self {
        self.stream = stream.into();
        self
    }

    /// A transfer with this id is submitted; what there is for the device goes with it. Answers the number of the packet.
    fn submit(&mut self, id: u64, endpoint: u8, length: usize, bytes: &[u8]) -> u64 {
        self.emit(id, endpoint, (PENDING, length), bytes, None)
    }

    /// It ends.
    fn end(&mut self, id: u64, endpoint: u8, end: (i32, usize), bytes: &[u8]) -> u64 {
        self.emit(id, endpoint, end, bytes, None)
    }

    /// Bytes to the device, all of them taken.
    fn send(&mut self, endpoint: u8, bytes: &[u8]) -> u64 {
        let id = self.packets + 1_000;
        let packet = self.submit(id, endpoint, bytes.len(), bytes);
        self.end(id, endpoint, (0, bytes.len()), &[]);
        packet
    }

    /// Room for so many bytes, and bytes from the device. Answers the number of the packet with the bytes.
    fn receive(&mut self, endpoint: u8, room: usize, bytes: &[u8]) -> u64 {
        let id = self.packets + 1_000;
        self.submit(id, endpoint, room, &[]);
        self.end(id, endpoint, (0, bytes.len()), bytes)
    }

    fn control(&mut self, setup: [u8; 8], answer: &[u8]) {
        let id = self.packets + 1_000;
        let endpoint = setup[0] & 0x80;
        self.emit(id, endpoint, (PENDING, answer.len()), &[], Some(setup));
        self.emit(id, endpoint, (0, answer.len()), answer, None);
    }

    fn emit(
        &mut self,
        id: u64,
        endpoint: u8,
        (status, length): (i32, usize),
        bytes: &[u8],
        setup: Option<[u8; 8]>,
    ) -> u64 {
        let is_interrupt = self.interrupt == Some(endpoint);
        let endpoint = EndpointAddress::try_from(endpoint).unwrap();
        let is_control = endpoint.number() == 0;
        let header = UsbmonHeader {
            id,
            event: if status == PENDING { UsbmonEvent::Submit } else { UsbmonEvent::Complete },
            kind: match is_control {
                true => UsbmonKind::Control,
                false if is_interrupt => UsbmonKind::Interrupt,
                false => UsbmonKind::Bulk,
            },
            endpoint,
            device: 5,
            bus: 2,
            setup,
            payload: UsbmonPayload::Present,
            seconds: 0,
            microseconds: 0,
            status,
            length: length as u32,
            captured: bytes.len() as u32,
            interval: 0,
            start_frame: 0,
            flags: if endpoint.direction() == Direction::In { UsbmonHeader::TO_HOST } else { 0 },
            descriptors: 0,
        };
        self.packets += 1;
        self.at_ns += 1_000;
        let bytes = [&header.encode()[..], bytes].concat();
        self.decoder.take(&Packet {
            number: self.packets,
            at_ns: self.at_ns,
            link: Link::Usbmon,
            order: ByteOrder::Little,
            interface: 0,
            bytes: &bytes,
            cut: 0,
            stream: self.stream,
            is_added: false,
        });
        self.recorded.push((self.at_ns, self.stream, bytes));
        self.packets
    }

    /// Commands that have ended since the last time.
    fn ended(&mut self) -> Vec<Command> {
        std::iter::from_fn(|| self.decoder.poll()).collect()
    }

    /// Returns the command that has ended since the last time, which must be the only one.
    fn one(&mut self) -> Command {
        let mut ended = self.ended();
        assert_eq!(ended.len(), 1, "{ended:?}");
        ended.remove(0)
    }

    /// The verdicts so far, with what they are based on.
    fn faults(&self) -> Vec<(Fault, u64, &[u64])> {
        let recorded = |verdict: &Verdict| (verdict.fault, verdict.count);
        self.decoder
            .verdicts()
            .iter()
            .map(|verdict| (recorded(verdict).0, recorded(verdict).1, &verdict.packets[..]))
            .collect()
    }
}
