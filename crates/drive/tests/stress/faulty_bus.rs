//! A transport and a drive on a faulty bus: the test decides when and how requests and completions are delivered.
//!
//! Always true, or the test fails: a transfer has a new name and completes once; a command ends once, with none of its
//! transfers in flight; a port is reset with no transfer in flight; every wait has a deadline.

use crate::drive::{BLOCK, command};
use crate::medium::Hand;
use crate::model::{Blocks, Model, Read, Stamp};
use bus::{Completion, Direction, EndpointAddress, TransferId, TransferStatus};
use device::Verdict;
use initiator::{
    BufferRange, BusAnswer, BusRequest, CommandId, Failure, Outcome, Output, PEEK_BYTES_MAX, Payload,
    Refusal, RequestId, Transfer, Transport,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use uaskit_drive::{Body, Drive, HostTransfer};
use units::{Duration, Instant};
use wire::usb::SetupPacket;

pub(crate) struct FaultyBus<T> {
    pub(crate) transport: T,
    drive: Drive,
    hand: Hand,
    now: Instant,
    model: Model,
    commands: BTreeMap<CommandId, Command>,
    generation: u32,
    /// Requests of the transport that are not yet executed.
    outputs: VecDeque<Output>,
    /// Transfers that the drive has.
    with_drive: BTreeMap<TransferId, Under>,
    /// Completions that are not yet delivered to the transport.
    completions: Vec<PendingCompletion>,
    /// Endpoints that the bus has halted.
    halted: BTreeSet<EndpointAddress>,
    /// What becomes of the next status transfer that completes with something.
    pub(crate) lose_status: bool,
    /// What becomes of the next request.
    pub(crate) request_fate: RequestFate,
    gone: bool,
    /// The transport knows that it is gone.
    is_notified: bool,
}

/// What the bus does with a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RequestFate {
    #[default]
    Carried,
    Failed,
    Unanswered,
}

#[derive(Debug)]
struct Command {
    kind: Kind,
    blocks: Blocks,
    memory: Vec<u8>,
}

#[derive(Debug)]
enum Kind {
    Plain,
    Read(Read),
    Write(Stamp),
}

/// A transfer that the drive has, or had.
#[derive(Clone, Copy, Debug)]
struct Under {
    transfer: Transfer,
    /// The status that it is reported with, if the bus has cancelled it.
    reported_as: Option<TransferStatus>,
    /// The transport has cancelled it.
    cancelled: bool,
    /// It has completed, but the completion is lost unless it is cancelled.
    lost: bool,
}

#[derive(Debug)]
struct PendingCompletion {
    transfer: Transfer,
    completion: Completion,
    bytes: Vec<u8>,
}

/// Time for a command.
const COMMAND_TIME: Duration = Duration::from_secs(30);

/// Steps of time until everything must have come to an end.
const STEPS_MAX: usize = 2000;

impl<T: Transport> FaultyBus<T> {
    pub(crate) fn new(transport: T, drive: Drive, hand: Hand, blocks: u8) -> Self {
        Self {
            transport,
            drive,
            hand,
            now: Instant::ZERO,
            model: Model::new(blocks),
            commands: BTreeMap::new(),
            generation: 0,
            outputs: VecDeque::new(),
            with_drive: BTreeMap::new(),
            completions: Vec::new(),
            halted: BTreeSet::new(),
            lose_status: false,
            request_fate: RequestFate::Carried,
            gone: false,
            is_notified: false,
        }
    }

    pub(crate) fn submit(&mut self, writes: bool, blocks: Blocks) {
        let slots = self.commands.keys().map(|id| id.slot).collect::<BTreeSet<_>>();
        let slot = (0..).find(|slot| !slots.contains(slot)).expect("there are many slots");
        self.generation += 1;
        let id = CommandId { slot, generation: self.generation };
        let range = (u32::from(blocks.0), u16::from(blocks.1));
        let command = command(id, writes, range, self.now + COMMAND_TIME);
        match self.transport.submit(self.now, &command) {
            Ok(()) => {}
            Err(Refusal::Full) => {
                assert!(self.transport.in_flight() > 0, "full, and nothing that could end");
                return;
            }
            Err(refusal) => {
                assert_eq!((refusal, self.transport.depth()), (Refusal::Gone, 0));
                return;
            }
        }
        let (kind, memory) = match (blocks.1, writes) {
            (0, _) => (Kind::Plain, Vec::new()),
            (_, true) => {
                let (stamp, bytes) = self.model.begin_write(blocks);
                (Kind::Write(stamp), bytes)
            }
            (count, false) => {
                (Kind::Read(self.model.begin_read(blocks)), vec![0xee; usize::from(count) * BLOCK as usize])
            }
        };
        self.commands.insert(id, Command { kind, blocks, memory });
        self.listen();
    }

    pub(crate) fn abort(&mut self, position: usize) {
        let nth = position.checked_rem(self.commands.len());
        if let Some(id) = nth.and_then(|nth| self.commands.keys().nth(nth).copied()) {
            self.transport.abort(self.now, id);
            self.listen();
        }
    }

    /// Carries out the next thing that the transport wants.
    pub(crate) fn carry(&mut self) {
        match self.outputs.pop_front() {
            None | Some(Output::Finished(..)) => {}
            Some(Output::Submit(transfer)) => self.offer(transfer),
            Some(Output::Cancel(id)) => self.cancel(id),
            Some(Output::Request(id, request)) => self.ask(id, request),
        }
        self.collect();
    }

    /// Delivers the first completion of some pipe to the transport.
    pub(crate) fn deliver(&mut self, position: usize) {
        let Some(nth) = position.checked_rem(self.completions.len()) else { return };
        let pipe = self.completions[nth].transfer.pipe;
        let first =
            self.completions.iter().position(|completion| completion.transfer.pipe == pipe).unwrap_or(nth);
        let PendingCompletion { transfer, completion, bytes } = self.completions.remove(first);
        let shown = match transfer.payload {
            Payload::Message => &bytes[..],
            _ if transfer.pipe.endpoint.direction() == Direction::In && bytes.len() <= PEEK_BYTES_MAX => {
                &bytes
            }
            _ => &[],
        };
        self.transport.handle_completion(self.now, completion, shown);
        self.listen();
    }

    pub(crate) fn answer_medium(&mut self, position: usize, fails: bool) {
        self.hand.answer(position, fails);
        self.collect();
    }

    /// An endpoint halts: what is there comes back, and what comes stalls.
    pub(crate) fn halt(&mut self, endpoint: EndpointAddress) {
        self.halted.insert(endpoint);
        self.throw_back(|under| under.transfer.pipe.endpoint == endpoint, TransferStatus::Stall);
    }

    /// Some transfer in flight fails on the bus.
    pub(crate) fn fail(&mut self, position: usize) {
        let nth = position.checked_rem(self.with_drive.len());
        if let Some(id) = nth.and_then(|nth| self.with_drive.keys().nth(nth).copied()) {
            let pipe = self.with_drive[&id].transfer.pipe;
            // A pipe completes in order, so the oldest there is meant.
            let oldest = self.with_drive.values().find(|under| under.transfer.pipe == pipe);
            let oldest = oldest.map_or(id, |under| under.transfer.id);
            self.throw_back(|under| under.transfer.id == oldest, TransferStatus::Error);
        }
    }

    fn throw_back(&mut self, is_meant: impl Fn(&Under) -> bool, status: TransferStatus) {
        let mut meant = Vec::new();
        for (id, under) in &mut self.with_drive {
            if is_meant(under) {
                under.reported_as = Some(status);
                meant.push(*id);
            }
        }
        for id in meant {
            if !self.drive.cancel(id.0) {
                self.report_lost(id, status);
            }
        }
        self.collect();
    }

    /// Time passes up to the next deadline. Whether there was one.
    pub(crate) fn pass_time(&mut self) -> bool {
        let Some(deadline) = self.transport.poll_timeout() else { return false };
        self.now = self.now.max(deadline.at);
        self.transport.handle_timeout(self.now);
        self.listen();
        let next = self.transport.poll_timeout();
        assert!(next != Some(deadline), "nothing came of {deadline:?}");
        true
    }

    /// Pulled out. The transport is notified before its transfers end, or when they have.
    pub(crate) fn unplug(&mut self, is_notified_first: bool) {
        if std::mem::replace(&mut self.gone, true) {
            return;
        }
        if is_notified_first {
            self.notify_gone();
        }
        for under in self.with_drive.values_mut() {
            under.reported_as = Some(TransferStatus::Disconnected);
        }
        self.drive.nexus_loss();
        self.collect();
        let lost: Vec<_> = self.with_drive.keys().copied().collect();
        for id in lost {
            self.report_lost(id, TransferStatus::Disconnected);
        }
    }

    fn notify_gone(&mut self) {
        if !std::mem::replace(&mut self.is_notified, true) {
            self.transport.handle_disconnect(self.now);
            self.listen();
        }
    }

    /// All that was in flight with a device that is gone ends, without time.
    fn bury(&mut self) {
        self.flow();
        self.notify_gone();
        self.flow();
        assert!(self.commands.is_empty(), "{:?} outlive the device", self.commands.keys());
        assert!(self.with_drive.is_empty(), "{:?} outlive the device", self.with_drive);
        assert_eq!((self.transport.in_flight(), self.transport.depth()), (0, 0));
        assert_eq!(self.transport.poll_timeout(), None);
    }

    /// Plugged in again, if it is gone: both ends have a new life. The blocks and the books go on. `power_up` makes a
    /// drive that knows nothing of the one before; without it, it is the same.
    pub(crate) fn plug(
        &mut self,
        attach: impl Fn(&mut Drive) -> T,
        power_up: Option<impl Fn(&Hand) -> Drive>,
    ) {
        if !self.gone {
            return;
        }
        self.bury();
        match power_up {
            Some(power_up) => self.drive = power_up(&self.hand),
            None => self.drive.bus_reset(),
        }
        self.transport = attach(&mut self.drive);
        self.halted.clear();
        (self.lose_status, self.request_fate) = (false, RequestFate::Carried);
        (self.gone, self.is_notified) = (false, false);
    }

    /// Stops all faults: everything is delivered, and time passes where nothing else does. Every command ends.
    pub(crate) fn clear_up(&mut self) {
        self.lose_status = false;
        self.request_fate = RequestFate::Carried;
        self.hand.release();
        if self.gone {
            return self.bury();
        }
        for _ in 0..STEPS_MAX {
            self.flow();
            if self.commands.is_empty() && self.transport.in_flight() == 0 {
                return;
            }
            assert!(self.pass_time(), "{:?} wait for nothing", self.commands.keys());
        }
        panic!("{:?} do not end", self.commands.keys());
    }

    /// Carries everything that can be carried without time.
    pub(crate) fn flow(&mut self) {
        loop {
            self.collect();
            if !self.outputs.is_empty() {
                self.carry();
            } else if !self.completions.is_empty() {
                self.deliver(0);
            } else {
                return;
            }
        }
    }

    /// Reads everything back, if the device can still be asked.
    pub(crate) fn inspect(&mut self, blocks: u8) {
        for first in 0..blocks {
            self.submit(false, (first, 1));
            self.clear_up();
        }
    }

    pub(crate) fn is_usable(&self) -> bool {
        self.transport.depth() > 0
    }

    /// Takes what the transport says. Ends are noted at once, everything else is carried later.
    fn listen(&mut self) {
        while let Some(output) = self.transport.poll_output() {
            if let Output::Finished(id, outcome) = output {
                self.finish(id, outcome);
            } else {
                self.outputs.push_back(output);
            }
        }
    }

    fn finish(&mut self, id: CommandId, outcome: Outcome) {
        let Command { kind, blocks, memory } = self.commands.remove(&id).expect("a command ends once");
        let queued = self.outputs.iter().filter_map(|output| match output {
            Output::Submit(transfer) => Some(transfer),
            _ => None,
        });
        let under = self.with_drive.values().map(|under| &under.transfer);
        let undelivered = self.completions.iter().map(|completion| &completion.transfer);
        for transfer in queued.chain(under).chain(undelivered) {
            assert!(
                !self.pieces(transfer).iter().any(|piece| piece.command == id),
                "{id} is still in {transfer:?}"
            );
        }
        if outcome == Outcome::Failed(Failure::Disconnected) {
            assert!(self.gone, "it was not unplugged");
        }
        let moved = match outcome {
            Outcome::Answered(answer) if outcome.is_good() => answer.moved as usize,
            _ => 0,
        };
        match kind {
            Kind::Plain => {}
            Kind::Read(read) => self.model.end_read(read, &memory[..moved]),
            Kind::Write(stamp) => self.model.end_write(stamp, blocks, moved == memory.len()),
        }
    }

    fn pieces(&self, transfer: &Transfer) -> Vec<BufferRange> {
        match transfer.payload {
            Payload::Buffer(piece) => vec![piece],
            Payload::Pieces(pack) => self.transport.pieces(pack).to_vec(),
            Payload::Inline(_) | Payload::Message => Vec::new(),
        }
    }

    fn offer(&mut self, transfer: Transfer) {
        let Transfer { id, pipe, length, .. } = transfer;
        let is_reported = self.completions.iter().any(|pending| pending.completion.id == id);
        assert!(!is_reported && !self.with_drive.contains_key(&id), "{id:?} is in flight");
        assert!(id.0 < self.transport.transfers_max() as u64, "{id:?} is no index");
        let refused = match (self.gone, self.halted.contains(&pipe.endpoint)) {
            (true, _) => Some(TransferStatus::Disconnected),
            (false, true) => Some(TransferStatus::Stall),
            (false, false) => None,
        };
        if let Some(status) = refused {
            return self.report(transfer, status, 0, Vec::new());
        }
        let payload = match pipe.endpoint.direction() {
            Direction::In => Vec::new(),
            Direction::Out => self.gather(&transfer),
        };
        self.with_drive.insert(id, Under { transfer, reported_as: None, cancelled: false, lost: false });
        self.drive.submit(HostTransfer { id: id.0, pipe, length, payload }).expect("there are few transfers");
    }

    fn gather(&mut self, transfer: &Transfer) -> Vec<u8> {
        let bytes = match transfer.payload {
            Payload::Inline(inline) => inline.as_bytes().to_vec(),
            _ => {
                let pieces = self.pieces(transfer);
                let of = |piece: &BufferRange| {
                    self.commands[&piece.command].memory[piece.range.as_usize()].to_vec()
                };
                pieces.iter().flat_map(of).collect()
            }
        };
        assert_eq!(bytes.len(), transfer.length as usize);
        let mut memory = self.drive.pool().take(bytes.len());
        memory[..bytes.len()].copy_from_slice(&bytes);
        memory
    }

    fn cancel(&mut self, id: TransferId) {
        let Some(under) = self.with_drive.get_mut(&id) else { return };
        under.cancelled = true;
        if !self.drive.cancel(id.0) {
            self.report_lost(id, TransferStatus::Cancelled);
        }
    }

    /// Reports a transfer whose completion was lost after all.
    fn report_lost(&mut self, id: TransferId, status: TransferStatus) {
        if let Some(under) = self.with_drive.remove(&id) {
            assert!(under.lost, "{under:?} has completed and was not reported");
            self.report(under.transfer, status, 0, Vec::new());
        }
    }

    fn report(&mut self, transfer: Transfer, status: TransferStatus, actual: u32, bytes: Vec<u8>) {
        let completion = Completion { id: transfer.id, status, actual };
        self.completions.push(PendingCompletion { transfer, completion, bytes });
    }

    /// Takes what the drive has completed.
    fn collect(&mut self) {
        self.drive.run_once();
        while let Some(completion) = self.drive.poll() {
            let id = TransferId(completion.id);
            let under = self.with_drive.get_mut(&id).expect("a transfer completes once");
            let bytes = match &completion.body {
                Body::Empty => Vec::new(),
                Body::Inline(inline) => inline.as_bytes().to_vec(),
                Body::Buffer(memory) => memory[..completion.actual as usize].to_vec(),
            };
            let is_message = under.transfer.payload == Payload::Message;
            if self.lose_status
                && is_message
                && !bytes.is_empty()
                && under.reported_as.is_none()
                && !under.cancelled
            {
                self.lose_status = false;
                under.lost = true;
                continue;
            }
            let under = self.with_drive.remove(&id).expect("it was there just now");
            self.scatter(&under.transfer, &bytes);
            let status = match (completion.status, under.reported_as) {
                (TransferStatus::Cancelled | TransferStatus::Disconnected, Some(reported)) => reported,
                (status, _) => status,
            };
            self.report(under.transfer, status, completion.actual, bytes);
        }
    }

    fn scatter(&mut self, transfer: &Transfer, mut bytes: &[u8]) {
        if transfer.pipe.endpoint.direction() == Direction::Out {
            return;
        }
        for piece in self.pieces(transfer) {
            let memory = &mut self.commands.get_mut(&piece.command).expect("it is in flight").memory;
            let (here, after) = bytes.split_at(bytes.len().min(piece.range.len as usize));
            memory[piece.range.start as usize..][..here.len()].copy_from_slice(here);
            bytes = after;
        }
    }

    fn ask(&mut self, id: RequestId, request: BusRequest) {
        if self.is_notified {
            return;
        }
        match std::mem::take(&mut self.request_fate) {
            RequestFate::Carried if !self.gone => {
                let answer = self.carry_request(request);
                self.transport.handle_answer(self.now, id, answer);
                self.listen();
            }
            RequestFate::Carried | RequestFate::Failed => {
                self.transport.handle_answer(self.now, id, BusAnswer::Failed);
                self.listen();
            }
            RequestFate::Unanswered => {}
        }
    }

    fn carry_request(&mut self, request: BusRequest) -> BusAnswer {
        match request {
            BusRequest::ResetPort => {
                let under: Vec<_> = self.with_drive.values().collect();
                assert!(under.is_empty() && self.completions.is_empty(), "{under:?} are in flight");
                self.halted.clear();
                self.drive.bus_reset();
                for setup in [[0, 5, 1, 0, 0, 0, 0, 0], [0, 9, 1, 0, 0, 0, 0, 0]] {
                    let setup = SetupPacket::decode(&setup).expect("eight bytes");
                    assert_eq!(self.drive.control(setup, &[]), Verdict::Done);
                }
                BusAnswer::Done
            }
            BusRequest::AllocateStreams { wanted, .. } => {
                BusAnswer::Streams(wanted.min(self.drive.device().config().streams))
            }
            other => {
                if let BusRequest::ClearHalt(endpoint) = other {
                    self.halted.remove(&endpoint);
                }
                let setup = other.setup().expect("a control transfer");
                match self.drive.control(setup, &[]) {
                    Verdict::Done => BusAnswer::Done,
                    _ => BusAnswer::Stalled,
                }
            }
        }
    }
}
