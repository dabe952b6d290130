//! One direction of a link: one packet or link command at a time, with clock compensation in
//! between.
//!
//! Ordered sets for clock compensation are due by symbol count, and go between packets. An idle
//! lane sends them meanwhile, so only a busy lane is slowed by them.

use super::packet::Packet;
use super::rate::Rate;
use crate::link::Crossing;
use units::{Duration, Instant};

/// Traffic counters of a lane, in symbols and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Symbols of packets, payload included.
    pub packets: u64,
    /// Symbols of link commands.
    pub commands: u64,
    /// Symbols of clock compensation that delayed packets.
    pub skips: u64,
    /// Bytes of payload.
    pub payload: u64,
}

impl Traffic {
    /// Returns the difference to `earlier`.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            packets: self.packets - earlier.packets,
            commands: self.commands - earlier.commands,
            skips: self.skips - earlier.skips,
            payload: self.payload - earlier.payload,
        }
    }
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct Lane {
    free_at: Instant,
    /// Symbols since the last ordered set.
    since_skip: u32,
    /// Symbols of an ordered set, and after how many others one is due.
    set: u16,
    every: u16,
    /// Time of a symbol, or of two on two lanes, in picoseconds.
    turn_ps: u16,
    is_paired: bool,
    /// Symbols of a data packet beside its payload.
    around_payload: u8,
    /// Propagation delay.
    propagation: Duration,
    traffic: Traffic,
}

/// Symbols of a header packet and of a link command, which are the same at every rate.
const HEADER_PACKET: u32 = Rate::Gen1.header_packet();
const LINK_COMMAND: u32 = Rate::Gen1.link_command();

impl Lane {
    /// Creates an idle lane. Constants of the rate are computed once.
    pub const fn new(rate: Rate, propagation: Duration) -> Self {
        let (set, every) = rate.skip();
        Self {
            free_at: Instant::ZERO,
            since_skip: 0,
            set: set as u16,
            every: every as u16,
            turn_ps: rate.symbols(1).as_ps() as u16,
            is_paired: matches!(rate, Rate::Gen2x2),
            around_payload: rate.data_packet(0) as u8,
            propagation,
            traffic: Traffic { packets: 0, commands: 0, skips: 0, payload: 0 },
        }
    }

    /// Returns when the lane is free.
    pub const fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Returns its traffic counters.
    pub const fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Sends a packet, as soon as the lane is free and then has been idle for `gap`.
    #[inline]
    pub(super) fn send(&mut self, now: Instant, packet: Packet, gap: Duration) -> Crossing {
        let symbols = match packet {
            Packet::Header => HEADER_PACKET,
            Packet::Data(bytes) => {
                self.traffic.payload += u64::from(bytes);
                u32::from(bytes) + u32::from(self.around_payload)
            }
        };
        self.traffic.packets += u64::from(symbols);
        self.occupy(now, symbols, gap)
    }

    /// Sends link commands one after the other, as soon as the lane is free.
    #[inline]
    pub(super) fn send_commands(&mut self, now: Instant, count: u32) -> Crossing {
        let symbols = count * LINK_COMMAND;
        self.traffic.commands += u64::from(symbols);
        self.occupy(now, symbols, Duration::ZERO)
    }

    /// Seeded bug: packets take no time from now on.
    pub(super) const fn hurry(&mut self) {
        self.turn_ps = 0;
    }

    /// Counts header packets that an idle lane has sent.
    pub(super) const fn has_carried_packets(&mut self, count: u64) {
        self.traffic.packets += count * HEADER_PACKET as u64;
    }

    /// Counts link commands that an idle lane has sent.
    pub(super) const fn has_carried_commands(&mut self, count: u64) {
        self.traffic.commands += count * LINK_COMMAND as u64;
    }

    #[inline]
    fn occupy(&mut self, now: Instant, symbols: u32, gap: Duration) -> Crossing {
        let mut begins = self.free_at.max(now) + gap;
        if self.since_skip >= u32::from(self.every) {
            begins = begins + self.skip(now);
        }
        let ends = begins + self.time(symbols);
        self.free_at = ends;
        self.since_skip += symbols;
        let arrives = ends + self.propagation;
        Crossing { begins, ends, arrives, heard: arrives }
    }

    /// Returns the time of symbols: see [`Rate::symbols`].
    #[inline]
    fn time(&self, symbols: u32) -> Duration {
        let turns = if self.is_paired { symbols.div_ceil(2) } else { symbols };
        Duration::from_ps(u64::from(turns) * u64::from(self.turn_ps))
    }

    /// Returns the time of clock compensation due before the next packet.
    fn skip(&mut self, now: Instant) -> Duration {
        let (set, every) = (u32::from(self.set), u32::from(self.every));
        let mut symbols = 0;
        // Seldom more than one or two.
        while self.since_skip >= every {
            (self.since_skip, symbols) = (self.since_skip - every, symbols + set);
        }
        let span = self.time(symbols);
        // An idle lane has sent them already.
        if now >= self.free_at + span {
            return Duration::ZERO;
        }
        self.traffic.skips += u64::from(symbols);
        span
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::ZERO;

    fn lane() -> Lane {
        Lane::new(Rate::Gen1, Duration::from_ns(5))
    }

    #[test]
    fn a_packet_arrives_after_its_symbols_and_the_propagation_delay() {
        let crossing = lane().send(Instant::from_ps(1_000_000), Packet::Data(1024), Duration::ZERO);
        assert_eq!(crossing.begins, Instant::from_ps(1_000_000));
        assert_eq!(crossing.ends, Instant::from_ps(1_000_000 + 2_112_000));
        assert_eq!(crossing.arrives, Instant::from_ps(1_000_000 + 2_117_000));
    }

    #[test]
    fn what_follows_waits_and_lets_skips_go_first() {
        let mut lane = lane();
        let first = lane.send(NOW, Packet::Data(1024), Duration::ZERO);
        // 1,056 symbols are two times 354 and 348 more.
        let second = lane.send(NOW, Packet::Header, Duration::ZERO);
        assert_eq!(second.begins, first.ends + Rate::Gen1.symbols(2 * 2));
        // 348 + 20 make another 354.
        let third = lane.send(NOW, Packet::Header, Duration::ZERO);
        assert_eq!(third.begins, second.ends + Rate::Gen1.symbols(2));
        assert_eq!(lane.traffic().skips, 6);
    }

    #[test]
    fn an_idle_lane_sends_skips_unseen() {
        let mut lane = lane();
        let first = lane.send(NOW, Packet::Data(1024), Duration::ZERO);
        let later = first.ends + Duration::from_ns(8);
        assert_eq!(lane.send(later, Packet::Header, Duration::ZERO).begins, later);
        assert_eq!(lane.traffic().skips, 0);
    }

    #[test]
    fn commands_go_between_packets_and_a_gap_comes_after_them() {
        let mut lane = lane();
        let first = lane.send(NOW, Packet::Header, Duration::ZERO);
        let commands = lane.send_commands(NOW, 2);
        assert_eq!(commands.begins, first.ends);
        let gap = Duration::from_ns(100);
        assert_eq!(lane.send(NOW, Packet::Header, gap).begins, commands.ends + gap);
    }
}
