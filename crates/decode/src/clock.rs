//! How finely the clock of a capture counts, as far as its times show.
//!
//! USBPcap 1.0 takes its times from a clock of Windows that ticks every 15.6 ms, so that most packets have the time of the one before.
//! Times between them are then multiples of the tick, and latencies are not known.

/// A clock with shorter steps is fine enough for latencies of a drive.
const COARSE_NS: u64 = 500_000;
/// Steps of the clock before anything can be said.
const STEPS_MIN: u64 = 3;
/// Of this many packets at least one must have another time than the one before.
const PACKETS_PER_STEP_MIN: u64 = 2;

/// Watches the times of packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    latest_ns: Option<u64>,
    packets: u64,
    /// How often the time was another one than before.
    steps: u64,
    least_ns: u64,
}

impl Clock {
    pub(crate) fn take(&mut self, at_ns: u64) {
        self.packets += 1;
        let step = self.latest_ns.replace(at_ns).map_or(0, |latest| at_ns.abs_diff(latest));
        if step > 0 {
            self.steps += 1;
            self.least_ns = if self.steps == 1 { step } else { self.least_ns.min(step) };
        }
    }

    /// The step of a coarse clock, in nanoseconds.
    pub(crate) fn tick_ns(&self) -> Option<u64> {
        let is_coarse = self.least_ns >= COARSE_NS
            && self.steps >= STEPS_MIN
            && self.packets >= self.steps * PACKETS_PER_STEP_MIN;
        is_coarse.then_some(self.least_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick_ns(times: impl IntoIterator<Item = u64>) -> Option<u64> {
        let mut clock = Clock::default();
        times.into_iter().for_each(|at_ns| clock.take(at_ns));
        clock.tick_ns()
    }

    #[test]
    fn times_in_steps_of_15_ms_are_of_a_coarse_clock() {
        assert_eq!(tick_ns((0..100).map(|at| at / 10 * 15_625_000)), Some(15_625_000));
    }

    #[test]
    fn a_slow_drive_or_a_fine_clock_is_not_coarse() {
        assert_eq!(tick_ns((0..100).map(|at| at * 15_625_000)), None, "each packet has its time");
        assert_eq!(tick_ns((0..100).map(|at| at / 10 * 10_000)), None);
        assert_eq!(tick_ns([0, 0, 0, 15_000_000, 15_000_000]), None, "too few steps");
        assert_eq!(tick_ns([]), None);
    }
}
