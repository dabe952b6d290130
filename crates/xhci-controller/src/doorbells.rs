//! Doorbells that lie in memory instead of the register file: a driver stores a value, and the owner has the controller look
//! for it ([`Controller::poll_doorbells`]). It saves a virtual machine the exit that a register write costs (xHCI 1.2 clause 5.6
//! has a write; this is what a hypervisor makes of it).
//!
//! A doorbell holds the last value only, so that values are replaced before the controller looks. What follows from that:
//!
//! - A value of a slot stands for all its doorbells. Every ring of its running endpoints is looked at, a stream that was never
//!   written too: TDs belong to the controller by their cycle bits (clause 4.9.2), and the doorbell says no more than when.
//! - What was stored before a command was written counts before that command: the doorbells of all slots are taken between
//!   the read of a command and its execution. So a value that comes after a Stop Endpoint was written after it.
//! - A stopped endpoint belongs to the driver until its doorbell is written (clause 4.6.9), and that value may be replaced by one
//!   of another endpoint. Then it runs again once the driver has passed the completions of all commands, and has queued
//!   no further one: a driver is expected to act on a completion (edit rings, queue Set TR Dequeue Pointer, ring) before it moves the
//!   dequeue pointer past it. Until then Stop Endpoint succeeds, since to the driver it may be running.
//! - An endpoint other than 0 that has failed waits for its own value: a driver may leave TDs there until the device is
//!   cleared. If that value is replaced, the driver's timeout finds the TDs where they are.
//!
//! Invariant: nothing moves between the completion of a stop and the next doorbell of that endpoint, as far as the third rule
//! holds for the driver.

use super::controller::Controller;
use super::controller_fault::ControllerFault;
use super::memory::GuestMemory;
use super::slot::{Endpoint, SlotStage};
use super::transfer::RingName;
use units::Instant;
use wire::xhci::{Doorbell, EndpointId, EndpointState};

impl Controller {
    /// Looks at doorbells in memory ([`GuestMemory::take_doorbell`]). Returns whether there was anything to do. The owner calls
    /// it while the controller runs, as often as it wants to notice, after it has passed on what the driver has
    /// written to the event ring dequeue pointer.
    pub fn poll_doorbells(&mut self, now: Instant, memory: &mut impl GuestMemory) -> bool {
        if !self.is_running() {
            return false;
        }
        let command = memory.take_doorbell(0);
        let mut has_found = take_of_slots(self, now, memory);
        if let Some(word) = command {
            has_found = true;
            self.ring_doorbell(now, memory, 0, Doorbell::decode(word));
        }
        has_found | restart_replaced(self, now, memory)
    }

    /// Drops what was stored while the controller did not run.
    pub(super) fn drop_doorbells(&mut self, memory: &impl GuestMemory) {
        for slot in 0..=self.model.slots {
            self.counters.idle_doorbells += u32::from(memory.take_doorbell(slot).is_some());
        }
    }

    /// Takes the doorbells of slots. Returns whether there was a value.
    pub(super) fn take_slot_doorbells(&mut self, now: Instant, memory: &mut impl GuestMemory) -> bool {
        take_of_slots(self, now, memory)
    }
}

/// Takes the doorbells of slots. Returns whether there was a value.
fn take_of_slots(controller: &mut Controller, now: Instant, memory: &mut impl GuestMemory) -> bool {
    let mut has_found = false;
    for slot in 1..=controller.model.slots {
        if controller.slots[usize::from(slot)].stage != SlotStage::Disabled
            && let Some(word) = memory.take_doorbell(slot)
        {
            has_found = true;
            ring_slot(controller, now, memory, slot, word);
        }
    }
    has_found
}

/// A value stands for every doorbell of its slot.
fn ring_slot(controller: &mut Controller, now: Instant, memory: &mut impl GuestMemory, slot: u8, word: u32) {
    let doorbell = Doorbell::decode(word);
    if let Some(doorbell) = doorbell {
        controller.events.notes.doorbell(now, slot.into(), doorbell);
    }
    match doorbell.and_then(|doorbell| Some((doorbell.target?, doorbell.stream))) {
        Some((endpoint, stream)) => {
            if let Some(fault) = controller.faults.fire(ControllerFault::of_doorbell) {
                return controller.fail_at_doorbell(fault);
            }
            let done = controller.ring_endpoint(now, memory, RingName { slot, endpoint, stream });
            controller.survive(done);
        }
        None => controller.counters.idle_doorbells += 1,
    }
    for endpoint in endpoint_ids() {
        ring_perhaps(controller, now, memory, slot, endpoint);
    }
}

/// An endpoint may have been written: a running one is looked at, a stopped one later.
fn ring_perhaps(
    controller: &mut Controller,
    now: Instant,
    memory: &mut impl GuestMemory,
    slot: u8,
    id: EndpointId,
) {
    if controller.commands.is_stopping(slot, id) {
        return;
    }
    let Some(endpoint) = controller.slots[usize::from(slot)].endpoint_mut(id) else { return };
    match endpoint.state() {
        EndpointState::Running => look_at_work(controller, now, memory, slot, id),
        EndpointState::Stopped => (endpoint.perhaps_restarted, controller.perhaps_restarted) = (true, true),
        _ => {}
    }
}

/// Schedules a fetch of each ring of an endpoint that has work.
fn look_at_work(
    controller: &mut Controller,
    now: Instant,
    memory: &impl GuestMemory,
    slot: u8,
    id: EndpointId,
) {
    let Some(endpoint) = controller.slots[usize::from(slot)].endpoint_mut(id) else { return };
    for stream in endpoint.doorbell_streams() {
        let Some(endpoint) = controller.slots[usize::from(slot)].endpoint_mut(id) else { return };
        if endpoint.has_work(memory, stream)
            && let Some(endpoint) = controller.slots[usize::from(slot)].endpoint(id)
        {
            let at = now + endpoint.doorbell_span(&controller.model);
            controller.look_at(at, RingName { slot, endpoint: id, stream });
        }
    }
}

/// Restarts stopped endpoints with work whose doorbell may have been replaced, once the driver has acted on all commands.
fn restart_replaced(controller: &mut Controller, now: Instant, memory: &mut impl GuestMemory) -> bool {
    let has_acted = |controller: &Controller, memory: &_| {
        controller.events.ring.has_passed_answers() && controller.commands.are_done(memory)
    };
    if !controller.perhaps_restarted || !has_acted(controller, memory) {
        return false;
    }
    controller.perhaps_restarted = false;
    let mut has_found = false;
    for slot in 1..=controller.model.slots {
        for id in endpoint_ids() {
            let Some(endpoint) = controller.slots[usize::from(slot)].endpoint_mut(id) else { continue };
            if !endpoint.may_restart() || !endpoint.has_any_work(memory) {
                continue;
            }
            let to = RingName { slot, endpoint: id, stream: 0 };
            match controller.set_running(now, memory, to) {
                Ok(true) => look_at_work(controller, now, memory, slot, id),
                Ok(false) => {}
                Err(fault) => controller.survive(Err(fault)),
            }
            has_found = true;
        }
    }
    has_found
}

/// Returns every endpoint that a slot can have, in the order of their ids.
fn endpoint_ids() -> impl Iterator<Item = EndpointId> {
    (1..=EndpointId::MAX).filter_map(EndpointId::new)
}

impl Endpoint {
    /// Returns whether it runs again although its doorbell was not seen.
    fn may_restart(&self) -> bool {
        let waits_for_its_own = self.has_failed && self.id != EndpointId::CONTROL;
        self.state() == EndpointState::Stopped && self.perhaps_restarted && !waits_for_its_own
    }

    fn has_any_work(&mut self, memory: &impl GuestMemory) -> bool {
        self.doorbell_streams().any(|stream| self.has_work(memory, stream))
    }
}
