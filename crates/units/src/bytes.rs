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

/// The size of a drive or an image, in bytes, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity(pub u64);

impl fmt::Display for Capacity {
    /// In binary units if these are exact and short, as of images; else decimal, as sizes are printed on drives.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Limit for exact binary units; larger numbers are rounded to decimal units.
        const EXACT_MAX: u64 = 10_000;
        const UNITS: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];
        let shift = self.0.trailing_zeros().min(40) / 10 * 10;
        if self.0 > 0 && shift > 0 && self.0 >> shift < EXACT_MAX {
            return ByteCount(self.0).fmt(f);
        }
        let mut amount = self.0 as f64;
        let mut unit = 0;
        while amount >= 1000.0 && unit + 1 < UNITS.len() {
            amount /= 1000.0;
            unit += 1;
        }
        let digits = usize::from(unit > 0 && amount < 100.0);
        write!(f, "{amount:.digits$} {}", UNITS[unit])
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
    fn a_capacity_has_the_digits_that_matter() {
        let text = |bytes| Capacity(bytes).to_string();
        assert_eq!([text(0), text(512), text(1_000)], ["0 B", "512 B", "1.0 kB"]);
        assert_eq!([text(67_108_864), text(8 << 30), text(1_536 << 20)], ["64 MiB", "8 GiB", "1536 MiB"]);
        assert_eq!(text(4_000_787_030_016), "4.0 TB");
        assert_eq!(text(953_870 << 20), "1.0 TB", "whole MiB by chance");
        assert_eq!([text(1 << 40), text(u64::MAX)], ["1 TiB", "18447 PB"]);
    }

    #[test]
    fn a_range_ends_where_its_length_says() {
        let range = ByteRange::new(16, 4);
        assert_eq!(range.end(), 20);
        assert_eq!(range.as_usize(), 16..20);
        assert!(ByteRange::new(3, 0).is_empty());
    }
}
