//! An enclosure: the timing of a bridge with a drive.
//!
//! The protocol side is the project's device model; this adds time. Firmware processes each command
//! on arrival and each status before it is sent; medium requests become ATA commands; data moves
//! through the bridge's memory piece by piece. A write over UAS is passed to the drive when
//! firmware has processed it, while its data is requested; over BOT once data has arrived.
//!
//! ```text
//!   endpoints ─ message ─► firmware ─► device ─► medium request ─► Store ─► cable ─► drive
//!             ◄─ status ── firmware ◄─ device ◄─ completion ◄─ memory ◄──┘
//! ```
//!
//! Left out: contents, which are the medium's; endpoint 0, which takes no time.
//!
//! Invariants: each message is received once and each status sent once, unless cancelled or reset;
//! each medium request completes once.

use super::Protocol;
use crate::bridge::{Chip, Store, StorePart, Times};
use crate::check::{Invariant, Ledger, ViolationSubject};
use crate::components::{BridgeLoad, QueueLoad, StoreLoad};
use crate::drive::{AnyDrive, MediumAccess, SECTOR_BYTES};
use crate::engine::Processor;
use crate::power::{Meter, Microwatts};
use crate::sata::Note;
use bus::{Completion, TransferId};
use device::command::CommandId;
use device::medium::{MediumOp, MediumRequest};
use device::{Device, DeviceTransfer};
use std::collections::VecDeque;
use units::{BlockSize, Duration, Extent, Instant};

/// The parts behind the endpoints of a device.
#[derive(Debug)]
pub struct Enclosure {
    times: Times,
    /// Time per sector through the bridge's memory.
    sector: Duration,
    firmware: Processor<Task>,
    memory: Processor<MediumRequest>,
    store: Store<AnyDrive>,
    /// Requests in flight and their arrival times.
    asked: VecDeque<(Instant, MediumRequest)>,
    /// Requests in flight that are done.
    done: VecDeque<MediumRequest>,
    /// Requests in flight delayed by a fault: a few at most.
    slow: Vec<Slow>,
    turns: VecDeque<MediumAccess>,
    records_turns: bool,
    /// Aborted commands of the device at the last poll.
    aborted: u64,
    /// Whether the bridge is busy; its power is accounted for the machine.
    at_work: Meter<2>,
}

/// A request that does not complete before `until`.
#[derive(Debug)]
struct Slow {
    until: Instant,
    request: MediumRequest,
    /// Whether the drive has completed it.
    is_done: bool,
}

/// A firmware job.
#[derive(Debug)]
enum Task {
    /// A message that arrived at a time.
    Heard(Instant, Completion, Vec<u8>),
    /// A status that was ready at a time.
    Status(Instant, DeviceTransfer),
}

/// An event of an enclosure.
#[derive(Debug)]
pub(in crate::machine) enum Done {
    /// The device receives a message that arrived at a time.
    Heard(Instant, Completion, Vec<u8>),
    /// A status is sent that was ready at a time.
    Status(Instant, DeviceTransfer),
    /// A medium request that arrived at a time is done.
    Request(Instant, MediumRequest),
}

impl Enclosure {
    /// Creates a bridge for a protocol, with a drive exposed in blocks of this size.
    pub fn new(part: &Chip, protocol: Protocol, drive: AnyDrive, block_size: BlockSize) -> Self {
        // BOT has one command at a time, so the drive gets no NCQ.
        let (times, store) = match protocol {
            Protocol::Bot => (part.bot, StorePart { queued: 0, ..part.store }),
            Protocol::Uas => (part.uas, part.store),
        };
        Self {
            times,
            sector: part.sector,
            firmware: Processor::new(),
            memory: Processor::new(),
            store: Store::new(store, drive, block_size),
            asked: VecDeque::new(),
            done: VecDeque::new(),
            slow: Vec::new(),
            turns: VecDeque::new(),
            records_turns: false,
            aborted: 0,
            at_work: Meter::new([Microwatts(0); 2]),
        }
    }

    /// Records the drive's service order, for plots.
    pub const fn record_turns(&mut self) {
        self.records_turns = true;
    }

    /// Takes the service order recorded so far.
    pub fn take_turns(&mut self) -> impl Iterator<Item = MediumAccess> {
        std::mem::take(&mut self.turns).into_iter()
    }

    /// Enables or disables tracing of SATA frames.
    pub(in crate::machine) fn take_notes(&mut self, is_taking: bool) {
        self.store.take_notes(is_taking);
    }

    /// Returns the next frame sent by now, as text.
    pub(in crate::machine) fn poll_note(&mut self, now: Instant) -> Option<Note> {
        self.store.poll_note(now)
    }

    /// Returns the SATA side with the drive.
    pub const fn store(&self) -> &Store<AnyDrive> {
        &self.store
    }

    /// Returns the busy time of firmware and bridge memory.
    pub const fn busy(&self) -> [Duration; 2] {
        [self.firmware.busy(), self.memory.busy()]
    }

    /// Returns the load of the bridge, and of cable and drive.
    pub(in crate::machine) fn load(&self, now: Instant) -> (BridgeLoad, StoreLoad) {
        let bridge = BridgeLoad {
            busy: self.at_work(now),
            firmware: self.firmware.worked(now),
            queue: QueueLoad::of(self.firmware.level(), now),
            memory: self.memory.worked(now),
        };
        (bridge, StoreLoad { cable: self.store.cable().books(), drive: self.store.at_work(now) })
    }

    /// Returns the busy time of the bridge up to now.
    pub fn at_work(&self, now: Instant) -> Duration {
        let [_, at_work] = self.at_work.times(now);
        at_work
    }

    /// Queues a message for the firmware.
    pub(in crate::machine) fn receive_message(
        &mut self,
        now: Instant,
        completion: Completion,
        message: Vec<u8>,
    ) {
        self.firmware.enqueue(now, self.times.command, Task::Heard(now, completion, message));
        self.note_work(now);
    }

    /// Queues a status for the firmware.
    pub(in crate::machine) fn send_status(&mut self, now: Instant, transfer: DeviceTransfer) {
        self.firmware.enqueue(now, self.times.status, Task::Status(now, transfer));
        self.note_work(now);
    }

    /// Withdraws a transfer from the firmware's queue. Returns whether it was there.
    pub(in crate::machine) fn withdraw(&mut self, now: Instant, id: TransferId) -> bool {
        let is_it = |task: &Task| match task {
            Task::Heard(_, completion, _) => completion.id == id,
            Task::Status(_, transfer) => transfer.id == id,
        };
        self.firmware.withdraw(now, is_it).is_some()
    }

    /// Drops queued messages and statuses after a reset.
    pub(in crate::machine) fn forget(&mut self, now: Instant) {
        while self.firmware.withdraw(now, |_| true).is_some() {}
    }

    /// Announces the total bytes of a command. A queueing drive gets a write now, before its data.
    pub(in crate::machine) fn announce(
        &mut self,
        now: Instant,
        command: CommandId,
        bytes: u32,
        write: Option<(MediumOp, Extent)>,
    ) {
        self.store.announce(command, bytes);
        if let Some((op, extent)) = write {
            self.store.foretell(now, command, op, extent);
            self.drain_store(now);
        }
    }

    /// Records data that has left the bridge: total, and before. Returns whether that had any
    /// effect.
    pub(in crate::machine) fn give(
        &mut self,
        now: Instant,
        command: CommandId,
        moved: u32,
        before: u32,
    ) -> bool {
        let sectors = moved / SECTOR_BYTES - before / SECTOR_BYTES;
        sectors > 0 && self.store.give(now, command, sectors)
    }

    /// Stops the data transfer of a failed command.
    pub(in crate::machine) fn abandon(&mut self, now: Instant, command: CommandId) {
        self.store.abandon(now, command);
        self.drain_store(now);
    }

    /// Abandons all commands that are not live: the device waits for their requests.
    pub(in crate::machine) fn abandon_dead(&mut self, now: Instant, device: &Device) {
        let aborted = device.aborted();
        if std::mem::replace(&mut self.aborted, aborted) == aborted {
            return;
        }
        let dead: Vec<_> = self.store.commands().filter(|command| !device.is_live(*command)).collect();
        dead.into_iter().for_each(|command| self.abandon(now, command));
    }

    /// Releases a command.
    pub(in crate::machine) fn release(&mut self, now: Instant, command: CommandId) {
        self.store.release(now, command);
        self.drain_store(now);
    }

    /// Accepts a medium request.
    pub(in crate::machine) fn take(&mut self, now: Instant, request: MediumRequest) {
        self.asked.push_back((now, request));
        self.note_work(now);
        if matches!(request.op, MediumOp::Write { .. }) && self.sector > Duration::ZERO {
            self.memory.enqueue(now, self.crossing(&request), request);
        } else {
            self.store.take(now, request);
            self.drain_store(now);
        }
    }

    /// Accepts a medium request that completes no earlier than `until`. The drive continues with
    /// others.
    pub(in crate::machine) fn take_slow(&mut self, now: Instant, request: MediumRequest, until: Instant) {
        self.slow.push(Slow { until, request, is_done: false });
        self.take(now, request);
    }

    /// Returns the next event up to now.
    pub(in crate::machine) fn poll_done(&mut self, now: Instant) -> Option<Done> {
        if let Some(task) = self.firmware.poll_done(now) {
            return Some(match task {
                Task::Heard(since, completion, message) => Done::Heard(since, completion, message),
                Task::Status(since, transfer) => Done::Status(since, transfer),
            });
        }
        self.drain_store(now);
        while let Some(request) = self.memory.poll_done(now) {
            if request.op == MediumOp::Read {
                if self.is_held_back(now, &request) {
                    continue;
                }
                return self.end(&request);
            }
            self.store.take(now, request);
            self.drain_store(now);
        }
        while let Some(request) = self.done.pop_front() {
            if !self.is_held_back(now, &request) {
                return self.end(&request);
            }
        }
        let Some(request) = self.poll_slow(now) else {
            self.note_work(now);
            return None;
        };
        self.end(&request)
    }

    /// Returns whether a request that the drive has done is held back.
    fn is_held_back(&mut self, now: Instant, request: &MediumRequest) -> bool {
        let Some(at) = self.slow.iter().position(|slow| slow.request.id == request.id) else { return false };
        let is_early = self.slow[at].until > now;
        if is_early {
            self.slow[at].is_done = true;
        } else {
            self.slow.swap_remove(at);
        }
        is_early
    }

    /// Returns a held-back request that is due.
    fn poll_slow(&mut self, now: Instant) -> Option<MediumRequest> {
        let at = self.slow.iter().position(|slow| slow.is_done && slow.until <= now)?;
        Some(self.slow.swap_remove(at).request)
    }

    /// Returns when the next held-back request is due.
    fn slow_until(&self) -> Option<Instant> {
        self.slow.iter().filter(|slow| slow.is_done).map(|slow| slow.until).min()
    }

    fn note_work(&mut self, now: Instant) {
        let is_at_work = self.firmware.poll_timeout().is_some() || self.is_busy();
        if self.at_work.state() != usize::from(is_at_work) {
            self.at_work.switch(now, usize::from(is_at_work));
        }
    }

    /// Returns the time of its next event.
    pub(in crate::machine) fn poll_timeout(&self) -> Option<Instant> {
        let never = Instant::from_ps(u64::MAX);
        let lines = [self.firmware.poll_timeout(), self.memory.poll_timeout(), self.store.poll_timeout()];
        let [firmware, memory, store] = lines.map(|due| due.unwrap_or(never));
        let first = firmware.min(memory).min(store).min(self.slow_until().unwrap_or(never));
        (first < never).then_some(first)
    }

    /// Advances to `now`. Returns whether an event is ready.
    pub(in crate::machine) fn handle_timeout(&mut self, now: Instant) -> bool {
        if self.store.poll_timeout().is_some_and(|at| at <= now) {
            self.store.handle_timeout(now);
        }
        self.drain_store(now);
        let is_due = |due: Option<Instant>| due.is_some_and(|at| at <= now);
        let is_done = is_due(self.firmware.poll_timeout())
            || is_due(self.memory.poll_timeout())
            || is_due(self.slow_until())
            || !self.done.is_empty();
        if !is_done {
            self.note_work(now);
        }
        is_done
    }

    /// Returns whether the medium is busy.
    pub(in crate::machine) fn is_busy(&self) -> bool {
        !self.asked.is_empty() || self.store.is_busy()
    }

    /// Checks the queue statistics.
    pub(in crate::machine) fn audit(&self, now: Instant, ledger: &mut Ledger) {
        for (is_consistent, queue) in [
            (self.firmware.level().is_consistent(now), "the bridge's firmware"),
            (self.memory.level().is_consistent(now), "the bridge's memory"),
            (self.store.is_consistent(now), "commands for the drive behind the bridge"),
        ] {
            if !is_consistent {
                ledger.report_violation(Invariant::Little, now, ViolationSubject::Queue(queue));
            }
        }
        if self.store.misplaced() > 0 {
            ledger.report_violation(
                Invariant::Protocol,
                now,
                ViolationSubject::Machine("an ATA command that is not that of its SCSI command"),
            );
        }
        // At most twice the tags, unless there is a loop.
        for (is_full, queue) in [
            (self.firmware.is_full(), "the bridge's firmware"),
            (self.memory.is_full(), "the bridge's memory"),
        ] {
            if is_full {
                ledger.report_violation(Invariant::Progress, now, ViolationSubject::Queue(queue));
            }
        }
        ledger.audit_meter(now, &self.at_work, "the bridge");
        ledger.audit_meter(now, self.store.meter(), "the drive behind the bridge");
    }

    /// Takes completions of the SATA side. Data read passes through the bridge's memory, if that
    /// takes time.
    fn drain_store(&mut self, now: Instant) {
        while let Some(turn) = self.store.poll_access() {
            if self.records_turns {
                self.turns.push_back(turn);
            }
        }
        while let Some(request) = self.store.poll_done() {
            if request.op == MediumOp::Read && self.sector > Duration::ZERO {
                self.memory.enqueue(now, self.crossing(&request), request);
            } else {
                self.done.push_back(request);
            }
        }
    }

    fn end(&mut self, request: &MediumRequest) -> Option<Done> {
        let place = self.asked.iter().position(|(_, asked)| asked.id == request.id)?;
        self.asked.remove(place).map(|(since, request)| Done::Request(since, request))
    }

    fn crossing(&self, request: &MediumRequest) -> Duration {
        Duration::from_ps(self.sector.as_ps() * u64::from(request.range.len / SECTOR_BYTES))
    }
}
