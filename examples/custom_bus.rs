//! A host for USB drives over a bus of your own.
//!
//! [`Channels`] implements [`HostBus`]: here it leads to a drive that runs in another thread; a host controller of a
//! microcontroller, libusb or a network protocol would take its place. Everything else is the session's: SCSI commands,
//! the transport with its error recovery, the disk.

use std::error::Error;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::{thread, time};
use uaskit_bus::{Completion, Direction, Speed, TransferStatus};
use uaskit_device::lun::{LogicalUnit, LogicalUnitConfig};
use uaskit_device::{Device, DeviceConfig, Transports, Verdict};
use uaskit_drive::medium::{Medium, RamMedium};
use uaskit_drive::{Body, Drive, HostTransfer};
use uaskit_initiator::disk::{AskTemperature, DiskConfig, Operation};
use uaskit_initiator::session::{
    BufferMemory, HeapBuffers, HostBus, Session, SessionBuffers, SessionConfig, TransferRequest,
};
use uaskit_initiator::{Bot, BotConfig, BusAnswer, BusRequest, RequestId, Timeouts};
use uaskit_quirks::{Answers, BotPlan, Link, Names, probe};
use uaskit_units::{BlockSize, ByteCount, Duration, Extent, Instant};
use uaskit_wire::usb::{DescriptorKind, Recipient, SetupPacket, StandardRequest};

const READ: Operation = Operation::Read { fua: false, dpo: false, may_be_short: false };
const WRITE: Operation = Operation::Write { fua: true, dpo: false };

fn main() -> Result<(), Box<dyn Error>> {
    let mut bus = Channels::open()?;
    let plan = enumerate(&mut bus)?;
    let bot = Bot::new(BotConfig {
        interface: plan.place.interface,
        alternate: plan.place.alternate,
        bulk_in: plan.bulk_in.address,
        bulk_out: plan.bulk_out.address,
        timeouts: Timeouts::default(),
    });
    let config = SessionConfig { slots: 1, slot_bytes: 4096, ..SessionConfig::of(&bot) };
    let buffers = SessionBuffers::new(bus.buffers.allocate(SessionBuffers::blocks(&config)), &config);
    let mut host = Host {
        session: Session::new(DiskConfig::new(config.commands, 64 << 10), bot, bus, buffers),
        start: time::Instant::now(),
    };
    host.identify()?;
    let disk = host.session.disk().geometry().ok_or("no disk")?;
    println!("{}", disk.identity);
    println!("{} blocks, {} bytes each", disk.capacity.0, disk.block_size.bytes());
    let block = Extent::new(7, 1);
    host.session.buffer(0).ok_or("the slot is in use")?.fill(0xa5);
    println!("write: {} bytes", host.run(WRITE, block)?);
    host.session.buffer(0).ok_or("the slot is in use")?.fill(0);
    println!("read: {} bytes", host.run(READ, block)?);
    println!("the first is {:#04x}", host.session.buffer(0).ok_or("the slot is in use")?[0]);
    Ok(())
}

/// Reads the descriptors, configures the device and selects Bulk-Only Transport.
fn enumerate(bus: &mut Channels) -> Result<BotPlan, Box<dyn Error>> {
    let (_, device) = bus.control(SetupPacket::get_descriptor(DescriptorKind::Device, 0, 18));
    let (_, configuration) =
        bus.control(SetupPacket::get_descriptor(DescriptorKind::Configuration, 0, u16::MAX));
    let answers =
        Answers { device: &device, configuration: &configuration, bos: None, names: Names::default() };
    let found = probe(&answers, Link { speed: Speed::High, streams_max: 0 })?;
    let plan = found.bot().ok_or("no Bulk-Only interface")?;
    let set = |request, value| SetupPacket::of_standard(Recipient::Device, request, value);
    let address = set(StandardRequest::SetAddress, 1);
    let configure = set(StandardRequest::SetConfiguration, plan.place.configuration.into());
    for setup in [address, configure] {
        if bus.control(setup).0 != TransferStatus::Done {
            return Err(format!("the device rejects {setup:?}").into());
        }
    }
    Ok(plan)
}

/// A disk behind a bus that completes every transfer at once.
struct Host {
    session: Session<Channels, Bot>,
    start: time::Instant,
}

impl Host {
    fn identify(&mut self) -> Result<(), Box<dyn Error>> {
        self.session.identify(self.now(), AskTemperature::Not);
        loop {
            self.session.settle(self.now());
            if let Some(identified) = self.session.take_identified() {
                return Ok(identified?);
            }
            self.wait();
        }
    }

    /// Runs one request; returns the bytes moved.
    fn run(&mut self, operation: Operation, extent: Extent) -> Result<u32, Box<dyn Error>> {
        self.session.submit(self.now(), 0, operation, extent)?;
        loop {
            self.session.settle(self.now());
            if let Some(finished) = self.session.poll() {
                return Ok(finished.result?.moved);
            }
            self.wait();
        }
    }

    /// A drive that is busy is asked again after a while.
    fn wait(&mut self) {
        thread::sleep(time::Duration::from_millis(1));
        let now = self.now();
        if self.session.poll_timeout().is_some_and(|due| due <= now) {
            self.session.handle_timeout(now);
        }
    }

    fn now(&self) -> Instant {
        Instant::ZERO + Duration::from_us(self.start.elapsed().as_micros() as u64)
    }
}

/// A transfer on its way to the thread of the drive.
enum Request {
    Control(SetupPacket),
    Bulk(HostTransfer),
}

/// The bus of this example.
struct Channels {
    buffers: HeapBuffers,
    requests: Sender<Request>,
    results: Receiver<(TransferStatus, Vec<u8>)>,
}

impl Channels {
    /// Starts a thread with a drive of 1 MiB.
    fn open() -> Result<Self, Box<dyn Error>> {
        let medium = RamMedium::new(ByteCount(1 << 20), BlockSize::B512)?;
        let unit = LogicalUnit::new(LogicalUnitConfig::new(medium.block_size(), medium.capacity()));
        let config = DeviceConfig { transports: Transports::BotOnly, ..DeviceConfig::new(Speed::High) };
        let mut drive: Drive = Drive::new(Device::new(config, vec![unit]), vec![Box::new(medium)]);
        let (requests, incoming) = channel();
        let (outgoing, results) = channel();
        thread::spawn(move || {
            incoming.into_iter().try_for_each(|request| outgoing.send(answer(&mut drive, request)))
        });
        Ok(Self { buffers: HeapBuffers::default(), requests, results })
    }

    fn exchange(&mut self, request: Request) -> (TransferStatus, Vec<u8>) {
        let gone = (TransferStatus::Disconnected, Vec::new());
        if self.requests.send(request).is_err() {
            return gone;
        }
        self.results.recv().unwrap_or(gone)
    }

    /// Performs a control transfer without data to the device; returns the data stage.
    fn control(&mut self, setup: SetupPacket) -> (TransferStatus, Vec<u8>) {
        self.exchange(Request::Control(setup))
    }
}

impl HostBus for Channels {
    type Buffers = HeapBuffers;

    fn buffers(&mut self) -> &mut HeapBuffers {
        &mut self.buffers
    }

    fn submit(&mut self, request: TransferRequest) -> Option<Completion> {
        let TransferRequest { id, pipe, span, .. } = request;
        let length = span.range.len;
        let payload = match pipe.endpoint.direction() {
            Direction::Out => self.buffers.get(span).unwrap_or_default().to_vec(),
            Direction::In => Vec::new(),
        };
        let (status, received) =
            self.exchange(Request::Bulk(HostTransfer { id: id.0, pipe, length, payload }));
        let actual = match pipe.endpoint.direction() {
            Direction::Out if status == TransferStatus::Done => length,
            Direction::Out => 0,
            Direction::In => self.buffers.copy_in(span, &received) as u32,
        };
        Some(Completion { id, status, actual })
    }

    fn request(&mut self, _id: RequestId, request: BusRequest) -> Option<BusAnswer> {
        Some(match request.setup().map(|setup| self.control(setup).0) {
            Some(TransferStatus::Done) => BusAnswer::Done,
            Some(TransferStatus::Stall) => BusAnswer::Stalled,
            // This bus has no port reset.
            _ => BusAnswer::Failed,
        })
    }
}

/// Returns the drive's answer to a transfer.
fn answer(drive: &mut Drive, request: Request) -> (TransferStatus, Vec<u8>) {
    match request {
        Request::Control(setup) => match drive.control(setup, &[]) {
            Verdict::Data(bytes) => (TransferStatus::Done, bytes),
            Verdict::Done => (TransferStatus::Done, Vec::new()),
            Verdict::Stall => (TransferStatus::Stall, Vec::new()),
        },
        Request::Bulk(transfer) => {
            if drive.submit(transfer).is_err() {
                return (TransferStatus::Error, Vec::new());
            }
            drive.run_once();
            let Some(completion) = drive.poll() else { return (TransferStatus::Error, Vec::new()) };
            let actual = completion.actual as usize;
            let bytes = match completion.body {
                Body::Empty => Vec::new(),
                Body::Inline(bytes) => bytes.as_bytes().to_vec(),
                Body::Buffer(memory) => memory[..actual].to_vec(),
            };
            (completion.status, bytes)
        }
    }
}
