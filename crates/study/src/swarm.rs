//! Randomised fault-injection runs and the invariants that must hold in them.
//!
//! A [`Case`] describes one run completely in a line of text: link, drive, workload, and which
//! faults occur when. [`run`] drives a device of this project with a disk of the initiator,
//! reattaches it whenever a fault ended its session, and finally reads back every block; the
//! invariants of [`check`](sim::check) are checked throughout. [`shrink`] reduces a failing case:
//! fewer requests, fewer faults, less of everything.
//!
//! Behind hubs there may be several drives with independent disks, counters, invariants and faults,
//! used concurrently; faults of hubs and the controller count for the first. Left out: running many
//! cases at once, since nothing here starts a thread.
//!
//! Always true: a case is complete, so the same line has the same digest on any machine.

mod case;
mod host;
mod parts;
mod progress_bound;
mod report;
mod session;
mod shrink;
mod stacked;
mod target;

pub use case::{Case, CaseController, CaseError, CaseTransport, Mix, SessionEnd};
pub use parts::Parts;
pub use report::{FaultStats, Report};
pub use shrink::{Shrunk, shrink, shrink_while};

use host::Host;
use initiator::Transport;
use session::DeviceSession;
use sim::check::{Invariant, Violation, ViolationSubject};
use sim::engine::{Digest, Trace};
use sim::fault::{FaultKind, FaultScript, Faults, SeededBug};
use sim::machine::xhci::{Drive, DriveParts, PowerOnFailure, Setup, XhciMachine};
use sim::machine::{self, DetachedDrive, DirectMachine, FixedLatencyDrive, PlugError, Plugged};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use target::SwarmTarget;
use units::Instant;

/// A device is attached unless a fault below the link's notice prevents it.
const NOT_UP: Result<(), Violation> = Err(Violation {
    invariant: Invariant::Recovery,
    at: Instant::ZERO,
    subject: ViolationSubject::Machine("a device that is brought up once more"),
});
/// Maximum sessions of a device in one run, before the last one without faults.
const SESSIONS_MAX: u32 = 6;

/// Creates the trace of one session of a device.
pub type TraceFactory<'a> = &'a dyn Fn() -> Box<dyn Trace>;

/// Runs a case, optionally with a seeded bug.
pub fn run(case: &Case, bug: Option<SeededBug>) -> Report {
    run_with(case, bug, None)
}

/// Runs a case with a trace of each session of the device, since each begins at time zero.
pub fn run_with(case: &Case, bug: Option<SeededBug>, trace: Option<TraceFactory<'_>>) -> Report {
    let mut run = Run {
        case,
        trace,
        hosts: (0..case.asked()).map(|drive| Host::new(case, drive.into())).collect(),
        digest: Digest::new(),
        stats: FaultStats::default(),
        remains: (0..case.asked()).map(|drive| remains_of(case, drive, bug)).collect(),
        struck: FaultScript::default(),
    };
    let verdict = unless_it_panics(|| run.finish()).unwrap_or_else(|| panicked(Instant::ZERO));
    Report { verdict, struck: run.struck, digest: run.digest.value(), stats: run.stats }
}

/// Converts a panic to a violation; its message was already printed.
fn unless_it_panics<R>(part: impl FnOnce() -> R) -> Option<R> {
    catch_unwind(AssertUnwindSafe(part)).ok()
}

fn panicked(at: Instant) -> Result<(), Violation> {
    Err(Violation {
        invariant: Invariant::Panic,
        at,
        subject: ViolationSubject::Machine("somewhere, see above"),
    })
}

/// A running case, between two sessions of its device.
struct Run<'a> {
    case: &'a Case,
    trace: Option<TraceFactory<'a>>,
    /// Per drive.
    hosts: Vec<Host>,
    digest: Digest,
    stats: FaultStats,
    /// State that the next session starts from, per drive.
    remains: Vec<DetachedDrive>,
    /// Faults that occurred until the end of the last session.
    struck: FaultScript,
}

impl Run<'_> {
    fn finish(&mut self) -> Result<(), Violation> {
        if let Some(setup) = self.case.setup().filter(|_| self.case.is_stacked) {
            let trace = self.trace.map(|make| make());
            let asked = stacked::run(self.case, &setup, &mut self.digest, trace);
            self.stats = self.stats.and(asked.stats);
            asked.verdict?;
        }
        while self.hosts.iter().any(Host::has_work) && self.stats.sessions < u64::from(SESSIONS_MAX) {
            self.run_sessions()?;
        }
        self.remains.iter_mut().for_each(|remains| remains.faults.end());
        self.hosts.iter_mut().for_each(Host::inspect);
        self.run_sessions()
    }

    /// Runs one session of the device.
    fn run_sessions(&mut self) -> Result<(), Violation> {
        self.stats.sessions += 1;
        if let Some(setup) = self.case.setup() {
            return self.run_driven_session(&setup);
        }
        let Some(DetachedDrive { plain, device, faults }) = self.remains.pop() else { return Ok(()) };
        let device = device.unwrap_or_else(|| self.case.device(&plain, 0));
        match self.case.wire {
            CaseTransport::Uas => {
                self.run_device_session(machine::uas(device, Some(self.case.depth)), plain, faults)
            }
            CaseTransport::Bot => self.run_device_session(machine::bot(device), plain, faults),
            CaseTransport::Turbo => self.run_device_session(machine::turbo(device), plain, faults),
        }
    }

    fn run_device_session<T: Transport>(
        &mut self,
        plugged: Result<Plugged<T>, PlugError>,
        plain: FixedLatencyDrive,
        faults: Faults,
    ) -> Result<(), Violation> {
        let Ok(plugged) = plugged else {
            let subject = ViolationSubject::Machine("a device that is configured once more");
            return Err(Violation { invariant: Invariant::Recovery, at: Instant::ZERO, subject });
        };
        let mut world = DirectMachine::new(self.case.connection(), plugged, plain).with_faults(faults);
        self.case.sleep().into_iter().for_each(|sleep| world.let_sleep(sleep));
        let struck_before = vec![world.faults().injected().len()];
        self.run_session_in(world, &struck_before)
    }

    /// Runs a session behind a controller.
    fn run_driven_session(&mut self, setup: &Setup) -> Result<(), Violation> {
        let (mut occupants, mut faults) = (VecDeque::new(), Vec::new());
        for (drive, DetachedDrive { plain, device, faults: its }) in self.remains.drain(..).enumerate() {
            let device = device.unwrap_or_else(|| self.case.device(&plain, drive));
            occupants.push_back(DriveParts { device, plain, enclosure: self.case.enclosure(drive) });
            faults.push(its);
        }
        let occupy = |_: usize, drive: &Drive| {
            occupants.pop_front().unwrap_or_else(|| DriveParts::of(drive, setup.rate_of(drive).speed()))
        };
        let struck_before: Vec<_> = faults.iter().map(|faults| faults.injected().len()).collect();
        let powered = if self.case.is_early {
            setup.power_on_struck(occupy, faults)
        } else {
            let powered = setup.power_on_with(occupy, Vec::new());
            powered
                .map(|world| world.with_faults(faults))
                .map_err(|why| PowerOnFailure { why, machine: None })
        };
        match powered {
            Ok(world) => self.run_session_in(world, &struck_before),
            Err(PowerOnFailure { machine: Some(world), .. }) => self.give_up(*world, &struck_before),
            Err(PowerOnFailure { machine: None, .. }) => NOT_UP,
        }
    }

    /// Ends a session whose device was not enumerated, for a reason, so that it is reattached.
    fn give_up(&mut self, mut world: XhciMachine, struck_before: &[usize]) -> Result<(), Violation> {
        let audited = SwarmTarget::audit(&mut world);
        let is_on_bus = self.case.is_on_bus();
        let mut drives = struck_before.iter().enumerate();
        let is_struck =
            drives.any(|(drive, before)| world.faults(drive).injected().is_felt(*before, is_on_bus));
        self.stats.events += SwarmTarget::happened(&world);
        self.stats.virtual_ms += (SwarmTarget::now(&world) - Instant::ZERO).as_ms();
        self.digest.mix(SwarmTarget::digest(&world));
        self.end(world);
        audited?;
        if is_struck { Ok(()) } else { NOT_UP }
    }

    fn run_session_in<W: SwarmTarget>(
        &mut self,
        mut world: W,
        struck_before: &[usize],
    ) -> Result<(), Violation> {
        if let Some(make) = self.trace {
            world.trace_to(make());
        }
        let is_inspecting = self.hosts.iter().any(Host::is_inspecting);
        let world = RefCell::new(world);
        let session = |(drive, host): (usize, _)| {
            let before = struck_before.get(drive).copied().unwrap_or(0);
            DeviceSession::new(&world, drive, before, host, self.case)
        };
        let mut sessions: Vec<_> = self.hosts.iter_mut().enumerate().map(session).collect();
        let lived = unless_it_panics(|| session::run_sessions(&world, &mut sessions));
        sessions.iter().for_each(|session| session.count(&mut self.stats));
        drop(sessions);
        let mut world = world.into_inner();
        let struck = |drive| world.faults(drive).injected().faults().to_vec();
        self.struck = (0..self.hosts.len()).flat_map(struck).collect();
        self.digest.mix(world.digest());
        // Detaching waits until the device is at rest; power loss does not.
        let lived = match lived {
            Some(Ok(())) if is_inspecting || self.case.finale == SessionEnd::Unplug => {
                unless_it_panics(|| session::leave_alone(&mut world, self.hosts.len()))
            }
            _ => lived,
        };
        // A machine that panicked is in an inconsistent state and is not ended.
        let Some(verdict) = lived else { return panicked(world.now()) };
        self.end(world);
        verdict
    }

    /// Detaches the device or cuts its power; the remaining state starts the next session.
    fn end<W: SwarmTarget>(&mut self, world: W) {
        let is_inspecting = self.hosts.iter().any(Host::is_inspecting);
        let kind = world.gone().unwrap_or(match self.case.finale {
            SessionEnd::PowerLoss if !is_inspecting => FaultKind::PowerLoss,
            SessionEnd::PowerLoss | SessionEnd::Unplug => FaultKind::Unplug,
        });
        self.remains = world.end(kind);
        self.remains.truncate(self.hosts.len());
        let struck = self.remains.iter().flat_map(|remains| remains.faults.injected().faults());
        self.struck = struck.copied().collect();
        for host in &mut self.hosts {
            match kind {
                FaultKind::PowerLoss => host.blocks.lose_power(),
                _ => host.blocks.settle(),
            }
        }
    }
}

/// The state of a drive before its first session, optionally with a seeded bug.
fn remains_of(case: &Case, drive: u8, bug: Option<SeededBug>) -> DetachedDrive {
    let faults = case.faults(drive).with_bug(bug.filter(|_| drive == 0));
    DetachedDrive { plain: case.plain(), device: None, faults }
}

#[cfg(test)]
mod tests;
