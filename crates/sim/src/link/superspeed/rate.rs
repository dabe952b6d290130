//! Symbol rates, and packet lengths in symbols.

use units::Duration;

/// The rate of a link. A symbol is a byte as it is on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rate {
    /// 5 Gb/s, 8b/10b: a symbol takes 2 ns (USB 3.2 clause 6.4.3).
    Gen1,
    /// 10 Gb/s, 128b/132b: 16 symbols take 13.2 ns (clause 6.3.2).
    Gen2,
    /// Two lanes of 10 Gb/s, with symbols interleaved.
    Gen2x2,
}

impl Rate {
    /// Returns the bit rate in words.
    pub const fn bit_rate(self) -> &'static str {
        match self {
            Self::Gen1 => "5 Gb/s",
            Self::Gen2 => "10 Gb/s",
            Self::Gen2x2 => "20 Gb/s",
        }
    }

    /// All rates.
    pub const ALL: [Self; 3] = [Self::Gen1, Self::Gen2, Self::Gen2x2];

    /// Returns the time of `count` symbols. Two lanes move two at once, so an odd one takes a full
    /// symbol time.
    pub const fn symbols(self, count: u32) -> Duration {
        let count = count as u64;
        Duration::from_ps(match self {
            Self::Gen1 => count * 2_000,
            Self::Gen2 => count * 825,
            Self::Gen2x2 => count.div_ceil(2) * 825,
        })
    }

    /// Symbols of a header packet: framing 4, header 12, CRC-16 2, link control word 2 (clause
    /// 7.2.1.1).
    pub const fn header_packet(self) -> u32 {
        20
    }

    /// Symbols of a data packet with a payload of `bytes`: the header; for Gen 2 its length again
    /// (clause 7.2.1.1.3); the payload between its framing of 4 + 4, and CRC-32 (clause 7.2.1.2).
    pub const fn data_packet(self, bytes: u32) -> u32 {
        let length_replica = match self {
            Self::Gen1 => 0,
            Self::Gen2 | Self::Gen2x2 => 4,
        };
        self.header_packet() + length_replica + 12 + bytes
    }

    /// Symbols of a link command: framing 4, twice the word (clause 7.2.2).
    pub const fn link_command(self) -> u32 {
        8
    }

    /// Symbols of an ordered set for clock compensation, and after how many others one is due. Gen
    /// 1: a set of two in 354 (clause 6.4.3); Gen 2: a block of 16 in 40 blocks (clause 6.4.3.2).
    pub const fn skip(self) -> (u32, u32) {
        match self {
            Self::Gen1 => (2, 354),
            Self::Gen2 => (16, 40 * 16),
            Self::Gen2x2 => (32, 40 * 32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_packet_of_gen_1_takes_2112_ns() {
        assert_eq!(Rate::Gen1.data_packet(1024), 1056);
        assert_eq!(Rate::Gen1.symbols(1056), Duration::from_ns(2112));
    }

    #[test]
    fn a_block_of_gen_2_takes_132_bits() {
        assert_eq!(Rate::Gen2.symbols(16), Duration::from_ps(13_200));
        assert_eq!(Rate::Gen2x2.symbols(32), Duration::from_ps(13_200));
        assert_eq!(Rate::Gen2x2.symbols(1), Rate::Gen2x2.symbols(2));
    }
}
