//! Random worlds in which random things go wrong, and what must hold in them all the same.
//!
//! A [`Case`] says everything about one run, in a line of text: the link, the drive, what is asked of it, and which faults
//! strike when. [`run`] has a disk of the initiator work through it on a device of the target, plugs that in again where a
//! fault has ended its life, and reads every block back at the end; the laws of [`check`](sim::check) are asked all the
//! way. A case that breaks one is made smaller by [`shrink`]: fewer requests, fewer faults, less of everything.
//!
//! Behind hubs there may be several drives, each with a disk, books, laws and faults of its own, asked at the same time; what befalls
//! hubs and the controller is counted with the first. Left out: who runs many cases at once, since nothing here starts a thread.
//!
//! Always true: a case says all, so the same line has the same digest on any machine and in any company.

mod case;
mod host;
mod parts;
mod progress_bound;
mod session;
mod shrink;
mod stacked;
mod target;

pub use case::{Case, CaseController, CaseError, CaseTransport, Mix, SessionEnd};
pub use parts::Parts;
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

/// Without faults a device comes up, and with some that nobody above the link notices.
const NOT_UP: Result<(), Violation> = Err(Violation {
    invariant: Invariant::Recovery,
    at: Instant::ZERO,
    subject: ViolationSubject::Machine("a device that is brought up once more"),
});
/// Lives of a device in one run at most, before the last one, in which nothing goes wrong.
const SESSIONS_MAX: u32 = 6;

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The law that was broken, if one was.
    pub verdict: Result<(), Violation>,
    /// The faults that have struck.
    pub struck: FaultScript,
    /// The digest over all lives.
    pub digest: u64,
    /// How much was done.
    pub stats: FaultStats,
}

/// How much was done, and how much of it again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultStats {
    /// Lives of the device.
    pub sessions: u64,
    /// Requests that have ended.
    pub requests: u64,
    /// Requests that have ended with an error.
    pub failed: u64,
    /// Commands that were sent.
    pub commands: u64,
    /// Commands that were sent again.
    pub sent_again: u64,
    /// Time-outs of commands.
    pub timeouts: u64,
    /// Resets of the device, the port or the unit.
    pub resets: u64,
    /// Events that have happened.
    pub events: u64,
    /// Bytes that were carried in vain.
    pub wasted_bytes: u64,
    /// Virtual time in milliseconds.
    pub virtual_ms: u64,
}

impl Report {
    /// The faults of a case's script that have not struck, since their opportunities did not come. Where dice fall there are none.
    pub fn missed(&self, case: &Case) -> FaultScript {
        case.faults.as_ref().map(|script| script.unless_in(&self.struck)).unwrap_or_default()
    }
}

/// Makes what takes the notes of one life of a device.
pub type TraceFactory<'a> = &'a dyn Fn() -> Box<dyn Trace>;

/// Runs a case, perhaps with a planted bug.
pub fn run(case: &Case, bug: Option<SeededBug>) -> Report {
    run_with(case, bug, None)
}

/// Runs a case with notes of all that happens: of each life of the device by itself, since each begins at time zero.
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

/// A panic is a bug of ours like others, and is told as one; who looks on has seen what it says.
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

/// A case under way, between two lives of its device.
struct Run<'a> {
    case: &'a Case,
    trace: Option<TraceFactory<'a>>,
    /// By drive.
    hosts: Vec<Host>,
    digest: Digest,
    stats: FaultStats,
    /// What the next life begins with, by drive.
    remains: Vec<DetachedDrive>,
    /// What has struck up to the end of the last life, however that came.
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

    /// One life of the device.
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

    /// The same behind a controller.
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

    /// A device that was not brought up has not lived. There is a reason, and it is plugged in again.
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
            DeviceSession::new(&world, (drive, before), host, self.case)
        };
        let mut sessions: Vec<_> = self.hosts.iter_mut().enumerate().map(session).collect();
        let lived = unless_it_panics(|| session::run_sessions(&world, &mut sessions));
        sessions.iter().for_each(|session| session.count(&mut self.stats));
        drop(sessions);
        let mut world = world.into_inner();
        let struck = |drive| world.faults(drive).injected().faults().to_vec();
        self.struck = (0..self.hosts.len()).flat_map(struck).collect();
        self.digest.mix(world.digest());
        // Who pulls a drive out waits until it is at rest; the power fails when it will.
        let lived = match lived {
            Some(Ok(())) if is_inspecting || self.case.finale == SessionEnd::Unplug => {
                unless_it_panics(|| session::leave_alone(&mut world, self.hosts.len()))
            }
            _ => lived,
        };
        // A world that has panicked is as it was in the middle of something, and is not ended.
        let Some(verdict) = lived else { return panicked(world.now()) };
        self.end(world);
        verdict
    }

    /// The device is gone, or is pulled out, or loses its power; what is left begins the next life.
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

/// A drive before its first life. The first may have a planted bug.
fn remains_of(case: &Case, drive: u8, bug: Option<SeededBug>) -> DetachedDrive {
    let faults = case.faults(drive).with_bug(bug.filter(|_| drive == 0));
    DetachedDrive { plain: case.plain(), device: None, faults }
}

impl FaultStats {
    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            sessions: self.sessions + other.sessions,
            requests: self.requests + other.requests,
            failed: self.failed + other.failed,
            commands: self.commands + other.commands,
            sent_again: self.sent_again + other.sent_again,
            timeouts: self.timeouts + other.timeouts,
            resets: self.resets + other.resets,
            events: self.events + other.events,
            wasted_bytes: self.wasted_bytes + other.wasted_bytes,
            virtual_ms: self.virtual_ms + other.virtual_ms,
        }
    }
}

#[cfg(test)]
mod tests;
