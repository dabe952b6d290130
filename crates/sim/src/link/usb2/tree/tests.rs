//! Several devices on one bus, and split transactions, packet by packet with times worked out by
//! hand.

use super::super::exchange::Fate;
use super::super::port::NextTransaction;
use super::super::{Pacing, Rate};
use super::*;
use crate::link::bulk::{End, Progress, Transfer};
use crate::link::control::{ControlAnswer, ControlEvent, ControlTransfer};
use bus::{Pipe, TransferId};
use proptest::prelude::*;
use units::Duration;
use wire::usb::{DescriptorKind, Direction, EndpointAddress, SetupPacket};

const IN: EndpointAddress = EndpointAddress::at::<1>(Direction::In);
const OUT: EndpointAddress = EndpointAddress::at::<2>(Direction::Out);

/// A tree, and who looks on.
struct Net {
    tree: Tree,
    now: Instant,
    script: Vec<String>,
    progress: Vec<[Vec<Progress>; 2]>,
    /// Fates of the packets that are sent next.
    fates: Vec<Fate>,
}

impl Net {
    /// A hub at the root port of a bus of high speed, and devices of these rates at its ports.
    fn behind_hub(translators: Translators, rates: &[Rate]) -> Self {
        let mut tree = Tree::new(Rate::High, Pacing::default());
        let hub = tree.plug_hub(AttachPoint::Root, translators).unwrap();
        for (port, &rate) in (1..).zip(rates) {
            let device = tree.plug_device(AttachPoint::Port(hub, port), rate).unwrap();
            Self::configure(&mut tree, device, rate);
        }
        Self::of(tree)
    }

    fn of(tree: Tree) -> Self {
        let progress = tree.members.iter().map(|_| Default::default()).collect();
        Self { tree, now: Instant::ZERO, script: Vec::new(), progress, fates: Vec::new() }
    }

    fn configure(tree: &mut Tree, device: DeviceId, rate: Rate) {
        let endpoints = [IN, OUT].map(|address| Endpoint::bulk(address, rate.packet_bytes(), 1, 0));
        [Side::Host, Side::Device].into_iter().for_each(|side| tree.configure(device, side, &endpoints));
    }

    fn host(&mut self, device: usize, address: EndpointAddress, id: u64, bytes: u32) {
        let transfer = Transfer { id: TransferId(id), bytes };
        self.tree.ports(DeviceId(device)).0.queue(Pipe::plain(address), transfer).unwrap();
    }

    fn device(&mut self, device: usize, address: EndpointAddress, id: u64, bytes: u32) {
        let transfer = Transfer { id: TransferId(id), bytes };
        self.tree.ports(DeviceId(device)).1.queue(Pipe::plain(address), transfer).unwrap();
    }

    fn both(&mut self, device: usize, address: EndpointAddress, id: u64, bytes: u32) {
        self.host(device, address, id, bytes);
        self.device(device, address, id, bytes);
    }

    /// Goes on to the next moment, and says whether there is one.
    fn step(&mut self, mut fate: impl FnMut(bool, Side, &Packet) -> Fate) -> bool {
        let Some(at) = self.tree.due_at(self.now) else { return false };
        assert!(at >= self.now, "{at:?} is before {:?}", self.now);
        self.now = at;
        let met = self.tree.step(self.now, &mut |_, is_below, side, packet| fate(is_below, side, packet));
        for sent in met.iter().flat_map(|met| met.sent.iter().flatten()) {
            let met = met.as_ref().unwrap();
            let line = if met.is_below { "  below" } else { "" };
            let arrow = if sent.from == Side::Host { "->" } else { "<-" };
            let (begins, ends) = (sent.begins.as_ps() / 1000, sent.ends.as_ps() / 1000);
            let fate = if sent.fate == Fate::Arrives { "" } else { ", lost" };
            let device = met.device.0;
            self.script.push(format!("{begins:>6} {ends:>6}{line} {arrow} {device} {}{fate}", sent.packet));
        }
        for (number, progress) in self.progress.iter_mut().enumerate() {
            let (host, device) = self.tree.ports(DeviceId(number));
            progress[0].extend(std::iter::from_fn(|| host.poll_progress()));
            progress[1].extend(std::iter::from_fn(|| device.poll_progress()));
        }
        true
    }

    fn go(&mut self) -> bool {
        let mut fates = std::mem::take(&mut self.fates);
        let goes_on = self.step(|_, _, _| if fates.is_empty() { Fate::Arrives } else { fates.remove(0) });
        self.fates = fates;
        goes_on
    }

    /// Goes on until a transfer ends at a side.
    fn until_ended(&mut self, device: usize, side: Side, id: u64) {
        while !self.ended(device, side).iter().any(|&(ended, ..)| ended == id) {
            assert!(self.go(), "transfer {id} does not end\n{}", self.script.join("\n"));
            assert!(self.script.len() < 1000, "{}", self.script.join("\n"));
        }
    }

    fn ended(&self, device: usize, side: Side) -> Vec<(u64, u32, End)> {
        let ended = |progress: &Progress| Some((progress.id.0, progress.moved, progress.ended?));
        self.progress[device][side as usize].iter().filter_map(ended).collect()
    }

    /// Lines in which something is sent.
    fn count(&self, what: &str) -> usize {
        self.script.iter().filter(|line| line.contains(what)).count()
    }
}

#[test]
fn two_drives_of_high_speed_take_turns_on_the_bus_of_their_hub() {
    let mut net = Net::behind_hub(Translators::One, &[Rate::High, Rate::High]);
    net.both(1, IN, 1, 1024);
    net.both(2, IN, 2, 1024);
    net.until_ended(2, Side::Host, 2);
    // A start of frame of 152 bits, then IN 152, there and back through a hub 2 * 38, DATA 4248,
    // ACK 136, there and back: 600 ps for nothing are a bit and a quarter.
    let said = [
        "   316    633 -> 1 IN 1",
        "   791   9641 <- 1 DATA0 512 bytes",
        "  9641   9925 -> 1 ACK",
        "  9925  10241 -> 2 IN 1",
        " 10400  19250 <- 2 DATA0 512 bytes",
        " 19250  19533 -> 2 ACK",
        " 19533  19850 -> 1 IN 1",
        " 20008  28858 <- 1 DATA1 512 bytes",
        " 28858  29141 -> 1 ACK",
        " 29141  29458 -> 2 IN 1",
        " 29616  38466 <- 2 DATA1 512 bytes",
        " 38466  38750 -> 2 ACK",
    ];
    assert_eq!(net.script, said, "{}", net.script.join("\n"));
}

#[test]
fn a_packet_for_a_drive_of_full_speed_goes_by_the_translator() {
    let mut net = Net::behind_hub(Translators::One, &[Rate::Full]);
    net.both(1, OUT, 1, 64);
    net.until_ended(1, Side::Host, 1);
    // Above, in bits of 1/480 us after a start of frame of 152: SSPLIT 160, OUT 152, DATA 664, ACK
    // 136. Below, in bits of 1/12 us after a start of frame of 40, which ends at 3,333 ns: OUT 40,
    // DATA 552, ACK 24. The host asks 10 us after each answer.
    let said = [
        "   316    650 -> 1 SSPLIT",
        "   650    966 -> 1 OUT 2",
        "   966   2350 -> 1 DATA0 64 bytes",
        "  2350   2633 <- 1 ACK",
        "  3333   6666  below -> 1 OUT 2",
        "  6666  52666  below -> 1 DATA0 64 bytes",
        " 12633  12966 -> 1 CSPLIT",
        " 12966  13283 -> 1 OUT 2",
        " 13283  13566 <- 1 NYET",
        " 23566  23900 -> 1 CSPLIT",
        " 23900  24216 -> 1 OUT 2",
        " 24216  24500 <- 1 NYET",
        " 34500  34833 -> 1 CSPLIT",
        " 34833  35150 -> 1 OUT 2",
        " 35150  35433 <- 1 NYET",
        " 45433  45766 -> 1 CSPLIT",
        " 45766  46083 -> 1 OUT 2",
        " 46083  46366 <- 1 NYET",
        " 52666  54666  below <- 1 ACK",
        " 56366  56700 -> 1 CSPLIT",
        " 56700  57016 -> 1 OUT 2",
        " 57016  57300 <- 1 ACK",
    ];
    assert_eq!(net.script, said, "{}", net.script.join("\n"));
    assert_eq!(net.ended(1, Side::Device), [(1, 64, End::Full)]);
}

#[test]
fn data_that_comes_in_is_acknowledged_below_and_not_above() {
    let mut net = Net::behind_hub(Translators::One, &[Rate::Full]);
    net.both(1, IN, 1, 5);
    net.until_ended(1, Side::Host, 1);
    // Below: IN 40, DATA 8 * (3 + 2 + 5) = 80, ACK 24 bits of 83.3 ns.
    let said = [
        "   316    650 -> 1 SSPLIT",
        "   650    966 -> 1 IN 1",
        "   966   1250 <- 1 ACK",
        "  3333   6666  below -> 1 IN 1",
        "  6666  13333  below <- 1 DATA0 5 bytes",
        " 11250  11583 -> 1 CSPLIT",
        " 11583  11900 -> 1 IN 1",
        " 11900  12183 <- 1 NYET",
        " 13333  15333  below -> 1 ACK",
        " 22183  22516 -> 1 CSPLIT",
        " 22516  22833 -> 1 IN 1",
        " 22833  23233 <- 1 DATA0 5 bytes",
    ];
    assert_eq!(net.script, said, "{}", net.script.join("\n"));
    assert_eq!(net.ended(1, Side::Host), [(1, 5, End::Full)]);
}

#[test]
fn a_control_transfer_goes_by_the_translator() {
    let mut net = Net::behind_hub(Translators::One, &[Rate::Full]);
    let setup = SetupPacket::get_descriptor(DescriptorKind::Device, 0, 18);
    let id = TransferId(9);
    net.tree.ports(DeviceId(1)).0.control(ControlTransfer { id, setup }).unwrap();
    let mut ended = None;
    while ended.is_none() {
        assert!(net.go() && net.script.len() < 500, "{}", net.script.join("\n"));
        let (host, device) = net.tree.ports(DeviceId(1));
        if let Some(ControlEvent::Asked(setup)) = device.poll_control() {
            device.answer(setup, ControlAnswer::Done(18));
        }
        ended = std::iter::from_fn(|| host.poll_control())
            .find_map(|progress| Some((progress.moved, progress.ended?)));
    }
    assert_eq!(ended.map(|(moved, _)| moved), Some(18));
    assert_eq!(net.count("below -> 1 SETUP"), 1);
}

#[test]
fn a_translator_that_has_two_things_to_do_takes_no_third() {
    let drives = [Rate::Full, Rate::Full, Rate::Full];
    let refused = |translators| {
        let mut net = Net::behind_hub(translators, &drives);
        (1..=3).for_each(|device| net.both(device, OUT, 1, 64));
        (1..=3).for_each(|device| net.until_ended(device, Side::Host, 1));
        let tries = net.count("SSPLIT");
        (tries > 3, net.count("NAK") > 0)
    };
    assert_eq!(refused(Translators::One), (true, true));
    assert_eq!(refused(Translators::Each), (false, false));
}

#[test]
fn tries_that_are_not_answered_are_counted_from_the_last_answer() {
    for address in [IN, OUT] {
        let mut net = Net::behind_hub(Translators::One, &[Rate::Full]);
        net.host(1, address, 1, 64);
        let host = net.tree.ports(DeviceId(1)).0;
        let HostPort::Usb2(host) = host else { panic!("a port of USB 2.0") };
        let mut ask = |is_answered: bool| {
            let NextTransaction::HostRequest(ask, _) = host.turn(Instant::ZERO) else {
                panic!("it has something to ask")
            };
            host.ask(ask);
            if is_answered {
                host.put_off(Instant::ZERO, &ask);
            } else {
                host.answered(Instant::ZERO, &ask, None);
            }
            host.is_halted(address)
        };
        // Twice in vain, a translator that has no place, twice in vain: that is not three times in
        // a row.
        assert_eq!([false, false, true, false, false].map(&mut ask), [false; 5]);
        assert!(ask(false));
    }
}

#[test]
fn what_was_begun_twice_is_done_once() {
    let mut net = Net::behind_hub(Translators::One, &[Rate::Full]);
    net.both(1, OUT, 1, 64);
    // SSPLIT, OUT and DATA arrive, the ACK does not.
    net.fates = vec![Fate::Arrives, Fate::Arrives, Fate::Arrives, Fate::Lost];
    net.until_ended(1, Side::Host, 1);
    assert_eq!((net.count("SSPLIT"), net.count("below -> 1 OUT")), (2, 1), "{}", net.script.join("\n"));
    assert_eq!(net.ended(1, Side::Device), [(1, 64, End::Full)]);
}

#[test]
fn an_answer_that_was_lost_above_is_given_again() {
    let mut net = Net::behind_hub(Translators::One, &[Rate::Full]);
    net.both(1, IN, 1, 64);
    let mut lost = 0;
    while net.ended(1, Side::Host).is_empty() {
        assert!(net.step(|is_below, _, packet| match packet {
            Packet::Data(..) if !is_below && lost < 2 => {
                lost += 1;
                Fate::Lost
            }
            _ => Fate::Arrives,
        }));
    }
    assert_eq!((lost, net.count("below -> 1 IN")), (2, 1), "{}", net.script.join("\n"));
    assert_eq!(net.ended(1, Side::Host), [(1, 64, End::Full)]);
    assert_eq!(net.ended(1, Side::Device), [(1, 64, End::Full)]);
}

#[test]
fn three_unanswered_complete_splits_halt_the_endpoint_until_the_buffer_is_cleared() {
    let mut net = Net::behind_hub(Translators::One, &[Rate::Full]);
    net.both(1, IN, 1, 64);
    let lose = |is_below: bool, _: Side, packet: &Packet| match packet {
        Packet::Data(..) if !is_below => Fate::Lost,
        _ => Fate::Arrives,
    };
    while net.ended(1, Side::Host).is_empty() {
        assert!(net.step(lose));
    }
    assert_eq!(net.ended(1, Side::Host), [(1, 0, End::Failed)]);
    let now = net.now;
    net.tree.clear_buffer(now, DeviceId(1), IN);
    let host = net.tree.ports(DeviceId(1)).0;
    assert_eq!((host.poll_halt(), host.has_failed(IN)), (Some(IN), true));
    host.reset_for_retry(IN);
    host.resume(IN);
    net.both(1, IN, 2, 64);
    // The device has done with the first packet, and sends the second as DATA1, which is taken for
    // one that has come again.
    net.both(1, IN, 3, 64);
    net.until_ended(1, Side::Host, 2);
    assert_eq!(net.count("below -> 1 IN"), 3, "{}", net.script.join("\n"));
}

#[test]
fn an_unresponsive_downstream_device_is_a_stall_after_three_tries() {
    let mut net = Net::behind_hub(Translators::One, &[Rate::Full]);
    net.host(1, OUT, 1, 64);
    net.tree.configure(DeviceId(1), Side::Device, &[]);
    net.until_ended(1, Side::Host, 1);
    assert_eq!(net.count("below -> 1 OUT"), 3);
    assert_eq!(net.ended(1, Side::Host), [(1, 0, End::Stalled)]);
}

#[test]
fn an_unplugged_device_leaves_the_bus_to_the_others() {
    for steps in 0..12 {
        let mut net = Net::behind_hub(Translators::One, &[Rate::Full, Rate::High, Rate::Full]);
        (1..=3).for_each(|device| net.both(device, IN, 1, 200));
        (0..steps).for_each(|_| assert!(net.go()));
        net.tree.cut(net.now, DeviceId(1));
        net.until_ended(2, Side::Host, 1);
        net.until_ended(3, Side::Host, 1);
        net.script.clear();
        net.tree.restart(net.now, DeviceId(1));
        net.tree.join(DeviceId(1));
        Net::configure(&mut net.tree, DeviceId(1), Rate::Full);
        net.both(1, IN, 2, 200);
        net.until_ended(1, Side::Host, 2);
    }
}

#[test]
fn a_hub_that_is_unplugged_takes_those_behind_it_along() {
    let mut net = Net::behind_hub(Translators::One, &[Rate::Full, Rate::High]);
    net.both(1, IN, 1, 64);
    net.both(2, IN, 1, 64);
    assert!(net.go());
    net.tree.cut(net.now, DeviceId(0));
    while net.go() {}
    assert_eq!((net.ended(1, Side::Host), net.ended(2, Side::Host)), (vec![], vec![]));
}

#[test]
fn an_interrupt_endpoint_is_asked_once_in_its_interval() {
    let mut tree = Tree::new(Rate::High, Pacing::default());
    let hub = tree.plug_hub(AttachPoint::Root, Translators::One).unwrap();
    let device = tree.device_of(hub);
    let endpoint = Endpoint { interval: Duration::from_ms(2), ..Endpoint::bulk(IN, 2, 1, 0) };
    [Side::Host, Side::Device].into_iter().for_each(|side| tree.configure(device, side, &[endpoint]));
    let mut net = Net::of(tree);
    net.host(0, IN, 1, 2);
    while net.now < Instant::ZERO + Duration::from_ms(9) {
        assert!(net.go());
    }
    // At once, and after 2, 4, 6 and 8 ms and what it takes to ask.
    assert_eq!(net.count("NAK"), 5, "{}", net.script.join("\n"));
}

#[test]
fn there_is_no_place_where_there_is_none() {
    let mut tree = Tree::new(Rate::Full, Pacing::default());
    let hub = tree.plug_hub(AttachPoint::Root, Translators::One).unwrap();
    assert_eq!(tree.plug_device(AttachPoint::Root, Rate::Full), Err(AttachError));
    assert_eq!(tree.plug_device(AttachPoint::Port(hub, 1), Rate::High), Err(AttachError));
    assert_eq!(tree.plug_device(AttachPoint::Port(hub, 16), Rate::Full), Err(AttachError));
    assert!(tree.plug_device(AttachPoint::Port(hub, 1), Rate::Full).is_ok());
    assert_eq!(tree.plug_device(AttachPoint::Port(hub, 1), Rate::Full), Err(AttachError));
    // At the root port itself there is no translator.
    assert_eq!(
        Tree::new(Rate::High, Pacing::default()).plug_device(AttachPoint::Root, Rate::Full),
        Err(AttachError)
    );
}

proptest! {
    /// Whichever two packets are lost, which is less than makes anything fail: everything moves
    /// once and in order.
    #[test]
    fn everything_moves_once_whatever_is_lost(
        rates in prop::collection::vec(prop_oneof![Just(Rate::Full), Just(Rate::High)], 1..4),
        each in any::<bool>(),
        transfers in prop::collection::vec((any::<bool>(), 0_u32..1200), 1..8),
        losses in prop::collection::vec((0_usize..300, any::<bool>()), 2),
    ) {
        let translators = if each { Translators::Each } else { Translators::One };
        let mut net = Net::behind_hub(translators, &rates);
        for device in 1..=rates.len() {
            for (id, &(is_in, bytes)) in (0..).zip(&transfers) {
                net.both(device, if is_in { IN } else { OUT }, id, bytes);
            }
        }
        let mut packets = 0;
        let mut fate = |_: bool, _: Side, _: &Packet| {
            packets += 1;
            match losses.iter().find(|(nth, _)| *nth == packets) {
                Some((_, true)) => Fate::Lost,
                Some((_, false)) => Fate::Damaged,
                None => Fate::Arrives,
            }
        };
        let mut steps = 0;
        while net.step(&mut fate) {
            steps += 1;
            prop_assert!(steps < 100_000, "no end");
        }
        for device in 1..=rates.len() {
            let wanted = |is_wanted: fn(bool) -> bool| {
                let all = (0..).zip(&transfers).filter(move |(_, (is_in, _))| is_wanted(*is_in));
                all.map(|(id, &(_, bytes))| (id, bytes, End::Full)).collect::<Vec<_>>()
            };
            let mut ended = net.ended(device, Side::Host);
            ended.sort_by_key(|&(id, ..)| id);
            prop_assert_eq!(ended, wanted(|_| true));
            // A device whose last data were acknowledged in vain does not know that they have come.
            let mut ended = net.ended(device, Side::Device);
            ended.retain(|&(id, ..)| !transfers[id as usize].0);
            prop_assert_eq!(ended, wanted(|is_in| !is_in));
        }
    }
}
