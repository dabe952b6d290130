//! DMA between a controller and memory over PCI Express, as busy times of each direction.
//!
//! Writes carry payload and event TRBs, in order. Reads carry OUT payload, TRBs and stream
//! contexts. TRB reads overtake payload reads: they use bandwidth but are not delayed. One read
//! returns all TRBs of a cache line ([`LINE_BYTES`]).
//!
//! Not modelled: device contexts, which are accessed on configuration, stop and failure; segment
//! tables; reads that find nothing. Invariant: nothing here is an event of the simulation.

use super::model::Model;
use units::{Duration, Instant};
use wire::xhci::{StreamContext, TRB_BYTES};

/// Granularity of TRB reads: the rest of a cache line, which is 64 bytes on x86 and most Arm, and
/// the minimum completion of a memory read (Read Completion Boundary, PCI Express 3.0 clause
/// 2.3.1.1).
pub(super) const LINE_BYTES: u64 = 64;

/// Until when each direction is busy.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Dma {
    written_at: Instant,
    read_at: Instant,
}

impl Dma {
    /// Occupies a direction for `bytes`. Returns when they are through.
    const fn occupy(at: &mut Instant, from: Instant, bytes: u64, byte_ps: u64) -> Instant {
        let from = if at.as_ps() > from.as_ps() { at.as_ps() } else { from.as_ps() };
        *at = Instant::from_ps(from + bytes * byte_ps);
        *at
    }

    /// Returns the earliest start of a transfer that the buffer can hide before `now`.
    const fn begun(now: Instant, model: &Model, byte_ps: u64) -> Instant {
        Instant::from_ps(now.as_ps().saturating_sub(model.buffer_bytes as u64 * byte_ps))
    }

    /// Writes payload to memory.
    #[inline(always)]
    pub(super) const fn write(&mut self, now: Instant, model: &Model, bytes: usize) {
        Self::occupy(&mut self.written_at, now, bytes as u64, model.attachment.inward_byte_ps);
    }

    /// Writes an event TRB behind earlier writes. Returns when it is visible.
    #[inline(always)]
    pub(super) fn write_event(&mut self, now: Instant, model: &Model) -> Instant {
        self.write(now, model, TRB_BYTES);
        self.written_at + model.attachment.memory_write
    }

    /// Returns when an event TRB is visible that is written at `at` on an idle path.
    pub(super) fn event_unqueued(at: Instant, model: &Model) -> Instant {
        let span = Duration::from_ps(TRB_BYTES as u64 * model.attachment.inward_byte_ps);
        at + span + model.attachment.memory_write
    }

    /// Returns how long the bus waits for buffer space.
    #[inline(always)]
    pub(super) fn full_for(&self, now: Instant, model: &Model) -> Duration {
        Self::begun(self.written_at, model, model.attachment.inward_byte_ps).since(now)
    }

    /// Reads OUT payload. Returns the additional delay.
    #[inline(always)]
    pub(super) fn read(&mut self, now: Instant, model: &Model, bytes: u64) -> Duration {
        let byte_ps = model.attachment.outward_byte_ps;
        Self::occupy(&mut self.read_at, Self::begun(now, model, byte_ps), bytes, byte_ps).since(now)
    }

    /// Reads `trbs` TRBs.
    #[inline(always)]
    pub(super) fn read_trbs(&mut self, now: Instant, model: &Model, trbs: u32) {
        self.read(now, model, u64::from(trbs) * TRB_BYTES as u64);
    }

    /// Reads a stream context.
    #[inline(always)]
    pub(super) fn read_stream_context(&mut self, now: Instant, model: &Model) {
        self.read(now, model, StreamContext::LEN as u64);
    }
}
