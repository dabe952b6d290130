//! Checks for every combination of parts, whatever its numbers: a grid of all drivers with all controllers of SuperSpeed, each
//! pair with a bridge and a drive in turn, so that all of those come as well. Each pair is asked for 4 KiB at random places, and for
//! one of the other workloads in turn.
//!
//! Always true: a run here is short, so that a bound has some percent of room, but it begins when caches are as they stay; what is
//! asked is what physics and structure forbid, not what articles have measured.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::thread;
use uaskit_study::measure::Stretch;
use uaskit_study::parts::{Carried, Catalogue, PartKind};
use uaskit_study::setups::{Assembly, DriveName};
use uaskit_study::trial::{self, DATA_SET_BYTES, Terms};
use units::Duration;
use workload::{AccessSpec, Job};

/// The workload of a program: bytes, percent of reads, percent at random places, and queue depths.
type Asked = (u32, u8, u8, &'static [u16]);

/// The workload of every pair.
const FIRST: Asked = (4 << 10, 100, 100, &[1, 4, 32]);

/// Workloads that pairs run in turn.
const FURTHER: [Asked; 7] = [
    (4 << 10, 0, 100, &[1, 4, 32]),
    (512 << 10, 100, 0, &[1, 4, 32]),
    (512 << 10, 0, 0, &[1, 4]),
    (2 << 20, 100, 0, &[1, 4]),
    (2 << 20, 0, 0, &[1, 4]),
    (512 << 10, 100, 100, &[1, 4]),
    (64 << 10, 0, 100, &[1, 4, 32]),
];

const SOLID: [&str; 4] = ["vertex3-240", "m4-256", "dramless-240", "vertex3-maxiops-128"];
const DISKS: [&str; 2] = ["disk-7200", "disk-5400"];

/// Payload of a Gen 1 link at most: packets, each with its acknowledgement, clock compensation (USB 3.2 clause 7.2).
const GEN1_MEGABYTES: f64 = 475.0;

/// Tolerance for requests that end while counting and began before it.
const EDGE: f64 = 1.1;

/// The least share of the rate that remains with more requests in flight: memory and cores are shared.
const FALL: f64 = 0.85;

/// How much a figure of few requests of a disk is off: each waits for a turn of the platters, or for none.
const TURNS: f64 = 1.3;

/// The most that BOT gains from requests that wait: they are built while others move, most where the stack takes longest, that of
/// Windows 8.
const FLAT: f64 = 1.3;

/// How much quicker the slowest flash is at random places than the quickest disk.
const ARMLESS: f64 = 4.0;

struct Cell {
    assembly: Assembly,
    carried: Carried,
    /// Its workload besides [`FIRST`].
    further: Asked,
    /// Megabytes in a second, by depth, for both.
    rates: [Vec<f64>; 2],
}

fn names(catalogue: &Catalogue, kind: PartKind) -> Vec<String> {
    catalogue.entries().filter(|entry| entry.kind() == kind).map(|entry| entry.name.clone()).collect()
}

fn rates(assembly: &Assembly, catalogue: &Catalogue, (bytes, reads, random, depths): Asked) -> Vec<f64> {
    // So long that what a drive writes has filled its buffer: 2 MiB at some ten megabytes a second more than it programs.
    let is_long_write = reads < 100 && bytes > 64 << 10;
    let stretch = Stretch {
        warm_up: Duration::from_ms(if is_long_write { 60 } else { 20 }),
        span: Duration::from_ms(8),
        // A disk's are few in a second, and each is another.
        requests: if matches!(assembly.drive, DriveName::Hdd(_)) { 400 } else { 60 },
        bytes: 16 << 20,
        rounds: 2,
        caches: 1,
    };
    let terms = Terms { stretch, ..Terms::USUAL };
    let rate = |depth: &u16| {
        let share = AccessSpec::all(bytes, reads, random);
        let job = Job { span_bytes: Some(DATA_SET_BYTES), ..Job::of(share, *depth) };
        let trial = trial::run(assembly, catalogue, &job, &terms);
        trial.unwrap_or_else(|error| panic!("{assembly:?}: {error}")).measured.megabytes_per_second()
    };
    depths.iter().map(rate).collect()
}

/// Parts with disks that keep little for later: they are as they stay when that is full.
fn catalogue() -> Catalogue {
    let built_in = Catalogue::built_in().expect("parts that come with the project");
    let with_less = |catalogue: Catalogue, disk: &&str| {
        catalogue.with(PartKind::Hdd, disk, "electronics.write_cache", 1.0).expect("a mebibyte")
    };
    DISKS.iter().fold(built_in, with_less)
}

/// Drivers with controllers of SuperSpeed that they are for.
fn assemblies(catalogue: &Catalogue) -> Vec<Assembly> {
    let (bridges, drivers) = (names(catalogue, PartKind::Bridge), names(catalogue, PartKind::Driver));
    let usb3 = |name: &String| name != "dwc-otg" && name != "ehci-intel";
    let controllers: Vec<_> = names(catalogue, PartKind::Controller).into_iter().filter(usb3).collect();
    let mut all = Vec::new();
    for (row, driver) in drivers.iter().filter(|driver| *driver != "sata-native").enumerate() {
        for (column, controller) in controllers.iter().enumerate() {
            let turn = row * controllers.len() + column;
            all.push(Assembly {
                host: "desktop-2012".into(),
                driver: driver.clone(),
                controller: controller.clone(),
                hubs: Vec::new(),
                bridge: Some(bridges[turn % bridges.len()].clone()),
                link: Some("gen1".into()),
                drive: drive(turn),
                power_states: false,
            });
        }
    }
    // Those whose driver is for another controller, or does without this bridge, and has no fallback.
    all.retain(|assembly| assembly.activation(catalogue).is_ok());
    all
}

/// Drives in turn, flash and disks.
fn drive(turn: usize) -> DriveName {
    let names = SOLID.len() + DISKS.len();
    match turn % names {
        disk if disk >= SOLID.len() => DriveName::Hdd(DISKS[disk - SOLID.len()].into()),
        solid => DriveName::Ssd(SOLID[solid].into()),
    }
}

fn cells(catalogue: &Catalogue, assemblies: &[Assembly]) -> Vec<Cell> {
    let workers = thread::available_parallelism().map_or(2, NonZero::get).min(8);
    let one = |(turn, assembly): (usize, &Assembly)| {
        let carried = assembly.activation(catalogue).expect("it was kept for that").transport;
        let further = FURTHER[turn % FURTHER.len()];
        let rates = [FIRST, further].map(|asked| self::rates(assembly, catalogue, asked));
        Cell { assembly: assembly.clone(), carried, further, rates }
    };
    let part = |worker: usize| {
        assemblies.iter().enumerate().skip(worker).step_by(workers).map(one).collect::<Vec<_>>()
    };
    thread::scope(|scope| {
        let running: Vec<_> = (0..workers).map(|worker| scope.spawn(move || part(worker))).collect();
        running.into_iter().flat_map(|worker| worker.join().expect("no run panics")).collect()
    })
}

/// The same drive on its own cable.
fn native(drive: &DriveName) -> Assembly {
    Assembly {
        host: "desktop-2012".into(),
        driver: "sata-native".into(),
        controller: "ahci-6g".into(),
        hubs: Vec::new(),
        bridge: None,
        link: None,
        drive: drive.clone(),
        power_states: false,
    }
}

/// The same with BOT in the place of UAS, where its driver has a fallback.
fn with_bot(catalogue: &Catalogue, assembly: &Assembly) -> Option<Assembly> {
    let driver = catalogue.driver(&assembly.driver)?.fallback.clone()?;
    Some(Assembly { driver, ..assembly.clone() }).filter(|bot| bot.activation(catalogue).is_ok())
}

/// Lists the oddities of a cell's rates for a workload, if any, beside those of the drive on its cable.
fn oddities(cell: &Cell, asked: Asked, (rates, native): (&[f64], &[f64])) -> Vec<String> {
    let noise = if matches!(cell.assembly.drive, DriveName::Hdd(_)) { TURNS } else { 1.0 };
    let mut odd = Vec::new();
    for (depth, rate) in rates.iter().enumerate() {
        if *rate > GEN1_MEGABYTES * EDGE {
            odd.push("more than the link carries".to_owned());
        }
        if *rate > native[depth] * EDGE * noise {
            odd.push(format!("more than on a cable, {native:?}"));
        }
        if depth > 0 && *rate < FALL / noise * rates[depth - 1] {
            odd.push("less with depth".to_owned());
        }
    }
    let ends = rates
        .iter()
        .copied()
        .fold((f64::INFINITY, 0.0_f64), |(least, most), rate| (least.min(rate), most.max(rate)));
    if cell.carried == Carried::Bot && ends.1 > ends.0 * FLAT * noise {
        odd.push("BOT is not flat with depth".to_owned());
    }
    let described = |what| format!("{asked:?} {:?}: {what}, {rates:?}", cell.assembly);
    odd.into_iter().map(described).collect()
}

/// UAS below BOT where several requests are in flight.
fn below_bot(cell: &Cell, catalogue: &Catalogue) -> Option<String> {
    let bot =
        matches!(cell.carried, Carried::Uas(_)).then(|| with_bot(catalogue, &cell.assembly)).flatten()?;
    let noise = if matches!(cell.assembly.drive, DriveName::Hdd(_)) { TURNS } else { 1.0 };
    let (uas, bot) = (&cell.rates[0], rates(&bot, catalogue, FIRST));
    let is_below = (1..uas.len()).any(|depth| uas[depth] < 0.98 / noise * bot[depth]);
    is_below.then(|| format!("{:?}: UAS below BOT, {uas:?} {bot:?}", cell.assembly))
}

#[test]
fn no_combination_of_parts_does_what_cannot_be() {
    let catalogue = catalogue();
    let cells = cells(&catalogue, &assemblies(&catalogue));
    let mut natives: BTreeMap<(String, Asked), Vec<f64>> = BTreeMap::new();
    let mut odd = Vec::new();
    // The quickest disk and the slowest flash, by depth.
    let mut random = [[0.0_f64; 3], [f64::INFINITY; 3]];
    for cell in &cells {
        let drive = &cell.assembly.drive;
        for (asked, rates) in [FIRST, cell.further].into_iter().zip(&cell.rates) {
            let native = natives
                .entry((drive.as_str().into(), asked))
                .or_insert_with(|| self::rates(&native(drive), &catalogue, asked));
            odd.extend(oddities(cell, asked, (rates, native)));
        }
        odd.extend(below_bot(cell, &catalogue));
        for (depth, rate) in cell.rates[0].iter().enumerate() {
            match drive {
                DriveName::Hdd(_) => random[0][depth] = random[0][depth].max(*rate),
                DriveName::Ssd(_) => random[1][depth] = random[1][depth].min(*rate),
            }
        }
    }
    let [disks, flash] = random;
    if (0..3).any(|depth| disks[depth] * ARMLESS > flash[depth]) {
        odd.push(format!("disks as quick as flash at random places: {disks:?} {flash:?}"));
    }
    assert!(cells.len() > 60, "{} combinations", cells.len());
    assert!(odd.is_empty(), "{} oddities of {} cells:\n{}", odd.len(), cells.len(), odd.join("\n"));
}
