//! A drive as the host sees it: a transport, its transfers under way, and where its commands have their memory.
//!
//! A transfer of the transport becomes one of the driver, whose id is a small number. What a command reads or writes lies where
//! the command's owner has it, at a window of bus addresses that stays the slot's; what travels inline has a place of its own.
//! A pack of several commands' memory travels in one piece, into which and out of which it is copied; the core's costs say how
//! long that takes. A driver can have the data of one command at a time go out ([`WriteTurn`]).
//!
//! Always true: each transfer of the transport completes once, by a completion of the driver or by a refusal.

use super::machine::{INLINE_BYTES, Machine};
use super::transport::AnyTransport;
use super::write_turn::WriteTurn;
use crate::engine::Level;
use crate::world::host::Finished;
use crate::world::observer::{CoreTurn, HostTransfer, Observers, WorkedFor};
use bus::{Completion, Pipe, TransferId, TransferStatus};
use initiator::{
    Command, CommandId, Flights, Outcome, PEEK_BYTES_MAX, PackId, Payload, Piece, Refusal, Transfer,
    Transport,
};
use units::Instant;
use wire::usb::Direction;
use xhci_driver::{DeviceId, DmaLayout, DmaMemory};

#[derive(Debug)]
pub(super) struct Desk {
    /// Its number.
    drive: usize,
    pub(super) transport: AnyTransport,
    flights: Flights<Flight>,
    /// Where commands have their memory, by slot.
    windows: Vec<Window>,
    /// Where a pack lies while it is under way, whose memory it is of, and its own memory while it is not.
    pack: Window,
    pack_pieces: Vec<Piece>,
    pack_memory: Vec<u8>,
    pub(super) observers: Observers,
    pub(super) write_turn: WriteTurn,
    /// Where somebody watches: transfers that the driver has put on a ring, until it says that they have ended.
    on_rings: Option<Level>,
}

/// Bus addresses for the memory of a slot's commands, and whose memory is there.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    address: u64,
    bytes: u32,
    owner: Option<CommandId>,
}

/// A transfer under way.
#[derive(Debug)]
struct Flight {
    address: u64,
    carries: Carries,
    pipe: Pipe,
    length: u32,
    /// Since when it is on a ring, if that is booked.
    since: Option<Instant>,
}

/// What is left of a payload once its bytes are where the driver finds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carries {
    /// Bytes that lie at a place of their own.
    Inline,
    /// The same, for bytes that come.
    Message,
    /// Memory of a command.
    Buffer(CommandId),
    /// The pack.
    Pack,
}

impl Desk {
    pub(super) fn new(drive: usize) -> Self {
        Self {
            drive,
            transport: AnyTransport::None,
            flights: Flights::new(),
            windows: Vec::new(),
            pack: Window::default(),
            pack_pieces: Vec::new(),
            pack_memory: Vec::new(),
            observers: Observers::default(),
            write_turn: WriteTurn::default(),
            on_rings: None,
        }
    }

    /// Books are kept from now on of transfers on rings; what is there already is not in them.
    pub(super) fn watch(&mut self) {
        self.on_rings = Some(Level::default());
    }

    /// Whether Little's law holds of transfers on rings, and as many are there as the books say, if any are kept.
    pub(super) fn is_consistent(&self, now: Instant) -> bool {
        let booked = self.flights.iter().filter(|(_, (_, flight))| flight.since.is_some()).count();
        self.on_rings.is_none_or(|level| level.is_consistent(now) && level.count() as usize == booked)
    }

    pub(super) fn submit(
        &mut self,
        machine: &mut Machine,
        now: Instant,
        command: &Command,
        buffer: Vec<u8>,
    ) -> Result<(), Refusal> {
        let slot = usize::from(command.id.slot);
        if slot >= self.windows.len() {
            self.windows.resize(slot + 1, Window::default());
        }
        machine.told(self.drive);
        self.transport.submit(now, command)?;
        self.lend(machine, slot, command.id, buffer);
        self.observers.tell(|observer| observer.began(now, command));
        Ok(())
    }

    fn lend(&mut self, machine: &mut Machine, slot: usize, owner: CommandId, buffer: Vec<u8>) {
        self.windows[slot].lend(machine, owner, buffer);
    }

    /// Where bytes of a command's memory are.
    fn address_of(&self, Piece { command, range }: &Piece) -> Option<u64> {
        let window = self.windows.get(usize::from(command.slot))?;
        (window.owner == Some(*command)).then(|| window.address + u64::from(range.start))
    }

    /// Lays a pack out: what goes out is in it, end to end. `None` if one is under way.
    fn lend_pack(&mut self, machine: &mut Machine, pack: PackId, goes_out: bool) -> Option<u64> {
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
                bytes.extend_from_slice(machine.memory.slice(from, piece.range.len as usize).ok()?);
            }
            bytes.resize(length, 0);
        }
        self.pack.lend(machine, owner, bytes);
        Some(self.pack.address)
    }

    /// A pack has been carried: what it has brought goes to whose it is.
    fn deal_pack(&mut self, machine: &mut Machine, brought: usize) -> Vec<u8> {
        self.pack.owner = None;
        let bytes = machine.memory.reclaim(self.pack.address);
        let mut rest = bytes.get(..brought).unwrap_or_default();
        for piece in &self.pack_pieces {
            let (own, others) = rest.split_at(rest.len().min(piece.range.len as usize));
            if let Some(to) = self.address_of(piece) {
                let _ = machine.memory.write(to, own);
            }
            rest = others;
        }
        bytes
    }

    /// Whether a command has not ended.
    pub(super) fn has(&self, id: CommandId) -> bool {
        self.windows.get(usize::from(id.slot)).is_some_and(|window| window.owner == Some(id))
    }

    /// Bytes of a transfer that are copied to where they belong when it has brought so many.
    pub(super) fn copied_after(&self, number: TransferId, brought: u32) -> u32 {
        let of = self.flights.get(number).map(|(_, flight)| flight);
        let is_copied = |flight: &&Flight| {
            flight.carries == Carries::Pack && flight.pipe.endpoint.direction() == Direction::In
        };
        of.filter(is_copied).map_or(0, |_| brought)
    }

    /// Pipes of the transfers that the driver has not completed.
    pub(super) fn under_way(&self) -> impl Iterator<Item = Pipe> {
        self.flights.iter().map(|(_, (_, flight))| flight.pipe)
    }

    /// A command has ended.
    pub(super) fn finish(
        &mut self,
        machine: &mut Machine,
        now: Instant,
        id: CommandId,
        outcome: Outcome,
    ) -> Finished {
        self.observers.tell(|observer| observer.ended(now, id, &outcome));
        let window = self.windows.get_mut(usize::from(id.slot)).filter(|window| window.owner == Some(id));
        let buffer = match window {
            Some(window) => {
                window.owner = None;
                if window.bytes > 0 { machine.memory.reclaim(window.address) } else { Vec::new() }
            }
            None => Vec::new(),
        };
        Finished { drive: self.drive, id, outcome, buffer }
    }

    /// Gives a transfer of the transport to the driver.
    pub(super) fn offer(
        &mut self,
        machine: &mut Machine,
        now: Instant,
        device: Option<DeviceId>,
        transfer: Transfer,
    ) {
        let Transfer { id, pipe, length, payload } = &transfer;
        let (id, pipe, length) = (*id, *pipe, *length);
        let goes_out = pipe.endpoint.direction() == Direction::Out;
        let (carries, address) = match payload {
            Payload::Buffer(piece) => (Carries::Buffer(piece.command), self.address_of(piece)),
            Payload::Pieces(pack) => (Carries::Pack, self.lend_pack(machine, *pack, goes_out)),
            Payload::Inline(_) if length <= INLINE_BYTES => (Carries::Inline, machine.take_place()),
            Payload::Message if length <= INLINE_BYTES => (Carries::Message, machine.take_place()),
            Payload::Inline(_) | Payload::Message => (Carries::Message, None),
        };
        let Some((address, device)) = address.zip(device) else {
            if carries == Carries::Pack && address.is_some() {
                self.pack_memory = self.deal_pack(machine, 0);
            }
            machine.told(self.drive);
            let refused = Completion { id, status: TransferStatus::Error, actual: 0 };
            return self.transport.handle_completion(now, refused, &[]);
        };
        if let Payload::Inline(inline) = payload {
            machine.memory.write_bytes(address, inline.as_bytes());
        }
        let since = self.on_rings.as_mut().map(|level| {
            level.arrive(now);
            now
        });
        let flight = Flight { address, carries, pipe, length, since };
        if !self.observers.is_empty() {
            self.show(machine, now, id, &flight);
        }
        let number = self.flights.insert(id, flight);
        let transfer = xhci_driver::Transfer { id: number, device, pipe, buffer: address, length };
        let taken = machine.drive(now, |driver, access| driver.submit(access, &transfer));
        if taken.is_err() {
            let refused = Completion { id: number, status: TransferStatus::Error, actual: 0 };
            self.complete(machine, (None, CoreTurn::at_once(now)), refused);
        }
    }

    /// Shows a transfer to who looks on.
    #[inline(never)]
    fn show(&mut self, machine: &Machine, now: Instant, id: TransferId, flight: &Flight) {
        let bytes = match flight.pipe.endpoint.direction() {
            Direction::Out => {
                machine.memory.slice(flight.address, flight.length as usize).unwrap_or_default()
            }
            Direction::In => &[],
        };
        let shown = flight.shown(id);
        self.observers.tell(|observer| observer.submitted(now, &shown, bytes));
    }

    /// The transport takes a transfer back.
    pub(super) fn cancel(
        &mut self,
        machine: &mut Machine,
        now: Instant,
        device: Option<DeviceId>,
        id: TransferId,
    ) {
        let Some(number) = self.flights.find(id) else { return };
        let pipe = self.flights.get(number).map(|(_, flight)| flight.pipe);
        if let Some((device, pipe)) = device.zip(pipe) {
            machine.drive(now, |driver, access| driver.cancel(access, now, (device, pipe, number)));
        }
    }

    /// The core has worked for a command.
    pub(super) fn worked(&mut self, turn: CoreTurn, of: WorkedFor) {
        if turn.ended > turn.since {
            self.observers.tell(|observer| observer.worked(turn, of));
        }
    }

    /// The driver has completed a transfer, of which the core knows for a while. Whether that was under way.
    pub(super) fn complete(
        &mut self,
        machine: &mut Machine,
        (interrupt, turn): (Option<CoreTurn>, CoreTurn),
        completion: Completion,
    ) -> bool {
        let now = turn.ended;
        let Completion { id: number, status, actual } = completion;
        let Some((id, flight)) = self.flights.remove(number) else { return false };
        if let Some((level, since)) = self.on_rings.as_mut().zip(flight.since) {
            level.leave(now, since);
        }
        let is_in = flight.pipe.endpoint.direction() == Direction::In;
        let brought = if is_in { actual as usize } else { 0 };
        if flight.carries == Carries::Pack {
            self.pack_memory = self.deal_pack(machine, brought);
        }
        let bytes = match flight.carries {
            Carries::Pack => self.pack_memory.get(..brought),
            // Of a long one nobody is told the bytes, unless somebody looks on.
            Carries::Buffer(_) if brought > PEEK_BYTES_MAX && self.observers.is_empty() => None,
            _ => machine.memory.slice(flight.address, brought).ok(),
        };
        let bytes = bytes.unwrap_or_default();
        if !self.observers.is_empty() {
            let shown = flight.shown(id);
            for turn in interrupt.into_iter().chain([turn]).filter(|turn| turn.ended > turn.since) {
                self.observers.tell(|observer| observer.worked(turn, WorkedFor::Transfer(id)));
            }
            self.observers.tell(|observer| observer.completed(now, &shown, (status, actual), bytes));
        }
        let is_told = flight.carries == Carries::Message || bytes.len() <= PEEK_BYTES_MAX;
        let bytes = if is_told { bytes } else { &[] };
        self.transport.handle_completion(now, Completion { id, status, actual }, bytes);
        machine.told(self.drive);
        if matches!(flight.carries, Carries::Inline | Carries::Message) {
            machine.give_place(flight.address);
        }
        true
    }
}

impl Window {
    /// Lends somebody's memory. The window becomes as long as the longest that was ever lent.
    fn lend(&mut self, machine: &mut Machine, owner: CommandId, buffer: Vec<u8>) {
        let (bytes, memory) = (buffer.len() as u32, &mut machine.memory);
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

impl Flight {
    /// How it looks to who looks on.
    fn shown(&self, id: TransferId) -> HostTransfer {
        let command = match self.carries {
            Carries::Buffer(command) => Some(command),
            _ => None,
        };
        HostTransfer { id, pipe: self.pipe, length: self.length, command }
    }
}
