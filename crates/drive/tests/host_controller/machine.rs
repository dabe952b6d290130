//! A host in one process: a transport, the xHCI driver, the controller and a drive, without a clock.
//! Steps can be taken one by one, so that a test chooses how they interleave.

use super::memory::HostMemory;
use bus::{Completion, Direction, EndpointAddress, Speed, TransferId, TransferStatus};
use device::device::{COMMAND, DATA_IN, DATA_OUT, STATUS};
use initiator::session::{
    BufferBlock, BufferId, BufferMemory, BufferSpan, CommandBuffer, CommandRunner, FinishedCommand,
    HeapBuffers, HostBus, MESSAGE_BYTES, RunnerBuffers, TransferRequest,
};
use initiator::{BusAnswer, BusRequest, Command, CommandId, RequestId as RequestOfBus, Transport};
use std::collections::VecDeque;
use uaskit_drive::Drive;
use uaskit_drive::host_controller::HostController;
use units::{ByteRange, Duration, Instant};
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
const BUFFER_BYTES: u32 = 64 << 10;

/// Bytes of a command's buffer.
const SLOT_BYTES: u32 = 4096;

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
    pub(crate) buffers: HeapBuffers,
    /// Transfers that are not on their rings yet, so that a test chooses when.
    queued: VecDeque<TransferRequest>,
    /// By transfer id.
    on_rings: Vec<Option<OnRing>>,
    spare: Vec<u64>,
}

/// A transfer that the driver has.
struct OnRing {
    request: TransferRequest,
    dma: u64,
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
            buffers: HeapBuffers::default(),
            queued: VecDeque::new(),
            on_rings: Vec::new(),
            spare: Vec::new(),
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

    /// Puts the next transfer on its ring. Returns whether there was one.
    fn ring_next(&mut self) -> bool {
        let Some(request) = self.queued.pop_front() else { return false };
        let TransferRequest { id, pipe, span, .. } = request;
        let dma = self.spare.pop().or_else(|| self.memory.allocate(layout())).expect("memory");
        if pipe.endpoint.direction() == Direction::Out {
            self.memory.write_bytes(dma, self.buffers.get(span).expect("a buffer"));
        }
        let index = id.0 as usize;
        self.on_rings.resize_with(self.on_rings.len().max(index + 1), || None);
        self.on_rings[index] = Some(OnRing { request, dma });
        let device = self.device.expect("a device");
        let transfer = Transfer { id, device, pipe, buffer: dma, length: span.range.len };
        if self.drive(|driver, access| driver.submit(access, &transfer)).is_err() {
            self.completions.push(Completion { id, status: TransferStatus::Disconnected, actual: 0 });
        }
        true
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

/// The bus of a transport is the driver.
impl HostBus for Host {
    type Buffers = HeapBuffers;

    fn buffers(&mut self) -> &mut HeapBuffers {
        &mut self.buffers
    }

    fn submit(&mut self, request: TransferRequest) -> Option<Completion> {
        self.queued.push_back(request);
        None
    }

    fn cancel(&mut self, id: TransferId) {
        if let Some(at) = self.queued.iter().position(|request| request.id == id) {
            self.queued.remove(at);
            return self.completions.push(Completion { id, status: TransferStatus::Cancelled, actual: 0 });
        }
        let on_ring = self.on_rings.get(id.0 as usize).and_then(|on_ring| on_ring.as_ref());
        if let Some(&OnRing { request: TransferRequest { pipe, .. }, .. }) = on_ring {
            let device = self.device.expect("a device");
            self.drive(|driver, access| driver.cancel(access, access.now, device, pipe, id));
        }
    }

    fn poll(&mut self) -> Option<Completion> {
        let at = self.completions.iter().position(|completion| completion.id != CONTROL)?;
        let completion = self.completions.remove(at);
        let Completion { id, actual, status } = completion;
        match self.on_rings.get_mut(id.0 as usize).and_then(Option::take) {
            Some(OnRing { request, dma }) => {
                if request.pipe.endpoint.direction() == Direction::In {
                    let mut bytes = vec![0; actual as usize];
                    DmaMemory::read_bytes(&mut self.memory, dma, &mut bytes);
                    self.buffers.copy_in(request.span, &bytes);
                }
                self.spare.push(dma);
            }
            None => assert_eq!((status, actual), (TransferStatus::Cancelled, 0), "{id:?} completed twice"),
        }
        Some(completion)
    }

    fn request(&mut self, _: RequestOfBus, request: BusRequest) -> Option<BusAnswer> {
        while self.ring_next() {}
        let device = self.device.expect("a device");
        let answer = match (request, request.setup()) {
            (BusRequest::ClearHalt(address), Some(setup)) => match self.control(setup).0 {
                TransferStatus::Done => match self.ask(Request::ResetToggle(device, address)) {
                    Answer::Done => BusAnswer::Done,
                    _ => BusAnswer::Failed,
                },
                _ => BusAnswer::Stalled,
            },
            (BusRequest::SelectAlternate { alternate, .. }, _) => {
                self.select(alternate);
                BusAnswer::Done
            }
            (_, Some(setup)) => match self.control(setup).0 {
                TransferStatus::Done => BusAnswer::Done,
                _ => BusAnswer::Stalled,
            },
            (BusRequest::AllocateStreams { wanted, .. }, None) => {
                BusAnswer::Streams(self.allocate_streams(wanted))
            }
            (_, None) => {
                self.reset_port();
                BusAnswer::Done
            }
        };
        Some(answer)
    }
}

fn layout() -> DmaLayout {
    DmaLayout { bytes: BUFFER_BYTES, align: BUFFER_BYTES, boundary: BUFFER_BYTES }
}

/// A host and a transport.
pub(crate) struct Session<T> {
    pub(crate) host: Host,
    pub(crate) commands: CommandRunner<T>,
    /// The buffer of slot 0.
    slots: BufferId,
    pub(crate) finished: Vec<FinishedCommand>,
}

impl<T: Transport> Session<T> {
    pub(crate) fn new(mut host: Host, transport: T) -> Self {
        let messages = BufferBlock { count: transport.transfers_max() as u16, bytes: MESSAGE_BYTES };
        let slots = BufferBlock { count: transport.depth() as u16, bytes: SLOT_BYTES };
        let [messages, slots] = host.buffers.allocate([messages, slots]);
        let commands = CommandRunner::new(transport, RunnerBuffers { messages, merged: None });
        Self { host, commands, slots, finished: Vec::new() }
    }

    /// Starts a command with these bytes in its buffer.
    pub(crate) fn submit(&mut self, command: &Command, bytes: &[u8]) {
        let buffer = self.slots.after(command.id.slot);
        self.host.buffers.copy_in(BufferSpan { buffer, range: ByteRange::new(0, bytes.len() as u32) }, bytes);
        let lent = CommandBuffer { buffer, is_whole: true };
        self.commands.submit(self.host.now, command, lent).expect("a free slot");
    }

    /// Returns the first bytes of a command's buffer.
    pub(crate) fn bytes(&self, id: CommandId, bytes: usize) -> &[u8] {
        let range = ByteRange::new(0, bytes as u32);
        self.host.buffers.get(BufferSpan { buffer: self.slots.after(id.slot), range }).expect("its buffer")
    }

    /// Queues the transfers of the transport, and puts one on its ring. Returns whether there was
    /// one, or a command ended.
    pub(crate) fn carry_out_next(&mut self) -> bool {
        let ended = self.commands.poll(self.host.now, &mut self.host);
        let has_ended = ended.is_some();
        self.finished.extend(ended);
        self.host.ring_next() || has_ended
    }

    /// Passes completions of the driver to the transport.
    pub(crate) fn take_completions(&mut self) {
        self.host.take_interrupt();
        while let Some(completion) = self.host.poll() {
            self.commands.complete(self.host.now, &mut self.host, completion);
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
            if !has_acted && self.commands.transport_mut().poll_output().is_none() {
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
            let transport = self.commands.transport().poll_timeout().map(|deadline| deadline.at);
            let deadlines = [driver, transport, self.host.controller.poll_timeout()];
            let next = deadlines.into_iter().flatten().min().expect("something is due");
            assert!(next <= end, "nothing more happens");
            self.host.now = self.host.now.max(next);
            if transport.is_some_and(|at| at <= self.host.now) {
                self.commands.transport_mut().handle_timeout(self.host.now);
            }
        }
    }
}
