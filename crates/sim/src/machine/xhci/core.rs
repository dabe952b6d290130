//! The host's CPU core that runs the driver: one job at a time, in FIFO order.
//!
//! [`HostCosts`] has the cost of each job. A command is built and its transfers queue behind it;
//! each transfer is put on a ring; an interrupt covers all events present by then, each of which
//! costs a completion; a command completion goes up to the caller. So the three transfers that BOT
//! waits for are three round trips, and a busy core takes many events per interrupt. A pack of
//! several command buffers is copied into one buffer before its data-out transfer, and out of it on
//! completion. An idle core goes to sleep and takes time to wake up.
//!
//! Left out: more than one core, preemption by interrupts, and the cost of bus requests (resets,
//! streams), which are rare.
//!
//! Invariants: jobs run in order; each queued job is executed, cancelled or refused once; a core
//! without costs behaves as if there were none.

use super::XhciMachine;
use crate::check::{Invariant, ViolationSubject};
use crate::engine::{CapacityExceeded, LINE_MAX, OccupancyStats, Processor};
use crate::link::superspeed::Side;
use crate::machine::StopReason;
use crate::machine::observer::{CoreClient, CoreSlice};
use bus::{Completion, TransferId, TransferStatus};
use initiator::session::TransferRequest;
use initiator::{CommandId, Outcome};
use units::{Duration, Instant};
use wire::usb::Direction;

/// The job queue of the core.
const LINE: CapacityExceeded = CapacityExceeded { queue: "core job queue", capacity: LINE_MAX };

/// CPU costs of the host's driver, all on one core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCosts {
    /// A command: from the caller through the class driver and transport to its first transfer.
    pub command: Duration,
    /// A transfer: its TRBs and the doorbell.
    pub transfer: Duration,
    /// A transfer completion, up to the transport's next step.
    pub completion: Duration,
    /// A command completion: transport, class driver, I/O manager, up to the caller.
    pub finish: Duration,
    /// An interrupt: service routine and deferred call, up to the first event.
    pub interrupt: Duration,
    /// Extra cost of the first job after the core was idle for longer than `idle_after`.
    pub wake: Duration,
    /// Idle time after which the core sleeps.
    pub idle_after: Duration,
    /// Extra cost of a transfer of a pack: its buffer and layout.
    pub pack: Duration,
    /// Copying between a pack and the command buffers, in picoseconds per byte.
    pub copied_byte_ps: u64,
}

impl HostCosts {
    /// No costs.
    pub const FREE: Self = Self {
        command: Duration::ZERO,
        transfer: Duration::ZERO,
        completion: Duration::ZERO,
        finish: Duration::ZERO,
        interrupt: Duration::ZERO,
        wake: Duration::ZERO,
        idle_after: Duration::ZERO,
        pack: Duration::ZERO,
        copied_byte_ps: 0,
    };

    /// Returns whether no job takes time.
    pub fn is_free(&self) -> bool {
        Self { idle_after: Duration::ZERO, ..*self } == Self::FREE
    }

    fn of(&self, work: &Work) -> Duration {
        match work {
            Work::Interrupt => self.interrupt,
            Work::Command(_) => self.command,
            Work::MergedTransfer(request) => self.transfer + self.pack + self.copying(copied_first(request)),
            Work::Transfer(_) | Work::Cancelled(_) => self.transfer,
            Work::Completion(_, copied) => self.completion + self.copying(*copied),
            Work::Finish(..) => self.finish,
        }
    }

    fn copying(&self, bytes: u32) -> Duration {
        Duration::from_ps(u64::from(bytes) * self.copied_byte_ps)
    }
}

/// Returns the bytes to copy before the transfer of a pack can be sent.
const fn copied_first(request: &TransferRequest) -> u32 {
    match request.pipe.endpoint.direction() {
        Direction::Out => request.span.range.len,
        Direction::In => 0,
    }
}

/// Jobs of a core so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostWork {
    /// Commands.
    pub commands: u64,
    /// Transfers.
    pub transfers: u64,
    /// Completions.
    pub completions: u64,
    /// Command completions.
    pub finishes: u64,
    /// Interrupts.
    pub interrupts: u64,
    /// Wake-ups.
    pub wakes: u64,
}

/// A CPU core and its job queue.
#[derive(Debug)]
pub struct Core {
    costs: HostCosts,
    is_free: bool,
    line: Processor<Task>,
    /// When it completes its queued jobs.
    through_at: Instant,
    /// The last interrupt.
    interrupted: CoreSlice,
    work: HostWork,
}

/// A job and its times.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) slices: CoreSlices,
    /// Number of its drive.
    pub(super) drive: usize,
    pub(super) work: Work,
}

/// The times of a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct CoreSlices {
    /// Of the interrupt that has brought it, if any.
    pub(super) interrupt: Option<CoreSlice>,
    /// Its own.
    pub(super) turn: CoreSlice,
}

impl CoreSlices {
    /// Returns those of a job that takes no time.
    pub(super) const fn at_once(now: Instant) -> Self {
        Self { interrupt: None, turn: CoreSlice::at_once(now) }
    }
}

/// Work of a job.
#[derive(Debug)]
pub(super) enum Work {
    /// The controller has raised an interrupt.
    Interrupt,
    /// A command was submitted; its transfers follow.
    Command(CommandId),
    /// A transfer of the transport for the driver.
    Transfer(TransferRequest),
    /// One that merges the data of several commands.
    MergedTransfer(TransferRequest),
    /// A transfer that the transport has cancelled before the driver got it.
    Cancelled(TransferId),
    /// A completion of the driver, and the bytes to copy.
    Completion(Completion, u32),
    /// A command completion.
    Finish(CommandId, Outcome),
}

impl Core {
    pub(super) fn new(costs: HostCosts) -> Self {
        let (is_free, line) = (costs.is_free(), Processor::new());
        Self {
            costs,
            is_free,
            line,
            through_at: Instant::ZERO,
            interrupted: CoreSlice::at_once(Instant::ZERO),
            work: HostWork::default(),
        }
    }

    /// Returns the costs.
    pub const fn costs(&self) -> &HostCosts {
        &self.costs
    }

    /// Returns the jobs so far; nothing is counted without costs.
    pub const fn work(&self) -> HostWork {
        self.work
    }

    /// Returns the statistics of the job queue.
    pub const fn level(&self) -> &OccupancyStats {
        self.line.level()
    }

    /// Returns the busy time up to now.
    pub fn busy(&self, now: Instant) -> Duration {
        self.line.worked(now)
    }

    /// Returns whether no job takes time; nothing is queued then.
    pub(super) const fn is_free(&self) -> bool {
        self.is_free
    }

    /// Queues a job. A pending interrupt covers later ones.
    ///
    /// # Errors
    /// If the queue is full.
    pub(super) fn enqueue(&mut self, now: Instant, drive: usize, work: Work) -> Result<(), CapacityExceeded> {
        let is_covered = matches!(work, Work::Interrupt)
            && self.line.jobs().any(|task| matches!(task.work, Work::Interrupt));
        if is_covered {
            return Ok(());
        }
        if self.line.is_full() {
            return Err(LINE);
        }
        self.count(&work);
        let sleeps = self.costs.wake > Duration::ZERO && now > self.through_at + self.costs.idle_after;
        let wake = if sleeps { self.costs.wake } else { Duration::ZERO };
        self.work.wakes += u64::from(sleeps);
        let cost = wake + self.costs.of(&work);
        let began = self.through_at.max(now);
        self.through_at = began + cost;
        let turn = CoreSlice { since: now, began, ended: self.through_at };
        // A completion has waited for the core since its interrupt was raised.
        let is_brought = self.interrupted.ended == now && matches!(work, Work::Completion(..));
        let interrupt = is_brought.then_some(self.interrupted);
        self.line.enqueue(now, cost, Task { slices: CoreSlices { interrupt, turn }, drive, work });
        Ok(())
    }

    /// Returns the next job that is done by now.
    pub(super) fn poll_done(&mut self, now: Instant) -> Option<Task> {
        let task = self.line.poll_done(now)?;
        if matches!(task.work, Work::Interrupt) {
            self.interrupted = task.slices.turn;
        }
        Some(task)
    }

    /// Returns when the next job is done.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.line.poll_timeout()
    }

    /// Cancels a queued transfer. Returns false if the driver already has it.
    pub(super) fn cancel(&mut self, drive: usize, id: TransferId) -> bool {
        let is_it = |task: &&mut Task| {
            let (Work::Transfer(request) | Work::MergedTransfer(request)) = &task.work else { return false };
            task.drive == drive && request.id == id
        };
        let found = self.line.jobs_mut().find(is_it);
        found.map(|task| task.work = Work::Cancelled(id)).is_some()
    }

    /// Returns whether a job is queued for a drive.
    pub(super) fn works_for(&self, drive: usize) -> bool {
        self.line.jobs().any(|task| task.drive == drive && !matches!(task.work, Work::Interrupt))
    }

    const fn count(&mut self, work: &Work) {
        let count = match work {
            Work::Interrupt => &mut self.work.interrupts,
            Work::Command(_) => &mut self.work.commands,
            Work::Transfer(_) | Work::MergedTransfer(_) | Work::Cancelled(_) => &mut self.work.transfers,
            Work::Completion(..) => &mut self.work.completions,
            Work::Finish(..) => &mut self.work.finishes,
        };
        *count += 1;
    }
}

impl XhciMachine {
    /// Runs a job on the core. Without costs it is executed at once: inlined, so that the kind of
    /// work is known at the call.
    #[inline(always)]
    pub(super) fn run_on_core(&mut self, now: Instant, drive: usize, work: Work) {
        if self.core.is_free() {
            self.end_task(now, Task { slices: CoreSlices::at_once(now), drive, work });
        } else {
            self.enqueue_task(now, drive, work);
        }
    }

    /// Queues a job. A full queue stops the machine.
    pub(super) fn enqueue_task(&mut self, now: Instant, drive: usize, work: Work) {
        if let Err(full) = self.core.enqueue(now, drive, work) {
            self.stopped = Some(StopReason::CapacityExceeded(full));
        }
    }

    /// Executes a job that is done.
    #[inline(always)]
    pub(super) fn end_task(&mut self, now: Instant, task: Task) {
        let Task { slices, drive, work } = task;
        let turn = slices.turn;
        match work {
            Work::Interrupt => self.take_interrupt(now),
            Work::Command(id) => self.drives[drive].host_transport.core_worked(turn, CoreClient::Command(id)),
            Work::Transfer(request) | Work::MergedTransfer(request) => {
                let call = self.system.call(now, self.devices[drive].device);
                let host_transport = &mut self.drives[drive].host_transport;
                host_transport.offer(call, request);
                host_transport.core_worked(turn, CoreClient::Transfer(request.id));
            }
            Work::Cancelled(id) => {
                let cancelled = Completion { id, status: TransferStatus::Cancelled, actual: 0 };
                let call = self.system.call(now, self.devices[drive].device);
                self.drives[drive].host_transport.complete_unsent(call, cancelled);
            }
            Work::Completion(completion, _) => self.take_completion(slices, drive, completion),
            Work::Finish(id, outcome) => {
                self.drives[drive].host_transport.core_worked(turn, CoreClient::Command(id));
                self.finish_command(now, drive, id, outcome);
                if self.engine.is_traced() {
                    self.engine.note("driver", format_args!("{}{id} ends", self.tag(drive)));
                }
            }
        }
    }

    fn take_interrupt(&mut self, now: Instant) {
        self.tamper();
        self.system.drive(now, |driver, access| driver.handle_interrupt(access, now));
    }

    #[inline(always)]
    fn take_completion(&mut self, slices: CoreSlices, drive: usize, completion: Completion) {
        let attached = &mut self.drives[drive];
        if !attached.host_transport.complete(&mut self.system, slices, completion) {
            let (now, subject) = (slices.turn.ended, ViolationSubject::Transfer(Side::Host, completion.id));
            attached.injector.ledger.report_violation(Invariant::TransferOnce, now, subject);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bus::{EndpointAddress, Pipe};
    use initiator::session::{BufferId, BufferSpan};
    use units::ByteRange;

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_us(us)
    }

    const COMMAND: CommandId = CommandId { slot: 1, generation: 0 };
    const COSTS: HostCosts = HostCosts {
        command: Duration::from_us(5),
        interrupt: Duration::from_us(3),
        wake: Duration::from_us(20),
        idle_after: Duration::from_us(10),
        ..HostCosts::FREE
    };

    #[test]
    fn a_sleeping_core_wakes_up_once() {
        let mut core = Core::new(COSTS);
        // It was idle for 20 us after its last job, and 35; up to 10 us it stays awake.
        for (now, through_at) in [(10, 15), (15, 20), (40, 65), (75, 80), (115, 140)] {
            core.enqueue(at(now), 0, Work::Command(COMMAND)).unwrap();
            assert_eq!(core.poll_timeout(), Some(at(through_at)), "{now}");
            assert!(core.poll_done(at(through_at)).is_some());
        }
        assert_eq!((core.work().commands, core.work().wakes), (5, 2));
        assert_eq!(core.busy(at(1000)), Duration::from_us(5 + 5 + 25 + 5 + 25));
    }

    #[test]
    fn a_pending_interrupt_covers_the_next() {
        let mut core = Core::new(COSTS);
        core.enqueue(at(1), 0, Work::Command(COMMAND)).unwrap();
        core.enqueue(at(2), 0, Work::Interrupt).unwrap();
        core.enqueue(at(3), 0, Work::Interrupt).unwrap();
        assert_eq!((core.work().interrupts, core.level().count()), (1, 2));
        assert!(core.works_for(0) && !core.works_for(1));
    }

    #[test]
    fn a_core_with_65_536_queued_jobs_is_full() {
        let mut core = Core::new(COSTS);
        for _ in 0..65_536 {
            core.enqueue(at(1), 0, Work::Command(COMMAND)).unwrap();
        }
        let full = core.enqueue(at(1), 0, Work::Command(COMMAND)).unwrap_err();
        assert_eq!(full.to_string(), "core job queue is full at 65536 entries: simulation model bug");
        assert_eq!(core.level().count(), 65_536);
        let stopped = StopReason::CapacityExceeded(full).breaks();
        assert_eq!(stopped, Some((Invariant::Progress, ViolationSubject::Queue("core job queue"))));
        // There is room when something is done.
        core.poll_done(at(26)).unwrap();
        assert_eq!(core.enqueue(at(26), 0, Work::Command(COMMAND)), Ok(()));
    }

    #[test]
    fn busy_time_excludes_queued_work() {
        let mut core = Core::new(COSTS);
        core.enqueue(at(1), 0, Work::Command(COMMAND)).unwrap();
        core.enqueue(at(1), 0, Work::Command(COMMAND)).unwrap();
        assert_eq!(core.busy(at(4)), Duration::from_us(3));
        assert_eq!(core.busy(at(11)), Duration::from_us(10));
    }

    #[test]
    fn packs_cost_time_and_copy_data_out_first() {
        let costs = HostCosts { pack: Duration::from_us(50), copied_byte_ps: 250, ..COSTS };
        let transfer = |endpoint: u8| {
            let pipe = Pipe::plain(EndpointAddress::try_from(endpoint).unwrap());
            let span = BufferSpan { buffer: BufferId::default(), range: ByteRange::new(0, 400_000) };
            TransferRequest { id: TransferId(1), pipe, span, is_whole: true }
        };
        assert_eq!(costs.of(&Work::MergedTransfer(transfer(0x02))), Duration::from_us(50 + 100));
        assert_eq!(costs.of(&Work::MergedTransfer(transfer(0x81))), Duration::from_us(50));
        assert_eq!(costs.of(&Work::Transfer(transfer(0x02))), Duration::ZERO);
        let came = Completion { id: TransferId(1), status: TransferStatus::Done, actual: 400_000 };
        assert_eq!(costs.of(&Work::Completion(came, 400_000)), Duration::from_us(100));
    }

    #[test]
    fn the_idle_timeout_alone_costs_nothing() {
        assert!(HostCosts { idle_after: Duration::from_us(1), ..HostCosts::FREE }.is_free());
        assert!(!COSTS.is_free());
    }
}
