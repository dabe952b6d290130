//! A disk on a transport, driven by a script instead of a bus, with everything counted.

use bus::{Completion, Direction, TransferId, TransferStatus};
use initiator::disk::{self, AskTemperature, Disk, DiskConfig, Memory, Operation, RequestRefusal};
use initiator::{
    BufferRange, BusAnswer, BusRequest, Command, CommandId, Output, PEEK_BYTES_MAX, Payload, RequestId,
    Transfer, Transport,
};
use std::collections::{BTreeMap, BTreeSet};
use units::{ByteRange, Extent, Instant};

/// Commands of the disk at once, where the transport takes as many.
const DEPTH_MAX: usize = 6;
/// Requests at once.
const REQUESTS_MAX: u16 = 8;
/// Bytes of a command's data.
const TRANSFER_BYTES_MAX: u32 = 8 << 10;
/// Transfers in flight at once: three of each command, those of task management, and status transfers kept ready.
const IN_FLIGHT_MAX: usize = 64;
/// Outputs that may come of one input.
const OUTPUTS_MAX: usize = 10_000;
/// Deadlines that may pass until everything has ended.
const DEADLINES_MAX: usize = 20_000;

/// A host of ours.
pub struct Stack<T> {
    transport: T,
    disk: Disk,
    now: Instant,
    in_flight: BTreeMap<TransferId, Transfer>,
    names: BTreeSet<TransferId>,
    /// Cancelled by the host, and not completed.
    cancelled: BTreeSet<TransferId>,
    /// Whether a cancelled transfer completes at once.
    is_prompt: bool,
    asked: Option<(RequestId, BusRequest)>,
    commands: BTreeMap<CommandId, Running>,
    /// By request, bytes of its buffer.
    requests: BTreeMap<disk::RequestId, u32>,
    next_request: u64,
    /// Identify sequences that the script began and that have not ended.
    identify_runs: usize,
    gone: bool,
}

/// A command that the transport has.
struct Running {
    command: Command,
    memory: Memory,
    answer: Vec<u8>,
    /// Its buffer has been named in a separate transfer.
    is_lent: bool,
}

impl<T: Transport> Stack<T> {
    /// Starts to identify a disk; `is_prompt` says whether the bus completes cancelled transfers at once.
    pub fn new(transport: T, is_prompt: bool, ask: AskTemperature) -> Self {
        let depth = transport.depth().min(DEPTH_MAX) as u16;
        let config = DiskConfig {
            requests_max: REQUESTS_MAX,
            report_luns: true,
            ..DiskConfig::new(depth, TRANSFER_BYTES_MAX)
        };
        let mut stack = Self {
            transport,
            disk: Disk::new(config),
            now: Instant::ZERO,
            in_flight: BTreeMap::new(),
            names: BTreeSet::new(),
            cancelled: BTreeSet::new(),
            is_prompt,
            asked: None,
            commands: BTreeMap::new(),
            requests: BTreeMap::new(),
            next_request: 0,
            identify_runs: 0,
            gone: false,
        };
        stack.identify(ask);
        stack
    }

    /// Looks at the unit, or looks again.
    pub fn identify(&mut self, ask: AskTemperature) {
        let before = self.disk.counts().identify_runs;
        self.disk.start_asking(self.now, ask);
        self.identify_runs += usize::from(self.disk.counts().identify_runs > before);
        self.listen();
    }

    /// Something is asked of the disk.
    pub fn request(&mut self, operation: Operation, extent: Extent) {
        let id = disk::RequestId(self.next_request);
        let request = disk::Request { id, operation, extent };
        let block_size = self.disk.geometry().map(|geometry| geometry.block_size);
        match self.disk.submit(self.now, request) {
            Ok(()) => {
                let block_size = block_size.expect("who takes requests knows its blocks");
                let bytes = request.buffer_bytes(block_size).expect("it was taken");
                self.next_request += 1;
                self.requests.insert(id, bytes);
            }
            Err(RequestRefusal::Full) => assert_eq!(self.requests.len(), REQUESTS_MAX.into()),
            Err(_) => {}
        }
        self.listen();
    }

    /// Aborts one of the requests.
    pub fn abort_request(&mut self, nth: u8) {
        let nth = usize::from(nth).checked_rem(self.requests.len());
        if let Some(id) = nth.and_then(|nth| self.requests.keys().nth(nth).copied()) {
            self.disk.abort(self.now, id);
            self.listen();
        }
    }

    /// Transfers in flight, in the order of their ids.
    pub fn in_flight(&self) -> impl Iterator<Item = &Transfer> {
        self.in_flight.values()
    }

    /// One of them.
    pub fn nth(&self, nth: u8) -> Option<Transfer> {
        let nth = usize::from(nth).checked_rem(self.in_flight.len())?;
        self.in_flight.values().nth(nth).copied()
    }

    /// A transfer ends so. An In transfer brings `bytes`; where there are none, and where bytes go out, `actual` counts.
    pub fn complete(&mut self, transfer: &Transfer, status: TransferStatus, actual: u32, bytes: &[u8]) {
        if self.in_flight.remove(&transfer.id).is_none() {
            return;
        }
        self.cancelled.remove(&transfer.id);
        let room = transfer.length as usize;
        let is_in = transfer.pipe.endpoint.direction() == Direction::In;
        let actual = match (is_in, transfer.payload) {
            (true, Payload::Message) => bytes.len().min(room),
            (true, _) if !bytes.is_empty() => bytes.len().min(room),
            _ => room.min(actual as usize),
        };
        let mut brought = bytes[..bytes.len().min(actual)].to_vec();
        if is_in {
            brought.resize(actual, 0);
            self.keep_answer(&transfer.payload, &brought);
        }
        let is_shown = is_in && (transfer.payload == Payload::Message || actual <= PEEK_BYTES_MAX);
        let completion = Completion { id: transfer.id, status, actual: actual as u32 };
        self.transport.handle_completion(self.now, completion, if is_shown { &brought } else { &[] });
        self.listen();
    }

    fn keep_answer(&mut self, payload: &Payload, brought: &[u8]) {
        if let Payload::Buffer(BufferRange { command, range }) = payload
            && let Some(running) = self.commands.get_mut(command)
            && running.memory == Memory::Answer
        {
            running.answer[range.as_usize()][..brought.len()].copy_from_slice(brought);
        }
    }

    /// The request to the bus that waits.
    pub fn asked(&self) -> Option<BusRequest> {
        self.asked.map(|(_, request)| request)
    }

    /// It is answered.
    pub fn answer(&mut self, answer: BusAnswer) {
        if let Some((id, _)) = self.asked.take() {
            self.transport.handle_answer(self.now, id, answer);
            self.listen();
        }
    }

    /// Completes the cancelled transfers and advances time to the next deadline; returns whether there was one.
    pub fn pass_time(&mut self) -> bool {
        self.give_back();
        let of_disk = self.disk.poll_timeout();
        let of_transport = self.transport.poll_timeout();
        let is_disks = match (of_disk, of_transport) {
            (None, None) => return false,
            (Some(disk), Some(transport)) => disk.at < transport.at,
            (disk, _) => disk.is_some(),
        };
        if is_disks {
            self.now = self.now.max(of_disk.expect("it is the earlier").at);
            self.disk.handle_timeout(self.now);
            self.listen();
            assert_ne!(self.disk.poll_timeout(), of_disk, "nothing came of it");
        } else {
            self.now = self.now.max(of_transport.expect("it is the earlier").at);
            self.transport.handle_timeout(self.now);
            self.listen();
            assert_ne!(self.transport.poll_timeout(), of_transport, "nothing came of it");
        }
        true
    }

    fn give_back(&mut self) {
        while let Some(id) = self.cancelled.pop_first() {
            if let Some(transfer) = self.in_flight.get(&id).copied() {
                self.complete(&transfer, TransferStatus::Cancelled, 0, &[]);
            }
        }
    }

    /// Removes the device. The host is notified before its transfers complete, or after.
    pub fn unplug(&mut self, notifies_first: bool) {
        self.gone = true;
        self.asked = None;
        if notifies_first {
            self.notify_gone();
        }
        for _ in 0..OUTPUTS_MAX {
            let Some(transfer) = self.nth(0) else { break };
            self.complete(&transfer, TransferStatus::Disconnected, 0, &[]);
        }
        assert!(self.in_flight.is_empty(), "transfers are offered to a device that is gone, again and again");
        self.asked = None;
        if !notifies_first {
            self.notify_gone();
        }
        assert!(self.commands.is_empty(), "{:?} outlive the device", self.commands.keys());
        assert_eq!((self.transport.in_flight(), self.transport.depth()), (0, 0));
        assert_eq!(self.transport.poll_timeout(), None);
    }

    fn notify_gone(&mut self) {
        self.transport.handle_disconnect(self.now);
        self.listen();
    }

    /// The device falls silent. Everything ends; then it is removed, and nothing is left.
    pub fn end(mut self) {
        let notifies_first = self.is_prompt;
        for _ in 0..DEADLINES_MAX {
            if self.is_at_rest() {
                self.give_back();
                self.unplug(notifies_first);
                assert!(self.is_at_rest());
                return;
            }
            assert!(self.pass_time() || self.is_at_rest(), "{:?} wait for nothing", self.commands.keys());
        }
        panic!("{:?} and {:?} do not end", self.requests, self.commands.keys());
    }

    /// Whether everything that was asked has ended.
    pub fn is_at_rest(&self) -> bool {
        let is_at_rest = self.requests.is_empty() && self.identify_runs == 0 && self.commands.is_empty();
        if is_at_rest {
            assert_eq!((self.transport.in_flight(), self.disk.in_flight()), (0, 0));
            assert_eq!(self.disk.commands_in_flight(), 0);
        }
        is_at_rest
    }

    /// Takes what both have to say until there is nothing.
    fn listen(&mut self) {
        for _ in 0..OUTPUTS_MAX {
            if let Some(output) = self.disk.poll_output() {
                self.take_from_disk(output);
            } else if let Some(output) = self.transport.poll_output() {
                self.take_from_transport(output);
            } else {
                assert!(self.in_flight.len() <= IN_FLIGHT_MAX, "{} transfers", self.in_flight.len());
                return;
            }
        }
        panic!("disk and transport talk for ever");
    }

    fn take_from_disk(&mut self, output: disk::Output) {
        match output {
            disk::Output::Submit(command, memory) => {
                let moved = command.transfer_len();
                assert!(moved <= TRANSFER_BYTES_MAX.max(disk::PARAMETER_BYTES_MAX), "{command:?}");
                let answer = match memory {
                    Memory::Answer => {
                        assert!(moved <= disk::ANSWER_BYTES_MAX, "{command:?}");
                        vec![0; moved as usize]
                    }
                    Memory::Parameters => {
                        let range = command.transfer().map_or(ByteRange::new(0, 0), |phase| phase.range);
                        assert!(self.disk.parameters(command.id).get(range.as_usize()).is_some());
                        Vec::new()
                    }
                    Memory::Request(id) => {
                        let bytes = self.requests.get(&id).expect("a command belongs to a request in flight");
                        let range = command.transfer().map_or(ByteRange::new(0, 0), |phase| phase.range);
                        assert!(range.as_usize().end <= *bytes as usize, "{command:?} of {bytes} bytes");
                        Vec::new()
                    }
                    Memory::None => Vec::new(),
                };
                match self.transport.submit(self.now, &command) {
                    Ok(()) => {
                        let running = Running { command, memory, answer, is_lent: false };
                        assert!(self.commands.insert(command.id, running).is_none(), "{} again", command.id);
                    }
                    Err(refusal) => self.disk.handle_refusal(self.now, command.id, refusal),
                }
            }
            disk::Output::Abort(id) => self.transport.abort(self.now, id),
            disk::Output::Identified(_) => self.identify_runs = self.identify_runs.saturating_sub(1),
            disk::Output::Finished(id, result) => {
                let bytes = self.requests.remove(&id).expect("a request ends once");
                let mut memories = self.commands.values().map(|running| running.memory);
                assert!(!memories.any(|memory| memory == Memory::Request(id)), "{id:?} is in use");
                assert!(result.is_err() || result.is_ok_and(|done| done.moved <= bytes), "{result:?}");
            }
            disk::Output::Lost(_) => {}
        }
    }

    fn take_from_transport(&mut self, output: Output) {
        match output {
            Output::Submit(transfer) => self.offer(transfer),
            Output::Cancel(id) => match self.in_flight.get(&id).copied() {
                Some(transfer) if self.is_prompt => {
                    self.complete(&transfer, TransferStatus::Cancelled, 0, &[]);
                }
                Some(_) => drop(self.cancelled.insert(id)),
                None => {}
            },
            Output::Request(id, request) => {
                assert!(self.asked.is_none_or(|(asked, _)| asked != id), "{request:?} has an old name");
                if request == BusRequest::ResetPort {
                    assert!(self.in_flight.is_empty(), "{:?} are in flight", self.in_flight);
                }
                self.asked = (!self.gone).then_some((id, request));
            }
            Output::Finished(id, outcome) => {
                let running = self.commands.remove(&id).expect("a command ends once");
                for transfer in self.in_flight.values() {
                    assert!(self.pieces(transfer).iter().all(|piece| piece.command != id), "{id} is in use");
                }
                self.disk.handle_outcome(self.now, id, &outcome, &running.answer);
            }
        }
    }

    fn offer(&mut self, transfer: Transfer) {
        assert!(self.names.insert(transfer.id), "{transfer:?} is not new");
        let direction = transfer.pipe.endpoint.direction();
        for piece in self.pieces(&transfer) {
            let running =
                self.commands.get_mut(&piece.command).expect("buffers belong to commands in flight");
            let phase = running.command.transfer().expect("who has a buffer moves something");
            let (said, named) = (phase.range.as_usize(), piece.range.as_usize());
            assert_eq!(phase.direction, direction);
            assert!(said.start <= named.start && named.end <= said.end, "{piece:?} of {said:?}");
            if let Payload::Buffer(_) = transfer.payload {
                assert!(!std::mem::replace(&mut running.is_lent, true), "{piece:?} is named again");
            }
        }
        self.in_flight.insert(transfer.id, transfer);
    }

    fn pieces(&self, transfer: &Transfer) -> Vec<BufferRange> {
        match transfer.payload {
            Payload::Buffer(piece) => vec![piece],
            Payload::Pieces(pack) => {
                let pieces = self.transport.pieces(pack).to_vec();
                assert_eq!(pieces.iter().map(|piece| piece.range.len).sum::<u32>(), transfer.length);
                pieces
            }
            Payload::Inline(_) | Payload::Message => Vec::new(),
        }
    }
}
