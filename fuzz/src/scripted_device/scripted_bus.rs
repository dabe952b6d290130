//! A host bus whose transfers, requests and answers the script decides on, and that checks what is asked of it.

use bus::{Completion, Direction, Pipe, TransferId, TransferStatus};
use initiator::session::{BufferMemory, BufferSpan, HeapBuffers, HostBus, TransferRequest};
use initiator::{BusAnswer, BusRequest, RequestId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Transfers in flight at once: three of each command, those of task management, and status transfers kept ready.
const IN_FLIGHT_MAX: usize = 64;
/// Transfers that may come of one input.
const SUBMITTED_MAX: usize = 10_000;

/// The script's end of the bus.
pub struct ScriptedBus {
    pub(super) buffers: HeapBuffers,
    /// Buffers before this one hold messages, one for each transfer id.
    transfers_max: usize,
    in_flight: BTreeMap<TransferId, TransferRequest>,
    /// Cancelled by the host, and not completed.
    cancelled: BTreeSet<TransferId>,
    /// Whether a cancelled transfer completes at once.
    pub(super) is_prompt: bool,
    ended: VecDeque<Completion>,
    asked: Option<(RequestId, BusRequest)>,
    answer: Option<(RequestId, BusAnswer)>,
    pub(super) is_gone: bool,
    /// Transfers since the last input.
    submitted: usize,
}

/// A transfer in flight, as a device sees it.
#[derive(Clone, Debug)]
pub struct Offered {
    pub id: TransferId,
    pub pipe: Pipe,
    pub length: u32,
    /// It carries no data of a command.
    pub is_message: bool,
    /// The bytes that a message sends.
    pub sent: Vec<u8>,
}

impl ScriptedBus {
    pub(super) fn new(transfers_max: usize, is_prompt: bool) -> Self {
        Self {
            buffers: HeapBuffers::default(),
            transfers_max,
            in_flight: BTreeMap::new(),
            cancelled: BTreeSet::new(),
            is_prompt,
            ended: VecDeque::new(),
            asked: None,
            answer: None,
            is_gone: false,
            submitted: 0,
        }
    }

    /// Transfers in flight, in the order of their ids.
    pub(super) fn in_flight(&self) -> impl Iterator<Item = Offered> {
        self.in_flight.values().map(|request| {
            let TransferRequest { id, pipe, span, .. } = *request;
            let is_message = self.is_message(span);
            let is_sent = is_message && pipe.endpoint.direction() == Direction::Out;
            let sent = self.buffers.get(span).filter(|_| is_sent).unwrap_or_default().to_vec();
            Offered { id, pipe, length: span.range.len, is_message, sent }
        })
    }

    /// Transfers that are in flight in this buffer.
    pub(super) fn uses(&self, span: BufferSpan) -> bool {
        self.in_flight.values().any(|request| request.span.buffer == span.buffer)
    }

    fn is_message(&self, span: BufferSpan) -> bool {
        span.buffer.index() < self.transfers_max
    }

    /// A transfer ends so. An In transfer brings `bytes`; where there are none, and where bytes go out, `actual` counts.
    pub(super) fn complete(&mut self, id: TransferId, status: TransferStatus, actual: u32, bytes: &[u8]) {
        self.submitted = 0;
        let Some(TransferRequest { pipe, span, .. }) = self.in_flight.remove(&id) else { return };
        self.cancelled.remove(&id);
        let room = span.range.len;
        let brings = !bytes.is_empty() || self.is_message(span);
        let actual = match pipe.endpoint.direction() {
            Direction::In if brings => self.buffers.copy_in(span, bytes) as u32,
            _ => actual.min(room),
        };
        self.ended.push_back(Completion { id, status, actual });
    }

    /// Completes the cancelled transfers. Returns whether there were any.
    pub(super) fn complete_cancelled(&mut self) -> bool {
        let cancelled = std::mem::take(&mut self.cancelled);
        for id in &cancelled {
            self.complete(*id, TransferStatus::Cancelled, 0, &[]);
        }
        !cancelled.is_empty()
    }

    /// The request that waits.
    pub(super) fn asked(&self) -> Option<BusRequest> {
        self.asked.map(|(_, request)| request)
    }

    pub(super) const fn answer(&mut self, answer: BusAnswer) {
        self.submitted = 0;
        if let Some((id, _)) = self.asked.take() {
            self.answer = Some((id, answer));
        }
    }

    /// The device is removed: it answers nothing any more.
    pub(super) const fn forget_request(&mut self) {
        (self.asked, self.answer) = (None, None);
    }
}

impl HostBus for ScriptedBus {
    type Buffers = HeapBuffers;

    fn buffers(&mut self) -> &mut HeapBuffers {
        &mut self.buffers
    }

    fn submit(&mut self, request: TransferRequest) -> Option<Completion> {
        let TransferRequest { id, pipe, span, .. } = request;
        assert!((id.0 as usize) < self.transfers_max, "{request:?}");
        assert!(self.buffers.get(span).is_some(), "{request:?} is outside of its buffer");
        let direction = pipe.endpoint.direction();
        for other in self.in_flight.values().filter(|other| other.span.buffer == span.buffer) {
            let (own, theirs) = (span.range.as_usize(), other.span.range.as_usize());
            let is_apart = own.end <= theirs.start || theirs.end <= own.start;
            let are_sent = direction == Direction::Out && other.pipe.endpoint.direction() == Direction::Out;
            assert!(is_apart || are_sent, "{request:?} and {other:?}");
        }
        assert!(self.in_flight.insert(id, request).is_none(), "{request:?} is not new");
        assert!(self.in_flight.len() <= IN_FLIGHT_MAX, "{} transfers", self.in_flight.len());
        self.submitted += 1;
        assert!(self.submitted <= SUBMITTED_MAX, "the host submits transfers for ever");
        None
    }

    fn cancel(&mut self, id: TransferId) {
        assert!(self.in_flight.contains_key(&id), "{id:?} is cancelled and not in flight");
        self.cancelled.insert(id);
        if self.is_prompt {
            self.complete_cancelled();
        }
    }

    fn poll(&mut self) -> Option<Completion> {
        self.ended.pop_front()
    }

    fn request(&mut self, id: RequestId, request: BusRequest) -> Option<BusAnswer> {
        if request == BusRequest::ResetPort {
            assert!(self.in_flight.is_empty(), "{:?} are in flight", self.in_flight);
        }
        self.asked = (!self.is_gone).then_some((id, request));
        self.answer = None;
        None
    }

    fn poll_answer(&mut self) -> Option<(RequestId, BusAnswer)> {
        self.answer.take()
    }

    fn is_gone(&self) -> bool {
        self.is_gone
    }
}
