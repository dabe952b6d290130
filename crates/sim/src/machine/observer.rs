//! Who looks on: what crosses between driver and controller, on the link, and at the medium, as it happens.
//!
//! For captures and for accounts of where time goes. Whoever looks on changes nothing: events, times and digest are the
//! same. Without anybody it costs a look at an empty list.

use super::enumerate::ControlExchange;
use crate::link::Crossing;
use crate::link::bulk::Message;
use crate::link::superspeed::Side;
use crate::link::usb2;
use bus::{Pipe, StreamId, TransferId, TransferStatus};
use device::DeviceTransfer;
use device::medium::MediumRequest;
use initiator::{Command, CommandId, Outcome};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use units::Instant;

/// A bulk transfer of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostTransfer {
    /// Which; the transport's own number.
    pub id: TransferId,
    /// Where.
    pub pipe: Pipe,
    /// Bytes to send, or room.
    pub length: u32,
    /// Whose buffer it moves, if a command's.
    pub command: Option<CommandId>,
}

/// A turn at the core of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreSlice {
    /// From when there was something to do.
    pub since: Instant,
    /// When the core began with it, having worked for others until then.
    pub began: Instant,
    /// When it was through.
    pub ended: Instant,
}

impl CoreSlice {
    /// Of something that takes no time.
    pub const fn at_once(now: Instant) -> Self {
        Self { since: now, began: now, ended: now }
    }
}

/// What the core of the host works for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreClient {
    /// A command, at its beginning or its end.
    Command(CommandId),
    /// A transfer, at its beginning or its end.
    Transfer(TransferId),
}

/// Is told what happens. Everything is optional.
#[expect(unused_variables, reason = "names are for readers; who does not care does nothing")]
pub trait Observer {
    /// Whether it is to be told of packets: there are many, and some want to hear of transfers alone. Asked once.
    fn watches_packets(&self) -> bool {
        true
    }

    /// A control transfer was done: before time began, at zero.
    fn control(&mut self, at: Instant, exchange: &ControlExchange) {}

    /// The command that the transport was given last is for a request that the driver has had since a time: it has waited above
    /// the transport until now.
    fn queued_since(&mut self, since: Instant, command: CommandId) {}

    /// The transport was given a command.
    fn began(&mut self, at: Instant, command: &Command) {}

    /// A command has ended.
    fn ended(&mut self, at: Instant, command: CommandId, outcome: &Outcome) {}

    /// A transfer was submitted; `bytes` are what it sends.
    fn submitted(&mut self, at: Instant, transfer: &HostTransfer, bytes: &[u8]) {}

    /// A transfer has ended, with so many bytes moved; `bytes` are what it has brought.
    fn completed(&mut self, at: Instant, transfer: &HostTransfer, end: (TransferStatus, u32), bytes: &[u8]) {}

    /// The core of the host is through with something that it had to do. Of a transfer that is told behind
    /// [`submitted`](Self::submitted) and before [`completed`](Self::completed).
    fn core_worked(&mut self, turn: CoreSlice, of: CoreClient) {}

    /// The firmware of a bridge is through with a message or a status, that came to it at a time; whose, by the tag in it or the
    /// stream that it has, if either says so.
    fn translated(&mut self, since: Instant, at: Instant, stream: Option<StreamId>) {}

    /// The controller has taken on the oldest transfer of a pipe that it had not; the link has it under a number of its own.
    fn fetched(&mut self, at: Instant, pipe: Pipe, number: TransferId) {}

    /// The link is through with the transfer of that number; what has come of it is the controller's to tell.
    fn link_completed(&mut self, at: Instant, number: TransferId) {}

    /// The device has made a transfer of its own ready.
    fn offered(&mut self, at: Instant, transfer: &DeviceTransfer) {}

    /// The medium was asked for something that is done at a time: told as soon as that is known, which may be when it is done.
    fn medium_requested(&mut self, at: Instant, request: &MediumRequest, done_at: Instant) {}

    /// A drive on a cable is done with a command that it was given at a time: its own line and the cable are in that.
    fn drive_served(&mut self, since: Instant, at: Instant, command: CommandId) {}

    /// A side sends a packet; `bytes` are what it carries.
    fn sent(&mut self, from: Side, message: &Message, crossing: &Crossing, bytes: &[u8]) {}

    /// A packet has arrived at a side; `bytes` are what it carries.
    fn arrived(&mut self, at: Instant, side: Side, message: &Message, bytes: &[u8]) {}

    /// A packet crosses a bus of USB 2.0; `bytes` are what it carries, but for endpoint 0.
    fn crossed(&mut self, sent: &usb2::Sent, bytes: &[u8]) {}
}

/// One that somebody else holds as well, to ask it afterwards.
impl<O: Observer> Observer for Rc<RefCell<O>> {
    fn watches_packets(&self) -> bool {
        self.borrow().watches_packets()
    }

    fn control(&mut self, at: Instant, exchange: &ControlExchange) {
        self.borrow_mut().control(at, exchange);
    }

    fn queued_since(&mut self, since: Instant, command: CommandId) {
        self.borrow_mut().queued_since(since, command);
    }

    fn began(&mut self, at: Instant, command: &Command) {
        self.borrow_mut().began(at, command);
    }

    fn ended(&mut self, at: Instant, command: CommandId, outcome: &Outcome) {
        self.borrow_mut().ended(at, command, outcome);
    }

    fn submitted(&mut self, at: Instant, transfer: &HostTransfer, bytes: &[u8]) {
        self.borrow_mut().submitted(at, transfer, bytes);
    }

    fn completed(&mut self, at: Instant, transfer: &HostTransfer, end: (TransferStatus, u32), bytes: &[u8]) {
        self.borrow_mut().completed(at, transfer, end, bytes);
    }

    fn core_worked(&mut self, turn: CoreSlice, of: CoreClient) {
        self.borrow_mut().core_worked(turn, of);
    }

    fn translated(&mut self, since: Instant, at: Instant, stream: Option<StreamId>) {
        self.borrow_mut().translated(since, at, stream);
    }

    fn fetched(&mut self, at: Instant, pipe: Pipe, number: TransferId) {
        self.borrow_mut().fetched(at, pipe, number);
    }

    fn link_completed(&mut self, at: Instant, number: TransferId) {
        self.borrow_mut().link_completed(at, number);
    }

    fn offered(&mut self, at: Instant, transfer: &DeviceTransfer) {
        self.borrow_mut().offered(at, transfer);
    }

    fn medium_requested(&mut self, at: Instant, request: &MediumRequest, done_at: Instant) {
        self.borrow_mut().medium_requested(at, request, done_at);
    }

    fn drive_served(&mut self, since: Instant, at: Instant, command: CommandId) {
        self.borrow_mut().drive_served(since, at, command);
    }

    fn sent(&mut self, from: Side, message: &Message, crossing: &Crossing, bytes: &[u8]) {
        self.borrow_mut().sent(from, message, crossing, bytes);
    }

    fn arrived(&mut self, at: Instant, side: Side, message: &Message, bytes: &[u8]) {
        self.borrow_mut().arrived(at, side, message, bytes);
    }

    fn crossed(&mut self, sent: &usb2::Sent, bytes: &[u8]) {
        self.borrow_mut().crossed(sent, bytes);
    }
}

/// Those who look on.
#[derive(Default)]
pub(crate) struct Observers {
    all: Vec<Box<dyn Observer>>,
    /// Whether any of them is to be told of packets.
    watch_packets: bool,
}

impl Observers {
    pub(crate) fn add(&mut self, observer: Box<dyn Observer>) {
        self.watch_packets |= observer.watches_packets();
        self.all.push(observer);
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether any of them is to be told of packets.
    pub(super) const fn watch_packets(&self) -> bool {
        self.watch_packets
    }

    /// Tells each.
    pub(crate) fn notify(&mut self, notify: impl Fn(&mut dyn Observer)) {
        for observer in &mut self.all {
            notify(observer.as_mut());
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} observers", self.all.len())
    }
}
