//! An application's requests to the host's storage stack, before the device sessions with faults.
//!
//! A session drives a disk directly. Here requests go through [`Stack`], as those of `compare` and
//! of sweeps do: it queues, merges and splits them, reuses buffers, and checks read data by block
//! numbers. A separate machine has the same drives, controller and bridge. There are no faults, but
//! a drive may accept fewer commands than the driver sends: TASK SET FULL is not a fault.
//!
//! Always true: all requests complete successfully; no block is read from or written to the wrong
//! place.

use super::case::{Case, CaseTransport};
use super::report::FaultStats;
use initiator::disk::RequestId;
use sim::check::{Invariant, Violation, ViolationSubject};
use sim::engine::{Digest, Random, Trace};
use sim::machine::Simulation;
use sim::machine::xhci::{Drive, DriveParts, Packing, Setup, XhciMachine};
use sim::stack::{DriverProfile, Request, Stack};
use std::collections::VecDeque;
use units::Instant;
use wire::usb::Direction;

/// Results of the requests.
pub(super) struct StackRun {
    pub(super) verdict: Result<(), Violation>,
    pub(super) stats: FaultStats,
}

/// Runs the requests of a case through the stack of its host.
pub(super) fn run(
    case: &Case,
    setup: &Setup,
    digest: &mut Digest,
    trace: Option<Box<dyn Trace>>,
) -> StackRun {
    let mut application = match Application::begin(case, setup, trace) {
        Ok(application) => application,
        Err(verdict) => return StackRun { verdict: Err(verdict), stats: FaultStats::default() },
    };
    let verdict = application.run(case).and_then(|()| application.stack.machine_mut().audit());
    let world = application.stack.machine();
    digest.mix(world.digest());
    let counts = (0..world.drives()).filter_map(|drive| application.stack.counts(drive));
    let stats = FaultStats {
        requests: application.ended,
        commands: counts.clone().map(|counts| counts.commands).sum(),
        sent_again: counts.map(|counts| counts.sent_again).sum(),
        events: world.happened(),
        virtual_ms: (world.now() - Instant::ZERO).as_ms(),
        ..FaultStats::default()
    };
    StackRun { verdict, stats }
}

/// An application with a queue depth per drive.
struct Application {
    stack: Stack<XhciMachine>,
    random: Random,
    /// Remaining requests.
    left: u64,
    /// Requests made and completed.
    made: u64,
    ended: u64,
}

impl Application {
    fn begin(case: &Case, setup: &Setup, trace: Option<Box<dyn Trace>>) -> Result<Self, Violation> {
        let mut occupants: VecDeque<_> = (0..case.asked())
            .map(|drive| {
                let plain = case.numbered();
                let device = case.device(&plain, drive.into());
                DriveParts { device, plain, enclosure: case.enclosure(drive.into()) }
            })
            .collect();
        let occupy = |_: usize, drive: &Drive| {
            occupants.pop_front().unwrap_or_else(|| DriveParts::of(drive, setup.rate_of(drive).speed()))
        };
        let not_up = |what| Violation {
            invariant: Invariant::NoSpuriousErrors,
            at: Instant::ZERO,
            subject: ViolationSubject::Machine(what),
        };
        let world =
            setup.power_on_with(occupy, Vec::new()).map_err(|_| not_up("a device that is brought up"))?;
        let mut random = Random::new(case.seed, "application");
        let profile = profile(case, &mut random);
        let mut stack = Stack::new(world, &profile).map_err(|_| not_up("a disk that is identified"))?;
        if let Some(trace) = trace {
            stack.machine_mut().trace_to(trace);
        }
        let left = u64::from(case.requests) * u64::from(case.asked());
        Ok(Self { stack, random, left, made: 0, ended: 0 })
    }

    /// Replaces each completed request by another to the same drive.
    fn run(&mut self, case: &Case) -> Result<(), Violation> {
        for drive in 0..case.asked() {
            for _ in 0..case.depth {
                self.ask(case, drive.into())?;
            }
        }
        while self.ended < self.made {
            let stuck = ViolationSubject::Machine("a request of an application");
            let ended = self.stack.next().map_err(|_| self.broken(Invariant::Progress, stuck))?;
            let ended = ended.ok_or_else(|| self.broken(Invariant::Progress, stuck))?;
            self.ended += 1;
            if let Err(error) = ended.result {
                let subject = ViolationSubject::Failure(RequestId(ended.id), error);
                return Err(self.broken(Invariant::NoSpuriousErrors, subject));
            }
            if self.stack.misplaced_blocks(ended.drive) + self.stack.machine().misplaced_blocks(ended.drive)
                > 0
            {
                let subject =
                    ViolationSubject::Machine("blocks that were read or written in the wrong place");
                return Err(self.broken(Invariant::Content, subject));
            }
            self.ask(case, ended.drive)?;
        }
        Ok(())
    }

    fn ask(&mut self, case: &Case, drive: usize) -> Result<(), Violation> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(()) };
        self.left = left;
        let blocks = 1 + self.random.below(u64::from(case.longest));
        let lba = self.random.below(u64::from(case.blocks) - blocks + 1);
        let reads = self.random.below(100) < u64::from(case.mix.reads);
        let direction = if reads { Direction::In } else { Direction::Out };
        let request = Request { id: self.made, direction, lba, blocks: blocks as u32 };
        self.made += 1;
        let refused = ViolationSubject::Machine("a request that the class driver refuses");
        self.stack.submit(drive, &request).map_err(|_| self.broken(Invariant::NoSpuriousErrors, refused))
    }

    fn broken(&self, invariant: Invariant, subject: ViolationSubject) -> Violation {
        Violation { invariant, at: self.stack.now(), subject }
    }
}

/// The class driver of a case.
fn profile(case: &Case, random: &mut Random) -> DriverProfile {
    let of_wire = match case.wire {
        CaseTransport::Uas => DriverProfile::UAS,
        CaseTransport::Bot => DriverProfile::BOT,
        CaseTransport::Turbo => DriverProfile::TURBO,
    };
    let merges = random.below(2) == 0;
    DriverProfile {
        transfer_bytes_max: case.transfer_bytes,
        pieces_in_turn: random.below(4) == 0,
        depth: case.depth,
        packing: of_wire.packing.map(|packing| Packing { merges, ..packing }),
        ..of_wire
    }
}
