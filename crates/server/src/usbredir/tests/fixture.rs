//! A session on a bench: a real device's endpoint 0, transfers that end when the test says so.

use crate::usbredir::{Exported, Fault, Limits, SLICES_MAX, Session};
use bus::rendezvous::Full;
use bus::{Direction, EndpointAddress, Speed, TransferStatus};
use device::{Device, DeviceConfig, Transports, Verdict, command};
use drive::{Body, HostCompletion, HostTransfer, Pool};
use std::collections::VecDeque;
use std::io::IoSlice;
use wire::usb::SetupPacket;

/// The capabilities that QEMU 7.2 offers: all.
pub(crate) const QEMU: u32 = 0xff;

/// A device whose transfers wait for the test.
#[derive(Debug)]
pub(super) struct Fake {
    device: Device,
    pool: Pool,
    pub(super) outstanding: Vec<HostTransfer>,
    pub(super) ended: VecDeque<HostCompletion>,
    pub(super) room: usize,
    pub(super) at_media: usize,
    /// Ends each transfer as it comes: In with these bytes, Out with all that was sent.
    pub(super) echo: Option<Vec<u8>>,
    pub(super) submitted: usize,
}

impl Fake {
    pub(super) fn new(speed: Speed) -> Self {
        let config = DeviceConfig {
            speed,
            transports: Transports::Dual,
            streams: 32,
            bus_power_ma: 0,
            bot_short_data: Default::default(),
            vendor_id: 0x1234,
            product_id: 0x5678,
            release: 0x0102,
            manufacturer: "m".into(),
            product: "p".into(),
            serial: "0123456789AB".into(),
            limits: command::Limits { commands: 4, buffer_bytes: 1 << 20, segment_bytes: 1 << 20 },
            recorded: None,
        };
        Self {
            device: Device::new(config, vec![]),
            pool: Pool::default(),
            outstanding: vec![],
            ended: VecDeque::new(),
            room: 64,
            at_media: 0,
            echo: None,
            submitted: 0,
        }
    }

    /// Ends the transfer with this id; an In one brings `bytes`.
    #[track_caller]
    pub(super) fn end(&mut self, id: u64, status: TransferStatus, bytes: &[u8]) {
        let place = self.outstanding.iter().position(|transfer| transfer.id == id);
        let HostTransfer { id, pipe, length, payload } =
            self.outstanding.remove(place.expect("the transfer is outstanding"));
        let moved_out = matches!(status, TransferStatus::Done).then_some(length).unwrap_or_default();
        let (actual, body) = match (pipe.endpoint.direction(), bytes) {
            (Direction::Out, _) => (moved_out, Body::Empty),
            (Direction::In, []) => (0, Body::Empty),
            (Direction::In, bytes) => {
                let mut memory = self.pool.take(bytes.len());
                memory[..bytes.len()].copy_from_slice(bytes);
                (bytes.len() as u32, Body::Buffer(memory))
            }
        };
        self.pool.put(payload);
        self.ended.push_back(HostCompletion { id, pipe, length, status, actual, body });
    }
}

impl Exported for Fake {
    fn submit(&mut self, transfer: HostTransfer) -> Result<(), Full> {
        if self.outstanding.len() >= self.room {
            return Err(Full);
        }
        let (id, length) = (transfer.id, transfer.length as usize);
        self.submitted += 1;
        self.outstanding.push(transfer);
        if let Some(bytes) = self.echo.clone() {
            self.end(id, TransferStatus::Done, &bytes[..bytes.len().min(length)]);
        }
        Ok(())
    }

    fn cancel(&mut self, id: u64) -> bool {
        let is_there = self.outstanding.iter().any(|transfer| transfer.id == id);
        if is_there {
            self.end(id, TransferStatus::Cancelled, &[]);
        }
        is_there
    }

    fn cancel_at(&mut self, endpoint: EndpointAddress) {
        let is_there = |transfer: &&HostTransfer| transfer.pipe.endpoint == endpoint;
        while let Some(id) = self.outstanding.iter().find(is_there).map(|transfer| transfer.id) {
            self.end(id, TransferStatus::Cancelled, &[]);
        }
    }

    fn control(&mut self, setup: SetupPacket, data_out: &[u8]) -> Verdict {
        let verdict = self.device.handle_control(setup, data_out);
        while self.device.poll_output().map(bus::Front::take).is_some() {}
        if setup.selects_setting() && verdict != Verdict::Stall {
            while let Some(first) = self.outstanding.first() {
                self.end(first.id, TransferStatus::Cancelled, &[]);
            }
        }
        verdict
    }

    fn bus_reset(&mut self) {
        self.device.handle_bus_reset();
        while self.device.poll_output().map(bus::Front::take).is_some() {}
        while let Some(first) = self.outstanding.first() {
            self.end(first.id, TransferStatus::Disconnected, &[]);
        }
    }

    fn poll(&mut self) -> Option<HostCompletion> {
        self.ended.pop_front()
    }

    fn device(&self) -> &Device {
        &self.device
    }

    fn pool(&mut self) -> &mut Pool {
        &mut self.pool
    }

    fn payload_bytes(&self) -> usize {
        self.outstanding.iter().map(|transfer| transfer.payload.len()).sum()
    }

    fn at_media(&self) -> usize {
        self.at_media
    }
}

/// A session and its device.
#[derive(Debug)]
pub(super) struct Bench {
    pub(super) session: Session,
    pub(super) device: Fake,
}

impl Bench {
    pub(super) fn new(speed: Speed) -> Self {
        Self::with(speed, Limits::default())
    }

    pub(super) fn with(speed: Speed, limits: Limits) -> Self {
        let device = Fake::new(speed);
        Self { session: Session::new(limits, "uaskit", &device), device }
    }

    /// A super-speed session with QEMU after its hello, everything so far sent.
    pub(super) fn open() -> Self {
        let mut bench = Self::new(Speed::Super);
        bench.feed(&hello(QEMU)).unwrap();
        bench.sent();
        bench
    }

    /// The same with the alternate setting 0 (BOT) or 1 (UAS) on.
    pub(super) fn configured(alternate: u8) -> Self {
        let mut bench = Self::open();
        bench.feed(&packet(6, 1, &[1])).unwrap();
        bench.feed(&packet(9, 2, &[0, alternate])).unwrap();
        bench.sent();
        bench
    }

    /// Gives the session bytes that it must take whole.
    #[track_caller]
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let taken = self.session.receive(bytes, &mut self.device)?;
        assert_eq!(taken, bytes.len(), "all bytes are taken");
        Ok(())
    }

    /// Everything that waits to be sent, which is sent with that.
    pub(super) fn sent(&mut self) -> Vec<u8> {
        self.session.collect(&mut self.device);
        let mut sent = vec![];
        while self.session.outgoing_bytes() > 0 {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let count = self.session.slices(&mut slices);
            let next: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.iter().copied()).collect();
            self.session.sent(next.len(), self.device.pool());
            sent.extend(next);
        }
        sent
    }

    /// The same, cut into packets with 64-bit ids.
    pub(super) fn sent_packets(&mut self) -> Vec<(u32, u64, Vec<u8>)> {
        split(&self.sent(), 8)
    }
}

/// The hello of a client; its header has a 32-bit id always.
pub(crate) fn hello(capabilities: u32) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 0, 68, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend(b"qemu usb-redir guest 7.2.0");
    bytes.resize(12 + 64, 0);
    bytes.extend(capabilities.to_le_bytes());
    bytes
}

/// A packet with a 64-bit id.
pub(crate) fn packet(kind: u32, id: u64, body: &[u8]) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &(body.len() as u32).to_le_bytes(), &id.to_le_bytes(), body].concat()
}

/// A bulk packet with a 64-bit id and a 32-bit length.
pub(crate) fn bulk(id: u64, endpoint: u8, stream: u32, length: u32, payload: &[u8]) -> Vec<u8> {
    let [l0, l1, l2, l3] = length.to_le_bytes();
    let [s0, s1, s2, s3] = stream.to_le_bytes();
    packet(101, id, &[&[endpoint, 0, l0, l1, s0, s1, s2, s3, l2, l3], payload].concat())
}

/// Type, id and the rest of each packet.
pub(super) fn split(mut bytes: &[u8], id_bytes: usize) -> Vec<(u32, u64, Vec<u8>)> {
    let mut packets = vec![];
    while !bytes.is_empty() {
        let kind = u32::from_le_bytes(bytes[..4].try_into().unwrap());
        let length = u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
        let mut id = [0; 8];
        id[..id_bytes].copy_from_slice(&bytes[8..8 + id_bytes]);
        let body = &bytes[8 + id_bytes..][..length];
        packets.push((kind, u64::from_le_bytes(id), body.to_vec()));
        bytes = &bytes[8 + id_bytes + length..];
    }
    packets
}
