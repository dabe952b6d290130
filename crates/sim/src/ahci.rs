//! A drive at a port of the host itself: what USB is measured against.
//!
//! The host's port driver takes the commands that a driver for USB takes (Windows and Linux have one class driver for both),
//! makes ATA commands of them, up to 32 under way, and the host adapter moves payload to and from memory by itself. One
//! core does the driver's work, one thing at a time: a command, an interrupt with all that has ended by then, the end of each.
//!
//! Left out: the adapter's own command lists and memory accesses, which are a microsecond beside all of this; errors.
//!
//! Always true: a command ends once; what is written lies where it belongs.

use crate::bridge::{Store, StorePart};
use crate::check::{Invariant, Violation, ViolationSubject};
use crate::components::{Components, CoreLoad, QueueLoad, StoreLoad};
use crate::drive::AnyDrive;
use crate::engine::{Digest, Processor, Trace, TraceEntry};
use crate::fault::Faults;
use crate::link::superspeed::Link;
use crate::machine::driven::HostCosts;
use crate::machine::{
    CommandStart, CoreClient, CoreSlice, FinishedCommand, FixedLatencyDrive, Observer, Observers, Simulation,
    StopReason,
};
use device::command::DataLocation;
use device::medium::{MediumOp, MediumRequest, MediumRequestId};
use initiator::{Answer, Command, CommandId, Outcome, Refusal, SenseBytes};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use units::{ByteRange, Duration, Extent, Instant};
use wire::scsi::Status;
use wire::scsi::capacity::Capacity10;
use wire::scsi::cdb;

/// Commands that a port has tags for.
pub const TAGS: u16 = 32;

/// A host with a drive at a port of its own.
#[derive(Debug)]
pub struct AhciMachine {
    now: Instant,
    costs: HostCosts,
    core: Processor<(Instant, Work)>,
    /// When the core is through with all that it was given.
    through_at: Instant,
    store: Store<AnyDrive>,
    plain: FixedLatencyDrive,
    in_flight: BTreeMap<u16, InFlightCommand>,
    /// Ended at the drive, and the driver does not know.
    ended: VecDeque<u16>,
    finished: VecDeque<FinishedCommand>,
    observers: Observers,
    trace: Option<Box<dyn Trace>>,
    happened: u64,
    digest: Digest,
}

/// A disk that claims no version of SPC, as drivers say of drives that speak ATA (SPC-5 clause 6.7.2).
const INQUIRY: [u8; 36] = *b"\0\0\0\x02\x1f\0\0\0ATA     Drive on a cable1.0 ";

/// Fixed format, ILLEGAL REQUEST, INVALID COMMAND OPERATION CODE (SPC-5 clause 4.4.3).
const INVALID_OPERATION_CODE: [u8; 18] = [0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0];

/// A command under way.
#[derive(Debug)]
struct InFlightCommand {
    id: CommandId,
    /// What the driver answers by itself, if the drive is not asked.
    answer: Outcome,
    /// What the drive does, if anything.
    request: Option<MediumRequest>,
    buffer: Vec<u8>,
    /// Since when it is where it is: in the driver, at the drive, and in the driver again.
    since: Instant,
}

/// What the core does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Command(u16),
    Interrupt,
    Finish(u16),
}

impl AhciMachine {
    /// A drive on a cable. The host adapter puts payload into memory as it comes.
    pub fn new(costs: HostCosts, part: StorePart, drive: AnyDrive, plain: FixedLatencyDrive) -> Self {
        let part = StorePart { buffer_sectors: u32::MAX, ..part };
        Self {
            now: Instant::ZERO,
            costs,
            core: Processor::new(),
            through_at: Instant::ZERO,
            store: Store::new(part, drive, plain.block_size()),
            plain,
            in_flight: BTreeMap::new(),
            ended: VecDeque::new(),
            finished: VecDeque::new(),
            observers: Observers::default(),
            trace: None,
            happened: 0,
            digest: Digest::new(),
        }
    }

    /// The cable with the drive.
    pub const fn store(&self) -> &Store<AnyDrive> {
        &self.store
    }

    /// How long the core has been at work, and the drive, up to now.
    pub fn at_work(&self) -> [Duration; 2] {
        [self.core.worked(self.now), self.store.at_work(self.now)]
    }

    /// Notes what the driver does, if somebody takes notes.
    fn note(&mut self, text: fmt::Arguments<'_>) {
        if let Some(trace) = &mut self.trace {
            trace.record(TraceEntry { at: self.now, component: "driver", text });
        }
    }

    /// Notes what was sent on the cable since the last event, before anything of this one is.
    fn note_cable(&mut self) {
        let Some(trace) = &mut self.trace else { return };
        while let Some(note) = self.store.poll_note(self.now) {
            trace.record(TraceEntry { at: note.at, component: "sata", text: format_args!("{}", note.text) });
        }
    }

    fn enqueue(&mut self, work: Work) {
        let cost = match work {
            Work::Command(_) => self.costs.command,
            Work::Interrupt => self.costs.interrupt,
            Work::Finish(_) => self.costs.finish,
        };
        let sleeps = self.now > self.through_at + self.costs.idle_after;
        let cost = if sleeps { cost + self.costs.wake } else { cost };
        let began = self.through_at.max(self.now);
        self.through_at = began + cost;
        self.core.enqueue(self.now, cost, (began, work));
    }

    /// What comes of something that the core has done since a time.
    fn perform(&mut self, began: Instant, work: Work) {
        match work {
            Work::Command(slot) => match self.finish_phase(slot, Some(began)) {
                Some(request) => {
                    self.store.announce(request.id.command, request.range.len);
                    self.store.take(self.now, request);
                    self.drain_store();
                }
                None => self.end(slot),
            },
            Work::Interrupt => {
                for slot in std::mem::take(&mut self.ended) {
                    self.finish_phase(slot, Some(began));
                    self.enqueue(Work::Finish(slot));
                }
            }
            Work::Finish(slot) => self.finish(slot, began),
        }
    }

    /// The core is through with a command, with which it began at a time, or else the drive is; those who look on are told. What is
    /// asked of the drive, if anything.
    fn finish_phase(&mut self, slot: u16, began: Option<Instant>) -> Option<MediumRequest> {
        let entry = self.in_flight.get_mut(&slot)?;
        let (since, now, id) = (std::mem::replace(&mut entry.since, self.now), self.now, entry.id);
        self.observers.notify(|observer| match began {
            None => observer.drive_served(since, now, id),
            // An interrupt that the core had begun with when a command ended tells of that as well.
            Some(began) => {
                let turn = CoreSlice { since, began: began.max(since), ended: now };
                observer.core_worked(turn, CoreClient::Command(id));
            }
        });
        entry.request
    }

    /// A command has ended at the drive.
    fn end(&mut self, slot: u16) {
        // An interrupt that is not taken yet tells of this one as well.
        if self.ended.is_empty() {
            self.enqueue(Work::Interrupt);
        }
        self.ended.push_back(slot);
    }

    fn finish(&mut self, slot: u16, began: Instant) {
        self.finish_phase(slot, Some(began));
        let Some(InFlightCommand { id, answer, request, mut buffer, .. }) = self.in_flight.remove(&slot)
        else {
            return;
        };
        let mut outcome = answer;
        if let Some(request) = request {
            let done = self.plain.perform(&request, &mut buffer, &mut Faults::never());
            let status = if done.result.is_ok() { Status::Good } else { Status::CheckCondition };
            outcome = Outcome::answered(status, request.range.len);
            self.store.release(self.now, request.id.command);
        }
        let now = self.now;
        self.note(format_args!("{id} ends"));
        self.observers.notify(|observer| observer.ended(now, id, &outcome));
        self.finished.push_back(FinishedCommand { drive: 0, id, outcome, buffer });
        self.drain_store();
    }

    fn drain_store(&mut self) {
        while self.store.poll_access().is_some() {}
        while let Some(request) = self.store.poll_done() {
            // Payload is in memory when it has come.
            self.store.give(self.now, request.id.command, u32::MAX);
            self.finish_phase(request.id.command.slot, None);
            self.end(request.id.command.slot);
        }
    }

    /// When the next thing happens.
    fn next_at(&self) -> Option<Instant> {
        [self.core.poll_timeout(), self.store.poll_timeout()].into_iter().flatten().min()
    }

    /// Lets the next thing happen.
    fn step(&mut self) {
        let Some(at) = self.next_at() else { return };
        self.now = self.now.max(at);
        self.happened += 1;
        self.digest.mix(at.as_ps());
        self.note_cable();
        if self.store.poll_timeout().is_some_and(|at| at <= self.now) {
            self.store.handle_timeout(self.now);
            self.drain_store();
        }
        while let Some((began, work)) = self.core.poll_done(self.now) {
            self.perform(began, work);
        }
    }

    /// What the driver answers by itself, into the buffer of a command that is about neither blocks nor the cache.
    fn answer(&self, command: &Command, buffer: &mut [u8]) -> Outcome {
        let last_lba = u32::try_from(self.plain.capacity().0.saturating_sub(1)).unwrap_or(u32::MAX);
        let capacity = Capacity10 { last_lba, block_length: self.plain.block_size().bytes() }.encode();
        let answer: &[u8] = match cdb::Command::decode(command.cdb.as_bytes()) {
            Ok(cdb::Command::TestUnitReady(_) | cdb::Command::SynchronizeCache(_)) => &[],
            Ok(cdb::Command::Inquiry(inquiry)) if !inquiry.evpd => &INQUIRY,
            Ok(cdb::Command::ReadCapacity10(_)) => &capacity,
            _ => {
                let sense = SenseBytes::new(&INVALID_OPERATION_CODE);
                let status = Status::CheckCondition;
                return Outcome::Answered(Answer { status, status_qualifier: 0, moved: 0, sense });
            }
        };
        let moved = answer.len().min(buffer.len());
        buffer[..moved].copy_from_slice(&answer[..moved]);
        Outcome::answered(Status::Good, moved as u32)
    }
}

impl Simulation for AhciMachine {
    fn now(&self) -> Instant {
        self.now
    }

    fn happened(&self) -> u64 {
        self.happened
    }

    fn digest(&self) -> u64 {
        self.digest.value()
    }

    fn drives(&self) -> usize {
        1
    }

    fn link(&self, _: usize) -> Option<&Link> {
        None
    }

    fn components(&self) -> Components {
        let (busy, queue) = (self.core.worked(self.now), QueueLoad::of(self.core.level(), self.now));
        let core = Some(CoreLoad { busy, queue });
        let stores =
            vec![StoreLoad { cable: self.store.cable().books(), drive: self.store.at_work(self.now) }];
        Components { span: self.now - Instant::ZERO, core, stores, ..Components::default() }
    }

    fn depth(&self, _: usize) -> usize {
        usize::from(TAGS)
    }

    fn misplaced_blocks(&self, _: usize) -> u64 {
        self.plain.misplaced_blocks()
    }

    /// Commands and frames on the cable are noted: there are no packets of USB.
    fn audit(&mut self) -> Result<(), Violation> {
        if self.core.level().is_consistent(self.now) {
            return Ok(());
        }
        Err(Violation { law: Invariant::Little, at: self.now, about: ViolationSubject::Queue("the core") })
    }

    fn trace_to(&mut self, trace: Box<dyn Trace>) {
        self.trace = Some(trace);
        self.store.take_notes(true);
    }

    fn take_trace(&mut self) -> Option<Box<dyn Trace>> {
        self.store.take_notes(false);
        self.trace.take()
    }

    /// Commands are told, and whose turn it is with them: there are no transfers and packets.
    fn observe(&mut self, _: usize, observer: Box<dyn Observer>) {
        self.observers.add(observer);
    }

    fn queued_since(&mut self, _: usize, since: Instant, command: CommandId) {
        self.observers.notify(|observer| observer.queued_since(since, command));
    }

    fn submit(&mut self, drive: usize, command: &Command, buffer: Vec<u8>) -> Result<(), Refusal> {
        let slot = command.id.slot;
        if drive != 0 {
            return Err(Refusal::Gone);
        }
        if self.in_flight.contains_key(&slot) || self.in_flight.len() >= usize::from(TAGS) {
            return Err(Refusal::Full);
        }
        let mut buffer = buffer;
        let request = request(command);
        let answer = match request {
            Some(_) => Outcome::answered(Status::Good, 0),
            None => self.answer(command, &mut buffer),
        };
        let entry = InFlightCommand { id: command.id, answer, request, buffer, since: self.now };
        self.in_flight.insert(slot, entry);
        let now = self.now;
        self.note(format_args!("{}", CommandStart(command)));
        self.observers.notify(|observer| observer.began(now, command));
        self.enqueue(Work::Command(slot));
        Ok(())
    }

    fn run_until(&mut self, until: Option<Instant>) -> Result<Option<FinishedCommand>, StopReason> {
        loop {
            if let Some(finished) = self.finished.pop_front() {
                return Ok(Some(finished));
            }
            match (self.next_at(), until) {
                (Some(at), Some(until)) if at > until => {
                    self.now = self.now.max(until);
                    return Ok(None);
                }
                (None, _) => return Ok(None),
                _ => self.step(),
            }
        }
    }
}

/// What a command asks of the drive. Nothing if it is about neither blocks nor the cache: the driver answers that itself.
fn request(command: &Command) -> Option<MediumRequest> {
    let (op, extent) = match cdb::Command::decode(command.cdb.as_bytes()).ok()? {
        cdb::Command::Read(read) => (MediumOp::Read, Extent::new(read.lba, read.blocks.into())),
        cdb::Command::Write(write) => {
            (MediumOp::Write { fua: write.fua }, Extent::new(write.lba, write.blocks.into()))
        }
        cdb::Command::SynchronizeCache(_) => (MediumOp::Flush, Extent::new(0, 0)),
        _ => return None,
    };
    let name = device::command::CommandId { slot: command.id.slot, generation: 0 };
    Some(MediumRequest {
        id: MediumRequestId { command: name, part: 0 },
        unit: 0,
        op,
        extent,
        location: DataLocation::Buffer,
        range: ByteRange::new(0, command.transfer_len()),
    })
}
