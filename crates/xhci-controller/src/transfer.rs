//! Transfers: doorbells, TDs, progress and events (xHCI 1.2 clauses 4.7, 4.10, 4.12).
//!
//! A doorbell is followed by reads: the stream context if any, the TRB, then OUT data. They add up
//! to one delay, after which TDs are fetched and queued on the link ([`super::fetch`]). DMA makes
//! no events: it is a time until which memory is busy ([`super::dma`]), and the link waits when the
//! controller's buffer is full ([`Controller::buffer_wait`]).
//!
//! Invariants: a TD makes the events that its TRBs request, and one if it fails; a halted endpoint
//! keeps its ring position.

use super::controller::Controller;
use super::controller_fault::{ControllerFault, DoorbellFault};
use super::memory::{Fault, GuestMemory};
use super::model::Model;
use super::output::{DevicePath, LinkAct, Output};
use super::ring::{Act, Cursor, EventFields, Ring};
use super::slot::{Endpoint, Slot, slots_at};
use alloc::vec::Vec;
use bus::TransferId;
use bus::link::{End, PacketPayload, Progress};
use units::{Duration, Instant};
use wire::usb::{Direction, EndpointAddress};
use wire::xhci::{CompletionCode as Code, Doorbell, EndpointId, EndpointState};

/// A ring: slot, endpoint, stream (0 for none).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RingName {
    pub(super) slot: u8,
    pub(super) endpoint: EndpointId,
    pub(super) stream: u16,
}

/// A scheduled fetch of a ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fetch {
    pub(super) at: Instant,
    pub(super) to: RingName,
}

/// Maximum scheduled fetches; further doorbells are ignored. Each ring has one or two.
const FETCHES_MAX: usize = 1 << 16;

/// Bytes of a TD whose TRBs every controller prefetches: sixteen pages.
const READ_AHEAD_BYTES: u32 = 64 << 10;

/// A page of host memory. On hardware buffer pages are scattered and need one TRB each; the
/// simulation uses one TRB per 64 KiB, but still charges the time.
const PAGE_BYTES: u32 = 4 << 10;

impl RingName {
    /// Returns the transfer id of a TD on the link.
    pub(super) const fn transfer(self, number: u32) -> TransferId {
        let ([s0, s1], [n0, n1, n2, n3]) = (self.stream.to_be_bytes(), number.to_be_bytes());
        TransferId(u64::from_be_bytes([self.slot, self.endpoint.get(), s0, s1, n0, n1, n2, n3]))
    }

    pub(super) const fn of(id: TransferId) -> Option<(Self, u32)> {
        let [slot, endpoint, s0, s1, n0, n1, n2, n3] = id.0.to_be_bytes();
        let (stream, number) = (u16::from_be_bytes([s0, s1]), u32::from_be_bytes([n0, n1, n2, n3]));
        match EndpointId::new(endpoint) {
            Some(endpoint) => Some((Self { slot, endpoint, stream }, number)),
            None => None,
        }
    }

    const fn which(self) -> (u8, EndpointId) {
        (self.slot, self.endpoint)
    }
}

impl Controller {
    /// Handles a doorbell.
    pub(super) fn ring_doorbell(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        slot: u32,
        doorbell: Option<Doorbell>,
    ) {
        let Some(doorbell) = doorbell.filter(|_| self.is_running()) else {
            self.counters.idle_doorbells += 1;
            return;
        };
        self.events.notes.doorbell(now, slot, doorbell);
        match (u8::try_from(slot), doorbell.target) {
            (Ok(0), None) => self.ring_commands(now),
            (Ok(slot), Some(endpoint)) => {
                if let Some(fault) = self.faults.fire(ControllerFault::of_doorbell) {
                    return self.fail_at_doorbell(fault);
                }
                let done =
                    self.ring_endpoint(now, memory, RingName { slot, endpoint, stream: doorbell.stream });
                self.survive(done);
            }
            _ => self.counters.idle_doorbells += 1,
        }
    }

    #[cold]
    pub(super) fn fail_at_doorbell(&mut self, fault: DoorbellFault) {
        match fault {
            DoorbellFault::Ignore => self.counters.idle_doorbells += 1,
            DoorbellFault::HostSystemError => self.break_down(),
            DoorbellFault::ControllerError => self.fail_internally(),
        }
    }

    /// Starts an endpoint on its doorbell and schedules a fetch.
    pub(super) fn ring_endpoint(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        to: RingName,
    ) -> Result<(), Fault> {
        let misbehaves = self.model.misbehaviour.ignores_streams;
        let accepts = |endpoint: &&Endpoint| {
            let runs = matches!(endpoint.state(), EndpointState::Running | EndpointState::Stopped);
            runs && !(misbehaves && endpoint.streams.is_some())
        };
        let slot = self.slots.get(usize::from(to.slot));
        let endpoint = slot.and_then(|slot| slot.endpoint(to.endpoint)).filter(accepts);
        let Some(endpoint) = endpoint.filter(|_| self.fetches.len() < FETCHES_MAX) else {
            self.counters.idle_doorbells += 1;
            return Ok(());
        };
        let span = endpoint.doorbell_span(&self.model);
        if endpoint.streams.is_some() {
            self.dma.read_stream_context(now, &self.model);
        }
        if endpoint.state() == EndpointState::Stopped && !self.set_running(now, memory, to)? {
            return Ok(());
        }
        self.look_at(now + span, to);
        Ok(())
    }

    /// Schedules a fetch of a ring, after earlier ones.
    pub(super) fn look_at(&mut self, at: Instant, to: RingName) {
        let at = self.fetches.back().map_or(at, |last| at.max(last.at));
        self.fetches.push_back(Fetch { at, to });
    }

    /// Restarts a stopped endpoint. Returns whether it runs.
    #[cold]
    pub(super) fn set_running(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        to: RingName,
    ) -> Result<bool, Fault> {
        let slot = &self.slots[usize::from(to.slot)];
        let Some(endpoint) = slot.endpoint(to.endpoint) else { return Ok(false) };
        if let Some(code) = endpoint.halted_by {
            self.run_into_halt(now, memory, RingName { stream: 0, ..to }, code)?;
            return Ok(false);
        }
        if let Some(address) = endpoint.address().filter(|_| endpoint.is_on_link) {
            self.outputs.push_back(Output::Link(slot.path, LinkAct::Resume(address)));
        }
        self.set_state(memory, to.which(), EndpointState::Running)?;
        Ok(true)
    }

    /// Reports the halt of an endpoint that halted on the link while stopped.
    fn run_into_halt(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        to: RingName,
        code: Code,
    ) -> Result<(), Fault> {
        if let Some(endpoint) = self.slots[usize::from(to.slot)].endpoint_mut(to.endpoint) {
            endpoint.halted_by = None;
        }
        self.set_state(memory, to.which(), EndpointState::Running)?;
        self.fail(now, memory, (to, None), (code, EndpointState::Halted))
    }

    /// Handles a scheduled fetch: the line of the next TRB has arrived.
    pub(super) fn fetch(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        to: RingName,
    ) -> Result<(), Fault> {
        let endpoint = self.slots.get(usize::from(to.slot)).and_then(|slot| slot.endpoint(to.endpoint));
        match endpoint.map(|endpoint| endpoint.state()) {
            Some(EndpointState::Running) => {
                if let Some(ring) = self.ring_mut(to) {
                    ring.has_line = true;
                }
                self.refill(now, memory, to)
            }
            _ => Ok(()),
        }
    }

    /// Schedules a fetch of every ring and of the command ring after the event ring was full.
    pub(super) fn resume_rings(&mut self, now: Instant) {
        let mut names = Vec::new();
        for (slot, place) in (0..).zip(&self.slots) {
            for endpoint in place.endpoints.iter().flatten() {
                let loaded = (0..).zip(&endpoint.rings).filter(|(_, ring)| ring.is_loaded);
                let running = endpoint.state() == EndpointState::Running;
                let name = |(stream, _)| RingName { slot, endpoint: endpoint.id, stream };
                names.extend(loaded.filter(|_| running).map(name));
            }
        }
        for to in names {
            self.look_at(now + self.model.attachment.memory_read, to);
        }
        if self.commands.is_running {
            self.ring_commands(now);
        }
    }

    pub(super) fn ring_mut(&mut self, to: RingName) -> Option<&mut Ring> {
        let endpoint = self.slots.get_mut(usize::from(to.slot))?.endpoint_mut(to.endpoint)?;
        endpoint.rings.get_mut(usize::from(to.stream))
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
        if let Some(is_reported) = self.progress_single(now, memory, progress, bytes) {
            return is_reported;
        }
        let posted = self.events.posted;
        let done = self.progress(now, memory, progress, bytes);
        let is_reported = done.is_err() || progress.ended.is_some() || self.events.posted != posted;
        self.survive(done);
        is_reported
    }

    #[inline(never)]
    fn progress(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        progress: &Progress,
        bytes: &[u8],
    ) -> Result<(), Fault> {
        let Progress { id, moved, ended, piece } = *progress;
        let model = self.model;
        let found = RingName::of(id).and_then(|(to, number)| {
            let endpoint = self.slots.get_mut(usize::from(to.slot))?.endpoint_mut(to.endpoint)?;
            let rules = endpoint.rules(&model);
            let ring = endpoint.rings.get_mut(usize::from(to.stream))?;
            let td = ring.first().filter(|td| td.number == number && ring.on_link > 0)?;
            let (base, before) = (td.base, td.moved);
            Some((to, rules, ring, (base, before)))
        });
        let Some((to, rules, ring, (base, before))) = found.filter(|_| ended != Some(End::Withdrawn)) else {
            self.counters.stale_progress += u32::from(ended != Some(End::Withdrawn));
            return Ok(());
        };
        let moved = base + moved;
        if piece.is_some() {
            let came = (moved - before) as usize;
            scatter(memory, ring, before, bytes.get(..came).unwrap_or(bytes))?;
            self.dma.write(now, &self.model, bytes.len());
        }
        let Self { events, dma, model, .. } = self;
        let emit =
            |emit: EventFields| events.post(dma.write_event(now, model), emit.event(to.slot, to.endpoint));
        match ended {
            None => {
                ring.advance(moved, false, emit);
                return Ok(());
            }
            Some(End::Full) => ring.advance(moved, true, emit),
            Some(End::Short) => ring.cut(moved, rules, emit),
            Some(end) => {
                ring.advance(moved, false, emit);
                let code = match end {
                    End::Stalled => Code::StallError,
                    End::Overflow => Code::BabbleDetected,
                    _ => Code::UsbTransactionError,
                };
                return self.fail(now, memory, (to, None), (code, EndpointState::Halted));
            }
        }
        ring.on_link -= 1;
        self.counters.tds += 1;
        if rules.direction.is_some() && ring.is_at_rest(memory)? {
            return Ok(());
        }
        self.refill(now, memory, to)
    }

    /// Handles a halt on the link, by STALL or without a response. If it ended a transfer, that was
    /// reported then; otherwise there is no TRB to name, for example when a device answers Prime
    /// with STALL before any stream is current (clauses 4.10.2 and 4.12.2).
    pub fn handle_halt(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        (path, address): (DevicePath, EndpointAddress),
        is_stalled: bool,
    ) {
        let id = EndpointId::of(address);
        let is_so = |slot: u8, state| {
            let slot = &self.slots[usize::from(slot)];
            slot.path == path && slot.endpoint(id).is_some_and(|it| it.state() == state)
        };
        let code = if is_stalled { Code::StallError } else { Code::UsbTransactionError };
        let Some(slot) =
            slots_at(&self.slots, path.port).into_iter().find(|&slot| is_so(slot, EndpointState::Running))
        else {
            // A stopped endpoint answers a proposal with NoStream, which a device may answer with
            // STALL.
            let stopped = slots_at(&self.slots, path.port)
                .into_iter()
                .find(|&slot| is_so(slot, EndpointState::Stopped));
            if let Some(endpoint) = stopped.and_then(|slot| self.slots[usize::from(slot)].endpoint_mut(id)) {
                endpoint.halted_by = Some(code);
            }
            return;
        };
        let to = RingName { slot, endpoint: id, stream: 0 };
        let done = self.fail(now, memory, (to, None), (code, EndpointState::Halted));
        self.survive(done);
    }

    /// Fails the endpoint: posts an event for the current TRB and saves the ring position.
    pub(super) fn fail(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        (to, emit): (RingName, Option<EventFields>),
        (code, state): (Code, EndpointState),
    ) -> Result<(), Fault> {
        let nowhere = EventFields { pointer: 0, length: 0, code, event_data: false };
        let emit = emit.or_else(|| self.ring_mut(to)?.here(code)).unwrap_or(nowhere);
        self.post(now, emit.event(to.slot, to.endpoint));
        self.unwind(to.which());
        if let Some(endpoint) = self.slots[usize::from(to.slot)].endpoint_mut(to.endpoint) {
            endpoint.enter(state);
        }
        self.save(memory, to.which())
    }

    /// Unqueues the TDs of an endpoint and drops its scheduled fetches.
    pub(super) fn unwind(&mut self, (number, id): (u8, EndpointId)) {
        self.fetches.retain(|fetch| fetch.to.which() != (number, id));
        let slot = &mut self.slots[usize::from(number)];
        let path = slot.path;
        let Some(endpoint) = slot.endpoint_mut(id) else { return };
        let has_any = endpoint.rings.iter().any(|ring| ring.on_link > 0);
        endpoint.rings.iter_mut().for_each(Ring::unwind);
        if let Some(address) = endpoint.address().filter(|_| has_any && endpoint.is_on_link) {
            self.outputs.push_back(Output::Link(path, LinkAct::Clear(address)));
        }
    }

    /// Stops a quiet endpoint: reports its partial TDs (clause 4.6.9).
    pub(super) fn stopped(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        which: (u8, EndpointId),
    ) -> Result<(), Fault> {
        let is_new = self.model.version >= 0x0100;
        let Some(endpoint) = self.slots[usize::from(which.0)].endpoint_mut(which.1) else { return Ok(()) };
        let has_streams = endpoint.streams.is_some();
        let mut reported = Vec::new();
        for ring in &endpoint.rings {
            match ring.first() {
                Some(td) if td.moved > 0 => reported.extend(ring.here(Code::Stopped)),
                // Controllers from version 1.0 on report their position even if nothing has moved.
                Some(_) if is_new && !has_streams => {
                    let code = Code::StoppedLengthInvalid;
                    reported.extend(ring.here(code).map(|emit| EventFields { length: 0, ..emit }));
                }
                _ => {}
            }
        }
        endpoint.enter(EndpointState::Stopped);
        if core::mem::take(&mut self.script.loses_stopped) {
            reported.clear();
        }
        for emit in reported {
            self.post(now, emit.event(which.0, which.1));
        }
        self.unwind(which);
        self.save(memory, which)?;
        self.forget(which);
        Ok(())
    }

    /// Drops the cycle bits of a stopped endpoint on controllers with that deviation.
    pub(super) fn forget(&mut self, (slot, endpoint): (u8, EndpointId)) {
        if !self.model.misbehaviour.forgets_cycles {
            return;
        }
        let endpoint = self.slots[usize::from(slot)].endpoint_mut(endpoint);
        for ring in
            endpoint.filter(|endpoint| endpoint.streams.is_some()).iter_mut().flat_map(|e| &mut e.rings)
        {
            ring.restart(Cursor { cycle: true, ..ring.stands() });
        }
    }

    /// Returns the endpoint of a transfer on the link. `None` for a foreign id.
    pub fn endpoint_of(transfer: TransferId) -> Option<EndpointAddress> {
        let number = RingName::of(transfer)?.0.endpoint.get();
        let direction = if number.is_multiple_of(2) { Direction::Out } else { Direction::In };
        EndpointAddress::new(number / 2, direction)
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
        match find_td(&self.slots, transfer) {
            Some((ring, place)) => read_td(memory, ring, place, into),
            None => Ok(()),
        }
    }

    /// Returns the bytes of OUT payload; copied to `scratch` if they are not contiguous.
    pub fn bytes<'a>(
        &'a self,
        memory: &'a impl GuestMemory,
        piece: PacketPayload,
        scratch: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        let found = find_td(&self.slots, piece.transfer);
        let found = found.and_then(|(ring, place)| Some((ring, place, ring.td(place)?.base + piece.offset)));
        let Some((ring, td, offset)) = found else { return &[] };
        let wanted = u32::from(piece.bytes);
        if let Some((Act::Move(buffer), within, bytes)) = ring.run(td, offset, wanted)
            && bytes == wanted
            && let Some(borrowed) = memory.borrow(buffer.wrapping_add(within.into()), bytes as usize)
        {
            return borrowed;
        }
        scratch.clear();
        gather(memory, ring, td, (offset, wanted), scratch);
        scratch
    }

    /// Reads the payload of an OUT packet from memory. Returns how long it comes after `now`: when
    /// memory is busy, and for a page whose TRB was not prefetched.
    #[inline(always)]
    pub fn read_payload(&mut self, now: Instant, piece: PacketPayload) -> Duration {
        self.dma.read(now, &self.model, piece.bytes.into()) + pause_for_trb(&self.model, &self.slots, piece)
    }

    /// Returns how long payload from the bus waits for room in the controller's buffer.
    #[inline(always)]
    pub fn buffer_wait(&self, now: Instant) -> Duration {
        self.dma.full_for(now, &self.model)
    }
}

/// Returns the pause before a page whose TRB was not prefetched.
fn pause_for_trb(model: &Model, slots: &[Slot], piece: PacketPayload) -> Duration {
    if model.next_trb_out == Duration::ZERO {
        return Duration::ZERO;
    }
    let found = find_td(slots, piece.transfer);
    let at = found.and_then(|(ring, place)| Some(ring.td(place)?.base + piece.offset));
    match at.filter(|at| *at >= READ_AHEAD_BYTES && at.is_multiple_of(PAGE_BYTES)) {
        Some(_) => model.next_trb_out,
        None => Duration::ZERO,
    }
}

/// Returns the ring of an outstanding TD, and the place of the TD there.
fn find_td(slots: &[Slot], transfer: TransferId) -> Option<(&Ring, usize)> {
    let (to, number) = RingName::of(transfer)?;
    let endpoint = slots.get(usize::from(to.slot))?.endpoint(to.endpoint)?;
    let ring = endpoint.rings.get(usize::from(to.stream))?;
    let is_first = ring.first().is_some_and(|td| td.number == number);
    let place = if is_first { 0 } else { ring.tds().position(|td| td.number == number)? };
    Some((ring, place))
}

/// Reads the bytes of a TD that have not moved, as many as `into` has room for.
fn read_td(memory: &impl GuestMemory, ring: &Ring, place: usize, into: &mut [u8]) -> Result<(), Fault> {
    let Some(td) = ring.td(place) else { return Ok(()) };
    let (mut offset, mut rest) = (td.base, into);
    while !rest.is_empty() {
        let Some((act, within, length)) = ring.run(place, offset, rest.len() as u32) else { break };
        let (now, later) = rest.split_at_mut(length as usize);
        read_piece(memory, act, within, now)?;
        (rest, offset) = (later, offset + length);
    }
    Ok(())
}

/// Reads the bytes of one TRB from `within` on; a TRB that moves none leaves `into` as it is.
fn read_piece(memory: &impl GuestMemory, act: Act, within: u32, into: &mut [u8]) -> Result<(), Fault> {
    match act {
        Act::Move(buffer) | Act::ControlData(buffer, _) => {
            memory.read_bytes(buffer.wrapping_add(within.into()), into)?;
        }
        Act::Send(bytes) => {
            let within = within as usize;
            let immediate = bytes.get(within..within + into.len()).unwrap_or(&[]);
            into[..immediate.len()].copy_from_slice(immediate);
        }
        _ => {}
    }
    Ok(())
}

/// Writes received data to the buffers of the first TD.
#[inline(always)]
pub(super) fn scatter(
    memory: &mut impl GuestMemory,
    ring: &Ring,
    mut at: u32,
    mut bytes: &[u8],
) -> Result<(), Fault> {
    while !bytes.is_empty() {
        let Some((act, within, len)) = ring.run(0, at, bytes.len() as u32) else { return Ok(()) };
        let (now, later) = bytes.split_at(len as usize);
        if let Act::Move(buffer) | Act::ControlData(buffer, Direction::In) = act {
            memory.write(buffer.wrapping_add(within.into()), now)?;
        }
        (bytes, at) = (later, at + len);
    }
    Ok(())
}

/// Reads OUT data of a TD. Missing memory reads as empty.
pub(super) fn gather(
    memory: &impl GuestMemory,
    ring: &Ring,
    td: usize,
    (mut at, mut left): (u32, u32),
    into: &mut Vec<u8>,
) {
    while left > 0 {
        let Some((act, within, len)) = ring.run(td, at, left) else { return };
        let from = into.len();
        into.resize(from + len as usize, 0);
        if read_piece(memory, act, within, &mut into[from..]).is_err() {
            into.truncate(from);
        }
        (at, left) = (at + len, left - len);
    }
}
