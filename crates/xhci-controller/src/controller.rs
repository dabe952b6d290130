//! The controller's interface to the simulation: time, link and device events in, requests and
//! timeouts out.
//!
//! Common to the other modules: event posting, port changes, timeouts. Not modelled: scheduling;
//! the owner calls at the times that are returned.
//!
//! Invariant: a halted, failed or removed controller does nothing by itself.

use super::command::Commands;
use super::controller_fault::{ControllerFault, PlannedFault, PlannedFaults};
use super::dma::Dma;
use super::event::{EventRing, EventTraffic, Interrupter, Tampering};
use super::memory::{Fault, GuestMemory};
use super::model::Model;
use super::notes::Notes;
use super::output::{DevicePath, Output};
use super::port::{Port, PortOutcome};
use super::register::Registers;
use super::slot::Slot;
use super::transfer::Fetch;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use units::{Duration, Instant};
use wire::usb::EndpointAddress;
use wire::xhci::{CompletionCode, EndpointId, EventRingDequeue, EventTrb, TrbType, UsbCommand, UsbStatus};

/// A host controller.
///
/// Its owner calls the `handle_*` methods as things happen, takes everything from
/// [`poll_output`](Self::poll_output) after each and after each call of the driver, and calls
/// [`handle_timeout`](Self::handle_timeout) when [`poll_timeout`](Self::poll_timeout) says so.
#[derive(Clone, Debug)]
pub struct Controller {
    pub(super) model: Model,
    pub(super) registers: Registers,
    pub(super) ports: Vec<Port>,
    /// By number; there is none at 0.
    pub(super) slots: Vec<Slot>,
    pub(super) commands: Commands,
    pub(super) events: Events,
    pub(super) fetches: VecDeque<Fetch>,
    pub(super) dma: Dma,
    pub(super) outputs: VecDeque<Output>,
    pub(super) script: Script,
    pub(super) faults: PlannedFaults,
    /// A stopped endpoint may have been written ([`super::doorbells`]).
    pub(super) perhaps_restarted: bool,
    pub(super) counters: Counters,
    /// Next timeout of a port.
    pub(super) port_due: Option<Instant>,
}

/// Counters of ignored inputs and of errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Doorbells of slots and endpoints that do not exist or do not run.
    pub idle_doorbells: u32,
    /// Progress of TDs that are no longer outstanding.
    pub stale_progress: u32,
    /// Writes to read-only registers or at a wrong time.
    pub odd_writes: u32,
    /// Times that the event ring was full.
    pub rings_full: u32,
    /// Interrupts.
    pub interrupts: u64,
    /// Completed TDs.
    pub tds: u64,
}

/// Event ring and interrupter.
#[derive(Clone, Debug)]
pub(super) struct Events {
    pub(super) ring: EventRing,
    pub(super) interrupter: Interrupter,
    /// Number of events posted.
    pub(super) posted: u64,
    /// Notes for observers.
    pub(super) notes: Notes,
}

/// Errors to inject, for tests.
#[derive(Clone, Debug, Default)]
pub(super) struct Script {
    pub(super) commands: VecDeque<(TrbType, CompletionCode)>,
    pub(super) transfers: VecDeque<CompletionCode>,
    /// The Stopped event of the present Stop Endpoint command is not posted.
    pub(super) loses_stopped: bool,
}

impl Controller {
    /// Creates a controller after power-on with empty ports.
    pub fn new(model: Model) -> Self {
        Self {
            model,
            registers: Registers::new(&model),
            ports: (1..=model.ports()).map(|port| Port::new(model.is_usb3(port))).collect(),
            slots: vec![Slot::default(); usize::from(model.slots) + 1],
            commands: Commands::default(),
            events: Events::new(),
            fetches: VecDeque::new(),
            dma: Dma::default(),
            outputs: VecDeque::new(),
            script: Script::default(),
            faults: PlannedFaults::default(),
            perhaps_restarted: false,
            counters: Counters::default(),
            port_due: None,
        }
    }

    /// Turns it off and on again: everything is as after power-on, with empty ports. Planned faults stay, with what they have counted.
    pub fn power_cycle(&mut self) {
        let faults = core::mem::take(&mut self.faults);
        *self = Self { faults, ..Self::new(self.model) };
    }

    /// Plans a fault, which counts from now on. Returns whether there is room for it
    /// ([`PLANNED_FAULTS_MAX`](super::PLANNED_FAULTS_MAX)).
    pub fn plan_fault(&mut self, fault: PlannedFault) -> bool {
        self.faults.plan(fault)
    }

    /// Returns its parameters.
    pub const fn model(&self) -> &Model {
        &self.model
    }

    /// Returns the error counters.
    pub const fn counters(&self) -> Counters {
        Counters { rings_full: self.events.ring.times_full(), ..self.counters }
    }

    /// Returns whether it is running.
    pub fn is_running(&self) -> bool {
        self.registers.command.has(UsbCommand::RUN)
    }

    /// Attaches a device to a root port, counted from 1, with a speed id. Ignored for a port that
    /// does not exist.
    pub fn plug(&mut self, now: Instant, port: u8, speed_id: u8) {
        self.change_port(now, port, |port| port.plug(now, speed_id));
    }

    /// Detaches the device at a root port.
    pub fn unplug(&mut self, now: Instant, port: u8) {
        self.change_port(now, port, Port::unplug);
    }

    /// Removes the controller: registers read as all ones.
    pub fn remove(&mut self) {
        self.registers.is_gone = true;
        self.stop_everything();
    }

    /// Makes the next command of this type fail with `code` without executing it.
    pub fn refuse_next(&mut self, kind: TrbType, code: CompletionCode) {
        self.script.commands.push_back((kind, code));
    }

    /// Makes the next fetched TD of a bulk endpoint fail with `code`.
    pub fn fail_next(&mut self, code: CompletionCode) {
        self.script.transfers.push_back(code);
    }

    /// Corrupts the next transfer event.
    pub const fn tamper(&mut self, tampering: Tampering) {
        self.events.ring.tamper(tampering);
    }

    /// Returns what came to the event ring and went.
    pub const fn event_traffic(&self) -> EventTraffic {
        self.events.ring.traffic()
    }

    /// Returns whether the event ring has room for completions of TDs. An owner that can hold them back does so until the
    /// driver has made room, as a bus does that waits; otherwise Event Ring Full Error is posted.
    pub fn has_event_room(&self) -> bool {
        self.events.ring.has_room()
    }

    /// Injects a Host System Error: the controller halts.
    pub fn break_down(&mut self) {
        self.survive(Err(Fault { address: 0 }));
    }

    /// Returns whether an output is pending.
    pub fn has_output(&self) -> bool {
        !self.outputs.is_empty()
    }

    /// Returns the next output.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Returns whether events were dropped because more than the limit waited
    /// ([`EVENTS_WAITING_MAX`](crate::EVENTS_WAITING_MAX)).
    #[inline]
    pub const fn has_overrun(&self) -> bool {
        self.events.ring.has_overrun()
    }

    /// Enables or disables notes of doorbells and TRBs for [`Self::poll_note`].
    pub fn take_notes(&mut self, takes: bool) {
        self.events.notes.take(takes);
    }

    /// Returns the next note until `now` and its time. An event counts from when it is visible.
    pub fn poll_note(&mut self, now: Instant) -> Option<(Instant, String)> {
        self.events.notes.poll(now)
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        let never = Instant::from_ps(u64::MAX);
        let fetch = self.fetches.front().map_or(never, |fetch| fetch.at);
        let [interrupt, command, port] =
            [self.interrupt_due(), self.commands.due(), self.port_due].map(|due| due.unwrap_or(never));
        let first = fetch.min(interrupt).min(command).min(port);
        (first < never).then_some(first)
    }

    /// Handles the timeout that [`poll_timeout`](Self::poll_timeout) returned. Does nothing before
    /// it.
    pub fn handle_timeout(&mut self, now: Instant, memory: &mut impl GuestMemory) {
        while let Some(fetch) = self.fetches.pop_front_if(|fetch| fetch.at <= now) {
            let done = self.fetch(now, memory, fetch.to);
            self.survive(done);
        }
        while self.commands.due().is_some_and(|at| at <= now) {
            let done = self.step_commands(now, memory);
            self.survive(done);
        }
        if self.port_due.is_some_and(|at| at <= now) {
            for port in 1..=self.model.ports() {
                let is_due = |port: &Port| port.due().is_some_and(|at| at <= now);
                if self.ports.get(usize::from(port) - 1).is_some_and(is_due) {
                    let is_dead = self.faults.fire(ControllerFault::of_port).is_some();
                    self.change_port(now, port, |port| {
                        if is_dead {
                            port.die();
                        }
                        port.handle_due()
                    });
                }
            }
        }
        if self.interrupt_due().is_some_and(|at| at <= now) {
            self.show_events(now, memory);
            self.events.interrupter.speak(now);
            self.registers.status = self.registers.status.with(UsbStatus::EVENT_INTERRUPT);
            self.counters.interrupts += 1;
            self.outputs.push_back(Output::Interrupt);
        }
    }

    fn interrupt_due(&self) -> Option<Instant> {
        let due = self.events.interrupter.due()?;
        let may_speak = self.registers.command.has(UsbCommand::INTERRUPTER_ENABLE) && self.is_running();
        may_speak.then(|| on_grid(due, self.model.interrupt_grid))
    }

    /// Writes the events that are visible by `now`.
    #[inline]
    pub fn show_events(&mut self, now: Instant, memory: &mut impl GuestMemory) {
        if self.events.ring.next_at().is_some_and(|at| at <= now) && self.is_running() {
            self.write_events(now, memory);
        }
    }

    #[inline(never)]
    fn write_events(&mut self, now: Instant, memory: &mut impl GuestMemory) {
        let Self { faults, slots, .. } = self;
        let fault = |slot, endpoint| fault_of_event(faults, slots, slot, endpoint);
        let written = self.events.ring.write(now, memory, fault);
        self.survive(written);
    }

    /// Handles a write to the event ring dequeue pointer.
    pub(super) fn take_events(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        dequeue: EventRingDequeue,
    ) {
        let was_full = self.events.ring.is_full();
        self.events.ring.take(dequeue);
        if dequeue.handler_busy {
            self.events.interrupter.rest(now);
        }
        self.show_events(now, memory);
        if self.events.ring.has_untaken() {
            self.events.interrupter.want(now);
        } else if let Some(at) = self.events.ring.next_at() {
            self.events.interrupter.want(at);
        } else {
            self.events.interrupter.want_nothing();
        }
        if was_full && !self.events.ring.is_full() {
            self.resume_rings(now);
        }
    }

    /// Posts an event.
    pub(super) fn post(&mut self, now: Instant, event: EventTrb) {
        let at = self.dma.write_event(now, &self.model);
        self.events.post(at, event);
    }

    /// Posts an event for a time that may be in the future. It is not ordered behind other memory
    /// writes, which are not known yet.
    pub(super) fn post_later(&mut self, at: Instant, event: EventTrb) {
        self.events.post(Dma::event_unqueued(at, &self.model), event);
    }

    /// Changes a port and handles the outcome.
    pub(super) fn change_port(
        &mut self,
        now: Instant,
        number: u8,
        change: impl FnOnce(&mut Port) -> PortOutcome,
    ) {
        let place = usize::from(number).wrapping_sub(1);
        let Some(port) = self.ports.get_mut(place) else { return };
        let outcome = change(port);
        self.port_due = self.ports.iter().filter_map(Port::due).min();
        if outcome.lost {
            self.outputs.push_back(Output::PortDown(number));
            self.lose_device(now, number);
        }
        if outcome.reset {
            self.outputs.push_back(Output::PortReset(number));
        }
        if outcome.up {
            self.outputs.push_back(Output::PortUp(number));
        }
        if outcome.event {
            self.registers.status = self.registers.status.with(UsbStatus::PORT_CHANGE);
            self.post(now, EventTrb::PortStatusChange { port: number, code: CompletionCode::Success });
        }
    }

    /// Handles an endpoint that became quiet after [`LinkAct::Stop`](super::LinkAct::Stop).
    pub fn handle_quiet(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        path: DevicePath,
        address: EndpointAddress,
    ) {
        let done = self.settle_stop(now, memory, path, address);
        self.survive(done);
    }

    /// An access outside of memory is a Host System Error: the controller halts (clause 4.10.2.6).
    pub(super) fn survive(&mut self, done: Result<(), Fault>) {
        if done.is_err() {
            // The driver is notified of it (clause 4.24.1). Linux looks at HSE only where EINT is set.
            self.registers.halt_with(UsbStatus::HOST_SYSTEM_ERROR.with(UsbStatus::EVENT_INTERRUPT));
            self.stop_everything();
            self.outputs.push_back(Output::Interrupt);
        }
    }

    /// An internal error: the controller halts, without an interrupt (clause 4.24.1).
    pub(super) fn fail_internally(&mut self) {
        self.registers.halt_with(UsbStatus::CONTROLLER_ERROR);
        self.stop_everything();
    }

    /// Stops all activity.
    pub(super) fn stop_everything(&mut self) {
        self.fetches.clear();
        self.commands.halt();
    }
}

/// The planned fault of a transfer event, if one happens at it.
fn fault_of_event(
    faults: &mut PlannedFaults,
    slots: &[Slot],
    slot: u8,
    endpoint: Option<EndpointId>,
) -> Option<Tampering> {
    let has_streams = || {
        let slot = slots.get(usize::from(slot));
        let endpoint = slot.and_then(|slot| slot.endpoint(endpoint?));
        endpoint.is_some_and(|endpoint| endpoint.streams.is_some())
    };
    faults.fire(|fault| fault.of_event(has_streams))
}

/// Rounds a time up to a multiple of `grid`.
const fn on_grid(at: Instant, grid: Duration) -> Instant {
    match grid.as_ps() {
        0 => at,
        step => Instant::from_ps(at.as_ps().next_multiple_of(step)),
    }
}

impl Events {
    fn new() -> Self {
        let notes = Notes::default();
        Self { ring: EventRing::new(), interrupter: Interrupter::new(), posted: 0, notes }
    }

    /// Posts an event that is visible from `at` on.
    pub(super) fn post(&mut self, at: Instant, event: EventTrb) {
        self.posted += 1;
        let at = self.ring.push(at, event);
        self.notes.event(at, event);
        if let Some(at) = self.ring.next_at() {
            self.interrupter.want(at);
        }
    }

    pub(super) fn reset(&mut self) {
        self.ring.reset();
        (self.interrupter, self.posted) = (Interrupter::new(), 0);
    }
}
