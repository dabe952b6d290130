//! Digests of worlds with a controller, written out: what happens in them is the same on every machine, to the last event.
//!
//! A change of what happens changes them, and whoever makes it writes down those that the test prints. Always true: each world has
//! something of its own that the others lack.

use sim::parts::Catalogue;
use sim::setups::Setup;
use sim::swarm::{self, Case};
use sim::trial::{self, DATA_SET_BYTES, Terms};
use workload::{Job, Share};

/// What all worlds of the swarm here have in common.
const LINE: &str = "seed=7 wire=uas rate=gen1 controller=chipset hubs=0 drives=1 translated=none nap=never early=no parts=plain costs=no \
    streams=32 depth=4 transfer=16384 block=512 blocks=64 latency-us=10 at-once=4 cache=yes requests=40 longest=32 reads=40 through=5 \
    flushes=5 zeroes=5 aborts=5 again=40 finale=unplug faults=none";

/// What a world has of its own, and its digest.
const SWARM: [(&str, &str); 9] = [
    ("", "105b19a795dc86c1"),
    ("controller=card", "e9b8f275a03034a2"),
    ("hubs=1 drives=2", "53e5ef579aaa0f89"),
    ("rate=high", "f4bab606fe0eab3a"),
    ("rate=high hubs=1 drives=2 translated=one", "5f4558d7012eef9f"),
    ("wire=bot", "7aba541910b3c93f"),
    ("nap=idle", "f301076f79d97c47"),
    ("faults=packet-lost@200,stall@30,status-lost@9", "4d0725018e88a4a7"),
    ("parts=single-flash costs=yes", "cd9bb4ee367f7833"),
];

/// A setup of parts by name, its variant, and the digest of reads and writes of 4 KiB on it.
const PARTS: [(&str, &str, &str); 3] = [
    ("myce", "uasp", "6000d16b5d6d73d2"),
    ("myce", "turbo", "b43f91befc76f581"),
    ("toms", "usb2-uasp", "1029056a082ca6b7"),
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
    let job = Job { span_bytes: Some(DATA_SET_BYTES), ..Job::of(Share::all(4096, 70, 50), 4) };
    let worlds = PARTS.map(|(name, variant, _)| {
        let setup = setups.iter().find(|setup| setup.name == name).expect("a setup");
        let assembly = &setup.variant(variant).expect("a variant").assembly;
        let trial = trial::run(assembly, &catalogue, &job, &Terms::USUAL).expect("a trial");
        (name, variant, format!("{:016x}", trial.digest))
    });
    assert_eq!(worlds.each_ref().map(|(name, variant, digest)| (*name, *variant, digest.as_str())), PARTS);
}
