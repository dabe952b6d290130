//! A session of ours on a scripted bus, with everything counted.

use super::scripted_bus::{Offered, ScriptedBus};
use bus::TransferStatus;
use initiator::disk::{AskTemperature, DiskConfig, Operation, RequestRefusal};
use initiator::session::{BufferSpan, Session, SessionBuffers, SessionConfig};
use initiator::{BusAnswer, BusRequest, Transport};
use std::collections::BTreeMap;
use units::{ByteRange, Extent, Instant};

/// Commands of the disk at once, where the transport takes as many.
const DEPTH_MAX: u16 = 6;
/// Requests at once.
const REQUESTS_MAX: u16 = 8;
/// Bytes of a command's data.
const TRANSFER_BYTES_MAX: u32 = 8 << 10;
/// Bytes of a request's buffer.
const REQUEST_BYTES_MAX: u32 = 128 << 10;
/// Deadlines that may pass until everything has ended.
const DEADLINES_MAX: usize = 20_000;

/// A host of ours.
pub struct Stack<T> {
    session: Session<ScriptedBus, T>,
    buffers: SessionBuffers,
    now: Instant,
    /// By slot, bytes of the request's buffer.
    requests: BTreeMap<u16, u32>,
    /// The script began to identify the disk, and that has not ended.
    is_identifying: bool,
}

impl<T: Transport> Stack<T> {
    /// Starts to identify a disk; `is_prompt` says whether the bus completes cancelled transfers at once.
    pub fn new(transport: T, is_prompt: bool, ask: AskTemperature) -> Self {
        let config = SessionConfig {
            merged_bytes: TRANSFER_BYTES_MAX,
            slots: REQUESTS_MAX,
            slot_bytes: REQUEST_BYTES_MAX,
            ..SessionConfig::of(&transport)
        };
        let disk = DiskConfig {
            requests_max: REQUESTS_MAX,
            report_luns: true,
            ..DiskConfig::new(config.commands.min(DEPTH_MAX), TRANSFER_BYTES_MAX)
        };
        let mut bus = ScriptedBus::new(transport.transfers_max(), is_prompt);
        let buffers = SessionBuffers::new(bus.buffers.allocate(SessionBuffers::blocks(&config)), &config);
        let session = Session::new(disk, transport, bus, buffers);
        let mut stack =
            Self { session, buffers, now: Instant::ZERO, requests: BTreeMap::new(), is_identifying: false };
        stack.identify(ask);
        stack
    }

    /// Looks at the unit, or looks again.
    pub fn identify(&mut self, ask: AskTemperature) {
        let before = self.session.disk().counts().identify_runs;
        self.session.identify(self.now, ask);
        self.is_identifying |= self.session.disk().counts().identify_runs > before;
        self.settle();
    }

    /// Something is asked of the disk.
    pub fn request(&mut self, operation: Operation, extent: Extent) {
        let slot = (0..REQUESTS_MAX).find(|slot| !self.requests.contains_key(slot));
        let slot = slot.unwrap_or_default();
        let block_size = self.session.disk().geometry().map(|geometry| geometry.block_size);
        match self.session.submit(self.now, slot, operation, extent) {
            Ok(()) => {
                let id = initiator::disk::RequestId(slot.into());
                let request = initiator::disk::Request { id, operation, extent };
                let block_size = block_size.expect("who takes requests knows its blocks");
                let bytes = request.buffer_bytes(block_size).expect("it was taken");
                assert!(self.requests.insert(slot, bytes).is_none(), "the slot is in use");
                assert!(self.session.buffer(slot).is_none(), "the buffer is accessible");
            }
            Err(RequestRefusal::Full) => assert_eq!(self.requests.len(), REQUESTS_MAX.into()),
            Err(_) => {}
        }
        self.settle();
    }

    /// Aborts one of the requests.
    pub fn abort_request(&mut self, nth: u8) {
        let nth = usize::from(nth).checked_rem(self.requests.len());
        if let Some(slot) = nth.and_then(|nth| self.requests.keys().nth(nth).copied()) {
            self.session.abort(self.now, slot);
            self.settle();
        }
    }

    /// Transfers in flight, in the order of their ids.
    pub fn in_flight(&self) -> impl Iterator<Item = Offered> {
        self.session.bus().in_flight()
    }

    /// One of them.
    pub fn nth(&self, nth: u8) -> Option<Offered> {
        let nth = usize::from(nth).checked_rem(self.in_flight().count())?;
        self.in_flight().nth(nth)
    }

    /// A transfer ends so: see [`ScriptedBus::complete`].
    pub fn complete(&mut self, transfer: &Offered, status: TransferStatus, actual: u32, bytes: &[u8]) {
        self.session.bus_mut().complete(transfer.id, status, actual, bytes);
        self.settle();
    }

    /// The request to the bus that waits.
    pub fn asked(&self) -> Option<BusRequest> {
        self.session.bus().asked()
    }

    /// It is answered.
    pub fn answer(&mut self, answer: BusAnswer) {
        self.session.bus_mut().answer(answer);
        self.settle();
    }

    /// Completes the cancelled transfers and advances time to the next deadline; returns whether there was one.
    pub fn pass_time(&mut self) -> bool {
        self.complete_cancelled();
        let Some(due) = self.session.poll_timeout() else { return false };
        let deadlines =
            |stack: &Self| (stack.session.disk().poll_timeout(), stack.session.transport().poll_timeout());
        let before = deadlines(self);
        self.now = self.now.max(due);
        self.session.handle_timeout(self.now);
        self.settle();
        assert_ne!(deadlines(self), before, "nothing came of it");
        true
    }

    /// Completes the cancelled transfers, and those that the host cancels because of that.
    fn complete_cancelled(&mut self) {
        while self.session.bus_mut().complete_cancelled() {
            self.settle();
        }
    }

    /// Removes the device. The host is notified before its transfers complete, or after.
    pub fn unplug(&mut self, notifies_first: bool) {
        self.session.bus_mut().forget_request();
        if notifies_first {
            self.notify_gone();
        }
        while let Some(transfer) = self.nth(0) {
            self.complete(&transfer, TransferStatus::Disconnected, 0, &[]);
        }
        self.session.bus_mut().forget_request();
        if !notifies_first {
            self.notify_gone();
        }
        assert_eq!(self.session.disk().commands_in_flight(), 0, "commands outlive the device");
        let transport = self.session.transport();
        assert_eq!((transport.in_flight(), transport.depth()), (0, 0));
        assert_eq!(transport.poll_timeout(), None);
    }

    fn notify_gone(&mut self) {
        self.session.bus_mut().is_gone = true;
        self.settle();
    }

    /// The device falls silent. Everything ends; then it is removed, and nothing is left.
    pub fn end(mut self) {
        for _ in 0..DEADLINES_MAX {
            if self.is_at_rest() {
                self.complete_cancelled();
                let notifies_first = self.session.bus().is_prompt;
                self.unplug(notifies_first);
                assert!(self.is_at_rest());
                return;
            }
            assert!(self.pass_time() || self.is_at_rest(), "something waits for nothing");
        }
        panic!("{:?} do not end", self.requests);
    }

    /// Whether everything that was asked has ended.
    pub fn is_at_rest(&self) -> bool {
        let disk = self.session.disk();
        let is_at_rest = self.requests.is_empty() && !self.is_identifying && disk.commands_in_flight() == 0;
        if is_at_rest {
            assert_eq!((self.session.transport().in_flight(), disk.in_flight()), (0, 0));
        }
        is_at_rest
    }

    /// Lets the session do all it can, and looks at what has ended.
    fn settle(&mut self) {
        self.session.settle(self.now);
        self.is_identifying &= self.session.take_identified().is_none();
        while self.session.poll_lost().is_some() {}
        while let Some(finished) = self.session.poll() {
            let bytes = self.requests.remove(&finished.slot).expect("a request ends once");
            let buffer = self.buffers.slots().after(finished.slot);
            let span = BufferSpan { buffer, range: ByteRange::new(0, bytes) };
            assert!(!self.session.bus().uses(span), "the buffer of {finished:?} is in use");
            let result = finished.result;
            assert!(result.is_err() || result.is_ok_and(|done| done.moved <= bytes), "{result:?}");
        }
    }
}
