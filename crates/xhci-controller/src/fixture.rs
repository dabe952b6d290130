//! Test fixture: a controller with driver, memory, a device that answers control transfers, and a
//! link that moves what a test requests.

mod doorbells;
mod driver_access;
mod memory;

pub(crate) use driver_access::DriverAccess;
pub(crate) use memory::TestMemory;
use std::vec::Vec;

use crate::slot::{EndpointName, RingName};
use crate::{ControlAnswer, ControlRequest, Controller, DevicePath, GuestMemory, LinkAct, Model, Output};
use bus::link::{End, Endpoint, PacketPayload, Progress, Transfer as OnLink};
use bus::{Completion, Direction, EndpointAddress, Pipe, StreamId, TransferId, TransferStatus};
use std::cell::RefCell;
use std::collections::BTreeMap;
use units::{Duration, Instant};
use wire::usb::{EndpointDescriptor, SuperSpeedCompanion};
use wire::xhci::{EndpointContext, EndpointId, PortPower, RouteString, SlotContext, StreamContext};
use xhci_driver::{
    Answer, Config, ControlTransfer, DeviceId, DmaLayout, DmaMemory, EndpointPlan, Location,
    Output as DriverOutput, Refusal, Request, RequestId, Transfer,
};

/// A root port that speaks USB 3.
pub(super) const PORT: u8 = 3;
pub(super) const PATH: DevicePath = DevicePath { port: PORT, route: RouteString::ROOT };

/// Bulk IN 1, the third endpoint context.
pub(super) const IN: EndpointAddress = EndpointAddress::at::<1>(Direction::In);
/// Bulk OUT 2, the fourth endpoint context.
pub(super) const OUT: EndpointAddress = EndpointAddress::at::<2>(Direction::Out);

pub(super) struct Fixture {
    pub(super) controller: Controller,
    pub(super) memory: TestMemory,
    pub(super) driver: xhci_driver::Controller,
    pub(super) now: Instant,
    /// Transfers on the link, oldest first.
    pub(super) link: Vec<(Pipe, OnLink)>,
    /// How much of each of them has moved.
    pub(super) moved: BTreeMap<TransferId, u32>,
    pub(super) installed: Vec<Endpoint>,
    pub(super) acts: Vec<LinkAct>,
    /// Endpoints that are to come to rest and have not.
    pub(super) stopping: Vec<EndpointAddress>,
    /// Endpoints come to rest by themselves.
    pub(super) rests: bool,
    pub(super) answer: ControlAnswer,
    pub(super) asked: Vec<ControlRequest>,
    /// How links are to sleep, by port.
    pub(super) powers: Vec<(u8, PortPower)>,
    /// Where transfers have their bytes.
    pub(super) buffer: u64,
    /// Doorbells in memory are looked at whenever something happens.
    pub(super) polls: bool,
    reported: Vec<DriverOutput>,
}

pub(super) fn stream(endpoint: EndpointAddress, id: u16) -> Pipe {
    Pipe::stream(endpoint, StreamId::new(id).unwrap())
}

impl Fixture {
    pub(super) fn new(model: Model, config: Config) -> Self {
        let mut memory = TestMemory::new();
        let layout = DmaLayout { bytes: 4 << 20, align: 64 << 10, boundary: 4 << 20 };
        let buffer = memory.allocate(layout).unwrap();
        Self {
            controller: Controller::new(model),
            memory,
            driver: xhci_driver::Controller::new(config),
            now: Instant::ZERO,
            link: Vec::new(),
            moved: BTreeMap::new(),
            installed: Vec::new(),
            acts: Vec::new(),
            stopping: Vec::new(),
            rests: true,
            answer: ControlAnswer::Done(Vec::new()),
            asked: Vec::new(),
            powers: Vec::new(),
            buffer,
            polls: true,
            reported: Vec::new(),
        }
    }

    /// A driver that runs.
    pub(super) fn running(model: Model, config: Config) -> Self {
        let mut fixture = Self::new(model, config);
        fixture.start();
        assert_eq!(fixture.reported(), [DriverOutput::Running]);
        fixture
    }

    /// With a device that has a bulk endpoint each way.
    pub(super) fn with_device(model: Model, config: Config) -> (Self, DeviceId) {
        let mut fixture = Self::running(model, config);
        let device = fixture.attach();
        let plan = |address| EndpointPlan {
            descriptor: EndpointDescriptor::bulk(address, 1024),
            companion: Some(SuperSpeedCompanion::bulk(15, 4)),
        };
        let add = vec![plan(IN), plan(OUT)];
        assert_eq!(fixture.ask(Request::Configure { device, add, drop: Vec::new() }), Ok(Answer::Done));
        fixture.reported();
        (fixture, device)
    }

    /// And 16 streams on both.
    pub(super) fn with_streams(model: Model, config: Config) -> (Self, DeviceId) {
        let (mut fixture, device) = Self::with_device(model, config);
        let endpoints = vec![IN, OUT];
        let answer = fixture.ask(Request::AllocateStreams { device, endpoints, wanted: 16 });
        assert_eq!(answer, Ok(Answer::Streams(16)));
        (fixture, device)
    }

    pub(super) fn start(&mut self) {
        self.driver.start(&mut DriverAccess::new(self.now, &mut self.controller, &mut self.memory), self.now);
        self.run();
    }

    pub(super) fn location() -> Location {
        let (route, translator) = (RouteString::ROOT, None);
        Location { root_port: PORT, route, speed_id: 4, translator, control_packet: 512 }
    }

    pub(super) fn attach(&mut self) -> DeviceId {
        self.controller.plug(self.now, PORT, 4);
        self.run();
        match self.ask(Request::Attach(Self::location())) {
            Ok(Answer::Attached(device)) => device,
            other => panic!("{other:?}"),
        }
    }

    /// Lets happen what happens by itself within a second.
    pub(super) fn run(&mut self) {
        self.run_for(Duration::from_secs(1));
    }

    pub(super) fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        self.carry_out();
        loop {
            while self.polls && self.poll_doorbells() {}
            let driver = self.driver.poll_timeout().map(|deadline| deadline.at);
            let next = driver.into_iter().chain(self.controller.poll_timeout()).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            self.controller.handle_timeout(self.now, &mut self.memory);
            self.driver.handle_timeout(
                &mut DriverAccess::new(self.now, &mut self.controller, &mut self.memory),
                self.now,
            );
            self.carry_out();
        }
        self.now = end;
    }

    /// From now on doorbells lie in memory, each with the last value only.
    pub(super) fn share_doorbells(&mut self) {
        self.memory.doorbells = Some(RefCell::default());
    }

    /// Doorbells in memory that were replaced before anyone looked.
    pub(super) fn replaced_doorbells(&self) -> u32 {
        self.memory.doorbells.as_ref().map_or(0, |table| table.borrow().replaced)
    }

    /// The controller looks at doorbells in memory. Returns whether it found anything.
    pub(super) fn poll_doorbells(&mut self) -> bool {
        let has_found =
            self.memory.doorbells.is_some() && self.controller.poll_doorbells(self.now, &mut self.memory);
        self.carry_out();
        has_found
    }

    pub(super) fn carry_out(&mut self) {
        while let Some(output) = self.controller.poll_output() {
            match output {
                Output::Interrupt => self.interrupt(),
                Output::Link(_, act) => self.act(act),
                Output::Control(_, request) => {
                    let id = request.id;
                    self.asked.push(request);
                    let answer = self.answer.clone();
                    self.controller.handle_control(self.now, &mut self.memory, id, &answer);
                }
                Output::PortPower(port, power) => self.powers.push((port, power)),
                Output::PortDown(_) | Output::PortReset(_) | Output::PortUp(_) => {}
            }
        }
        self.reported.extend(core::iter::from_fn(|| self.driver.poll_output()));
    }

    fn interrupt(&mut self) {
        let access = &mut DriverAccess::new(self.now, &mut self.controller, &mut self.memory);
        self.driver.handle_interrupt(access, self.now);
    }

    fn act(&mut self, act: LinkAct) {
        self.acts.push(act);
        match act {
            LinkAct::Install(endpoint) => {
                self.installed.retain(|other| other.address != endpoint.address);
                self.installed.push(endpoint);
            }
            LinkAct::Remove(address) => {
                self.installed.retain(|other| other.address != address);
                self.link.retain(|(pipe, _)| pipe.endpoint != address);
            }
            LinkAct::Queue(pipe, transfer) => {
                self.check_may_run(transfer.id);
                self.moved.remove(&transfer.id);
                self.link.push((pipe, transfer));
            }
            LinkAct::Stop(address) if self.rests => {
                self.controller.handle_quiet(self.now, &mut self.memory, PATH, address);
            }
            LinkAct::Stop(address) => self.stopping.push(address),
            LinkAct::Clear(address) => self.link.retain(|(pipe, _)| pipe.endpoint != address),
            LinkAct::Reset(_) | LinkAct::Retry(_) | LinkAct::Resume(_) => {}
        }
    }

    /// Nothing moves between the completion of a stop and the next doorbell of that endpoint.
    fn check_may_run(&self, id: TransferId) {
        let (Some(table), Some((to, _))) = (&self.memory.doorbells, RingName::of(id)) else { return };
        assert!(table.borrow().may_run(to.slot, to.endpoint), "{to:?} is stopped, and was not written");
    }

    /// An endpoint comes to rest.
    pub(super) fn rest(&mut self, address: EndpointAddress) {
        self.stopping.retain(|stopping| *stopping != address);
        self.controller.handle_quiet(self.now, &mut self.memory, PATH, address);
        self.run();
    }

    /// The first transfer of a pipe moves so many bytes, the whole of it so far, and ends or not.
    pub(super) fn moves(&mut self, pipe: Pipe, moved: u32, ended: Option<End>) {
        let at = self.link.iter().position(|(other, _)| *other == pipe).expect("a transfer");
        let (_, transfer) = self.link[at];
        let is_in = pipe.endpoint.direction() == Direction::In;
        let piece = PacketPayload { transfer: TransferId(0), offset: 0, bytes: moved.min(1024) as u16 };
        let progress = Progress { id: transfer.id, moved, ended, piece: is_in.then_some(piece) };
        if ended.is_some() {
            self.link.remove(at);
        }
        let before = self.moved.insert(transfer.id, moved).unwrap_or(0);
        let bytes: Vec<u8> = (before..moved).map(|at| at as u8).collect();
        let came = if is_in { &bytes[..] } else { &[] };
        self.controller.handle_progress(self.now, &mut self.memory, &progress, came);
        self.carry_out();
    }

    /// The same, and what comes of it.
    pub(super) fn ends(&mut self, pipe: Pipe, moved: u32, end: End) {
        self.moves(pipe, moved, Some(end));
        self.run();
    }

    /// The transfer of a pipe that the link has first.
    pub(super) fn queued(&self, pipe: Pipe) -> Option<TransferId> {
        self.link.iter().find(|(other, _)| *other == pipe).map(|(_, transfer)| transfer.id)
    }

    pub(super) fn reported(&mut self) -> Vec<DriverOutput> {
        core::mem::take(&mut self.reported)
    }

    /// The completions among what was reported.
    pub(super) fn completions(&mut self) -> Vec<(u64, TransferStatus, u32)> {
        let completed = self.reported().into_iter().filter_map(|reported| match reported {
            DriverOutput::Completed(_, Completion { id, status, actual }) => Some((id.0, status, actual)),
            _ => None,
        });
        completed.collect()
    }

    /// Makes a request and takes its answer.
    pub(super) fn ask(&mut self, request: Request) -> Result<Answer, Refusal> {
        self.begin(request)?;
        Ok(self.answer_of_request())
    }

    /// Makes a request; the controller has not read anything of it yet.
    pub(super) fn begin(&mut self, request: Request) -> Result<(), Refusal> {
        let access = &mut DriverAccess::new(self.now, &mut self.controller, &mut self.memory);
        self.driver.request(access, self.now, RequestId(7), request)
    }

    /// Runs until the request is answered, and returns the answer.
    pub(super) fn answer_of_request(&mut self) -> Answer {
        self.run();
        let answered = self
            .reported
            .iter()
            .position(|reported| matches!(reported, DriverOutput::Answered(RequestId(7), _)));
        match answered.map(|at| self.reported.remove(at)) {
            Some(DriverOutput::Answered(_, answer)) => answer,
            _ => panic!("no answer"),
        }
    }

    /// Gives the driver a transfer; nothing happens yet.
    pub(super) fn submit(
        &mut self,
        device: DeviceId,
        pipe: Pipe,
        (id, length): (u64, u32),
    ) -> Result<(), Refusal> {
        let transfer = Transfer { id: TransferId(id), device, pipe, buffer: self.buffer, length };
        self.driver
            .submit(&mut DriverAccess::new(self.now, &mut self.controller, &mut self.memory), &transfer)
    }

    /// The same, until the link has it.
    pub(super) fn queue(&mut self, device: DeviceId, pipe: Pipe, what: (u64, u32)) {
        self.submit(device, pipe, what).unwrap();
        self.run();
    }

    pub(super) fn control(&mut self, device: DeviceId, id: u64, setup: [u8; 8]) -> Result<(), Refusal> {
        let transfer =
            ControlTransfer { id: TransferId(id), device, setup: setup.into(), buffer: self.buffer };
        let access = &mut DriverAccess::new(self.now, &mut self.controller, &mut self.memory);
        self.driver.submit_control(access, &transfer)?;
        self.run();
        Ok(())
    }

    pub(super) fn cancel(&mut self, device: DeviceId, pipe: Pipe, id: u64) {
        let access = &mut DriverAccess::new(self.now, &mut self.controller, &mut self.memory);
        self.driver.cancel(access, self.now, device, pipe, TransferId(id));
        self.carry_out();
    }

    // What the driver can read.

    pub(super) fn output(&self, slot: u8) -> u64 {
        let contexts = self.controller.registers.contexts;
        u64::from_le_bytes(self.memory.read(contexts + 8 * u64::from(slot)).unwrap())
    }

    pub(super) fn slot_context(&self, slot: u8) -> SlotContext {
        SlotContext::decode(&self.memory.read::<32>(self.output(slot)).unwrap()).unwrap()
    }

    pub(super) fn endpoint_context(&self, slot: u8, address: EndpointAddress) -> EndpointContext {
        let at =
            self.controller.transfers.slots.context_at(EndpointName { slot, id: EndpointId::of(address) });
        EndpointContext::decode(&self.memory.read::<32>(at).unwrap()).unwrap()
    }

    pub(super) fn stream_context(&self, slot: u8, address: EndpointAddress, stream: u16) -> StreamContext {
        let at = self.endpoint_context(slot, address).dequeue + 16 * u64::from(stream);
        StreamContext::decode(&self.memory.read::<16>(at).unwrap()).unwrap()
    }
}
