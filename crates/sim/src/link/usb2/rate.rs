//! Bit rates, and packet lengths in bits (USB 2.0 clauses 5.8, 7.1 and 8.4).
//!
//! Not modelled: bit stuffing. Invariant: all functions depend on the rate and the packet alone.

use super::packet::{HostRequest, HostTransaction, Packet, SplitPhase};
use units::Duration;
use wire::usb::SetupPacket;

/// The rate of a bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rate {
    /// 12 Mb/s, in frames.
    Full,
    /// 480 Mb/s, in microframes.
    High,
}

impl Rate {
    /// Returns the bit rate in words.
    pub const fn bit_rate(self) -> &'static str {
        match self {
            Self::Full => "12 Mb/s",
            Self::High => "480 Mb/s",
        }
    }

    /// A frame or a microframe: what begins with a start of frame (USB 2.0 clause 8.4.3).
    pub const fn frame(self) -> Duration {
        match self {
            Self::Full => Duration::from_ms(1),
            Self::High => Duration::from_us(125),
        }
    }

    /// Returns the bits of a frame.
    pub const fn frame_bits(self) -> u64 {
        match self {
            Self::Full => 12_000,
            Self::High => 60_000,
        }
    }

    /// Returns the bytes of the largest packet of a bulk endpoint (clause 5.8.3).
    pub const fn packet_bytes(self) -> u16 {
        match self {
            Self::Full => 64,
            Self::High => 512,
        }
    }

    /// Packets of that size that a frame has room for at most, with token and handshake (tables
    /// 5-10 and 5-9).
    pub const fn full_packets_max(self) -> u32 {
        match self {
            Self::Full => 19,
            Self::High => 13,
        }
    }

    /// Returns the bits of the longest transaction, which has a packet of that size.
    pub const fn longest_bits(self) -> u64 {
        8 * (3 * self.around_bytes() + TOKEN_FIELD_BYTES + DATA_FIELD_BYTES + self.packet_bytes() as u64)
    }

    /// Returns whether there are PING and NYET (clause 8.5.1).
    pub const fn has_ping(self) -> bool {
        matches!(self, Self::High)
    }

    /// Returns the bits of a packet, with the delay before the next.
    pub const fn packet_bits(self, packet: &Packet) -> u64 {
        let fields = match packet {
            Packet::Split(_) => SPLIT_FIELD_BYTES,
            Packet::Token(_) => TOKEN_FIELD_BYTES,
            Packet::Data(_, piece) => DATA_FIELD_BYTES + piece.bytes as u64,
            Packet::Handshake(_) => 0,
        };
        8 * (self.around_bytes() + fields)
    }

    /// Returns the bits of the longest transaction that an order can become, if a device sends
    /// `packet_bytes` at most.
    pub const fn order_bits(self, order: &HostTransaction, packet_bytes: u16) -> u64 {
        let around = self.around_bytes();
        let split = around + SPLIT_FIELD_BYTES;
        let token = around + TOKEN_FIELD_BYTES;
        match order {
            HostTransaction::Whole(ask) => self.transaction_bits(ask, packet_bytes),
            // Token and handshake, with data that goes out between them.
            HostTransaction::Split(SplitPhase::Start, ask) => {
                let data = match ask.data_packet() {
                    Some(packet) => self.packet_bits(&packet),
                    None => 0,
                };
                8 * (split + token + around) + data
            }
            HostTransaction::Split(SplitPhase::Complete, HostRequest::In(_)) => {
                8 * (split + token + around + DATA_FIELD_BYTES + packet_bytes as u64)
            }
            HostTransaction::Split(SplitPhase::Complete, _) => 8 * (split + token + around),
        }
    }

    /// Returns the bits of the longest transaction that an ask can become, if a device sends
    /// `packet_bytes` at most.
    pub const fn transaction_bits(self, ask: &HostRequest, packet_bytes: u16) -> u64 {
        let around = self.around_bytes();
        8 * match ask {
            HostRequest::In(_) => 3 * around + TOKEN_FIELD_BYTES + DATA_FIELD_BYTES + packet_bytes as u64,
            HostRequest::Out(_, _, piece) => {
                3 * around + TOKEN_FIELD_BYTES + DATA_FIELD_BYTES + piece.bytes as u64
            }
            HostRequest::Setup(_) => {
                3 * around + TOKEN_FIELD_BYTES + DATA_FIELD_BYTES + SetupPacket::LEN as u64
            }
            HostRequest::Ping(_) => 2 * around + TOKEN_FIELD_BYTES,
        }
    }

    /// Returns how long so many bits take.
    pub fn takes(self, bits: u64) -> Duration {
        let ps = u128::from(bits) * u128::from(self.frame().as_ps()) / u128::from(self.frame_bits());
        Duration::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }

    /// Returns the bits of the start of frame.
    pub const fn start_bits(self) -> u64 {
        8 * (self.around_bytes() + TOKEN_FIELD_BYTES)
    }

    /// Returns the bits for which the host waits for an answer (clauses 7.1.19.2 and 8.7.2, the
    /// least that is allowed).
    pub const fn timeout_bits(self) -> u64 {
        match self {
            Self::Full => 16,
            Self::High => 736,
        }
    }

    /// Returns the bits that a packet is late behind a hub: 36 and 4 ns at high speed (clause
    /// 7.1.14.2), 44 ns with its cable at full speed (clause 7.1.14.1), in whole bits.
    pub const fn hub_bits(self) -> u64 {
        match self {
            Self::Full => 1,
            Self::High => 36 + 2,
        }
    }

    /// Overhead of any packet in bytes. High speed: SYNC 4, PID 1, end of packet and delay 12
    /// (table 5-10). Full speed: SYNC 1, PID 1, delay 1 (table 5-9).
    const fn around_bytes(self) -> u64 {
        match self {
            Self::Full => 1 + 1 + 1,
            Self::High => 4 + 1 + 12,
        }
    }
}

/// Fields of a token: address, endpoint, CRC-5. A start of frame has as much (clause 8.4.3).
const TOKEN_FIELD_BYTES: u64 = 2;

/// Fields of a split token: hub address, port, type, CRC-5 (clause 8.4.2).
const SPLIT_FIELD_BYTES: u64 = 3;

/// Overhead of a data packet: CRC-16.
const DATA_FIELD_BYTES: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::bulk::PacketPayload;
    use crate::link::usb2::Toggle;
    use bus::TransferId;
    use wire::usb::{Direction, EndpointAddress};

    fn ask(bytes: u16) -> HostRequest {
        let piece = PacketPayload { transfer: TransferId(0), offset: 0, bytes };
        HostRequest::Out(EndpointAddress::at::<2>(Direction::Out), Toggle::Data0, piece)
    }

    #[test]
    fn a_bulk_transaction_has_55_bytes_beside_its_data_at_high_speed_and_13_at_full() {
        assert_eq!(Rate::High.transaction_bits(&ask(512), 512), 8 * (512 + 55));
        assert_eq!(Rate::Full.transaction_bits(&ask(64), 64), 8 * (64 + 13));
        assert_eq!([Rate::High, Rate::Full].map(Rate::longest_bits), [8 * 567, 8 * 77]);
    }

    #[test]
    fn a_ping_takes_36_bytes() {
        let ping = HostRequest::Ping(EndpointAddress::at::<2>(Direction::Out));
        assert_eq!(Rate::High.transaction_bits(&ping, 512), 8 * 36);
    }
}
