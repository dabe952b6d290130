//! The controller's interface to the simulation: time, link and device events in, requests and
//! timeouts out.
//!
//! Common to the other modules: event posting, port changes, timeouts. Not modelled: scheduling;
//! the owner calls at the times that are returned.
//!
//! Invariant: a halted, failed or removed controller does nothing by itself.

use super::command::CommandRing;
use super::controller_fault::{ControllerFault, Halt, PlannedFault, PlannedFaults};
use super::counters::Counters;
use super::doorbells;
use super::event::{EventTraffic, Tampering};
use super::memory::{Fault, GuestMemory};
use super::model::Model;
use super::output::{ControlAnswer, ControlId, DevicePath, Output};
use super::port::{Port, PortOutcome};
use super::ports::Ports;
use super::register::Registers;
use super::slot::{EndpointName, RingName, Slots, address_of};
use super::slot_command::SlotCommands;
use super::transfer::Transfers;
use alloc::string::String;
use alloc::vec::Vec;
use bus::TransferId;
use bus::link::{PacketPayload, Progress};
use units::{Duration, Instant};
use wire::usb::EndpointAddress;
use wire::xhci::{
    CompletionCode, Doorbell, EndpointId, EventRingDequeue, EventTrb, TrbType, UsbCommand, UsbStatus,
};

/// A host controller.
///
/// Its owner calls the `handle_*` methods as things happen, takes everything from
/// [`poll_output`](Self::poll_output) after each and after each call of the driver, and calls
/// [`handle_timeout`](Self::handle_timeout) when [`poll_timeout`](Self::poll_timeout) says so.
#[derive(Clone, Debug)]
pub struct Controller {
    pub(super) registers: Registers,
    pub(super) ports: Ports,
    pub(super) commands: CommandRing,
    pub(super) transfers: Transfers,
}

impl Controller {
    /// Creates a controller after power-on with empty ports.
    pub fn new(model: Model) -> Self {
        Self {
            registers: Registers::new(&model),
            ports: Ports::new(&model),
            commands: CommandRing::default(),
            transfers: Transfers::new(model),
        }
    }

    /// Turns it off and on again: everything is as after power-on, with empty ports. Planned faults stay, with what they have counted.
    pub fn power_cycle(&mut self) {
        let faults = core::mem::take(&mut self.transfers.faults);
        *self = Self::new(self.transfers.model);
        self.transfers.faults = faults;
    }

    /// Plans a fault, which counts from now on. Returns whether there is room for it
    /// ([`PLANNED_FAULTS_MAX`](super::PLANNED_FAULTS_MAX)).
    pub fn plan_fault(&mut self, fault: PlannedFault) -> bool {
        self.transfers.faults.plan(fault)
    }

    /// Returns its parameters.
    pub const fn model(&self) -> &Model {
        &self.transfers.model
    }

    /// Returns the error counters.
    pub const fn counters(&self) -> Counters {
        Counters { rings_full: self.transfers.events.ring.times_full(), ..self.transfers.counters }
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
        self.commands.refused.push_back((kind, code));
    }

    /// Makes the next fetched TD of a bulk endpoint fail with `code`.
    pub fn fail_next(&mut self, code: CompletionCode) {
        self.transfers.failing.push_back(code);
    }

    /// Corrupts the next transfer event.
    pub const fn tamper(&mut self, tampering: Tampering) {
        self.transfers.events.ring.tamper(tampering);
    }

    /// Returns what came to the event ring and went.
    pub const fn event_traffic(&self) -> EventTraffic {
        self.transfers.events.ring.traffic()
    }

    /// Returns whether the event ring has room for completions of TDs. An owner that can hold them back does so until the
    /// driver has made room, as a bus does that waits; otherwise Event Ring Full Error is posted.
    pub fn has_event_room(&self) -> bool {
        self.transfers.events.ring.has_room()
    }

    /// Injects a Host System Error: the controller halts.
    pub fn break_down(&mut self) {
        self.halt(Halt::SystemError);
    }

    /// Returns whether an output is pending.
    pub fn has_output(&self) -> bool {
        !self.transfers.outputs.is_empty()
    }

    /// Returns the next output.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.transfers.outputs.pop_front()
    }

    /// Returns whether events were dropped because more than the limit waited
    /// ([`EVENTS_WAITING_MAX`](crate::EVENTS_WAITING_MAX)).
    #[inline]
    pub const fn has_overrun(&self) -> bool {
        self.transfers.events.ring.has_overrun()
    }

    /// Enables or disables notes of doorbells and TRBs for [`Self::poll_note`].
    pub fn take_notes(&mut self, takes: bool) {
        self.transfers.events.notes.take(takes);
    }

    /// Returns the next note until `now` and its time. An event counts from when it is visible.
    pub fn poll_note(&mut self, now: Instant) -> Option<(Instant, String)> {
        self.transfers.events.notes.poll(now)
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        let never = Instant::from_ps(u64::MAX);
        let fetch = self.transfers.fetches.due().unwrap_or(never);
        let [interrupt, command, port] =
            [self.interrupt_due(), self.commands.due(), self.ports.due()].map(|due| due.unwrap_or(never));
        let first = fetch.min(interrupt).min(command).min(port);
        (first < never).then_some(first)
    }

    /// Handles the timeout that [`poll_timeout`](Self::poll_timeout) returned. Does nothing before
    /// it.
    pub fn handle_timeout(&mut self, now: Instant, memory: &mut impl GuestMemory) {
        while let Some(to) = self.transfers.fetches.take_due(now) {
            let done = self.transfers.fetch(now, memory, to);
            self.survive(done);
        }
        while self.commands.due().is_some_and(|at| at <= now) {
            let (commands, mut devices) = self.commands();
            let done = commands.step(now, memory, &mut devices);
            self.survive(done);
        }
        if self.ports.due().is_some_and(|at| at <= now) {
            self.handle_due_ports(now);
        }
        if self.interrupt_due().is_some_and(|at| at <= now) {
            self.show_events(now, memory);
            self.transfers.events.interrupter.speak(now);
            self.registers.status = self.registers.status.with(UsbStatus::EVENT_INTERRUPT);
            self.transfers.counters.interrupts += 1;
            self.transfers.outputs.push_back(Output::Interrupt);
        }
    }

    fn handle_due_ports(&mut self, now: Instant) {
        for port in self.ports.due_by(now) {
            let is_dead = self.transfers.faults.fire(ControllerFault::of_port).is_some();
            self.change_port(now, port, |port| {
                if is_dead {
                    port.die();
                }
                port.handle_due()
            });
        }
    }

    /// Returns the command ring, and what its commands read and change.
    fn commands(&mut self) -> (&mut CommandRing, SlotCommands<'_>) {
        let Self { registers, ports, commands, transfers } = self;
        let (contexts, enabled) = (registers.contexts, registers.configure.slots);
        (commands, SlotCommands { transfers, ports, contexts, enabled })
    }

    fn interrupt_due(&self) -> Option<Instant> {
        let due = self.transfers.events.interrupter.due()?;
        let may_speak = self.registers.command.has(UsbCommand::INTERRUPTER_ENABLE) && self.is_running();
        may_speak.then(|| on_grid(due, self.transfers.model.interrupt_grid))
    }

    /// Writes the events that are visible by `now`.
    #[inline]
    pub fn show_events(&mut self, now: Instant, memory: &mut impl GuestMemory) {
        if self.transfers.events.ring.next_at().is_some_and(|at| at <= now) && self.is_running() {
            self.write_events(now, memory);
        }
    }

    #[inline(never)]
    fn write_events(&mut self, now: Instant, memory: &mut impl GuestMemory) {
        let Transfers { faults, slots, events, .. } = &mut self.transfers;
        let fault = |slot, endpoint| fault_of_event(faults, slots, slot, endpoint);
        let written = events.ring.write(now, memory, fault);
        self.survive(written);
    }

    /// Handles a write to the event ring dequeue pointer.
    pub(super) fn take_events(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        dequeue: EventRingDequeue,
    ) {
        let events = &mut self.transfers.events;
        let was_full = events.ring.is_full();
        events.ring.take(dequeue);
        if dequeue.handler_busy {
            events.interrupter.rest(now);
        }
        self.show_events(now, memory);
        self.transfers.events.want_interrupt(now);
        if was_full && !self.transfers.events.ring.is_full() {
            let Transfers { slots, fetches, model, .. } = &mut self.transfers;
            for to in slots.loaded_rings() {
                fetches.schedule(now + model.attachment.memory_read, to);
            }
            if self.commands.is_running {
                self.commands.ring(now, &self.transfers.model);
            }
        }
    }

    /// Changes a port and handles the outcome.
    pub(super) fn change_port(
        &mut self,
        now: Instant,
        number: u8,
        change: impl FnOnce(&mut Port) -> PortOutcome,
    ) {
        let Some(outcome) = self.ports.change(number, change) else { return };
        let transfers = &mut self.transfers;
        if outcome.lost {
            transfers.outputs.push_back(Output::PortDown(number));
            self.commands.lose_device(now, transfers, number);
        }
        if outcome.reset {
            transfers.outputs.push_back(Output::PortReset(number));
        }
        if outcome.up {
            transfers.outputs.push_back(Output::PortUp(number));
        }
        if outcome.event {
            self.registers.status = self.registers.status.with(UsbStatus::PORT_CHANGE);
            transfers.post(now, EventTrb::PortStatusChange { port: number, code: CompletionCode::Success });
        }
    }

    /// Handles a doorbell.
    pub(super) fn ring_doorbell(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        slot: u32,
        doorbell: Option<Doorbell>,
    ) {
        let Some(doorbell) = doorbell.filter(|_| self.is_running()) else {
            self.transfers.counters.idle_doorbells += 1;
            return;
        };
        self.transfers.events.notes.doorbell(now, slot, doorbell);
        match (u8::try_from(slot), doorbell.target) {
            (Ok(0), None) => self.commands.ring(now, &self.transfers.model),
            (Ok(slot), Some(endpoint)) => {
                let to = RingName { slot, endpoint, stream: doorbell.stream };
                let done = self.transfers.ring(now, memory, to);
                self.survive(done);
            }
            _ => self.transfers.counters.idle_doorbells += 1,
        }
    }

    /// Looks at doorbells in memory ([`GuestMemory::take_doorbell`]). Returns whether there was anything to do. The owner calls
    /// it while the controller runs, as often as it wants to notice, after it has passed on what the driver has
    /// written to the event ring dequeue pointer.
    pub fn poll_doorbells(&mut self, now: Instant, memory: &mut impl GuestMemory) -> bool {
        if !self.is_running() {
            return false;
        }
        let command = memory.take_doorbell(0);
        let taken = doorbells::take_of_slots(&self.commands, &mut self.transfers, now, memory);
        let has_found = self.survive(taken).unwrap_or(true) || command.is_some();
        if let Some(word) = command {
            self.ring_doorbell(now, memory, 0, Doorbell::decode(word));
        }
        let restarted = doorbells::restart_replaced(&self.commands, &mut self.transfers, now, memory);
        self.survive(restarted).unwrap_or(true) || has_found
    }

    /// Handles progress of a transfer on the link. `bytes` is the data of an IN transfer. Returns
    /// whether the controller may have new work or events.
    pub fn handle_progress(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        progress: &Progress,
        bytes: &[u8],
    ) -> bool {
        let done = self.transfers.handle_progress(now, memory, progress, bytes);
        self.survive(done).unwrap_or(true)
    }

    /// Handles a halt on the link, by STALL or without a response. If it ended a transfer, that was
    /// reported then; otherwise there is no TRB to name, for example when a device answers Prime
    /// with STALL before any stream is current (clauses 4.10.2 and 4.12.2).
    pub fn handle_halt(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        path: DevicePath,
        address: EndpointAddress,
        is_stalled: bool,
    ) {
        let done = self.transfers.handle_halt(now, memory, path, address, is_stalled);
        self.survive(done);
    }

    /// Handles the device's answer to a control transfer.
    pub fn handle_control(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        id: ControlId,
        answer: &ControlAnswer,
    ) {
        if id.number != SlotCommands::ADDRESS_REQUEST {
            let done = self.transfers.handle_control(now, memory, id, answer);
            self.survive(done);
            return;
        }
        let code = match answer {
            ControlAnswer::Done(_) => CompletionCode::Success,
            ControlAnswer::Stalled => CompletionCode::StallError,
            ControlAnswer::Silent => CompletionCode::UsbTransactionError,
        };
        let (commands, mut devices) = self.commands();
        let done = commands.handle_address(now, memory, &mut devices, id.slot, code);
        self.survive(done);
    }

    /// Returns the endpoint of a transfer on the link. `None` for a foreign id.
    pub fn endpoint_of(transfer: TransferId) -> Option<EndpointAddress> {
        address_of(RingName::of(transfer)?.0.endpoint)
    }

    /// Reads the bytes of an OUT transfer that was queued on the link, from the first that has not
    /// moved. The rest of `into` stays if the transfer is shorter; nothing is read for one that is
    /// no longer outstanding.
    ///
    /// # Errors
    /// If a buffer of it is not in memory.
    pub fn read_transfer(
        &self,
        memory: &impl GuestMemory,
        transfer: TransferId,
        into: &mut [u8],
    ) -> Result<(), Fault> {
        self.transfers.slots.read_transfer(memory, transfer, into)
    }

    /// Returns the bytes of OUT payload; copied to `scratch` if they are not contiguous.
    pub fn bytes<'a>(
        &'a self,
        memory: &'a impl GuestMemory,
        piece: PacketPayload,
        scratch: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        self.transfers.slots.bytes(memory, piece, scratch)
    }

    /// Reads the payload of an OUT packet from memory. Returns how long it comes after `now`: when
    /// memory is busy, and for a page whose TRB was not prefetched.
    #[inline(always)]
    pub fn read_payload(&mut self, now: Instant, piece: PacketPayload) -> Duration {
        let Transfers { dma, model, slots, .. } = &mut self.transfers;
        dma.read(now, model, piece.bytes.into()) + slots.pause_for_trb(model, piece)
    }

    /// Returns how long payload from the bus waits for room in the controller's buffer.
    #[inline(always)]
    pub fn buffer_wait(&self, now: Instant) -> Duration {
        self.transfers.dma.full_for(now, &self.transfers.model)
    }

    /// Handles an endpoint that became quiet after [`LinkAct::Stop`](super::LinkAct::Stop).
    pub fn handle_quiet(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        path: DevicePath,
        address: EndpointAddress,
    ) {
        let done = self.commands.handle_quiet(now, memory, &mut self.transfers, path, address);
        self.survive(done);
    }

    /// Halts the controller after an error. Returns the result without one.
    #[inline]
    pub(super) fn survive<T>(&mut self, done: Result<T, impl Into<Halt>>) -> Option<T> {
        match done {
            Ok(done) => Some(done),
            Err(error) => {
                self.halt(error.into());
                None
            }
        }
    }

    #[inline(never)]
    fn halt(&mut self, error: Halt) {
        let status = match error {
            // The driver is notified of it (clause 4.24.1). Linux looks at HSE only where EINT is set.
            Halt::SystemError => UsbStatus::HOST_SYSTEM_ERROR.with(UsbStatus::EVENT_INTERRUPT),
            Halt::ControllerError => UsbStatus::CONTROLLER_ERROR,
        };
        self.registers.halt_with(status);
        self.stop_everything();
        if error == Halt::SystemError {
            self.transfers.outputs.push_back(Output::Interrupt);
        }
    }

    /// Stops all activity.
    pub(super) fn stop_everything(&mut self) {
        self.transfers.fetches.clear();
        self.commands.halt();
    }
}

/// The planned fault of a transfer event, if one happens at it.
fn fault_of_event(
    faults: &mut PlannedFaults,
    slots: &Slots,
    slot: u8,
    endpoint: Option<EndpointId>,
) -> Option<Tampering> {
    let has_streams = || {
        let endpoint = endpoint.and_then(|id| slots.endpoint(EndpointName { slot, id }));
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
