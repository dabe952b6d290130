//! From a device to a disk that is driven by us: plan, claim, setting, streams, survey.
//!
//! Nothing is changed before the plan is made and the disk is known to be unused; whatever fails after that, the door's
//! end sets back.

use super::carry::{Commands, LIST_BYTES, MESSAGE_BYTES};
use super::clock::Clock;
use super::{AttachConfig, AttachError, Attachment, Chosen, TransportChoice, Turn, in_use};
use crate::inventory::{Interface, UsbDevice, active_configuration};
use crate::tree::Tree;
use crate::usbfs::{CellBlock, CellId, Door, InterfaceName, UsbfsError};
use initiator::disk::{ANSWER_BYTES_MAX, Disk, DiskConfig, PARAMETER_BYTES_MAX};
use initiator::probe::{Answers, BotPlan, Link, Matching, Names, Plan, Probe, UasPlan, probe};
use initiator::uas::TASKS_MAX;
use initiator::{Bot, BotConfig, Flights, Transport, Turbo, TurboConfig, Uas, UasConfig, UasEndpoints};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use wire::usb::DeviceDescriptor;

/// Streams that are wanted: a tag for each command that there can be, and two for task management, as Linux has it.
const STREAMS_WANTED: u16 = TASKS_MAX + 2;

/// URBs at once: three for each command, and some for transfers in many pieces.
const URBS_MAX: u16 = 1024;

/// How long a survey may take: a disk that spins up, and recoveries on the way.
const SURVEY_TIMEOUT: Duration = Duration::from_secs(90);

/// Names of the memory of an attachment.
#[derive(Debug)]
pub(super) struct Cells {
    /// The buffers of requests.
    pub(super) slots: CellId,
    /// What a command of the survey brings.
    pub(super) answer: CellId,
    /// Zeroes to write.
    pub(super) zeroes: CellId,
    /// Parameter lists, one for each command.
    pub(super) lists: CellId,
    /// Packs, where the transport makes them.
    pub(super) bounce: Option<CellId>,
    /// Those that are free.
    messages: Vec<CellId>,
}

impl Cells {
    pub(super) fn take_message(&mut self) -> Option<CellId> {
        self.messages.pop()
    }

    pub(super) fn put_message(&mut self, cell: CellId) {
        self.messages.push(cell);
    }
}

impl Attachment {
    /// Takes a disk from the kernel's driver and surveys it.
    ///
    /// `device` is what an inventory of `tree`, which must be the running machine, has just found.
    ///
    /// # Errors
    /// See [`AttachError`]. Then everything is as it was.
    pub fn open(tree: &Tree, device: &UsbDevice, config: &AttachConfig) -> Result<Self, AttachError> {
        let plan = plan(tree, device, config.transport)?;
        let interface = interface_of(device, plan)?;
        for disk in &interface.disks {
            if let Some(by) = in_use::user_of(tree, disk) {
                return Err(AttachError::InUse { disk: disk.node.clone().unwrap_or_default(), by });
            }
        }
        let (mut door, cells) = open_door(device, interface, plan, config)?;
        // A driver that has just been unbound has left the first setting.
        if plan.place().alternate != 0 || interface.alternate != 0 {
            door.select_alternate(plan.place().alternate)?;
        }
        let (transport, chosen) = transport(&mut door, plan, config)?;
        let depth = u16::try_from(transport.depth()).unwrap_or(u16::MAX);
        let disk = DiskConfig {
            requests_max: config.slots,
            patience: config.disk_patience,
            ..DiskConfig::new(depth, config.transfer_bytes_max)
        };
        let mut attachment = Self {
            disk: Disk::new(disk),
            transport,
            door,
            chosen,
            cells,
            commands: Commands::default(),
            flights: Flights::new(),
            clock: Clock::start(),
            slots: vec![false; config.slots.into()],
            slot_bytes: config.slot_bytes,
            finished: VecDeque::with_capacity(config.slots.into()),
            surveyed: None,
            pieces: Vec::new(),
            answer: Vec::with_capacity(ANSWER_BYTES_MAX as usize),
            is_gone: false,
        };
        attachment.survey()?;
        Ok(attachment)
    }

    fn survey(&mut self) -> Result<(), AttachError> {
        let until = Instant::now() + SURVEY_TIMEOUT;
        let now = self.clock.now();
        self.disk.start(now);
        self.settle(now);
        loop {
            match self.surveyed.take() {
                Some(Ok(())) => return Ok(()),
                Some(Err(error)) => return Err(AttachError::Survey(error)),
                None if self.turn(until)? == Turn::Moved => {}
                None => return Err(AttachError::SurveyTimedOut),
            }
        }
    }
}

/// What to drive the device with.
fn plan(tree: &Tree, device: &UsbDevice, choice: TransportChoice) -> Result<Plan, AttachError> {
    let blob = tree.bytes(&format!("{}/descriptors", device.path)).map_err(|_| AttachError::Descriptors)?;
    let active = device.configuration.as_ref().ok_or(AttachError::Descriptors)?;
    let configuration = active_configuration(&blob, active.head.value).ok_or(AttachError::Descriptors)?;
    let answers = Answers {
        device: blob.get(..DeviceDescriptor::LEN).ok_or(AttachError::Descriptors)?,
        configuration,
        bos: None,
        names: Names::default(),
    };
    // What the controller has shows when streams are allocated.
    let link = Link { speed: device.speed.on_the_bus(), streams_max: STREAMS_WANTED };
    let probe = probe(&answers, link).map_err(|_| AttachError::Descriptors)?;
    let plan = match choice {
        TransportChoice::Best => probe.best(),
        TransportChoice::Bot | TransportChoice::Turbo => probe.bot().map(Plan::Bot),
        TransportChoice::Uas => probe.uas().map(Plan::Uas),
    };
    plan.ok_or_else(|| AttachError::NotOffered { transport: choice, because: unmet(&probe, choice) })
}

/// The first need that is not met.
fn unmet(probe: &Probe, choice: TransportChoice) -> Option<initiator::probe::Finding> {
    let interface = probe.interfaces.first()?;
    let findings = match choice {
        TransportChoice::Uas => &interface.uas.findings,
        _ => &interface.bot.findings,
    };
    findings.iter().find(|finding| !finding.met && !finding.rule.is_advice()).cloned()
}

fn interface_of(device: &UsbDevice, plan: Plan) -> Result<&Interface, AttachError> {
    let number = plan.place().interface;
    device.interfaces.iter().find(|interface| interface.number == number).ok_or(AttachError::Descriptors)
}

fn open_door(
    device: &UsbDevice,
    interface: &Interface,
    plan: Plan,
    config: &AttachConfig,
) -> Result<(Door, Cells), AttachError> {
    let name = InterfaceName {
        bus: device.bus,
        device: device.number,
        number: interface.number,
        name: interface.name.clone(),
        driver: interface.driver.clone(),
    };
    let commands = match plan {
        Plan::Bot(_) => config.slots,
        Plan::Uas(_) => config.depth.unwrap_or(TASKS_MAX).min(TASKS_MAX),
    };
    // A status and a COMMAND IU each; task management, and what is submitted before the last one has ended.
    let messages = commands.saturating_mul(2).saturating_add(32);
    let is_packing = config.transport == TransportChoice::Turbo;
    let block = |count, bytes| CellBlock { count, bytes };
    let blocks = [
        block(messages, MESSAGE_BYTES),
        block(1, ANSWER_BYTES_MAX),
        block(1, PARAMETER_BYTES_MAX),
        block(commands.saturating_add(1), LIST_BYTES),
        block(is_packing.into(), config.transfer_bytes_max),
        block(config.slots, config.slot_bytes),
    ];
    let (door, [first, answer, zeroes, lists, bounce, slots]) = Door::open(name, URBS_MAX, blocks)?;
    refuse_too_much(&door, config)?;
    let messages = (0..messages).rev().map(|at| first.after(at)).collect();
    let bounce = is_packing.then_some(bounce);
    Ok((door, Cells { slots, answer, zeroes, lists, bounce, messages }))
}

/// Memory that cannot be mapped for want of room is copied by the kernel, within the same limit: too much of it is
/// told now and not in the middle of a run.
fn refuse_too_much(door: &Door, config: &AttachConfig) -> Result<(), AttachError> {
    let error = door.copies_because().map(UsbfsError::of_memory);
    match error {
        Some(UsbfsError::Memory { limit_mb: Some(limit) }) if limit > 0 => {
            let wanted = u64::from(config.slots) * u64::from(config.slot_bytes);
            let room = limit.saturating_mul(1 << 20) / 2;
            if wanted > room { Err(UsbfsError::Memory { limit_mb: Some(limit) }.into()) } else { Ok(()) }
        }
        _ => Ok(()),
    }
}

/// Allocates streams, and makes the transport.
fn transport(
    door: &mut Door,
    plan: Plan,
    config: &AttachConfig,
) -> Result<(Box<dyn Transport + Send>, Chosen), AttachError> {
    match plan {
        Plan::Bot(plan) => {
            let bot = bot_config(&plan, config);
            if config.transport != TransportChoice::Turbo {
                return Ok((Box::new(Bot::new(bot)), Chosen::Bot));
            }
            let turbo = TurboConfig {
                transfer_bytes_max: config.transfer_bytes_max,
                look_ahead: config.look_ahead,
                ..TurboConfig::new(bot)
            };
            Ok((Box::new(Turbo::new(turbo)), Chosen::Turbo))
        }
        Plan::Uas(plan) => {
            let streams = match plan.matching {
                Matching::Ready => None,
                Matching::Streams { request } => {
                    Some(door.allocate_streams(plan.stream_endpoints(), request.get())?)
                }
            };
            let uas = Uas::new(uas_config(&plan, streams, config));
            let uas = uas.map_err(|error| UsbfsError::Streams { granted: error.granted })?;
            Ok((Box::new(uas), Chosen::Uas { streams }))
        }
    }
}

fn bot_config(plan: &BotPlan, config: &AttachConfig) -> BotConfig {
    BotConfig {
        interface: plan.place.interface,
        alternate: plan.place.alternate,
        bulk_in: plan.bulk_in.address,
        bulk_out: plan.bulk_out.address,
        patience: config.patience,
    }
}

fn uas_config(plan: &UasPlan, streams: Option<u16>, config: &AttachConfig) -> UasConfig {
    let endpoints = UasEndpoints {
        command: plan.command.address,
        status: plan.status.address,
        data_in: plan.data_in.address,
        data_out: plan.data_out.address,
    };
    UasConfig {
        interface: plan.place.interface,
        alternate: plan.place.alternate,
        endpoints,
        streams,
        depth: config.depth,
        patience: config.patience,
    }
}
