//! The host of a world: a transport, the driver of its controller, the controller, and the memory that they share.
//!
//! A transfer of the transport becomes one of the driver, whose id is a small number. What a command reads or writes lies where
//! the command's owner has it, at a window of bus addresses that stays the slot's; what travels inline has a place of its own.
//! Driver and transport take no time.
//!
//! Always true: each transfer of the transport completes once, by a completion of the driver or by a refusal.

use super::errand::Errands;
use crate::world::host::Finished;
use crate::world::observer::{HostTransfer, Observers};
use crate::xhci::{Controller, Hands, Memory};
use bus::{Completion, EndpointAddress, Pipe, TransferId, TransferStatus};
use initiator::probe::configuration::Configuration;
use initiator::{
    Command, CommandId, Flights, Outcome, PEEK_BYTES_MAX, Payload, Piece, Refusal, Transfer, Transport,
};
use std::collections::VecDeque;
use units::Instant;
use wire::usb::Direction;
use xhci::{DeviceId, DmaLayout, DmaMemory};

/// Bytes of a place for what travels inline: longer than any information unit or wrapper.
const INLINE_BYTES: u32 = 1024;

#[derive(Debug)]
pub(super) struct Computer<T> {
    pub(super) transport: T,
    pub(super) driver: xhci::Controller,
    pub(super) controller: Controller,
    pub(super) memory: Memory,
    pub(super) device: Option<DeviceId>,
    /// What the device said of itself.
    pub(super) configuration: Option<Configuration>,
    /// Endpoints that the driver knows of, besides endpoint 0.
    pub(super) endpoints: Vec<EndpointAddress>,
    pub(super) errands: Errands,
    flights: Flights<Flight>,
    /// Where commands have their memory, by slot.
    windows: Vec<Window>,
    /// Places for what travels inline that nobody uses.
    places: Vec<u64>,
    pub(super) finished: VecDeque<Finished>,
    /// Whether transport or driver were told something since their deadlines were asked for.
    pub(super) has_news: bool,
    pub(super) observers: Observers,
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
    payload: Payload,
    pipe: Pipe,
    length: u32,
    address: u64,
}

impl<T> Computer<T> {
    pub(super) fn new(
        transport: T,
        driver: xhci::Controller,
        controller: Controller,
        memory: Memory,
    ) -> Self {
        Self {
            transport,
            driver,
            controller,
            memory,
            device: None,
            configuration: None,
            endpoints: Vec::new(),
            errands: Errands::default(),
            flights: Flights::new(),
            windows: Vec::new(),
            places: Vec::new(),
            finished: VecDeque::new(),
            has_news: true,
            observers: Observers::default(),
        }
    }

    /// The same computer with another transport, for which nothing is under way yet.
    pub(super) fn with_transport<U>(self, transport: U) -> Computer<U> {
        Computer {
            transport,
            driver: self.driver,
            controller: self.controller,
            memory: self.memory,
            device: self.device,
            configuration: self.configuration,
            endpoints: self.endpoints,
            errands: self.errands,
            flights: self.flights,
            windows: self.windows,
            places: self.places,
            finished: self.finished,
            has_news: true,
            observers: self.observers,
        }
    }

    /// Lets the driver do something with its controller.
    pub(super) fn drive<R>(
        &mut self,
        now: Instant,
        act: impl FnOnce(&mut xhci::Controller, &mut Hands<'_>) -> R,
    ) -> R {
        self.has_news = true;
        act(&mut self.driver, &mut Hands::new(now, &mut self.controller, &mut self.memory))
    }

    /// A place for what travels inline. `None` if there is no memory.
    pub(super) fn take_place(&mut self) -> Option<u64> {
        let layout = DmaLayout { bytes: INLINE_BYTES, align: 64, boundary: INLINE_BYTES };
        self.places.pop().or_else(|| self.memory.allocate(layout))
    }

    pub(super) fn give_place(&mut self, place: u64) {
        self.places.push(place);
    }
}

impl<T: Transport> Computer<T> {
    pub(super) fn submit(&mut self, now: Instant, command: &Command, buffer: Vec<u8>) -> Result<(), Refusal> {
        let slot = usize::from(command.id.slot);
        if slot >= self.windows.len() {
            self.windows.resize(slot + 1, Window::default());
        }
        self.has_news = true;
        self.transport.submit(now, command)?;
        self.lend(slot, command.id, buffer);
        self.observers.tell(|observer| observer.began(now, command));
        Ok(())
    }

    fn lend(&mut self, slot: usize, owner: CommandId, buffer: Vec<u8>) {
        let window = &mut self.windows[slot];
        window.owner = Some(owner);
        let bytes = buffer.len() as u32;
        if bytes > window.bytes {
            if window.bytes > 0 {
                let layout = DmaLayout { bytes: window.bytes, align: 1, boundary: 1 };
                self.memory.release(window.address, layout);
            }
            (window.address, window.bytes) = (self.memory.window(bytes).unwrap_or(0), bytes);
        }
        if window.bytes > 0 {
            self.memory.lend(window.address, buffer);
        }
    }

    /// A command has ended.
    pub(super) fn finish(&mut self, now: Instant, id: CommandId, outcome: Outcome) {
        self.observers.tell(|observer| observer.ended(now, id, &outcome));
        let window = self.windows.get_mut(usize::from(id.slot)).filter(|window| window.owner == Some(id));
        let buffer = match window {
            Some(window) => {
                window.owner = None;
                if window.bytes > 0 { self.memory.take_back(window.address) } else { Vec::new() }
            }
            None => Vec::new(),
        };
        self.finished.push_back(Finished { id, outcome, buffer });
    }

    /// Gives a transfer of the transport to the driver.
    pub(super) fn offer(&mut self, now: Instant, transfer: Transfer) {
        let Transfer { id, pipe, length, payload } = transfer;
        let address = match &payload {
            Payload::Buffer(Piece { command, range }) => {
                let window = self.windows.get(usize::from(command.slot));
                window
                    .filter(|window| window.owner == Some(*command))
                    .map(|window| window.address + u64::from(range.start))
            }
            Payload::Inline(_) | Payload::Message if length <= INLINE_BYTES => self.take_place(),
            _ => None,
        };
        let Some((address, device)) = address.zip(self.device) else {
            return self.refuse(now, id, TransferStatus::Error);
        };
        if let Payload::Inline(inline) = &payload {
            self.memory.write_bytes(address, inline.as_bytes());
        }
        let flight = Flight { payload, pipe, length, address };
        if !self.observers.is_empty() {
            let bytes = match pipe.endpoint.direction() {
                Direction::Out => self.memory.slice(address, length as usize).unwrap_or_default(),
                Direction::In => &[],
            };
            let shown = flight.shown(id);
            self.observers.tell(|observer| observer.submitted(now, &shown, bytes));
        }
        let number = self.flights.insert(id, flight);
        let transfer = xhci::Transfer { id: number, device, pipe, buffer: address, length };
        let taken = self.drive(now, |driver, hands| driver.submit(hands, &transfer));
        if taken.is_err() {
            self.complete(now, Completion { id: number, status: TransferStatus::Error, actual: 0 });
        }
    }

    fn refuse(&mut self, now: Instant, id: TransferId, status: TransferStatus) {
        self.has_news = true;
        self.transport.handle_completion(now, Completion { id, status, actual: 0 }, &[]);
    }

    /// The transport takes a transfer back.
    pub(super) fn cancel(&mut self, now: Instant, id: TransferId) {
        let Some(number) = self.flights.find(id) else { return };
        let pipe = self.flights.get(number).map(|(_, flight)| flight.pipe);
        if let Some((device, pipe)) = self.device.zip(pipe) {
            self.drive(now, |driver, hands| driver.cancel(hands, now, (device, pipe, number)));
        }
    }

    /// The driver has completed a transfer.
    pub(super) fn complete(&mut self, now: Instant, completion: Completion) {
        let Completion { id: number, status, actual } = completion;
        let Some((id, flight)) = self.flights.remove(number) else { return };
        let is_in = flight.pipe.endpoint.direction() == Direction::In;
        let brought = if is_in { actual as usize } else { 0 };
        let bytes = self.memory.slice(flight.address, brought).unwrap_or_default();
        if !self.observers.is_empty() {
            let shown = flight.shown(id);
            self.observers.tell(|observer| observer.completed(now, &shown, (status, actual), bytes));
        }
        let is_told = matches!(flight.payload, Payload::Message) || bytes.len() <= PEEK_BYTES_MAX;
        let bytes = if is_told { bytes } else { &[] };
        self.has_news = true;
        self.transport.handle_completion(now, Completion { id, status, actual }, bytes);
        if matches!(flight.payload, Payload::Inline(_) | Payload::Message) {
            self.places.push(flight.address);
        }
    }
}

impl Flight {
    /// How it looks to who looks on.
    fn shown(&self, id: TransferId) -> HostTransfer {
        let command = match self.payload {
            Payload::Buffer(piece) => Some(piece.command),
            _ => None,
        };
        HostTransfer { id, pipe: self.pipe, length: self.length, command }
    }
}
