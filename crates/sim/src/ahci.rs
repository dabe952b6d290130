//! A drive on a SATA port of the host, as the baseline for USB.
//!
//! The port driver accepts SCSI commands like a USB driver (Windows and Linux share one class
//! driver), translates them to ATA with up to 32 in flight, and the adapter moves payload by DMA.
//! One core runs the driver, one job at a time: a command, an interrupt for everything completed so
//! far, each completion.
//!
//! Left out: AHCI command lists and their memory accesses, about 1 us; errors.
//!
//! Invariants: a command completes once; written data goes to its own blocks.

use crate::bridge::{Store, StorePart};
use crate::check::{Invariant, Violation, ViolationSubject};
use crate::components::{Components, CoreLoad, QueueLoad, StoreLoad};
use crate::drive::AnyDrive;
use crate::engine::{Digest, Processor, Trace, TraceEntry};
use crate::fault::Faults;
use crate::link::superspeed::Link;
use crate::machine::xhci::HostCosts;
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

/// NCQ tags of a port.
pub const TAGS: u16 = 32;

/// A host with a drive on an AHCI port.
#[derive(Debug)]
pub struct AhciMachine {
    now: Instant,
    costs: HostCosts,
    core: Processor<(Instant, Work)>,
    /// When the core completes its queued work.
    through_at: Instant,
    store: Store<AnyDrive>,
    plain: FixedLatencyDrive,
    in_flight: BTreeMap<u16, InFlightCommand>,
    /// Completed by the drive, not yet seen by the driver.
    ended: VecDeque<u16>,
    finished: VecDeque<FinishedCommand>,
    observers: Observers,
    trace: Option<Box<dyn Trace>>,
    happened: u64,
    digest: Digest,
}

/// A disk without a version descriptor, as drivers report ATA drives (SPC-5 clause 6.7.2).
const INQUIRY: [u8; 36] = *b"\0\0\0\x02\x1f\0\0\0ATA     Drive on a cable1.0 ";

/// Fixed format, ILLEGAL REQUEST, INVALID COMMAND OPERATION CODE (SPC-5 clause 4.4.3).
const INVALID_OPERATION_CODE: [u8; 18] = [0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0];

/// A command in flight.
#[derive(Debug)]
struct InFlightCommand {
    id: CommandId,
    /// Outcome if the driver answers without the drive.
    answer: Outcome,
    /// Medium request, if any.
    request: Option<MediumRequest>,
    buffer: Vec<u8>,
    /// When it entered its current phase: driver, drive, driver.
    since: Instant,
}

/// A job of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Command(u16),
    Interrupt,
    Finish(u16),
}

impl AhciMachine {
    /// Creates a host with a drive on a cable. The adapter writes payload to memory as it arrives.
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

    /// Returns the cable and the drive.
    pub const fn store(&self) -> &Store<AnyDrive> {
        &self.store
    }

    /// Returns the busy time of core and drive up to now.
    pub fn at_work(&self) -> [Duration; 2] {
        [self.core.worked(self.now), self.store.at_work(self.now)]
    }

    /// Traces a driver action.
    fn note(&mut self, text: fmt::Arguments<'_>) {
        if let Some(trace) = &mut self.trace {
            trace.record(TraceEntry { at: self.now, component: "driver", text });
        }
    }

    /// Traces frames since the last event, before this event traces anything.
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

    /// Executes a job that the core has completed.
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

    /// Ends the current phase of a command, at the core if `began`, else at the drive, and notifies
    /// observers. Returns the medium request, if any.
    fn finish_phase(&mut self, slot: u16, began: Option<Instant>) -> Option<MediumRequest> {
        let entry = self.in_flight.get_mut(&slot)?;
        let (since, now, id) = (std::mem::replace(&mut entry.since, self.now), self.now, entry.id);
        self.observers.notify(|observer| match began {
            None => observer.drive_served(since, now, id),
            // An interrupt that had begun when a command completed covers it too.
            Some(began) => {
                let turn = CoreSlice { since, began: began.max(since), ended: now };
                observer.core_worked(turn, CoreClient::Command(id));
            }
        });
        entry.request
    }

    /// Handles a command completed by the drive.
    fn end(&mut self, slot: u16) {
        // A pending interrupt covers this command too.
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
            // Payload is in memory once it has arrived.
            self.store.give(self.now, request.id.command, u32::MAX);
            self.finish_phase(request.id.command.slot, None);
            self.end(request.id.command.slot);
        }
    }

    /// Returns the time of the next event.
    fn next_at(&self) -> Option<Instant> {
        [self.core.poll_timeout(), self.store.poll_timeout()].into_iter().flatten().min()
    }

    /// Executes the next event.
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

    /// Answers a command that concerns neither blocks nor the cache, into its buffer.
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

    /// Traces commands and SATA frames; there are no USB packets.
    fn audit(&mut self) -> Result<(), Violation> {
        if self.core.level().is_consistent(self.now) {
            return Ok(());
        }
        Err(Violation {
            invariant: Invariant::Little,
            at: self.now,
            subject: ViolationSubject::Queue("the core"),
        })
    }

    fn trace_to(&mut self, trace: Box<dyn Trace>) {
        self.trace = Some(trace);
        self.store.take_notes(true);
    }

    fn take_trace(&mut self) -> Option<Box<dyn Trace>> {
        self.store.take_notes(false);
        self.trace.take()
    }

    /// Reports commands and core use; there are no transfers or packets.
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

/// Returns the medium request of a command. `None` if it concerns neither blocks nor the cache: the
/// driver answers that itself.
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
