//! kill -9 at any time: what was flushed or written with forced unit access is in the image, and atomic writes are
//! there whole or not at all.
//!
//! The test starts itself again as a child. The child serves an image and is its own host: it writes stamped blocks at
//! random over UAS, reads some back, and reports each stamp when the drive has answered for its durability. The parent
//! kills the child in the middle of that, opens the image, and looks for every reported stamp or one that came later;
//! then the next child goes on with the same image.
//!
//! Left out: what the page cache holds survives here. That durable writes are sent to the disk before they are
//! answered, and what a loss of power leaves, are tests of the medium.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use testkit::host::{Data, Host, Random, STREAMS, Scratch, cdb_16};
use uaskit_drive::medium::{Engine, FileMedium, FileOptions, OpenError, OpenReason};
use units::ByteCount;
use wire::scsi::Status;

const KILLS: u64 = 50;
/// Longest life of a child once it is as far as it is let.
const LIFE_MS_MAX: u64 = 50;

const SECTOR_BYTES: usize = 512;
/// Sectors that are written by one WRITE, and by one WRITE ATOMIC.
const PIECE: u64 = 8;
const STRIPE: u64 = 64;
/// The image begins with pieces and ends with stripes.
const PIECES: u64 = 256;
const STRIPES: u64 = 8;
const SECTORS: u64 = PIECES * PIECE + STRIPES * STRIPE;

/// The variable that makes the test a child: whether threads do the work, the seed, the last generation, the image.
const CHILD: &str = "UASKIT_KILL_CHILD";
/// The variable that repeats a run, as far as time allows.
const SEED: &str = "UASKIT_KILL_SEED";

#[test]
fn what_was_durable_survives_fifty_kills() {
    match std::env::var(CHILD) {
        Ok(orders) => write_until_killed(&orders),
        Err(_) => kill_fifty_times(),
    }
}

/// A place that is written as a whole, by its number: the pieces, then the stripes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place(u64);

impl Place {
    fn is_stripe(self) -> bool {
        self.0 >= PIECES
    }

    fn sectors(self) -> std::ops::Range<u64> {
        if self.is_stripe() {
            let start = PIECES * PIECE + (self.0 - PIECES) * STRIPE;
            start..start + STRIPE
        } else {
            self.0 * PIECE..(self.0 + 1) * PIECE
        }
    }
}

/// Fills a sector with its address and the number of its write.
fn stamp(sector: &mut [u8], lba: u64, generation: u64) {
    sector[..8].copy_from_slice(&lba.to_be_bytes());
    sector[8..16].copy_from_slice(&generation.to_be_bytes());
    let mut random = Random(generation ^ lba.rotate_left(40));
    for chunk in sector[16..].chunks_exact_mut(8) {
        chunk.copy_from_slice(&random.next().to_be_bytes());
    }
}

/// When the sector was written; zero if never.
fn generation_of(sector: &[u8], lba: u64) -> u64 {
    if sector == [0; SECTOR_BYTES] {
        return 0;
    }
    let generation = u64::from_be_bytes(sector[8..16].try_into().expect("eight bytes"));
    let mut expected = [0; SECTOR_BYTES];
    stamp(&mut expected, lba, generation);
    assert!(sector == expected, "sector {lba} holds data that was never written");
    generation
}

/// Opens the image. The kernel may hold on to the file of a process that it has just killed.
fn open(image: &Path, engine: Engine) -> FileMedium {
    let options = FileOptions { engine, ..FileOptions::default() };
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match FileMedium::open(image, &options) {
            Err(OpenError { reason: OpenReason::Locked, .. }) if Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(1));
            }
            medium => return medium.expect("a killed server leaves an image that opens"),
        }
    }
}

// The child.

/// Operation that a tag is used for.
enum Doing {
    Write {
        place: Place,
        generation: u64,
        durable: bool,
    },
    Read {
        place: Place,
    },
    /// These become durable.
    Flush(Vec<(Place, u64)>),
}

struct Writer {
    host: Host,
    random: Random,
    generation: u64,
    /// By tag.
    doing: Vec<Option<Doing>>,
    /// By place: the last stamp that was written, if it was in this life.
    written: Vec<u64>,
    /// Written, and not flushed yet.
    cached: Vec<(Place, u64)>,
}

fn write_until_killed(orders: &str) {
    let mut words = orders.splitn(4, ' ');
    let mut number = || words.next().and_then(|word| word.parse().ok()).expect("the orders are in order");
    let (threads, seed, generation): (u64, u64, u64) = (number(), number(), number());
    let image = PathBuf::from(words.next().expect("the orders name an image"));
    let engine = if threads == 1 { Engine::Threads } else { Engine::Automatic };
    let host = Host::plug(Box::new(open(&image, engine)));
    let doing = (0..=STREAMS).map(|_| None).collect();
    let written = vec![0; (PIECES + STRIPES) as usize];
    let random = Random(seed);
    let mut writer = Writer { host, random, generation, doing, written, cached: Vec::new() };
    report("\nready\n");
    for tag in 1..=STREAMS - 2 {
        writer.start(tag);
    }
    loop {
        let over = writer.host.wait();
        assert_eq!(over.status, Status::Good);
        writer.end(over.tag, &over.data);
        writer.host.put(over.data);
        writer.start(over.tag);
    }
}

impl Writer {
    fn start(&mut self, tag: u16) {
        let doing = match self.random.below(16) {
            0 => Doing::Flush(std::mem::take(&mut self.cached)),
            1 => Doing::Read { place: self.free_place(false) },
            kind => {
                let place = self.free_place(kind == 2);
                self.generation += 1;
                Doing::Write { place, generation: self.generation, durable: self.random.below(3) == 0 }
            }
        };
        match &doing {
            Doing::Flush(_) => self.host.start(tag, cdb_16(0x91, false, 0, 0), Data::None),
            Doing::Read { place } => {
                let cdb = cdb_16(0x88, false, place.sectors().start, PIECE as u16);
                self.host.start(tag, cdb, Data::In(PIECE as u32 * SECTOR_BYTES as u32));
            }
            Doing::Write { place, generation, durable } => {
                let sectors = place.sectors();
                let bytes = (sectors.end - sectors.start) as usize * SECTOR_BYTES;
                let mut memory = self.host.take(bytes);
                for (lba, sector) in sectors.clone().zip(memory.chunks_mut(SECTOR_BYTES)) {
                    stamp(sector, lba, *generation);
                }
                let opcode = if place.is_stripe() { 0x9c } else { 0x8a };
                let blocks = (sectors.end - sectors.start) as u16;
                let cdb = cdb_16(opcode, *durable, sectors.start, blocks);
                self.host.start(tag, cdb, Data::Out(memory, bytes as u32));
            }
        }
        self.doing[usize::from(tag)] = Some(doing);
    }

    /// A place that no command is at, so that the order of what is done there is certain.
    fn free_place(&mut self, stripe: bool) -> Place {
        loop {
            let number = if stripe { PIECES + self.random.below(STRIPES) } else { self.random.below(PIECES) };
            let taken = |doing: &Doing| match doing {
                Doing::Write { place, .. } | Doing::Read { place } => *place == Place(number),
                Doing::Flush(_) => false,
            };
            if !self.doing.iter().flatten().any(taken) {
                return Place(number);
            }
        }
    }

    fn end(&mut self, tag: u16, data: &[u8]) {
        let doing = self.doing[usize::from(tag)].take();
        if let Some(Doing::Write { place, generation, .. }) = &doing {
            self.written[place.0 as usize] = *generation;
        }
        match doing {
            Some(Doing::Read { place }) => {
                let written = self.written[place.0 as usize];
                for (lba, sector) in place.sectors().zip(data.chunks(SECTOR_BYTES)) {
                    let found = generation_of(sector, lba);
                    assert!(
                        written == 0 || found == written,
                        "sector {lba}: {written} written, {found} read"
                    );
                }
            }
            Some(Doing::Flush(flushed)) => {
                let lines: String =
                    flushed.iter().map(|&(place, generation)| line(place, generation)).collect();
                report(&lines);
            }
            Some(Doing::Write { place, generation, durable: true }) => report(&line(place, generation)),
            Some(Doing::Write { place, generation, durable: false }) => self.cached.push((place, generation)),
            None => panic!("tag {tag} ended twice"),
        }
    }
}

fn line(place: Place, generation: u64) -> String {
    format!("{} {generation}\n", place.0)
}

/// Reports to the parent. Exits without one.
fn report(lines: &str) {
    let mut out = std::io::stdout().lock();
    if out.write_all(lines.as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
}

// The parent.

/// A child that is killed at the latest when the parent gives up.
struct KilledChild {
    child: Child,
    lines: Receiver<String>,
    reported: Vec<(Place, u64)>,
}

impl KilledChild {
    fn start(orders: &str) -> Self {
        let program = std::env::current_exe().expect("a test knows its own program");
        let mut child = Command::new(program)
            .args(["what_was_durable_survives_fifty_kills", "--exact", "--nocapture"])
            .env(CHILD, orders)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it can be started again");
        let output = child.stdout.take().expect("it is piped");
        let (sender, lines) = channel();
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut line = String::new();
            // The last line may have been cut off: without its end it does not count.
            while output.read_line(&mut line).is_ok_and(|_| line.ends_with('\n')) {
                if sender.send(std::mem::take(&mut line)).is_err() {
                    return;
                }
            }
        });
        Self { child, lines, reported: Vec::new() }
    }

    /// Waits until it is ready, or has reported something.
    fn await_line(&mut self, is_it: impl Fn(&str) -> bool) {
        loop {
            let line = self.lines.recv_timeout(Duration::from_secs(60)).expect("the child gets on");
            self.reported.extend(reported(&line));
            if is_it(&line) {
                return;
            }
        }
    }

    /// Kills it; what it had reported by then.
    fn kill(mut self) -> Vec<(Place, u64)> {
        self.child.kill().expect("it is still there");
        let status = self.child.wait().expect("it is our child");
        assert_eq!(status.code(), None, "the child failed by itself");
        self.reported.extend(self.lines.iter().filter_map(|line| reported(&line)));
        std::mem::take(&mut self.reported)
    }
}

/// A line of a child, unless it is something else.
fn reported(line: &str) -> Option<(Place, u64)> {
    let (place, generation) = line.trim_end().split_once(' ')?;
    Some((Place(place.parse().ok()?), generation.parse().ok()?))
}

impl Drop for KilledChild {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn kill_fifty_times() {
    let seed = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_nanos() as u64)
    });
    println!("{SEED}={seed}");
    let mut random = Random(seed);
    let scratch = Scratch::new();
    let image = scratch.image(ByteCount(SECTORS * SECTOR_BYTES as u64));
    // By place: the last stamp of which the drive said that it is durable.
    let mut durable = vec![0; (PIECES + STRIPES) as usize];
    let (mut latest, mut reports, mut fruitful) = (0, 0, 0);
    for life in 0..KILLS {
        let mut child =
            KilledChild::start(&format!("{} {} {latest} {}", life % 2, random.next(), image.display()));
        // Some are killed as they start, when the last one's atomic write is being undone; most at work.
        match random.below(8) {
            0 => {}
            1 | 2 => child.await_line(|line| line == "ready\n"),
            _ => child.await_line(|line| reported(line).is_some()),
        }
        thread::sleep(Duration::from_micros(random.below(LIFE_MS_MAX * 1000)));
        let reported = child.kill();
        reports += reported.len();
        fruitful += u64::from(!reported.is_empty());
        for (place, generation) in reported {
            let last: &mut u64 = &mut durable[place.0 as usize];
            *last = generation.max(*last);
        }
        latest = look_for(&durable, &image).max(latest);
    }
    println!("{reports} durable writes, {latest} writes in all");
    // A run in which hardly anything was promised shows nothing.
    assert!(fruitful > KILLS / 3, "{fruitful} of {KILLS} children came to write something durable");
}

/// Looks for all that is durable in the image; the latest stamp in it.
fn look_for(durable: &[u64], image: &Path) -> u64 {
    drop(open(image, Engine::Threads));
    let bytes = std::fs::read(image).expect("the image is there");
    let mut latest = 0;
    for (place, &promised) in (0..).map(Place).zip(durable) {
        let sectors = place.sectors();
        let first = sectors.start;
        let found = sectors.clone().map(|lba| {
            let at = lba as usize * SECTOR_BYTES;
            generation_of(&bytes[at..at + SECTOR_BYTES], lba)
        });
        let found: Vec<u64> = found.collect();
        let oldest = found.iter().copied().min().unwrap_or(0);
        let newest = found.iter().copied().max().unwrap_or(0);
        assert!(oldest >= promised, "sectors from {first}: {promised} was durable, {oldest} is there");
        assert!(!place.is_stripe() || oldest == newest, "sectors from {first}: an atomic write is mixed");
        latest = newest.max(latest);
    }
    latest
}
