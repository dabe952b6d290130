//! What no combination of parts may do, whatever their numbers are: a grid of drivers and controllers, every second
//! pair, each with a bridge and a drive in turn, so that all of those come as well.
//!
//! Always true: a run here is short, so that a bound has some percent of room; what is asked is what physics and structure forbid,
//! not what articles have measured.

use sim::measure::Stretch;
use sim::parts::{Carried, Catalogue, Kind};
use sim::setups::{Assembly, DriveName};
use sim::trial::{self, DATA_SET_BYTES, Terms};
use std::num::NonZero;
use std::thread;
use units::Duration;
use workload::{Job, Share};

/// What a program asks: bytes, percent of reads, percent at random places, and how many are under way.
const ASKED: [(u32, u8, u8, &[u16]); 4] = [
    (4 << 10, 100, 100, &[1, 4, 32]),
    (4 << 10, 0, 100, &[1, 4, 32]),
    (512 << 10, 0, 0, &[1, 4]),
    (2 << 20, 100, 0, &[1, 4]),
];

const SOLID: [&str; 3] = ["vertex3-240", "m4-256", "dramless-240"];

/// Payload of a Gen 1 link at most: packets, each with its acknowledgement, clock compensation (USB 3.2 clause 7.2).
const GEN1_MEGABYTES: f64 = 475.0;

/// What ends at once may have begun before it was counted.
const EDGE: f64 = 1.1;

/// What more requests under way may cost: memory and cores are shared.
const FALL: f64 = 0.85;

struct Cell {
    assembly: Assembly,
    carried: Carried,
    rates: Rates,
}

/// Megabytes in a second, by what is asked and depth.
type Rates = [Vec<f64>; ASKED.len()];

fn names(catalogue: &Catalogue, kind: Kind) -> Vec<String> {
    catalogue.entries().filter(|entry| entry.kind() == kind).map(|entry| entry.name.clone()).collect()
}

fn rates(assembly: &Assembly, catalogue: &Catalogue) -> Rates {
    let stretch = Stretch {
        // So long that what a drive writes has filled its buffer.
        warm_up: Duration::from_ms(20),
        span: Duration::from_ms(8),
        requests: 60,
        bytes: 16 << 20,
        rounds: 2,
    };
    let terms = Terms { stretch, ..Terms::USUAL };
    ASKED.map(|(bytes, reads, random, depths)| {
        let rate = |depth: &u16| {
            let share = Share::all(bytes, reads, random);
            let job = Job { span_bytes: Some(DATA_SET_BYTES), ..Job::of(share, *depth) };
            let trial = trial::run(assembly, catalogue, &job, &terms);
            trial.unwrap_or_else(|error| panic!("{assembly:?}: {error}")).measured.megabytes_per_second()
        };
        depths.iter().map(rate).collect()
    })
}

/// Drivers with controllers of SuperSpeed that they are for.
fn assemblies(catalogue: &Catalogue) -> Vec<Assembly> {
    let (bridges, drivers) = (names(catalogue, Kind::Bridge), names(catalogue, Kind::Driver));
    let usb3 = |name: &String| name != "dwc-otg" && name != "ehci-intel";
    let controllers: Vec<_> = names(catalogue, Kind::Controller).into_iter().filter(usb3).collect();
    let mut all = Vec::new();
    for (row, driver) in drivers.iter().filter(|driver| *driver != "sata-native").enumerate() {
        // Each second pair, so that every driver and every controller comes several times.
        for (column, controller) in
            controllers.iter().enumerate().filter(|(column, _)| (row + column) % 2 == 0)
        {
            let turn = row * controllers.len() + column;
            all.push(Assembly {
                host: "desktop-2012".into(),
                driver: driver.clone(),
                controller: controller.clone(),
                hubs: Vec::new(),
                bridge: Some(bridges[turn % bridges.len()].clone()),
                link: Some("gen1".into()),
                drive: DriveName::Ssd(SOLID[turn % SOLID.len()].into()),
            });
        }
    }
    // Those whose driver is for another controller, or does without this bridge, and has nobody to fall back on.
    all.retain(|assembly| assembly.activation(catalogue).is_ok());
    all
}

fn cells(catalogue: &Catalogue, assemblies: &[Assembly]) -> Vec<Cell> {
    let workers = thread::available_parallelism().map_or(2, NonZero::get).min(8);
    let one = |assembly: &Assembly| {
        let carried = assembly.activation(catalogue).expect("it was kept for that").transport;
        Cell { assembly: assembly.clone(), carried, rates: rates(assembly, catalogue) }
    };
    let part = |worker: usize| assemblies.iter().skip(worker).step_by(workers).map(one).collect::<Vec<_>>();
    thread::scope(|scope| {
        let running: Vec<_> = (0..workers).map(|worker| scope.spawn(move || part(worker))).collect();
        running.into_iter().flat_map(|worker| worker.join().expect("no run panics")).collect()
    })
}

/// The same drive on its own cable.
fn native(catalogue: &Catalogue, drive: &str) -> Rates {
    let assembly = Assembly {
        host: "desktop-2012".into(),
        driver: "sata-native".into(),
        controller: "ahci-6g".into(),
        hubs: Vec::new(),
        bridge: None,
        link: None,
        drive: DriveName::Ssd(drive.into()),
    };
    rates(&assembly, catalogue)
}

/// The same with BOT in the place of UAS, where its driver has a fallback.
fn with_bot(catalogue: &Catalogue, assembly: &Assembly) -> Option<Assembly> {
    let driver = catalogue.driver(&assembly.driver)?.fallback.clone()?;
    Some(Assembly { driver, ..assembly.clone() }).filter(|bot| bot.activation(catalogue).is_ok())
}

#[test]
fn no_combination_of_parts_does_what_cannot_be() {
    let catalogue = Catalogue::built_in().expect("parts that come with the project");
    let cells = cells(&catalogue, &assemblies(&catalogue));
    let natives = SOLID.map(|drive| (drive, native(&catalogue, drive)));
    let mut odd = Vec::new();
    for Cell { assembly, carried, rates } in &cells {
        let (_, native) =
            natives.iter().find(|(drive, _)| *drive == assembly.drive.as_str()).expect("its drive");
        let bot = matches!(carried, Carried::Uas(_))
            .then(|| with_bot(&catalogue, assembly))
            .flatten()
            .map(|bot| self::rates(&bot, &catalogue));
        for (asked, rates) in rates.iter().enumerate() {
            let mut tell =
                |what: String| odd.push(format!("{:?} {assembly:?}: {what}, {rates:?}", ASKED[asked]));
            for (depth, rate) in rates.iter().enumerate() {
                if *rate > GEN1_MEGABYTES * EDGE {
                    tell("more than the link carries".into());
                }
                if *rate > native[asked][depth] * EDGE {
                    tell(format!("more than on a cable, {:?}", native[asked]));
                }
                if depth > 0 && *rate < FALL * rates[depth - 1] {
                    tell("less with depth".into());
                }
            }
            let is_4k_read = ASKED[asked].0 == 4 << 10 && ASKED[asked].1 == 100;
            if let Some(bot) = bot.as_ref().filter(|_| is_4k_read)
                && (1..rates.len()).any(|depth| rates[depth] < 0.98 * bot[asked][depth])
            {
                tell(format!("UAS below BOT, {:?}", bot[asked]));
            }
        }
    }
    assert!(cells.len() > 30, "{} combinations", cells.len());
    assert!(odd.is_empty(), "{} of {}:\n{}", odd.len(), cells.len(), odd.join("\n"));
}
