//! Moving the data of one plan between the host and the medium, in segments.
//!
//! In: all segments are asked of the medium at once, and handed to the host in order as they come. Out: all
//! segments are asked of the host at once, and handed to the medium as they come. After a failure nothing more is
//! asked of the medium, an In phase ends early, and an Out phase is received to its end, so that the host never
//! waits. Operations that need their whole payload at once have one segment.

use crate::lun::{DataPhase, MediumPlan, Plan};
use crate::medium::{MediumDone, MediumOp};
use alloc::boxed::Box;
use units::{ByteRange, Extent};

/// Segments that one command may have: a bit each in a word.
const SEGMENTS_MAX: u32 = 64;

/// Segments are cut at multiples of this, so that each holds whole blocks and whole packets.
const SEGMENT_UNIT_BYTES: u32 = 4096;

/// The state of one plan's movement.
#[derive(Debug)]
pub(super) struct Movement {
    pub(super) plan: MediumPlan,
    segment_bytes: u32,
    segments: u32,
    block_bytes: u32,
    /// The medium request number of segment 0.
    first_part: u16,
    /// A bit per segment that the medium has finished.
    finished: u64,
    /// Segments given to the host (In), or received from it (Out).
    pub(super) crossed: u32,
    /// Segments handed to the transport.
    pub(super) handed: u32,
    /// Requests that the medium works on.
    pub(super) outstanding: u16,
    /// Boxed, since most movements have none.
    pub(super) failure: Option<Box<Plan>>,
    pub(super) done: MediumDone,
}

impl Movement {
    pub(super) fn new(plan: MediumPlan, segment_bytes: u32, block_bytes: u32, first_part: u16) -> Self {
        let whole = plan.bytes.max(1);
        let cut = match plan.op {
            MediumOp::Read | MediumOp::Write { .. } | MediumOp::Compare | MediumOp::Or { .. }
                if matches!(plan.data, DataPhase::In | DataPhase::Out) =>
            {
                let least = whole.div_ceil(SEGMENTS_MAX).next_multiple_of(SEGMENT_UNIT_BYTES);
                least.max(segment_bytes.next_multiple_of(SEGMENT_UNIT_BYTES))
            }
            _ => whole,
        };
        Self {
            plan,
            segment_bytes: cut,
            segments: if whole <= cut { 1 } else { whole.div_ceil(cut) },
            block_bytes,
            first_part,
            finished: 0,
            crossed: 0,
            handed: 0,
            outstanding: 0,
            failure: None,
            done: MediumDone::Done,
        }
    }

    pub(super) const fn segments(&self) -> u32 {
        self.segments
    }

    /// The bytes of a segment.
    pub(super) fn range(&self, segment: u32) -> ByteRange {
        let start = segment * self.segment_bytes;
        ByteRange::new(start, self.segment_bytes.min(self.plan.bytes - start.min(self.plan.bytes)))
    }

    /// The blocks of a segment.
    pub(super) fn extent(&self, segment: u32) -> Extent {
        if self.segments == 1 {
            return self.plan.extent;
        }
        let range = self.range(segment);
        let (skip, blocks) = (range.start / self.block_bytes, range.len / self.block_bytes);
        Extent::new(self.plan.extent.lba.0 + u64::from(skip), u64::from(blocks))
    }

    /// The segment that starts at `start`.
    pub(super) const fn segment_at(&self, start: u32) -> u32 {
        if self.segments == 1 { 0 } else { start / self.segment_bytes }
    }

    pub(super) const fn part(&self, segment: u32) -> u16 {
        self.first_part.wrapping_add(segment as u16)
    }

    /// The segment of a medium request, if it is of this movement and not finished.
    pub(super) fn segment_of(&self, part: u16) -> Option<u32> {
        let segment = u32::from(part.wrapping_sub(self.first_part));
        (segment < self.segments && self.finished & 1 << segment == 0).then_some(segment)
    }

    pub(super) const fn finish(&mut self, segment: u32) {
        self.finished |= 1 << segment;
        self.outstanding -= 1;
    }

    /// In: the next segment that may go to the host.
    pub(super) fn next_in(&mut self) -> Option<u32> {
        let next = self.handed;
        let ready = next < self.segments && self.finished & 1 << next != 0 && self.failure.is_none();
        ready.then(|| {
            self.handed += 1;
            next
        })
    }

    /// Whether nothing is left to wait for.
    pub(super) fn is_over(&self) -> bool {
        if self.outstanding > 0 {
            return false;
        }
        match (self.plan.data, &self.failure) {
            (DataPhase::None | DataPhase::Own, _) => true,
            (DataPhase::In, Some(_)) => self.crossed == self.handed,
            (DataPhase::In | DataPhase::Out, _) => self.crossed == self.segments,
        }
    }
}
