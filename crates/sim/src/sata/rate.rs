//! How fast double words go, and how many everything takes.

use units::Duration;

/// The rate of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rate {
    /// 3 Gb/s.
    Gen2,
    /// 6 Gb/s.
    Gen3,
}

impl Rate {
    /// Time of so many double words: 40 bits each, since 8b/10b makes ten of eight (clause 7.2).
    pub const fn dwords(self, count: u64) -> Duration {
        let gigabits = match self {
            Self::Gen2 => 3,
            Self::Gen3 => 6,
        };
        Duration::from_ps(count * 40_000 / gigabits)
    }

    /// Double words of a frame of so many bytes: start, what is in it, check, end (clause 9.4), and
    /// two to keep the clocks aligned in each 256 (clause 9.5.8).
    pub const fn frame(bytes: u64) -> u64 {
        let dwords = bytes.div_ceil(4) + 3;
        dwords + dwords.div_ceil(254) * 2
    }
}
