//! Seeded random numbers, one source per component, so that an extra draw in one does not affect
//! others.
//!
//! SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014): a
//! counter and a mixing function. It passes the usual batteries, has 2⁶⁴ states, and is the same on
//! every machine. Not for secrets.

/// A random source.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates the source of a component for a seed.
    pub fn new(seed: u64, component: &str) -> Self {
        let mut source = Self(seed);
        for byte in component.bytes() {
            source.0 ^= u64::from(byte);
            source.0 = source.next();
        }
        source
    }

    /// Returns the next 64-bit number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = fold(self.0, 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = fold(mixed, 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        fold(mixed, 31)
    }

    /// Returns a number below `limit`, or 0 if `limit` is 0. The bias is less than `limit` in 2⁶⁴.
    pub const fn below(&mut self, limit: u64) -> u64 {
        ((self.next() as u128 * limit as u128) >> u64::BITS) as u64
    }

    /// Returns true with a probability of `count` in a million.
    pub const fn per_million(&mut self, count: u32) -> bool {
        self.below(1_000_000) < count as u64
    }
}

/// Folds high bits down.
const fn fold(word: u64, by: u32) -> u64 {
    word ^ word >> by
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_numbers_of_seed_zero_come() {
        let mut source = Random(0);
        assert_eq!([source.next(), source.next()], [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4]);
    }

    #[test]
    fn components_of_one_seed_differ_and_repeat() {
        let first = |component| Random::new(7, component).next();
        assert_ne!(first("host"), first("device"));
        assert_ne!(first("ab"), first("ba"));
        assert_eq!(first("host"), first("host"));
    }

    #[test]
    fn numbers_below_a_limit_fill_it() {
        let mut source = Random::new(1, "dice");
        let mut seen = [0_u32; 6];
        for _ in 0..6_000 {
            seen[source.below(6) as usize] += 1;
        }
        assert!(seen.iter().all(|&count| (800..1200).contains(&count)), "{seen:?}");
        assert_eq!(source.below(0), 0);
    }

    #[test]
    fn rates_hold_at_their_ends() {
        let mut source = Random::new(1, "coin");
        assert!((0..1000).all(|_| !source.per_million(0)));
        assert!((0..1000).all(|_| source.per_million(1_000_000)));
    }
}
