//! Number formatting for people.
//!
//! Figures have four significant digits, means three. Thousands are separated by a narrow no-break
//! space.

/// Thousands separator: U+202F.
const THIN: char = '\u{202f}';

/// Formats four significant digits: `0.1234`, `12.34`, `144 512`.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    let magnitude = value.abs();
    let decimals = match magnitude {
        _ if magnitude == 0.0 => 0,
        _ if magnitude >= 1000.0 => 0,
        _ if magnitude >= 100.0 => 1,
        _ if magnitude >= 10.0 => 2,
        _ if magnitude >= 1.0 => 3,
        _ => 4,
    };
    let digits = format!("{magnitude:.decimals$}");
    let (whole, part) = digits.split_once('.').unwrap_or((&digits, ""));
    let part = part.trim_end_matches('0');
    let sign = if value < 0.0 { "−" } else { "" };
    let point = if part.is_empty() { "" } else { "." };
    format!("{sign}{}{point}{part}", grouped(whole))
}

/// Formats a mean with three significant digits: `0.123`, `12.3`, `145`, `35 300`. Whole numbers
/// are usually counts and keep all digits.
pub fn mean(value: f64) -> String {
    if value == 0.0 || !value.is_finite() || value.fract() == 0.0 {
        return number(value);
    }
    number(three_digits(value))
}

/// Rounds to three significant digits.
pub(crate) fn three_digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let power = 10_f64.powi(2 - value.abs().log10().floor() as i32);
    (value * power).round() / power
}

fn grouped(whole: &str) -> String {
    if whole.len() < 5 {
        return whole.to_owned();
    }
    let mut out = String::new();
    for (nth, digit) in whole.chars().enumerate() {
        if nth > 0 && (whole.len() - nth).is_multiple_of(3) {
            out.push(THIN);
        }
        out.push(digit);
    }
    out
}

/// Formats a number for an axis: `0.5`, `250`, `10k`, `2M`.
pub fn short(value: f64) -> String {
    let magnitude = value.abs();
    let (divisor, unit) = match magnitude {
        _ if magnitude >= 1e9 => (1e9, "G"),
        _ if magnitude >= 1e6 => (1e6, "M"),
        _ if magnitude >= 1e4 => (1e3, "k"),
        _ => (1.0, ""),
    };
    let scaled = value / divisor;
    let digits = format!("{scaled:.4}");
    format!("{}{unit}", digits.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_are_kept() {
        let shown = [0.0, 0.12344, 4.0, 12.346, 144.52, 1234.6, 144_512.4, -2.5].map(number);
        assert_eq!(
            shown,
            ["0", "0.1234", "4", "12.35", "144.5", "1235", "144\u{202f}512", "−2.5"].map(String::from)
        );
        assert_eq!(number(f64::NAN), "–");
    }

    #[test]
    fn means_have_three_digits_and_counts_all() {
        let shown = [0.12344, 12.346, 144.52, 1234.6, 35_312.4, 35_312.0, 0.0, -2.5].map(mean);
        let wanted = ["0.123", "12.3", "145", "1230", "35\u{202f}300", "35\u{202f}312", "0", "−2.5"];
        assert_eq!(shown, wanted.map(String::from));
    }

    #[test]
    fn ticks_are_short() {
        assert_eq!(
            [0.0, 0.5, 250.0, 2000.0, 10_000.0, 2_500_000.0].map(short),
            ["0", "0.5", "250", "2000", "10k", "2.5M"]
        );
    }
}
