//! Bookkeeping of one machine: transfers, their bytes, and the load of lanes.
//!
//! Code that copies payload, completes a transfer or schedules an event records it here;
//! [`Ledger::audit`] compares the sums with the counters of the link. The first violation is kept.

use super::{Invariant, Violation, ViolationSubject};
use crate::link::bulk::{End, Progress};
use crate::link::superspeed::{Link, Side};
use crate::link::usb2::Bus;
use crate::power::Meter;
use bus::TransferId;
use units::{Duration, Instant};

/// Payload in flight at most: four header-packet credits (USB 3.2 clause 7.2.4.1.1).
const IN_FLIGHT_BYTES_MAX: u64 = 4 * 1024;
/// Time of a packet and its prefix that a lane may have begun and not finished. Between any two
/// audits a lane can seem to have carried at most this much too much.
const IN_PROGRESS_MAX: Duration = Duration::from_us(5);

/// Bookkeeping of one machine.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Payload accepted by each side.
    taken: [u64; 2],
    /// Payload that arrived at each side and was not accepted.
    wasted_bytes: [u64; 2],
    /// New bytes in the packet that has just arrived; in total where packets are not booked.
    fresh: u64,
    /// Payload that the device has accepted from the host in total.
    given: u64,
    /// Bytes copied per transfer, by side and id.
    copied: [Vec<u32>; 2],
    violation: Option<Violation>,
    /// Payload sent by each side before booking began; that of a bus counts as the host's.
    before: [u64; 2],
    /// Payload of the packet in flight on a USB 2.0 bus, and below a translator.
    on_bus: [u32; 2],
    /// How far the load of each lane lagged behind elapsed time, at the audit where it lagged most;
    /// from then on it can only use the time from then on. That of a bus is the host's. First the
    /// link or bus at the port, then those below hubs or translators.
    most_behind: Vec<[Behind; 2]>,
    /// Hubs in the path, each of which buffers as much as a link.
    hubs: u32,
}

impl Ledger {
    /// Begins booking on a link that has carried traffic, with no payload in flight. `hubs` are
    /// between it and the device.
    pub fn begin(&mut self, now: Instant, link: &Link, hubs: u32) {
        self.hubs = hubs;
        self.before = SIDES.map(|side| link.lane(side).traffic().payload);
        let link = &link.settled(now);
        *self.most_behind(AT_PORT) = SIDES.map(|side| Behind::at(now, link.lane_busy(side)));
        self.fresh = 0;
    }

    /// Like the above, for a USB 2.0 bus.
    pub fn begin_on_bus(&mut self, now: Instant, bus: &Bus) {
        self.before = [bus.payload(), 0];
        *self.most_behind(AT_PORT) = [Behind::at(now, bus.carried_for()); 2];
        self.fresh = 0;
    }

    /// Records new bytes of the current packet that a side has accepted.
    pub const fn take(&mut self, bytes: u16) {
        self.fresh += bytes as u64;
    }

    /// Records progress of a transfer. A piece counts as new bytes of the current packet.
    pub fn progress(&mut self, now: Instant, side: Side, progress: &Progress) {
        let Progress { id, moved, ended, piece } = *progress;
        let number = id.0 as usize;
        let copied = &mut self.copied[side as usize];
        if number >= copied.len() {
            copied.resize(number + 1, 0);
        }
        if let Some(piece) = piece {
            let bytes = u32::from(piece.bytes);
            self.fresh += u64::from(bytes);
            // The first piece of a transfer: counts of an earlier transfer of this id are stale.
            let before = if moved == bytes { 0 } else { copied[number] };
            copied[number] = before + bytes;
        }
        let is_complete = matches!(ended, Some(End::Full | End::Short)) && moved > 0;
        let is_taker = piece.is_some() || copied[number] > 0;
        if is_complete && is_taker && copied[number] != moved {
            self.report_violation(Invariant::BytesReported, now, ViolationSubject::Transfer(side, id));
        }
        if ended.is_some() {
            self.copied[side as usize][number] = 0;
        }
    }

    /// Records the arrival of a packet, after the progress of its transfers.
    pub fn arrive(&mut self, now: Instant, side: Side, payload: u32) {
        let fresh = std::mem::take(&mut self.fresh);
        if fresh > u64::from(payload) {
            return self.report_violation(Invariant::Conservation, now, ViolationSubject::Lane(side.other()));
        }
        self.taken[side as usize] += fresh;
        self.wasted_bytes[side as usize] += u64::from(payload) - fresh;
    }

    /// Records the arrival of a packet for another device on the same link, which has a separate
    /// ledger.
    pub const fn arrive_elsewhere(&mut self, side: Side, payload: u32) {
        self.taken[side as usize] += payload as u64;
    }

    /// Records the arrival of a packet that was ignored: the link retries it.
    pub const fn arrive_in_vain(&mut self, side: Side, payload: u32) {
        self.wasted_bytes[side as usize] += payload as u64;
    }

    /// Forgets a transfer that was cancelled or ended with its endpoint.
    pub fn forget(&mut self, side: Side, id: TransferId) {
        if let Some(copied) = self.copied[side as usize].get_mut(id.0 as usize) {
            *copied = 0;
        }
    }

    /// Forgets all transfers of a side, whose port was reset.
    pub fn forget_all(&mut self, side: Side) {
        self.copied[side as usize].clear();
    }

    /// Records an event on a USB 2.0 bus or below a translator, after the progress of its
    /// transfers: the packet in flight has arrived and `payload` bytes are sent. These count as
    /// wasted until a side accepts them; what a device accepts below a translator was carried by
    /// the bus above.
    pub fn cross_bus(&mut self, now: Instant, payload: u32, is_below: bool) {
        let fresh = std::mem::take(&mut self.fresh);
        let came = std::mem::replace(&mut self.on_bus[usize::from(is_below)], payload);
        let wasted_bytes = &mut self.wasted_bytes[Side::Host as usize];
        match wasted_bytes.checked_sub(fresh) {
            Some(rest) if fresh <= u64::from(came) => *wasted_bytes = rest,
            _ => {
                return self.report_violation(
                    Invariant::Conservation,
                    now,
                    ViolationSubject::Machine("the bus"),
                );
            }
        }
        *wasted_bytes += if is_below { 0 } else { u64::from(payload) };
        self.taken[Side::Host as usize] += fresh;
    }

    /// Checks whether an event was scheduled in the past.
    #[inline]
    pub fn check_schedule(&mut self, scheduled_late: Option<Instant>) {
        if let Some(at) = scheduled_late {
            self.report_violation(Invariant::Past, at, ViolationSubject::Machine("an event"));
        }
    }

    /// Records a violation. Only the first counts, since later ones may follow from it.
    pub fn report_violation(&mut self, invariant: Invariant, at: Instant, subject: ViolationSubject) {
        self.violation.get_or_insert(Violation { invariant, at, subject });
    }

    /// Returns the first violation.
    pub const fn violation(&self) -> Option<Violation> {
        self.violation
    }

    /// Returns the payload carried and not accepted: retried after NRDY, or unclaimed. On a USB 2.0
    /// bus including the packet in flight.
    pub const fn wasted_bytes(&self) -> u64 {
        self.wasted_bytes[0] + self.wasted_bytes[1]
    }

    /// Compares both counts of a power meter.
    pub fn audit_meter<const STATES: usize>(
        &mut self,
        now: Instant,
        meter: &Meter<STATES>,
        part: &'static str,
    ) {
        if !meter.is_consistent(now) {
            self.report_violation(Invariant::Energy, now, ViolationSubject::Machine(part));
        }
    }

    /// Compares the bookkeeping with the traffic and energy of the link.
    pub fn audit(&mut self, now: Instant, link: &Link) {
        for side in SIDES {
            let traffic = link.lane(side).traffic();
            let arrived = self.taken[side.other() as usize] + self.wasted_bytes[side.other() as usize];
            let in_flight = traffic.payload.checked_sub(self.before[side as usize] + arrived);
            let most = IN_FLIGHT_BYTES_MAX * (1 + u64::from(self.hubs));
            if in_flight.is_none_or(|bytes| bytes > most) {
                self.report_violation(Invariant::Conservation, now, ViolationSubject::Lane(side));
            }
        }
        self.audit_lanes(now, link);
    }

    /// Checks a link on its own, without packet bookkeeping.
    pub fn audit_lanes(&mut self, now: Instant, link: &Link) {
        self.audit_link(now, AT_PORT, link);
    }

    /// Checks links below hubs, always in the same order.
    pub fn audit_lanes_below<'a>(&mut self, now: Instant, links: impl Iterator<Item = &'a Link>) {
        for (number, link) in (AT_PORT + 1..).zip(links) {
            self.audit_link(now, number, link);
        }
    }

    fn audit_link(&mut self, now: Instant, number: usize, link: &Link) {
        let link = &link.settled(now);
        let name = if number == AT_PORT { "the link" } else { "a link below hubs" };
        self.audit_meter(now, &link.meter(now), name);
        for side in SIDES {
            let behind = &mut self.most_behind(number)[side as usize];
            if !behind.allows(now, link.lane_busy(side), IN_PROGRESS_MAX) {
                let subject = match number {
                    AT_PORT => ViolationSubject::Lane(side),
                    below => ViolationSubject::LaneBelow(u8::try_from(below).unwrap_or(u8::MAX), side),
                };
                self.report_violation(Invariant::Capacity, now, subject);
            }
        }
    }

    /// Like the above, for a USB 2.0 bus.
    pub fn audit_bus_alone(&mut self, now: Instant, bus: &Bus) {
        self.audit_one_bus(now, AT_PORT, "the bus", bus);
    }

    /// Checks buses below translators, always in the same order.
    pub fn audit_buses_below<'a>(&mut self, now: Instant, buses: impl Iterator<Item = &'a Bus>) {
        for (number, bus) in (AT_PORT + 1..).zip(buses) {
            self.audit_one_bus(now, number, "a bus below a translator", bus);
        }
    }

    fn audit_one_bus(&mut self, now: Instant, number: usize, name: &'static str, bus: &Bus) {
        if !self.most_behind(number)[Side::Host as usize].allows_bus(now, bus) {
            self.report_violation(Invariant::Capacity, now, ViolationSubject::Machine(name));
        }
    }

    /// Returns the lag of the link or bus of this number.
    fn most_behind(&mut self, number: usize) -> &mut [Behind; 2] {
        if number >= self.most_behind.len() {
            self.most_behind.resize(number + 1, Default::default());
        }
        &mut self.most_behind[number]
    }

    /// Records bytes that the device has accepted, without packet bookkeeping.
    pub const fn give(&mut self, bytes: u16) {
        self.given += bytes as u64;
    }

    /// Returns the bytes that the device has accepted in total.
    pub const fn given_in_all(&self) -> u64 {
        self.given
    }

    /// Returns the bytes that the host has accepted in total, without packet bookkeeping.
    pub const fn taken_in_all(&self) -> u64 {
        self.fresh
    }
}

/// How far carried traffic lags behind elapsed time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Behind(i128);

impl Behind {
    /// Returns the lag at a time, given the time that the traffic took.
    fn at(now: Instant, carried: Duration) -> Self {
        Self(i128::from(now.as_ps()) - i128::from(carried.as_ps()))
    }

    /// Returns whether so much can have been carried by `now`, from the largest lag and from any
    /// time in between. Idle time cannot be used later.
    fn allows(&mut self, now: Instant, carried: Duration, in_progress: Duration) -> bool {
        let behind = Self::at(now, carried);
        let catches_up = self.0 - behind.0;
        *self = (*self).max(behind);
        catches_up <= i128::from(in_progress.as_ps())
    }

    /// Like [`Self::allows`], for a bus: a transaction may be counted when it begins, and a frame
    /// holds a limited number of full packets, which the time check alone would miss.
    fn allows_bus(&mut self, now: Instant, bus: &Bus) -> bool {
        let rate = bus.rate();
        self.allows(now, bus.carried_for(), rate.takes(rate.longest_bits()))
            && bus.most_full_packets() <= rate.full_packets_max()
    }
}

const SIDES: [Side; 2] = [Side::Host, Side::Device];
/// Number of the link or bus at the port.
const AT_PORT: usize = 0;

impl Ledger {
    /// Compares the bookkeeping with a USB 2.0 bus, where both directions are one and nothing is in
    /// flight between events.
    pub fn audit_bus(&mut self, now: Instant, bus: &Bus) {
        let arrived = self.taken.iter().chain(&self.wasted_bytes).sum::<u64>();
        if bus.payload() != self.before[Side::Host as usize] + arrived {
            self.report_violation(Invariant::Conservation, now, ViolationSubject::Machine("the bus"));
        }
        self.audit_bus_alone(now, bus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::bulk::PacketPayload;
    use crate::link::superspeed::{Packet, Rate};
    use crate::link::usb2;
    use crate::power::Microwatts;

    const NOW: Instant = Instant::from_ps(10_000_000);

    fn link() -> Link {
        let mut link = Link::new(Rate::Gen1, Duration::from_ns(5));
        for _ in 0..4 {
            link.send(Instant::ZERO, Side::Device, Packet::Data(1024), Duration::ZERO).unwrap();
            link.take(Instant::ZERO, Side::Host);
        }
        link.send(Instant::ZERO, Side::Device, Packet::Data(1024), Duration::ZERO).unwrap();
        link
    }

    fn violation(book: impl FnOnce(&mut Ledger)) -> Option<Invariant> {
        let mut ledger = Ledger::default();
        book(&mut ledger);
        ledger.audit(NOW, &link());
        ledger.violation().map(|violation| violation.invariant)
    }

    const fn piece(transfer: TransferId, moved: u32, bytes: u16, ended: Option<End>) -> Progress {
        let piece = PacketPayload { transfer: TransferId(3), offset: moved - bytes as u32, bytes };
        Progress { id: transfer, moved, ended, piece: Some(piece) }
    }

    /// Delivers packets of 1 KiB, all new or all repeated.
    fn arrive(ledger: &mut Ledger, packets: u32, fresh: bool) {
        for nth in 1..=packets {
            if fresh {
                ledger.progress(NOW, Side::Host, &piece(TransferId(0), nth * 1024, 1024, None));
            }
            ledger.arrive(NOW, Side::Host, 1024);
        }
    }

    #[test]
    fn lane_payload_is_accepted_or_in_flight() {
        assert_eq!(violation(|ledger| arrive(ledger, 1, true)), None);
        assert_eq!(violation(|ledger| arrive(ledger, 5, true)), None);
        assert_eq!(violation(|ledger| arrive(ledger, 5, false)), None);
        assert_eq!(violation(|_| {}), Some(Invariant::Conservation));
        assert_eq!(violation(|ledger| arrive(ledger, 6, true)), Some(Invariant::Conservation));
    }

    #[test]
    fn a_packet_brings_no_more_than_it_carries() {
        let more = |ledger: &mut Ledger| {
            ledger.progress(NOW, Side::Host, &piece(TransferId(0), 1024, 1024, None));
            ledger.arrive(NOW, Side::Host, 1023);
        };
        assert_eq!(violation(more), Some(Invariant::Conservation));
    }

    #[test]
    fn a_wrong_byte_count_is_detected() {
        let reported = |moved| {
            violation(|ledger| {
                let transfer = TransferId(7);
                // An earlier, cancelled transfer of this id.
                ledger.progress(NOW, Side::Host, &piece(transfer, 512, 512, None));
                ledger.arrive(NOW, Side::Host, 512);
                ledger.progress(NOW, Side::Host, &piece(transfer, 1024, 1024, None));
                ledger.arrive(NOW, Side::Host, 1024);
                ledger.progress(NOW, Side::Host, &piece(transfer, moved, 512, Some(End::Short)));
                ledger.arrive(NOW, Side::Host, 512);
            })
        };
        assert_eq!(reported(1536), None);
        assert_eq!(reported(1535), Some(Invariant::BytesReported));
    }

    #[test]
    fn a_lane_over_capacity_is_detected() {
        let mut ledger = Ledger::default();
        arrive(&mut ledger, 5, true);
        ledger.audit(Instant::from_ps(5_000_000), &link());
        assert_eq!(ledger.violation().map(|violation| violation.invariant), Some(Invariant::Capacity));
    }

    #[test]
    fn idle_time_does_not_excuse_a_burst() {
        let (mut ledger, mut link) = (Ledger::default(), Link::new(Rate::Gen1, Duration::from_ns(5)));
        let at = |us| Instant::ZERO + Duration::from_us(us);
        let violation = |ledger: &mut Ledger, link: &Link, us| {
            ledger.audit(at(us), link);
            ledger.violation().map(|violation| violation.invariant)
        };
        assert_eq!(violation(&mut ledger, &link, 100), None);
        let mut send = |ledger: &mut Ledger, us, packets| {
            for _ in 0..packets {
                link.send(at(us), Side::Device, Packet::Data(1024), Duration::ZERO).unwrap();
                link.take(at(us), Side::Host);
                ledger.arrive(at(us), Side::Host, 1024);
            }
            link.clone()
        };
        // Two of 2.1 us each have begun.
        let sent = send(&mut ledger, 100, 2);
        assert_eq!(violation(&mut ledger, &sent, 100), None);
        let sent = send(&mut ledger, 110, 4);
        assert_eq!(violation(&mut ledger, &sent, 114), None);
        // There was time for three of them since, although the lane was idle nearly all the time.
        let sent = send(&mut ledger, 120, 7);
        assert_eq!(violation(&mut ledger, &sent, 121), Some(Invariant::Capacity));
    }

    #[test]
    fn bus_payload_is_accepted_or_wasted() {
        let mut bus = Bus::new(usb2::Rate::High, 0);
        let data = |bytes| {
            let piece = PacketPayload { transfer: TransferId(3), offset: 0, bytes };
            usb2::Packet::Data(usb2::Toggle::Data0, piece)
        };
        let mut ledger = Ledger::default();
        let audit = |ledger: &Ledger, bus: &Bus| {
            let mut ledger = ledger.clone();
            ledger.audit_bus(NOW, bus);
            ledger.violation().map(|violation| violation.invariant)
        };
        bus.send(&data(512));
        assert_eq!(audit(&ledger, &bus), Some(Invariant::Conservation), "it is not booked");
        ledger.cross_bus(NOW, 512, false);
        assert_eq!((audit(&ledger, &bus), ledger.wasted_bytes()), (None, 512));
        ledger.take(500);
        ledger.cross_bus(NOW, 0, false);
        assert_eq!((audit(&ledger, &bus), ledger.wasted_bytes()), (None, 12));
        // The device accepts from a translator what that had.
        ledger.cross_bus(NOW, 12, true);
        ledger.take(12);
        ledger.cross_bus(NOW, 0, true);
        assert_eq!((audit(&ledger, &bus), ledger.wasted_bytes()), (None, 0));
        // And no more.
        ledger.take(1);
        ledger.cross_bus(NOW, 0, true);
        assert_eq!(audit(&ledger, &bus), Some(Invariant::Conservation));
    }

    /// A bus with full packets from the start of a frame; `is_hasty` makes them take no time.
    fn of_a_frame(rate: usb2::Rate, packets: u32, is_hasty: bool) -> Bus {
        let mut bus = Bus::new(rate, 0);
        if is_hasty {
            bus.hurry();
        }
        let piece = PacketPayload { transfer: TransferId(3), offset: 0, bytes: rate.packet_bytes() };
        for _ in 0..packets {
            bus.begin(Instant::ZERO, rate.longest_bits());
            bus.send(&usb2::Packet::Data(usb2::Toggle::Data0, piece));
        }
        bus
    }

    #[test]
    fn a_frame_has_room_for_13_full_packets_at_high_speed_and_19_at_full() {
        for (rate, most) in [(usb2::Rate::High, 13), (usb2::Rate::Full, 19)] {
            // Long after, when there was time for many more.
            let invariant = |packets, is_below| {
                let (mut ledger, bus) = (Ledger::default(), of_a_frame(rate, packets, true));
                let now = Instant::ZERO + Duration::from_ms(500);
                match is_below {
                    false => ledger.audit_bus_alone(now, &bus),
                    true => ledger.audit_buses_below(now, [&bus].into_iter()),
                }
                ledger.violation().map(|violation| violation.invariant)
            };
            for is_below in [false, true] {
                assert_eq!(invariant(most, is_below), None, "{rate:?}");
                assert_eq!(invariant(most + 1, is_below), Some(Invariant::Capacity), "{rate:?}");
            }
        }
    }

    #[test]
    fn bus_packets_take_their_overhead() {
        let packets = 10;
        let broken_after = |ns| {
            let mut ledger = Ledger::default();
            let bus = of_a_frame(usb2::Rate::High, packets, false);
            ledger.audit_bus_alone(Instant::ZERO + Duration::from_ns(ns), &bus);
            ledger.violation().map(|violation| violation.invariant)
        };
        // 531 bytes of 1/60 us each; 567 are a transaction in progress. Their payload alone is
        // 85,333 ns of the bus.
        assert_eq!(broken_after(79_100), None);
        assert_eq!(broken_after(79_000), Some(Invariant::Capacity));
    }

    #[test]
    fn links_below_hubs_have_separate_capacity() {
        let (mut ledger, idle) = (Ledger::default(), Link::new(Rate::Gen1, Duration::from_ns(5)));
        let at = |us| Instant::ZERO + Duration::from_us(us);
        ledger.audit_lanes_below(at(6), [&idle, &link()].into_iter());
        assert_eq!(ledger.violation(), None);
        // 2.1 us each of five packets.
        ledger.audit_lanes_below(at(7), [&link(), &link()].into_iter());
        let subject = ViolationSubject::LaneBelow(1, Side::Device);
        assert_eq!(
            ledger.violation(),
            Some(Violation { invariant: Invariant::Capacity, at: at(7), subject })
        );
    }

    #[test]
    fn overlapping_meter_states_are_detected() {
        let mut meter = Meter::new([Microwatts(1), Microwatts(2)]);
        meter.switch(NOW, 1);
        let mut ledger = Ledger::default();
        ledger.audit_meter(NOW, &meter, "a part");
        assert_eq!(ledger.violation(), None);
        // It was at work until 10 us, and idle from 5 us on.
        meter.switch_without_books(Instant::from_ps(5_000_000), 0);
        ledger.audit_meter(NOW, &meter, "a part");
        assert_eq!(ledger.violation().map(|violation| violation.invariant), Some(Invariant::Energy));
    }

    #[test]
    fn unaccounted_bytes_exceed_32_bits() {
        let mut ledger = Ledger::default();
        for _ in 0..=u32::MAX / u32::from(u16::MAX) + 1 {
            ledger.take(u16::MAX);
        }
        assert!(ledger.fresh > u64::from(u32::MAX));
    }

    #[test]
    fn the_first_violation_is_kept() {
        let mut ledger = Ledger::default();
        ledger.check_schedule(None);
        assert_eq!(ledger.violation(), None);
        ledger.check_schedule(Some(NOW));
        ledger.report_violation(Invariant::Little, NOW, ViolationSubject::Queue("a queue"));
        assert_eq!(ledger.violation().map(|violation| violation.invariant), Some(Invariant::Past));
    }
}
