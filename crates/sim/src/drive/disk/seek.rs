//! Seek times: square-root curve for short distances, linear for long ones.
//!
//! After Ruemmler and Wilkes, "An introduction to disk drive modeling" (IEEE Computer, 1994): while
//! the arm accelerates all the way, the time is proportional to the square root of the distance;
//! beyond that it coasts. The three times are those of data sheets; the average distance is a third
//! of all cylinders.

use units::Duration;

/// A curve of seek times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seek {
    /// Track-to-track.
    pub next: Duration,
    /// Average: over a third of all cylinders.
    pub average: Duration,
    /// Full stroke.
    pub full: Duration,
}

impl Seek {
    /// Returns the seek time over `distance` of `cylinders`.
    pub fn time(&self, distance: u32, cylinders: u32) -> Duration {
        let third = u64::from(cylinders / 3).max(2);
        let span = |from: Duration, to: Duration| to.saturating_sub(from).as_ps();
        match u64::from(distance) {
            0 => Duration::ZERO,
            way if way <= third => {
                // In thousandths of the root of the longest such way.
                let share = ((way - 1) * 1_000_000 / (third - 1)).isqrt();
                self.next + Duration::from_ps(span(self.next, self.average) / 1000 * share)
            }
            way => {
                let rest = u64::from(cylinders).saturating_sub(third).max(1);
                let share = ((way - third) * 1_000_000 / rest).min(1_000_000);
                self.average + Duration::from_ps(span(self.average, self.full) / 1_000_000 * share)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEK: Seek =
        Seek { next: Duration::from_ms(1), average: Duration::from_ms(9), full: Duration::from_ms(17) };

    #[test]
    fn the_three_times_of_the_data_sheet_come_out() {
        let time = |distance| SEEK.time(distance, 90_000);
        assert_eq!(time(0), Duration::ZERO);
        assert_eq!(time(1), Duration::from_ms(1));
        assert_eq!(time(30_000), Duration::from_ms(9));
        assert_eq!(time(90_000), Duration::from_ms(17));
    }

    #[test]
    fn a_quarter_of_a_short_way_takes_half_of_what_is_above_the_least() {
        let time = SEEK.time(7_501, 90_000);
        assert!(time >= Duration::from_us(4_990) && time <= Duration::from_us(5_000), "{time}");
    }

    #[test]
    fn no_way_is_quicker_than_a_shorter_one() {
        for distance in 1..90_000 {
            assert!(SEEK.time(distance, 90_000) <= SEEK.time(distance + 1, 90_000));
        }
    }

    #[test]
    fn a_disk_of_few_cylinders_has_times_as_well() {
        for cylinders in 0..8 {
            assert!(SEEK.time(1, cylinders) >= SEEK.next);
        }
    }
}
