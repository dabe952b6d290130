//! A drive as a host bus whose every delivery a test decides.
//!
//! Requests of a transport wait until [`FaultyBus::carry`], and completions of the drive until
//! [`FaultyBus::deliver`]. Between them transfers fail, endpoints halt, statuses are lost, requests
//! fail, the drive is unplugged. Always true, or the test fails: no transfer has the id of one in
//! flight, each completes once, and a port is reset with none in flight.

use ::drive::Drive;
use ::drive::loopback::LoopbackBus;
use bus::{Completion, Direction, EndpointAddress, TransferId, TransferStatus};
use initiator::session::{BufferBlock, BufferId, HostBus, MESSAGE_BYTES, TransferRequest};
use initiator::{BusAnswer, BusRequest, RequestId, Transport};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A drive on a faulty bus.
pub struct FaultyBus {
    bus: LoopbackBus,
    /// Buffers of messages come first.
    messages: usize,
    asked: VecDeque<Asked>,
    /// Transfers that the drive has, or had.
    with_drive: BTreeMap<TransferId, DriveTransfer>,
    /// Completions that are not yet delivered.
    held: Vec<(TransferRequest, Completion)>,
    delivered: VecDeque<Completion>,
    answers: VecDeque<(RequestId, BusAnswer)>,
    halted: BTreeSet<EndpointAddress>,
    /// Loses the next message that the drive sends; its transfer remains in flight.
    pub loses_status: bool,
    /// Outcome of the next request.
    pub request_fate: RequestFate,
    is_gone: bool,
    /// Whether the transport knows that the drive is gone: its requests are not answered.
    pub is_notified: bool,
}

/// Outcome of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestFate {
    /// It is carried out.
    #[default]
    CarriedOut,
    /// It fails.
    Failed,
    /// It has no answer.
    Unanswered,
}

#[derive(Clone, Copy, Debug)]
enum Asked {
    Transfer(TransferRequest),
    Cancel(TransferId),
    Request(RequestId, BusRequest),
}

#[derive(Clone, Copy, Debug)]
struct DriveTransfer {
    request: TransferRequest,
    /// The status that it is reported with, if the bus has ended it.
    reported_as: Option<TransferStatus>,
    is_cancelled: bool,
    /// It has completed, but the completion is lost unless it is cancelled.
    is_lost: bool,
}

impl FaultyBus {
    /// Makes a bus of a drive, with buffers for the messages of a transport, for merged transfers, and of a number of slots;
    /// returns the first of each.
    pub fn new(drive: Drive, transport: &impl Transport, slots: [BufferBlock; 2]) -> (Self, [BufferId; 3]) {
        let mut bus = LoopbackBus::new(drive);
        let messages = BufferBlock { count: transport.transfers_max() as u16, bytes: MESSAGE_BYTES };
        let [merged, slots] = slots;
        let first = bus.allocate([messages, merged, slots]);
        let new = Self {
            bus,
            messages: messages.count.into(),
            asked: VecDeque::new(),
            with_drive: BTreeMap::new(),
            held: Vec::new(),
            delivered: VecDeque::new(),
            answers: VecDeque::new(),
            halted: BTreeSet::new(),
            loses_status: false,
            request_fate: RequestFate::CarriedOut,
            is_gone: false,
            is_notified: false,
        };
        (new, first)
    }

    /// Returns the drive alone.
    pub fn into_drive(self) -> Drive {
        self.bus.into_drive()
    }

    /// Carries out what was asked first.
    pub fn carry(&mut self) {
        match self.asked.pop_front() {
            None => {}
            Some(Asked::Transfer(request)) => self.start(request),
            Some(Asked::Cancel(id)) => {
                if let Some(transfer) = self.with_drive.get_mut(&id) {
                    transfer.is_cancelled = true;
                    self.end(id, TransferStatus::Cancelled);
                }
            }
            Some(Asked::Request(id, request)) => self.answer(id, request),
        }
        self.collect();
    }

    /// Delivers the first completion on the pipe of the `position`th one. Returns whether there was one.
    pub fn deliver(&mut self, position: usize) -> bool {
        let Some(nth) = position.checked_rem(self.held.len()) else { return false };
        let pipe = self.held[nth].0.pipe;
        let first = self.held.iter().position(|(request, _)| request.pipe == pipe).unwrap_or(nth);
        self.delivered.push_back(self.held.remove(first).1);
        true
    }

    /// Returns whether something is to be carried out.
    pub fn has_asked(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Returns whether no transfer is in flight.
    pub fn is_quiet(&self) -> bool {
        let is_asked = self.asked.iter().any(|asked| matches!(asked, Asked::Transfer(_)));
        !is_asked && self.with_drive.is_empty() && self.held.is_empty()
    }

    /// Halts an endpoint: what is in flight there ends, and what comes stalls.
    pub fn halt(&mut self, endpoint: EndpointAddress) {
        self.halted.insert(endpoint);
        self.fail_all(|request| request.pipe.endpoint == endpoint, TransferStatus::Stall);
    }

    /// Some transfer in flight fails.
    pub fn fail(&mut self, position: usize) {
        let nth = position.checked_rem(self.with_drive.len());
        if let Some(pipe) = nth.and_then(|nth| Some(self.with_drive.values().nth(nth)?.request.pipe)) {
            // A pipe completes in order, so the oldest there is meant.
            let oldest = self.with_drive.values().find(|transfer| transfer.request.pipe == pipe);
            let oldest = oldest.map(|transfer| transfer.request.id);
            self.fail_all(|request| Some(request.id) == oldest, TransferStatus::Error);
        }
    }

    /// Unplugs the drive. Returns whether it was there.
    pub fn unplug(&mut self) -> bool {
        if std::mem::replace(&mut self.is_gone, true) {
            return false;
        }
        for transfer in self.with_drive.values_mut() {
            transfer.reported_as = Some(TransferStatus::Disconnected);
        }
        self.bus.drive_mut().nexus_loss();
        self.collect();
        for id in self.ids(|_| true) {
            self.report_lost(id, TransferStatus::Disconnected);
        }
        true
    }

    /// Returns whether the drive is unplugged.
    pub const fn is_unplugged(&self) -> bool {
        self.is_gone
    }

    /// Stops all faults.
    pub const fn stop_faults(&mut self) {
        (self.loses_status, self.request_fate) = (false, RequestFate::CarriedOut);
    }

    /// Holds what the drive has completed.
    pub fn collect(&mut self) {
        self.bus.run_once();
        while let Some(mut completion) = self.bus.poll() {
            let transfer = self.with_drive.get_mut(&completion.id).expect("a transfer completes once");
            let is_ended = transfer.reported_as.is_some() || transfer.is_cancelled;
            let TransferRequest { pipe, span, .. } = transfer.request;
            let is_message =
                span.buffer.index() < self.messages && pipe.endpoint.direction() == Direction::In;
            if self.loses_status && is_message && completion.actual > 0 && !is_ended {
                (self.loses_status, transfer.is_lost) = (false, true);
                continue;
            }
            if let TransferStatus::Cancelled | TransferStatus::Disconnected = completion.status {
                completion.status = transfer.reported_as.unwrap_or(completion.status);
            }
            let request = transfer.request;
            self.with_drive.remove(&completion.id);
            self.held.push((request, completion));
        }
    }

    fn start(&mut self, request: TransferRequest) {
        let refused = match (self.is_gone, self.halted.contains(&request.pipe.endpoint)) {
            (true, _) => Some(TransferStatus::Disconnected),
            (false, true) => Some(TransferStatus::Stall),
            (false, false) => None,
        };
        let refused = refused.map(|status| Completion { id: request.id, status, actual: 0 });
        if let Some(completion) = refused.or_else(|| self.bus.submit(request)) {
            return self.held.push((request, completion));
        }
        let transfer = DriveTransfer { request, reported_as: None, is_cancelled: false, is_lost: false };
        self.with_drive.insert(request.id, transfer);
    }

    fn answer(&mut self, id: RequestId, request: BusRequest) {
        if self.is_notified {
            return;
        }
        let answer = match std::mem::take(&mut self.request_fate) {
            RequestFate::CarriedOut if !self.is_gone => {
                match request {
                    BusRequest::ResetPort => {
                        assert!(self.is_quiet(), "a port is reset with {:?} in flight", self.with_drive);
                        self.halted.clear();
                    }
                    BusRequest::ClearHalt(endpoint) => drop(self.halted.remove(&endpoint)),
                    _ => {}
                }
                self.bus.request(id, request)
            }
            RequestFate::CarriedOut | RequestFate::Failed => Some(BusAnswer::Failed),
            RequestFate::Unanswered => None,
        };
        self.answers.extend(answer.map(|answer| (id, answer)));
    }

    fn fail_all(&mut self, is_meant: impl Fn(&TransferRequest) -> bool, status: TransferStatus) {
        for id in self.ids(is_meant) {
            self.with_drive.entry(id).and_modify(|transfer| transfer.reported_as = Some(status));
            self.end(id, status);
        }
        self.collect();
    }

    fn ids(&self, is_meant: impl Fn(&TransferRequest) -> bool) -> Vec<TransferId> {
        let meant = self.with_drive.values().filter(|transfer| is_meant(&transfer.request));
        meant.map(|transfer| transfer.request.id).collect()
    }

    /// Ends a transfer that the drive has, or reports one whose completion was lost.
    fn end(&mut self, id: TransferId, status: TransferStatus) {
        match self.with_drive.get(&id) {
            Some(transfer) if transfer.is_lost => self.report_lost(id, status),
            _ => self.bus.cancel(id),
        }
    }

    fn report_lost(&mut self, id: TransferId, status: TransferStatus) {
        if let Some(transfer) = self.with_drive.remove(&id) {
            assert!(transfer.is_lost, "{transfer:?} has completed and was not reported");
            self.held.push((transfer.request, Completion { id, status, actual: 0 }));
        }
    }
}

impl HostBus for FaultyBus {
    type Buffers = LoopbackBus;

    fn buffers(&mut self) -> &mut LoopbackBus {
        &mut self.bus
    }

    fn submit(&mut self, request: TransferRequest) -> Option<Completion> {
        let id = request.id;
        let is_asked =
            self.asked.iter().any(|asked| matches!(asked, Asked::Transfer(other) if other.id == id));
        let is_held = self.held.iter().any(|(other, _)| other.id == id);
        assert!(!is_asked && !is_held && !self.with_drive.contains_key(&id), "{id:?} is in flight");
        self.asked.push_back(Asked::Transfer(request));
        None
    }

    fn cancel(&mut self, id: TransferId) {
        self.asked.push_back(Asked::Cancel(id));
    }

    fn poll(&mut self) -> Option<Completion> {
        self.delivered.pop_front()
    }

    fn request(&mut self, id: RequestId, request: BusRequest) -> Option<BusAnswer> {
        self.asked.push_back(Asked::Request(id, request));
        None
    }

    fn poll_answer(&mut self) -> Option<(RequestId, BusAnswer)> {
        self.answers.pop_front()
    }

    fn is_gone(&self) -> bool {
        self.is_gone
    }
}
