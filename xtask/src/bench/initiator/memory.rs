//! Initiator and drive in memory against a plain loop that copies blocks.
//!
//! One thread, 4 KiB, 32 in flight, random addresses in 256 MiB, which no cache holds. The drive reads or writes a block of
//! its medium for each command, by way of disk, transport, bus, target and executor. The loop copies between the same
//! medium and a buffer, and does nothing else: so both walk through the same memory, in the same large pages.

use super::super::arguments::HostArguments;
use super::super::figure::Figure;
use anyhow::{Context, Result, ensure};
use bench::backend::{BenchDevice, BufferLayout, MemoryDevice, Route, Runner};
use bus::Speed;
use device::command::{CommandId, DataLocation};
use device::medium::{MediumOp, MediumRequest, MediumRequestId};
use drive::medium::{Job, Medium, RamMedium};
use std::time::{Duration, Instant};
use units::{BlockSize, ByteCount, ByteRange, Extent};
use workload::{Access, AccessKind};

const MEDIUM: ByteCount = ByteCount(256 << 20);
const BLOCK_BYTES: u32 = 4096;
const BLOCKS: u64 = MEDIUM.0 / BLOCK_BYTES as u64;
const UNIT_BLOCKS: u64 = BLOCK_BYTES as u64 / 512;
const DEPTH: u16 = 32;

/// The minimum ratio of the drive's rate to the loop's.
const BAR: f64 = 0.5;

/// Commands between two looks at the clock.
const BATCH: u64 = 4096;

/// Rates, and allocations on the heap.
#[derive(Debug, serde::Serialize)]
pub(super) struct MemoryFigures {
    /// Commands against copies.
    pub(super) figures: Vec<Figure>,
    /// Allocations in the measured runs.
    pub(super) allocations: u64,
    /// Commands in them.
    pub(super) commands: u64,
}

impl MemoryFigures {
    /// Whether the bar is reached, and nothing is allocated per command. Some allocations in millions of commands are
    /// those of queues that have grown once more.
    pub(super) fn passes(&self) -> bool {
        self.figures.iter().all(Figure::passes) && self.allocations * 1000 <= self.commands
    }
}

pub(super) fn measure(arguments: &HostArguments) -> Result<MemoryFigures> {
    let mut device = MemoryDevice::new(MEDIUM, BlockSize::B512, Speed::Super)?;
    let mut copies = Copies::new()?;
    let mut measured = MemoryFigures { figures: Vec::new(), allocations: 0, commands: 0 };
    for (kind, what) in [(AccessKind::Read, "4K random read"), (AccessKind::Write, "4K random write")] {
        let mut figure = Figure::new(format!("{what}, depth {DEPTH}"), BAR);
        let runner = device.open_route(Route::Uas, BufferLayout { slots: DEPTH, bytes: BLOCK_BYTES })?;
        runner.prepare(DEPTH, BLOCK_BYTES)?;
        let mut load = Load { runner, kind, random: fastrand::Rng::with_seed(1) };
        load.run(arguments.seconds)?;
        for _ in 0..arguments.rounds {
            let reference = copies.run(kind, arguments.seconds)?;
            let mut counted = Ok((0, 0.0));
            let heap = allocation_counter::measure(|| counted = load.run(arguments.seconds));
            let (commands, rate) = counted?;
            measured.allocations += heap.count_total;
            measured.commands += commands;
            figure.push(reference, rate);
        }
        measured.figures.push(figure);
    }
    Ok(measured)
}

/// Commands at full depth.
struct Load<'a> {
    runner: &'a mut dyn Runner,
    kind: AccessKind,
    random: fastrand::Rng,
}

impl Load<'_> {
    /// How many commands, and how many in a second.
    fn run(&mut self, length: Duration) -> Result<(u64, f64)> {
        let (mut commands, begun) = (0, Instant::now());
        (0..DEPTH).for_each(|slot| self.start(slot));
        while begun.elapsed() < length {
            let batch_end = commands + BATCH;
            while commands < batch_end {
                self.runner.run_once(Duration::ZERO)?;
                while let Some(ended) = self.runner.poll() {
                    ensure!(ended.result.is_ok(), "a command fails: {:?}", ended.result);
                    commands += 1;
                    self.start(ended.slot);
                }
            }
        }
        let rate = commands as f64 / begun.elapsed().as_secs_f64();
        let mut left = DEPTH;
        while left > 0 {
            self.runner.run_once(Duration::ZERO)?;
            left -= std::iter::from_fn(|| self.runner.poll()).count() as u16;
        }
        Ok((commands, rate))
    }

    fn start(&mut self, slot: u16) {
        let extent = Extent::new(self.random.u64(..BLOCKS) * UNIT_BLOCKS, UNIT_BLOCKS);
        self.runner.start(slot, Access { kind: self.kind, extent });
    }
}

/// The plain loop.
struct Copies {
    medium: RamMedium,
    buffers: Vec<Vec<u8>>,
    random: fastrand::Rng,
}

impl Copies {
    fn new() -> Result<Self> {
        let medium = RamMedium::new(MEDIUM, BlockSize::B512).context("memory for the loop")?;
        let buffers = vec![vec![1; BLOCK_BYTES as usize]; DEPTH.into()];
        let mut copies = Self { medium, buffers, random: fastrand::Rng::with_seed(1) };
        for block in 0..BLOCKS {
            copies.copy(AccessKind::Write, block)?;
        }
        Ok(copies)
    }

    /// Copies in a second.
    fn run(&mut self, kind: AccessKind, length: Duration) -> Result<f64> {
        let (mut count, begun) = (0_u64, Instant::now());
        while begun.elapsed() < length {
            for _ in 0..BATCH {
                let block = self.random.u64(..BLOCKS);
                self.copy(kind, block)?;
            }
            count += BATCH;
        }
        Ok(count as f64 / begun.elapsed().as_secs_f64())
    }

    fn copy(&mut self, kind: AccessKind, block: u64) -> Result<()> {
        let place = (block % u64::from(DEPTH)) as usize;
        let request = MediumRequest {
            id: MediumRequestId { command: CommandId { slot: 0, generation: 0 }, part: 0 },
            unit: 0,
            op: if kind == AccessKind::Read { MediumOp::Read } else { MediumOp::Write { fua: false } },
            extent: Extent::new(block * UNIT_BLOCKS, UNIT_BLOCKS),
            location: DataLocation::Buffer,
            range: ByteRange::new(0, BLOCK_BYTES),
        };
        let buffer = std::mem::take(&mut self.buffers[place]);
        let finished = self.medium.submit(Job { request, buffer }).context("memory waits for nothing")?;
        self.buffers[place] = finished.buffer;
        Ok(())
    }
}
