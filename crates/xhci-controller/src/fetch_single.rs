//! Fast path for a TD of one TRB that is alone on its ring: fetch, queue on the link, progress,
//! event.
//!
//! Equivalent to [`super::transfer`] for the common case, in little code. Invariant: in every other
//! case it changes nothing and leaves the TD to the general path.

use super::memory::GuestMemory;
use super::output::{LinkAct, Output};
use super::ring::{Act, EventFields, Found};
use super::slot::RingName;
use super::transfer::Transfers;
use bus::link::{End, Progress, Transfer};
use bus::{Pipe, StreamId};
use units::Instant;
use wire::xhci::{CompletionCode as Code, TrbFlags};

/// Progress of a TD of one TRB that was alone on its ring.
pub(super) enum SingleProgress {
    /// Data has moved.
    Moved,
    /// The TD is complete, and there is no other.
    Completed,
    /// The TD is complete, and the ring may have another.
    Refill(RingName),
}

impl Transfers {
    /// Fetches such a TD and queues it on the link. Returns whether the ring is done: nothing new,
    /// or such a TD.
    #[inline]
    pub(super) fn fetch_single(&mut self, now: Instant, memory: &impl GuestMemory, to: RingName) -> bool {
        let Self { slots, events, outputs, failing, model, dma, .. } = self;
        if events.notes.is_taking() || !failing.is_empty() {
            return false;
        }
        let Some(slot) = slots.get_mut(to.slot) else { return false };
        let path = slot.path;
        let Some(endpoint) = slot.endpoint_mut(to.endpoint).filter(|endpoint| endpoint.is_on_link) else {
            return false;
        };
        let (rules, address) = (endpoint.rules(model), endpoint.address());
        let Some(ring) = endpoint.rings.get_mut(usize::from(to.stream)).filter(|ring| ring.is_loaded) else {
            return false;
        };
        let (Some(address), Some(_)) = (address, rules.direction) else { return false };
        if events.ring.is_full() {
            return false;
        }
        match ring.fetch_single(memory, rules, model.tds_ahead) {
            Some(Found::Td(trbs)) => dma.read_trbs(now, model, trbs),
            found => return found == Some(Found::Nothing),
        }
        if let Some(td) = ring.td(ring.on_link as usize) {
            let transfer = Transfer { id: to.transfer(td.number), bytes: td.bytes };
            let pipe = Pipe { endpoint: address, stream: StreamId::new(to.stream) };
            outputs.push_back(Output::Link(path, LinkAct::Queue(pipe, transfer)));
            ring.on_link += 1;
        }
        true
    }

    /// Handles progress like [`Transfers::handle_progress`]. `None` if it is not of such a TD, or
    /// halts the endpoint.
    #[inline]
    pub(super) fn progress_single(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        progress: &Progress,
        bytes: &[u8],
    ) -> Option<SingleProgress> {
        let is_short = progress.ended == Some(End::Short);
        let is_over = match progress.ended {
            None => false,
            Some(End::Full | End::Short) => true,
            Some(_) => return None,
        };
        let (to, number) = RingName::of(progress.id)?;
        let Self { slots, events, failing, model, dma, counters, .. } = self;
        let endpoint = slots.endpoint_mut(to.endpoint_name())?;
        let ring = endpoint.rings.get_mut(usize::from(to.stream)).filter(|ring| ring.on_link > 0)?;
        let td = ring.last_step_mut().filter(|td| td.number == number)?;
        let (moved, step) = (td.base + progress.moved, td.step);
        let within = td.moved - (td.bytes - step.length);
        if is_over && !is_short && moved < td.bytes {
            return None;
        }
        if progress.piece.is_some() {
            let Act::Move(buffer) = step.act else { return None };
            let came = (moved - td.moved).min(bytes.len() as u32);
            if came > step.length - within {
                return None;
            }
            memory.write(buffer + u64::from(within), bytes.get(..came as usize)?).ok()?;
            dma.write(now, model, bytes.len());
        }
        td.moved = moved;
        if !is_over {
            return Some(SingleProgress::Moved);
        }
        let is_reported = step.flags.has(TrbFlags::INTERRUPT_ON_COMPLETION)
            || is_short && step.flags.has(TrbFlags::INTERRUPT_ON_SHORT);
        if is_reported {
            let (code, length) =
                if is_short { (Code::ShortPacket, td.bytes - moved) } else { (Code::Success, 0) };
            let emit = EventFields { pointer: step.at.at, length, code, event_data: false };
            events.post(dma.write_event(now, model), emit.event(to.slot, to.endpoint));
        }
        ring.pop();
        ring.on_link -= 1;
        counters.tds += 1;
        let is_calm = failing.is_empty() && ring.has_nothing_new(memory) == Ok(true);
        Some(if is_calm { SingleProgress::Completed } else { SingleProgress::Refill(to) })
    }
}
