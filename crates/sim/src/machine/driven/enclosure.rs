//! A bridge with a drive in one box: how long a device takes that is made of parts.
//!
//! What the host sees of it is the project's own target. Here its time goes by: the firmware looks at each command when it
//! has come and before its status goes out; what the unit asks of its medium becomes ATA commands for the drive; and what is
//! read or written moves through the bridge's memory, one piece after the other. A write over UAS is given to the drive when
//! the firmware has looked at it, and its data are asked for meanwhile; over BOT when there is something to write.
//!
//! ```text
//!   endpoints ─ message ─► firmware ─► device ─► medium request ─► Store ─► cable ─► drive
//!             ◄─ status ── firmware ◄─ device ◄─ completion ◄─ memory ◄──┘
//! ```
//!
//! Left out: contents, which are the medium's; endpoint 0, which costs nothing.
//!
//! Always true: each message is heard once and each status goes out once, unless it is taken back or the device begins anew;
//! each request of the medium ends once.

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

/// What is behind the endpoints of a device.
#[derive(Debug)]
pub struct Enclosure {
    times: Times,
    /// What a sector takes through the memory of the bridge.
    sector: Duration,
    firmware: Processor<Task>,
    memory: Processor<MediumRequest>,
    store: Store<AnyDrive>,
    /// Requests under way, with when they came.
    asked: VecDeque<(Instant, MediumRequest)>,
    /// Of those, the ones that are done.
    done: VecDeque<MediumRequest>,
    /// Of those, the ones that something has gone wrong with, so that they take longer than the drive does: no more than a few.
    slow: Vec<Slow>,
    turns: VecDeque<MediumAccess>,
    records_turns: bool,
    /// Commands that the device had aborted when it was last asked.
    aborted: u64,
    /// Whether the bridge has anything to do. What it draws then is the machine's.
    at_work: Meter<2>,
}

/// A request that is not told to be done before its time.
#[derive(Debug)]
struct Slow {
    until: Instant,
    request: MediumRequest,
    /// The drive has done it.
    is_done: bool,
}

/// What the firmware looks at.
#[derive(Debug)]
enum Task {
    /// A message has come, when.
    Heard(Instant, Completion, Vec<u8>),
    /// A status is to go out, since when.
    Status(Instant, DeviceTransfer),
}

/// What an enclosure is done with.
#[derive(Debug)]
pub(in crate::machine) enum Done {
    /// The device hears of a message, that came at a time.
    Heard(Instant, Completion, Vec<u8>),
    /// A status goes out, that was to since a time.
    Status(Instant, DeviceTransfer),
    /// A request of the medium, that came at a time.
    Request(Instant, MediumRequest),
}

impl Enclosure {
    /// A bridge that speaks a protocol, with a drive behind it that is offered in blocks of this size.
    pub fn new(part: &Chip, protocol: Protocol, drive: AnyDrive, block_size: BlockSize) -> Self {
        // BOT has one command at a time, and the drive gets it alone.
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

    /// Keeps what the drive turns to, for pictures of the order of service.
    pub const fn record_turns(&mut self) {
        self.records_turns = true;
    }

    /// What the drive has turned to since this was asked last.
    pub fn take_turns(&mut self) -> impl Iterator<Item = MediumAccess> {
        std::mem::take(&mut self.turns).into_iter()
    }

    /// Notes each frame on the cable from now on, or no more.
    pub(in crate::machine) fn take_notes(&mut self, is_taking: bool) {
        self.store.take_notes(is_taking);
    }

    /// The next frame that was sent on the cable by now, as text.
    pub(in crate::machine) fn poll_note(&mut self, now: Instant) -> Option<Note> {
        self.store.poll_note(now)
    }

    /// The SATA side, with the drive.
    pub const fn store(&self) -> &Store<AnyDrive> {
        &self.store
    }

    /// How long the firmware has been at work, and the memory of the bridge.
    pub const fn busy(&self) -> [Duration; 2] {
        [self.firmware.busy(), self.memory.busy()]
    }

    /// What its bridge has done up to now, and what is behind that.
    pub(in crate::machine) fn load(&self, now: Instant) -> (BridgeLoad, StoreLoad) {
        let bridge = BridgeLoad {
            busy: self.at_work(now),
            firmware: self.firmware.worked(now),
            queue: QueueLoad::of(self.firmware.level(), now),
            memory: self.memory.worked(now),
        };
        (bridge, StoreLoad { cable: self.store.cable().books(), drive: self.store.at_work(now) })
    }

    /// How long the bridge has had something to do, up to now.
    pub fn at_work(&self, now: Instant) -> Duration {
        let [_, at_work] = self.at_work.times(now);
        at_work
    }

    /// A message has come; the device hears of it when the firmware has looked at it.
    pub(in crate::machine) fn receive_message(
        &mut self,
        now: Instant,
        completion: Completion,
        message: Vec<u8>,
    ) {
        self.firmware.enqueue(now, self.times.command, Task::Heard(now, completion, message));
        self.note_work(now);
    }

    /// A status is to go out.
    pub(in crate::machine) fn send_status(&mut self, now: Instant, transfer: DeviceTransfer) {
        self.firmware.enqueue(now, self.times.status, Task::Status(now, transfer));
        self.note_work(now);
    }

    /// A transfer is taken back. Whether it was still here.
    pub(in crate::machine) fn withdraw(&mut self, now: Instant, id: TransferId) -> bool {
        let is_it = |task: &Task| match task {
            Task::Heard(_, completion, _) => completion.id == id,
            Task::Status(_, transfer) => transfer.id == id,
        };
        self.firmware.withdraw(now, is_it).is_some()
    }

    /// The device begins anew: messages and statuses that wait are of no use.
    pub(in crate::machine) fn forget(&mut self, now: Instant) {
        while self.firmware.withdraw(now, |_| true).is_some() {}
    }

    /// A command will move so many bytes in all. A drive that queues gets a write now, before its data have come.
    pub(in crate::machine) fn announce(
        &mut self,
        now: Instant,
        command: CommandId,
        bytes: u32,
        write: Option<(MediumOp, Extent)>,
    ) {
        self.store.announce(command, bytes);
        if let Some(write) = write {
            self.store.foretell(now, command, write);
            self.drain_store(now);
        }
    }

    /// Of what a command reads, bytes have left the bridge: all so far, and before. Whether anything came of that.
    pub(in crate::machine) fn give(
        &mut self,
        now: Instant,
        command: CommandId,
        (moved, before): (u32, u32),
    ) -> bool {
        let sectors = moved / SECTOR_BYTES - before / SECTOR_BYTES;
        sectors > 0 && self.store.give(now, command, sectors)
    }

    /// A command has failed: of what it was to move nothing more moves.
    pub(in crate::machine) fn abandon(&mut self, now: Instant, command: CommandId) {
        self.store.abandon(now, command);
        self.drain_store(now);
    }

    /// The same of all commands that are not live any more: the device waits for their requests, which wait for nobody then.
    pub(in crate::machine) fn abandon_dead(&mut self, now: Instant, device: &Device) {
        let aborted = device.aborted();
        if std::mem::replace(&mut self.aborted, aborted) == aborted {
            return;
        }
        let dead: Vec<_> = self.store.commands().filter(|command| !device.is_live(*command)).collect();
        dead.into_iter().for_each(|command| self.abandon(now, command));
    }

    /// A command is over.
    pub(in crate::machine) fn release(&mut self, now: Instant, command: CommandId) {
        self.store.release(now, command);
        self.drain_store(now);
    }

    /// The medium is asked for something.
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

    /// The same of a request that is not done before then. The drive goes on with others meanwhile.
    pub(in crate::machine) fn take_slow(&mut self, now: Instant, request: MediumRequest, until: Instant) {
        self.slow.push(Slow { until, request, is_done: false });
        self.take(now, request);
    }

    /// What is done by now.
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

    /// The drive has done a request: whether nobody is told of that yet.
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

    /// A slow request whose time has come.
    fn poll_slow(&mut self, now: Instant) -> Option<MediumRequest> {
        let at = self.slow.iter().position(|slow| slow.is_done && slow.until <= now)?;
        Some(self.slow.swap_remove(at).request)
    }

    /// When the next slow request is told of, if the drive has done one.
    fn slow_until(&self) -> Option<Instant> {
        self.slow.iter().filter(|slow| slow.is_done).map(|slow| slow.until).min()
    }

    fn note_work(&mut self, now: Instant) {
        let is_at_work = self.firmware.poll_timeout().is_some() || self.is_busy();
        if self.at_work.state() != usize::from(is_at_work) {
            self.at_work.switch(now, usize::from(is_at_work));
        }
    }

    /// When it goes on.
    pub(in crate::machine) fn poll_timeout(&self) -> Option<Instant> {
        let never = Instant::from_ps(u64::MAX);
        let lines = [self.firmware.poll_timeout(), self.memory.poll_timeout(), self.store.poll_timeout()];
        let [firmware, memory, store] = lines.map(|due| due.unwrap_or(never));
        let first = firmware.min(memory).min(store).min(self.slow_until().unwrap_or(never));
        (first < never).then_some(first)
    }

    /// It is that late. Whether there is something that it is done with by now.
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

    /// Whether the medium is at work.
    pub(in crate::machine) fn is_busy(&self) -> bool {
        !self.asked.is_empty() || self.store.is_busy()
    }

    /// Compares the books of its lines.
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
        // No more than twice as many as there are tags, unless something goes round in a circle.
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

    /// Hears of the SATA side. What was read goes through the memory of the bridge, if that takes time.
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
