//! A host in one process: a transport, the xHCI driver, the controller and a drive, without a clock.
//! Steps can be taken one by one, so that a test chooses how they interleave.

use super::memory::HostMemory;
use bus::{Completion, Direction, EndpointAddress, Pipe, Speed, TransferId, TransferStatus};
use device::device::{COMMAND, DATA_IN, DATA_OUT, STATUS};
use initiator::{
    BufferRange, BusAnswer, BusRequest, Command, CommandId, InFlight, Outcome, Output, PEEK_BYTES_MAX,
    Payload, Transport,
};
use std::collections::HashMap;
use uaskit_drive::Drive;
use uaskit_drive::host_controller::HostController;
use units::{Duration, Instant};
use wire::usb::{
    DescriptorKind, EndpointDescriptor, Recipient, SetupPacket, StandardRequest, SuperSpeedCompanion,
};
use wire::xhci::RouteString;
use xhci_controller::Model;
use xhci_driver::{
    Answer, Config, ControlTransfer, DeviceId, DmaLayout, DmaMemory, EndpointPlan, Location, Registers,
    Request, RequestId, Transfer,
};

/// Ids of control transfers; those of bulk transfers are small.
const CONTROL: TransferId = TransferId(1 << 40);

/// The alternate setting of UAS of a drive with both transports.
pub(crate) const UAS: u8 = 1;

/// Bytes of a DMA buffer; the longest transfer of these tests.
pub(crate) const BUFFER_BYTES: u32 = 64 << 10;

/// The driver's view during a call.
struct Access<'a> {
    controller: &'a mut HostController,
    memory: &'a mut HostMemory,
    now: Instant,
}

impl Registers for Access<'_> {
    fn read_register(&mut self, offset: u32) -> u32 {
        self.controller.read_register(self.now, offset)
    }

    fn write_register(&mut self, offset: u32, value: u32) {
        self.controller.write_register(self.now, self.memory, offset, value);
    }
}

impl DmaMemory for Access<'_> {
    fn allocate(&mut self, layout: DmaLayout) -> Option<u64> {
        self.memory.allocate(layout)
    }

    fn release(&mut self, address: u64, layout: DmaLayout) {
        self.memory.release(address, layout);
    }

    fn read_bytes(&mut self, address: u64, into: &mut [u8]) {
        DmaMemory::read_bytes(self.memory, address, into);
    }

    fn write_bytes(&mut self, address: u64, bytes: &[u8]) {
        self.memory.write_bytes(address, bytes);
    }
}

/// Controller, driver and memory, with at most one device.
pub(crate) struct Host {
    pub(crate) controller: HostController,
    pub(crate) memory: HostMemory,
    pub(crate) driver: xhci_driver::Controller,
    pub(crate) now: Instant,
    pub(crate) device: Option<DeviceId>,
    completions: Vec<Completion>,
    answers: Vec<(RequestId, Answer)>,
    port: u8,
    speed: Speed,
    /// An endpoint has 2 to the power of this streams.
    streams_exponent: u8,
    /// Endpoints of the alternate setting.
    configured: Vec<EndpointAddress>,
}

impl Host {
    /// A controller that runs, with `drive` at a root port.
    pub(crate) fn with(drive: Drive, model: Model, config: Config) -> Self {
        let mut host = Self {
            controller: HostController::new(model),
            memory: HostMemory::new(),
            driver: xhci_driver::Controller::new(config),
            now: Instant::ZERO,
            device: None,
            completions: Vec::new(),
            answers: Vec::new(),
            port: 0,
            speed: Speed::Super,
            streams_exponent: 0,
            configured: Vec::new(),
        };
        host.drive(|driver, access| driver.start(access, access.now));
        host.run();
        host.plug(drive);
        host
    }

    pub(crate) fn plug(&mut self, drive: Drive) {
        self.port = self.controller.attach(self.now, drive).expect("a free port");
        self.pass(Duration::from_ms(200));
    }

    pub(crate) fn unplug(&mut self) -> Drive {
        self.controller.detach(self.now, self.port).expect("a drive")
    }

    fn drive<R>(&mut self, act: impl FnOnce(&mut xhci_driver::Controller, &mut Access<'_>) -> R) -> R {
        let Self { controller, memory, driver, now, .. } = self;
        act(driver, &mut Access { controller, memory, now: *now })
    }

    /// The controller does what is due, without the driver.
    pub(crate) fn run_controller(&mut self) {
        self.controller.run(self.now, &mut self.memory);
    }

    /// The driver takes an interrupt, if there is one. Returns whether there was.
    pub(crate) fn take_interrupt(&mut self) -> bool {
        let has_interrupt = self.controller.take_interrupt();
        if has_interrupt {
            self.drive(|driver, access| driver.handle_interrupt(access, access.now));
        }
        if self.driver.poll_timeout().is_some_and(|deadline| deadline.at <= self.now) {
            self.drive(|driver, access| driver.handle_timeout(access, access.now));
        }
        while let Some(output) = self.driver.poll_output() {
            match output {
                xhci_driver::Output::Completed(_, completion) => self.completions.push(completion),
                xhci_driver::Output::Answered(id, answer) => self.answers.push((id, answer)),
                xhci_driver::Output::Died(death) => panic!("the controller died: {death:?}"),
                _ => {}
            }
        }
        has_interrupt
    }

    /// Controller and driver in turn, until neither has anything to do now.
    pub(crate) fn run(&mut self) {
        loop {
            self.run_controller();
            if !self.take_interrupt() {
                return;
            }
        }
    }

    /// Lets a span of time pass, deadline by deadline.
    pub(crate) fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            self.run();
            let driver = self.driver.poll_timeout().map(|deadline| deadline.at);
            let next = driver.into_iter().chain(self.controller.poll_timeout()).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
        }
        self.now = end;
    }

    /// Makes a request of the driver and waits for the answer.
    pub(crate) fn ask(&mut self, request: Request) -> Answer {
        self.drive(|driver, access| driver.request(access, access.now, RequestId(1), request))
            .expect("the driver accepts the request");
        for _ in 0..1000 {
            self.run();
            if let Some(at) = self.answers.iter().position(|(id, _)| *id == RequestId(1)) {
                return self.answers.remove(at).1;
            }
            self.pass(Duration::from_ms(1));
        }
        panic!("no answer");
    }

    /// A control transfer.
    pub(crate) fn control(&mut self, setup: SetupPacket) -> (TransferStatus, Vec<u8>) {
        let device = self.device.expect("a device");
        let buffer = self.memory.allocate(layout()).expect("memory");
        let transfer = ControlTransfer { id: CONTROL, device, setup, buffer };
        self.drive(|driver, access| driver.submit_control(access, &transfer)).expect("a free ring");
        self.pass(Duration::from_ms(1));
        let at = self.completions.iter().position(|completion| completion.id == CONTROL).expect("it ends");
        let Completion { status, actual, .. } = self.completions.remove(at);
        let mut bytes = vec![0; actual as usize];
        DmaMemory::read_bytes(&mut self.memory, buffer, &mut bytes);
        self.memory.release(buffer, layout());
        (status, bytes)
    }

    /// Gives the drive an address, after a reset of a USB 2.0 port.
    pub(crate) fn enumerate(&mut self, speed: Speed, streams: u16) {
        (self.speed, self.streams_exponent) = (speed, streams.ilog2() as u8);
        self.configured.clear();
        if speed != Speed::Super {
            let Answer::Port(status) = self.ask(Request::ResetPort { port: self.port }) else {
                panic!("the port is reset")
            };
            assert!(status.is_enabled());
        }
        let (speed_id, control_packet) = match speed {
            Speed::Full => (1, 64),
            Speed::High => (3, 64),
            Speed::Super => (4, 512),
        };
        let (route, translator) = (RouteString::ROOT, None);
        let location = Location { root_port: self.port, route, speed_id, translator, control_packet };
        let Answer::Attached(device) = self.ask(Request::Attach(location)) else { panic!("it is attached") };
        self.device = Some(device);
    }

    /// Selects the configuration and an alternate setting, with its endpoints.
    pub(crate) fn configure(&mut self, alternate: u8) {
        let descriptor = SetupPacket::get_descriptor(DescriptorKind::Device, 0, 18);
        let (status, bytes) = self.control(descriptor);
        assert_eq!((status, bytes.len(), bytes[1]), (TransferStatus::Done, 18, 1));
        let select = SetupPacket::of_standard(Recipient::Device, StandardRequest::SetConfiguration, 1);
        assert_eq!(self.control(select).0, TransferStatus::Done);
        self.select(alternate);
    }

    /// Selects an alternate setting, with its endpoints in place of the earlier ones.
    pub(crate) fn select(&mut self, alternate: u8) {
        let (uas, bot) = (&[COMMAND, STATUS, DATA_IN, DATA_OUT][..], &[DATA_IN, DATA_OUT][..]);
        let endpoints = if alternate == UAS { uas } else { bot };
        let (speed, exponent) = (self.speed, self.streams_exponent);
        let add = endpoints.iter().map(|address| EndpointPlan {
            descriptor: EndpointDescriptor::bulk(*address, speed.bulk_packet_bytes() as u16),
            companion: (speed == Speed::Super).then(|| {
                let has_streams = alternate == UAS && *address != COMMAND;
                SuperSpeedCompanion::bulk(15, if has_streams { exponent } else { 0 })
            }),
        });
        let (device, add) = (self.device.expect("a device"), add.collect());
        let drop = std::mem::replace(&mut self.configured, endpoints.to_vec());
        assert_eq!(self.ask(Request::Configure { device, add, drop }), Answer::Done);
        let select =
            SetupPacket::of_standard(Recipient::Interface, StandardRequest::SetInterface, alternate.into());
        assert_eq!(self.control(select).0, TransferStatus::Done);
    }

    /// Resets the port; afterwards the device is configured, with alternate setting 0.
    pub(crate) fn reset_port(&mut self) {
        let Answer::Port(status) = self.ask(Request::ResetPort { port: self.port }) else {
            panic!("the port is reset")
        };
        assert!(status.is_enabled());
        let device = self.device.expect("a device");
        assert_eq!(self.ask(Request::Readdress(device)), Answer::Done);
        self.configured.clear();
        self.configure(0);
    }

    /// Allocates streams on the three pipes that have them.
    pub(crate) fn allocate_streams(&mut self, wanted: u16) -> u16 {
        let device = self.device.expect("a device");
        let endpoints = vec![STATUS, DATA_IN, DATA_OUT];
        match self.ask(Request::AllocateStreams { device, endpoints, wanted }) {
            Answer::Streams(streams) => streams,
            other => panic!("{other:?}"),
        }
    }
}

fn layout() -> DmaLayout {
    DmaLayout { bytes: BUFFER_BYTES, align: BUFFER_BYTES, boundary: BUFFER_BYTES }
}

/// Where the bytes of a transfer belong.
#[derive(Clone, Copy)]
enum Destination {
    Message,
    Sent,
    Buffer(BufferRange),
}

/// A transfer in flight.
struct OnRing {
    pipe: Pipe,
    dma: u64,
    destination: Destination,
}

/// A host and a transport.
pub(crate) struct Session<T> {
    pub(crate) host: Host,
    pub(crate) transport: T,
    in_flight: InFlight<OnRing>,
    spare: Vec<u64>,
    pub(crate) buffers: HashMap<CommandId, Vec<u8>>,
    pub(crate) finished: Vec<(CommandId, Outcome)>,
}

impl<T: Transport> Session<T> {
    pub(crate) fn new(host: Host, transport: T) -> Self {
        let (buffers, finished) = (HashMap::new(), Vec::new());
        Self { host, transport, in_flight: InFlight::new(), spare: Vec::new(), buffers, finished }
    }

    /// Starts a command with its buffer.
    pub(crate) fn submit(&mut self, command: &Command, buffer: Vec<u8>) {
        self.buffers.insert(command.id, buffer);
        self.transport.submit(self.host.now, command).expect("a free slot");
    }

    /// Carries out the next output of the transport. Returns whether there was one.
    pub(crate) fn carry_out_next(&mut self) -> bool {
        let Some(output) = self.transport.poll_output() else { return false };
        match output {
            Output::Submit(transfer) => self.queue(&transfer),
            Output::Cancel(id) => {
                if let Some(number) = self.in_flight.find(id)
                    && let Some((_, on_ring)) = self.in_flight.get(number)
                {
                    let (pipe, device) = (on_ring.pipe, self.host.device.expect("a device"));
                    self.host.drive(|driver, access| {
                        driver.cancel(access, access.now, device, pipe, number);
                    });
                }
            }
            Output::Request(id, request) => {
                let answer = self.answer(request);
                self.transport.handle_answer(self.host.now, id, answer);
            }
            Output::Finished(id, outcome) => self.finished.push((id, outcome)),
        }
        true
    }

    fn queue(&mut self, transfer: &initiator::Transfer) {
        let initiator::Transfer { id, pipe, length, payload } = *transfer;
        let dma = self.spare.pop().or_else(|| self.host.memory.allocate(layout())).expect("memory");
        let destination = match payload {
            Payload::Inline(inline) => {
                self.host.memory.write_bytes(dma, inline.as_bytes());
                Destination::Sent
            }
            Payload::Message => Destination::Message,
            Payload::Buffer(range) => {
                if pipe.endpoint.direction() == Direction::Out {
                    let bytes = &self.buffers[&range.command][range.range.as_usize()];
                    self.host.memory.write_bytes(dma, bytes);
                }
                Destination::Buffer(range)
            }
            Payload::Pieces(_) => panic!("only Turbo has those"),
        };
        let number = self.in_flight.insert(id, OnRing { pipe, dma, destination });
        let device = self.host.device.expect("a device");
        let on_ring = Transfer { id: number, device, pipe, buffer: dma, length };
        if self.host.drive(|driver, access| driver.submit(access, &on_ring)).is_err() {
            let completion = Completion { id: number, status: TransferStatus::Disconnected, actual: 0 };
            self.complete(completion);
        }
    }

    /// Passes completions of the driver to the transport.
    pub(crate) fn take_completions(&mut self) {
        self.host.take_interrupt();
        let ended: Vec<_> = self.host.completions.extract_if(.., |ended| ended.id != CONTROL).collect();
        ended.into_iter().for_each(|completion| self.complete(completion));
    }

    fn complete(&mut self, completion: Completion) {
        let Some((id, on_ring)) = self.in_flight.remove(completion.id) else {
            panic!("a transfer completed twice: {completion:?}")
        };
        let Completion { status, actual, .. } = completion;
        let mut bytes = vec![0; actual as usize];
        DmaMemory::read_bytes(&mut self.host.memory, on_ring.dma, &mut bytes);
        self.spare.push(on_ring.dma);
        let is_in = on_ring.pipe.endpoint.direction() == Direction::In;
        let passed = match on_ring.destination {
            Destination::Message => &bytes[..],
            Destination::Buffer(range) if is_in => {
                let start = range.range.start as usize;
                if let Some(buffer) = self.buffers.get_mut(&range.command) {
                    buffer[start..start + bytes.len()].copy_from_slice(&bytes);
                }
                if bytes.len() <= PEEK_BYTES_MAX { &bytes[..] } else { &[] }
            }
            Destination::Buffer(_) | Destination::Sent => &[],
        };
        self.transport.handle_completion(self.host.now, Completion { id, status, actual }, passed);
    }

    fn answer(&mut self, request: BusRequest) -> BusAnswer {
        let device = self.host.device.expect("a device");
        match (request, request.setup()) {
            (BusRequest::ClearHalt(address), Some(setup)) => match self.host.control(setup).0 {
                TransferStatus::Done => match self.host.ask(Request::ResetToggle(device, address)) {
                    Answer::Done => BusAnswer::Done,
                    _ => BusAnswer::Failed,
                },
                _ => BusAnswer::Stalled,
            },
            (BusRequest::SelectAlternate { alternate, .. }, _) => {
                self.host.select(alternate);
                BusAnswer::Done
            }
            (_, Some(setup)) => match self.host.control(setup).0 {
                TransferStatus::Done => BusAnswer::Done,
                _ => BusAnswer::Stalled,
            },
            (BusRequest::AllocateStreams { wanted, .. }, None) => {
                BusAnswer::Streams(self.host.allocate_streams(wanted))
            }
            (_, None) => {
                self.host.reset_port();
                BusAnswer::Done
            }
        }
    }

    /// Everything that can be done now.
    pub(crate) fn settle(&mut self) {
        loop {
            let mut has_acted = false;
            while self.carry_out_next() {
                has_acted = true;
            }
            self.host.run_controller();
            has_acted |= self.host.take_interrupt();
            self.take_completions();
            if !has_acted && self.transport.next_output().is_none() {
                return;
            }
        }
    }

    /// Lets time pass until `is_done`, at most a minute.
    pub(crate) fn settle_until(&mut self, is_done: impl Fn(&Self) -> bool) {
        let end = self.host.now + Duration::from_secs(60);
        loop {
            self.settle();
            if is_done(self) {
                return;
            }
            let driver = self.host.driver.poll_timeout().map(|deadline| deadline.at);
            let transport = self.transport.poll_timeout().map(|deadline| deadline.at);
            let deadlines = [driver, transport, self.host.controller.poll_timeout()];
            let next = deadlines.into_iter().flatten().min().expect("something is due");
            assert!(next <= end, "nothing more happens");
            self.host.now = self.host.now.max(next);
            if transport.is_some_and(|at| at <= self.host.now) {
                self.transport.handle_timeout(self.host.now);
            }
        }
    }
}
