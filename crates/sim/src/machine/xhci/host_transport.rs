//! The host end of a drive: a [`CommandRunner`] whose bus is the driver of the controller.
//!
//! Command buffers stay with their owners and are mapped at a window of bus addresses per slot
//! while their command runs. A message has a DMA slot while its transfer is on a ring, and a merged
//! transfer a window; the core's costs say how long copying takes. A driver can limit data-out to
//! one command at a time ([`WriteGate`]).
//!
//! Transfers go to the driver at once, or, where the core's time, faults or the gate come first, as
//! a [`HostAction`] that the machine carries out. Invariant: each transfer completes once, by a
//! completion of the driver or a refusal.

use super::core::CoreSlices;
use super::host_system::{BusCall, HostSystem, INLINE_BYTES};
use super::write_gate::WriteGate;
use crate::engine::OccupancyStats;
use crate::machine::host::{FinishedCommand, HostAction, copy};
use crate::machine::observer::{CoreClient, CoreSlice, HostTransfer, Observers};
use bus::{Completion, Pipe, TransferId, TransferStatus};
use initiator::session::{
    BufferId, BufferMemory, BufferSpan, CommandBuffer, CommandRunner, HostBus, RunnerBuffers, TransferRequest,
};
use initiator::{
    AnyTransport, BusAnswer, BusRequest, Command, CommandId, Outcome, Refusal, RequestId, Transport,
};
use std::collections::VecDeque;
use units::Instant;
use wire::usb::Direction;
use xhci_driver::{DmaLayout, DmaMemory, Transfer};

#[derive(Debug)]
pub(super) struct HostTransport {
    commands: CommandRunner<AnyTransport>,
    state: BusState,
    pub(super) observers: Observers,
    write_gate: WriteGate,
}

/// The state of a bus between calls.
#[derive(Debug)]
struct BusState {
    /// Number of the drive.
    drive: usize,
    /// Whether transfers go to the driver at once.
    is_direct: bool,
    /// A buffer for the message of each transfer, and one for merged transfers.
    own: Vec<Vec<u8>>,
    /// The merged transfer's.
    merged: Window,
    /// Windows of command buffers, by slot.
    windows: Vec<Window>,
    /// By transfer id.
    transfers: Vec<Option<TransferState>>,
    actions: VecDeque<HostAction>,
    /// If tracked: statistics of transfers on rings until the driver completes them.
    on_rings: Option<OccupancyStats>,
}

/// Bus addresses of a buffer, and its command.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    address: u64,
    bytes: u32,
    owner: Option<CommandId>,
}

/// A transfer in flight.
#[derive(Clone, Copy, Debug)]
struct TransferState {
    address: u64,
    span: BufferSpan,
    pipe: Pipe,
    command: Option<CommandId>,
    /// Since when it is on a ring, if tracked.
    since: Option<Instant>,
}

/// The bus of a drive: its driver.
struct DriverBus<'a> {
    call: BusCall<'a>,
    state: &'a mut BusState,
    observers: &'a mut Observers,
}

impl HostTransport {
    pub(super) fn new(drive: usize) -> Self {
        let state = BusState {
            drive,
            is_direct: false,
            own: vec![Vec::new()],
            merged: Window::default(),
            windows: Vec::new(),
            transfers: Vec::new(),
            actions: VecDeque::new(),
            on_rings: None,
        };
        let buffers = RunnerBuffers { messages: BufferId::default(), merged: None };
        let commands = CommandRunner::new(AnyTransport::None, buffers);
        Self { commands, state, observers: Observers::default(), write_gate: WriteGate::default() }
    }

    /// Replaces the transport, of which nothing is in flight.
    pub(super) fn start(&mut self, transport: AnyTransport, write_gate: WriteGate) {
        let transfers = transport.transfers_max();
        let merged = Some(BufferId::new(transfers as u32));
        self.state.own = vec![Vec::new(); transfers + 1];
        self.state.transfers = vec![None; transfers];
        self.commands =
            CommandRunner::new(transport, RunnerBuffers { messages: BufferId::default(), merged });
        self.write_gate = write_gate;
    }

    /// Sets whether transfers go to the driver at once, unless they may have to wait for others.
    pub(super) const fn go_direct(&mut self, is_direct: bool) {
        self.state.is_direct = is_direct && !self.write_gate.is_serial();
    }

    pub(super) const fn transport(&self) -> &AnyTransport {
        self.commands.transport()
    }

    /// Returns the transport to be called; the caller marks it.
    pub(super) const fn transport_mut(&mut self) -> &mut AnyTransport {
        self.commands.transport_mut()
    }

    /// Starts tracking transfers on rings; those already there are not counted.
    pub(super) fn watch(&mut self) {
        self.state.on_rings = Some(OccupancyStats::default());
    }

    /// Returns whether Little's law holds for tracked transfers on rings, and their number is
    /// right.
    pub(super) fn is_consistent(&self, now: Instant) -> bool {
        let booked = self.state.transfers.iter().flatten().filter(|state| state.since.is_some()).count();
        let on_rings = self.state.on_rings.as_ref();
        on_rings.is_none_or(|level| level.is_consistent(now) && level.count() as usize == booked)
    }

    pub(super) fn submit(
        &mut self,
        system: &mut HostSystem,
        now: Instant,
        command: &Command,
        buffer: Vec<u8>,
    ) -> Result<(), Refusal> {
        system.ready.mark_transport(self.state.drive);
        let slot = command.id.slot;
        let lent = CommandBuffer { buffer: self.state.first_slot().after(slot), is_whole: true };
        self.commands.submit(now, command, lent)?;
        let slot = usize::from(slot);
        if slot >= self.state.windows.len() {
            self.state.windows.resize(slot + 1, Window::default());
        }
        self.state.windows[slot].lend(system, buffer);
        self.state.windows[slot].owner = Some(command.id);
        self.observers.notify(|observer| observer.began(now, command));
        Ok(())
    }

    /// Returns the next thing to do.
    #[inline]
    pub(super) fn poll(&mut self, call: BusCall<'_>) -> Option<HostAction> {
        if self.state.actions.is_empty() {
            let now = call.now;
            let mut bus = DriverBus { call, state: &mut self.state, observers: &mut self.observers };
            if let Some(finished) = self.commands.poll(now, &mut bus) {
                self.state.actions.push_back(HostAction::Finish(finished.id, finished.outcome));
            }
        }
        self.state.actions.pop_front()
    }

    /// Returns the message that a transfer sends, to be changed.
    pub(super) fn message(&mut self, request: &TransferRequest) -> Option<&mut [u8]> {
        let is_message = request.span.buffer.index() < self.state.transfers.len();
        let is_sent = is_message && request.pipe.endpoint.direction() == Direction::Out;
        let bytes = self.state.own.get_mut(request.span.buffer.index()).filter(|_| is_sent)?;
        bytes.get_mut(request.span.range.as_usize())
    }

    /// Returns a transfer if it can proceed, else queues it.
    pub(super) fn pass(&mut self, request: TransferRequest) -> Option<TransferRequest> {
        self.write_gate.pass(request, self.state.owner(request.span.buffer))
    }

    /// Cancels a transfer that waits for others. Returns whether it did.
    pub(super) fn cancel_waiting(&mut self, id: TransferId) -> bool {
        self.write_gate.cancel(id)
    }

    /// Returns the transfers that can proceed when a command has completed.
    pub(super) fn pass_after(&mut self, id: CommandId) -> Vec<TransferRequest> {
        self.write_gate.ended(id)
    }

    /// Returns whether a transfer is of several commands.
    pub(super) fn is_merged(&self, request: &TransferRequest) -> bool {
        self.state.is_merged(request.span.buffer)
    }

    /// Returns whether a command is in flight.
    pub(super) fn has(&self, id: CommandId) -> bool {
        self.state.windows.get(usize::from(id.slot)).is_some_and(|window| window.owner == Some(id))
    }

    /// Returns the bytes to copy when a transfer has received `brought`.
    pub(super) fn copied_after(&self, id: TransferId, brought: u32) -> u32 {
        let is_copied = self.state.transfer(id).is_some_and(|state| {
            self.state.is_merged(state.span.buffer) && state.pipe.endpoint.direction() == Direction::In
        });
        if is_copied { brought } else { 0 }
    }

    /// Returns the pipes of the transfers that the driver has not completed.
    pub(super) fn in_flight(&self) -> impl Iterator<Item = Pipe> {
        self.state.transfers.iter().flatten().map(|state| state.pipe)
    }

    /// Completes a command.
    pub(super) fn finish(
        &mut self,
        system: &mut HostSystem,
        now: Instant,
        id: CommandId,
        outcome: Outcome,
    ) -> FinishedCommand {
        self.observers.notify(|observer| observer.ended(now, id, &outcome));
        let windows = &mut self.state.windows;
        let window = windows.get_mut(usize::from(id.slot)).filter(|window| window.owner == Some(id));
        let buffer = window.map_or_else(Vec::new, |window| window.reclaim(system));
        FinishedCommand { drive: self.state.drive, id, outcome, buffer }
    }

    /// Submits a transfer of the transport to the driver.
    pub(super) fn offer(&mut self, call: BusCall<'_>, request: TransferRequest) {
        let now = call.now;
        let mut bus = DriverBus { call, state: &mut self.state, observers: &mut self.observers };
        if let Some(refused) = bus.start(request) {
            self.commands.complete(now, &mut bus, refused);
        }
    }

    /// Cancels a transfer.
    pub(super) fn cancel(&mut self, call: BusCall<'_>, id: TransferId) {
        let BusCall { system, now, device } = call;
        let pipe = self.state.transfer(id).map(|state| state.pipe);
        if let Some((device, pipe)) = device.zip(pipe) {
            system.drive(now, |driver, access| driver.cancel(access, now, device, pipe, id));
        }
    }

    /// Completes a transfer that the driver never got.
    pub(super) fn complete_unsent(&mut self, call: BusCall<'_>, completion: Completion) {
        let now = call.now;
        call.system.ready.mark_transport(self.state.drive);
        let mut bus = DriverBus { call, state: &mut self.state, observers: &mut self.observers };
        self.commands.complete(now, &mut bus, completion);
    }

    /// Reports core time of a command.
    pub(super) fn core_worked(&mut self, turn: CoreSlice, of: CoreClient) {
        if turn.ended > turn.since {
            self.observers.notify(|observer| observer.core_worked(turn, of));
        }
    }

    /// Handles a completion of the driver, which the core saw earlier. Returns whether the transfer
    /// was in flight.
    pub(super) fn complete(
        &mut self,
        system: &mut HostSystem,
        slices: CoreSlices,
        completion: Completion,
    ) -> bool {
        let call = BusCall { system, now: slices.turn.ended, device: None };
        let mut bus = DriverBus { call, state: &mut self.state, observers: &mut self.observers };
        let was_in_flight = bus.end(slices, completion);
        if was_in_flight {
            self.commands.complete(slices.turn.ended, &mut bus, completion);
        }
        was_in_flight
    }
}

impl BusState {
    /// Returns the buffer of slot 0.
    fn first_slot(&self) -> BufferId {
        BufferId::new(self.own.len() as u32)
    }

    fn is_merged(&self, buffer: BufferId) -> bool {
        buffer.index() == self.transfers.len()
    }

    fn transfer(&self, id: TransferId) -> Option<&TransferState> {
        self.transfers.get(id.0 as usize)?.as_ref()
    }

    /// Returns the window of a command's buffer, while the command runs.
    fn window(&self, buffer: BufferId) -> Option<&Window> {
        let slot = buffer.index().checked_sub(self.own.len())?;
        self.windows.get(slot).filter(|window| window.owner.is_some())
    }

    /// Returns the command of a buffer.
    fn owner(&self, buffer: BufferId) -> Option<CommandId> {
        self.window(buffer)?.owner
    }
}

impl DriverBus<'_> {
    /// Puts a transfer on a ring. Returns its completion if that is refused.
    #[inline]
    fn start(&mut self, request: TransferRequest) -> Option<Completion> {
        let TransferRequest { id, pipe, span, .. } = request;
        let refused = Completion { id, status: TransferStatus::Error, actual: 0 };
        let mapped = self.call.device.and_then(|device| Some((device, self.map(pipe, span)?)));
        let Some((device, address)) = mapped else {
            self.call.system.ready.mark_transport(self.state.drive);
            return Some(refused);
        };
        let now = self.call.now;
        let since = self.state.on_rings.as_mut().map(|level| {
            level.arrive(now);
            now
        });
        let command = self.state.owner(span.buffer);
        let state = TransferState { address, span, pipe, command, since };
        if !self.observers.is_empty() {
            self.show(id, &state);
        }
        if let Some(slot) = self.state.transfers.get_mut(id.0 as usize) {
            *slot = Some(state);
        }
        let transfer = Transfer { id, device, pipe, buffer: address, length: span.range.len };
        let taken = self.call.system.drive(now, |driver, access| driver.submit(access, &transfer));
        taken.is_err().then(|| {
            self.end(CoreSlices::at_once(now), refused);
            refused
        })
    }

    /// Returns the bus address of a span, once its bytes are there. `None` if memory is exhausted.
    fn map(&mut self, pipe: Pipe, span: BufferSpan) -> Option<u64> {
        if let Some(window) = self.state.window(span.buffer) {
            return Some(window.address + u64::from(span.range.start));
        }
        let is_merged = self.state.is_merged(span.buffer);
        let bytes = self.state.own.get_mut(span.buffer.index())?;
        if is_merged {
            let mut bytes = std::mem::take(bytes);
            bytes.resize(span.range.as_usize().end, 0);
            self.state.merged.lend(self.call.system, bytes);
            return Some(self.state.merged.address);
        }
        if span.range.len > INLINE_BYTES {
            return None;
        }
        let place = self.call.system.take_place()?;
        if pipe.endpoint.direction() == Direction::Out {
            self.call.system.memory.write_bytes(place, bytes.get(span.range.as_usize()).unwrap_or_default());
        }
        Some(place)
    }

    /// Takes a transfer off: its bytes are in its buffer. Returns whether it was in flight.
    fn end(&mut self, slices: CoreSlices, completion: Completion) -> bool {
        let Completion { id, actual, .. } = completion;
        let transfer = self.state.transfers.get_mut(id.0 as usize);
        let Some(state) = transfer.and_then(Option::take) else { return false };
        let system = &mut *self.call.system;
        if let Some((level, since)) = self.state.on_rings.as_mut().zip(state.since) {
            level.leave(slices.turn.ended, since);
        }
        if !self.observers.is_empty() {
            state.show_end(system, self.observers, slices, completion);
        }
        let is_merged = self.state.is_merged(state.span.buffer);
        if let Some(own) = self.state.own.get_mut(state.span.buffer.index()) {
            if is_merged {
                *own = self.state.merged.reclaim(system);
            } else {
                if state.pipe.endpoint.direction() == Direction::In {
                    own.clear();
                    own.extend_from_slice(
                        system.memory.slice(state.address, actual as usize).unwrap_or_default(),
                    );
                }
                system.give_place(state.address);
            }
        }
        system.ready.mark_transport(self.state.drive);
        true
    }

    /// Shows a submitted transfer to observers.
    #[inline(never)]
    fn show(&mut self, id: TransferId, state: &TransferState) {
        let bytes = match state.pipe.endpoint.direction() {
            Direction::Out => self
                .call
                .system
                .memory
                .slice(state.address, state.span.range.len as usize)
                .unwrap_or_default(),
            Direction::In => &[],
        };
        let (now, shown) = (self.call.now, state.shown(id));
        self.observers.notify(|observer| observer.submitted(now, &shown, bytes));
    }

    /// Returns the bytes of a span, as far as there are any.
    fn slice(&self, span: BufferSpan) -> &[u8] {
        let found = match self.state.window(span.buffer) {
            Some(window) => {
                let start = window.address + u64::from(span.range.start);
                self.call.system.memory.slice(start, span.range.len as usize).ok()
            }
            None => {
                let own = self.state.own.get(span.buffer.index());
                own.and_then(|bytes| bytes.get(span.range.as_usize()))
            }
        };
        found.unwrap_or_default()
    }

    /// Returns the bytes of a span, to be written. A buffer that is the bus's grows.
    fn place(&mut self, span: BufferSpan) -> &mut [u8] {
        let (range, window) = (span.range.as_usize(), self.state.window(span.buffer).copied());
        let found = match window {
            Some(window) => {
                let start = window.address + u64::from(span.range.start);
                self.call.system.memory.slice_mut(start, range.len()).ok()
            }
            None => self.state.own.get_mut(span.buffer.index()).and_then(|bytes| {
                bytes.resize(bytes.len().max(range.end), 0);
                bytes.get_mut(range)
            }),
        };
        found.unwrap_or_default()
    }
}

impl HostBus for DriverBus<'_> {
    type Buffers = Self;

    fn buffers(&mut self) -> &mut Self {
        self
    }

    #[inline]
    fn submit(&mut self, request: TransferRequest) -> Option<Completion> {
        if self.state.is_direct && self.state.actions.is_empty() {
            return self.start(request);
        }
        self.state.actions.push_back(HostAction::Submit(request));
        None
    }

    fn cancel(&mut self, id: TransferId) {
        self.state.actions.push_back(HostAction::Cancel(id));
    }

    fn request(&mut self, id: RequestId, request: BusRequest) -> Option<BusAnswer> {
        self.state.actions.push_back(HostAction::Request(id, request));
        None
    }
}

impl BufferMemory for DriverBus<'_> {
    /// A command's buffer is lent to the device while its command runs.
    fn bytes(&mut self, buffer: BufferId) -> Option<&mut [u8]> {
        self.state.own.get_mut(buffer.index()).map(Vec::as_mut_slice)
    }

    fn copy_out(&self, from: BufferSpan, into: &mut [u8]) -> usize {
        copy(self.slice(from), into)
    }

    fn copy_in(&mut self, into: BufferSpan, from: &[u8]) -> usize {
        copy(from, self.place(into))
    }

    fn copy_across(&mut self, from: BufferSpan, into: BufferSpan) -> usize {
        let merged = self.state.transfers.len();
        let mut bytes = std::mem::take(&mut self.state.own[merged]);
        let copied = if into.buffer.index() == merged {
            let range = into.range.as_usize();
            bytes.resize(bytes.len().max(range.end), 0);
            copy(self.slice(from), &mut bytes[range])
        } else if from.buffer.index() == merged {
            copy(bytes.get(from.range.as_usize()).unwrap_or_default(), self.place(into))
        } else {
            0
        };
        self.state.own[merged] = bytes;
        copied
    }
}

impl Window {
    /// Maps a buffer. The window grows to the largest buffer.
    fn lend(&mut self, system: &mut HostSystem, buffer: Vec<u8>) {
        let (bytes, memory) = (buffer.len() as u32, &mut system.memory);
        if bytes > self.bytes {
            if self.bytes > 0 {
                let layout = DmaLayout { bytes: self.bytes, align: 1, boundary: 1 };
                memory.release(self.address, layout);
            }
            (self.address, self.bytes) = (memory.window(bytes).unwrap_or(0), bytes);
        }
        if self.bytes > 0 {
            memory.lend(self.address, buffer);
        }
    }

    /// Unmaps and returns the buffer.
    fn reclaim(&mut self, system: &mut HostSystem) -> Vec<u8> {
        self.owner = None;
        if self.bytes > 0 { system.memory.reclaim(self.address) } else { Vec::new() }
    }
}

impl TransferState {
    /// Shows a completed transfer to observers.
    #[inline(never)]
    fn show_end(
        &self,
        system: &HostSystem,
        observers: &mut Observers,
        slices: CoreSlices,
        completion: Completion,
    ) {
        let Completion { id, status, actual } = completion;
        let bytes = match self.pipe.endpoint.direction() {
            Direction::In => system.memory.slice(self.address, actual as usize).unwrap_or_default(),
            Direction::Out => &[],
        };
        let shown = self.shown(id);
        let CoreSlices { interrupt, turn } = slices;
        for turn in interrupt.into_iter().chain([turn]).filter(|turn| turn.ended > turn.since) {
            observers.notify(|observer| observer.core_worked(turn, CoreClient::Transfer(id)));
        }
        observers.notify(|observer| observer.completed(turn.ended, &shown, status, actual, bytes));
    }

    /// Returns the observers' view.
    fn shown(&self, id: TransferId) -> HostTransfer {
        HostTransfer { id, pipe: self.pipe, length: self.span.range.len, command: self.command }
    }
}
