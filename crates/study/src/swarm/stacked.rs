//! What an application asks of the storage stack of a host, before the lives of a device in which things go wrong.
//!
//! A life drives a disk by itself. Here requests go through [`Stack`], as those of `compare` and of sweeps do: it queues, merges
//! and cuts them, uses the memory of commands again, and checks what was read by the numbers that blocks hold. A world of
//! its own has the same drives, controller and bridge. Nothing goes wrong in it, but a drive may have fewer commands than
//! the driver sends: TASK SET FULL is no fault.
//!
//! Always true: as many requests end as were asked for, each well; no block is read or written in the wrong place.

use super::Toll;
use super::case::{Case, Wire};
use initiator::disk::RequestId;
use sim::check::{About, Law, Violation};
use sim::engine::{Digest, Random, Trace};
use sim::stack::{Profile, Request, Stack};
use sim::world::Commanded;
use sim::world::driven::{Drive, Driven, Occupant, Packing, Setup};
use std::collections::VecDeque;
use units::Instant;
use wire::usb::Direction;

/// What came of the requests.
pub(super) struct Asked {
    pub(super) verdict: Result<(), Violation>,
    pub(super) toll: Toll,
}

/// Runs the requests of a case through the stack of its host.
pub(super) fn run(case: &Case, setup: &Setup, digest: &mut Digest, trace: Option<Box<dyn Trace>>) -> Asked {
    let mut application = match Application::begin(case, setup, trace) {
        Ok(application) => application,
        Err(verdict) => return Asked { verdict: Err(verdict), toll: Toll::default() },
    };
    let verdict = application.run(case).and_then(|()| application.stack.world_mut().audit());
    let world = application.stack.world();
    digest.mix(world.digest());
    let counts = (0..world.drives()).filter_map(|drive| application.stack.counts(drive));
    let toll = Toll {
        requests: application.ended,
        commands: counts.clone().map(|counts| counts.commands).sum(),
        sent_again: counts.map(|counts| counts.sent_again).sum(),
        events: world.happened(),
        virtual_ms: (world.now() - Instant::ZERO).as_ms(),
        ..Toll::default()
    };
    Asked { verdict, toll }
}

/// An application that has so many requests in flight with each drive.
struct Application {
    stack: Stack<Driven>,
    random: Random,
    /// Requests still to be made.
    left: u64,
    /// Requests that have been made, and that have ended.
    made: u64,
    ended: u64,
}

impl Application {
    fn begin(case: &Case, setup: &Setup, trace: Option<Box<dyn Trace>>) -> Result<Self, Violation> {
        let mut occupants: VecDeque<_> = (0..case.asked())
            .map(|drive| {
                let plain = case.numbered();
                let device = case.device(&plain, drive.into());
                Occupant { device, plain, enclosure: case.enclosure(drive.into()) }
            })
            .collect();
        let occupy = |_: usize, drive: &Drive| {
            occupants.pop_front().unwrap_or_else(|| Occupant::of(drive, setup.rate_of(drive).speed()))
        };
        let not_up = |what| Violation { law: Law::Calm, at: Instant::ZERO, about: About::World(what) };
        let world =
            setup.power_on_with(occupy, Vec::new()).map_err(|_| not_up("a device that is brought up"))?;
        let mut random = Random::new(case.seed, "application");
        let profile = profile(case, &mut random);
        let mut stack = Stack::new(world, &profile).map_err(|_| not_up("a disk that is identified"))?;
        if let Some(trace) = trace {
            stack.world_mut().trace_to(trace);
        }
        let left = u64::from(case.requests) * u64::from(case.asked());
        Ok(Self { stack, random, left, made: 0, ended: 0 })
    }

    /// Each request that ends is followed by another with the same drive.
    fn run(&mut self, case: &Case) -> Result<(), Violation> {
        for drive in 0..case.asked() {
            for _ in 0..case.depth {
                self.ask(case, drive.into())?;
            }
        }
        while self.ended < self.made {
            let stuck = About::World("a request of an application");
            let ended = self.stack.next().map_err(|_| self.broken(Law::Progress, stuck))?;
            let ended = ended.ok_or_else(|| self.broken(Law::Progress, stuck))?;
            self.ended += 1;
            if let Err(error) = ended.result {
                let about = About::Failure(RequestId(ended.id), error);
                return Err(self.broken(Law::Calm, about));
            }
            if self.stack.strays(ended.drive) + self.stack.world().strays(ended.drive) > 0 {
                let about = About::World("blocks that were read or written in the wrong place");
                return Err(self.broken(Law::Content, about));
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
        let refused = About::World("a request that the class driver refuses");
        self.stack.submit(drive, &request).map_err(|_| self.broken(Law::Calm, refused))
    }

    fn broken(&self, law: Law, about: About) -> Violation {
        Violation { law, at: self.stack.now(), about }
    }
}

/// The class driver of a case.
fn profile(case: &Case, random: &mut Random) -> Profile {
    let of_wire = match case.wire {
        Wire::Uas => Profile::UAS,
        Wire::Bot => Profile::BOT,
        Wire::Turbo => Profile::TURBO,
    };
    let merges = random.below(2) == 0;
    Profile {
        transfer_bytes_max: case.transfer_bytes,
        pieces_in_turn: random.below(4) == 0,
        depth: case.depth,
        packing: of_wire.packing.map(|packing| Packing { merges, ..packing }),
        ..of_wire
    }
}
