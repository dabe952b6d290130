//! The bus of USB 2.0 at high speed: half duplex, in microframes (USB 2.0 clauses 5.8.4 and 8).
//!
//! A [`HighSpeedBus`] takes one transaction after another. Each is a few packets with their synchronisation and the delays
//! between them; what does not fit into what is left of a microframe waits for the next. Left out: bit stuffing, split
//! transactions, periodic endpoints, hubs. When the host starts the next transaction is its controller's to say: real ones
//! leave gaps, and reach 32 to 44 MB/s of the 53.2 there are.
//!
//! Always true: a microframe carries no more than its bytes; a transaction never crosses into the next.

use super::Crossing;
use units::{Duration, Instant};

/// A microframe (USB 2.0 clause 8.4.3.1).
pub const MICROFRAME: Duration = Duration::from_us(125);

/// Bytes of a microframe at 480 Mb/s.
const MICROFRAME_BYTES: u64 = 7_500;

/// SYNC 4, PID 1, and 12 for the end of the packet and the delay before the next (table 5-10).
const PACKET_BYTES: u64 = 4 + 1 + 12;

/// What a token has beside: address, endpoint, CRC-5. A start of frame has as much (clause 8.4.3).
const TOKEN_FIELD_BYTES: u64 = 2;

/// What a data packet has beside its payload: CRC-16.
const DATA_FIELD_BYTES: u64 = 2;

/// What the host and a bulk endpoint do with each other at a time (clauses 8.5.1 and 8.5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transaction {
    /// Token, data of so many bytes, handshake: ACK, NYET, or, for OUT, NAK, which threw the data away.
    Data(u16),
    /// IN that is answered with NAK or STALL, or PING and its handshake: no data.
    NoData,
}

/// A bus at high speed.
#[derive(Clone, Debug, Default)]
pub struct HighSpeedBus {
    /// The microframe in which the last transaction was, counted from time zero.
    microframe: u64,
    /// Bytes of it that are used.
    used: u64,
    payload: u64,
}

impl Transaction {
    /// Bytes on the bus.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Data(bytes) => 3 * PACKET_BYTES + TOKEN_FIELD_BYTES + DATA_FIELD_BYTES + bytes as u64,
            Self::NoData => 2 * PACKET_BYTES + TOKEN_FIELD_BYTES,
        }
    }
}

impl HighSpeedBus {
    /// Bytes of the start of frame, which begins each microframe.
    const START_OF_FRAME: u64 = PACKET_BYTES + TOKEN_FIELD_BYTES;

    /// A bus on which nothing has moved.
    pub fn new() -> Self {
        Self { used: Self::START_OF_FRAME, ..Self::default() }
    }

    /// Bytes of payload that were carried, thrown away or not.
    pub const fn payload(&self) -> u64 {
        self.payload
    }

    /// Carries a transaction, as soon as the bus is free and what is left of a microframe has room for it.
    pub fn carry(&mut self, now: Instant, transaction: Transaction) -> Crossing {
        self.move_to(now);
        let bytes = transaction.bytes();
        if self.used + bytes > MICROFRAME_BYTES {
            self.microframe += 1;
            self.used = Self::START_OF_FRAME;
        }
        let begins = self.now();
        self.used += bytes;
        if let Transaction::Data(bytes) = transaction {
            self.payload += u64::from(bytes);
        }
        let ends = self.now();
        Crossing { begins, ends, arrives: ends }
    }

    /// Time passes on an idle bus.
    fn move_to(&mut self, now: Instant) {
        let (microframe, inside) = (now.as_ps() / MICROFRAME.as_ps(), now.as_ps() % MICROFRAME.as_ps());
        let used = (inside * MICROFRAME_BYTES).div_ceil(MICROFRAME.as_ps());
        if (microframe, used) > (self.microframe, self.used) {
            self.microframe = microframe;
            self.used = used.max(Self::START_OF_FRAME);
        }
    }

    /// The time at the byte at which the bus is. A byte takes 16.67 ns; each is rounded up for itself, so nothing adds up.
    const fn now(&self) -> Instant {
        let inside = (self.used * MICROFRAME.as_ps()).div_ceil(MICROFRAME_BYTES);
        Instant::from_ps(self.microframe * MICROFRAME.as_ps() + inside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bulk_transaction_has_55_bytes_beside_its_data() {
        assert_eq!(Transaction::Data(512).bytes(), 512 + 55);
        assert_eq!(Transaction::NoData.bytes(), 36);
    }

    #[test]
    fn thirteen_full_packets_fit_into_a_microframe() {
        let mut bus = HighSpeedBus::new();
        let microframe = |crossing: Crossing| crossing.begins.as_ps() / MICROFRAME.as_ps();
        let places: Vec<_> =
            (0..26).map(|_| microframe(bus.carry(Instant::ZERO, Transaction::Data(512)))).collect();
        assert_eq!(places, [[0; 13], [1; 13]].concat());
    }

    #[test]
    fn a_second_carries_53_248_000_bytes_at_most() {
        let mut bus = HighSpeedBus::new();
        while bus.carry(Instant::ZERO, Transaction::Data(512)).ends < Instant::ZERO + Duration::from_secs(1) {
        }
        // The one that ended the loop lies in the next second.
        assert_eq!(bus.payload() - 512, 53_248_000);
    }

    #[test]
    fn a_transaction_on_an_idle_bus_begins_at_once() {
        let mut bus = HighSpeedBus::new();
        let now = Instant::ZERO + Duration::from_us(130);
        let crossing = bus.carry(now, Transaction::NoData);
        assert!((crossing.begins - now) < Duration::from_ns(17));
        // 36 bytes of 1/60 us.
        assert_eq!((crossing.ends - crossing.begins).as_ns(), 600);
    }

    #[test]
    fn a_transaction_that_does_not_fit_waits_for_the_next_microframe() {
        let mut bus = HighSpeedBus::new();
        let crossing = bus.carry(Instant::ZERO + Duration::from_us(120), Transaction::Data(512));
        // 19 bytes of start of frame go first.
        assert_eq!(crossing.begins, Instant::ZERO + MICROFRAME + Duration::from_ps(316_667));
    }

    proptest! {
        #[test]
        fn transactions_do_not_overlap_nor_cross_microframes(steps in prop::collection::vec((0_u64..200_000_000, 0_u16..=512), 0..100)) {
            let (mut bus, mut now, mut free_at) = (HighSpeedBus::new(), Instant::ZERO, Instant::ZERO);
            for (wait, bytes) in steps {
                now = now + Duration::from_ps(wait);
                let crossing = bus.carry(now, Transaction::Data(bytes));
                prop_assert!(crossing.begins >= now && crossing.begins >= free_at);
                let last = Instant::from_ps(crossing.ends.as_ps() - 1);
                prop_assert_eq!(crossing.begins.as_ps() / MICROFRAME.as_ps(), last.as_ps() / MICROFRAME.as_ps());
                free_at = crossing.ends;
            }
        }
    }
}
