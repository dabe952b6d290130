//! When an injected fault happens: at one occurrence of an event, or at random ones.

use core::fmt;
use core::num::NonZeroU64;

/// Which occurrences of an event a fault affects: `@N`, `/N` or `/N:SEED`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultSchedule {
    /// The Nth, counted from 1, once.
    At(NonZeroU64),
    /// One in so many on average, at random.
    OneIn {
        /// The mean.
        mean: NonZeroU64,
        /// Where the random numbers come from: the same seed affects the same occurrences.
        seed: u64,
    },
}

/// Counts occurrences, and selects those that a [`FaultSchedule`] names.
#[derive(Clone, Debug)]
pub struct FaultTrigger {
    schedule: FaultSchedule,
    occurrences: u64,
    random: u64,
}

impl FaultSchedule {
    /// Splits `KIND@N`, `KIND/N` or `KIND/N:SEED`. `None` for anything else.
    pub fn split(text: &str) -> Option<(&str, Self)> {
        if let Some((kind, number)) = text.split_once('@') {
            return Some((kind, Self::At(number.parse().ok()?)));
        }
        let (kind, rate) = text.split_once('/')?;
        let (mean, seed) = match rate.split_once(':') {
            Some((mean, seed)) => (mean, seed.parse().ok()?),
            None => (rate, 0),
        };
        Some((kind, Self::OneIn { mean: mean.parse().ok()?, seed }))
    }
}

impl FaultTrigger {
    /// Starts to count.
    pub const fn new(schedule: FaultSchedule) -> Self {
        let random = match schedule {
            FaultSchedule::At(_) => 0,
            FaultSchedule::OneIn { seed, .. } => seed,
        };
        Self { schedule, occurrences: 0, random }
    }

    /// Counts an occurrence. Returns whether the fault happens at it.
    pub fn fires(&mut self) -> bool {
        self.occurrences = self.occurrences.saturating_add(1);
        match self.schedule {
            FaultSchedule::At(number) => self.occurrences == number.get(),
            FaultSchedule::OneIn { mean, .. } => self.next_random() <= u64::MAX / mean.get(),
        }
    }

    /// Returns whether no later occurrence can be affected.
    pub fn is_spent(&self) -> bool {
        matches!(self.schedule, FaultSchedule::At(number) if self.occurrences >= number.get())
    }

    /// A counter of odd step, mixed by products whose halves change places.
    const fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = self.random.wrapping_mul(0xBF58_476D_1CE4_E5B9).rotate_left(u64::BITS / 2);
        mixed
            .wrapping_mul(0x94D0_49BB_1331_11EB)
            .rotate_left(u64::BITS / 2)
            .wrapping_mul(0xBF58_476D_1CE4_E5B9)
    }
}

impl fmt::Display for FaultSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(number) => write!(f, "@{number}"),
            Self::OneIn { mean, seed: 0 } => write!(f, "/{mean}"),
            Self::OneIn { mean, seed } => write!(f, "/{mean}:{seed}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    fn schedule(text: &str) -> FaultSchedule {
        FaultSchedule::split(text).expect("valid").1
    }

    #[test]
    fn a_schedule_reads_as_it_is_written() {
        for text in ["@1", "@18446744073709551615", "/1000", "/7:99"] {
            let both = FaultSchedule::split(text).map(|(kind, schedule)| (kind, schedule.to_string()));
            assert_eq!(both, Some(("", text.to_string())));
        }
        assert_eq!(FaultSchedule::split("lose-event/9:0").map(|(kind, _)| kind), Some("lose-event"));
        for text in ["", "x", "x@", "x@0", "x@-1", "x@1@2", "x/0", "x/", "x/1:", "x/1:2:3", "x/1:-1"] {
            assert_eq!(FaultSchedule::split(text), None, "{text}");
        }
    }

    #[test]
    fn a_count_fires_once() {
        let mut trigger = FaultTrigger::new(schedule("@3"));
        let fired: Vec<bool> = (0..5).map(|_| trigger.fires()).collect();
        assert_eq!(fired, [false, false, true, false, false]);
        assert!(trigger.is_spent());
    }

    #[test]
    fn a_rate_holds_and_depends_on_the_seed_alone() {
        let run = |text: &str| -> Vec<usize> {
            let mut trigger = FaultTrigger::new(schedule(text));
            (0..100_000).filter(|_| trigger.fires()).collect()
        };
        let fired = run("/100:7");
        assert!((900..1100).contains(&fired.len()), "{}", fired.len());
        assert_eq!(fired, run("/100:7"));
        assert_ne!(fired, run("/100:8"));
        assert_eq!(run("/1").len(), 100_000);
        assert!(!FaultTrigger::new(schedule("/1")).is_spent());
    }
}
