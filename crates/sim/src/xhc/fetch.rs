//! TDs are fetched: read, checked, and given to the link, as many of a ring as a controller fetches
//! at once.
//!
//! A read brings the line of a cache that a TRB is in ([`super::dma::LINE_BYTES`]), and with it the
//! TRBs behind that one that the driver had written by then. What lies behind the line, or was
//! written since, takes a separate read, of which no one feels anything while the link has TDs of
//! the ring. TRBs of a TD that lie behind the line in which it begins come while that moves.
//!
//! Invariants: whether [`super::alone`] takes a TD on or this, it is there at the same time.

use super::checks::Rules;
use super::controller::Controller;
use super::memory::{Fault, Memory};
use super::output::{DevicePath, LinkAct, Output};
use super::ring::{Cursor, EventFields, Found, Ring};
use super::transfer::RingName;
use crate::link::bulk::Transfer;
use bus::{Pipe, StreamId};
use std::collections::VecDeque;
use units::Instant;
use wire::usb::EndpointAddress;
use wire::xhci::{CompletionCode as Code, EndpointState};

/// TDs of a control transfer at most: setup, data, status.
const CONTROL_STAGES: usize = 3;

/// TDs that move nothing, passed in a row before the next doorbell is waited for.
const TDS_PASSED_MAX: u32 = 4096;

impl Controller {
    /// Takes on TDs of a ring, as many as it takes at once, and gives them to the link.
    #[inline]
    pub(super) fn refill(&mut self, now: Instant, memory: &mut Memory, to: RingName) -> Result<(), Fault> {
        if self.fetch_single(now, memory, to) { Ok(()) } else { self.fetch_all(now, memory, to) }
    }

    #[inline(never)]
    fn fetch_all(&mut self, now: Instant, memory: &mut Memory, to: RingName) -> Result<(), Fault> {
        // Each round passes at least one TD that moves nothing, and rings have an end; the bound is
        // for what lies.
        for _ in 0..TDS_PASSED_MAX {
            let slot = &mut self.slots[usize::from(to.slot)];
            let path = slot.path;
            let Some(endpoint) = slot.endpoint_mut(to.endpoint) else { return Ok(()) };
            if let Err(code) = endpoint.load(memory, to.stream)? {
                return self.fail(now, memory, (to, None), (code, EndpointState::Halted));
            }
            let rules = endpoint.rules(self.part.version);
            let address = endpoint.address().filter(|_| endpoint.is_on_link);
            let ring = &mut endpoint.rings[usize::from(to.stream)];
            // The stages of a control transfer begin together (clause 4.11.2.2), whatever is
            // fetched at once elsewhere.
            let ahead = match rules.direction {
                Some(_) => self.part.tds_ahead,
                None => self.part.tds_ahead.max(CONTROL_STAGES),
            };
            let room = if self.events.ring.is_full() { 0 } else { ahead.saturating_sub(ring.count()) };
            let end = fetch_tds(ring, memory, (rules, room), |ring, from, trbs| {
                self.dma.read_trbs(now, &self.part, trbs);
                self.events.notes.td(now, memory, to, (from, ring.next()));
            })?;
            let has_passed = if rules.direction.is_none() {
                self.start_control(now, memory, to)?
            } else if !self.script.transfers.is_empty() && ring.first().is_some() {
                let code = self.script.transfers.pop_front().unwrap_or(Code::UsbTransactionError);
                return self.fail(now, memory, (to, None), (code, EndpointState::Halted));
            } else {
                give_to_link((to, ring), (path, address), &mut self.outputs, |emit| {
                    let at = self.dma.write_event(now, &self.part);
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

    /// What is behind the line at hand is read, unless a read of the ring is in flight.
    fn read_on(&mut self, now: Instant, to: RingName) {
        if self.fetches.iter().all(|fetch| fetch.to != to) {
            self.look_at(now + self.part.attachment.memory_read, to);
        }
    }

    /// A TRB that is none ends what is before it first.
    #[cold]
    fn report_broken(
        &mut self,
        now: Instant,
        memory: &mut Memory,
        to: RingName,
        broken: Cursor,
    ) -> Result<(), Fault> {
        if self.ring_mut(to).is_none_or(|ring| ring.first().is_some()) {
            return Ok(());
        }
        let emit = EventFields { pointer: broken.at, length: 0, code: Code::TrbError, event_data: false };
        self.fail(now, memory, (to, Some(emit)), (Code::TrbError, EndpointState::Error))
    }
}

/// What ended it that TDs were fetched.
enum FetchEnd {
    /// There are no more, or no more are to be.
    All,
    /// The next one did not come with the line that was read.
    Line,
    /// A TRB that is none.
    Broken(Cursor),
}

/// Takes on so many TDs of a ring at most, and reports `taken` of each: where it begins, and its
/// TRBs.
fn fetch_tds(
    ring: &mut Ring,
    memory: &Memory,
    (rules, room): (Rules, usize),
    mut taken: impl FnMut(&Ring, Cursor, u32),
) -> Result<FetchEnd, Fault> {
    for _ in 0..room {
        // Stages of a control transfer begin together: what the setup packet fetches the bus hides
        // the read of the others.
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

/// Gives the link what it does not have yet; what moves nothing ends where it is met. Whether there
/// was such.
#[inline(always)]
fn give_to_link(
    (to, ring): (RingName, &mut Ring),
    (path, address): (DevicePath, Option<EndpointAddress>),
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
