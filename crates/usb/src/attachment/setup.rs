//! Setup of an attachment, given a host bus and a plan: buffers, alternate setting, streams,
//! transport, identification.
//!
//! Left out: claiming the interface and returning it to the kernel driver ([`super::claimed`]).

use super::{AttachConfig, AttachError, Attachment, Chosen, Poll, Stop, TransportChoice, logical_unit};
use crate::clock::Clock;
use crate::host_bus::HardwareBus;
use bus::EndpointAddress;
use initiator::bot::Quirks;
use initiator::disk::{AskTemperature, DiskConfig};
use initiator::session::{Session, SessionBuffers, SessionConfig};
use initiator::turbo::REQUESTS_MAX;
use initiator::uas::{TASKS_MAX, transfers_max};
use initiator::{AnyTransport, Bot, BotConfig, Transport, Turbo, TurboConfig, Uas, UasConfig, UasEndpoints};
use quirks::{Answers, BotPlan, Link, Matching, Plan, Probe, UasPlan, probe};
use std::time::{Duration, Instant};

/// Streams requested: a tag for each command, and two for task management, as in Linux.
pub(super) const STREAMS_WANTED: u16 = TASKS_MAX + 2;

/// Timeout of identification: spin-up and unanswered optional commands, each at most 30 s, and
/// recovery.
const IDENTIFY_TIMEOUT: Duration = Duration::from_secs(90);

/// Interval of checking the stop flag.
const LOOK_MAX: Duration = Duration::from_millis(250);

/// Returns what an attachment needs buffers for, before its transport is known.
pub(super) fn session_config(plan: Plan, config: &AttachConfig) -> SessionConfig {
    let is_merging = config.transport == TransportChoice::Turbo;
    let (transfers, commands) = match plan {
        Plan::Bot(_) if is_merging => (1, REQUESTS_MAX as u16),
        Plan::Bot(_) => (1, 1),
        Plan::Uas(_) => {
            let depth = config.depth.unwrap_or(TASKS_MAX).min(TASKS_MAX);
            (transfers_max(depth.into()) as u16, depth)
        }
    };
    let merged_bytes = if is_merging { config.transfer_bytes_max } else { 0 };
    let AttachConfig { slots, slot_bytes, .. } = *config;
    SessionConfig { transfers, commands, merged_bytes, slots, slot_bytes }
}

/// The state of an interface before setup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// At this setting, otherwise as the kernel driver left it.
    Unbound { alternate: u8 },
    /// As another attachment left it; the interface has this many settings.
    Used { settings: usize },
}

/// An interface before setup.
pub(super) struct FoundInterface<D> {
    pub(super) bus: D,
    /// How to drive it.
    pub(super) plan: Plan,
    pub(super) found: Found,
}

impl<D: HardwareBus> Attachment<D> {
    /// Sets the device up and identifies the disk, unless stopped. Returns the bus with an error.
    pub(super) fn set_up(
        interface: FoundInterface<D>,
        buffers: SessionBuffers,
        config: &AttachConfig,
        stop: &Stop,
    ) -> Result<Self, (D, AttachError<D::Error>)> {
        let FoundInterface { mut bus, plan, found } = interface;
        let begun = begin(&mut bus, plan, found).map_err(AttachError::Bus);
        let reached = begun.and_then(|()| logical_unit::check(&mut bus, plan, config.lun));
        let (transport, chosen) = match reached.and_then(|()| transport(&mut bus, plan, config)) {
            Ok(made) => made,
            Err(error) => return Err((bus, error)),
        };
        let depth = u16::try_from(transport.depth()).unwrap_or(u16::MAX);
        let disk = DiskConfig {
            lun: logical_unit::field(config.lun),
            requests_max: config.slots,
            retry_limits: config.retry_limits,
            ..DiskConfig::new(depth, config.transfer_bytes_max)
        };
        let session = Session::new(disk, transport, bus, buffers);
        let mut attachment = Self { session, chosen, clock: Clock::start() };
        match attachment.identify(config.ask_temperature, Instant::now() + IDENTIFY_TIMEOUT, stop) {
            Ok(()) => Ok(attachment),
            Err(error) => {
                let error = attachment.explain(error, plan, disk, config.lun, stop);
                Err((attachment.session.into_bus(), error))
            }
        }
    }

    pub(super) fn identify(
        &mut self,
        ask: AskTemperature,
        until: Instant,
        stop: &Stop,
    ) -> Result<(), AttachError<D::Error>> {
        let now = self.clock.now();
        self.session.identify(now, ask);
        self.session.settle(now);
        loop {
            match self.session.take_identified() {
                Some(Ok(())) => return Ok(()),
                Some(Err(error)) => return Err(AttachError::Identify(error)),
                None if stop.is_wanted() => return Err(AttachError::IdentifyInterrupted),
                None => {}
            }
            let look = until.min(Instant::now() + LOOK_MAX);
            if self.run_once(look)? == Poll::Progress {
                continue;
            }
            let now = Instant::now();
            if now >= until {
                return Err(AttachError::IdentifyTimedOut);
            }
            if now < look {
                return Err(AttachError::IdentifyInterrupted);
            }
        }
    }
}

/// Selects the alternate setting of a transport, with all halts cleared and all toggles reset.
fn begin<D: HardwareBus>(bus: &mut D, plan: Plan, found: Found) -> Result<(), D::Error> {
    let alternate = plan.place().alternate;
    match found {
        // A driver that has just been unbound has left the first setting.
        Found::Unbound { alternate: 0 } if alternate == 0 => Ok(()),
        // A device with one setting need not know a request for it.
        Found::Used { settings: 0 | 1 } => {
            endpoints(plan).into_iter().try_for_each(|endpoint| bus.clear_halt(endpoint))
        }
        Found::Unbound { .. } | Found::Used { .. } => bus.select_alternate(alternate),
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

/// Chooses a transport by the answers of the device.
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

/// Returns the first unmet requirement.
fn unmet(probe: &Probe, choice: TransportChoice) -> Option<quirks::Finding> {
    let interface = probe.interfaces.first()?;
    let findings = match choice {
        TransportChoice::Uas => &interface.uas.findings,
        _ => &interface.bot.findings,
    };
    findings.iter().find(|finding| !finding.met && !finding.rule.is_advice()).cloned()
}

/// A transport and its name.
type Made = (AnyTransport, Chosen);

/// Allocates streams and creates the transport.
fn transport<D: HardwareBus>(
    bus: &mut D,
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
                return Ok((AnyTransport::Bot(bot), Chosen::Bot));
            }
            let turbo = TurboConfig {
                transfer_bytes_max: config.transfer_bytes_max,
                look_ahead: config.look_ahead,
                ..TurboConfig::new(bot)
            };
            let mut turbo = Turbo::new(turbo);
            turbo.set_quirks(known);
            Ok((AnyTransport::Turbo(Box::new(turbo)), Chosen::Turbo))
        }
        Plan::Uas(plan) => {
            let streams = match plan.matching {
                Matching::Ready => None,
                Matching::Streams { request } => {
                    Some(bus.allocate_streams(plan.stream_endpoints(), request.get())?)
                }
            };
            let uas = Uas::new(uas_config(&plan, streams, config));
            let uas = uas.map_err(|error| AttachError::Streams { granted: error.granted })?;
            Ok((AnyTransport::Uas(uas), Chosen::Uas { streams }))
        }
    }
}

fn bot_config(plan: &BotPlan, config: &AttachConfig) -> BotConfig {
    BotConfig {
        interface: plan.place.interface,
        alternate: plan.place.alternate,
        bulk_in: plan.bulk_in.address,
        bulk_out: plan.bulk_out.address,
        timeouts: config.timeouts,
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
        timeouts: config.timeouts,
    }
}
