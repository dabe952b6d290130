//! The core of the host that runs the driver: one thing at a time, in the order in which things came up.
//!
//! What each takes is in [`HostCosts`]. A command is built, and its transfers wait behind that; each transfer is put into the
//! rings; an interrupt is taken, and with it all events that are there by then, each of which costs its completion; and the
//! end of a command goes up to who gave it. So three transfers that BOT waits for are three round trips, and a busy core
//! takes many events with one interrupt. A pack of several commands' memory is one piece of memory for the controller, so
//! what goes out is copied before its transfer, and what came in with its completion. A core that has had nothing to do for
//! a while sleeps, and has to wake up first.
//!
//! Left out: more cores than one, interrupts that break into what is done, and what the driver takes for requests to the bus
//! (resets, streams), which are rare.
//!
//! Always true: nothing is done out of turn; what is in line is done, taken back or refused once; a core whose work takes no
//! time is none, and the world is as if there were none to have.

use super::XhciMachine;
use crate::check::{Invariant, ViolationSubject};
use crate::engine::{CapacityExceeded, LINE_MAX, OccupancyStats, Processor};
use crate::link::superspeed::Side;
use crate::machine::StopReason;
use crate::machine::observer::{CoreClient, CoreSlice};
use bus::{Completion, TransferId, TransferStatus};
use initiator::{CommandId, Outcome, Payload, Transfer, Transport};
use units::{Duration, Instant};
use wire::usb::Direction;

/// What the core has to do, as a line.
const LINE: CapacityExceeded = CapacityExceeded { queue: "the line of the core", capacity: LINE_MAX };

/// What the driver of a host takes, by what it does. All of it is time of one core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCosts {
    /// A command: from who wants it through the class driver to the transport, up to the first of its transfers.
    pub command: Duration,
    /// A transfer: its TRBs, and the doorbell.
    pub transfer: Duration,
    /// The completion of a transfer, up to the transport's next step.
    pub completion: Duration,
    /// The end of a command: transport, class driver, I/O manager, up to who wanted it.
    pub finish: Duration,
    /// An interrupt: its service routine, and what is deferred by it, up to the first event.
    pub interrupt: Duration,
    /// What the first of these takes longer after the core had nothing to do for longer than `idle_after`.
    pub wake: Duration,
    /// How long a core without work stays awake.
    pub idle_after: Duration,
    /// What a transfer takes longer that is of a pack: its memory, and what is in it.
    pub pack: Duration,
    /// A byte that is copied between a pack and the memory of its commands, in picoseconds.
    pub copied_byte_ps: u64,
}

impl HostCosts {
    /// Nothing takes any time.
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

    /// Whether nothing takes any time.
    pub fn is_free(&self) -> bool {
        Self { idle_after: Duration::ZERO, ..*self } == Self::FREE
    }

    fn of(&self, work: &Work) -> Duration {
        match work {
            Work::Interrupt => self.interrupt,
            Work::Command(_) => self.command,
            Work::Transfer(transfer) => match transfer.payload {
                Payload::Pieces(_) => self.transfer + self.pack + self.copying(copied_first(transfer)),
                _ => self.transfer,
            },
            Work::Cancelled(_) => self.transfer,
            Work::Completion(_, copied) => self.completion + self.copying(*copied),
            Work::Finish(..) => self.finish,
        }
    }

    fn copying(&self, bytes: u32) -> Duration {
        Duration::from_ps(u64::from(bytes) * self.copied_byte_ps)
    }
}

/// Bytes that are copied before the transfer of a pack can go out.
const fn copied_first(transfer: &Transfer) -> u32 {
    match transfer.pipe.endpoint.direction() {
        Direction::Out => transfer.length,
        Direction::In => 0,
    }
}

/// What a core was given to do so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostWork {
    /// Commands.
    pub commands: u64,
    /// Transfers.
    pub transfers: u64,
    /// Completions.
    pub completions: u64,
    /// Ends of commands.
    pub finishes: u64,
    /// Interrupts.
    pub interrupts: u64,
    /// Times that it had to wake up.
    pub wakes: u64,
}

/// A core with what it has to do.
#[derive(Debug)]
pub struct Core {
    costs: HostCosts,
    is_free: bool,
    line: Processor<Task>,
    /// When it is through with all that it was given.
    through_at: Instant,
    /// The turn of the last interrupt.
    interrupted: CoreSlice,
    work: HostWork,
}

/// Something to do, and when.
#[derive(Debug)]
pub(super) struct Task {
    /// That of the interrupt that has brought it, if one has.
    pub(super) interrupt: Option<CoreSlice>,
    pub(super) turn: CoreSlice,
    /// The drive that it is for.
    pub(super) drive: usize,
    pub(super) work: Work,
}

/// What there is to do.
#[derive(Debug)]
pub(super) enum Work {
    /// The controller has raised an interrupt.
    Interrupt,
    /// A command was given, and its transfers come behind this.
    Command(CommandId),
    /// The transport has a transfer for the driver.
    Transfer(Transfer),
    /// It had, and has taken it back before the driver saw it.
    Cancelled(TransferId),
    /// The driver has completed one, of which so many bytes are copied to where they belong.
    Completion(Completion, u32),
    /// A command has ended.
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

    /// What its work takes.
    pub const fn costs(&self) -> &HostCosts {
        &self.costs
    }

    /// What it was given so far; nothing is counted where nothing takes time.
    pub const fn work(&self) -> HostWork {
        self.work
    }

    /// How many things are in its line.
    pub const fn level(&self) -> &OccupancyStats {
        self.line.level()
    }

    /// How long it has worked up to now.
    pub fn busy(&self, now: Instant) -> Duration {
        self.line.worked(now)
    }

    /// Whether nothing takes time, and nothing is ever given to it.
    pub(super) const fn is_free(&self) -> bool {
        self.is_free
    }

    /// Gives it something to do. An interrupt that it has not taken yet stands for all that come meanwhile.
    ///
    /// # Errors
    /// If it has too much to do already.
    pub(super) fn enqueue(&mut self, now: Instant, drive: usize, work: Work) -> Result<(), CapacityExceeded> {
        let is_told = matches!(work, Work::Interrupt)
            && self.line.jobs().any(|task| matches!(task.work, Work::Interrupt));
        if is_told {
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
        // What an interrupt has brought has been waiting for the core since that came.
        let is_brought = self.interrupted.ended == now && matches!(work, Work::Completion(..));
        let interrupt = is_brought.then_some(self.interrupted);
        self.line.enqueue(now, cost, Task { interrupt, turn, drive, work });
        Ok(())
    }

    /// What it is through with by now.
    pub(super) fn poll_done(&mut self, now: Instant) -> Option<Task> {
        let task = self.line.poll_done(now)?;
        if matches!(task.work, Work::Interrupt) {
            self.interrupted = task.turn;
        }
        Some(task)
    }

    /// When it is through with the next.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.line.poll_timeout()
    }

    /// The transport takes a transfer back. Whether it is in line; if not, the driver has it.
    pub(super) fn cancel(&mut self, drive: usize, id: TransferId) -> bool {
        let is_it = |task: &&mut Task| {
            task.drive == drive && matches!(&task.work, Work::Transfer(transfer) if transfer.id == id)
        };
        let found = self.line.jobs_mut().find(is_it);
        found.map(|task| task.work = Work::Cancelled(id)).is_some()
    }

    /// Whether something is in line for a drive.
    pub(super) fn works_for(&self, drive: usize) -> bool {
        self.line.jobs().any(|task| task.drive == drive && !matches!(task.work, Work::Interrupt))
    }

    const fn count(&mut self, work: &Work) {
        let count = match work {
            Work::Interrupt => &mut self.work.interrupts,
            Work::Command(_) => &mut self.work.commands,
            Work::Transfer(_) | Work::Cancelled(_) => &mut self.work.transfers,
            Work::Completion(..) => &mut self.work.completions,
            Work::Finish(..) => &mut self.work.finishes,
        };
        *count += 1;
    }
}

impl XhciMachine {
    /// The core has something to do. Where nothing takes time, it is done: what it is is known where this is called, so that
    /// nothing is handed over there.
    #[inline(always)]
    pub(super) fn run_on_core(&mut self, now: Instant, drive: usize, work: Work) {
        if self.core.is_free() {
            self.end_task(now, Task { interrupt: None, turn: CoreSlice::at_once(now), drive, work });
        } else {
            self.enqueue_task(now, drive, work);
        }
    }

    /// The core takes its time, and has this in line. A world whose core has too much to do stops.
    pub(super) fn enqueue_task(&mut self, now: Instant, drive: usize, work: Work) {
        if let Err(full) = self.core.enqueue(now, drive, work) {
            self.stopped = Some(StopReason::CapacityExceeded(full));
        }
    }

    /// The core is through with something: what comes of it.
    #[inline(always)]
    pub(super) fn end_task(&mut self, now: Instant, task: Task) {
        let Task { interrupt, turn, drive, work } = task;
        match work {
            Work::Interrupt => self.take_interrupt(now),
            Work::Command(id) => self.drives[drive].host_endpoint.core_worked(turn, CoreClient::Command(id)),
            Work::Transfer(transfer) => self.offer_to_driver(now, turn, drive, transfer),
            Work::Cancelled(id) => {
                let cancelled = Completion { id, status: TransferStatus::Cancelled, actual: 0 };
                self.drives[drive].host_endpoint.transport.handle_completion(now, cancelled, &[]);
                self.system.mark_dirty(drive);
            }
            Work::Completion(completion, _) => {
                self.take_completion(now, (interrupt, turn), drive, completion)
            }
            Work::Finish(id, outcome) => self.take_end(now, turn, drive, (id, outcome)),
        }
    }

    fn take_interrupt(&mut self, now: Instant) {
        self.tamper();
        self.system.drive(now, |driver, access| driver.handle_interrupt(access, now));
    }

    #[inline(always)]
    fn offer_to_driver(&mut self, now: Instant, turn: CoreSlice, drive: usize, transfer: Transfer) {
        let (id, device) = (transfer.id, self.devices[drive].device);
        let host_endpoint = &mut self.drives[drive].host_endpoint;
        host_endpoint.offer(&mut self.system, now, device, transfer);
        host_endpoint.core_worked(turn, CoreClient::Transfer(id));
    }

    #[inline(always)]
    fn take_completion(
        &mut self,
        now: Instant,
        known: (Option<CoreSlice>, CoreSlice),
        drive: usize,
        completion: Completion,
    ) {
        let attached = &mut self.drives[drive];
        if !attached.host_endpoint.complete(&mut self.system, known, completion) {
            let about = ViolationSubject::Transfer(Side::Host, completion.id);
            attached.injector.ledger.report_violation(Invariant::TransferOnce, now, about);
        }
    }

    #[inline(always)]
    fn take_end(&mut self, now: Instant, turn: CoreSlice, drive: usize, (id, outcome): (CommandId, Outcome)) {
        self.drives[drive].host_endpoint.core_worked(turn, CoreClient::Command(id));
        self.finish_command(now, drive, id, outcome);
        if self.engine.is_traced() {
            self.engine.note("driver", format_args!("{}{id} ends", self.tag(drive)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_core_that_slept_wakes_up_once() {
        let mut core = Core::new(COSTS);
        // It has slept 20 us after it was through, and 35; up to 10 us it has not.
        for (now, through_at) in [(10, 15), (15, 20), (40, 65), (75, 80), (115, 140)] {
            core.enqueue(at(now), 0, Work::Command(COMMAND)).unwrap();
            assert_eq!(core.poll_timeout(), Some(at(through_at)), "{now}");
            assert!(core.poll_done(at(through_at)).is_some());
        }
        assert_eq!((core.work().commands, core.work().wakes), (5, 2));
        assert_eq!(core.busy(at(1000)), Duration::from_us(5 + 5 + 25 + 5 + 25));
    }

    #[test]
    fn an_interrupt_that_waits_stands_for_the_next() {
        let mut core = Core::new(COSTS);
        core.enqueue(at(1), 0, Work::Command(COMMAND)).unwrap();
        core.enqueue(at(2), 0, Work::Interrupt).unwrap();
        core.enqueue(at(3), 0, Work::Interrupt).unwrap();
        assert_eq!((core.work().interrupts, core.level().count()), (1, 2));
        assert!(core.works_for(0) && !core.works_for(1));
    }

    #[test]
    fn a_core_with_65_536_things_to_do_takes_no_more() {
        let mut core = Core::new(COSTS);
        for _ in 0..65_536 {
            core.enqueue(at(1), 0, Work::Command(COMMAND)).unwrap();
        }
        let full = core.enqueue(at(1), 0, Work::Command(COMMAND)).unwrap_err();
        assert_eq!(full.to_string(), "65536 wait in the line of the core, which is a fault of the model");
        assert_eq!(core.level().count(), 65_536);
        let stopped = StopReason::CapacityExceeded(full).breaks();
        assert_eq!(stopped, Some((Invariant::Progress, ViolationSubject::Queue("the line of the core"))));
        // There is room when something is done.
        core.poll_done(at(26)).unwrap();
        assert_eq!(core.enqueue(at(26), 0, Work::Command(COMMAND)), Ok(()));
    }

    #[test]
    fn busy_is_what_it_has_worked_and_not_what_lies_ahead() {
        let mut core = Core::new(COSTS);
        core.enqueue(at(1), 0, Work::Command(COMMAND)).unwrap();
        core.enqueue(at(1), 0, Work::Command(COMMAND)).unwrap();
        assert_eq!(core.busy(at(4)), Duration::from_us(3));
        assert_eq!(core.busy(at(11)), Duration::from_us(10));
    }

    #[test]
    fn a_pack_takes_its_time_and_what_goes_out_of_it_is_copied_first() {
        let costs = HostCosts { pack: Duration::from_us(50), copied_byte_ps: 250, ..COSTS };
        let transfer = |endpoint: u8, payload| {
            let pipe =
                bus::Pipe { endpoint: bus::EndpointAddress::try_from(endpoint).unwrap(), stream: None };
            Work::Transfer(Transfer { id: TransferId(1), pipe, length: 400_000, payload })
        };
        let pack = Payload::Pieces(initiator::PackId(1));
        assert_eq!(costs.of(&transfer(0x02, pack)), Duration::from_us(50 + 100));
        assert_eq!(costs.of(&transfer(0x81, pack)), Duration::from_us(50));
        assert_eq!(costs.of(&transfer(0x02, Payload::Message)), Duration::ZERO);
        let came = Completion { id: TransferId(1), status: TransferStatus::Done, actual: 400_000 };
        assert_eq!(costs.of(&Work::Completion(came, 400_000)), Duration::from_us(100));
    }

    #[test]
    fn how_long_it_stays_awake_costs_nothing() {
        assert!(HostCosts { idle_after: Duration::from_us(1), ..HostCosts::FREE }.is_free());
        assert!(!COSTS.is_free());
    }
}
