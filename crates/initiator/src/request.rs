//! The outstanding bus request of a transport.
//!
//! Always true: at most one request is outstanding; an answer after its timeout, or to an earlier
//! request, is ignored.

use crate::output::Outputs;
use crate::{BusRequest, Deadline, DeadlineReason, Output, RequestId};
use units::{Duration, Instant};

#[derive(Debug, Default)]
pub(crate) struct Requests {
    last: u32,
    waiting: Option<(BusRequest, Deadline)>,
}

impl Requests {
    /// Sends a request with a timeout.
    pub(crate) fn ask(&mut self, outputs: &mut Outputs, now: Instant, request: BusRequest, span: Duration) {
        self.last = self.last.wrapping_add(1);
        self.waiting = Some((request, Deadline { at: now + span, reason: reason(request) }));
        outputs.push_back(Output::Request(RequestId(self.last), request));
    }

    /// Returns the request that an answer belongs to, if it is outstanding.
    pub(crate) fn take(&mut self, id: RequestId) -> Option<BusRequest> {
        if id != RequestId(self.last) {
            return None;
        }
        self.waiting.take().map(|(request, _)| request)
    }

    /// Returns the request whose timeout has passed.
    pub(crate) fn take_expired(&mut self, now: Instant) -> Option<BusRequest> {
        self.waiting.take_if(|(_, deadline)| deadline.at <= now).map(|(request, _)| request)
    }

    /// Forgets the outstanding request.
    pub(crate) const fn forget(&mut self) {
        self.waiting = None;
    }

    /// Returns the deadline of the outstanding request.
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
