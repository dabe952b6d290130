//! From a door and a plan to a disk that is driven by us: memory, setting, streams, transport, survey.
//!
//! The same for every door. How one comes by a door is for `open` and for [`crate::controller`] to say.

use super::carry::{Commands, LIST_BYTES, MESSAGE_BYTES};
use super::{AttachConfig, AttachError, Attachment, Chosen, Stop, TransportChoice, Turn, logical_unit};
use crate::clock::Clock;
use crate::door::{BusDoor, CellBlock, CellId};
use bus::EndpointAddress;
use initiator::bot::Quirks;
use initiator::disk::{ANSWER_BYTES_MAX, AskTemperature, Disk, DiskConfig, PARAMETER_BYTES_MAX};
use initiator::uas::TASKS_MAX;
use initiator::{Bot, BotConfig, Flights, Transport, Turbo, TurboConfig, Uas, UasConfig, UasEndpoints};
use quirks::{Answers, BotPlan, Link, Matching, Plan, Probe, UasPlan, probe};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Streams that are wanted: a tag for each command that there can be, and two for task management, as Linux has it.
pub(super) const STREAMS_WANTED: u16 = TASKS_MAX + 2;

/// How long a survey may take: a disk that spins up or is silent to what it need not answer, each for 30 s at most, and recoveries on the way.
const SURVEY_TIMEOUT: Duration = Duration::from_secs(90);

/// How long one may take of a disk that was surveyed and has worked since.
pub(super) const SURVEY_AGAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// How long one waits until it looks whether it is to stop.
const LOOK_MAX: Duration = Duration::from_millis(250);

/// Kinds of memory that an attachment has.
pub(super) const BLOCKS: usize = 6;

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

/// The memory that an attachment wants of its door.
pub(super) struct Memory {
    pub(super) blocks: [CellBlock; BLOCKS],
    messages: u16,
    is_packing: bool,
}

impl Memory {
    pub(super) fn of(plan: Plan, config: &AttachConfig) -> Self {
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
        Self { blocks, messages, is_packing }
    }

    /// The names of the cells, by the first of each block.
    pub(super) fn cells(&self, [first, answer, zeroes, lists, bounce, slots]: [CellId; BLOCKS]) -> Cells {
        let messages = (0..self.messages).rev().map(|at| first.after(at)).collect();
        Cells { slots, answer, zeroes, lists, bounce: self.is_packing.then_some(bounce), messages }
    }
}

/// How an interface is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// At this setting, and otherwise as the kernel's driver, or nobody, has left it.
    Unbound { alternate: u8 },
    /// As another attachment has left it; the interface has so many settings.
    Used { settings: usize },
}

impl<D: BusDoor> Attachment<D> {
    /// Sets the device up and surveys the disk, unless it is stopped. The door comes back with an error.
    pub(super) fn set_up(
        mut door: D,
        cells: Cells,
        (plan, found): (Plan, Found),
        config: &AttachConfig,
        stop: &Stop,
    ) -> Result<Self, (D, AttachError<D::Error>)> {
        let begun = begin(&mut door, plan, found).map_err(AttachError::Door);
        let reached = begun.and_then(|()| logical_unit::check(&mut door, plan, config.lun));
        let (transport, chosen) = match reached.and_then(|()| transport(&mut door, plan, config)) {
            Ok(made) => made,
            Err(error) => return Err((door, error)),
        };
        let depth = u16::try_from(transport.depth()).unwrap_or(u16::MAX);
        let disk = DiskConfig {
            lun: logical_unit::field(config.lun),
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
            lost: VecDeque::new(),
            surveyed: None,
            pieces: Vec::new(),
            answer: Vec::with_capacity(ANSWER_BYTES_MAX as usize),
            is_gone: false,
        };
        match attachment.survey(config.ask_temperature, Instant::now() + SURVEY_TIMEOUT, stop) {
            Ok(()) => Ok(attachment),
            Err(error) => {
                let error = attachment.explain(error, plan, (disk, config.lun), stop);
                Err((attachment.door, error))
            }
        }
    }

    pub(super) fn survey(
        &mut self,
        ask: AskTemperature,
        until: Instant,
        stop: &Stop,
    ) -> Result<(), AttachError<D::Error>> {
        self.surveyed = None;
        let now = self.clock.now();
        self.disk.start_asking(now, ask);
        self.settle(now);
        loop {
            match self.surveyed.take() {
                Some(Ok(())) => return Ok(()),
                Some(Err(error)) => return Err(AttachError::Survey(error)),
                None if stop.is_wanted() => return Err(AttachError::SurveyInterrupted),
                None => {}
            }
            let look = until.min(Instant::now() + LOOK_MAX);
            if self.turn(look)? == Turn::Moved {
                continue;
            }
            let now = Instant::now();
            if now >= until {
                return Err(AttachError::SurveyTimedOut);
            }
            if now < look {
                return Err(AttachError::SurveyInterrupted);
            }
        }
    }
}

/// Brings an interface to the setting of a transport, with no endpoint halted and all toggles at their beginning.
fn begin<D: BusDoor>(door: &mut D, plan: Plan, found: Found) -> Result<(), D::Error> {
    let alternate = plan.place().alternate;
    match found {
        // A driver that has just been unbound has left the first setting.
        Found::Unbound { alternate: 0 } if alternate == 0 => Ok(()),
        // A device with one setting need not know a request for it.
        Found::Used { settings: 0 | 1 } => {
            endpoints(plan).into_iter().try_for_each(|endpoint| door.clear_halt(endpoint))
        }
        Found::Unbound { .. } | Found::Used { .. } => door.select_alternate(alternate),
    }
}

fn endpoints(plan: Plan) -> Vec<EndpointAddress> {
    match plan {
        Plan::Bot(plan) => vec![plan.bulk_in.address, plan.bulk_out.address],
        Plan::Uas(plan) => {
            let UasPlan { command, status, data_in, data_out, .. } = plan;
            [command, status, data_in, data_out].map(|end| end.address).into()
        }
    }
}

/// What to drive a device with, by what it answered.
pub(super) fn choose<E>(
    answers: &Answers<'_>,
    speed: bus::Speed,
    choice: TransportChoice,
) -> Result<Plan, AttachError<E>> {
    // What the controller has shows when streams are allocated.
    let link = Link { speed, streams_max: STREAMS_WANTED };
    let probe = probe(answers, link).map_err(|_| AttachError::Descriptors)?;
    let plan = match choice {
        TransportChoice::Best => probe.best(),
        TransportChoice::Bot | TransportChoice::Turbo => probe.bot().map(Plan::Bot),
        TransportChoice::Uas => probe.uas().map(Plan::Uas),
    };
    plan.ok_or_else(|| AttachError::NotOffered { transport: choice, because: unmet(&probe, choice) })
}

/// The first need that is not met.
fn unmet(probe: &Probe, choice: TransportChoice) -> Option<quirks::Finding> {
    let interface = probe.interfaces.first()?;
    let findings = match choice {
        TransportChoice::Uas => &interface.uas.findings,
        _ => &interface.bot.findings,
    };
    findings.iter().find(|finding| !finding.met && !finding.rule.is_advice()).cloned()
}

/// A transport, and what it is called.
type Made = (Box<dyn Transport + Send>, Chosen);

/// Allocates streams, and makes the transport.
fn transport<D: BusDoor>(
    door: &mut D,
    plan: Plan,
    config: &AttachConfig,
) -> Result<Made, AttachError<D::Error>> {
    match plan {
        Plan::Bot(plan) => {
            let bot = bot_config(&plan, config);
            let known = Quirks { ignore_residue: config.ignore_residue, ..Quirks::default() };
            if config.transport != TransportChoice::Turbo {
                let mut bot = Bot::new(bot);
                bot.set_quirks(known);
                return Ok((Box::new(bot), Chosen::Bot));
            }
            let turbo = TurboConfig {
                transfer_bytes_max: config.transfer_bytes_max,
                look_ahead: config.look_ahead,
                ..TurboConfig::new(bot)
            };
            let mut turbo = Turbo::new(turbo);
            turbo.set_quirks(known);
            Ok((Box::new(turbo), Chosen::Turbo))
        }
        Plan::Uas(plan) => {
            let streams = match plan.matching {
                Matching::Ready => None,
                Matching::Streams { request } => {
                    Some(door.allocate_streams(plan.stream_endpoints(), request.get())?)
                }
            };
            let uas = Uas::new(uas_config(&plan, streams, config));
            let uas = uas.map_err(|error| AttachError::Streams { granted: error.granted })?;
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
