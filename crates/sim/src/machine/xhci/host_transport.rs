//! The host end of a drive: its transport, the transfers in flight and the command buffers.
//!
//! A transfer of the transport becomes one of the driver with a small id. Command buffers stay with
//! their owners and are mapped at a window of bus addresses per slot; inline data has separate
//! slots. A pack of several command buffers is copied into and out of one buffer; the core's costs
//! say how long that takes. A driver can limit data-out to one command at a time ([`WriteGate`]).
//!
//! Invariant: each transfer of the transport completes once, by a completion of the driver or a
//! refusal.

use super::host_system::{HostSystem, INLINE_BYTES};
use super::write_gate::WriteGate;
use crate::engine::OccupancyStats;
use crate::machine::host::FinishedCommand;
use crate::machine::observer::{CoreClient, CoreSlice, HostTransfer, Observers};
use bus::{Completion, Pipe, TransferId, TransferStatus};
use initiator::{
    AnyTransport, BufferRange, Command, CommandId, InFlight, Outcome, PEEK_BYTES_MAX, PackId, Payload,
    Refusal, Transfer, Transport,
};
use units::Instant;
use wire::usb::Direction;
use xhci_controller::GuestMemory;
use xhci_driver::{DeviceId, DmaLayout, DmaMemory};

#[derive(Debug)]
pub(super) struct HostTransport {
    /// Number of the drive.
    drive: usize,
    pub(super) transport: AnyTransport,
    in_flight: InFlight<TransferState>,
    /// Windows of command buffers, by slot.
    windows: Vec<Window>,
    /// Window of the pack in flight with its owner; `pack_memory` is its buffer otherwise.
    pack: Window,
    pack_pieces: Vec<BufferRange>,
    pack_memory: Vec<u8>,
    pub(super) observers: Observers,
    pub(super) write_gate: WriteGate,
    /// If tracked: statistics of transfers on rings until the driver completes them.
    on_rings: Option<OccupancyStats>,
}

/// Bus addresses of a slot's command buffer, and its owner.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    address: u64,
    bytes: u32,
    owner: Option<CommandId>,
}

/// A transfer in flight.
#[derive(Debug)]
struct TransferState {
    address: u64,
    carries: Carries,
    pipe: Pipe,
    length: u32,
    /// Since when it is on a ring, if tracked.
    since: Option<Instant>,
}

/// Payload of a transfer once its bytes are in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carries {
    /// Inline data in a slot.
    Inline,
    /// A slot for received data.
    Message,
    /// A command buffer.
    Buffer(CommandId),
    /// The pack.
    Pack,
}

impl HostTransport {
    pub(super) fn new(drive: usize) -> Self {
        Self {
            drive,
            transport: AnyTransport::None,
            in_flight: InFlight::new(),
            windows: Vec::new(),
            pack: Window::default(),
            pack_pieces: Vec::new(),
            pack_memory: Vec::new(),
            observers: Observers::default(),
            write_gate: WriteGate::default(),
            on_rings: None,
        }
    }

    /// Starts tracking transfers on rings; those already there are not counted.
    pub(super) fn watch(&mut self) {
        self.on_rings = Some(OccupancyStats::default());
    }

    /// Returns whether Little's law holds for tracked transfers on rings, and their number is
    /// right.
    pub(super) fn is_consistent(&self, now: Instant) -> bool {
        let booked = self.in_flight.iter().filter(|(_, (_, state))| state.since.is_some()).count();
        self.on_rings.is_none_or(|level| level.is_consistent(now) && level.count() as usize == booked)
    }

    pub(super) fn submit(
        &mut self,
        system: &mut HostSystem,
        now: Instant,
        command: &Command,
        buffer: Vec<u8>,
    ) -> Result<(), Refusal> {
        let slot = usize::from(command.id.slot);
        if slot >= self.windows.len() {
            self.windows.resize(slot + 1, Window::default());
        }
        system.mark_dirty(self.drive);
        self.transport.submit(now, command)?;
        self.lend(system, slot, command.id, buffer);
        self.observers.notify(|observer| observer.began(now, command));
        Ok(())
    }

    fn lend(&mut self, system: &mut HostSystem, slot: usize, owner: CommandId, buffer: Vec<u8>) {
        self.windows[slot].lend(system, owner, buffer);
    }

    /// Returns the bus address of part of a command buffer.
    fn address_of(&self, BufferRange { command, range }: &BufferRange) -> Option<u64> {
        let window = self.windows.get(usize::from(command.slot))?;
        (window.owner == Some(*command)).then(|| window.address + u64::from(range.start))
    }

    /// Lays out a pack, with its data-out copied in. `None` if one is in flight.
    fn lend_pack(&mut self, system: &mut HostSystem, pack: PackId, goes_out: bool) -> Option<u64> {
        let pieces = self.transport.pieces(pack);
        let owner = pieces.first().filter(|_| self.pack.owner.is_none())?.command;
        self.pack_pieces.clear();
        self.pack_pieces.extend_from_slice(pieces);
        let mut bytes = std::mem::take(&mut self.pack_memory);
        bytes.clear();
        for piece in &self.pack_pieces {
            let length = bytes.len() + piece.range.len as usize;
            if goes_out {
                let from = self.address_of(piece)?;
                bytes.extend_from_slice(system.memory.slice(from, piece.range.len as usize).ok()?);
            }
            bytes.resize(length, 0);
        }
        self.pack.lend(system, owner, bytes);
        Some(self.pack.address)
    }

    /// Distributes the data received by a pack.
    fn deal_pack(&mut self, system: &mut HostSystem, brought: usize) -> Vec<u8> {
        self.pack.owner = None;
        let bytes = system.memory.reclaim(self.pack.address);
        let mut rest = bytes.get(..brought).unwrap_or_default();
        for piece in &self.pack_pieces {
            let (own, others) = rest.split_at(rest.len().min(piece.range.len as usize));
            if let Some(to) = self.address_of(piece) {
                let _ = system.memory.write(to, own);
            }
            rest = others;
        }
        bytes
    }

    /// Returns whether a command is in flight.
    pub(super) fn has(&self, id: CommandId) -> bool {
        self.windows.get(usize::from(id.slot)).is_some_and(|window| window.owner == Some(id))
    }

    /// Returns the bytes to copy when a transfer has received `brought`.
    pub(super) fn copied_after(&self, number: TransferId, brought: u32) -> u32 {
        let of = self.in_flight.get(number).map(|(_, state)| state);
        let is_copied = |state: &&TransferState| {
            state.carries == Carries::Pack && state.pipe.endpoint.direction() == Direction::In
        };
        of.filter(is_copied).map_or(0, |_| brought)
    }

    /// Returns the pipes of the transfers that the driver has not completed.
    pub(super) fn in_flight(&self) -> impl Iterator<Item = Pipe> {
        self.in_flight.iter().map(|(_, (_, state))| state.pipe)
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
        let window = self.windows.get_mut(usize::from(id.slot)).filter(|window| window.owner == Some(id));
        let buffer = match window {
            Some(window) => {
                window.owner = None;
                if window.bytes > 0 { system.memory.reclaim(window.address) } else { Vec::new() }
            }
            None => Vec::new(),
        };
        FinishedCommand { drive: self.drive, id, outcome, buffer }
    }

    /// Submits a transfer of the transport to the driver.
    pub(super) fn offer(
        &mut self,
        system: &mut HostSystem,
        now: Instant,
        device: Option<DeviceId>,
        transfer: Transfer,
    ) {
        let Transfer { id, pipe, length, payload } = &transfer;
        let (id, pipe, length) = (*id, *pipe, *length);
        let goes_out = pipe.endpoint.direction() == Direction::Out;
        let (carries, address) = match payload {
            Payload::Buffer(piece) => (Carries::Buffer(piece.command), self.address_of(piece)),
            Payload::Pieces(pack) => (Carries::Pack, self.lend_pack(system, *pack, goes_out)),
            Payload::Inline(_) if length <= INLINE_BYTES => (Carries::Inline, system.take_place()),
            Payload::Message if length <= INLINE_BYTES => (Carries::Message, system.take_place()),
            Payload::Inline(_) | Payload::Message => (Carries::Message, None),
        };
        let Some((address, device)) = address.zip(device) else {
            if carries == Carries::Pack && address.is_some() {
                self.pack_memory = self.deal_pack(system, 0);
            }
            system.mark_dirty(self.drive);
            let refused = Completion { id, status: TransferStatus::Error, actual: 0 };
            return self.transport.handle_completion(now, refused, &[]);
        };
        if let Payload::Inline(inline) = payload {
            system.memory.write_bytes(address, inline.as_bytes());
        }
        let since = self.on_rings.as_mut().map(|level| {
            level.arrive(now);
            now
        });
        let state = TransferState { address, carries, pipe, length, since };
        if !self.observers.is_empty() {
            self.show(system, now, id, &state);
        }
        let number = self.in_flight.insert(id, state);
        let transfer = xhci_driver::Transfer { id: number, device, pipe, buffer: address, length };
        let taken = system.drive(now, |driver, access| driver.submit(access, &transfer));
        if taken.is_err() {
            let refused = Completion { id: number, status: TransferStatus::Error, actual: 0 };
            self.complete(system, (None, CoreSlice::at_once(now)), refused);
        }
    }

    /// Shows a transfer to observers.
    #[inline(never)]
    fn show(&mut self, system: &HostSystem, now: Instant, id: TransferId, state: &TransferState) {
        let bytes = match state.pipe.endpoint.direction() {
            Direction::Out => system.memory.slice(state.address, state.length as usize).unwrap_or_default(),
            Direction::In => &[],
        };
        let shown = state.shown(id);
        self.observers.notify(|observer| observer.submitted(now, &shown, bytes));
    }

    /// Cancels a transfer.
    pub(super) fn cancel(
        &mut self,
        system: &mut HostSystem,
        now: Instant,
        device: Option<DeviceId>,
        id: TransferId,
    ) {
        let Some(number) = self.in_flight.find(id) else { return };
        let pipe = self.in_flight.get(number).map(|(_, state)| state.pipe);
        if let Some((device, pipe)) = device.zip(pipe) {
            system.drive(now, |driver, access| driver.cancel(access, now, device, pipe, number));
        }
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
        (interrupt, turn): (Option<CoreSlice>, CoreSlice),
        completion: Completion,
    ) -> bool {
        let now = turn.ended;
        let Completion { id: number, status, actual } = completion;
        let Some((id, state)) = self.in_flight.remove(number) else { return false };
        if let Some((level, since)) = self.on_rings.as_mut().zip(state.since) {
            level.leave(now, since);
        }
        let is_in = state.pipe.endpoint.direction() == Direction::In;
        let brought = if is_in { actual as usize } else { 0 };
        if state.carries == Carries::Pack {
            self.pack_memory = self.deal_pack(system, brought);
        }
        let bytes = match state.carries {
            Carries::Pack => self.pack_memory.get(..brought),
            // Long data is only passed to observers.
            Carries::Buffer(_) if brought > PEEK_BYTES_MAX && self.observers.is_empty() => None,
            _ => system.memory.slice(state.address, brought).ok(),
        };
        let bytes = bytes.unwrap_or_default();
        if !self.observers.is_empty() {
            let shown = state.shown(id);
            for turn in interrupt.into_iter().chain([turn]).filter(|turn| turn.ended > turn.since) {
                self.observers.notify(|observer| observer.core_worked(turn, CoreClient::Transfer(id)));
            }
            self.observers.notify(|observer| observer.completed(now, &shown, status, actual, bytes));
        }
        let is_passed = state.carries == Carries::Message || bytes.len() <= PEEK_BYTES_MAX;
        let bytes = if is_passed { bytes } else { &[] };
        self.transport.handle_completion(now, Completion { id, status, actual }, bytes);
        system.mark_dirty(self.drive);
        if matches!(state.carries, Carries::Inline | Carries::Message) {
            system.give_place(state.address);
        }
        true
    }
}

impl Window {
    /// Maps a buffer. The window grows to the largest buffer.
    fn lend(&mut self, system: &mut HostSystem, owner: CommandId, buffer: Vec<u8>) {
        let (bytes, memory) = (buffer.len() as u32, &mut system.memory);
        self.owner = Some(owner);
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
}

impl TransferState {
    /// Returns the observers' view.
    fn shown(&self, id: TransferId) -> HostTransfer {
        let command = match self.carries {
            Carries::Buffer(command) => Some(command),
            _ => None,
        };
        HostTransfer { id, pipe: self.pipe, length: self.length, command }
    }
}
