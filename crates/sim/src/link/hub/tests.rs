//! Latency of each tier by hand, shares of a link, and random trees.

use super::*;
use crate::engine::{Engine, Event};
use crate::link::bulk::{End, Endpoint, Message, Progress, Transfer};
use crate::link::superspeed::{Rate, Side};
use bus::{Pipe, TransferId};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use units::Instant;
use wire::usb::{Direction, EndpointAddress};

impl Event for TreeEvent {
    fn mark(&self) -> u64 {
        self.mark()
    }
}

struct Wire {
    engine: Engine<TreeEvent>,
    tree: Tree,
    devices: Vec<DeviceId>,
    script: Vec<String>,
    /// By device: what has moved, seen by the host and by the device.
    progress: Vec<[Vec<Progress>; 2]>,
    fates: FaultInjector,
    /// Payload to which no one has listened, by branch.
    in_vain: BTreeMap<usize, u64>,
}

/// Of the packets that are sent on any link, the header of each of these arrives damaged.
#[derive(Debug, Default)]
struct FaultInjector {
    sent: usize,
    damaged: BTreeSet<usize>,
}

impl TreeEnvironment for FaultInjector {
    fn damages(&mut self, _device: DeviceId, _message: &Message) -> bool {
        self.sent += 1;
        self.damaged.contains(&(self.sent - 1))
    }
}

const IN: EndpointAddress = EndpointAddress::at::<1>(Direction::In);
const OUT: EndpointAddress = EndpointAddress::at::<2>(Direction::Out);
const DELAY: Duration = Duration::from_ns(100);

const ENDPOINTS: [Endpoint; 2] = [Endpoint::bulk(IN, 1024, 16, 0), Endpoint::bulk(OUT, 1024, 16, 0)];

impl Wire {
    fn new(tree: Tree, devices: Vec<DeviceId>) -> Self {
        let (script, progress, in_vain) = (Vec::new(), Vec::new(), BTreeMap::new());
        Self {
            engine: Engine::new(),
            tree,
            devices,
            script,
            progress,
            fates: FaultInjector::default(),
            in_vain,
        }
    }

    /// Hubs in a row and a device behind the last.
    fn chain(rate: Rate, hubs: u8, delay: Duration) -> Self {
        let mut tree = Tree::new(rate, Duration::ZERO);
        let mut place = AttachPoint::Root;
        for _ in 0..hubs {
            place = AttachPoint::Port(tree.plug_hub(place, delay).unwrap(), 1);
        }
        let device = tree.plug_device(place, &ENDPOINTS).unwrap();
        Self::new(tree, vec![device])
    }

    /// A hub with so many devices.
    fn star(devices: u8) -> Self {
        let mut tree = Tree::new(Rate::Gen1, Duration::ZERO);
        let hub = tree.plug_hub(AttachPoint::Root, DELAY).unwrap();
        let plug = |port| tree.plug_device(AttachPoint::Port(hub, port), &ENDPOINTS).unwrap();
        let devices = (1..=devices).map(plug).collect();
        Self::new(tree, devices)
    }

    fn both(&mut self, device: usize, address: EndpointAddress, id: u64, bytes: u32) {
        let transfer = Transfer { id: TransferId(id), bytes };
        let (host, device) = self.tree.ports(self.devices[device]);
        host.queue(Pipe::plain(address), transfer).unwrap();
        device.queue(Pipe::plain(address), transfer).unwrap();
    }

    fn step(&mut self) -> bool {
        while let Some((at, happening)) = self.tree.poll_next() {
            self.engine.at(at, happening).unwrap();
        }
        while let Some(Sent { branch, from, routed, crossing, .. }) = self.tree.poll_sent() {
            let (begins, arrives) = (crossing.begins.as_ps() / 1000, crossing.arrives.as_ps() / 1000);
            let arrow = if from == Side::Host { "->" } else { "<-" };
            self.script.push(format!("{branch} {begins:>5} {arrives:>5} {arrow} {}", routed.message));
        }
        let Some(happening) = self.engine.next() else { return false };
        let came = self.tree.handle(self.engine.now(), happening, &mut self.fates);
        assert!(came.is_ok(), "{happening:?}\n{}", self.script.join("\n"));
        if let Ok(Some(TreeArrival::InVain { branch, bytes, .. })) = came {
            *self.in_vain.entry(branch).or_default() += u64::from(bytes);
        }
        for device in 0..self.progress.len() {
            let (host, end) = self.tree.ports(self.devices[device]);
            self.progress[device][0].extend(std::iter::from_fn(|| host.poll_progress()));
            self.progress[device][1].extend(std::iter::from_fn(|| end.poll_progress()));
        }
        true
    }

    fn wake(&mut self) {
        self.tree.wake(self.engine.now(), &mut self.fates);
    }

    fn begin(&mut self, devices: usize) {
        self.progress = vec![Default::default(); devices];
        self.wake();
    }

    fn run(&mut self, devices: usize) {
        self.begin(devices);
        while self.step() {}
    }

    fn ended(&self, device: usize, side: Side) -> Vec<(u64, u32, End)> {
        let ended = |progress: &Progress| Some((progress.id.0, progress.moved, progress.ended?));
        self.progress[device][side as usize].iter().filter_map(ended).collect()
    }

    fn moved(&self, device: usize) -> u64 {
        let pieces = self.progress[device].iter().flatten().filter_map(|progress| progress.piece);
        pieces.map(|piece| u64::from(piece.bytes)).sum()
    }
}

#[test]
fn a_packet_goes_on_when_a_hub_has_its_header_and_has_waited() {
    let mut wire = Wire::chain(Rate::Gen1, 1, DELAY);
    wire.both(0, IN, 1, 1024);
    wire.run(1);
    assert_eq!(
        wire.script,
        [
            "0     0    40 -> ACK 1 IN expects 0, takes 1",
            // 40 ns for the header, 100 ns in the hub.
            "1   140   180 -> ACK 1 IN expects 0, takes 1",
            // LGOOD and LCRD go first.
            "1   212  2324 <- DATA 1 IN number 0, 1024 bytes, the last",
            // Payload follows as it comes.
            "0   352  2464 <- DATA 1 IN number 0, 1024 bytes, the last",
            "0  2496  2536 -> ACK 1 IN expects 1, takes 0",
            "1  2636  2676 -> ACK 1 IN expects 1, takes 0",
        ],
        "\n{}\n",
        wire.script.join("\n")
    );
}

/// A read of a packet behind a hub. The header of the nth packet that is sent arrives damaged, at a
/// hub when it would pass it on.
fn damaged(nth: usize, script: &[&str]) {
    let mut wire = Wire::chain(Rate::Gen1, 1, DELAY);
    wire.fates.damaged.insert(nth);
    wire.both(0, IN, 1, 1024);
    wire.run(1);
    assert_eq!(wire.script, script, "\n{}\n", wire.script.join("\n"));
    assert_eq!(wire.ended(0, Side::Host), [(1, 1024, End::Full)]);
}

#[test]
fn a_damaged_header_going_down_is_retransmitted_on_its_link_only() {
    damaged(
        1,
        &[
            "0     0    40 -> ACK 1 IN expects 0, takes 1",
            // LBAD comes back from 180 to 196, LRTY goes from 196 to 212.
            "1   140   180 -> ACK 1 IN expects 0, takes 1",
            "1   212   252 -> ACK 1 IN expects 0, takes 1",
            "1   284  2396 <- DATA 1 IN number 0, 1024 bytes, the last",
            "0   424  2536 <- DATA 1 IN number 0, 1024 bytes, the last",
            "0  2568  2608 -> ACK 1 IN expects 1, takes 0",
            "1  2708  2748 -> ACK 1 IN expects 1, takes 0",
        ],
    );
}

#[test]
fn a_hub_passes_nothing_on_whose_header_is_damaged() {
    damaged(
        2,
        &[
            "0     0    40 -> ACK 1 IN expects 0, takes 1",
            "1   140   180 -> ACK 1 IN expects 0, takes 1",
            "1   212  2324 <- DATA 1 IN number 0, 1024 bytes, the last",
            // LBAD is back at 368, in the middle of this. Three skips, 12 ns, and LRTY, 16 ns.
            "1  2352  4464 <- DATA 1 IN number 0, 1024 bytes, the last",
            "0  2492  4604 <- DATA 1 IN number 0, 1024 bytes, the last",
            "0  4636  4676 -> ACK 1 IN expects 1, takes 0",
            "1  4776  4816 -> ACK 1 IN expects 1, takes 0",
        ],
    );
}

#[test]
fn each_tier_costs_its_delay_and_a_header_both_ways() {
    for delay in [Duration::ZERO, DELAY, DELAY_MAX] {
        for hubs in 0..=5 {
            let mut wire = Wire::chain(Rate::Gen1, hubs, delay);
            wire.both(0, IN, 1, 1024);
            wire.begin(1);
            while wire.progress[0][0].is_empty() {
                assert!(wire.step());
            }
            // 72 ns until the device answers, 2,112 ns for the packet; see above.
            let tiers = u64::from(hubs) * 2 * (40 + delay.as_ns());
            assert_eq!(wire.engine.now().as_ps() / 1000, 72 + 2112 + tiers, "{hubs} hubs of {delay}");
        }
    }
}

#[test]
fn a_header_waits_for_the_delay_alone_on_its_way_down_as_on_its_way_up() {
    let mut wire = Wire::chain(Rate::Gen1, 2, Duration::from_ns(100));
    wire.both(0, IN, 1, 1024);
    wire.begin(1);
    while wire.progress[0][0].is_empty() {
        assert!(wire.step());
    }
    // 40 ns of header and the hub's 100 ns, each time: the route is decoded in the latter. The
    // device answers after 72 ns less the 40 ns of the last link.
    assert_eq!(
        wire.script,
        [
            "0     0    40 -> ACK 1 IN expects 0, takes 1",
            "1   140   180 -> ACK 1 IN expects 0, takes 1",
            "2   280   320 -> ACK 1 IN expects 0, takes 1",
            "2   352  2464 <- DATA 1 IN number 0, 1024 bytes, the last",
            "1   492  2604 <- DATA 1 IN number 0, 1024 bytes, the last",
            "0   632  2744 <- DATA 1 IN number 0, 1024 bytes, the last",
        ]
    );
}

#[test]
fn at_gen_2_a_hub_has_a_packet_whole_before_it_goes_on() {
    let latency = |hubs| {
        let mut wire = Wire::chain(Rate::Gen2, hubs, DELAY);
        wire.both(0, IN, 1, 1024);
        wire.begin(1);
        while wire.progress[0][0].is_empty() {
            assert!(wire.step());
        }
        wire.engine.now() - Instant::ZERO
    };
    // A header of 20 symbols down, a packet of 1,060 up, 0.825 ns each, and the delay twice.
    assert_eq!(latency(1).as_ps() - latency(0).as_ps(), (20 + 1060) * 825 + 200_000);
}

#[test]
fn a_burst_hides_the_hubs() {
    // Of one device, at the root and behind five hubs of the longest delay: the same ceiling but
    // for what begins and ends.
    for address in [IN, OUT] {
        let rate = |hubs| {
            let mut wire = Wire::chain(Rate::Gen1, hubs, DELAY_MAX);
            wire.both(0, address, 1, 16 << 20);
            wire.run(1);
            assert_eq!(wire.ended(0, Side::Host), [(1, 16 << 20, End::Full)]);
            f64::from(16 << 20) / (wire.engine.now().as_ps() as f64 / 1e6)
        };
        let (near, far) = (rate(0), rate(5));
        assert!((474.0..475.0).contains(&near), "{near}");
        assert!(far <= near && far > 470.0, "{far} of {near}");
    }
}

#[test]
fn two_devices_under_a_hub_get_half_each() {
    for address in [IN, OUT] {
        let mut wire = Wire::star(2);
        wire.both(0, address, 1, 64 << 20);
        wire.both(1, address, 1, 64 << 20);
        wire.begin(2);
        let end = Instant::ZERO + Duration::from_ms(5);
        while wire.engine.now() < end {
            assert!(wire.step());
            wire.script.clear();
        }
        let rates = [0, 1].map(|device| wire.moved(device) as f64 / 5000.0);
        let sum = rates[0] + rates[1];
        assert!((rates[0] / rates[1] - 1.0).abs() < 0.02, "{rates:?}");
        assert!(sum <= 475.0 && sum > 470.0, "{sum} MB/s");
    }
}

#[test]
fn a_read_and_a_write_of_two_devices_do_not_share() {
    let mut wire = Wire::star(2);
    wire.both(0, IN, 1, 8 << 20);
    wire.both(1, OUT, 1, 8 << 20);
    wire.run(2);
    let rate = f64::from(8 << 20) / (wire.engine.now().as_ps() as f64 / 1e6);
    // Each has a lane; each acknowledges on the other's.
    assert!(rate > 440.0, "{rate} MB/s each");
}

#[test]
fn the_route_names_each_port_of_the_path() {
    let mut tree = Tree::new(Rate::Gen1, Duration::ZERO);
    let near = tree.plug_hub(AttachPoint::Root, DELAY).unwrap();
    let far = tree.plug_hub(AttachPoint::Port(near, 3), DELAY).unwrap();
    let device = tree.plug_device(AttachPoint::Port(far, 2), &ENDPOINTS).unwrap();
    assert_eq!(tree.route_of(device).map(|route| route.bits()), Some(0x23));
}

#[test]
fn what_cannot_be_plugged_in_is_refused() {
    let mut tree = Tree::new(Rate::Gen1, Duration::ZERO);
    let mut place = AttachPoint::Root;
    for _ in 0..5 {
        let hub = tree.plug_hub(place, DELAY).unwrap();
        assert_eq!(tree.plug_hub(place, DELAY), Err(AttachError), "something is there already");
        assert_eq!(tree.plug_hub(AttachPoint::Port(hub, 16), DELAY), Err(AttachError), "no such port");
        assert_eq!(tree.plug_device(AttachPoint::Port(hub, 0), &ENDPOINTS), Err(AttachError), "no such port");
        place = AttachPoint::Port(hub, 1);
    }
    assert_eq!(tree.plug_hub(place, DELAY), Err(AttachError), "a sixth hub");
    assert!(tree.plug_device(place, &ENDPOINTS).is_ok());
}

/// Where things are plugged in: each chooses a hub and a port among those there are.
fn plugs() -> impl Strategy<Value = Vec<(bool, usize, u8)>> {
    prop::collection::vec((prop::bool::ANY, 0_usize..8, 1_u8..=4), 1..16)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn in_any_tree_every_transfer_ends_once_and_its_bytes_are_in_order(
        plugs in plugs(),
        delay in 0_u64..=400,
        rate in prop_oneof![Just(Rate::Gen1), Just(Rate::Gen2)],
        transfers in prop::collection::vec((0_usize..16, prop::bool::ANY, 0_u32..40_000, 0_u8..200), 1..40),
        damaged in prop::collection::btree_set(0_usize..400, 0..20),
    ) {
        let mut tree = Tree::new(rate, Duration::from_ns(5));
        let mut hubs = vec![tree.plug_hub(AttachPoint::Root, Duration::from_ns(delay)).unwrap()];
        let mut devices = vec![tree.plug_device(AttachPoint::Port(hubs[0], 5), &ENDPOINTS).unwrap()];
        for (is_hub, hub, port) in plugs {
            let place = AttachPoint::Port(hubs[hub % hubs.len()], port);
            if is_hub {
                hubs.extend(tree.plug_hub(place, Duration::from_ns(delay)));
            } else {
                devices.extend(tree.plug_device(place, &ENDPOINTS));
            }
        }
        let mut wire = Wire::new(tree, devices);
        wire.fates.damaged = damaged;
        let devices = wire.devices.len();
        wire.begin(devices);
        let mut expected = vec![Vec::new(); devices];
        for (id, (device, is_in, bytes, steps)) in (0..).zip(transfers) {
            let device = device % devices;
            wire.both(device, if is_in { IN } else { OUT }, id, bytes);
            expected[device].push((id, bytes, End::Full));
            wire.wake();
            for _ in 0..steps {
                wire.step();
            }
        }
        while wire.step() {}
        // What the root link has carried was taken or was in vain.
        if let Some(root) = wire.tree.links().next() {
            let carried = |side| root.lane(side).traffic().payload;
            let taken: u64 = (0..devices).map(|device| wire.moved(device)).sum();
            let in_vain = wire.in_vain.get(&0).copied().unwrap_or_default();
            prop_assert_eq!(carried(Side::Host) + carried(Side::Device), taken + in_vain);
        }
        for (device, expected) in expected.iter().enumerate() {
            for side in [Side::Host, Side::Device] {
                let mut ended = wire.ended(device, side);
                ended.sort_unstable_by_key(|&(id, ..)| id);
                prop_assert_eq!(&ended, expected, "{:?} of {}\n{}", side, device, wire.script.join("\n"));
            }
            for &(id, bytes, _) in expected {
                let all = wire.progress[device].iter().flatten().filter_map(|progress| progress.piece);
                let mut at = 0;
                for piece in all.filter(|piece| piece.transfer == TransferId(id)) {
                    prop_assert_eq!(piece.offset, at);
                    at += u32::from(piece.bytes);
                }
                prop_assert_eq!(at, bytes);
            }
        }
    }
}
