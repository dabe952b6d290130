//! Doorbells that lie in memory instead of the register file: a driver stores a value, and the owner has the controller look
//! for it ([`Controller::poll_doorbells`](super::Controller::poll_doorbells)). It saves a virtual machine the exit that a register write costs (xHCI 1.2 clause 5.6
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

use super::command::CommandRing;
use super::controller_fault::Halt;
use super::memory::GuestMemory;
use super::slot::{Endpoint, EndpointName, RingName, SlotStage};
use super::transfer::Transfers;
use units::Instant;
use wire::xhci::{Doorbell, EndpointId, EndpointState};

/// Drops what was stored while the controller did not run.
pub(super) fn drop_all(transfers: &mut Transfers, memory: &impl GuestMemory) {
    for slot in 0..=transfers.model.slots {
        transfers.counters.idle_doorbells += u32::from(memory.take_doorbell(slot).is_some());
    }
}

/// Takes the doorbells of slots. Returns whether there was a value.
pub(super) fn take_of_slots(
    commands: &CommandRing,
    transfers: &mut Transfers,
    now: Instant,
    memory: &mut impl GuestMemory,
) -> Result<bool, Halt> {
    let mut has_found = false;
    for slot in 1..=transfers.model.slots {
        if transfers.slots[slot].stage != SlotStage::Disabled
            && let Some(word) = memory.take_doorbell(slot)
        {
            has_found = true;
            ring_slot(commands, transfers, now, memory, SlotDoorbell { slot, word })?;
        }
    }
    Ok(has_found)
}

/// The value of the doorbell of a slot.
struct SlotDoorbell {
    slot: u8,
    word: u32,
}

/// A value stands for every doorbell of its slot.
fn ring_slot(
    commands: &CommandRing,
    transfers: &mut Transfers,
    now: Instant,
    memory: &mut impl GuestMemory,
    SlotDoorbell { slot, word }: SlotDoorbell,
) -> Result<(), Halt> {
    let doorbell = Doorbell::decode(word);
    if let Some(doorbell) = doorbell {
        transfers.events.notes.doorbell(now, slot.into(), doorbell);
    }
    match doorbell.and_then(|doorbell| Some((doorbell.target?, doorbell.stream))) {
        Some((endpoint, stream)) => {
            if !transfers.ring(now, memory, RingName { slot, endpoint, stream })? {
                return Ok(());
            }
        }
        None => transfers.counters.idle_doorbells += 1,
    }
    for id in endpoint_ids() {
        let name = EndpointName { slot, id };
        if !commands.is_stopping(name) {
            ring_perhaps(transfers, now, memory, name);
        }
    }
    Ok(())
}

/// An endpoint may have been written: a running one is looked at, a stopped one later.
fn ring_perhaps(transfers: &mut Transfers, now: Instant, memory: &impl GuestMemory, name: EndpointName) {
    let Some(endpoint) = transfers.slots.endpoint_mut(name) else { return };
    match endpoint.state() {
        EndpointState::Running => look_at_work(transfers, now, memory, name),
        EndpointState::Stopped => (endpoint.perhaps_restarted, transfers.perhaps_restarted) = (true, true),
        _ => {}
    }
}

/// Schedules a fetch of each ring of an endpoint that has work.
fn look_at_work(transfers: &mut Transfers, now: Instant, memory: &impl GuestMemory, name: EndpointName) {
    let Some(endpoint) = transfers.slots.endpoint(name) else { return };
    for stream in endpoint.doorbell_streams() {
        let Transfers { slots, model, .. } = &mut *transfers;
        let Some(endpoint) = slots.endpoint_mut(name) else { return };
        if endpoint.has_work(memory, stream) {
            let at = now + endpoint.doorbell_span(model);
            transfers.fetches.schedule(at, RingName { stream, ..RingName::without_stream(name) });
        }
    }
}

/// Restarts stopped endpoints with work whose doorbell may have been replaced, once the driver has acted on all commands. Returns
/// whether there was one.
pub(super) fn restart_replaced(
    commands: &CommandRing,
    transfers: &mut Transfers,
    now: Instant,
    memory: &mut impl GuestMemory,
) -> Result<bool, Halt> {
    if !transfers.perhaps_restarted
        || !transfers.events.ring.has_passed_answers()
        || !commands.are_done(memory)
    {
        return Ok(false);
    }
    transfers.perhaps_restarted = false;
    let mut has_found = false;
    for slot in 1..=transfers.model.slots {
        for id in endpoint_ids() {
            let name = EndpointName { slot, id };
            let Some(endpoint) = transfers.slots.endpoint_mut(name) else { continue };
            if !endpoint.may_restart() || !endpoint.has_any_work(memory) {
                continue;
            }
            if transfers.set_running(now, memory, RingName::without_stream(name))? {
                look_at_work(transfers, now, memory, name);
            }
            has_found = true;
        }
    }
    Ok(has_found)
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
