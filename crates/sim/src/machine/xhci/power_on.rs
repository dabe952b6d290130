//! Power-on: the driver starts its controller, ports train, and each device is addressed,
//! enumerated and configured (USB 3.2 clause 9.1.2), by real control transfers and commands in
//! virtual time, one device after the other.
//!
//! A hub is enumerated and powers its ports (see `hubs`) before the devices behind it. Left out:
//! string descriptors, and devices that change their descriptors. Invariant: each step completes or
//! fails within [`STEP_TIMEOUT`].

use super::attached_drive::AttachedDrive;
use super::control_sequence::{HubAction, SequenceStep, StepResult, set_configuration};
use super::core::Core;
use super::host_device::HostDevice;
use super::host_system::HostSystem;
use super::root_port::RootPort;
use super::setup::{Drive, Packing, Protocol, Setup, SetupError};
use super::wiring::Wired;
use super::write_gate::WriteGate;
use super::{AnyTransport, Enclosure, XhciMachine};
use crate::engine::{Alarm, Engine};
use crate::fault::Faults;
use crate::index_set::IndexSet64;
use crate::link::hub::AttachError;
use crate::machine::stop_reason::Pulse;
use crate::machine::{FixedLatencyDrive, Observer, Simulation};
use bus::{EndpointAddress, Speed, TransferStatus};
use device::Device;
use initiator::bot::BotConfig;
use initiator::uas::{TooFewStreams, UasConfig, UasEndpoints};
use initiator::{Bot, BusRequest, Timeouts, Turbo, TurboConfig, Uas};
use quirks::{Answers, Link as ProbeLink, Matching, Names, Probe, probe};
use std::collections::VecDeque;
use std::fmt;
use units::{Duration, Instant};
use wire::usb::hub::HubPortSpeed;
use wire::usb::{BosDescriptor, ConfigurationDescriptor, DescriptorKind, DeviceDescriptor, SetupPacket};
use wire::xhci::{CompletionCode, RouteString};
use xhci_controller::DevicePath;
use xhci_driver::{Answer, Location, Request};

/// Attempts to enumerate a device, with a port reset in between, as Linux does (PORT_INIT_TRIES,
/// drivers/usb/core/hub.c).
const TRIES: u8 = 4;

/// Timeout of an enumeration step.
const STEP_TIMEOUT: Duration = Duration::from_secs(2);

/// Why a machine did not power on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerOnError {
    /// The description is invalid.
    Setup(SetupError),
    /// The driver gave the controller up, or a step timed out after 2 s.
    Controller,
    /// A device, or the controller for it, rejected a request.
    Refused(&'static str),
    /// The controller has too few endpoints; with its total besides control endpoints.
    Endpoints(u16),
    /// The device does not offer the transport, or the controller has no streams for it.
    NotOffered,
    /// There are too few streams.
    Streams(TooFewStreams),
}

/// A failed power-on with faults.
#[derive(Debug)]
pub struct PowerOnFailure {
    /// The reason.
    pub why: PowerOnError,
    /// The machine so far; `None` if the description is invalid.
    pub machine: Option<Box<XhciMachine>>,
}

/// The parts of a drive.
#[derive(Debug)]
pub struct DriveParts {
    /// The device.
    pub device: Device,
    /// Contents, and latency if there is no enclosure.
    pub plain: FixedLatencyDrive,
    /// Timing of an enclosure, if there is one.
    pub enclosure: Option<Box<Enclosure>>,
}

impl DriveParts {
    /// Creates the parts of a new drive from its description, at this speed.
    pub fn of(drive: &Drive, speed: Speed) -> Self {
        let plain = drive.plain();
        Self { device: drive.device(&plain, speed), plain, enclosure: None }
    }
}

impl Setup {
    /// Powers a machine on until its transports accept commands.
    ///
    /// # Errors
    /// See [`PowerOnError`].
    pub fn power_on(&self) -> Result<XhciMachine, PowerOnError> {
        self.power_on_with(|_, drive| DriveParts::of(drive, self.rate_of(drive).speed()), Vec::new())
    }

    /// Like [`Self::power_on`], with given drive parts by number, and observers that see everything
    /// from the beginning.
    ///
    /// # Errors
    /// See [`PowerOnError`].
    pub fn power_on_with(
        &self,
        occupant: impl FnMut(usize, &Drive) -> DriveParts,
        observers: Vec<(usize, Box<dyn Observer>)>,
    ) -> Result<XhciMachine, PowerOnError> {
        let mut machine = self.occupied(occupant)?;
        for (drive, observer) in observers {
            machine.observe(drive, observer);
        }
        machine.come_up()?;
        Ok(machine)
    }

    /// Like [`Self::power_on`], with faults by drive from the first packet on.
    ///
    /// # Errors
    /// The reason, and the machine so far.
    pub fn power_on_struck(
        &self,
        occupant: impl FnMut(usize, &Drive) -> DriveParts,
        faults: impl IntoIterator<Item = Faults>,
    ) -> Result<XhciMachine, PowerOnFailure> {
        let nothing = |why| PowerOnFailure { why, machine: None };
        let mut machine = self.occupied(occupant).map_err(nothing)?.with_faults(faults);
        match machine.come_up() {
            Ok(()) => Ok(machine),
            Err(why) => Err(PowerOnFailure { why, machine: Some(Box::new(machine)) }),
        }
    }

    /// Creates an unpowered machine with its drives.
    pub(super) fn occupied(
        &self,
        mut occupant: impl FnMut(usize, &Drive) -> DriveParts,
    ) -> Result<XhciMachine, PowerOnError> {
        self.check().map_err(PowerOnError::Setup)?;
        let drives = self.drives();
        let attached =
            |(number, (_, drive)): (usize, &(_, Drive))| AttachedDrive::new(number, occupant(number, drive));
        XhciMachine::unpowered(self, drives.iter().enumerate().map(attached).collect())
    }
}

impl XhciMachine {
    /// Powers on and enumerates all devices.
    pub(super) fn come_up(&mut self) -> Result<(), PowerOnError> {
        self.start()?;
        let order: Vec<usize> = self.root_ports.iter().flat_map(|root| root.devices.clone()).collect();
        order.into_iter().try_for_each(|number| self.bring_up_here(number))
    }

    fn unpowered(setup: &Setup, drives: Vec<AttachedDrive>) -> Result<Self, PowerOnError> {
        let driver = xhci_driver::Controller::new(setup.host.config);
        let Wired { mut root_ports, devices, hubs } =
            setup.wire_up(drives.len()).map_err(|AttachError| PowerOnError::Refused("a place"))?;
        // Links are down until they are trained.
        root_ports.iter_mut().for_each(|root| root.cut(Instant::ZERO));
        let mut elides_repeats = IndexSet64::NONE;
        for (number, root) in root_ports.iter().enumerate() {
            if drives.get(root.first).is_some_and(|attached| attached.drive.enclosure.is_none()) {
                elides_repeats.add(number);
            }
        }
        let mut by_port = vec![0; 1 << u8::BITS];
        for (number, root) in (0..).zip(&root_ports) {
            by_port[usize::from(root.port)] = number;
        }
        Ok(Self {
            engine: Engine::new(),
            system: HostSystem::new(driver, &setup.host.part),
            core: Core::new(setup.host.costs),
            sleeps: setup.sleep.is_some(),
            packing: setup.host.packing,
            ports_before: setup.ports_before(),
            writes_in_turn: setup.host.writes_in_turn,
            root_ports,
            devices,
            drive_specs: setup.drives().into_iter().map(|(_, drive)| drive).collect(),
            by_port,
            by_slot: vec![0; 1 << u8::BITS],
            drives,
            hubs,
            finished: VecDeque::new(),
            alarms: [Alarm::default(); 3],
            polls_all: false,
            stopping: IndexSet64::NONE,
            elides_repeats,
            scratch: Vec::new(),
            pulse: Pulse::default(),
            stopped: None,
            injects_faults: false,
            shows_packets: false,
            pending_hub_reset: false,
        })
    }

    /// Starts controller and driver, and waits for enabled ports.
    fn start(&mut self) -> Result<(), PowerOnError> {
        let now = self.now();
        for root in &self.root_ports {
            self.system.controller.plug(now, root.port, speed_id(self.devices[root.first].speed));
        }
        self.system.drive(now, |driver, access| driver.start(access, now));
        self.settle();
        (0..self.root_ports.len()).try_for_each(|root| self.enable(root))
    }

    /// Waits until a root port is enabled. A USB 3 port trains by itself; a USB 2.0 port is enabled
    /// by a reset (xHCI 1.2 clause 4.3); the 100 ms debounce before it is left out.
    pub(super) fn enable(&mut self, root: usize) -> Result<(), PowerOnError> {
        let RootPort { port, first, .. } = self.root_ports[root];
        if self.devices[first].speed != Speed::Super {
            self.wait_for(|machine| machine.root_ports[root].is_connected)?;
            match self.ask(first, SequenceStep::Driver(Request::ResetPort { port }))? {
                StepResult::Answer(Answer::Port(_)) => {}
                _ => return Err(PowerOnError::Refused("a reset")),
            }
        }
        self.wait_for(|machine| machine.root_ports[root].is_ready)
    }

    /// Enumerates a device once its hub has reported it. After a rejected request, which may have
    /// been lost, the port is reset and enumeration repeated.
    pub(super) fn bring_up_here(&mut self, number: usize) -> Result<(), PowerOnError> {
        if self.devices[number].way.route != RouteString::ROOT {
            self.wait_for(|machine| machine.devices[number].location.is_some())?;
        }
        let mut came = self.try_to_bring_up(number);
        for _ in 1..TRIES {
            let Err(PowerOnError::Refused(_)) = came else { break };
            match self.reset_port_and_readdress(number) {
                Ok(true) => came = self.try_to_bring_up(number),
                Ok(false) => {}
                Err(_) => break,
            }
        }
        came
    }

    /// Resets the port of a device and restores its address, if it had one. Returns whether both
    /// succeeded.
    fn reset_port_and_readdress(&mut self, number: usize) -> Result<bool, PowerOnError> {
        let HostDevice { way: DevicePath { port, route }, device, .. } = self.devices[number];
        let reset = match route.tiers() {
            0 => SequenceStep::Driver(Request::ResetPort { port }),
            _ => SequenceStep::HubAbove(HubAction::ResetPort),
        };
        let readdress = device.map(|device| SequenceStep::Driver(Request::Readdress(device)));
        for step in [reset].into_iter().chain(readdress) {
            if !self.ask(number, step)?.is_good() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Addresses a device, if needed, and starts its transport or hub driver.
    fn try_to_bring_up(&mut self, number: usize) -> Result<(), PowerOnError> {
        let location = self.location_of(number);
        if self.devices[number].device.is_none() {
            self.attach(number, location)?;
        }
        match number < self.drives.len() {
            true => self.bring_up_drive(number),
            false => self.bring_up_hub(number, location),
        }
    }

    /// Starts the transport of an addressed drive.
    fn bring_up_drive(&mut self, number: usize) -> Result<(), PowerOnError> {
        // Jobs of the previous transport must leave the core first.
        self.wait_for(|machine| !machine.core.works_for(number))?;
        let Drive { protocol, depth, .. } = self.drive_specs[number];
        let transport = match protocol {
            Protocol::Bot => self.bot(number)?,
            Protocol::Uas => AnyTransport::Uas(self.uas(number, depth)?),
        };
        let host_transport = &mut self.drives[number].host_transport;
        host_transport.start(transport, WriteGate::new(self.writes_in_turn));
        host_transport.go_direct(self.core.is_free() && !self.injects_faults);
        self.system.ready.mark_transport(number);
        self.let_link_sleep(number)
    }

    /// Returns the location of a device, from its hub or its root port.
    fn location_of(&self, number: usize) -> Location {
        let HostDevice { way: DevicePath { port, route }, speed, location, .. } = self.devices[number];
        let control_packet = if speed == Speed::Super { 512 } else { 64 };
        let speed_id = speed_id(speed);
        let at_root = Location { root_port: port, route, speed_id, translator: None, control_packet };
        location.unwrap_or(at_root)
    }

    /// Addresses a device.
    fn attach(&mut self, number: usize, location: Location) -> Result<(), PowerOnError> {
        match self.ask(number, SequenceStep::Driver(Request::Attach(location)))? {
            StepResult::Answer(Answer::Attached(_)) => Ok(()),
            _ => Err(PowerOnError::Refused("an address")),
        }
    }

    /// Starts BOT, with packing if the driver has it.
    fn bot(&mut self, number: usize) -> Result<AnyTransport, PowerOnError> {
        let plan = self.probe(number)?.bot().ok_or(PowerOnError::NotOffered)?;
        let (interface, alternate) = (plan.place.interface, plan.place.alternate);
        self.select(number, interface, alternate)?;
        let (bulk_in, bulk_out) = (plan.bulk_in.address, plan.bulk_out.address);
        let config = BotConfig { interface, alternate, bulk_in, bulk_out, timeouts: Timeouts::default() };
        let Some(Packing { bytes_max, look_ahead, .. }) = self.packing else {
            return Ok(AnyTransport::Bot(Bot::new(config)));
        };
        let config = TurboConfig { transfer_bytes_max: bytes_max, look_ahead, ..TurboConfig::new(config) };
        Ok(AnyTransport::Turbo(Box::new(Turbo::new(config))))
    }

    /// Starts UAS, with as many streams as device and controller support, or without streams below
    /// SuperSpeed.
    fn uas(&mut self, number: usize, depth: Option<u16>) -> Result<Uas, PowerOnError> {
        let plan = self.probe(number)?.uas().ok_or(PowerOnError::NotOffered)?;
        let (interface, alternate) = (plan.place.interface, plan.place.alternate);
        self.select(number, interface, alternate)?;
        let streams = match plan.matching {
            Matching::Streams { request } => {
                Some(self.allocate(number, plan.stream_endpoints().to_vec(), request.get())?)
            }
            Matching::Ready => None,
        };
        let endpoints = UasEndpoints {
            command: plan.command.address,
            status: plan.status.address,
            data_in: plan.data_in.address,
            data_out: plan.data_out.address,
        };
        let timeouts = Timeouts::default();
        let config = UasConfig { interface, alternate, endpoints, streams, depth, timeouts };
        Uas::new(config).map_err(PowerOnError::Streams)
    }

    fn allocate(
        &mut self,
        number: usize,
        endpoints: Vec<EndpointAddress>,
        wanted: u16,
    ) -> Result<u16, PowerOnError> {
        let device = self.devices[number].device.ok_or(PowerOnError::Controller)?;
        let request = Request::AllocateStreams { device, endpoints, wanted };
        match self.ask(number, SequenceStep::Driver(request))? {
            StepResult::Answer(Answer::Streams(streams)) => Ok(streams),
            _ => Err(PowerOnError::Refused("streams")),
        }
    }

    /// Reads the descriptors and evaluates them.
    fn probe(&mut self, number: usize) -> Result<Probe, PowerOnError> {
        let device = self.read(
            number,
            SetupPacket::get_descriptor(DescriptorKind::Device, 0, DeviceDescriptor::LEN as u16),
        )?;
        let bos = self.read_whole(number, DescriptorKind::Bos, BosDescriptor::LEN)?;
        let configuration =
            self.read_whole(number, DescriptorKind::Configuration, ConfigurationDescriptor::LEN)?;
        let names = Names::default();
        let answers = Answers { device: &device, configuration: &configuration, bos: Some(&bos), names };
        let streams = self.system.driver.capabilities().map_or(0, |found| {
            let entries = found.registers.primary_streams_max();
            u16::try_from(entries.saturating_sub(1)).unwrap_or(u16::MAX)
        });
        let link = ProbeLink { speed: self.devices[number].speed, streams_max: streams };
        let probe = probe(&answers, link).map_err(|_| PowerOnError::Refused("descriptors"))?;
        self.devices[number].configuration = Some(probe.configuration.clone());
        self.set_exit_latency(number, &bos);
        Ok(probe)
    }

    /// Variable-length descriptors are read by their header first, for the total length.
    fn read_whole(
        &mut self,
        number: usize,
        kind: DescriptorKind,
        head: usize,
    ) -> Result<Vec<u8>, PowerOnError> {
        let head = self.read(number, SetupPacket::get_descriptor(kind, 0, head as u16))?;
        let total =
            head.get(2..).and_then(|rest| rest.first_chunk()).map_or(0, |len| u16::from_le_bytes(*len));
        self.read(number, SetupPacket::get_descriptor(kind, 0, total))
    }

    fn read(&mut self, number: usize, setup: SetupPacket) -> Result<Vec<u8>, PowerOnError> {
        match self.ask(number, SequenceStep::Control(setup))? {
            StepResult::Completed(TransferStatus::Done | TransferStatus::Short, bytes) => Ok(bytes),
            _ => Err(PowerOnError::Refused("a descriptor")),
        }
    }

    /// Configures the device with an alternate setting of its interface.
    fn select(&mut self, number: usize, interface: u8, alternate: u8) -> Result<(), PowerOnError> {
        let set_alternate = (BusRequest::SelectAlternate { interface, alternate }).setup();
        let first = self.devices[number].configure(0);
        let set_configuration = SequenceStep::Control(set_configuration());
        self.succeed(number, first.into_iter().chain([set_configuration]))?;
        if alternate == 0 {
            return Ok(());
        }
        let other = self.devices[number].configure(alternate);
        self.succeed(number, other.into_iter().chain(set_alternate.map(SequenceStep::Control)))
    }

    pub(super) fn succeed(
        &mut self,
        number: usize,
        steps: impl Iterator<Item = SequenceStep>,
    ) -> Result<(), PowerOnError> {
        for step in steps {
            match self.ask(number, step)? {
                StepResult::Answer(Answer::Done) | StepResult::Completed(TransferStatus::Done, _) => {}
                StepResult::Answer(Answer::Failed(CompletionCode::ResourceError)) => {
                    return Err(PowerOnError::Endpoints(self.controller().model().endpoints_max));
                }
                _ => return Err(PowerOnError::Refused("its configuration")),
            }
        }
        Ok(())
    }

    /// Runs a step for a device and waits for its result.
    pub(super) fn ask(&mut self, number: usize, step: SequenceStep) -> Result<StepResult, PowerOnError> {
        let now = self.now();
        self.devices[number].ask(&mut self.system, now, step);
        self.deliver_sequence_results(number);
        self.settle();
        self.wait_for(|machine| machine.devices[number].sequences.step_result.is_some())?;
        self.devices[number].sequences.step_result.take().ok_or(PowerOnError::Controller)
    }

    pub(super) fn wait_for(&mut self, done: impl Fn(&Self) -> bool) -> Result<(), PowerOnError> {
        let end = self.now() + STEP_TIMEOUT;
        while !done(self) {
            if self.now() > end || self.is_stopped() || !self.step() {
                return Err(PowerOnError::Controller);
            }
        }
        Ok(())
    }
}

/// Returns the default speed id of a root port (xHCI 1.2 clause 7.2.2.1.1).
pub(super) const fn speed_id(speed: Speed) -> u8 {
    match speed {
        Speed::Full => 1,
        Speed::High => 3,
        Speed::Super => 4,
    }
}

/// Returns the speed in the port status of a hub.
pub(super) const fn hub_port_speed(speed: Speed) -> HubPortSpeed {
    match speed {
        Speed::Full => HubPortSpeed::Full,
        Speed::High => HubPortSpeed::High,
        Speed::Super => HubPortSpeed::Super,
    }
}

impl fmt::Display for PowerOnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setup(error) => error.fmt(f),
            Self::Controller => f.write_str("the controller did not start or did not answer"),
            Self::Refused(what) => write!(f, "the device was refused {what}"),
            Self::Endpoints(most) => write!(
                f,
                "the controller has {most} endpoints besides control endpoints; hubs and drives need more"
            ),
            Self::NotOffered => f.write_str(
                "the device does not offer this transport, or the controller has no streams for it",
            ),
            Self::Streams(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PowerOnError {}
