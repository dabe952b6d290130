//! The simplest drive: each request takes the same time, and some are served at once.
//!
//! It stands for no product. Blocks lie in memory and change when their request is done. Left out: whatever else a medium
//! may be asked; it says so.

use bus::Speed;
use std::collections::VecDeque;
use target::command::Limits;
use target::medium::{MediumCompletion, MediumDone, MediumError, MediumOp, MediumRequest};
use target::unit::{Unit, UnitConfig};
use target::{Device, DeviceConfig, Transports};
use units::{BlockCount, BlockSize, Duration, Extent, Instant};

/// A drive in memory with a latency.
#[derive(Clone, Debug)]
pub struct Plain {
    bytes: Vec<u8>,
    block_size: BlockSize,
    latency: Duration,
    /// When each of those that serve is free.
    free_at: Vec<Instant>,
    /// Requests in the order in which they will be done. All take the same time, so it is that in which they came.
    requests: VecDeque<MediumRequest>,
}

impl Plain {
    /// A drive of so many blocks. Each request takes `latency`; `at_once` are served together, at least one.
    pub fn new(blocks: u32, block_size: BlockSize, latency: Duration, at_once: u16) -> Self {
        Self {
            bytes: vec![0; blocks as usize * block_size.bytes() as usize],
            block_size,
            latency,
            free_at: vec![Instant::ZERO; usize::from(at_once.max(1))],
            requests: VecDeque::new(),
        }
    }

    /// Its blocks.
    pub fn capacity(&self) -> BlockCount {
        BlockCount(self.bytes.len() as u64 / u64::from(self.block_size.bytes()))
    }

    /// Bytes of a block.
    pub const fn block_size(&self) -> BlockSize {
        self.block_size
    }

    /// A device with this as its one unit: both transports, 32 streams, super speed.
    pub fn device(&self) -> Device {
        self.device_with(Transports::Dual)
    }

    /// The same with these transports.
    pub fn device_with(&self, transports: Transports) -> Device {
        let unit = Unit::new(UnitConfig {
            vendor: "uaskit".into(),
            product: "Plain Drive".into(),
            revision: "1".into(),
            serial: "0123456789AB".into(),
            naa: 0x3000_0000_0000_0001,
            block_size: self.block_size(),
            capacity: self.capacity(),
            transfer_bytes_optimal: target::unit::limits::TRANSFER_BYTES_OPTIMAL_MAX,
            read_only: false,
            removable: false,
            rotational: false,
            durable: true,
            atomic_writes: false,
            durable_state: None,
        });
        let config = DeviceConfig {
            speed: Speed::Super,
            transports,
            streams: 32,
            bus_power_ma: 0,
            vendor_id: 0x1209,
            product_id: 1,
            release: 0x100,
            manufacturer: "uaskit".into(),
            product: "Plain Drive".into(),
            serial: "0123456789AB".into(),
            limits: Limits { commands: 64, buffer_bytes: 64 << 20, segment_bytes: 1 << 20 },
        };
        Device::new(config, vec![unit])
    }

    /// Takes a request. When it will be done.
    pub(super) fn take(&mut self, now: Instant, request: MediumRequest) -> Instant {
        self.requests.push_back(request);
        let Some(first) = self.free_at.iter_mut().min() else { return now };
        *first = now.max(*first) + self.latency;
        *first
    }

    /// The request that is done now.
    pub(super) fn next(&mut self) -> Option<MediumRequest> {
        self.requests.pop_front()
    }

    /// Does a request, with the buffer of its command.
    pub(super) fn perform(&mut self, request: &MediumRequest, buffer: &mut [u8]) -> MediumCompletion {
        MediumCompletion { id: request.id, result: self.done(request, buffer) }
    }

    fn done(&mut self, request: &MediumRequest, buffer: &mut [u8]) -> Result<MediumDone, MediumError> {
        let stored = self.stored(request.extent).ok_or(MediumError::Shrunk)?;
        let memory = buffer.get_mut(request.range.as_usize());
        match (request.op, memory) {
            (MediumOp::Read, Some(memory)) => memory[..stored.len()].copy_from_slice(stored),
            (MediumOp::Write { .. }, Some(memory)) => stored.copy_from_slice(&memory[..stored.len()]),
            (MediumOp::Flush | MediumOp::Prefetch | MediumOp::Verify, _) => {}
            _ => return Err(MediumError::Unsupported),
        }
        Ok(MediumDone::Done)
    }

    fn stored(&mut self, extent: Extent) -> Option<&mut [u8]> {
        let block_bytes = u64::from(self.block_size.bytes());
        let start = usize::try_from(extent.lba.0.checked_mul(block_bytes)?).ok()?;
        let len = usize::try_from(extent.blocks.0.checked_mul(block_bytes)?).ok()?;
        self.bytes.get_mut(start..start.checked_add(len)?)
    }
}
