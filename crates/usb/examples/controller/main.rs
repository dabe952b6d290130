//! Disks behind a controller that is driven from here, for trials against controllers that others
//! have made.
//!
//! `controller PCI VERB …`, where a disk is named by its serial number, TRANSPORT is bot, turbo or uas, and VERB is
//! - `list`: what the controller says of itself, and what is behind its ports;
//! - `verify SERIAL TRANSPORT FIRST COUNT BYTES DEPTH`: COUNT stamped pieces of BYTES from block FIRST on, written,
//!   flushed, read back;
//! - `dump SERIAL TRANSPORT BYTES DEPTH FILE`: the whole disk into a file, in pieces of BYTES;
//! - `together FIRST COUNT BYTES DEPTH SERIAL:TRANSPORT …`: as `verify`, on all of them at once;
//! - `abort SERIAL TRANSPORT BYTES DEPTH ROUNDS`: reads that are cancelled in flight, and then a `verify`;
//! - `stall SERIAL`, `cancel SERIAL [COMMANDS]`, `cancel-data SERIAL`, `reset SERIAL TRANSPORT`: transfers without a disk above them;
//! - `replug SERIAL TRANSPORT`: writes until the disk is pulled out, waits until it is back, and then a `verify`;
//! - `restart SERIAL TRANSPORT`: a `verify`, the controller given up and taken again, and another.
//!
//! The last line is what the controller counted. Exit status 1: something was not right.

mod bare;
#[path = "../exercise/trial.rs"]
#[allow(dead_code, reason = "what is for the other program")]
mod trial;

use bare::Bare;
use initiator::disk::Operation;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use trial::{Failure, READ, Trial, WRITE, stamp};
use uaskit_usb::attachment::{AttachConfig, Attachment, TransportChoice};
use uaskit_usb::controller::{HostConfig, HostedDevice, HostedInterface, UsbHost};
use uaskit_usb::host_bus::HostBusError;
use units::Extent;

/// How long a disk may take to appear.
const PLUG_LIMIT: Duration = Duration::from_secs(20);

/// How long nothing may happen at the ports until all have been reported.
const QUIET: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("controller: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> Result<bool, Failure> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [pci, verb, rest @ ..] = &words[..] else { return Err("PCI VERB …".into()) };
    let mut bus = Bus { host: UsbHost::open(&pci.parse()?, &HostConfig::default())?, idle: BTreeMap::new() };
    let is_right = match (*verb, rest) {
        ("list", []) => bus.list()?,
        ("verify", [serial, transport, numbers @ ..]) => {
            let [first, count, bytes, depth] = numbers_of(numbers)?;
            bus.verify(Target { serial, transport }, Pieces { first, count }, Requests { bytes, depth })?
        }
        ("dump", [serial, transport, bytes, depth, file]) => {
            let [bytes, depth] = numbers_of(&[bytes, depth])?;
            bus.dump(Target { serial, transport }, Requests { bytes, depth }, file)?
        }
        ("together", [first, count, bytes, depth, disks @ ..]) => {
            let [first, count, bytes, depth] = numbers_of(&[first, count, bytes, depth])?;
            bus.together(disks, Pieces { first, count }, Requests { bytes, depth })?
        }
        ("abort", [serial, transport, numbers @ ..]) => {
            let [bytes, depth, rounds] = numbers_of(numbers)?;
            bus.abort(Target { serial, transport }, Requests { bytes, depth }, rounds)?
        }
        ("stall", [serial]) => Bare::bot(bus.find(serial)?)?.stalls()?,
        ("cancel", [serial, numbers @ ..]) => {
            let earlier = if numbers.is_empty() { 0 } else { numbers_of::<1>(numbers)?[0] };
            Bare::uas(bus.find(serial)?)?.cancels(&bus.host, earlier)?
        }
        ("cancel-data", [serial]) => Bare::uas(bus.find(serial)?)?.cancels_data()?,
        ("reset", [serial, "bot"]) => Bare::bot(bus.find(serial)?)?.is_reset()?,
        ("reset", [serial, "uas"]) => Bare::uas(bus.find(serial)?)?.is_reset()?,
        ("replug", [serial, transport]) => bus.replug(Target { serial, transport })?,
        ("restart", [serial, transport]) => {
            let target = Target { serial, transport };
            let (pieces, requests) = (Pieces { first: 2048, count: 20 }, Requests { bytes: 4096, depth: 8 });
            let before = bus.verify(target, pieces, requests)?;
            // What is idle keeps the controller as well.
            drop(bus);
            let host = UsbHost::open(&pci.parse()?, &HostConfig::default())?;
            bus = Bus { host, idle: BTreeMap::new() };
            before && bus.verify(target, pieces, requests)?
        }
        _ => return Err("no such verb, or too few words".into()),
    };
    println!("{:?}", bus.host.counters());
    Ok(is_right)
}

fn numbers_of<const N: usize>(words: &[&str]) -> Result<[u32; N], Failure> {
    let numbers: Result<Vec<u32>, _> = words.iter().map(|word| word.parse()).collect();
    numbers?.try_into().map_err(|_| format!("{N} numbers are wanted").into())
}

/// A drive, and how to drive it.
#[derive(Clone, Copy)]
struct Target<'a> {
    serial: &'a str,
    transport: &'a str,
}

/// The requests of a trial.
#[derive(Clone, Copy)]
struct Requests {
    bytes: u32,
    depth: u32,
}

/// The pieces of a drive that a trial writes and reads.
#[derive(Clone, Copy)]
struct Pieces {
    first: u32,
    count: u32,
}

/// A controller, and devices that no one has asked for yet.
struct Bus {
    host: UsbHost,
    idle: BTreeMap<String, HostedDevice>,
}

impl Bus {
    /// The device with that serial number.
    fn find(&mut self, serial: &str) -> Result<HostedDevice, Failure> {
        let until = Instant::now() + PLUG_LIMIT;
        loop {
            if let Some(device) = self.idle.remove(serial)
                && !device.is_gone()
            {
                return Ok(device);
            }
            if Instant::now() > until {
                return Err(format!("there is no {serial}").into());
            }
            self.welcome(QUIET)?;
        }
    }

    /// Takes the next device that shows itself; whether anything happened.
    fn welcome(&mut self, limit: Duration) -> Result<bool, Failure> {
        let Some(change) = self.host.next_change(limit)? else { return Ok(false) };
        println!("port {}: {}", change.port, change.status);
        if change.is_connected() {
            let device = self.host.attach(change.port)?;
            let serial = device.text(device.descriptor().serial_string)?.unwrap_or_default();
            self.idle.insert(serial, device);
        }
        Ok(true)
    }

    fn list(&mut self) -> Result<bool, Failure> {
        println!("{:#?}", self.host.capabilities());
        while self.welcome(QUIET)? {}
        for (serial, device) in &self.idle {
            let probe =
                quirks::probe(&device.answers(), quirks::Link { speed: device.speed(), streams_max: 256 });
            let plan = probe.ok().and_then(|probe| probe.best());
            let plan = plan.map_or_else(|| "no disk".to_owned(), |plan| plan.to_string());
            println!("port {} {serial}: {}, {}, {plan}", device.port(), device.speed(), device.descriptor());
        }
        Ok(true)
    }

    fn open(&mut self, target: Target<'_>, requests: Requests) -> Result<Trial<HostedInterface>, Failure> {
        let Target { serial, transport } = target;
        let config = AttachConfig {
            transport: match transport {
                "bot" => TransportChoice::Bot,
                "turbo" => TransportChoice::Turbo,
                "uas" => TransportChoice::Uas,
                _ => return Err("bot, turbo or uas".into()),
            },
            slots: requests.depth.try_into()?,
            slot_bytes: requests.bytes,
            ..AttachConfig::default()
        };
        let disk = Attachment::hosted(self.find(serial)?, &config)?;
        println!("{serial}: {}, depth {}, {} bytes", disk.transport(), disk.depth(), disk.geometry().bytes());
        Ok(Trial::new(disk, Arc::new(AtomicBool::new(false))))
    }

    fn verify(&mut self, target: Target<'_>, pieces: Pieces, requests: Requests) -> Result<bool, Failure> {
        let mut trial = self.open(target, requests)?;
        let is_right = trial.verify(pieces.first.into(), pieces.count.into(), requests.bytes)?;
        print_counters(&trial);
        Ok(is_right)
    }

    fn dump(&mut self, target: Target<'_>, requests: Requests, file: &str) -> Result<bool, Failure> {
        let mut trial = self.open(target, requests)?;
        let bytes = requests.bytes;
        let file = File::create(file)?;
        let per_piece = u64::from(bytes / trial.disk.geometry().block_size.bytes());
        let pieces = trial.disk.geometry().capacity.0 / per_piece;
        let (mut indices, mut of_slot) = (0..pieces, BTreeMap::new());
        let places = std::cell::RefCell::new(&mut of_slot);
        trial.keep_busy(
            |disk, slot| {
                let index = indices.next()?;
                places.borrow_mut().insert(slot, index);
                disk.buffer(slot)?.fill(0xee);
                Some((READ, Extent::new(index * per_piece, per_piece)))
            },
            |disk, finished| {
                let index = places.borrow().get(&finished.slot).copied().unwrap_or_default();
                let read = disk.buffer(finished.slot).unwrap_or_default();
                file.write_all_at(read, index * u64::from(bytes)).is_ok()
            },
        )?;
        println!("dumped={pieces} errors={}", trial.errors);
        print_counters(&trial);
        Ok(trial.errors == 0)
    }

    /// All at once, on one thread: the caller that has room is given work, then one waits for
    /// whatever comes.
    fn together(&mut self, disks: &[&str], pieces: Pieces, requests: Requests) -> Result<bool, Failure> {
        let mut trials = Vec::new();
        for disk in disks {
            let (serial, transport) = disk.split_once(':').ok_or("SERIAL:TRANSPORT")?;
            trials.push(self.open(Target { serial, transport }, requests)?.disk);
        }
        let mut errors = 0;
        for operation in [WRITE, Operation::Flush, READ] {
            let count = if operation == Operation::Flush { 1 } else { pieces.count };
            errors += self.round(&mut trials, operation, Pieces { count, ..pieces }, requests.bytes)?;
        }
        for (disk, trial) in disks.iter().zip(&trials) {
            println!("{disk}: {:?}", trial.counters());
        }
        println!("verified={} errors={errors}", trials.len() as u32 * pieces.count);
        Ok(errors == 0)
    }

    /// One operation on each piece of each disk. The data identify the disk and the
    /// piece.
    fn round(
        &self,
        disks: &mut [Attachment<HostedInterface>],
        operation: Operation,
        pieces: Pieces,
        bytes: u32,
    ) -> Result<u32, Failure> {
        let Pieces { first, count } = pieces;
        let mut next = vec![0; disks.len()];
        let mut outstanding: Vec<BTreeMap<u16, u32>> = vec![BTreeMap::new(); disks.len()];
        let (mut errors, mut expected) = (0, vec![0; bytes as usize]);
        let number = |disk: usize, index: u32| (disk as u64) << 32 | u64::from(index);
        loop {
            let mut any = false;
            for (at, disk) in disks.iter_mut().enumerate() {
                let per_piece = u64::from(bytes / disk.geometry().block_size.bytes());
                for slot in 0..disk.slots() {
                    if next[at] < count && !outstanding[at].contains_key(&slot) {
                        let buffer = disk.buffer(slot).ok_or("a free slot has a buffer")?;
                        if operation == WRITE {
                            stamp(buffer, number(at, next[at]))
                        } else {
                            buffer.fill(0)
                        }
                        let extent = match operation {
                            Operation::Flush => Extent::default(),
                            _ => Extent::new(u64::from(first) + u64::from(next[at]) * per_piece, per_piece),
                        };
                        disk.submit(slot, operation, extent)?;
                        outstanding[at].insert(slot, next[at]);
                        next[at] += 1;
                    }
                }
                while let Some(finished) = disk.wait(Instant::now())? {
                    any = true;
                    let index = outstanding[at].remove(&finished.slot).ok_or("it was not in flight")?;
                    stamp(&mut expected, number(at, index));
                    let differs = operation == READ && disk.buffer(finished.slot) != Some(&mut expected[..]);
                    if finished.result.is_err() || differs {
                        eprintln!("disk {at}, piece {index}: {:?}", finished.result);
                        errors += 1;
                    }
                }
            }
            let is_over =
                next.iter().all(|next| *next == count) && outstanding.iter().all(BTreeMap::is_empty);
            if is_over {
                return Ok(errors);
            }
            if !any {
                self.host.wait(Duration::from_millis(5))?;
            }
        }
    }

    /// Every second read is cancelled as soon as all are in flight.
    fn abort(&mut self, target: Target<'_>, requests: Requests, rounds: u32) -> Result<bool, Failure> {
        let Requests { bytes, depth } = requests;
        let mut trial = self.open(target, requests)?;
        let per_piece = u64::from(bytes / trial.disk.geometry().block_size.bytes());
        let (mut cancelled, mut done) = (0, 0);
        for round in 0..rounds {
            let slots = trial.disk.slots();
            for slot in 0..slots {
                let at = u64::from(round * u32::from(slots) + u32::from(slot)) * per_piece;
                trial.disk.submit(slot, READ, Extent::new(at, per_piece))?;
            }
            (0..slots).step_by(2).for_each(|slot| trial.disk.abort(slot));
            while trial.disk.in_flight() > 0 {
                match trial.disk.wait(Instant::now() + PLUG_LIMIT)? {
                    Some(finished) if finished.result.is_ok() => done += 1,
                    Some(_) => cancelled += 1,
                    None => return Err("a read does not end".into()),
                }
            }
        }
        println!("cancelled={cancelled} done={done}");
        let is_right = trial.verify(2048, 50, bytes)?;
        print_counters(&trial);
        Ok(is_right && done + cancelled == rounds * depth)
    }

    fn replug(&mut self, target: Target<'_>) -> Result<bool, Failure> {
        let requests = Requests { bytes: 4096, depth: 14 };
        let mut trial = self.open(target, requests)?;
        println!("writing");
        match write_on(&mut trial) {
            Ok(()) => {}
            Err(failure) => {
                let error = failure.downcast_ref::<uaskit_usb::controller::ControllerError>();
                if !error.is_some_and(HostBusError::is_disconnect) {
                    return Err(failure);
                }
                trial.gone = true;
            }
        }
        println!("gone={}", trial.gone);
        let is_gone = trial.gone;
        drop(trial);
        Ok(is_gone && self.verify(target, Pieces { first: 2048, count: 100 }, requests)?)
    }
}

/// Writes the same 16 MiB again and again: how long it takes until somebody pulls the disk out is
/// nothing that it knows.
fn write_on(trial: &mut Trial<HostedInterface>) -> Result<(), Failure> {
    const PIECES: u64 = 4096;
    let per_piece = trial.blocks(4096);
    let mut pieces = (0..PIECES).cycle();
    trial.keep_busy(
        |disk, slot| {
            let piece = pieces.next()?;
            stamp(disk.buffer(slot)?, piece);
            Some((WRITE, Extent::new(2048 + piece * per_piece, per_piece)))
        },
        |_, _| true,
    )
}

fn print_counters(trial: &Trial<HostedInterface>) {
    let counters = trial.disk.counters();
    println!("{:?} {:?}", counters.transport, counters.disk);
}
