//! The books of one world: transfers, their bytes, and what lanes carried.
//!
//! Who copies payload, ends a transfer or schedules an event tells the ledger; [`Ledger::audit`] compares the sums with what
//! the link says it has carried. The first violation is kept.

use super::{About, Law, Violation};
use crate::link::bulk::{End, Progress};
use crate::link::superspeed::{Link, Side};
use crate::link::usb2::Bus;
use crate::power::Meter;
use bus::TransferId;
use units::{Duration, Instant};

/// Payload that is sent and not yet taken, at most: four packets have a credit (USB 3.2 clause 7.2.4.1.1).
const ON_THE_WAY_BYTES_MAX: u64 = 4 * 1024;
/// What a lane may have begun to send before now and ends after it: a packet and what goes before it.
const UNDER_WAY_MAX: Duration = Duration::from_us(5);

/// Books of one world.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Payload that each side has taken.
    taken: [u64; 2],
    /// Payload that arrived at each side and was not taken.
    in_vain: [u64; 2],
    /// Bytes that were new in the packet that has just arrived; where nobody keeps the books of packets, in all.
    fresh: u64,
    /// What was copied for a transfer, by side and number.
    copied: [Vec<u32>; 2],
    broken: Option<Violation>,
    /// Payload that each side had sent before the books were begun.
    before: [u64; 2],
    /// Hubs on the way, each of which has room for as much as a link.
    hubs: u32,
}

impl Ledger {
    /// Begins the books of a link on which something was carried already, and nothing with payload is on its way. There are so
    /// many hubs between it and the device.
    pub fn begin(&mut self, link: &Link, hubs: u32) {
        self.hubs = hubs;
        self.before = [Side::Host, Side::Device].map(|side| link.lane(side).traffic().payload);
    }

    /// A side has taken so many bytes that are new in the packet that is being looked at; who has them looks after their
    /// transfer.
    pub const fn take(&mut self, bytes: u16) {
        self.fresh += bytes as u64;
    }

    /// Something of a transfer of a side has moved. Where the side has taken a piece, that counts as new in the packet that
    /// is being looked at.
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
            // The first piece of a transfer: what an earlier one of this number had is of no concern.
            let before = if moved == bytes { 0 } else { copied[number] };
            copied[number] = before + bytes;
        }
        let is_told = matches!(ended, Some(End::Full | End::Short)) && moved > 0;
        let is_taker = piece.is_some() || copied[number] > 0;
        if is_told && is_taker && copied[number] != moved {
            self.break_law(Law::BytesTold, now, About::Transfer(side, id));
        }
        if ended.is_some() {
            self.copied[side as usize][number] = 0;
        }
    }

    /// A packet with so much payload has arrived at a side, and the transfers that it befell were told of before.
    pub fn arrive(&mut self, now: Instant, side: Side, payload: u32) {
        let fresh = std::mem::take(&mut self.fresh);
        if fresh > u64::from(payload) {
            return self.break_law(Law::Conservation, now, About::Lane(side.other()));
        }
        self.taken[side as usize] += fresh;
        self.in_vain[side as usize] += u64::from(payload) - fresh;
    }

    /// A packet with so much payload has arrived at a side of another device of the same link, which has books of its own.
    pub const fn arrive_elsewhere(&mut self, side: Side, payload: u32) {
        self.taken[side as usize] += payload as u64;
    }

    /// A transfer of a side was taken back or has ended with its endpoint: what was copied for it is of no concern any more.
    pub fn forget(&mut self, side: Side, id: TransferId) {
        if let Some(copied) = self.copied[side as usize].get_mut(id.0 as usize) {
            *copied = 0;
        }
    }

    /// The same for all transfers of a side, whose port was reset.
    pub fn forget_all(&mut self, side: Side) {
        self.copied[side as usize].clear();
    }

    /// Something has happened on a bus of USB 2.0, and the transfers that it befell were told of before. The payload that they took.
    pub fn take_from_bus(&mut self) -> u32 {
        let fresh = std::mem::take(&mut self.fresh);
        self.taken[Side::Host as usize] += fresh;
        fresh as u32
    }

    /// An event is scheduled.
    pub fn schedule(&mut self, now: Instant, at: Instant) {
        if at < now {
            self.break_law(Law::Past, now, About::World("an event"));
        }
    }

    /// A law was broken. Only the first time counts: what follows may follow from it.
    pub fn break_law(&mut self, law: Law, at: Instant, about: About) {
        self.broken.get_or_insert(Violation { law, at, about });
    }

    /// The first violation.
    pub const fn broken(&self) -> Option<Violation> {
        self.broken
    }

    /// Payload that was carried and not taken: sent again after NRDY, or to nobody.
    pub const fn in_vain(&self) -> u64 {
        self.in_vain[0] + self.in_vain[1]
    }

    /// Compares the two books of a meter.
    pub fn audit_meter<const STATES: usize>(
        &mut self,
        now: Instant,
        meter: &Meter<STATES>,
        part: &'static str,
    ) {
        if !meter.is_consistent(now) {
            self.break_law(Law::Energy, now, About::World(part));
        }
    }

    /// Compares the books with what the link has carried and drawn.
    pub fn audit(&mut self, now: Instant, link: &Link) {
        self.audit_meter(now, &link.meter(now), "the link");
        for side in [Side::Host, Side::Device] {
            let traffic = link.lane(side).traffic();
            let arrived = self.taken[side.other() as usize] + self.in_vain[side.other() as usize];
            let on_the_way = traffic.payload.checked_sub(self.before[side as usize] + arrived);
            let most = ON_THE_WAY_BYTES_MAX * (1 + u64::from(self.hubs));
            if on_the_way.is_none_or(|bytes| bytes > most) {
                self.break_law(Law::Conservation, now, About::Lane(side));
            }
            let symbols = u128::from(traffic.packets + traffic.commands + traffic.skips);
            let busy_ps = symbols * u128::from(link.rate().symbols(1_000_000).as_ps()) / 1_000_000;
            if busy_ps > u128::from((now + UNDER_WAY_MAX).as_ps()) {
                self.break_law(Law::Capacity, now, About::Lane(side));
            }
        }
    }
}

impl Ledger {
    /// The same with what a bus of USB 2.0 has carried, whose directions are one.
    pub fn audit_bus(&mut self, now: Instant, bus: &Bus) {
        if self.taken[Side::Host as usize] > bus.payload() {
            self.break_law(Law::Conservation, now, About::World("the bus"));
        }
        let frames = u128::from(now.as_ps() / bus.rate().frame().as_ps() + 1);
        if u128::from(bus.payload()) * 8 > frames * u128::from(bus.rate().frame_bits()) {
            self.break_law(Law::Capacity, now, About::World("the bus"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::bulk::Piece;
    use crate::link::superspeed::{Packet, Rate};
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

    fn broken(book: impl FnOnce(&mut Ledger)) -> Option<Law> {
        let mut ledger = Ledger::default();
        book(&mut ledger);
        ledger.audit(NOW, &link());
        ledger.broken().map(|violation| violation.law)
    }

    const fn piece(transfer: TransferId, moved: u32, bytes: u16, ended: Option<End>) -> Progress {
        let piece = Piece { transfer: TransferId(3), offset: moved - bytes as u32, bytes };
        Progress { id: transfer, moved, ended, piece: Some(piece) }
    }

    /// So many packets of a kilobyte that arrive, all or nothing of each new.
    fn arrive(ledger: &mut Ledger, packets: u32, fresh: bool) {
        for nth in 1..=packets {
            if fresh {
                ledger.progress(NOW, Side::Host, &piece(TransferId(0), nth * 1024, 1024, None));
            }
            ledger.arrive(NOW, Side::Host, 1024);
        }
    }

    #[test]
    fn what_was_carried_was_taken_or_is_on_its_way() {
        assert_eq!(broken(|ledger| arrive(ledger, 1, true)), None);
        assert_eq!(broken(|ledger| arrive(ledger, 5, true)), None);
        assert_eq!(broken(|ledger| arrive(ledger, 5, false)), None);
        assert_eq!(broken(|_| {}), Some(Law::Conservation));
        assert_eq!(broken(|ledger| arrive(ledger, 6, true)), Some(Law::Conservation));
    }

    #[test]
    fn a_packet_brings_no_more_than_it_carries() {
        let more = |ledger: &mut Ledger| {
            ledger.progress(NOW, Side::Host, &piece(TransferId(0), 1024, 1024, None));
            ledger.arrive(NOW, Side::Host, 1023);
        };
        assert_eq!(broken(more), Some(Law::Conservation));
    }

    #[test]
    fn a_transfer_that_tells_another_number_is_seen() {
        let told = |moved| {
            broken(|ledger| {
                let transfer = TransferId(7);
                // An earlier one of this number, which was taken back.
                ledger.progress(NOW, Side::Host, &piece(transfer, 512, 512, None));
                ledger.arrive(NOW, Side::Host, 512);
                ledger.progress(NOW, Side::Host, &piece(transfer, 1024, 1024, None));
                ledger.arrive(NOW, Side::Host, 1024);
                ledger.progress(NOW, Side::Host, &piece(transfer, moved, 512, Some(End::Short)));
                ledger.arrive(NOW, Side::Host, 512);
            })
        };
        assert_eq!(told(1536), None);
        assert_eq!(told(1535), Some(Law::BytesTold));
    }

    #[test]
    fn a_lane_that_carried_more_than_time_allows_is_seen() {
        let mut ledger = Ledger::default();
        arrive(&mut ledger, 5, true);
        ledger.audit(Instant::from_ps(5_000_000), &link());
        assert_eq!(ledger.broken().map(|violation| violation.law), Some(Law::Capacity));
    }

    #[test]
    fn a_part_that_was_in_two_states_at_once_is_seen() {
        let mut meter = Meter::new([Microwatts(1), Microwatts(2)]);
        meter.switch(NOW, 1);
        let mut ledger = Ledger::default();
        ledger.audit_meter(NOW, &meter, "a part");
        assert_eq!(ledger.broken(), None);
        // It was at work until 10 us, and idle from 5 us on.
        meter.switch_without_books(Instant::from_ps(5_000_000), 0);
        ledger.audit_meter(NOW, &meter, "a part");
        assert_eq!(ledger.broken().map(|violation| violation.law), Some(Law::Energy));
    }

    #[test]
    fn packets_that_nobody_books_may_be_many() {
        let mut ledger = Ledger::default();
        for _ in 0..=u32::MAX / u32::from(u16::MAX) + 1 {
            ledger.take(u16::MAX);
        }
        assert!(ledger.fresh > u64::from(u32::MAX));
    }

    #[test]
    fn the_first_violation_is_kept() {
        let mut ledger = Ledger::default();
        ledger.schedule(NOW, NOW);
        assert_eq!(ledger.broken(), None);
        ledger.schedule(NOW, Instant::ZERO);
        ledger.break_law(Law::Little, NOW, About::Queue("a queue"));
        assert_eq!(ledger.broken().map(|violation| violation.law), Some(Law::Past));
    }
}
