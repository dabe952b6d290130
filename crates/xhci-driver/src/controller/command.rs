//! The command ring: what is asked of the controller, and who waits for the answer (xHCI 1.2 clause
//! 4.6).
//!
//! Commands are answered in order. One that is not answered in [`COMMAND_TIMEOUT`] is aborted; if
//! the ring does not stop then, the controller is given up. Always true: an endpoint and a device
//! have one command in flight at most, so what waits here is bounded by how many of these there
//! are.

use crate::hardware::Hardware;
use crate::limit::{ABORT_TIMEOUT, COMMAND_RING_TRBS, COMMAND_TIMEOUT, COMMANDS_MAX};
use crate::ring::{ProducerRing, Put, RingShape};
use crate::types::RequestId;
use alloc::collections::VecDeque;
use units::Instant;
use wire::xhci::{CommandTrb, EndpointId};

/// The purpose of a command, which determines who gets its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A slot for a device at this place in the list of those that wait.
    EnableSlot(RequestId),
    Address(u8),
    /// The device's address again, after [`Purpose::ResetDevice`].
    Readdress(u8),
    ControlPacket(u8, u16),
    ExitLatency(u8, u16),
    Configure(u8),
    /// Drop and add of one endpoint.
    Renew(u8, EndpointId),
    ResetDevice(u8),
    DisableSlot(u8),
    Stop(u8, EndpointId),
    ResetEndpoint(u8, EndpointId),
    Move(u8, EndpointId),
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    address: u64,
    purpose: Purpose,
}

#[derive(Debug)]
pub(crate) struct Commands {
    ring: ProducerRing,
    pending: VecDeque<Pending>,
    waiting: VecDeque<(CommandTrb, Purpose)>,
    /// Until when the first one is to be answered; or, while it is aborted, until when the ring is
    /// to stop.
    deadline: Option<Instant>,
    is_aborting: bool,
    /// The oldest command was given up before and is still not answered.
    was_aborted: bool,
}

impl Commands {
    pub(crate) fn allocate(hw: &mut impl Hardware, chained_links: bool) -> Option<Self> {
        let shape = RingShape { segments: 1, trbs: COMMAND_RING_TRBS, chained_links };
        let ring = ProducerRing::allocate(hw, shape)?;
        let (pending, waiting) = (VecDeque::new(), VecDeque::new());
        Some(Self { ring, pending, waiting, deadline: None, is_aborting: false, was_aborted: false })
    }

    pub(crate) fn release(&mut self, hw: &mut impl Hardware) {
        self.ring.release(hw);
    }

    /// Where the ring begins.
    pub(crate) fn start(&self) -> u64 {
        self.ring.address(0)
    }

    /// Whether the command is aborted that would have to be answered.
    pub(crate) fn is_aborting(&self) -> bool {
        self.is_aborting
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Queues a command, and returns whether the doorbell has to be written.
    pub(crate) fn submit(
        &mut self,
        hw: &mut impl Hardware,
        now: Instant,
        command: CommandTrb,
        purpose: Purpose,
    ) -> bool {
        self.waiting.push_back((command, purpose));
        self.fill(hw, now)
    }

    fn fill(&mut self, hw: &mut impl Hardware, now: Instant) -> bool {
        let mut filled = false;
        while self.pending.len() < COMMANDS_MAX && self.ring.room() > 0 && !self.is_aborting {
            let Some((command, purpose)) = self.waiting.pop_front() else { break };
            let address = self.ring.address(self.ring.enqueue().index);
            self.ring.put(hw, |cycle| command.encode(cycle), Put::default());
            self.pending.push_back(Pending { address, purpose });
            filled = true;
        }
        if filled && self.deadline.is_none() {
            self.deadline = Some(now + COMMAND_TIMEOUT);
        }
        filled
    }

    /// Completes the command at this address: returns its purpose, and whether the doorbell has to
    /// be written. `None` if it is not the oldest one, which no correct controller completes.
    pub(crate) fn answered(
        &mut self,
        hw: &mut impl Hardware,
        now: Instant,
        address: u64,
    ) -> Option<(Purpose, bool)> {
        let answered = self.pending.pop_front_if(|pending| pending.address == address)?;
        self.ring.give_back(1);
        self.was_aborted = false;
        if !self.is_aborting {
            self.deadline = (!self.pending.is_empty()).then(|| now + COMMAND_TIMEOUT);
        }
        Some((answered.purpose, self.fill(hw, now)))
    }

    /// The oldest command is to be aborted; the ring is to stop in time. Whether that is of use: a
    /// command that outlives one abort, which some controllers carry out without an answer,
    /// outlives the next as well.
    pub(crate) fn abort(&mut self, now: Instant) -> bool {
        if self.is_aborting || self.was_aborted {
            return false;
        }
        (self.is_aborting, self.was_aborted, self.deadline) = (true, true, Some(now + ABORT_TIMEOUT));
        true
    }

    /// Handles the stop of the ring, and returns whether the doorbell has to be written.
    pub(crate) fn stopped(&mut self, hw: &mut impl Hardware, now: Instant) -> bool {
        self.is_aborting = false;
        self.deadline = (!self.pending.is_empty()).then(|| now + COMMAND_TIMEOUT);
        self.fill(hw, now) || !self.pending.is_empty()
    }
}
