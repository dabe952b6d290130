//! Columns of numbers as text, by Rice's code (Rice and Plaunt, 1971).
//!
//! The distance of a number from the column's base is coded as its quotient by a power of two, in ones, and the
//! remainder in bits; base and power are those that make the column shortest. Numbers that are far from the rest, or
//! below the base, are written out. Always true: decoding returns the numbers that were coded, if they are within
//! [`WIDEST`].

/// Ones of a quotient; so many say that the number is written out.
const ONES_MAX: u32 = 24;

/// Bits of a number that is written out.
const WIDTH: u32 = 40;

/// The largest number, and the smallest with its sign; what is beyond is taken for it.
const WIDEST: i64 = (1 << (WIDTH - 1)) - 1;

/// Shares of a column, in percent, that may lie below its base.
const BELOW_PERCENT: [usize; 4] = [0, 1, 5, 20];

/// A column as JSON: how many, the base, the power, and the bits as base64.
pub(super) fn coded(numbers: &[i64]) -> String {
    let (base, power) = shortest(numbers);
    let mut out = Bits::default();
    for &number in numbers {
        match over(number, base, power) {
            Some((quotient, rest)) => {
                (0..quotient).for_each(|_| out.push(1, 1));
                out.push(0, 1);
                out.push(rest, power);
            }
            None => {
                (0..ONES_MAX).for_each(|_| out.push(1, 1));
                out.push((number.clamp(-WIDEST, WIDEST) + WIDEST) as u64, WIDTH);
            }
        }
    }
    format!("[{},{base},{power},\"{}\"]", numbers.len(), out.base64())
}

/// Base and power with which a column has the fewest bits.
fn shortest(numbers: &[i64]) -> (i64, u32) {
    let mut sorted: Vec<i64> = numbers.iter().map(|number| (*number).clamp(-WIDEST, WIDEST)).collect();
    sorted.sort_unstable();
    let Some(median) = sorted.get(sorted.len() / 2) else { return (0, 0) };
    let places = BELOW_PERCENT.map(|percent| sorted[sorted.len() * percent / 100]);
    let pairs = places.into_iter().flat_map(|base| {
        // The best power is near that of the median (Gallager and van Voorhis, 1975, for numbers that fall off geometrically), and
        // above it where some are far from the rest.
        let near = (median.abs_diff(base) + 1).ilog2();
        (near.saturating_sub(2)..near + 9).map(move |power| (base, power))
    });
    let bits = |(base, power): &(i64, u32)| -> u64 {
        numbers.iter().map(|number| cost(*number, *base, *power)).sum()
    };
    pairs.min_by_key(bits).unwrap_or((0, 0))
}

/// Quotient and rest of what a number has over a base; none if it is to be written out.
fn over(number: i64, base: i64, power: u32) -> Option<(u64, u64)> {
    let more = u64::try_from(number.checked_sub(base)?).ok()?;
    let quotient = more >> power;
    (quotient < u64::from(ONES_MAX)).then_some((quotient, more & ((1 << power) - 1)))
}

fn cost(number: i64, base: i64, power: u32) -> u64 {
    match over(number, base, power) {
        Some((quotient, _)) => quotient + 1 + u64::from(power),
        None => u64::from(ONES_MAX + WIDTH),
    }
}

/// Bits, the highest first, six to a character.
#[derive(Default)]
struct Bits {
    text: String,
    /// Bits that are no character yet, as a number, and how many.
    rest: usize,
    held: u32,
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

impl Bits {
    /// A number of so many bits.
    fn push(&mut self, value: u64, width: u32) {
        for place in (0..width).rev() {
            let bit = value >> place;
            self.rest = self.rest * 2 + (bit % 2) as usize;
            self.held += 1;
            if self.held == 6 {
                self.text.push(char::from(BASE64[self.rest]));
                (self.rest, self.held) = (0, 0);
            }
        }
    }

    fn base64(mut self) -> String {
        if self.held > 0 {
            self.push(0, 6 - self.held);
        }
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(text: &str) -> Vec<i64> {
        let parts: Vec<&str> = text.trim_matches(['[', ']']).split(',').collect();
        let [count, base, power] = [parts[0], parts[1], parts[2]].map(|part| part.parse::<i64>().unwrap());
        let six = |sign| BASE64.iter().position(|known| *known == sign).unwrap();
        let signs = parts[3].trim_matches('"').bytes().map(six);
        let mut bits = signs.flat_map(|six| (0..6).rev().map(move |bit| (six >> bit & 1) as i64));
        let mut read = |width| (0..width).fold(0_i64, |sum, _| sum << 1 | bits.next().unwrap());
        let mut number = || {
            let mut ones = 0;
            while ones < 24 && read(1) == 1 {
                ones += 1;
            }
            if ones == 24 { read(40) - WIDEST } else { base + (ones << power | read(power)) }
        };
        (0..count).map(|_| number()).collect()
    }

    proptest! {
        #[test]
        fn numbers_come_back(
            numbers in proptest::collection::vec(
                prop_oneof![0..9_i64, 4000..4100_i64, -20..5000_i64, -WIDEST..=WIDEST],
                0..200,
            )
        ) {
            prop_assert_eq!(decoded(&coded(&numbers)), numbers);
        }

        #[test]
        fn numbers_too_wide_are_the_widest(number in any::<i64>()) {
            let numbers = [5, number, 7];
            let taken = number.clamp(-WIDEST, WIDEST);
            prop_assert_eq!(decoded(&coded(&numbers)), [5, taken, 7]);
        }
    }

    #[test]
    fn what_is_always_the_same_is_a_bit_even_if_the_first_is_not() {
        let mut numbers = vec![1234; 6000];
        numbers[0] = 3;
        let text = coded(&numbers);
        assert!(
            text.starts_with("[6000,1234,0,\"") && text.len() < 6000 / 6 + 40,
            "{} characters",
            text.len()
        );
    }
}
