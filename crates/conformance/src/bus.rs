//! The bus that tests use: transfers in slots, control requests with data, a time limit for each.
//!
//! A [`DriverBus`] makes one of a [`HostBus`] and its [`Driver`]. Left out: the devices. Always true: a slot that was started
//! completes once.

use bus::{Completion, Pipe, TransferId, TransferStatus};
use drive::Drive;
use drive::loopback::LoopbackBus;
use drive::medium::{Medium, PowerLoss};
use initiator::session::{BufferBlock, BufferId, BufferMemory, BufferSpan, HostBus, TransferRequest};
use initiator::{BusAnswer, BusRequest, RequestId};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use units::ByteRange;
use wire::usb::SetupPacket;

/// Transfers that can be in flight at once.
pub const SLOTS: u16 = 128;

/// Bytes of the longest transfer.
pub(crate) const BUFFER_BYTES: u32 = 64 << 10;

/// The buffers that a driver must allocate before it is wrapped.
pub const BUFFERS: BufferBlock = BufferBlock { count: SLOTS, bytes: BUFFER_BYTES };

/// Why a control request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlFailure {
    /// The device answered STALL.
    Stalled,
    /// It did not answer in time, or is gone.
    NoAnswer,
}

/// A transfer that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completed {
    /// Its slot.
    pub slot: u16,
    /// How it ended.
    pub status: TransferStatus,
    /// Bytes moved.
    pub actual: u32,
    /// The bytes received; empty for a transfer that sends.
    pub bytes: Vec<u8>,
}

/// One interface of a device, and nothing between it and a test.
pub trait DeviceBus {
    /// Starts to send at most 64 KiB, or to receive so many. The slot must be free.
    fn start(&mut self, slot: u16, pipe: Pipe, transfer: Transfer<'_>);

    /// Cancels a transfer. It still completes.
    fn cancel(&mut self, slot: u16);

    /// Returns the next transfer that ends, waiting for it at most this long.
    fn wait(&mut self, limit: Duration) -> Option<Completed>;

    /// Performs a control request; returns the bytes transferred.
    ///
    /// # Errors
    ///
    /// If the device stalls, or does not answer.
    fn control(&mut self, setup: SetupPacket, bytes: &mut [u8]) -> Result<usize, ControlFailure>;

    /// Performs an operation of error recovery.
    fn request(&mut self, request: BusRequest) -> BusAnswer;

    /// Returns whether the device is disconnected.
    fn is_gone(&mut self) -> bool;

    /// Cuts the power of the device and configures it again. Of what it has not made durable, the seed decides what is lost.
    /// Returns whether that was possible: of hardware it is not.
    fn lose_power(&mut self, _seed: u64) -> bool {
        false
    }
}

/// The data that a transfer moves.
#[derive(Clone, Copy, Debug)]
pub enum Transfer<'a> {
    /// These bytes to the device.
    Send(&'a [u8]),
    /// At most so many bytes from the device.
    Receive(u32),
}

/// A [`HostBus`] with what tests need besides: control requests with data, and a wait.
pub trait Driver {
    /// The bus.
    type Bus: HostBus;

    /// Returns the bus.
    fn bus(&mut self) -> &mut Self::Bus;

    /// Performs a control request; returns the bytes transferred.
    ///
    /// # Errors
    ///
    /// If the device stalls, or does not answer.
    fn control(&mut self, setup: SetupPacket, bytes: &mut [u8]) -> Result<usize, ControlFailure>;

    /// Lets the bus work until a transfer may have ended, at most this long. Returns whether more may follow.
    fn work(&mut self, limit: Duration) -> bool;

    /// Cuts the power of the device: see [`DeviceBus::lose_power`].
    fn lose_power(&mut self, _seed: u64) -> bool {
        false
    }
}

/// A [`DeviceBus`] over a driver.
#[derive(Debug)]
pub struct DriverBus<D> {
    driver: D,
    first: BufferId,
    in_flight: Vec<Option<TransferRequest>>,
    ended: VecDeque<Completion>,
}

impl<D: Driver> DriverBus<D> {
    /// Wraps a driver whose [`BUFFERS`] begin with this one.
    pub fn new(driver: D, first: BufferId) -> Self {
        let in_flight = vec![None; SLOTS.into()];
        Self { driver, first, in_flight, ended: VecDeque::new() }
    }

    /// Returns the driver. Transfers in flight remain.
    pub fn into_driver(self) -> D {
        self.driver
    }

    fn take(&mut self, completion: Completion) -> Option<Completed> {
        let request = self.in_flight.get_mut(completion.id.0 as usize)?.take()?;
        let is_in = request.pipe.endpoint.direction() == bus::Direction::In;
        let mut bytes =
            vec![0; if is_in { completion.actual.min(request.span.range.len) as usize } else { 0 }];
        self.driver.bus().buffers().copy_out(request.span, &mut bytes);
        let slot = completion.id.0 as u16;
        Some(Completed { slot, status: completion.status, actual: completion.actual, bytes })
    }
}

impl<D: Driver> DeviceBus for DriverBus<D> {
    fn start(&mut self, slot: u16, pipe: Pipe, transfer: Transfer<'_>) {
        let buffer = self.first.after(slot);
        let length = match transfer {
            Transfer::Send(bytes) => bytes.len() as u32,
            Transfer::Receive(length) => length,
        };
        let span = BufferSpan { buffer, range: ByteRange::new(0, length.min(BUFFER_BYTES)) };
        if let Transfer::Send(bytes) = transfer {
            self.driver.bus().buffers().copy_in(span, bytes);
        }
        let request = TransferRequest { id: TransferId(slot.into()), pipe, span, is_whole: false };
        self.in_flight[usize::from(slot)] = Some(request);
        self.ended.extend(self.driver.bus().submit(request));
    }

    fn cancel(&mut self, slot: u16) {
        self.driver.bus().cancel(TransferId(slot.into()));
    }

    fn wait(&mut self, limit: Duration) -> Option<Completed> {
        let until = Instant::now() + limit;
        loop {
            while let Some(completion) = self.ended.pop_front().or_else(|| self.driver.bus().poll()) {
                if let Some(completed) = self.take(completion) {
                    return Some(completed);
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            let has_worked = self.driver.work(left);
            if let Some(completion) = self.driver.bus().poll() {
                self.ended.push_back(completion);
            } else if left.is_zero() || !has_worked {
                return None;
            }
        }
    }

    fn control(&mut self, setup: SetupPacket, bytes: &mut [u8]) -> Result<usize, ControlFailure> {
        self.driver.control(setup, bytes)
    }

    fn request(&mut self, request: BusRequest) -> BusAnswer {
        self.driver.bus().request(RequestId(0), request).unwrap_or(BusAnswer::Failed)
    }

    fn is_gone(&mut self) -> bool {
        self.driver.bus().is_gone()
    }

    fn lose_power(&mut self, seed: u64) -> bool {
        self.driver.lose_power(seed)
    }
}

impl<M: Medium + ?Sized> DriverBus<LoopbackBus<M>> {
    /// Plugs a drive in memory in and configures it.
    pub fn plug(drive: Drive<M>) -> Self {
        let mut bus = LoopbackBus::new(drive);
        let [first] = bus.allocate([BUFFERS]);
        let mut bus = Self::new(bus, first);
        bus.request(BusRequest::ResetPort);
        bus
    }
}

impl<M: Medium + ?Sized> Driver for LoopbackBus<M> {
    type Bus = Self;

    fn bus(&mut self) -> &mut Self {
        self
    }

    fn control(&mut self, setup: SetupPacket, bytes: &mut [u8]) -> Result<usize, ControlFailure> {
        Self::control(self, setup, bytes).ok_or(ControlFailure::Stalled)
    }

    /// There is no time here: what a drive in memory has not done at once, it never does.
    fn work(&mut self, _limit: Duration) -> bool {
        self.run_once();
        false
    }

    fn lose_power(&mut self, seed: u64) -> bool {
        Self::lose_power(self, PowerLoss { seed, tears: false })
    }
}
