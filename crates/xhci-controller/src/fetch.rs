//! TD fetch: read, check and queue on the link, as many per ring as the controller prefetches.
//!
//! A read returns the cache line of a TRB ([`super::dma::LINE_BYTES`]), and with it the following
//! TRBs that the driver had written by then. TRBs beyond the line, or written later, need another
//! read, which is hidden while the link has TDs of the ring. TRBs of a TD beyond its first line
//! arrive while it moves.
//!
//! Invariant: a TD is available at the same time on this path and in [`super::fetch_single`].

use super::checks::Rules;
use super::memory::{Fault, GuestMemory};
use super::output::{DevicePath, LinkAct, Output};
use super::ring::{Cursor, EventFields, Found, Ring};
use super::slot::RingName;
use super::transfer::Transfers;
use alloc::collections::VecDeque;
use bus::link::Transfer;
use bus::{Pipe, StreamId};
use units::Instant;
use wire::usb::EndpointAddress;
use wire::xhci::{CompletionCode as Code, EndpointState};

/// Maximum TDs of a control transfer: setup, data, status.
const CONTROL_STAGES: usize = 3;

/// No-op TDs passed in a row before waiting for the next doorbell.
const TDS_PASSED_MAX: u32 = 4096;

impl Transfers {
    /// Fetches TDs of a ring and queues them on the link.
    #[inline]
    pub(super) fn refill(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        to: RingName,
    ) -> Result<(), Fault> {
        if self.fetch_single(now, memory, to) { Ok(()) } else { self.fetch_all(now, memory, to) }
    }

    #[inline(never)]
    fn fetch_all(&mut self, now: Instant, memory: &mut impl GuestMemory, to: RingName) -> Result<(), Fault> {
        // Each round passes at least one no-op TD, and rings are finite; the bound is for invalid
        // rings.
        for _ in 0..TDS_PASSED_MAX {
            let slot = &mut self.slots[to.slot];
            let path = slot.path;
            let Some(endpoint) = slot.endpoint_mut(to.endpoint) else { return Ok(()) };
            if let Err(code) = endpoint.load(memory, to.stream)? {
                return self.fail(now, memory, to, code, EndpointState::Halted);
            }
            let rules = endpoint.rules(&self.model);
            let address = endpoint.address().filter(|_| endpoint.is_on_link);
            let target = LinkTarget { to, path, address };
            let ring = &mut endpoint.rings[usize::from(to.stream)];
            // Control stages start together (clause 4.11.2.2), regardless of the prefetch limit.
            let ahead = match rules.direction {
                Some(_) => self.model.tds_ahead,
                None => self.model.tds_ahead.max(CONTROL_STAGES),
            };
            let room = if self.events.ring.is_full() { 0 } else { ahead.saturating_sub(ring.count()) };
            let end = fetch_tds(ring, memory, rules, room, |ring, from, trbs| {
                self.dma.read_trbs(now, &self.model, trbs);
                self.events.notes.td(now, memory, to, from, ring.next());
            })?;
            let has_passed = if rules.direction.is_none() {
                self.start_control(now, memory, to)?
            } else if !self.failing.is_empty() && ring.first().is_some() {
                let code = self.failing.pop_front().unwrap_or(Code::UsbTransactionError);
                return self.fail(now, memory, to, code, EndpointState::Halted);
            } else {
                give_to_link(ring, target, &mut self.outputs, |emit| {
                    let at = self.dma.write_event(now, &self.model);
                    self.events.post(at, emit.event(to.slot, to.endpoint));
                })
            };
            match end {
                FetchEnd::All => {}
                FetchEnd::Line => self.read_on(now, to),
                FetchEnd::Broken(at) => return self.report_broken(now, memory, to, at),
            }
            if !has_passed {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Schedules a read beyond the current line, unless one is pending.
    fn read_on(&mut self, now: Instant, to: RingName) {
        if !self.fetches.has(to) {
            self.fetches.schedule(now + self.model.attachment.memory_read, to);
        }
    }

    /// Reports an invalid TRB after the TDs before it.
    #[cold]
    fn report_broken(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        to: RingName,
        broken: Cursor,
    ) -> Result<(), Fault> {
        if self.slots.ring_mut(to).is_none_or(|ring| ring.first().is_some()) {
            return Ok(());
        }
        let emit = EventFields { pointer: broken.at, length: 0, code: Code::TrbError, event_data: false };
        self.fail_with(now, memory, to, emit, EndpointState::Error)
    }
}

/// A ring and its endpoint on the link, if it is there.
#[derive(Clone, Copy)]
struct LinkTarget {
    to: RingName,
    path: DevicePath,
    address: Option<EndpointAddress>,
}

/// Why a fetch ended.
enum FetchEnd {
    /// No more TDs, or the limit is reached.
    All,
    /// The next TRB was not in the line that was read.
    Line,
    /// An invalid TRB.
    Broken(Cursor),
}

/// Fetches at most `room` TDs of a ring. Calls `taken` for each with its position and TRBs.
fn fetch_tds(
    ring: &mut Ring,
    memory: &impl GuestMemory,
    rules: Rules,
    room: usize,
    mut taken: impl FnMut(&Ring, Cursor, u32),
) -> Result<FetchEnd, Fault> {
    for _ in 0..room {
        // Control stages start together: the bus time of SETUP hides the read of the others.
        let has_line = ring.has_line || rules.direction.is_none();
        if !has_line && ring.has_more(memory)? {
            return Ok(FetchEnd::Line);
        }
        let from = ring.next();
        match ring.fetch(memory, rules)? {
            Found::Td(trbs) => taken(ring, from, trbs),
            Found::Nothing => break,
            Found::Broken(at) => return Ok(FetchEnd::Broken(at)),
        }
    }
    if room > 0 {
        ring.has_line &= ring.has_more(memory)?;
    }
    Ok(FetchEnd::All)
}

/// Queues TDs on the link; completes no-op TDs. Returns whether there were any.
#[inline(always)]
fn give_to_link(
    ring: &mut Ring,
    LinkTarget { to, path, address }: LinkTarget,
    outputs: &mut VecDeque<Output>,
    mut emit: impl FnMut(EventFields),
) -> bool {
    let mut has_passed = false;
    loop {
        let Some(td) = ring.td_mut(ring.on_link as usize) else { return has_passed };
        if td.moves {
            let Some(endpoint) = address else { return has_passed };
            td.base = td.moved;
            let transfer = Transfer { id: to.transfer(td.number), bytes: td.bytes - td.moved };
            let pipe = Pipe { endpoint, stream: StreamId::new(to.stream) };
            outputs.push_back(Output::Link(path, LinkAct::Queue(pipe, transfer)));
            ring.on_link += 1;
        } else if ring.on_link == 0 {
            ring.advance(0, true, &mut emit);
            has_passed = true;
        } else {
            return has_passed;
        }
    }
}
