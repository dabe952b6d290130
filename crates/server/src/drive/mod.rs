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
#[cfg(test)]
pub(crate) mod fixture;
mod ledger;
mod presence;
#[cfg(test)]
mod tests;

pub use buffer::Pool;
pub use closing::FlushError;
pub use fault::{Fault, FaultKind, NotAFault};
pub use presence::SlotError;

use crate::medium::{Finished, Job, Medium};
use bus::rendezvous::{self, Event, Full, Meeting};
use bus::{Completion, Direction, Pipe, Rendezvous, TransferStatus};
use fault::{Faults, Way};
use ledger::{Buffer, Buffers, DeviceEntry, Gathered, HostEntry, Ledger};
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use target::command::{CommandId, Place};
use target::medium::{MediumOp, MediumRequest};
use target::{Device, DeviceTransfer, Inline, Output, Payload, Verdict};
use wire::usb::SetupPacket;

/// A transfer that the host wants done.
#[derive(Debug)]
pub struct HostTransfer {
    /// The host's name for it. Names are the host's affair: nothing breaks if two are the same.
    pub id: u64,
    /// Where it goes.
    pub pipe: Pipe,
    /// Bytes to send, or room.
    pub length: u32,
    /// Out: memory (from [`Drive::pool`]) that begins with `length` bytes of payload. In: nothing.
    pub payload: Vec<u8>,
}

/// The end of a host's transfer.
#[derive(Debug)]
pub struct HostCompletion {
    /// The host's name for it.
    pub id: u64,
    /// Where it went.
    pub pipe: Pipe,
    /// What the host asked for, in bytes.
    pub length: u32,
    /// How it ended.
    pub status: TransferStatus,
    /// Bytes moved.
    pub actual: u32,
    /// In: the bytes.
    pub body: Body,
}

/// Bytes for the host.
#[derive(Debug)]
pub enum Body {
    /// None.
    Empty,
    /// A few.
    Inline(Inline),
    /// The first `actual` of this memory, which goes back to [`Drive::pool`] when they are sent.
    Buffer(Vec<u8>),
}

/// What a drive has done so far.
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

/// A device with its media, for one host at a time.
#[derive(Debug)]
pub struct Drive {
    device: Device,
    media: Vec<Box<dyn Medium>>,
    bus: Rendezvous,
    hosts: Ledger<HostEntry>,
    devices: Ledger<DeviceEntry>,
    buffers: Buffers,
    pool: Pool,
    /// Emptied message memory of device transfers.
    messages: Vec<Vec<u8>>,
    completions: VecDeque<HostCompletion>,
    payload_bytes: usize,
    at_media: usize,
    counters: Counters,
    faults: Faults,
}

impl Drive {
    /// A drive whose units have `media`, in their order. What a power loss has cut off goes on.
    pub fn new(device: Device, media: Vec<Box<dyn Medium>>) -> Self {
        let mut drive = Self {
            bus: Rendezvous::new(device.config().speed),
            device,
            media,
            hosts: Ledger::new(),
            devices: Ledger::new(),
            buffers: Buffers::default(),
            pool: Pool::default(),
            messages: Vec::new(),
            completions: VecDeque::new(),
            payload_bytes: 0,
            at_media: 0,
            counters: Counters::default(),
            faults: Faults::default(),
        };
        drive.settle();
        drive
    }

    /// Has something go wrong, once, on the way to the host.
    pub fn plan_fault(&mut self, fault: Fault) {
        self.faults.plan(fault);
    }

    /// Takes a host's transfer on.
    ///
    /// # Errors
    /// [`Full`] when the host has too many outstanding; the transfer is dropped.
    pub fn submit(&mut self, transfer: HostTransfer) -> Result<(), Full> {
        let HostTransfer { id, pipe, length, payload } = transfer;
        self.payload_bytes += payload.len();
        let number = self.hosts.insert(HostEntry { id, pipe, length, payload, gathered: Gathered::Nothing });
        let submitted = self.bus.submit_host(rendezvous::HostTransfer { id: number, pipe, length });
        if submitted.is_err()
            && let Some(entry) = self.hosts.remove(number)
        {
            self.payload_bytes -= entry.payload.len();
            self.pool.put(entry.payload);
        }
        submitted?;
        self.settle();
        Ok(())
    }

    /// Takes a host's transfer back. It completes, as cancelled or as what it was before. `false` if there is none.
    pub fn cancel(&mut self, id: u64) -> bool {
        let Some(number) = self.hosts.find(|entry| entry.id == id) else { return false };
        self.bus.cancel_host(number);
        self.settle();
        true
    }

    /// A control transfer on endpoint 0.
    pub fn control(&mut self, setup: SetupPacket, data_out: &[u8]) -> Verdict {
        let verdict = self.device.handle_control(setup, data_out);
        self.settle();
        verdict
    }

    /// The host has reset the bus. Its transfers end.
    pub fn bus_reset(&mut self) {
        self.device.handle_bus_reset();
        self.settle();
        self.bus.disconnect();
        self.settle();
    }

    /// The host is gone. Its transfers end; completions are of no use to anybody.
    pub fn nexus_loss(&mut self) {
        self.device.handle_nexus_loss();
        self.settle();
        self.bus.disconnect();
        self.settle();
    }

    /// Starts what was submitted to the media, takes what they have done, and goes on with it until all is quiet.
    pub fn turn(&mut self) {
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
        self.completions.pop_front()
    }

    /// Descriptors that become readable when a medium has done something: time for [`Drive::turn`].
    pub fn event_fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.media.iter().filter_map(|medium| medium.event_fd())
    }

    /// Memory for payload.
    pub const fn pool(&mut self) -> &mut Pool {
        &mut self.pool
    }

    /// The device.
    pub const fn device(&self) -> &Device {
        &self.device
    }

    /// The media, by unit.
    pub fn media(&self) -> &[Box<dyn Medium>] {
        &self.media
    }

    /// What was done so far.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Transfers of the host that have not completed.
    pub const fn outstanding(&self) -> usize {
        self.bus.host_transfers()
    }

    /// Memory that holds payload which the device has not taken yet, in bytes.
    pub const fn payload_bytes(&self) -> usize {
        self.payload_bytes
    }

    /// Requests that the media work on.
    pub const fn at_media(&self) -> usize {
        self.at_media
    }

    /// Carries events and outputs to where they belong, until there are none.
    fn settle(&mut self) {
        loop {
            if let Some(event) = self.bus.poll() {
                self.handle_event(event);
            } else if let Some(output) = self.device.poll_output() {
                self.carry_out(output);
            } else {
                return;
            }
        }
    }

    fn handle_event(&mut self, event: Event) {
        match event {
            Event::Met(meeting) => {
                match meeting.direction {
                    _ if meeting.bytes == 0 => {}
                    Direction::In => self.move_in(&meeting),
                    Direction::Out => self.move_out(&meeting),
                }
                if let Some(completion) = meeting.device_completion() {
                    self.complete_device(completion);
                }
                if let Some(completion) = meeting.host_completion() {
                    self.complete_host(completion);
                }
            }
            Event::HostCompleted(completion) => self.complete_host(completion),
            Event::DeviceCompleted(completion) => self.complete_device(completion),
        }
    }

    fn complete_host(&mut self, completion: Completion) {
        let Some(entry) = self.hosts.remove(completion.id) else { return };
        self.payload_bytes -= entry.payload.len();
        self.pool.put(entry.payload);
        self.completions.push_back(HostCompletion {
            id: entry.id,
            pipe: entry.pipe,
            length: entry.length,
            status: completion.status,
            actual: completion.actual,
            body: entry.gathered.into_body(),
        });
    }

    fn complete_device(&mut self, completion: Completion) {
        let Some(mut entry) = self.devices.remove(completion.id) else { return };
        self.device.handle_completion(Completion { id: entry.id, ..completion }, &entry.message);
        // What brought no message has no memory to keep.
        if entry.message.capacity() > 0 {
            entry.message.clear();
            self.messages.push(entry.message);
        }
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Transfer(transfer) => self.offer(transfer),
            Output::Cancel(id) => {
                if let Some(number) = self.devices.find(|entry| entry.id == id) {
                    self.bus.cancel_device(number);
                }
            }
            Output::Finish(pipe) => self.bus.finish(pipe),
            Output::FinishBoth(data_in, data_out) => {
                self.bus.finish(data_in);
                self.bus.finish(data_out);
            }
            Output::Halt(endpoint) => self.bus.halt(endpoint),
            Output::ClearHalt(endpoint) => self.bus.clear_halt(endpoint),
            Output::Acquire(id, bytes) => self.buffers.reserve(id, bytes),
            Output::Release(id) => {
                if let Some(Buffer::Present(buffer)) = self.buffers.release(id) {
                    self.pool.put(buffer);
                }
            }
            Output::Medium(request) => self.ask_medium(request),
        }
    }

    /// The device offers a transfer.
    fn offer(&mut self, transfer: DeviceTransfer) {
        let way = self.faults.way(&transfer);
        let DeviceTransfer { id, pipe, length, ends, payload } = transfer;
        if matches!(way, Way::HaltedOn | Way::HaltedLost) {
            self.bus.halt(pipe.endpoint);
        }
        if matches!(way, Way::Lost | Way::HaltedLost) {
            let sent = Completion { id, status: TransferStatus::Done, actual: length };
            return self.device.handle_completion(sent, &[]);
        }
        let message = match payload {
            Payload::Message => self.messages.pop().unwrap_or_default(),
            _ => Vec::new(),
        };
        let id = self.devices.insert(DeviceEntry { id, payload, message });
        self.bus.submit_device(rendezvous::DeviceTransfer { id, pipe, length, ends });
    }

    /// Bytes from the device into a host's transfer.
    fn move_in(&mut self, step: &Meeting) {
        let (Some(host), Some(device)) = (self.hosts.get_mut(step.host), self.devices.get_mut(step.device))
        else {
            return;
        };
        let whole = step.host_offset == 0 && step.device_offset == 0;
        let (from, bytes) = (step.device_offset as usize, step.bytes as usize);
        match &device.payload {
            Payload::Inline(inline) if whole && bytes == inline.as_bytes().len() => {
                host.gathered = Gathered::Inline(inline.clone());
            }
            Payload::Inline(inline) => {
                gather(host, &mut self.pool, step, &inline.as_bytes()[from..from + bytes])
            }
            &Payload::Reply(id) => {
                gather(host, &mut self.pool, step, &self.device.reply(id)[from..from + bytes]);
            }
            &Payload::Buffer(id, range) => {
                let Some((buffer_bytes, buffer)) = self.buffers.get_mut(id) else { return };
                let Buffer::Present(memory) = buffer else { return };
                let start = range.start as usize + from;
                // All of the command's data in one transfer: the memory itself goes to the host, since a command
                // that sends data has no use for it afterwards.
                if whole && range.start == 0 && step.bytes == buffer_bytes {
                    host.gathered = Gathered::Buffer(std::mem::take(memory));
                    *buffer = Buffer::Away;
                } else {
                    gather(host, &mut self.pool, step, &memory[start..start + bytes]);
                }
            }
            Payload::Message | Payload::Nowhere => {}
        }
    }

    /// Bytes from a host's transfer into the device.
    fn move_out(&mut self, step: &Meeting) {
        let (Some(host), Some(device)) = (self.hosts.get_mut(step.host), self.devices.get_mut(step.device))
        else {
            return;
        };
        let (from, bytes) = (step.host_offset as usize, step.bytes as usize);
        match &device.payload {
            Payload::Message => device.message.extend_from_slice(&host.payload[from..from + bytes]),
            &Payload::Buffer(id, range) => {
                let Some((all, buffer)) = self.buffers.get_mut(id) else { return };
                let (whole, at) =
                    (step.device_offset == 0 && from == 0, (range.start + step.device_offset) as usize);
                match buffer {
                    // The payload is the whole of the command's data: its memory becomes the command's buffer.
                    Buffer::Reserved if whole && step.bytes == all && host.length == all => {
                        self.payload_bytes -= host.payload.len();
                        *buffer = Buffer::Present(std::mem::take(&mut host.payload));
                    }
                    Buffer::Reserved => {
                        let mut memory = self.pool.take(all as usize);
                        memory[at..at + bytes].copy_from_slice(&host.payload[from..from + bytes]);
                        *buffer = Buffer::Present(memory);
                    }
                    Buffer::Present(memory) => {
                        memory[at..at + bytes].copy_from_slice(&host.payload[from..from + bytes]);
                    }
                    Buffer::Away => {}
                }
            }
            Payload::Inline(_) | Payload::Reply(_) | Payload::Nowhere => {}
        }
    }

    fn ask_medium(&mut self, request: MediumRequest) {
        let unit = usize::from(request.unit);
        let buffer = match (request.op, request.place) {
            (MediumOp::SaveState, _) => self.device.units()[unit].durable_state(),
            (_, Place::Parameters) => self.copy_of_parameters(request.id.command),
            (_, Place::Buffer) => match self.buffers.get_mut(request.id.command) {
                Some((bytes, buffer)) => match std::mem::replace(buffer, Buffer::Away) {
                    Buffer::Present(memory) => memory,
                    Buffer::Reserved => self.pool.take(bytes as usize),
                    Buffer::Away => Vec::new(),
                },
                None => Vec::new(),
            },
        };
        self.at_media += 1;
        self.counters.count(&request);
        if let Some(finished) = self.media[unit].submit(Job { request, buffer }) {
            self.handle_finished(finished);
        }
    }

    fn copy_of_parameters(&mut self, id: CommandId) -> Vec<u8> {
        let parameters = self.device.reply(id);
        let mut memory = self.pool.take(parameters.len());
        memory[..parameters.len()].copy_from_slice(parameters);
        memory
    }

    /// Takes one finished job of some medium. Whether there was one.
    fn take_finished(&mut self) -> bool {
        let finished = self.media.iter_mut().find_map(|medium| medium.poll());
        let any = finished.is_some();
        if let Some(finished) = finished {
            self.handle_finished(finished);
        }
        any
    }

    fn handle_finished(&mut self, finished: Finished) {
        let Finished { completion, buffer } = finished;
        self.at_media -= 1;
        self.counters.failures += u64::from(completion.result.is_err());
        match self.buffers.get_mut(completion.id.command) {
            Some((_, place)) if !buffer.is_empty() => *place = Buffer::Present(buffer),
            _ => self.pool.put(buffer),
        }
        self.device.handle_medium(completion);
    }
}

/// Copies bytes into what a host's transfer gathers. Memory grows with what comes, not with what the host asks for.
fn gather(host: &mut HostEntry, pool: &mut Pool, step: &Meeting, bytes: &[u8]) {
    let at = step.host_offset as usize;
    let end = at + bytes.len();
    let mut memory = match std::mem::take(&mut host.gathered) {
        Gathered::Buffer(memory) if memory.len() >= end => memory,
        earlier => {
            let mut memory = pool.take(end);
            memory[..at].copy_from_slice(&earlier.as_bytes()[..at]);
            if let Gathered::Buffer(old) = earlier {
                pool.put(old);
            }
            memory
        }
    };
    memory[at..end].copy_from_slice(bytes);
    host.gathered = Gathered::Buffer(memory);
}
