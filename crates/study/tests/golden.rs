//! Digests of worlds with a controller, written out: what happens in them is the same on every machine, to the last event.
//!
//! A change of behaviour changes them; its author copies those that the test prints. Always true: each world has
//! something that the others lack. Worlds on BOT and Turbo changed when drives began to STALL Bulk-In behind short
//! answers to identification (BOT 1.0 clause 6.7.2).

use uaskit_study::parts::Catalogue;
use uaskit_study::setups::Setup;
use uaskit_study::swarm::{self, Case};
use uaskit_study::trial::{self, DATA_SET_BYTES, Terms};
use workload::{AccessSpec, Job};

/// The values that all cases of the swarm here have in common.
const LINE: &str = "seed=7 wire=uas rate=gen1 controller=chipset hubs=0 drives=1 translated=none nap=never early=no parts=plain costs=no \
    streams=32 depth=4 transfer=16384 block=512 blocks=64 latency-us=10 at-once=4 cache=yes requests=40 longest=32 reads=40 through=5 \
    flushes=5 zeroes=5 aborts=5 again=40 finale=unplug faults=none";

/// The values that only this case has, and its digest.
const SWARM: [(&str, &str); 9] = [
    ("", "087b86f18431a693"),
    ("controller=card", "d2e1ce86ae726350"),
    ("hubs=1 drives=2", "7f4022e7680eb5c7"),
    ("rate=high", "88b75fa6533ce58f"),
    ("rate=high hubs=1 drives=2 translated=one", "c88d2ccf803c3c05"),
    ("wire=bot", "b801cdbf90ec5665"),
    ("nap=idle", "fb8c6bcd1481b401"),
    ("faults=packet-lost@200,stall@30,status-lost@9", "24d21ad7f8f1cb59"),
    ("parts=single-flash costs=yes", "221beaa4dd091631"),
];

/// A setup of parts by name, its variant, and the digest of reads and writes of 4 KiB on it.
const PARTS: [(&str, &str, &str); 3] = [
    ("myce", "uasp", "819a39bf5cadd77a"),
    ("myce", "turbo", "4b483e43a6397ecc"),
    ("toms", "usb2-uasp", "d8c3aae6d58ed53c"),
];

#[test]
fn worlds_of_the_swarm_are_the_same_on_every_machine() {
    let worlds = SWARM.map(|(own, _)| {
        let case: Case = format!("{LINE} {own}").parse().expect("a line of a case");
        let report = swarm::run(&case, None);
        assert_eq!((report.verdict, report.missed(&case).len()), (Ok(()), 0), "{own}");
        (own, format!("{:016x}", report.digest))
    });
    assert_eq!(worlds.each_ref().map(|(own, digest)| (*own, digest.as_str())), SWARM);
}

#[test]
fn worlds_of_parts_are_the_same_on_every_machine() {
    let catalogue = Catalogue::built_in().expect("files of parts");
    let setups = Setup::built_in(&catalogue).expect("files of setups");
    let job = Job { span_bytes: Some(DATA_SET_BYTES), ..Job::of(AccessSpec::all(4096, 70, 50), 4) };
    let worlds = PARTS.map(|(name, variant, _)| {
        let setup = setups.iter().find(|setup| setup.name == name).expect("a setup");
        let assembly = &setup.variant(variant).expect("a variant").assembly;
        let trial = trial::run(assembly, &catalogue, &job, &Terms::USUAL).expect("a trial");
        (name, variant, format!("{:016x}", trial.digest))
    });
    assert_eq!(worlds.each_ref().map(|(name, variant, digest)| (*name, *variant, digest.as_str())), PARTS);
}
