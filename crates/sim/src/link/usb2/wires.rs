//! The half-duplex wires of a bus, divided into frames with a start of frame each.
//!
//! A transaction starts when the bus is free and the rest of the frame has room for its maximum
//! length; its packets then follow each other. Time is counted in bits of the frame, which avoids
//! cumulative rounding. Invariants: a frame carries at most its number of bits; packets do not
//! overlap. Traffic is counted separately, so that a checker can verify both.
//!
//! Invariants: a frame carries no more than its bits; what is sent does not overlap. What was sent
//! is counted apart from that, so that somebody else can see whether it is so.

use super::packet::Packet;
use super::rate::Rate;
use crate::link::Crossing;
use units::{Duration, Instant};

/// A bus.
#[derive(Clone, Debug)]
pub struct Bus {
    rate: Rate,
    /// Number of hubs between the host and the device or its translator, which is in the last hub.
    hubs: u8,
    /// Current frame, counted from time zero.
    frame: u64,
    /// Elapsed bits of the frame.
    used: u64,
    payload: u64,
    /// Bits of all packets that were sent.
    sent_bits: u64,
    /// Full packets of the last frame in which there were some, and of the one in which there were
    /// most.
    full: Full,
    /// Seeded bug: data takes no time.
    is_hasty: bool,
}

/// Maximum-size packets in a frame.
#[derive(Clone, Copy, Debug)]
struct Full {
    frame: u64,
    count: u32,
    most: u32,
}

impl Bus {
    /// Creates an idle bus with a number of hubs between host and device, each of which delays a
    /// packet by [`Rate::hub_bits`].
    pub const fn new(rate: Rate, hubs: u8) -> Self {
        let full = Full { frame: 0, count: 0, most: 0 };
        Self {
            rate,
            hubs,
            frame: 0,
            used: rate.start_bits(),
            payload: 0,
            sent_bits: 0,
            full,
            is_hasty: false,
        }
    }

    /// Sets the number of hubs on the path of the next packets.
    pub const fn reach(&mut self, hubs: u8) {
        self.hubs = hubs;
    }

    /// Returns the rate.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns the payload bytes that were sent, accepted or not.
    pub const fn payload(&self) -> u64 {
        self.payload
    }

    /// Returns the bits of all packets that were sent, with what is around their payload.
    pub const fn sent_bits(&self) -> u64 {
        self.sent_bits
    }

    /// Returns their duration.
    pub fn carried_for(&self) -> Duration {
        self.rate.takes(self.sent_bits)
    }

    /// Packets of [`Rate::packet_bytes`] that one frame has carried at most.
    pub const fn most_full_packets(&self) -> u32 {
        self.full.most
    }

    /// Seeded bug: the data of a transaction takes no time from now on.
    pub const fn hurry(&mut self) {
        self.is_hasty = true;
    }

    /// Returns the earliest start of a transaction of at most `bits`, not before `now`.
    pub fn room_at(&self, now: Instant, bits: u64) -> Instant {
        let mut bus = Self { ..*self };
        bus.begin(now, bits);
        bus.now()
    }

    /// Starts a transaction of at most `bits`. It waits for the next frame if it does not fit into
    /// this one.
    pub fn begin(&mut self, now: Instant, bits: u64) {
        self.move_to(now);
        if self.used + bits + self.round_trip_bits() > self.rate.frame_bits() {
            self.frame += 1;
            self.used = self.rate.start_bits();
        }
    }

    /// Sends the next packet of the transaction.
    pub fn send(&mut self, packet: &Packet) -> Crossing {
        let begins = self.now();
        let bits = self.rate.packet_bits(packet);
        self.sent_bits += bits;
        if let Packet::Data(_, piece) = packet {
            self.payload += u64::from(piece.bytes);
            if piece.bytes >= self.rate.packet_bytes() {
                self.full.count_in(self.frame);
            }
        }
        self.used += if self.is_hasty && matches!(packet, Packet::Data(..)) { 0 } else { bits };
        let ends = self.now();
        Crossing { begins, ends, arrives: ends, heard: ends }
    }

    /// Turns the bus round: the device sends next, with the delays of the hubs.
    pub const fn turn_round(&mut self) {
        self.used += self.round_trip_bits();
    }

    /// Waits for an answer that does not come. Returns the time of the timeout.
    pub fn wait_in_vain(&mut self) -> Instant {
        self.used += self.rate.timeout_bits();
        let frame_bits = self.rate.frame_bits();
        if self.used > frame_bits {
            // A start of frame went meanwhile.
            self.frame += 1;
            self.used = (self.used - frame_bits).max(self.rate.start_bits());
        }
        self.now()
    }

    const fn round_trip_bits(&self) -> u64 {
        2 * self.hubs as u64 * self.rate.hub_bits()
    }

    /// Advances an idle bus to `now`.
    fn move_to(&mut self, now: Instant) {
        let (frame_ps, bits) = (self.rate.frame().as_ps(), self.rate.frame_bits());
        let (frame, inside) = (now.as_ps() / frame_ps, now.as_ps() % frame_ps);
        // The elapsed bit at that time; bit times are rounded up, so that the inverse finds it
        // again.
        let over = inside * bits / frame_ps;
        let used = over + u64::from((over * frame_ps).div_ceil(bits) < inside);
        if (frame, used) > (self.frame, self.used) {
            self.frame = frame;
            self.used = used.max(self.rate.start_bits());
        }
    }

    /// Returns the time of the current bit. Each is rounded up separately, so errors do not add up.
    pub(super) const fn now(&self) -> Instant {
        let frame_ps = self.rate.frame().as_ps();
        Instant::from_ps(self.frame * frame_ps + (self.used * frame_ps).div_ceil(self.rate.frame_bits()))
    }
}

impl Full {
    /// One more, in this frame.
    fn count_in(&mut self, frame: u64) {
        self.count = if frame == self.frame { self.count + 1 } else { 1 };
        self.frame = frame;
        self.most = self.most.max(self.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::bulk::PacketPayload;
    use crate::link::usb2::{Handshake, HostRequest, Toggle};
    use bus::TransferId;
    use proptest::prelude::*;
    use units::Duration;
    use wire::usb::{Direction, EndpointAddress};

    fn out(bytes: u16) -> HostRequest {
        let piece = PacketPayload { transfer: TransferId(0), offset: 0, bytes };
        HostRequest::Out(EndpointAddress::at::<2>(Direction::Out), Toggle::Data0, piece)
    }

    /// Token, data, ACK.
    fn carry(bus: &mut Bus, now: Instant, bytes: u16) -> Crossing {
        let ask = out(bytes);
        bus.begin(now, bus.rate().transaction_bits(&ask, 0));
        let begins = bus.send(&Packet::Token(ask)).begins;
        bus.send(&ask.data_packet().unwrap());
        bus.turn_round();
        Crossing { begins, ..bus.send(&Packet::Handshake(Handshake::Ack)) }
    }

    /// Returns the bytes that a second carries.
    fn of_a_second(rate: Rate, hubs: u8) -> u64 {
        let (mut bus, mut payload) = (Bus::new(rate, hubs), 0);
        while carry(&mut bus, Instant::ZERO, rate.packet_bytes()).ends
            <= Instant::ZERO + Duration::from_secs(1)
        {
            payload = bus.payload();
        }
        payload
    }

    #[test]
    fn a_second_carries_53_248_000_bytes_at_high_speed_and_1_216_000_at_full() {
        assert_eq!(of_a_second(Rate::High, 0), 53_248_000);
        assert_eq!(of_a_second(Rate::Full, 0), 1_216_000);
    }

    #[test]
    fn five_hubs_cost_one_packet_in_a_microframe() {
        // 567 bytes and 2 * 5 * 38 bits: 614.5 bytes, twelve of them in 7,481.
        assert_eq!(of_a_second(Rate::High, 5), 8_000 * 12 * 512);
    }

    #[test]
    fn thirteen_full_packets_fit_into_a_microframe_and_nineteen_into_a_frame() {
        for (rate, fit) in [(Rate::High, 13), (Rate::Full, 19)] {
            let mut bus = Bus::new(rate, 0);
            let frame = |crossing: Crossing| crossing.begins.as_ps() / rate.frame().as_ps();
            let places: Vec<_> =
                (0..2 * fit).map(|_| frame(carry(&mut bus, Instant::ZERO, rate.packet_bytes()))).collect();
            assert_eq!(places, [vec![0; fit], vec![1; fit]].concat());
            assert_eq!((bus.most_full_packets(), rate.full_packets_max()), (fit as u32, fit as u32));
        }
    }

    #[test]
    fn a_transaction_on_an_idle_bus_begins_at_once() {
        let mut bus = Bus::new(Rate::High, 0);
        let now = Instant::ZERO + Duration::from_us(130);
        let crossing = carry(&mut bus, now, 5);
        assert!((crossing.begins - now) < Duration::from_ns(3));
        // 60 bytes of 1/60 us.
        assert_eq!((crossing.ends - crossing.begins).as_ns(), 1_000);
    }

    #[test]
    fn a_transaction_that_does_not_fit_waits_for_the_next_microframe() {
        let mut bus = Bus::new(Rate::High, 0);
        let crossing = carry(&mut bus, Instant::ZERO + Duration::from_us(120), 512);
        // 19 bytes of start of frame go first.
        assert_eq!(crossing.begins, Instant::ZERO + Rate::High.frame() + Duration::from_ps(316_667));
    }

    #[test]
    fn an_answer_that_does_not_come_is_waited_for() {
        let mut bus = Bus::new(Rate::High, 0);
        let sent = carry(&mut bus, Instant::ZERO, 0).ends;
        // 736 bits at 480 Mb/s.
        assert_eq!((bus.wait_in_vain() - sent).as_ns(), 1_533);
    }

    proptest! {
        #[test]
        fn transactions_do_not_overlap_nor_cross_frames(
            rate in prop_oneof![Just(Rate::Full), Just(Rate::High)],
            hubs in 0_u8..=5,
            steps in prop::collection::vec((0_u64..200_000_000, 0_u16..=64, prop::bool::ANY), 0..100),
        ) {
            let (mut bus, mut now, mut free_at) = (Bus::new(rate, hubs), Instant::ZERO, Instant::ZERO);
            for (wait, bytes, is_silent) in steps {
                now = now + Duration::from_ps(wait);
                let crossing = carry(&mut bus, now, bytes);
                prop_assert!(crossing.begins >= now && crossing.begins >= free_at);
                let last = Instant::from_ps(crossing.ends.as_ps() - 1);
                prop_assert_eq!(crossing.begins.as_ps() / rate.frame().as_ps(), last.as_ps() / rate.frame().as_ps());
                free_at = if is_silent { bus.wait_in_vain() } else { crossing.ends };
            }
        }
    }
}
