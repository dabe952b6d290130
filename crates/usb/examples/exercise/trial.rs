//! A disk under trial, over whatever bus: writes, reads back, compares, measures.
//!
//! Each piece is written with a stamp, its number and bytes derived from it, so that a piece in the
//! wrong place is seen. All slots are kept busy until there is nothing more to do, the disk is gone, or
//! somebody stops it.

use initiator::disk::{Error, Operation, RequestRefusal};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use uaskit_usb::attachment::{Attachment, FinishedRequest};
use uaskit_usb::host_bus::HardwareBus;
use units::Extent;

pub(crate) type Failure = Box<dyn std::error::Error>;

pub(crate) const READ: Operation = Operation::Read { fua: false, dpo: false, may_be_short: false };
pub(crate) const WRITE: Operation = Operation::Write { fua: false, dpo: false };

/// How long a wait may keep a signal waiting.
pub(crate) const WAIT_LIMIT: Duration = Duration::from_millis(200);

/// A disk, and whether it is time to stop.
pub(crate) struct Trial<D: HardwareBus> {
    pub(crate) disk: Attachment<D>,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) errors: u64,
    pub(crate) gone: bool,
}

impl<D: HardwareBus> Trial<D>
where
    D::Error: 'static,
{
    pub(crate) fn new(disk: Attachment<D>, stop: Arc<AtomicBool>) -> Self {
        Self { disk, stop, errors: 0, gone: false }
    }

    pub(crate) fn blocks(&self, bytes: u32) -> u64 {
        u64::from(bytes / self.disk.geometry().block_size.bytes())
    }

    /// Keeps all slots busy with what `next` says, until it says nothing more; `each` looks at what
    /// has ended.
    pub(crate) fn keep_busy(
        &mut self,
        mut next: impl FnMut(&mut Attachment<D>, u16) -> Option<(Operation, Extent)>,
        mut each: impl FnMut(&mut Attachment<D>, FinishedRequest) -> bool,
    ) -> Result<(), Failure> {
        let mut more = true;
        let mut free: Vec<u16> = (0..self.disk.slots()).rev().collect();
        loop {
            while more && let Some(slot) = free.pop() {
                match next(&mut self.disk, slot) {
                    Some((operation, extent)) => match self.disk.submit(slot, operation, extent) {
                        Err(RequestRefusal::Gone) => (self.gone, more) = (true, false),
                        submitted => submitted?,
                    },
                    None => more = false,
                }
            }
            if self.disk.in_flight() == 0 {
                return Ok(());
            }
            if let Some(finished) = self.disk.wait(Instant::now() + WAIT_LIMIT)? {
                free.push(finished.slot);
                self.gone |= finished.result == Err(Error::Gone);
                if let Err(error) = finished.result {
                    eprintln!("slot {}: {error}", finished.slot);
                }
                if finished.result.is_err() || !each(&mut self.disk, finished) {
                    self.errors += 1;
                }
            }
            more &= !self.gone && !self.stop.load(Ordering::Relaxed);
        }
    }

    pub(crate) fn verify(&mut self, first: u64, count: u64, bytes: u32) -> Result<bool, Failure> {
        let per_piece = self.blocks(bytes);
        let extent = |index: u64| Extent::new(first + index * per_piece, per_piece);
        let mut indices = 0..count;
        self.keep_busy(
            |disk, slot| {
                let index = indices.next()?;
                stamp(disk.buffer(slot)?, index);
                Some((WRITE, extent(index)))
            },
            |_, _| true,
        )?;
        let mut flush = Some((Operation::Flush, Extent::default()));
        self.keep_busy(|_, _| flush.take(), |_, _| true)?;
        let mut indices = 0..count;
        let mut expected = vec![0; bytes as usize];
        let mut reads = 0;
        let wanted = RefCell::new(vec![0; self.disk.slots().into()]);
        self.keep_busy(
            |disk, slot| {
                let index = indices.next()?;
                wanted.borrow_mut()[usize::from(slot)] = index;
                disk.buffer(slot)?.fill(0);
                Some((READ, extent(index)))
            },
            |disk, finished| {
                reads += 1;
                stamp(&mut expected, wanted.borrow()[usize::from(finished.slot)]);
                disk.buffer(finished.slot).is_some_and(|bytes| *bytes == expected[..])
            },
        )?;
        println!("verified={reads} errors={} gone={} stopped={}", self.errors, self.gone, self.stopped());
        Ok(self.errors == 0 && reads == count)
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn read(&mut self, random: bool, bytes: u32, span: Duration) -> Result<bool, Failure> {
        let per_piece = self.blocks(bytes);
        let pieces = self.disk.geometry().capacity.0 / per_piece;
        let mut place = 1_u64;
        let begun = Instant::now();
        let mut reads = 0_u64;
        self.keep_busy(
            |_, _| {
                // Marsaglia's xorshift: any spread will do.
                let index = if random {
                    place ^= place << 13;
                    place ^= place >> 7;
                    place ^= place << 17;
                    place % pieces
                } else {
                    place = (place + 1) % pieces;
                    place
                };
                (begun.elapsed() < span).then_some((READ, Extent::new(index * per_piece, per_piece)))
            },
            |_, _| {
                reads += 1;
                true
            },
        )?;
        let seconds = begun.elapsed().as_secs_f64();
        let iops = reads as f64 / seconds;
        let mb = iops * f64::from(bytes) / 1e6;
        println!(
            "iops={iops:.0} mb_per_s={mb:.1} errors={} gone={} stopped={}",
            self.errors,
            self.gone,
            self.stopped()
        );
        Ok(self.errors == 0)
    }

    pub(crate) fn panic(&mut self) -> Result<bool, Failure> {
        for slot in 0..self.disk.slots() {
            self.disk.submit(slot, READ, Extent::new(0, 8))?;
        }
        panic!("as was asked for, with {} reads in flight", self.disk.in_flight());
    }
}

/// Fills a piece with its number and what follows from it.
pub(crate) fn stamp(bytes: &mut [u8], index: u64) {
    let mut word = index;
    for place in bytes.chunks_exact_mut(8) {
        place.copy_from_slice(&word.to_le_bytes());
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    }
}
