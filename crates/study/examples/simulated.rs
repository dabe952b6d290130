//! A number of simulated commands, for a profiler that counts instructions.
//!
//! `simulated read|write COUNT [DRIVES [HUBS]]`: 4 KiB at random addresses over UAS, 32 in flight on each drive, over driver,
//! controller and SuperSpeed links of the first generation, as `cargo xtask bench sim` has them; several drives are behind one hub,
//! or each at a root port without one. Everything to be counted is in one function:
//! `valgrind --tool=callgrind --toggle-collect=simulated::counted`. It prints events for a command, the mean time of a
//! command in picoseconds, and the digest of all that happened: a change of the simulator's speed leaves the times as they are.
//!
//! `simulated parts COUNT`: the reads with all parts of a machine, as the same bench has them; power-on counts as well.

use sim::link::superspeed::Rate;
use sim::machine::xhci::Host;
use sim::xhc::Part;
use uaskit_study::ceiling::{Drives, Figures, Load, Measurement};
use uaskit_study::measure::Stretch;
use uaskit_study::parts::Catalogue;
use uaskit_study::setups::Setup;
use uaskit_study::trial::{self, DATA_SET_BYTES, Terms, Trial};
use units::Duration;
use workload::{AccessSpec, Job};
use xhci_controller::Model;

const DEPTH: u16 = 32;
/// Commands before it counts: rings have gone round, and queues have the room that they need.
const WARM: u32 = 1000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, count, drives @ ..] = &arguments[..] else {
        panic!("read|write COUNT [DRIVES], or parts COUNT")
    };
    let count = count.parse().expect("a number");
    if kind == "parts" {
        return of_parts(count);
    }
    let number = |at: usize| drives.get(at).map(|number| number.parse::<u8>().expect("a number"));
    let drives = number(0).unwrap_or(1);
    let hubs = number(1).unwrap_or(u8::from(drives > 1));
    // A controller with a port and with room for each of the drives.
    let model = Model { ports_usb3: drives.max(2), endpoints_max: 254, ..Model::CHIPSET };
    let part = Part { model, ..Part::CHIPSET };
    let host = if hubs == 0 && drives > 1 { Host { part, ..Host::chipset() } } else { Host::chipset() };
    let load = Load {
        host: None,
        connection: Rate::Gen1.into(),
        writes: kind == "write",
        bytes: 4096,
        drives: Drives { count: drives, hubs },
        depth: DEPTH,
        commands: 1,
        latency: Duration::from_us(60),
        at_once: DEPTH,
        seed: 1,
    };
    let mut measurement = Measurement::uas(&load, host).expect("a world");
    measurement.go_on(WARM).expect("it goes on");
    counted(|| measurement.go_on(count).expect("it goes on"));
    let Figures { commands, events, mean, digest, .. } = measurement.figures();
    let events = events as f64 / commands as f64;
    println!("{events:.2} events for a command, mean {} ps, digest {digest:016x}", mean.as_ps());
}

fn of_parts(count: u32) {
    let catalogue = Catalogue::built_in().expect("parts");
    let setups = Setup::built_in(&catalogue).expect("setups");
    let setup = setups.iter().find(|setup| setup.name == "myce").expect("a setup");
    let assembly = &setup.variant("uasp").expect("a variant").assembly;
    let job = Job { span_bytes: Some(DATA_SET_BYTES), ..Job::of(AccessSpec::all(4096, 100, 100), DEPTH) };
    let stretch = Stretch { span: Duration::ZERO, requests: count, bytes: u64::MAX, ..Stretch::USUAL };
    let mut trial = None;
    counted(|| trial = trial::run(assembly, &catalogue, &job, &Terms { stretch, ..Terms::USUAL }).ok());
    let Trial { measured, events, digest, .. } = trial.expect("it goes on");
    let events = events as f64 / measured.requests as f64;
    println!("{events:.2} events for a command, mean {} ps, digest {digest:016x}", measured.mean.as_ps());
}

#[inline(never)]
fn counted(mut what: impl FnMut()) {
    what();
}
