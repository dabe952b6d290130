//! From power-on to a transport: the driver takes its controller over, the port trains, the device gets an address, says what it
//! is, and is configured (USB 3.2 clause 9.1.2). All of it by real control transfers and commands, in virtual time.
//!
//! Left out: strings, hubs, and a device that answers otherwise the second time. Always true: it ends within
//! [`PATIENCE`], with a transport or with a reason.

use super::Driven;
use super::computer::Computer;
use super::errand::{Came, PORT, Step, to_device};
use crate::link::superspeed::Rate;
use crate::world::{Commanded, Observer, Plain};
use crate::xhci::{Controller, Memory, Part};
use bus::{Completion, Speed, TransferStatus};
use initiator::bot::BotConfig;
use initiator::probe::{Answers, Link as ProbeLink, Matching, Names, Probe, probe};
use initiator::uas::{TooFewStreams, UasConfig, UasEndpoints};
use initiator::{
    Bot, BusAnswer, BusRequest, Command, CommandId, Counters, Deadline, Output, Patience, Refusal, RequestId,
    Transport, Uas,
};
use std::fmt;
use target::Device;
use units::{Duration, Instant};
use wire::usb::{
    BosDescriptor, ConfigurationDescriptor, DescriptorKind, DeviceDescriptor, Direction, SetupPacket,
    StandardRequest,
};
use xhci::{Answer, Config, Location, Request};

/// A drive is on its feet within this, or never.
const PATIENCE: Duration = Duration::from_secs(2);
/// The speed id of SuperSpeed.
const SUPER: u8 = 4;

/// Why a drive has no transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerOnError {
    /// The driver gave the controller up, or nothing came within two seconds.
    Controller,
    /// The device, or the controller for it, refused something.
    Refused(&'static str),
    /// The device does not offer the transport, or the controller has no streams for it.
    NotOffered,
    /// There are too few streams.
    Streams(TooFewStreams),
}

/// The host's parts of a world that is powered on.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// The controller.
    pub part: Part,
    /// How its driver goes about it.
    pub config: Config,
}

impl Host {
    /// A controller of a chipset, and our driver as it is.
    pub fn chipset() -> Self {
        Self { part: Part::CHIPSET, config: Config::default() }
    }
}

/// The transport of a drive that has none yet.
#[derive(Debug)]
pub struct Nobody;

impl Driven<Nobody> {
    /// Powers a host and a drive on, up to what the device says of itself.
    ///
    /// # Errors
    /// See [`PowerOnError`].
    pub fn power_on(
        host: Host,
        rate: Rate,
        device: Device,
        plain: Plain,
        observer: Option<Box<dyn Observer>>,
    ) -> Result<Self, PowerOnError> {
        let (driver, controller) = (xhci::Controller::new(host.config), Controller::new(host.part));
        let mut world =
            Self::new(rate, Computer::new(Nobody, driver, controller, Memory::new()), device, plain);
        observer.into_iter().for_each(|observer| world.observe(observer));
        let now = world.now();
        world.computer.controller.plug(now, PORT, SUPER);
        world.computer.drive(now, |driver, hands| driver.start(hands, now));
        world.settle();
        world.wait_for(|world| world.is_port_ready)?;
        let location = Location {
            root_port: PORT,
            route: wire::xhci::RouteString::ROOT,
            speed_id: SUPER,
            translator: None,
            control_packet: 512,
        };
        match world.ask(Step::Driver(Request::Attach(location)))? {
            Came::Answer(Answer::Attached(_)) => Ok(world),
            _ => Err(PowerOnError::Refused("an address")),
        }
    }

    /// Brings BOT up.
    ///
    /// # Errors
    /// See [`PowerOnError`].
    pub fn bot(mut self) -> Result<Driven<Bot>, PowerOnError> {
        let plan = self.probe()?.bot().ok_or(PowerOnError::NotOffered)?;
        let (interface, alternate) = (plan.place.interface, plan.place.alternate);
        self.select(interface, alternate)?;
        let (bulk_in, bulk_out) = (plan.bulk_in.address, plan.bulk_out.address);
        let config = BotConfig { interface, alternate, bulk_in, bulk_out, patience: Patience::default() };
        Ok(self.with_transport(Bot::new(config)))
    }

    /// Brings UAS up, with as many streams as device and controller have.
    ///
    /// # Errors
    /// See [`PowerOnError`].
    pub fn uas(mut self, depth: Option<u16>) -> Result<Driven<Uas>, PowerOnError> {
        let plan = self.probe()?.uas().ok_or(PowerOnError::NotOffered)?;
        let (interface, alternate) = (plan.place.interface, plan.place.alternate);
        let Matching::Streams { request } = plan.matching else { return Err(PowerOnError::NotOffered) };
        self.select(interface, alternate)?;
        let device = self.computer.device.ok_or(PowerOnError::Controller)?;
        let endpoints = plan.stream_endpoints().to_vec();
        let request = Request::AllocateStreams { device, endpoints, wanted: request.get() };
        let Came::Answer(Answer::Streams(streams)) = self.ask(Step::Driver(request))? else {
            return Err(PowerOnError::Refused("streams"));
        };
        let endpoints = UasEndpoints {
            command: plan.command.address,
            status: plan.status.address,
            data_in: plan.data_in.address,
            data_out: plan.data_out.address,
        };
        let (streams, patience) = (Some(streams), Patience::default());
        let config = UasConfig { interface, alternate, endpoints, streams, depth, patience };
        Ok(self.with_transport(Uas::new(config).map_err(PowerOnError::Streams)?))
    }

    /// Reads the descriptors, and judges them.
    fn probe(&mut self) -> Result<Probe, PowerOnError> {
        let device = self.read(descriptor(DescriptorKind::Device, DeviceDescriptor::LEN as u16))?;
        let bos = self.read_whole(DescriptorKind::Bos, BosDescriptor::LEN)?;
        let configuration = self.read_whole(DescriptorKind::Configuration, ConfigurationDescriptor::LEN)?;
        let names = Names::default();
        let answers = Answers { device: &device, configuration: &configuration, bos: Some(&bos), names };
        let streams = self.computer.driver.capabilities().map_or(0, |found| {
            let entries = found.registers.primary_streams_max();
            u16::try_from(entries.saturating_sub(1)).unwrap_or(u16::MAX)
        });
        let link = ProbeLink { speed: Speed::Super, streams_max: streams };
        let probe = probe(&answers, link).map_err(|_| PowerOnError::Refused("descriptors"))?;
        self.computer.configuration = Some(probe.configuration.clone());
        Ok(probe)
    }

    /// Those that bring others along are asked for by themselves first, to learn how much that is.
    fn read_whole(&mut self, kind: DescriptorKind, head: usize) -> Result<Vec<u8>, PowerOnError> {
        let head = self.read(descriptor(kind, head as u16))?;
        let total =
            head.get(2..).and_then(|rest| rest.first_chunk()).map_or(0, |len| u16::from_le_bytes(*len));
        self.read(descriptor(kind, total))
    }

    fn read(&mut self, setup: SetupPacket) -> Result<Vec<u8>, PowerOnError> {
        match self.ask(Step::Control(setup))? {
            Came::Ended(TransferStatus::Done | TransferStatus::Short, bytes) => Ok(bytes),
            _ => Err(PowerOnError::Refused("a descriptor")),
        }
    }

    /// Configures the device with an alternate setting of its interface.
    fn select(&mut self, interface: u8, alternate: u8) -> Result<(), PowerOnError> {
        let set_alternate = (BusRequest::SelectAlternate { interface, alternate }).setup();
        let first = self.computer.configure(0);
        let set_configuration = Step::Control(to_device(StandardRequest::SetConfiguration));
        self.succeed(first.into_iter().chain([set_configuration]))?;
        if alternate == 0 {
            return Ok(());
        }
        let other = self.computer.configure(alternate);
        self.succeed(other.into_iter().chain(set_alternate.map(Step::Control)))
    }

    fn succeed(&mut self, steps: impl Iterator<Item = Step>) -> Result<(), PowerOnError> {
        for step in steps {
            match self.ask(step)? {
                Came::Answer(Answer::Done) | Came::Ended(TransferStatus::Done, _) => {}
                _ => return Err(PowerOnError::Refused("its configuration")),
            }
        }
        Ok(())
    }

    /// Does one step, and waits for what comes of it.
    fn ask(&mut self, step: Step) -> Result<Came, PowerOnError> {
        let now = self.now();
        self.computer.ask(now, step);
        self.settle();
        self.wait_for(|world| world.computer.errands.came.is_some())?;
        self.computer.errands.came.take().ok_or(PowerOnError::Controller)
    }

    fn wait_for(&mut self, done: impl Fn(&Self) -> bool) -> Result<(), PowerOnError> {
        let end = self.now() + PATIENCE;
        while !done(self) {
            if self.now() > end || self.is_stopped() || !self.step() {
                return Err(PowerOnError::Controller);
            }
        }
        Ok(())
    }
}

fn descriptor(kind: DescriptorKind, length: u16) -> SetupPacket {
    SetupPacket {
        direction: Direction::In,
        value: u16::from_be_bytes([kind.into(), 0]),
        length,
        ..to_device(StandardRequest::GetDescriptor)
    }
}

impl Transport for Nobody {
    fn submit(&mut self, _: Instant, _: &Command) -> Result<(), Refusal> {
        Err(Refusal::Gone)
    }

    fn abort(&mut self, _: Instant, _: CommandId) {}

    fn handle_completion(&mut self, _: Instant, _: Completion, _: &[u8]) {}

    fn handle_answer(&mut self, _: Instant, _: RequestId, _: BusAnswer) {}

    fn handle_disconnect(&mut self, _: Instant) {}

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_output(&mut self) -> Option<Output> {
        None
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        None
    }

    fn depth(&self) -> usize {
        0
    }

    fn in_flight(&self) -> usize {
        0
    }

    fn counters(&self) -> Counters {
        Counters::default()
    }
}

impl fmt::Display for PowerOnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Controller => f.write_str("the controller did not come up, or did not answer"),
            Self::Refused(what) => write!(f, "the device did not get {what}"),
            Self::NotOffered => f.write_str(
                "the device does not offer this transport, or the controller has no streams for it",
            ),
            Self::Streams(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PowerOnError {}
