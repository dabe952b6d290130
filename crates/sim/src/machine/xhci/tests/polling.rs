//! Shortcuts change nothing: the result is the same if everything is polled after each event, if a
//! trace is attached, and if every packet is booked.

use super::enclosure::{self, BRIDGE};
use super::several::mixed;
use super::*;
use crate::bridge::{Chip, StorePart};
use crate::engine::{Trace, TraceEntry};
use crate::fault::Faults;
use initiator::Command;
use proptest::prelude::*;
use wire::usb::Direction;
use xhci_controller::Counters;

/// Commands in flight per drive at most.
const SLOTS: usize = 6;

/// A small machine.
#[derive(Clone, Copy, Debug)]
enum Small {
    Uas(Part),
    Bot(Part),
    OnBus(usb2::Rate),
    Several,
    /// Behind a bridge with room for so many sectors, and a cable with this latency.
    Enclosed(Protocol, u32, Duration),
}

/// How a machine is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Usual,
    AskingAll,
    /// With a trace that is discarded.
    LookedAt,
    /// With fault injection and bookkeeping, but without faults.
    Booked,
}

/// A trace that discards entries.
#[derive(Debug)]
struct Nowhere;

impl Trace for Nowhere {
    fn record(&mut self, _: TraceEntry<'_>) {}
}

/// A command for a drive, if its slot is free, and how long to wait before the next.
#[derive(Clone, Copy, Debug)]
struct Step {
    drive: usize,
    slot: u16,
    writes: bool,
    place: u32,
    blocks: u16,
    gap: Duration,
}

/// Everything observable of a run.
#[derive(Debug, PartialEq)]
struct Seen {
    /// Drive, slot, time of the end, and what its memory held then.
    ends: Vec<(usize, u16, Instant, Vec<u8>)>,
    events: u64,
    digest: u64,
    link: Option<[crate::link::superspeed::Traffic; 2]>,
    counters: Counters,
    work: HostWork,
    busy: Duration,
    medium: Option<(Duration, Duration)>,
}

impl Small {
    fn power_on(self, costs: HostCosts) -> XhciMachine {
        let host = |part| Host::with(part).costing(costs);
        let at_root = |part, of| Setup::new(host(part)).with(1, drive(of)).power_on().unwrap();
        match self {
            Self::Uas(part) => at_root(part, Drive::uas()),
            Self::Bot(part) => at_root(part, Drive::bot()),
            Self::OnBus(rate) => on_bus(Part::CHIPSET, rate, Drive::uas()),
            Self::Several => Setup { host: host(Part::CHIPSET), ..mixed() }.power_on().unwrap(),
            Self::Enclosed(protocol, buffer_sectors, latency) => {
                let store = StorePart { buffer_sectors, piece_sectors: 8, latency, ..BRIDGE.store };
                enclosure::power_on(&Chip { store, ..BRIDGE }, protocol)
            }
        }
    }

    fn greet(self, machine: &mut XhciMachine) {
        match self {
            Self::Enclosed(..) => enclosure::greet(machine),
            _ => (0..machine.drives()).for_each(|drive| fixture::first(machine, drive)),
        }
    }

    /// A command, and its memory.
    fn command(self, step: &Step, now: Instant) -> (Command, Vec<u8>) {
        let Step { slot, writes, place, blocks, .. } = *step;
        if let Self::Enclosed(..) = self {
            let direction = if writes { Direction::Out } else { Direction::In };
            let (lba, blocks) = (u64::from(place) * 8, u32::from(blocks) * 8);
            let memory = enclosure::memory(direction, lba, blocks);
            return (enclosure::command(slot, direction, lba, blocks, now), memory);
        }
        let memory = if writes { pattern(place, blocks) } else { room(blocks) };
        (command(slot, writes, place, blocks), memory)
    }
}

fn see(small: Small, costs: HostCosts, steps: &[Step], way: Way) -> Seen {
    let mut machine = small.power_on(costs);
    let drives = machine.drives();
    match way {
        Way::Usual => {}
        Way::AskingAll => machine = machine.polling_all(),
        Way::LookedAt => machine.trace_to(Box::new(Nowhere)),
        Way::Booked => machine = machine.with_faults((0..drives).map(|_| Faults::never())),
    }
    small.greet(&mut machine);
    let mut in_flight = vec![[false; SLOTS]; machine.drives()];
    let mut ends = Vec::new();
    let mut end = |machine: &mut XhciMachine, in_flight: &mut Vec<[bool; SLOTS]>, until| {
        while let Some(FinishedCommand { drive, id, buffer, .. }) = machine.run_until(until).unwrap() {
            in_flight[drive][usize::from(id.slot)] = false;
            ends.push((drive, id.slot, machine.now(), buffer));
        }
    };
    for step in steps {
        let (drive, now) = (step.drive % machine.drives(), machine.now());
        let many = in_flight[drive].iter().filter(|is_in_flight| **is_in_flight).count();
        let is_free = !in_flight[drive][usize::from(step.slot)] && many < machine.depth(drive);
        if is_free {
            in_flight[drive][usize::from(step.slot)] = true;
            let (command, memory) = small.command(step, now);
            machine.submit(drive, &command, memory).unwrap();
        }
        end(&mut machine, &mut in_flight, Some(now + step.gap));
    }
    end(&mut machine, &mut in_flight, None);
    assert!(in_flight.iter().flatten().all(|is_in_flight| !is_in_flight), "each command ends");
    assert_eq!(machine.audit(), Ok(()));
    let now = machine.now();
    let traffic = |link: &crate::link::superspeed::Link| {
        [Side::Host, Side::Device].map(|side| link.lane(side).traffic())
    };
    Seen {
        ends,
        events: machine.happened(),
        digest: machine.digest(),
        link: machine.link(0).map(traffic),
        counters: machine.controller().counters(),
        work: machine.core().work(),
        busy: machine.core().busy(now),
        medium: machine.enclosure(0).map(|it| (it.at_work(now), it.store().at_work(now))),
    }
}

fn small() -> impl Strategy<Value = Small> {
    prop_oneof![
        prop::sample::select(vec![Part::CHIPSET, Part::CARD]).prop_map(Small::Uas),
        prop::sample::select(PARTS.to_vec()).prop_map(Small::Bot),
        Just(Small::OnBus(usb2::Rate::High)),
        Just(Small::Several),
        (prop::bool::ANY, 24_u32..64, 0_u64..4000).prop_map(|(is_bot, sectors, latency)| {
            let protocol = if is_bot { Protocol::Bot } else { Protocol::Uas };
            Small::Enclosed(protocol, sectors, Duration::from_ns(latency))
        }),
    ]
}

fn costs() -> impl Strategy<Value = HostCosts> {
    let some = HostCosts {
        command: Duration::from_us(3),
        transfer: Duration::from_us(1),
        completion: Duration::from_us(1),
        finish: Duration::from_us(2),
        interrupt: Duration::from_us(2),
        wake: Duration::from_us(10),
        idle_after: Duration::from_us(50),
        ..HostCosts::FREE
    };
    prop::sample::select(vec![HostCosts::FREE, some])
}

fn step() -> impl Strategy<Value = Step> {
    let what = (0..4_usize, 0..SLOTS as u16, prop::bool::ANY, 0..40_u32);
    let how = (prop_oneof![Just(1_u16), 1..24_u16], prop_oneof![Just(0), 0_u64..300]);
    (what, how).prop_map(|((drive, slot, writes, place), (blocks, gap))| Step {
        drive,
        slot,
        writes,
        place,
        blocks,
        gap: Duration::from_us(gap),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn polling_everything_changes_nothing(
        small in small(), costs in costs(), steps in prop::collection::vec(step(), 1..40)
    ) {
        let [usual, all] = [Way::Usual, Way::AskingAll].map(|way| see(small, costs, &steps, way));
        prop_assert_eq!(usual, all);
    }

    #[test]
    fn tracing_changes_nothing(
        small in small(), costs in costs(), steps in prop::collection::vec(step(), 1..40)
    ) {
        let [usual, looked_at] = [Way::Usual, Way::LookedAt].map(|way| see(small, costs, &steps, way));
        prop_assert_eq!(usual, looked_at);
    }

    #[test]
    fn packet_bookkeeping_changes_nothing_and_holds(
        small in small(), costs in costs(), steps in prop::collection::vec(step(), 1..40)
    ) {
        let [usual, booked] = [Way::Usual, Way::Booked].map(|way| see(small, costs, &steps, way));
        // Repeated packets are events there, so the digest differs.
        let (events, digest) = (usual.events, usual.digest);
        prop_assert!(booked.events >= events);
        prop_assert_eq!(usual, Seen { events, digest, ..booked });
    }
}
