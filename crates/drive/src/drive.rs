//! A drive: a device, its media, and the transfers of one host, joined in one place.
//!
//! Whatever brings a host's transfers (usbredir, USB/IP) calls [`Drive::submit`], [`Drive::cancel`] and
//! [`Drive::control`], then takes completions from [`Drive::poll`] until there are none. Payload is not copied where
//! one transfer covers one command: a READ's buffer goes from the medium into the completion, a WRITE's from the
//! transfer to the medium.
//!
//! Always true: each submitted transfer completes once; in steady state no memory is allocated per command.

mod buffer;
mod closing;
mod fault;
mod host_transfer;
mod memory;
mod observer;
mod power;
mod presence;

pub use buffer::Pool;
pub use closing::FlushError;
pub use fault::{FAULTS_MAX, Fault, FaultKind, NotAFault};
pub use host_transfer::{Body, HostCompletion, HostTransfer};
pub use presence::SlotError;

use crate::medium::{CompletedJob, Job, Medium};
use bus::rendezvous::{Completed, CopyRange, Full, Rearm, TransferSink};
use bus::{Completion, Direction, EndpointAddress, Fifo, Front, Observer, Pipe, Rendezvous, TransferStatus};
use device::command::{CommandId, DataLocation};
use device::medium::{MediumOp, MediumRequest};
use device::{Device, DeviceTransfer, Output, Payload, Verdict};
use fault::{FaultEffect, Faults};
use memory::{Buffer, DeviceEntry, HostEntry, Memory};
use std::hint::cold_path;
use std::os::fd::BorrowedFd;
use wire::usb::SetupPacket;

/// Counts of a drive's operations so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Reads asked of the media.
    pub reads: u64,
    /// Writes asked of the media.
    pub writes: u64,
    /// Bytes to read.
    pub read_bytes: u64,
    /// Bytes to write.
    pub written_bytes: u64,
    /// Requests that the media failed, miscompares included.
    pub failures: u64,
}

impl Counters {
    /// The sums of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            read_bytes: self.read_bytes + other.read_bytes,
            written_bytes: self.written_bytes + other.written_bytes,
            failures: self.failures + other.failures,
        }
    }

    fn count(&mut self, request: &MediumRequest) {
        match request.op {
            MediumOp::Read => {
                self.reads += 1;
                self.read_bytes += u64::from(request.range.len);
            }
            MediumOp::Write { .. } => {
                self.writes += 1;
                self.written_bytes += u64::from(request.range.len);
            }
            _ => {}
        }
    }
}

/// Both ends of transfers that meet.
struct Ends<'a> {
    device: &'a mut Device,
    memory: &'a mut Memory,
    completions: &'a mut Fifo<HostCompletion>,
}

impl TransferSink<HostEntry, DeviceEntry> for Ends<'_> {
    #[inline(always)]
    fn copy(&mut self, range: CopyRange, host: &mut HostEntry, offered: &mut DeviceEntry) {
        self.memory.carry(range, host, offered, self.device);
    }

    /// A message that came in one piece still lies with the host's transfer.
    #[inline(always)]
    fn device_completed(&mut self, completed: Completed<&mut DeviceEntry>, host: Option<&HostEntry>) {
        let Completed { context: &mut DeviceEntry { id, ref payload }, status, actual, .. } = completed;
        let parts = self.memory.take_parts(id);
        let bytes = match (payload, host, &parts) {
            (Payload::Message, Some(host), None) => host.body.as_bytes(),
            (_, _, Some(parts)) => {
                cold_path();
                parts
            }
            _ => &[],
        };
        let bytes = &bytes[..bytes.len().min(actual as usize)];
        self.device.handle_completion(Completion { id, status, actual }, bytes);
    }

    #[inline(always)]
    fn host_completed(&mut self, completed: Completed<&mut HostEntry>) {
        let Completed { context: &mut HostEntry { id, ref mut body }, pipe, length, status, actual } =
            completed;
        let mut body = || std::mem::replace(body, Body::Empty);
        if pipe.endpoint.direction() == Direction::Out {
            self.memory.discard(body());
            let body = Body::Empty;
            return self.completions.push_with(|| HostCompletion { id, pipe, length, status, actual, body });
        }
        self.completions.push_with(|| HostCompletion { id, pipe, length, status, actual, body: body() });
    }
}

/// A device with its media, for one host at a time. Media are of any kind that may go to another thread, unless the type says which
/// kind `M` all are.
#[derive(Debug)]
pub struct Drive<M: ?Sized = dyn Medium + Send> {
    device: Device,
    media: Vec<Box<M>>,
    bus: Rendezvous<HostEntry, DeviceEntry>,
    memory: Memory,
    completions: Fifo<HostCompletion>,
    at_media: usize,
    counters: Counters,
    faults: Faults,
    observer: Option<Box<dyn Observer>>,
}

impl<M: Medium + ?Sized> Drive<M> {
    /// A drive whose units have `media`, in their order. What a power loss has cut off goes on.
    pub fn new(device: Device, media: Vec<Box<M>>) -> Self {
        let mut drive = Self {
            bus: Rendezvous::new(device.config().speed),
            device,
            media,
            memory: Memory::default(),
            completions: Fifo::new(),
            at_media: 0,
            counters: Counters::default(),
            faults: Faults::default(),
            observer: None,
        };
        drive.settle();
        drive
    }

    /// Plans a fault of what goes to the host, which counts from now on. Returns whether there is room for it
    /// ([`FAULTS_MAX`]).
    pub fn plan_fault(&mut self, fault: Fault) -> bool {
        self.faults.plan(fault)
    }

    /// Has somebody look on at the host's transfers from now on.
    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        self.observer = Some(observer);
    }

    /// Removes the observer.
    pub fn stop_observing(&mut self) {
        self.observer = None;
    }

    /// Takes a host's transfer on.
    ///
    /// # Errors
    /// [`Full`] when the host has too many outstanding; the transfer is dropped.
    #[inline(always)]
    pub fn submit(&mut self, transfer: HostTransfer) -> Result<(), Full> {
        let HostTransfer { id, pipe, length, payload } = transfer;
        if let Some(observer) = &mut self.observer {
            cold_path();
            observer.submitted(id, pipe, length, payload.get(..length as usize).unwrap_or(&payload));
        }
        if self.bus.is_full() {
            cold_path();
            self.memory.pool.put(payload);
            return Err(Full);
        }
        if payload.is_empty() {
            self.submit_entry(pipe, length, || HostEntry { id, body: Body::Empty })
        } else {
            self.memory.payload_bytes += payload.len();
            self.submit_entry(pipe, length, || HostEntry { id, body: Body::Buffer(payload) })
        }
    }

    #[inline(always)]
    fn submit_entry(
        &mut self,
        pipe: Pipe,
        length: u32,
        entry: impl FnOnce() -> HostEntry,
    ) -> Result<(), Full> {
        let (bus, mut ends) = self.ends();
        bus.submit_host(pipe, length, entry, &mut ends)?;
        self.settle();
        Ok(())
    }

    /// The same for a few bytes that the host sends. They are not buffered if the device already waits for them.
    ///
    /// # Errors
    /// [`Full`] when the host has too many outstanding; the transfer is dropped.
    pub fn submit_message(&mut self, id: u64, pipe: Pipe, bytes: &[u8]) -> Result<(), Full> {
        let length = bytes.len() as u32;
        if !self.hand_over(pipe, bytes) {
            let mut payload = self.memory.pool.take(bytes.len());
            payload[..bytes.len()].copy_from_slice(bytes);
            return self.submit(HostTransfer { id, pipe, length, payload });
        }
        if let Some(observer) = &mut self.observer {
            cold_path();
            observer.submitted(id, pipe, length, bytes);
        }
        let status = TransferStatus::Done;
        let sent = HostCompletion { id, pipe, length, status, actual: length, body: Body::Empty };
        self.completions.push_back(sent);
        self.settle();
        Ok(())
    }

    /// Sends a few bytes, if the device waits for such a message and there is no observer. `true`: all of them are sent, and
    /// no completion comes. `false`: nothing has happened.
    pub fn pass_message(&mut self, pipe: Pipe, bytes: &[u8]) -> bool {
        let is_sent = self.observer.is_none() && self.hand_over(pipe, bytes);
        if is_sent {
            self.settle();
        }
        is_sent
    }

    /// Delivers a message that the device waits for. Returns whether it did.
    #[inline(always)]
    fn hand_over(&mut self, pipe: Pipe, bytes: &[u8]) -> bool {
        let Self { bus, device, .. } = self;
        bus.pass(pipe, bytes.len() as u32, |completed| {
            let Completed { context: DeviceEntry { id, payload: Payload::Message }, status, actual, .. } =
                completed
            else {
                return None;
            };
            let waits = device.handle_message(Completion { id: *id, status, actual }, bytes);
            Some(if waits { Rearm::Yes } else { Rearm::No })
        })
    }

    /// Takes a host's transfer back. It completes, as cancelled or as what it was before. `false` if there is none.
    pub fn cancel(&mut self, id: u64) -> bool {
        let (bus, mut ends) = self.ends();
        let found = bus.cancel_host(|entry| entry.id == id, &mut ends);
        self.settle();
        found
    }

    /// Cancels the host's transfers at one endpoint, on all its streams: for a bus that allocates or frees streams, which gives the
    /// endpoint another meaning.
    pub fn cancel_at(&mut self, endpoint: EndpointAddress) {
        let (bus, mut ends) = self.ends();
        bus.cancel_host_at(endpoint, &mut ends);
        self.settle();
    }

    /// A control transfer on endpoint 0. One that selects a configuration or an alternate setting cancels all transfers of the
    /// host, as host controllers and usbredirhost do: they were meant for endpoints that exist no more.
    pub fn control(&mut self, setup: SetupPacket, data_out: &[u8]) -> Verdict {
        let verdict = self.device.handle_control(setup, data_out);
        if setup.selects_setting() && verdict != Verdict::Stall {
            // Before anything that the device queues for the new setting.
            let (bus, mut ends) = self.ends();
            bus.cancel_all_host(&mut ends);
        }
        if let Some(observer) = &mut self.observer {
            observer::report_control(&mut **observer, setup, data_out, &verdict);
        }
        self.settle();
        verdict
    }

    /// The host has reset the bus. Its transfers end.
    pub fn bus_reset(&mut self) {
        self.device.handle_bus_reset();
        self.settle();
        let (bus, mut ends) = self.ends();
        bus.disconnect(&mut ends);
        self.settle();
    }

    /// The host is gone. Its transfers end without completions.
    pub fn nexus_loss(&mut self) {
        self.device.handle_nexus_loss();
        self.settle();
        let (bus, mut ends) = self.ends();
        bus.disconnect(&mut ends);
        self.settle();
    }

    /// Starts submitted jobs, handles completed ones, and repeats until no more complete.
    pub fn run_once(&mut self) {
        for medium in &mut self.media {
            medium.flush_submissions();
        }
        while self.take_finished() {
            self.settle();
            for medium in &mut self.media {
                medium.flush_submissions();
            }
        }
    }

    /// The next transfer of the host that has ended.
    pub fn poll(&mut self) -> Option<HostCompletion> {
        self.show_next_end();
        self.completions.pop_front()
    }

    /// Like [`Self::poll`], without moving the completion: passes it to `take`. Memory that remains returns to the pool.
    /// `false`: there is none.
    #[inline]
    pub fn poll_with(&mut self, take: impl FnOnce(&mut HostCompletion)) -> bool {
        self.show_next_end();
        let Some(mut completion) = self.completions.front_entry() else { return false };
        take(&mut completion);
        if let Body::Buffer(memory) = &mut completion.body {
            self.memory.pool.put(std::mem::take(memory));
        }
        completion.discard();
        true
    }

    /// Reports the host transfer that is polled next to the observer.
    #[inline(always)]
    fn show_next_end(&mut self) {
        if let (Some(observer), Some(completion)) = (&mut self.observer, self.completions.front_mut()) {
            cold_path();
            observer::report_completion(&mut **observer, completion);
        }
    }

    /// Descriptors that become readable when a medium has done something: time for [`Drive::run_once`].
    pub fn event_fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.media.iter().filter_map(|medium| medium.event_fd())
    }

    /// Memory for payload.
    pub const fn pool(&mut self) -> &mut Pool {
        &mut self.memory.pool
    }

    /// The device.
    pub const fn device(&self) -> &Device {
        &self.device
    }

    /// The media, by unit.
    pub fn media(&self) -> &[Box<M>] {
        &self.media
    }

    /// Returns the counts so far.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Transfers of the host that have not completed.
    pub const fn outstanding(&self) -> usize {
        self.bus.host_transfers()
    }

    /// Memory that holds payload which the device has not taken yet, in bytes.
    pub const fn payload_bytes(&self) -> usize {
        self.memory.payload_bytes
    }

    /// Requests that the media work on.
    pub const fn at_media(&self) -> usize {
        self.at_media
    }

    /// The bus, and the receiver of its events.
    #[inline]
    fn ends(&mut self) -> (&mut Rendezvous<HostEntry, DeviceEntry>, Ends<'_>) {
        let Self { bus, device, memory, completions, .. } = self;
        (bus, Ends { device, memory, completions })
    }

    /// Carries outputs to where they belong, until there are none.
    #[inline]
    fn settle(&mut self) {
        if self.device.has_outputs() {
            self.carry_out_all();
        }
    }

    #[inline(never)]
    fn carry_out_all(&mut self) {
        while self.carry_out_next() {}
    }

    /// Executes the next output. Returns whether there was one. Its contents are used in place: moving them would be half the work.
    #[inline(always)]
    fn carry_out_next(&mut self) -> bool {
        let Some(mut output) = self.device.poll_output() else { return false };
        match *output {
            Output::Transfer(DeviceTransfer { id, pipe, length, ends, ref mut payload }) => {
                let payload = std::mem::replace(payload, Payload::Nowhere);
                output.discard();
                self.offer(DeviceTransfer { id, pipe, length, ends, payload });
            }
            Output::Medium(request) => {
                output.discard();
                self.ask_medium(request);
            }
            Output::Acquire(id, bytes) => {
                output.discard();
                self.memory.buffers.reserve(id, bytes);
            }
            Output::Release(id) => {
                output.discard();
                if let Some(Buffer::Present(buffer)) = self.memory.buffers.release(id) {
                    self.memory.pool.put(buffer);
                }
            }
            Output::FinishBoth(data_in, data_out) => {
                output.discard();
                let (bus, mut ends) = self.ends();
                bus.finish(data_in, &mut ends);
                bus.finish(data_out, &mut ends);
            }
            Output::Cancel(_) | Output::Finish(_) | Output::Halt(_) | Output::ClearHalt(_) => {
                cold_path();
                if let Some(output) = self.device.poll_output().map(Front::take) {
                    self.carry_out_rare(output);
                }
            }
        }
        true
    }

    #[cold]
    fn carry_out_rare(&mut self, output: Output) {
        let (bus, mut ends) = self.ends();
        match output {
            Output::Cancel(id) => bus.cancel_device(|entry| entry.id == id, &mut ends),
            Output::Finish(pipe) => bus.finish(pipe, &mut ends),
            Output::Halt(endpoint) => bus.halt(endpoint, &mut ends),
            Output::ClearHalt(endpoint) => self.bus.clear_halt(endpoint),
            _ => {}
        }
    }

    /// The device offers a transfer.
    #[inline(always)]
    fn offer(&mut self, mut transfer: DeviceTransfer) {
        let effect = self.faults.effect(&mut transfer);
        let DeviceTransfer { id, pipe, length, ends, payload } = transfer;
        if matches!(effect, FaultEffect::HaltThenSend | FaultEffect::HaltAndDrop) {
            let (bus, mut ends) = self.ends();
            bus.halt(pipe.endpoint, &mut ends);
        }
        if let (FaultEffect::ChangeData, Payload::Buffer(command, range)) = (effect, &payload) {
            cold_path();
            self.memory.buffers.change_bit(*command, range.start);
        }
        if matches!(effect, FaultEffect::Drop | FaultEffect::HaltAndDrop) {
            cold_path();
            let sent = Completion { id, status: TransferStatus::Done, actual: length };
            return self.device.handle_completion(sent, &[]);
        }
        let (bus, mut events) = self.ends();
        bus.submit_device(pipe, length, ends, || DeviceEntry { id, payload }, &mut events);
    }

    fn ask_medium(&mut self, request: MediumRequest) {
        let unit = usize::from(request.unit);
        let buffer = match (request.op, request.location) {
            (MediumOp::SaveState, _) => {
                cold_path();
                self.device.units()[unit].durable_state()
            }
            (_, DataLocation::Parameters) => self.copy_of_parameters(request.id.command),
            (_, DataLocation::Buffer) => match self.memory.buffers.get_mut(request.id.command) {
                Some((bytes, buffer)) => match std::mem::replace(buffer, Buffer::Away) {
                    Buffer::Present(memory) => memory,
                    Buffer::Reserved => self.memory.pool.take(bytes as usize),
                    Buffer::Away => {
                        cold_path();
                        Vec::new()
                    }
                },
                None => {
                    cold_path();
                    Vec::new()
                }
            },
        };
        self.at_media += 1;
        self.counters.count(&request);
        if let Some(finished) = self.media[unit].submit(Job { request, buffer }) {
            self.handle_finished(finished);
        }
    }

    #[cold]
    fn copy_of_parameters(&mut self, id: CommandId) -> Vec<u8> {
        let parameters = self.device.reply(id);
        let mut memory = self.memory.pool.take(parameters.len());
        memory[..parameters.len()].copy_from_slice(parameters);
        memory
    }

    /// Takes one finished job of some medium. Whether there was one.
    fn take_finished(&mut self) -> bool {
        // To ask a medium may be a system call.
        if self.at_media == 0 {
            return false;
        }
        let finished = self.media.iter_mut().find_map(|medium| medium.poll());
        let any = finished.is_some();
        if let Some(finished) = finished {
            self.handle_finished(finished);
        }
        any
    }

    #[inline(always)]
    fn handle_finished(&mut self, finished: CompletedJob) {
        let CompletedJob { completion, buffer } = finished;
        self.at_media -= 1;
        self.counters.failures += u64::from(completion.result.is_err());
        match self.memory.buffers.get_mut(completion.id.command) {
            Some((_, place)) if !buffer.is_empty() => *place = Buffer::Present(buffer),
            _ => self.memory.pool.put(buffer),
        }
        self.device.handle_medium(completion);
    }
}
