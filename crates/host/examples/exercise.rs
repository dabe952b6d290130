//! A disk driven by our own initiator, for trials against real kernels: writes, reads back, compares, measures.
//!
//! `exercise PORT bot|turbo|uas VERB …`, where VERB is
//! - `verify FIRST COUNT BYTES DEPTH`: COUNT stamped pieces of BYTES from block FIRST on, written, flushed, read back;
//! - `read random|sequential BYTES DEPTH SECONDS`: reads, and prints how many in a second;
//! - `panic`: panics while reads are under way;
//! - `hold`: reads until a signal comes in.
//!
//! `--timeout-ms N` behind it all ends a command's patience sooner. The last line is `key=value` pairs. Exit status 1: something was not right. Ctrl-C ends it in good order.

use host::attachment::{AttachConfig, Attachment, Finished, TransportChoice};
use host::inventory::{Inventory, Scope};
use host::tree::Tree;
use initiator::disk::{DiskPatience, Error, Operation, RequestRefusal};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::cell::RefCell;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use units::Extent;

type Failure = Box<dyn std::error::Error>;

const READ: Operation = Operation::Read { fua: false, dpo: false, may_be_short: false };
const WRITE: Operation = Operation::Write { fua: false, dpo: false };

/// How long a wait may keep a signal waiting.
const PATIENCE: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("exercise: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// A disk, and whether it is time to stop.
struct Trial {
    disk: Attachment,
    stop: Arc<AtomicBool>,
    errors: u64,
    gone: bool,
}

fn run(words: &[String]) -> Result<bool, Failure> {
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut disk_patience = DiskPatience::DEFAULT;
    if let [.., "--timeout-ms", milliseconds] = words[..] {
        disk_patience.command_timeout = units::Duration::from_ms(milliseconds.parse()?);
        words.truncate(words.len() - 2);
    }
    let [port, transport, verb, rest @ ..] = &words[..] else { return Err("PORT TRANSPORT VERB …".into()) };
    let number =
        |at: usize| -> Result<u32, Failure> { Ok(rest.get(at).ok_or("a number is missing")?.parse()?) };
    let (bytes, depth) = match *verb {
        "verify" => (number(2)?, number(3)?),
        "read" => (number(1)?, number(2)?),
        _ => (65_536, 8),
    };
    let config = AttachConfig {
        transport: match *transport {
            "bot" => TransportChoice::Bot,
            "turbo" => TransportChoice::Turbo,
            "uas" => TransportChoice::Uas,
            _ => return Err("bot, turbo or uas".into()),
        },
        slots: depth.try_into()?,
        slot_bytes: bytes,
        disk_patience,
        ..AttachConfig::default()
    };
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, stop.clone())?;
    }
    let tree = Tree::running();
    let inventory = Inventory::read(&tree, Scope::Brief);
    let drive = *inventory.find(port).first().ok_or("there is no such port")?;
    let disk = Attachment::open(&tree, drive, &config)?;
    println!(
        "{}, depth {}, {}",
        disk.transport(),
        disk.depth(),
        if disk.is_zero_copy() { "mapped" } else { "copied" }
    );
    let mut trial = Trial { disk, stop, errors: 0, gone: false };
    let right = match *verb {
        "verify" => trial.verify(number(0)?.into(), number(1)?.into(), bytes)?,
        "read" => trial.read(rest[0] == "random", bytes, Duration::from_secs(number(3)?.into()))?,
        "panic" => trial.panic()?,
        "hold" => trial.read(true, bytes, Duration::from_secs(600))?,
        _ => return Err("no such verb".into()),
    };
    let counters = trial.disk.counters();
    println!("{:?} {:?}", counters.transport, counters.disk);
    trial.disk.close()?;
    Ok(right)
}

impl Trial {
    fn blocks(&self, bytes: u32) -> u64 {
        u64::from(bytes / self.disk.geometry().block_size.bytes())
    }

    /// Keeps all slots busy with what `next` says, until it says nothing more; `each` looks at what has ended.
    fn keep_busy(
        &mut self,
        mut next: impl FnMut(&mut Attachment, u16) -> Option<(Operation, Extent)>,
        mut each: impl FnMut(&mut Attachment, Finished) -> bool,
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
            if let Some(finished) = self.disk.wait(Instant::now() + PATIENCE)? {
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

    fn verify(&mut self, first: u64, count: u64, bytes: u32) -> Result<bool, Failure> {
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

    fn read(&mut self, random: bool, bytes: u32, span: Duration) -> Result<bool, Failure> {
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

    fn panic(&mut self) -> Result<bool, Failure> {
        for slot in 0..self.disk.slots() {
            self.disk.submit(slot, READ, Extent::new(0, 8))?;
        }
        panic!("as was asked for, with {} reads under way", self.disk.in_flight());
    }
}

/// Fills a piece with its number and what follows from it.
fn stamp(bytes: &mut [u8], index: u64) {
    let mut word = index;
    for place in bytes.chunks_exact_mut(8) {
        place.copy_from_slice(&word.to_le_bytes());
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    }
}
