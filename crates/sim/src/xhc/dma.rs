//! The way between a controller and memory: what crosses PCI Express, as times until which each
//! direction is busy.
//!
//! To memory go payload and event TRBs, one behind the other. From memory come payload that goes
//! out, TRBs and contexts of streams. Reads of TRBs overtake those of payload: they take the lane
//! from it, and are not kept waiting. Of TRBs that lie in one line of a cache, the first brings the
//! others along ([`LINE_BYTES`]).
//!
//! Not modelled: device contexts, which are read when endpoints are made and written when they stop
//! or fail; segment tables; what is read in vain. Invariants: nothing here is an event of the
//! world.

use super::part::Part;
use units::{Duration, Instant};
use wire::xhci::{StreamContext, TRB_BYTES};

/// What a controller asks memory for when it wants a TRB: the rest of a line of a processor's
/// cache, which is 64 bytes on x86 and most of Arm, and what a memory read is answered in at the
/// least (Read Completion Boundary, PCI Express 3.0 clause 2.3.1.1).
pub(super) const LINE_BYTES: u64 = 64;

/// Until when memory is busy, either way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Dma {
    written_at: Instant,
    read_at: Instant,
}

impl Dma {
    /// Bytes are in flight for so long; when they are through.
    const fn occupy(at: &mut Instant, from: Instant, bytes: u64, byte_ps: u64) -> Instant {
        let from = if at.as_ps() > from.as_ps() { at.as_ps() } else { from.as_ps() };
        *at = Instant::from_ps(from + bytes * byte_ps);
        *at
    }

    /// So long before `now` payload may have begun to cross that is held until now.
    const fn begun(now: Instant, part: &Part, byte_ps: u64) -> Instant {
        Instant::from_ps(now.as_ps().saturating_sub(part.buffer_bytes as u64 * byte_ps))
    }

    /// Payload from the bus goes to memory.
    #[inline(always)]
    pub(super) const fn write(&mut self, now: Instant, part: &Part, bytes: usize) {
        Self::occupy(&mut self.written_at, now, bytes as u64, part.attachment.inward_byte_ps);
    }

    /// An event TRB goes to memory, behind what is in flight there. When it can be seen.
    #[inline(always)]
    pub(super) fn write_event(&mut self, now: Instant, part: &Part) -> Instant {
        self.write(now, part, TRB_BYTES);
        self.written_at + part.attachment.memory_write
    }

    /// An event TRB goes to memory at a time to come, when nothing else is in flight there.
    pub(super) fn event_unqueued(at: Instant, part: &Part) -> Instant {
        let span = Duration::from_ps(TRB_BYTES as u64 * part.attachment.inward_byte_ps);
        at + span + part.attachment.memory_write
    }

    /// How long the bus waits until there is room for more payload.
    #[inline(always)]
    pub(super) fn full_for(&self, now: Instant, part: &Part) -> Duration {
        Self::begun(self.written_at, part, part.attachment.inward_byte_ps).since(now)
    }

    /// Payload that goes out comes from memory. How much longer that takes.
    #[inline(always)]
    pub(super) fn read(&mut self, now: Instant, part: &Part, bytes: u64) -> Duration {
        let byte_ps = part.attachment.outward_byte_ps;
        Self::occupy(&mut self.read_at, Self::begun(now, part, byte_ps), bytes, byte_ps).since(now)
    }

    /// So many TRBs come from memory.
    #[inline(always)]
    pub(super) fn read_trbs(&mut self, now: Instant, part: &Part, trbs: u32) {
        self.read(now, part, u64::from(trbs) * TRB_BYTES as u64);
    }

    /// The context of a stream comes from memory.
    #[inline(always)]
    pub(super) fn read_stream_context(&mut self, now: Instant, part: &Part) {
        self.read(now, part, StreamContext::LEN as u64);
    }
}
