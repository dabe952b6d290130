//! The host bus to a drive in the same process.
//!
//! Always true: a buffer is as long as it was allocated whenever somebody looks at it; its memory
//! may be another after each transfer.

use super::plug;
use crate::drive::{Body, Drive, HostTransfer, Pool};
use crate::medium::{Medium, PowerLoss};
use bus::{Completion, Direction, TransferId, TransferStatus};
use device::{ActiveTransport, Verdict};
use initiator::session::{BufferBlock, BufferId, BufferMemory, BufferSpan, HostBus, TransferRequest};
use initiator::{BusAnswer, BusRequest, INLINE_BYTES_MAX, RequestId};
use std::hint::cold_path;
use std::mem;
use wire::usb::SetupPacket;

/// A drive as a host bus.
#[derive(Debug)]
pub struct LoopbackBus<M: ?Sized = dyn Medium + Send> {
    drive: Drive<M>,
    buffers: Vec<Buffer>,
    /// By transfer id.
    in_flight: Vec<Option<TransferRequest>>,
}

/// A buffer.
#[derive(Debug)]
struct Buffer {
    /// Shorter than `bytes` where the drive has the memory, or has given shorter memory in return.
    memory: Vec<u8>,
    bytes: usize,
}

impl<M: Medium + ?Sized> LoopbackBus<M> {
    /// Makes a bus of a drive that was made ready (see [`plug`](mod@super::plug)).
    pub const fn new(drive: Drive<M>) -> Self {
        Self { drive, buffers: Vec::new(), in_flight: Vec::new() }
    }

    /// Allocates the buffers of some blocks; returns the first of each.
    pub fn allocate<const BLOCKS: usize>(&mut self, blocks: [BufferBlock; BLOCKS]) -> [BufferId; BLOCKS] {
        blocks.map(|BufferBlock { count, bytes }| {
            let first = BufferId::new(self.buffers.len() as u32);
            for _ in 0..count {
                let memory = self.drive.pool().take(bytes as usize);
                self.buffers.push(Buffer { memory, bytes: bytes as usize });
            }
            first
        })
    }

    /// Frees the buffers from this one on. No transfer may use them.
    pub fn free_from(&mut self, first: BufferId) {
        let freed = self.buffers.drain(first.index().min(self.buffers.len())..);
        freed.for_each(|buffer| self.drive.pool().put(buffer.memory));
    }

    /// Gives a buffer other memory, of any length; returns what it had.
    pub(super) fn replace(&mut self, buffer: BufferId, memory: Vec<u8>) -> Vec<u8> {
        let missing = (buffer.index() + 1).saturating_sub(self.buffers.len());
        if missing > 0 {
            cold_path();
            self.buffers.extend((0..missing).map(|_| Buffer { memory: Vec::new(), bytes: 0 }));
        }
        let buffer = &mut self.buffers[buffer.index()];
        buffer.bytes = memory.len();
        mem::replace(&mut buffer.memory, memory)
    }

    /// Performs a control request without data to the device; returns the bytes that it answers. `None`: it stalls.
    pub fn control(&mut self, setup: SetupPacket, bytes: &mut [u8]) -> Option<usize> {
        match self.drive.control(setup, &[]) {
            Verdict::Data(answer) => {
                let moved = answer.len().min(bytes.len());
                bytes[..moved].copy_from_slice(&answer[..moved]);
                Some(moved)
            }
            Verdict::Done => Some(0),
            Verdict::Stall => None,
        }
    }

    /// The drive works: its media complete requests.
    pub fn run_once(&mut self) {
        self.drive.run_once();
    }

    /// Cuts the power of the drive, and enumerates it again. Returns whether its media have a model of it.
    pub fn lose_power(&mut self, loss: PowerLoss) -> bool {
        self.drive.lose_power(loss) && plug::configure(&mut self.drive).is_ok()
    }

    /// Memory for buffers.
    pub const fn pool(&mut self) -> &mut Pool {
        self.drive.pool()
    }

    /// The drive.
    pub const fn drive(&self) -> &Drive<M> {
        &self.drive
    }

    /// The drive, for what happens to it besides transfers.
    pub const fn drive_mut(&mut self) -> &mut Drive<M> {
        &mut self.drive
    }

    /// The drive alone. Its transfers in flight remain: reset the bus before it is used again.
    pub fn into_drive(self) -> Drive<M> {
        self.drive
    }

    /// A buffer at its full length.
    #[inline]
    fn whole(&mut self, buffer: BufferId) -> Option<&mut Vec<u8>> {
        let Buffer { memory, bytes } = self.buffers.get_mut(buffer.index())?;
        if memory.len() < *bytes {
            let mut longer = self.drive.pool().take(*bytes);
            if !memory.is_empty() {
                cold_path();
                longer[..memory.len()].copy_from_slice(memory);
                self.drive.pool().put(mem::take(memory));
            }
            *memory = longer;
        }
        Some(memory)
    }

    fn get(&self, span: BufferSpan) -> Option<&[u8]> {
        self.buffers.get(span.buffer.index())?.memory.get(span.range.as_usize())
    }

    /// The memory of a transfer that sends. It is moved if it is whole.
    fn payload(&mut self, request: &TransferRequest) -> Vec<u8> {
        let TransferRequest { span, is_whole, .. } = *request;
        if is_whole && span.range.start == 0 {
            return self.whole(span.buffer).map(mem::take).unwrap_or_default();
        }
        cold_path();
        let mut payload = self.drive.pool().take(span.range.len as usize);
        self.copy_out(span, &mut payload);
        payload
    }

    /// Sends a few bytes. `None`: they are with the drive and complete later.
    #[inline]
    fn send(&mut self, request: &TransferRequest) -> Option<Completion> {
        let TransferRequest { id, pipe, span, .. } = *request;
        let bytes =
            self.buffers.get(span.buffer.index()).and_then(|buffer| buffer.memory.get(span.range.as_usize()));
        let bytes = bytes.unwrap_or_default();
        if self.drive.pass_message(pipe, bytes) {
            return Some(Completion { id, status: TransferStatus::Done, actual: span.range.len });
        }
        cold_path();
        let taken = self.drive.submit_message(id.0, pipe, bytes);
        self.note(request, taken.is_ok())
    }

    /// Notes a transfer that the drive has accepted; one that it has not ends here.
    #[inline]
    fn note(&mut self, request: &TransferRequest, is_accepted: bool) -> Option<Completion> {
        let TransferRequest { id, .. } = *request;
        if !is_accepted {
            cold_path();
            return Some(Completion { id, status: TransferStatus::Error, actual: 0 });
        }
        let index = id.0 as usize;
        if index >= self.in_flight.len() {
            cold_path();
            self.in_flight.resize(index + 1, None);
        }
        self.in_flight[index] = Some(*request);
        None
    }

    fn allocate_streams(&mut self, wanted: u16) -> BusAnswer {
        match self.drive.device().transport() {
            ActiveTransport::Uas { streams: true } => {
                BusAnswer::Streams(wanted.min(self.drive.device().config().streams))
            }
            _ => BusAnswer::Failed,
        }
    }
}

impl<M: Medium + ?Sized> BufferMemory for LoopbackBus<M> {
    #[inline]
    fn bytes(&mut self, buffer: BufferId) -> Option<&mut [u8]> {
        self.whole(buffer).map(Vec::as_mut_slice)
    }

    fn copy_out(&self, from: BufferSpan, into: &mut [u8]) -> usize {
        let from = self.get(from).unwrap_or_default();
        let len = from.len().min(into.len());
        into[..len].copy_from_slice(&from[..len]);
        len
    }

    #[inline]
    fn copy_in(&mut self, into: BufferSpan, from: &[u8]) -> usize {
        let whole = self.whole(into.buffer).and_then(|memory| memory.get_mut(into.range.as_usize()));
        let Some(into) = whole else { return 0 };
        let len = from.len().min(into.len());
        into[..len].copy_from_slice(&from[..len]);
        len
    }

    fn copy_across(&mut self, from: BufferSpan, into: BufferSpan) -> usize {
        self.whole(into.buffer);
        let indices = [from.buffer.index(), into.buffer.index()];
        let Ok([source, target]) = self.buffers.get_disjoint_mut(indices) else { return 0 };
        let (source, target) =
            (source.memory.get(from.range.as_usize()), target.memory.get_mut(into.range.as_usize()));
        let (Some(source), Some(target)) = (source, target) else { return 0 };
        let len = source.len().min(target.len());
        target[..len].copy_from_slice(&source[..len]);
        len
    }
}

impl<M: Medium + ?Sized> HostBus for LoopbackBus<M> {
    type Buffers = Self;

    #[inline]
    fn buffers(&mut self) -> &mut Self {
        self
    }

    #[inline]
    fn submit(&mut self, request: TransferRequest) -> Option<Completion> {
        let TransferRequest { id, pipe, span, is_whole } = request;
        let length = span.range.len;
        let payload = match pipe.endpoint.direction() {
            Direction::Out if length as usize <= INLINE_BYTES_MAX => return self.send(&request),
            Direction::Out => self.payload(&request),
            Direction::In if is_whole => Vec::new(),
            Direction::In => {
                cold_path();
                self.whole(span.buffer);
                Vec::new()
            }
        };
        let taken = self.drive.submit(HostTransfer { id: id.0, pipe, length, payload });
        self.note(&request, taken.is_ok())
    }

    fn cancel(&mut self, id: TransferId) {
        self.drive.cancel(id.0);
    }

    #[inline]
    fn poll(&mut self) -> Option<Completion> {
        let Self { drive, buffers, in_flight } = self;
        let mut completed = None;
        while completed.is_none() {
            let has_any = drive.poll_with(|completion| {
                let request = in_flight.get_mut(completion.id as usize).and_then(Option::take);
                let Some(request) = request else { return };
                let (id, status, actual) = (request.id, completion.status, completion.actual);
                completed = Some(Completion { id, status, actual });
                if let Some(buffer) = buffers.get_mut(request.span.buffer.index()) {
                    buffer.receive(&request, &mut completion.body, actual);
                }
            });
            if !has_any {
                return None;
            }
        }
        completed
    }

    #[cold]
    fn request(&mut self, _id: RequestId, request: BusRequest) -> Option<BusAnswer> {
        Some(match (request, request.setup()) {
            (_, Some(setup)) => match self.drive.control(setup, &[]) {
                Verdict::Done => BusAnswer::Done,
                _ => BusAnswer::Stalled,
            },
            (BusRequest::AllocateStreams { endpoints, wanted }, None) => {
                for endpoint in [endpoints.status, endpoints.data_in, endpoints.data_out] {
                    self.drive.cancel_at(endpoint);
                }
                self.allocate_streams(wanted)
            }
            (_, None) => {
                self.drive.bus_reset();
                plug::configure(&mut self.drive).map_or(BusAnswer::Failed, |()| BusAnswer::Done)
            }
        })
    }
}

impl Buffer {
    /// Takes what a transfer has brought: the memory itself if it is all that the buffer holds.
    #[inline]
    fn receive(&mut self, request: &TransferRequest, body: &mut Body, actual: u32) {
        let range = request.span.range;
        match body {
            Body::Empty => {}
            Body::Buffer(memory) if request.is_whole && range.start == 0 && range.len == actual => {
                mem::swap(&mut self.memory, memory);
            }
            Body::Buffer(memory) => {
                cold_path();
                self.copy(request, memory.get(..actual as usize).unwrap_or(memory));
            }
            Body::Inline(inline) => self.copy(request, inline.as_bytes()),
        }
    }

    #[inline]
    fn copy(&mut self, request: &TransferRequest, bytes: &[u8]) {
        if self.memory.len() < self.bytes {
            cold_path();
            self.memory.resize(self.bytes, 0);
        }
        let range = request.span.range.as_usize();
        if let Some(place) = self.memory.get_mut(range) {
            let len = bytes.len().min(place.len());
            place[..len].copy_from_slice(&bytes[..len]);
        }
    }
}
