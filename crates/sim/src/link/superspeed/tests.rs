//! A link under load: what it can carry at most must come out of packets, credits and link
//! commands.

mod sleep;

use super::*;
use crate::engine::{Engine, Event};
use units::{Duration, Instant};

/// An event on a link over which one side sends data as fast as it can and the other acknowledges
/// each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Happens {
    /// The sender's lane is free again.
    MaySend,
    /// Data has arrived.
    Data,
    /// An acknowledgement has arrived.
    Acknowledged,
}

impl Event for Happens {
    fn mark(&self) -> u64 {
        *self as u64
    }
}

struct Flood {
    engine: Engine<Happens>,
    link: Link,
    sender: Side,
    gap: Duration,
    in_flight: u32,
    blocked: bool,
}

const BURST: u32 = 16;

impl Flood {
    fn new(rate: Rate, sender: Side, gap: Duration) -> Self {
        let mut engine = Engine::new();
        engine.at(Instant::ZERO, Happens::MaySend).unwrap();
        let link = Link::new(rate, Duration::from_ns(5));
        Self { engine, link, sender, gap, in_flight: 0, blocked: false }
    }

    fn after(&mut self, at: Instant, event: Happens) {
        self.engine.at(at, event).unwrap();
    }

    fn send_data(&mut self) {
        let now = self.engine.now();
        if self.in_flight == BURST {
            self.blocked = true;
            return;
        }
        match self.link.send(now, self.sender, Packet::Data(1024), self.gap) {
            Ok(crossing) => {
                self.in_flight += 1;
                self.after(crossing.ends, Happens::MaySend);
                self.after(crossing.arrives, Happens::Data);
            }
            Err(Blocked) => self.blocked = true,
        }
    }

    fn resume(&mut self, at: Instant) {
        if std::mem::take(&mut self.blocked) {
            self.after(at, Happens::MaySend);
        }
    }

    fn step(&mut self, event: Happens) {
        let (now, sender, receiver) = (self.engine.now(), self.sender, self.sender.other());
        match event {
            Happens::MaySend => self.send_data(),
            Happens::Data => {
                let credit_at = self.link.take(now, receiver);
                let acknowledgement = self.link.send(now, receiver, Packet::Header, Duration::ZERO).unwrap();
                self.after(acknowledgement.arrives, Happens::Acknowledged);
                self.resume(credit_at);
            }
            Happens::Acknowledged => {
                self.link.take(now, sender);
                self.in_flight -= 1;
                self.resume(now);
            }
        }
    }

    /// Megabytes of payload per second, over 10 ms.
    fn run(mut self) -> f64 {
        let end = Instant::ZERO + Duration::from_ms(10);
        while self.engine.next_at().is_some_and(|at| at < end) {
            let event = self.engine.next().unwrap();
            self.step(event);
        }
        let Traffic { packets, commands, skips, payload } = self.link.lane(self.sender).traffic();
        assert!(
            self.link.rate().symbols(u32::try_from(packets + commands + skips).unwrap())
                <= Duration::from_us(10_003)
        );
        payload as f64 / 10_000.0
    }
}

fn assert_near(measured: f64, expected: f64) {
    assert!((measured / expected - 1.0).abs() < 0.001, "{measured} MB/s, expected {expected}");
}

#[test]
fn gen_1_carries_474_9_megabytes_either_way() {
    for sender in [Side::Host, Side::Device] {
        assert_near(Flood::new(Rate::Gen1, sender, Duration::ZERO).run(), 474.9);
    }
}

#[test]
fn a_gap_of_100_ns_between_packets_leaves_453_8() {
    for sender in [Side::Host, Side::Device] {
        assert_near(Flood::new(Rate::Gen1, sender, Duration::from_ns(100)).run(), 453.8);
    }
}

#[test]
fn gen_2_carries_1125_and_twice_that_on_two_lanes() {
    assert_near(Flood::new(Rate::Gen2, Side::Device, Duration::ZERO).run(), 1125.0);
    assert_near(Flood::new(Rate::Gen2x2, Side::Device, Duration::ZERO).run(), 2251.0);
}

#[test]
fn the_fifth_packet_waits_until_the_first_is_taken() {
    let mut link = Link::new(Rate::Gen1, Duration::ZERO);
    let mut crossings = Vec::new();
    for _ in 0..4 {
        crossings.push(link.send(Instant::ZERO, Side::Host, Packet::Header, Duration::ZERO).unwrap());
    }
    assert_eq!(link.send(Instant::ZERO, Side::Host, Packet::Header, Duration::ZERO), Err(Blocked));
    let taken = Instant::from_ps(1_000_000);
    let credit_at = link.take(taken, Side::Device);
    assert_eq!(credit_at, taken + Rate::Gen1.symbols(16));
    let fifth = link.send(taken, Side::Host, Packet::Header, Duration::ZERO).unwrap();
    assert_eq!(fifth.begins, credit_at);
    assert_eq!(link.send(taken, Side::Host, Packet::Header, Duration::ZERO), Err(Blocked));
}

const fn ns(ns: u64) -> Instant {
    Instant::from_ps(ns * 1_000)
}

#[test]
fn a_timestamp_goes_before_the_packet_that_comes_with_it_and_is_acknowledged() {
    let mut link = Link::new(Rate::Gen1, Duration::from_ns(5));
    let packet = link.send(ns(125_000), Side::Host, Packet::Header, Duration::ZERO).unwrap();
    assert_eq!(packet.begins, ns(125_040));
    // It has come at 125,045; LGOOD and LCRD take 32 ns.
    let answer = link.send(ns(125_050), Side::Device, Packet::Header, Duration::ZERO).unwrap();
    assert_eq!(answer.begins, ns(125_077));
    assert_eq!(link.lane(Side::Device).traffic().commands, 16);
}

#[test]
fn a_timestamp_waits_for_the_packet_in_flight() {
    let mut link = Link::new(Rate::Gen1, Duration::ZERO);
    let data = link.send(ns(124_000), Side::Host, Packet::Data(1024), Duration::ZERO).unwrap();
    assert_eq!(data.ends, ns(126_112));
    // Two skips after 1,056 symbols, the timestamp, and another skip after these.
    let next = link.send(data.ends, Side::Host, Packet::Header, Duration::ZERO).unwrap();
    assert_eq!(next.begins, ns(126_112 + 8 + 40 + 4));
}

#[test]
fn an_idle_second_has_8000_timestamps_and_costs_what_comes_next_nothing() {
    let mut link = Link::new(Rate::Gen1, Duration::ZERO);
    let later = ns(1_000_010_000);
    let packet = link.send(later, Side::Host, Packet::Header, Duration::ZERO).unwrap();
    assert_eq!(packet.begins, later);
    assert_eq!(link.lane(Side::Host).traffic().packets, 20 * 8_001);
    link.send(later, Side::Device, Packet::Header, Duration::ZERO).unwrap();
    assert_eq!(link.lane(Side::Device).traffic().commands, 16 * 8_000);
}

#[test]
fn a_port_acts_on_a_packet_after_its_turn_round_and_the_link_does_not_wait_for_it() {
    let turn_round = TurnRound::new(Duration::from_ns(100), Duration::from_ns(400));
    let mut link = Link::new(Rate::Gen1, Duration::from_ns(5)).between(turn_round);
    let asked = link.send(ns(0), Side::Host, Packet::Header, Duration::ZERO).unwrap();
    link.accept_on_arrival(asked.arrives, Side::Device);
    assert_eq!((asked.arrives, asked.heard), (ns(45), ns(445)));
    // LGOOD and LCRD go from 45 to 77, long before the answer.
    assert_eq!(link.credit_at(ns(445), Side::Host), ns(445));
    let answer = link.send(asked.heard, Side::Device, Packet::Data(1024), Duration::ZERO).unwrap();
    assert_eq!((answer.begins, answer.heard), (ns(445), ns(445 + 2_112 + 5 + 100)));
}
