//! A host for USB drives over a bus of your own.
//!
//! The transport machine of `uaskit-initiator` knows no bus: it outputs transfers and requests, and is given their results.
//! [`Host`] carries them over a [`Bus`], which has three operations. A host controller of a microcontroller, libusb or a
//! network protocol can provide them; here [`Channels`] lead to a drive that runs in another thread.

use std::error::Error;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::{thread, time};
use uaskit_bus::{Completion, Direction, EndpointAddress, Pipe, Speed, TransferStatus};
use uaskit_device::lun::{LogicalUnit, LogicalUnitConfig};
use uaskit_device::{Device, DeviceConfig, Transports, Verdict};
use uaskit_drive::medium::{Medium, RamMedium};
use uaskit_drive::{Body, Drive, HostTransfer};
use uaskit_initiator::bot::{Bot, BotConfig};
use uaskit_initiator::{
    Answer, BusAnswer, BusRequest, Command, CommandId, DataPhase, Outcome, Output, PEEK_BYTES_MAX, Payload,
    Timeouts, Transfer, Transport,
};
use uaskit_quirks::{Answers, Link, Names, probe};
use uaskit_units::{BlockSize, ByteCount, ByteRange, Duration, Instant};
use uaskit_wire::scsi::capacity::Capacity10;
use uaskit_wire::scsi::cdb::{Cdb, Inquiry, Read, ReadCapacity10, TestUnitReady, Write};
use uaskit_wire::scsi::inquiry::StandardInquiry;
use uaskit_wire::scsi::lun::LunField;
use uaskit_wire::uas::TaskAttribute;
use uaskit_wire::usb::{DescriptorKind, Recipient, SetupPacket, StandardRequest};

const BLOCK_BYTES: usize = 512;

fn main() -> Result<(), Box<dyn Error>> {
    let mut host = Host::enumerate(Channels::open()?)?;
    let inquiry = Inquiry { allocation_len: 36, ..Inquiry::default() }.encode();
    let (_, bytes) = host.run(inquiry, Direction::In, vec![0; 36])?;
    let identity = StandardInquiry::decode(&bytes)?;
    println!("{} {}", identity.vendor, identity.product);
    // The first command after power-on reports that, with CHECK CONDITION (SAM-5 clause 5.14).
    let (answer, _) = host.run(TestUnitReady::default().encode(), Direction::Out, Vec::new())?;
    println!("TEST UNIT READY: {}", answer.status);
    let (_, bytes) = host.run(ReadCapacity10::default().encode(), Direction::In, vec![0; 8])?;
    let capacity = Capacity10::decode(&bytes)?;
    println!("last block {}, {} bytes each", capacity.last_lba, capacity.block_length);
    let write = Write { lba: 7, blocks: 1, ..Write::default() }.encode();
    host.run(write, Direction::Out, vec![0xa5; BLOCK_BYTES])?;
    let read = Read { lba: 7, blocks: 1, ..Read::default() }.encode();
    let (answer, block) = host.run(read, Direction::In, vec![0; BLOCK_BYTES])?;
    println!("READ(10): {}, {} bytes, first {:#04x}", answer.status, answer.moved, block[0]);
    Ok(())
}

/// What a host needs of a bus. Each call returns when the transfer has completed.
trait Bus {
    /// Performs a control transfer without data to the device; returns the data stage.
    fn control(&mut self, setup: SetupPacket) -> (TransferStatus, Vec<u8>);

    /// Sends bytes to a bulk-OUT endpoint.
    fn send(&mut self, endpoint: EndpointAddress, bytes: &[u8]) -> TransferStatus;

    /// Receives at most this many bytes from a bulk-IN endpoint.
    fn receive(&mut self, endpoint: EndpointAddress, length: u32) -> (TransferStatus, Vec<u8>);
}

/// A transport machine on a bus.
struct Host<B> {
    bus: B,
    transport: Bot,
    /// The data of the command in flight.
    buffer: Vec<u8>,
    commands: u32,
    start: time::Instant,
}

impl<B: Bus> Host<B> {
    /// Reads the descriptors, configures the device and selects Bulk-Only Transport.
    fn enumerate(mut bus: B) -> Result<Self, Box<dyn Error>> {
        let (_, device) = bus.control(SetupPacket::get_descriptor(DescriptorKind::Device, 0, 18));
        let all = SetupPacket::get_descriptor(DescriptorKind::Configuration, 0, u16::MAX);
        let (_, configuration) = bus.control(all);
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
        let transport = Bot::new(BotConfig {
            interface: plan.place.interface,
            alternate: plan.place.alternate,
            bulk_in: plan.bulk_in.address,
            bulk_out: plan.bulk_out.address,
            timeouts: Timeouts::default(),
        });
        Ok(Self { bus, transport, buffer: Vec::new(), commands: 0, start: time::Instant::now() })
    }

    /// Runs one command. The buffer is sent or filled.
    fn run(
        &mut self,
        cdb: Cdb,
        direction: Direction,
        buffer: Vec<u8>,
    ) -> Result<(Answer, Vec<u8>), Box<dyn Error>> {
        self.commands += 1;
        let range = ByteRange::new(0, u32::try_from(buffer.len())?);
        let command = Command {
            id: CommandId { slot: 0, generation: self.commands },
            lun: LunField([0; 8]),
            attribute: TaskAttribute::Simple,
            cdb: cdb.into(),
            data_phase: Some(DataPhase { direction, range }),
            deadline: self.now() + Duration::from_secs(30),
        };
        self.buffer = buffer;
        self.transport.submit(self.now(), &command)?;
        while let Some(output) = self.transport.poll_output() {
            match output {
                Output::Submit(transfer) => self.carry(transfer),
                Output::Request(id, request) => {
                    let answer = self.request(request);
                    self.transport.handle_answer(self.now(), id, answer);
                }
                // A transfer is never in flight while outputs are polled.
                Output::Cancel(_) => {}
                Output::Finished(_, Outcome::Answered(answer)) => {
                    return Ok((answer, std::mem::take(&mut self.buffer)));
                }
                Output::Finished(_, Outcome::Failed(failure)) => return Err(format!("{failure:?}").into()),
            }
        }
        Err("the transport waits for a transfer that the bus has lost".into())
    }

    /// Carries a transfer and reports how it ended.
    fn carry(&mut self, Transfer { id, pipe, length, payload }: Transfer) {
        let (status, received) = match &payload {
            Payload::Inline(bytes) => (self.bus.send(pipe.endpoint, bytes.as_bytes()), Vec::new()),
            Payload::Buffer(part) if pipe.endpoint.direction() == Direction::Out => {
                (self.bus.send(pipe.endpoint, &self.buffer[part.range.as_usize()]), Vec::new())
            }
            Payload::Buffer(_) | Payload::Message | Payload::Pieces(_) => {
                self.bus.receive(pipe.endpoint, length)
            }
        };
        let mut message = &received[..];
        if let (Payload::Buffer(part), false) = (payload, received.is_empty()) {
            let start = part.range.start as usize;
            self.buffer[start..start + received.len()].copy_from_slice(&received);
            // The transport inspects short data: a device may send its status in place of data.
            message = if received.len() <= PEEK_BYTES_MAX { message } else { &[] };
        }
        let sent = if status == TransferStatus::Done { length } else { 0 };
        let is_in = pipe.endpoint.direction() == Direction::In;
        let actual = if is_in { received.len() as u32 } else { sent };
        let now = self.now();
        self.transport.handle_completion(now, Completion { id, status, actual }, message);
    }

    /// Carries out what a transport needs for error recovery.
    fn request(&mut self, request: BusRequest) -> BusAnswer {
        match request.setup().map(|setup| self.bus.control(setup).0) {
            Some(TransferStatus::Done) => BusAnswer::Done,
            Some(TransferStatus::Stall) => BusAnswer::Stalled,
            // This bus has no port reset.
            _ => BusAnswer::Failed,
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
        Ok(Self { requests, results })
    }

    fn exchange(&mut self, request: Request) -> (TransferStatus, Vec<u8>) {
        let gone = (TransferStatus::Disconnected, Vec::new());
        if self.requests.send(request).is_err() {
            return gone;
        }
        self.results.recv().unwrap_or(gone)
    }
}

impl Bus for Channels {
    fn control(&mut self, setup: SetupPacket) -> (TransferStatus, Vec<u8>) {
        self.exchange(Request::Control(setup))
    }

    fn send(&mut self, endpoint: EndpointAddress, bytes: &[u8]) -> TransferStatus {
        let (pipe, length) = (Pipe::plain(endpoint), bytes.len() as u32);
        self.exchange(Request::Bulk(HostTransfer { id: 0, pipe, length, payload: bytes.to_vec() })).0
    }

    fn receive(&mut self, endpoint: EndpointAddress, length: u32) -> (TransferStatus, Vec<u8>) {
        let pipe = Pipe::plain(endpoint);
        self.exchange(Request::Bulk(HostTransfer { id: 0, pipe, length, payload: Vec::new() }))
    }
}

/// What the drive answers to a transfer.
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
