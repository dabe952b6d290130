//! Faults that an owner plans, by count or by rate: wrong events, stops that do not end as they should, ports that stay down,
//! doorbells that are ignored, a controller that fails.
//!
//! Each fault counts the occurrences that it can affect, from when it was planned. Invariant: without planned faults nothing is
//! counted; a fault by count happens once.

use super::event::Tampering;
use super::memory::Fault;
use alloc::vec::Vec;
use bus::{FaultSchedule, FaultTrigger};
use core::fmt;
use core::str::FromStr;

/// Planned faults that a controller keeps at most; those by count leave when they have happened.
pub const PLANNED_FAULTS_MAX: usize = 64;

/// A fault of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerFault {
    /// Of a transfer event; [`Tampering::Nowhere`] of those of endpoints with streams.
    Event(Tampering),
    /// Of a Stop Endpoint command.
    Stop(StopFault),
    /// At the doorbell of an endpoint.
    Doorbell(DoorbellFault),
    /// A root port that is to come up, by training or a reset, does not, then or later, until its device is detached.
    DeadPort,
}

/// A fault of a Stop Endpoint command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopFault {
    /// Its Stopped event is not posted.
    LoseStopped,
    /// Its Stopped event comes after its completion.
    LateStopped,
    /// It never completes.
    LoseCompletion,
}

/// A fault at a doorbell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoorbellFault {
    /// It is ignored.
    Ignore,
    /// The controller halts with Host System Error (HSE).
    HostSystemError,
    /// The controller halts with Host Controller Error (HCE), without an interrupt (clause 4.24.1).
    ControllerError,
}

/// Why a controller halts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Halt {
    /// Host System Error: an access outside of memory (clause 4.10.2.6).
    SystemError,
    /// Host Controller Error: an internal error (clause 4.24.1).
    ControllerError,
}

/// A fault and when it happens: `KIND@N` or `KIND/N:SEED`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedFault {
    /// The fault.
    pub fault: ControllerFault,
    /// At which occurrence.
    pub schedule: FaultSchedule,
}

/// The faults of a controller.
#[derive(Clone, Debug, Default)]
pub(super) struct PlannedFaults(Vec<(ControllerFault, FaultTrigger)>);

impl PlannedFaults {
    /// Plans a fault. Returns whether there is room for it.
    pub(super) fn plan(&mut self, planned: PlannedFault) -> bool {
        self.0.retain(|(_, trigger)| !trigger.is_spent());
        let has_room = self.0.len() < PLANNED_FAULTS_MAX;
        if has_room {
            self.0.push((planned.fault, FaultTrigger::new(planned.schedule)));
        }
        has_room
    }

    /// Counts an occurrence for the faults of which `of` makes an effect. Returns the effect of the first that happens.
    #[inline]
    pub(super) fn fire<T>(&mut self, of: impl Fn(ControllerFault) -> Option<T>) -> Option<T> {
        if self.0.is_empty() { None } else { self.fire_any(of) }
    }

    /// Counts the doorbell of an endpoint. Returns whether it is ignored.
    pub(super) fn ignore_doorbell(&mut self) -> Result<bool, Halt> {
        match self.fire(ControllerFault::of_doorbell) {
            None => Ok(false),
            Some(DoorbellFault::Ignore) => Ok(true),
            Some(DoorbellFault::HostSystemError) => Err(Halt::SystemError),
            Some(DoorbellFault::ControllerError) => Err(Halt::ControllerError),
        }
    }

    #[cold]
    fn fire_any<T>(&mut self, of: impl Fn(ControllerFault) -> Option<T>) -> Option<T> {
        let mut first = None;
        for (fault, trigger) in &mut self.0 {
            if let Some(effect) = of(*fault)
                && trigger.fires()
            {
                first = first.or(Some(effect));
            }
        }
        first
    }
}

impl From<Fault> for Halt {
    fn from(_: Fault) -> Self {
        Self::SystemError
    }
}

impl ControllerFault {
    const NAMES: [(&str, Self); 14] = [
        ("lose-event", Self::Event(Tampering::Lost)),
        ("repeat-event", Self::Event(Tampering::Twice)),
        ("unknown-stream", Self::Event(Tampering::Nowhere)),
        ("wrong-code", Self::Event(Tampering::Code)),
        ("wrong-cycle", Self::Event(Tampering::Cycle)),
        ("wrong-pointer", Self::Event(Tampering::Pointer)),
        ("wrong-length", Self::Event(Tampering::Length)),
        ("lose-stopped", Self::Stop(StopFault::LoseStopped)),
        ("late-stopped", Self::Stop(StopFault::LateStopped)),
        ("lose-stop", Self::Stop(StopFault::LoseCompletion)),
        ("ignore-doorbell", Self::Doorbell(DoorbellFault::Ignore)),
        ("hse", Self::Doorbell(DoorbellFault::HostSystemError)),
        ("hce", Self::Doorbell(DoorbellFault::ControllerError)),
        ("dead-port", Self::DeadPort),
    ];

    /// Returns the fault with this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, fault)| *fault)
    }

    /// Returns the names of all faults.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::NAMES.iter().map(|(name, _)| *name)
    }

    /// Only an event of an endpoint with streams can name an unknown one.
    pub(super) fn of_event(self, has_streams: impl Fn() -> bool) -> Option<Tampering> {
        match self {
            Self::Event(Tampering::Nowhere) => has_streams().then_some(Tampering::Nowhere),
            Self::Event(tampering) => Some(tampering),
            _ => None,
        }
    }

    pub(super) const fn of_stop(self) -> Option<StopFault> {
        if let Self::Stop(fault) = self { Some(fault) } else { None }
    }

    pub(super) const fn of_port(self) -> Option<()> {
        if let Self::DeadPort = self { Some(()) } else { None }
    }

    const fn of_doorbell(self) -> Option<DoorbellFault> {
        if let Self::Doorbell(fault) = self { Some(fault) } else { None }
    }
}

/// A text that names no fault of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAControllerFault;

impl FromStr for PlannedFault {
    type Err = NotAControllerFault;

    fn from_str(text: &str) -> Result<Self, NotAControllerFault> {
        let (name, schedule) = FaultSchedule::split(text).ok_or(NotAControllerFault)?;
        let fault = ControllerFault::of_name(name).ok_or(NotAControllerFault)?;
        Ok(Self { fault, schedule })
    }
}

impl fmt::Display for PlannedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = ControllerFault::NAMES.iter().find(|(_, fault)| *fault == self.fault);
        write!(f, "{}{}", known.map_or("early-event", |(name, _)| name), self.schedule)
    }
}

impl fmt::Display for NotAControllerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("use KIND@N or KIND/N:SEED, where KIND is ")?;
        for (number, name) in ControllerFault::names().enumerate() {
            write!(f, "{}{name}", if number == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl core::error::Error for NotAControllerFault {}
