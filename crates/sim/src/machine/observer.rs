//! Observers: events between driver and controller, on the link and at the medium, as they happen.
//!
//! For captures and latency breakdowns. Observers do not affect the machine: events, times and
//! digest stay the same. Without observers each hook checks an empty list.

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
    /// The transport's id.
    pub id: TransferId,
    /// Its pipe.
    pub pipe: Pipe,
    /// Bytes to send, or room to receive.
    pub length: u32,
    /// The command whose buffer it moves, if any.
    pub command: Option<CommandId>,
}

/// A job on the host's core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreSlice {
    /// When it was queued.
    pub since: Instant,
    /// When the core started it.
    pub began: Instant,
    /// When it was done.
    pub ended: Instant,
}

impl CoreSlice {
    /// A job that takes no time.
    pub const fn at_once(now: Instant) -> Self {
        Self { since: now, began: now, ended: now }
    }
}

/// The command or transfer that a core job belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreClient {
    /// A command, at its start or completion.
    Command(CommandId),
    /// A transfer, at its start or completion.
    Transfer(TransferId),
}

/// Receives events. All methods are optional.
#[expect(unused_variables, reason = "names are for readers; who does not care does nothing")]
pub trait Observer {
    /// Returns whether it wants packets, of which there are many. Called once.
    fn watches_packets(&self) -> bool {
        true
    }

    /// A control transfer has completed; before time zero, at zero.
    fn control(&mut self, at: Instant, exchange: &ControlExchange) {}

    /// The last submitted command has been queued above the transport since a time.
    fn queued_since(&mut self, since: Instant, command: CommandId) {}

    /// A command was submitted to the transport.
    fn began(&mut self, at: Instant, command: &Command) {}

    /// A command has completed.
    fn ended(&mut self, at: Instant, command: CommandId, outcome: &Outcome) {}

    /// A transfer was submitted; `bytes` is the data that it sends.
    fn submitted(&mut self, at: Instant, transfer: &HostTransfer, bytes: &[u8]) {}

    /// A transfer has completed with a status and byte count; `bytes` is the data received.
    fn completed(
        &mut self,
        at: Instant,
        transfer: &HostTransfer,
        status: TransferStatus,
        actual: u32,
        bytes: &[u8],
    ) {
    }

    /// The host's core has finished a job. For a transfer, this comes between
    /// [`submitted`](Self::submitted) and [`completed`](Self::completed).
    fn core_worked(&mut self, turn: CoreSlice, of: CoreClient) {}

    /// A bridge's firmware has processed a message or status that arrived at a time; `stream` is
    /// from its tag or its stream, if known.
    fn translated(&mut self, since: Instant, at: Instant, stream: Option<StreamId>) {}

    /// The controller has fetched the oldest pending transfer of a pipe, and numbers it on the
    /// link.
    fn fetched(&mut self, at: Instant, pipe: Pipe, number: TransferId) {}

    /// The link has finished the transfer of that number; the controller reports its result.
    fn link_completed(&mut self, at: Instant, number: TransferId) {}

    /// The device has queued a transfer.
    fn offered(&mut self, at: Instant, transfer: &DeviceTransfer) {}

    /// The medium has accepted a request that is done at a time; reported when that is known, which
    /// may be on completion.
    fn medium_requested(&mut self, at: Instant, request: &MediumRequest, done_at: Instant) {}

    /// A SATA drive has completed a command that it got at a time, including its queue and the
    /// cable.
    fn drive_served(&mut self, since: Instant, at: Instant, command: CommandId) {}

    /// A side sends a packet; `bytes` is its payload.
    fn sent(&mut self, from: Side, message: &Message, crossing: &Crossing, bytes: &[u8]) {}

    /// A packet has arrived at a side; `bytes` is its payload.
    fn arrived(&mut self, at: Instant, side: Side, message: &Message, bytes: &[u8]) {}

    /// A packet crosses a USB 2.0 bus; `bytes` is its payload, except on endpoint 0.
    fn crossed(&mut self, sent: &usb2::Sent, bytes: &[u8]) {}
}

/// A shared observer, to be queried afterwards.
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

    fn completed(
        &mut self,
        at: Instant,
        transfer: &HostTransfer,
        status: TransferStatus,
        actual: u32,
        bytes: &[u8],
    ) {
        self.borrow_mut().completed(at, transfer, status, actual, bytes);
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

/// The attached observers.
#[derive(Default)]
pub(crate) struct Observers {
    all: Vec<Box<dyn Observer>>,
    /// Whether any observer wants packets.
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

    /// Whether any observer wants packets.
    pub(super) const fn watch_packets(&self) -> bool {
        self.watch_packets
    }

    /// Calls each observer.
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
