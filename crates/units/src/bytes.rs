//! Counts and ranges of bytes.

use core::fmt;

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteCount(pub u64);

impl fmt::Display for ByteCount {
    /// Binary units where they are exact, plain bytes elsewhere.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u32, &str); 4] = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
        for (shift, unit) in UNITS {
            if self.0 >> shift > 0 && self.0.trailing_zeros() >= shift {
                return write!(f, "{} {unit}", self.0 >> shift);
            }
        }
        write!(f, "{} B", self.0)
    }
}

/// Bytes `start..start + len` of some buffer whose owner the context names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ByteRange {
    /// Offset of the first byte.
    pub start: u32,
    /// Number of bytes.
    pub len: u32,
}

impl ByteRange {
    /// The range from `start` that is `len` bytes long.
    pub const fn new(start: u32, len: u32) -> Self {
        Self { start, len }
    }

    /// The offset one past the last byte; saturates.
    pub const fn end(self) -> u32 {
        self.start.saturating_add(self.len)
    }

    /// Whether there is no byte in it.
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The same range for indexing memory.
    pub const fn as_usize(self) -> core::ops::Range<usize> {
        self.start as usize..self.end() as usize
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_count_prints_in_binary_units_only_when_exact() {
        assert_eq!(ByteCount(1 << 20).to_string(), "1 MiB");
        assert_eq!(ByteCount((1 << 20) + 1).to_string(), "1048577 B");
        assert_eq!(ByteCount(0).to_string(), "0 B");
    }

    #[test]
    fn a_range_ends_where_its_length_says() {
        let range = ByteRange::new(16, 4);
        assert_eq!(range.end(), 20);
        assert_eq!(range.as_usize(), 16..20);
        assert!(ByteRange::new(3, 0).is_empty());
    }
}
