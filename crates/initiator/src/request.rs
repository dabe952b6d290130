//! The one request to the bus that a transport waits for.
//!
//! Always true: at most one is waited for; an answer that comes after its deadline, or for an earlier one, is not
//! taken for anything.

use crate::output::Outputs;
use crate::{BusRequest, Deadline, DeadlineReason, Output, RequestId};
use units::{Duration, Instant};

#[derive(Debug, Default)]
pub(crate) struct Requests {
    last: u32,
    waiting: Option<(BusRequest, Deadline)>,
}

impl Requests {
    /// Asks, and waits for so long.
    pub(crate) fn ask(&mut self, outputs: &mut Outputs, now: Instant, request: BusRequest, span: Duration) {
        self.last = self.last.wrapping_add(1);
        self.waiting = Some((request, Deadline { at: now + span, reason: reason(request) }));
        outputs.push_back(Output::Request(RequestId(self.last), request));
    }

    /// The request that this is the answer to, if it is waited for.
    pub(crate) fn take(&mut self, id: RequestId) -> Option<BusRequest> {
        if id != RequestId(self.last) {
            return None;
        }
        self.waiting.take().map(|(request, _)| request)
    }

    /// The request whose time is over.
    pub(crate) fn take_expired(&mut self, now: Instant) -> Option<BusRequest> {
        self.waiting.take_if(|(_, deadline)| deadline.at <= now).map(|(request, _)| request)
    }

    /// Waits no longer.
    pub(crate) const fn forget(&mut self) {
        self.waiting = None;
    }

    /// Until when it waits.
    pub(crate) fn deadline(&self) -> Option<Deadline> {
        self.waiting.map(|(_, deadline)| deadline)
    }
}

const fn reason(request: BusRequest) -> DeadlineReason {
    match request {
        BusRequest::ClearHalt(_) => DeadlineReason::ClearHalt,
        BusRequest::MassStorageReset { .. } => DeadlineReason::MassStorageReset,
        BusRequest::SelectAlternate { .. } | BusRequest::AllocateStreams { .. } | BusRequest::ResetPort => {
            DeadlineReason::PortReset
        }
    }
}
