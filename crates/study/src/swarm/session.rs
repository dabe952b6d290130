//! A session of a device from attachment to detachment: a disk on a transport in a simulated
//! machine, with all invariant checks. Several drives of a machine have a session each, run
//! together ([`run_sessions`]).
//!
//! Always true: the disk's outputs are executed in order; each completion is reported to the disk
//! and the checkers; a session ends, whatever fails in it, or reports that it is stuck.

use super::case::{Case, CaseTransport};
use super::host::Host;
use super::progress_bound::ProgressBound;
use super::report::FaultStats;
use super::target::SwarmTarget;
use bus::Front;
use initiator::disk::{Disk, DiskConfig, Done, Error, Memory, Operation, Output, RequestId};
use initiator::{Command, CommandId, Counters};
use sim::check::{Invariant, Violation, ViolationSubject};
use sim::engine::OccupancyStats;
use sim::fault::{FaultKind, SeededBug};
use sim::machine::{FinishedCommand, QUIESCE_TIME};
use std::cell::RefCell;
use std::collections::BTreeMap;
use units::{ByteRange, Duration, Instant};
use wire::usb::Direction;

/// Identifications that faults may fail in one session.
const IDENTIFY_FAILURES_MAX: u32 = 8;
/// How often a disk sends a command before it gives up, which needs as many faults.
const ATTEMPTS: usize = initiator::disk::RetryLimits::DEFAULT.attempts_max as usize;

/// A session of one drive.
#[derive(Debug)]
pub(super) struct DeviceSession<'a, W> {
    world: &'a RefCell<W>,
    /// The index of the drive.
    drive: usize,
    disk: Disk,
    host: &'a mut Host,
    depth: usize,
    block_bytes: u32,
    open: BTreeMap<RequestId, Open>,
    sent: BTreeMap<CommandId, Sent>,
    requests: OccupancyStats,
    commands: OccupancyStats,
    /// Time of the last completion.
    bound: ProgressBound,
    identify_runs: u32,
    is_identified: bool,
    is_disturbed: bool,
    misattributed: u64,
    stats: FaultStats,
    /// Faults of earlier sessions.
    struck_before: usize,
    /// Whether it is on a USB 2.0 bus.
    is_on_bus: bool,
    /// Events within which some request must complete.
    events_max: u64,
    /// Whether more commands are sent than the drive accepts: TASK SET FULL is then no recovery.
    is_crowded: bool,
    /// Whether a STALL can signal the end of data, as with BOT data that ends with a full packet.
    may_stall: bool,
}

/// A request in flight.
#[derive(Debug)]
struct Open {
    memory: Vec<u8>,
    since: Instant,
    is_aborted: bool,
    /// A status about another command may have completed it: its result is unknown.
    is_vague: bool,
}

/// A command in flight.
#[derive(Clone, Copy, Debug)]
struct Sent {
    memory: Memory,
    direction: Option<Direction>,
    range: ByteRange,
    since: Instant,
}

impl<'a, W: SwarmTarget> DeviceSession<'a, W> {
    /// Creates a session of a drive that had this many faults before.
    pub(super) fn new(
        world: &'a RefCell<W>,
        drive: usize,
        struck_before: usize,
        host: &'a mut Host,
        case: &Case,
    ) -> Self {
        let most = world.borrow().depth(drive);
        let depth = case.depth.min(u16::try_from(most).unwrap_or(u16::MAX)).max(1);
        let config = DiskConfig { requests_max: case.depth, ..DiskConfig::new(depth, case.transfer_bytes) };
        Self {
            world,
            drive,
            disk: Disk::new(config),
            host,
            depth: case.depth.into(),
            block_bytes: case.block.bytes(),
            open: BTreeMap::new(),
            sent: BTreeMap::new(),
            requests: OccupancyStats::default(),
            commands: OccupancyStats::default(),
            bound: ProgressBound::START,
            identify_runs: 0,
            is_identified: false,
            is_disturbed: false,
            misattributed: 0,
            stats: FaultStats::default(),
            struck_before,
            is_on_bus: case.is_on_bus(),
            events_max: ProgressBound::events_max(case),
            is_crowded: case.is_crowded(),
            may_stall: case.wire != CaseTransport::Uas,
        }
    }

    fn begin(&mut self) {
        self.disk.start(self.now());
    }

    /// Executes outputs and submits requests.
    fn go_on(&mut self) -> Result<(), Violation> {
        self.carry_out()?;
        while self.ask() {
            self.carry_out()?;
        }
        Ok(())
    }

    fn deadline(&self) -> Option<Instant> {
        self.disk.poll_timeout().map(|deadline| deadline.at)
    }

    /// Handles an expired deadline.
    fn pass(&mut self) {
        let now = self.now();
        if self.deadline().is_some_and(|at| at <= now) {
            self.disk.handle_timeout(now);
        }
    }

    fn now(&self) -> Instant {
        self.world.borrow().now()
    }

    /// Adds to the statistics.
    pub(super) fn count(&self, stats: &mut FaultStats) {
        let world = self.world.borrow();
        let (counts, counters) = (self.disk.counts(), world.counters(self.drive));
        // Machine-wide counters are added once.
        let (events, wasted_bytes, passed) = match self.drive {
            0 => (world.happened(), world.wasted_bytes(), world.now() - Instant::ZERO),
            _ => (0, 0, Duration::ZERO),
        };
        *stats = stats.and(self.stats).and(FaultStats {
            commands: counts.commands,
            sent_again: counts.sent_again,
            timeouts: counters.timeouts.into(),
            resets: counters.resets().into(),
            events,
            wasted_bytes,
            virtual_ms: passed.as_ms(),
            ..FaultStats::default()
        });
    }

    /// Submits a request if there is room; returns whether it did.
    fn ask(&mut self) -> bool {
        if !self.is_identified || self.open.len() >= self.depth || self.is_gone() {
            return false;
        }
        let Some((request, access)) = self.host.next() else { return false };
        let RequestId(id) = request.id;
        let number = self.host.blocks.begin(id, access, request.extent);
        let bytes = request.extent.blocks.0 as usize * self.block_bytes as usize;
        let mut memory = vec![0; if request.operation.moves_blocks() { bytes } else { 0 }];
        if matches!(request.operation, Operation::Write { .. }) {
            self.host.blocks.fill(number, request.extent.lba, &mut memory);
        }
        let now = self.now();
        self.requests.arrive(now);
        let is_aborted = self.host.aborts();
        self.open.insert(request.id, Open { memory, since: now, is_aborted, is_vague: false });
        if self.disk.submit(now, request).is_err() {
            // The logical unit is gone, and the session ends soon.
            self.forget(request.id);
        } else if is_aborted {
            self.disk.abort(now, request.id);
        }
        true
    }

    /// Executes the outputs of the disk.
    fn carry_out(&mut self) -> Result<(), Violation> {
        while let Some(output) = self.disk.poll_output().map(Front::take) {
            match output {
                Output::Submit(command, memory) => self.send(&command, memory),
                Output::Abort(id) => {
                    self.is_disturbed = true;
                    self.world.borrow_mut().abort(self.drive, id);
                }
                Output::Identified(result) => self.identify(result.map_err(|failed| failed.error))?,
                Output::Finished(id, result) => {
                    self.end_request(id, result)?;
                    if self.world.borrow_mut().faults(self.drive).triggers(SeededBug::RequestTwice) {
                        self.end_request(id, result)?;
                    }
                }
                Output::Lost(_) => {
                    return self.broken(
                        Invariant::Recovery,
                        ViolationSubject::Machine("a write that was lost later"),
                    );
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, command: &Command, memory: Memory) {
        let phase = command.data_phase;
        let (direction, range) = (phase.map(|phase| phase.direction), phase.map(|phase| phase.range));
        let range = range.unwrap_or(ByteRange::new(0, 0));
        let end = range.as_usize().end;
        let buffer = match (memory, direction) {
            (Memory::Request(id), Some(Direction::Out)) => {
                self.open.get(&id).map_or_else(Vec::new, |open| open.memory[..end].to_vec())
            }
            (Memory::Parameters, _) => self.disk.parameters(command.id)[..end].to_vec(),
            _ => vec![UNTOUCHED; end],
        };
        let now = self.now();
        let submitted = self.world.borrow_mut().submit(self.drive, command, buffer);
        match submitted {
            Ok(()) => {
                self.commands.arrive(now);
                self.sent.insert(command.id, Sent { memory, direction, range, since: now });
            }
            Err(refusal) => self.disk.handle_refusal(now, command.id, refusal),
        }
    }

    fn end_command(&mut self, finished: FinishedCommand) -> Result<(), Violation> {
        let FinishedCommand { id, outcome, buffer, .. } = finished;
        let now = self.now();
        let Some(sent) = self.sent.remove(&id) else {
            return self.broken(Invariant::CommandOnce, ViolationSubject::Command(id));
        };
        self.commands.leave(now, sent.since);
        let range = sent.range.as_usize();
        if let (Memory::Request(request), Some(Direction::In)) = (sent.memory, sent.direction)
            && let Some(open) = self.open.get_mut(&request)
        {
            open.memory[range.clone()].copy_from_slice(&buffer[range]);
        }
        let answer = if sent.memory == Memory::Answer { &buffer[..] } else { &[] };
        self.disk.handle_outcome(now, id, &outcome, answer);
        Ok(())
    }

    fn end_request(&mut self, id: RequestId, result: Result<Done, Error>) -> Result<(), Violation> {
        let now = self.now();
        let Some(open) = self.open.remove(&id) else {
            return self.broken(Invariant::RequestOnce, ViolationSubject::Request(id));
        };
        self.requests.leave(now, open.since);
        self.bound = ProgressBound::ended(now, self.world.borrow().happened());
        self.stats.requests += 1;
        self.world.borrow_mut().mix(id.0 << u32::BITS | u64::from(result.is_ok()));
        if let Err(error) = result {
            self.stats.failed += 1;
            self.judge(id, error, &open)?;
        }
        if open.is_vague {
            self.host.blocks.mark_unknown(id.0);
            return Ok(());
        }
        let found = self.host.blocks.end(id.0, result.is_ok(), &open.memory);
        match found {
            Ok(()) => Ok(()),
            Err(strange) => {
                let invariant =
                    if self.host.is_inspecting() { Invariant::Durable } else { Invariant::Content };
                self.broken(invariant, ViolationSubject::Block(strange.lba, strange.holds))
            }
        }
    }

    /// Checks that a failure has a cause.
    fn judge(&mut self, id: RequestId, error: Error, open: &Open) -> Result<(), Violation> {
        let is_gone = self.is_gone();
        let mut world = self.world.borrow_mut();
        let struck = world.faults(self.drive).injected();
        let here = struck.faults().get(self.struck_before..).unwrap_or(&[]);
        let tries: usize = here.iter().map(|strike| strike.kind.tries(self.is_on_bus)).sum();
        let is_felt = here.iter().any(|strike| strike.kind.is_felt(self.is_on_bus));
        let is_medium = here.iter().any(|strike| strike.kind == FaultKind::MediumError);
        drop(world);
        let excused = match error {
            _ if is_gone || open.is_vague => true,
            Error::Aborted => open.is_aborted,
            // A slow request may occupy one of few slots for longer than a disk retries.
            Error::Busy(_) if self.is_crowded => true,
            Error::Medium { .. } => is_medium,
            Error::Gone => false,
            _ => tries >= ATTEMPTS,
        };
        if excused {
            return Ok(());
        }
        let invariant = if is_felt { Invariant::Recovery } else { Invariant::NoSpuriousErrors };
        self.broken(invariant, ViolationSubject::Failure(id, error))
    }

    fn identify(&mut self, result: Result<(), Error>) -> Result<(), Violation> {
        let now = self.now();
        self.bound = ProgressBound::ended(now, self.world.borrow().happened());
        match result {
            Ok(()) if !self.is_identified => {
                self.is_identified = true;
                // A fault may have consumed the unit attention.
                if self.disk.counts().attentions == 0 && !self.was_struck() {
                    return self.broken(Invariant::Announced, ViolationSubject::Machine("no unit attention"));
                }
                Ok(())
            }
            Ok(()) => Ok(()),
            Err(_) if self.is_gone() => Ok(()),
            Err(error) if !self.was_struck() => self
                .broken(Invariant::NoSpuriousErrors, ViolationSubject::Failure(RequestId(u64::MAX), error)),
            Err(error) if error == Error::Gone || self.identify_runs == IDENTIFY_FAILURES_MAX => {
                self.broken(Invariant::Recovery, ViolationSubject::Failure(RequestId(u64::MAX), error))
            }
            Err(_) => {
                self.identify_runs += 1;
                self.is_identified = false;
                self.disk.start(now);
                self.carry_out()
            }
        }
    }

    /// Handles duplicated statuses: one completes the next command with its tag, and so on, so any
    /// command in flight may have completed without execution. Without streams their data may be
    /// mixed up as well.
    fn look_for_strays(&mut self) {
        let misattributed = self.world.borrow().misattributed(self.drive);
        let takes_turns = self.is_on_bus && !self.may_stall;
        if std::mem::replace(&mut self.misattributed, misattributed) != misattributed
            || takes_turns && misattributed > 0
        {
            self.open.values_mut().for_each(|open| open.is_vague = true);
        }
    }

    /// `last` is the event count at the last completion in any session.
    fn has_progress(&self, last: u64) -> Result<(), Violation> {
        let since_any = self.world.borrow().happened() - last;
        if self.bound.is_stuck(self.now(), since_any, self.events_max) && !self.is_over() {
            let first = self
                .open
                .keys()
                .next()
                .copied()
                .map_or(ViolationSubject::Machine("identification"), ViolationSubject::Request);
            return self.broken(Invariant::Progress, first);
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        let is_gone = self.is_gone();
        let has_asked = !self.host.has_work() && self.is_identified;
        (is_gone || has_asked) && self.open.is_empty() && self.sent.is_empty()
    }

    /// Checks all counters at the end of a session.
    fn close(&mut self, is_anyone_struck: bool) -> Result<(), Violation> {
        let now = self.now();
        for (level, name) in [(&self.requests, "requests"), (&self.commands, "commands")] {
            if !level.is_consistent(now) || level.count() > 0 {
                return self.broken(Invariant::Little, ViolationSubject::Queue(name));
            }
        }
        let counts = self.disk.counts();
        let busy = if self.is_crowded { 0 } else { counts.busy };
        let failures = counts.transport_failures + busy + counts.not_ready;
        let mut counters = self.world.borrow().counters(self.drive);
        if self.may_stall {
            counters.stalls = 0;
        }
        let is_calm = failures == 0 && counters == Counters::default();
        // Lower layers are shared. A controller may report a short TD twice, as for a command that
        // ends with TASK SET FULL.
        let has_clean_host =
            self.drive > 0 || is_anyone_struck || self.is_crowded || self.world.borrow().has_clean_host();
        let is_excused = self.was_struck() || self.is_disturbed || self.drive > 0 && self.is_gone();
        if !(is_calm && has_clean_host || is_excused) {
            return self.broken(Invariant::NoSpuriousErrors, ViolationSubject::Machine("a recovery"));
        }
        self.world.borrow().audit_rest(self.drive, false)?;
        self.world.borrow_mut().audit()
    }

    fn is_gone(&self) -> bool {
        self.world.borrow().gone().is_some()
    }

    fn was_struck(&mut self) -> bool {
        self.world.borrow_mut().faults(self.drive).injected().is_felt(self.struck_before, self.is_on_bus)
    }

    fn forget(&mut self, id: RequestId) {
        if let Some(open) = self.open.remove(&id) {
            self.requests.leave(self.now(), open.since);
            let _ = self.host.blocks.end(id.0, false, &[]);
        }
    }

    fn broken<R>(&self, invariant: Invariant, subject: ViolationSubject) -> Result<R, Violation> {
        Err(Violation { invariant, at: self.now(), subject })
    }
}

/// Runs sessions in alternation on one machine until no work is left or the devices are gone.
pub(super) fn run_sessions<W: SwarmTarget>(
    world: &RefCell<W>,
    sessions: &mut [DeviceSession<'_, W>],
) -> Result<(), Violation> {
    sessions.iter_mut().for_each(DeviceSession::begin);
    loop {
        for session in sessions.iter_mut() {
            session.go_on()?;
        }
        if sessions.iter().all(DeviceSession::is_over) {
            break;
        }
        let deadline = sessions.iter().filter_map(DeviceSession::deadline).min();
        // A USB 2.0 hub is polled forever, so time advances even if nothing else happens.
        let until = deadline.unwrap_or(world.borrow().now() + ProgressBound::SPAN);
        let finished = world.borrow_mut().run_until(Some(until));
        world.borrow_mut().audit()?;
        let now = world.borrow().now();
        match finished {
            Ok(Some(finished)) => {
                let unowned = Violation {
                    invariant: Invariant::CommandOnce,
                    at: now,
                    subject: ViolationSubject::Command(finished.id),
                };
                sessions.get_mut(finished.drive).ok_or(unowned)?.end_command(finished)?;
            }
            Ok(None) if deadline.is_some_and(|at| at <= now) => {
                sessions.iter_mut().for_each(DeviceSession::pass)
            }
            Ok(None) | Err(_) => {
                let subject = ViolationSubject::Machine("nothing happens any more");
                return Err(Violation { invariant: Invariant::Progress, at: now, subject });
            }
        }
        sessions.iter_mut().for_each(DeviceSession::look_for_strays);
        let last = ProgressBound::last_of(sessions.iter().map(|session| session.bound));
        sessions.iter().try_for_each(|session| session.has_progress(last))?;
    }
    let is_anyone_struck = sessions.iter_mut().any(DeviceSession::was_struck);
    sessions.iter_mut().try_for_each(|session| session.close(is_anyone_struck))
}

/// Lets an idle machine settle and checks the final state of its drives.
pub(super) fn leave_alone(world: &mut impl SwarmTarget, drives: usize) -> Result<(), Violation> {
    if world.gone().is_some() {
        return Ok(());
    }
    let finished = world.run_until(Some(world.now() + QUIESCE_TIME));
    world.audit()?;
    let broken = |invariant, subject| Err(Violation { invariant, at: world.now(), subject });
    match finished {
        Ok(None) if world.gone().is_some() => Ok(()),
        Ok(None) => (0..drives).try_for_each(|drive| world.audit_rest(drive, true)),
        Ok(Some(finished)) => broken(Invariant::CommandOnce, ViolationSubject::Command(finished.id)),
        Err(_) => broken(Invariant::Progress, ViolationSubject::Machine("nothing happens any more")),
    }
}

/// Fill pattern of read buffers.
const UNTOUCHED: u8 = 0xEE;
