//! An endpoint that is held, and one that begins anew with its numbers (xHCI 1.2 clauses 4.6.6, 4.6.8 and 4.10.2).
//!
//! Who is told of a failed transfer clears the endpoint at the device, which then counts its packets from 0 (USB 3.2 clause
//! 9.4.5). The controller has to do so as well, and until both do nothing may move. After a halt Reset Endpoint sees to it. A
//! failure that did not halt, as by a code that nobody knows or by a TRB that was refused, leaves the controller with its
//! numbers; only Configure Endpoint, which drops the endpoint and adds it, begins anew with them then. Its rings stay.
//!
//! Always true: what lies on the rings of an endpoint that is dropped and added has not begun, so nothing moves twice.

use super::{Endpoint, Ring, TdState};
use crate::hardware::DmaMemory;
use crate::retire::Recovery;
use crate::ring::Position;
use alloc::vec::Vec;
use bus::{Completion, TransferStatus};
use wire::xhci::StreamContext;

/// Whether doorbells wait for somebody to clear the endpoint at the device. What went there before would be refused, or move
/// under a sequence number that is about to begin anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// They do not.
    Free,
    /// They do; what state the controller has the endpoint in is being found out.
    Unsure,
    /// They do; it was stopped, and goes on with its numbers.
    Kept,
    /// They do; it was halted, and Reset Endpoint has begun anew with its numbers.
    Anew,
}

impl Endpoint {
    /// Whether somebody was told of a failure and has not cleared it.
    pub(crate) fn is_held(&self) -> bool {
        self.hold != Hold::Free
    }

    /// A transfer was told as failed, which takes `recovery`. The control endpoint's halt ends with the next SETUP.
    pub(super) fn hold_after(&mut self, recovery: Recovery) {
        let fails = matches!(recovery, Recovery::Reset | Recovery::Stop | Recovery::MoveDequeue);
        if fails && self.plan.is_some() {
            self.hold = Hold::Unsure;
        }
    }

    /// It has stopped. If that was no halt, whatever may have begun ends as well: with other numbers nobody could go on in
    /// the middle of it.
    pub(super) fn end_begun(&mut self) -> Vec<Completion> {
        let mut ended = Vec::new();
        if self.hold != Hold::Unsure {
            return ended;
        }
        self.hold = Hold::Kept;
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

    /// Writes where its rings go on, for the controller to be given the endpoint once more.
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

    /// Has the controller told where those rings of its streams stand that it would take for being on another lap
    /// ([`crate::Quirks::forgets_cycles`]). A transfer that has begun begins anew by that; those that need it move transfers whole.
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
