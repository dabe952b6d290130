//! Holding an endpoint after a failed transfer, and resetting its sequence numbers (xHCI 1.2
//! clauses 4.6.6, 4.6.8 and 4.10.2).
//!
//! After a failed transfer the host clears the endpoint at the device, which then restarts its
//! sequence numbers (USB 3.2 clause 9.4.5). The controller must restart its own as well, and until
//! both have nothing may move. After a halt, Reset Endpoint does so. After a failure without a halt
//! (an unknown code, a rejected TRB) the controller keeps its numbers; then only Configure
//! Endpoint, which drops and adds the endpoint, restarts them. Its rings stay.
//!
//! Always true: nothing on the rings of an endpoint that is dropped and added has started, so
//! nothing moves twice.

use super::{Endpoint, Ring, TdState};
use crate::hardware::DmaMemory;
use crate::retire::Recovery;
use crate::ring::Position;
use alloc::vec::Vec;
use bus::{Completion, TransferStatus};
use wire::xhci::StreamContext;

/// Whether doorbells wait until the endpoint is cleared at the device. Transfers started before
/// would be rejected, or move under a sequence number about to be reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndpointHold {
    /// They do not wait.
    None,
    /// They wait; the state of the endpoint at the controller is being determined.
    Unknown,
    /// They wait; the endpoint was stopped and keeps its sequence numbers.
    SequenceKept,
    /// They wait; the endpoint was halted, and Reset Endpoint has reset its sequence numbers.
    SequenceReset,
}

impl Endpoint {
    /// Returns whether a failure was reported and the endpoint not cleared yet.
    pub(crate) fn is_held(&self) -> bool {
        self.hold != EndpointHold::None
    }

    /// Holds the endpoint after a transfer failed. The halt of the control endpoint ends with the
    /// next SETUP.
    pub(super) fn hold_after(&mut self, recovery: Recovery) {
        let fails = matches!(recovery, Recovery::Reset | Recovery::Stop | Recovery::MoveDequeue);
        if fails && self.plan.is_some() {
            self.hold = EndpointHold::Unknown;
        }
    }

    /// Handles a stop. If it was no halt, transfers that may have started end as well: they could
    /// not continue with reset sequence numbers.
    pub(super) fn end_begun(&mut self) -> Vec<Completion> {
        let mut ended = Vec::new();
        if self.hold != EndpointHold::Unknown {
            return ended;
        }
        self.hold = EndpointHold::SequenceKept;
        for ring in &mut self.rings {
            for td in ring.tds.iter_mut().filter(|td| td.state == TdState::Live) {
                let (id, actual) = (td.id, td.noted.unwrap_or(0));
                ended.push(Completion { id, status: TransferStatus::Error, actual });
                td.state = TdState::Over;
                ring.must_move = true;
            }
        }
        ended
    }

    /// Writes the dequeue pointers of its rings, before the endpoint is added again.
    pub(crate) fn place_rings(&mut self, hw: &mut impl DmaMemory) {
        for (stream, ring) in (1..).zip(&self.rings) {
            let to = ring.next();
            let (dequeue, cycle) = (ring.ring.address(to.index), to.cycle);
            match &self.arrays {
                None => (self.context.dequeue, self.context.cycle) = (dequeue, cycle),
                Some(arrays) => {
                    let begun = StreamContext::ring(arrays.shape.context_type(), dequeue);
                    hw.write_bytes(arrays.context(stream), &StreamContext { cycle, ..begun }.encode());
                }
            }
        }
        (self.retries, self.lost_halts) = (0, 0);
    }

    /// Schedules Set TR Dequeue Pointer for stream rings whose cycle state the controller has lost
    /// ([`crate::Quirks::forgets_cycles`]). A started transfer restarts by that.
    pub(crate) fn remind(&mut self) {
        if self.arrays.is_none() {
            return;
        }
        for (number, ring) in (0..).zip(&self.rings) {
            let to = ring.next();
            if !to.cycle && self.moves.iter().all(|(moved, _)| *moved != number) {
                self.moves.push((number, to));
            }
        }
    }
}

impl Ring {
    /// Where the controller goes on: what is left, or where the next transfer will be.
    fn next(&self) -> Position {
        let left = self.tds.iter().find(|td| td.state != TdState::Over);
        left.map_or(self.ring.enqueue(), |td| td.first())
    }
}
